//! What the model says and does, whoever asks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a stand-in answers. The first reply whose `when` fits and that is not used up answers a request.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The replies, in the order in which they are tried.
    #[serde(default)]
    pub replies: Vec<Reply>,
    /// What each request costs whose reply does not say it.
    #[serde(default)]
    pub usage: Tokens,
}

/// How one conversation is answered.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// A part of the newest user turn: what the user said last, tool results and what a CLI adds about its
    /// surroundings apart. Nothing fits every request.
    #[serde(default)]
    pub when: Option<String>,
    /// How many times it is played to its end; 0 is for ever.
    #[serde(default = "once")]
    pub times: u32,
    /// What is said and done, in order. See [`Act`] for what makes one response of the API.
    pub acts: Vec<Act>,
    /// What each of its requests costs; nothing means what the scenario says.
    #[serde(default)]
    pub usage: Option<Tokens>,
    /// The model that the response names; nothing means the one that was asked for.
    #[serde(default)]
    pub model: Option<String>,
}

fn once() -> u32 {
    1
}

/// Tokens of one request. Each API reports them in its own way: Messages counts `input` and `cached` apart, the
/// others report their sum as input and `cached` as a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Read afresh.
    pub input: u64,
    /// Read from a cache, not counted in `input`.
    #[serde(default)]
    pub cached: u64,
    /// Written.
    pub output: u64,
}

impl Default for Tokens {
    fn default() -> Tokens {
        Tokens { input: 100, cached: 20, output: 25 }
    }
}

/// One thing that the model says or does, or that goes wrong.
///
/// A response of the API ends with a call of a tool, with a fault, or where the acts end: texts before a call go out
/// together with it. Which response of a reply is due is told by the number of tool results since the user's turn, so
/// that a client that repeats a request gets the same response. Past the last one, the last one is repeated. Where a
/// stream breaks, Claude asks once more without a stream, whatever its retries are set to: let such a reply play twice,
/// or the next one answers.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// A command, as a call of the shell that the client offers. Left out for a client that offers no tools.
    Shell(String),
    /// Writes a file, as a call of the client's tool for it or of its shell. Left out for a client that offers no
    /// tools.
    Write {
        /// The file; a relative path is one of the client's working folder.
        path: String,
        /// All of its content.
        content: String,
    },
    /// A call of a tool by its name, offered or not. Left out for a client that offers no tools.
    Call {
        /// The tool.
        tool: String,
        /// Its arguments.
        input: Value,
    },
    /// Something said.
    Text(String),
    /// The structured answer: a call of the tool that the client wants it by (`StructuredOutput`, or one that it
    /// forces), else the JSON as text. Where the client constrains the whole answer to a schema, texts before it are
    /// left out, as a constrained model could not have said them.
    Json(Value),
    /// A response with another status than 200.
    Status {
        /// The status.
        code: u16,
        /// What stands in it.
        #[serde(default)]
        body: Body,
        /// More headers, such as `retry-after`.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
    /// The model declines, in the form that the API has for it.
    Refuse(String),
    /// The answer ends in the middle because it grew too long.
    CutShort(String),
    /// The request is too long for the model.
    ContextOverflow,
    /// A stream begins well and ends with an error event of this kind (such as `overloaded_error`); a client that
    /// does not stream gets status 500.
    FailMidStream(String),
    /// The response never comes: the connection stays open until the client goes.
    Hang,
    /// The response begins, then nothing more comes.
    HangMidStream,
    /// The response begins, then the connection ends.
    DropMidStream,
    /// The connection ends without a response.
    Drop,
    /// A response that is not what the API promises: an event (without a stream, a body) that is not JSON.
    Garbage,
    /// Waits so many milliseconds before the response begins.
    Delay(u64),
    /// The texts of this response come slowly: so many milliseconds between two pieces, and each piece in two writes.
    Slow(u64),
}

/// What stands in a response with a status of failure.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// The API's own error object for the status.
    #[default]
    Api,
    /// The API's own error object, with this message.
    Message(String),
    /// This object.
    Json(Value),
    /// A page such as a proxy sends.
    Html(String),
    /// Nothing.
    Empty,
}

impl Scenario {
    /// One without replies: every request is refused.
    pub fn new() -> Scenario {
        Scenario::default()
    }

    /// One more reply, tried after those before it.
    #[must_use]
    pub fn reply(mut self, reply: Reply) -> Scenario {
        self.replies.push(reply);
        self
    }

    /// What each request costs whose reply does not say it.
    #[must_use]
    pub fn usage(mut self, input: u64, cached: u64, output: u64) -> Scenario {
        self.usage = Tokens { input, cached, output };
        self
    }
}

impl Reply {
    /// A reply to a user turn that contains this text.
    pub fn to(when: &str) -> Reply {
        Reply { when: Some(when.to_owned()), ..Reply::any() }
    }

    /// A reply to whatever is asked.
    pub fn any() -> Reply {
        Reply { when: None, times: 1, acts: Vec::new(), usage: None, model: None }
    }

    /// How many times it is played; 0 is for ever.
    #[must_use]
    pub fn times(mut self, times: u32) -> Reply {
        self.times = times;
        self
    }

    /// It is never used up.
    #[must_use]
    pub fn for_ever(self) -> Reply {
        self.times(0)
    }

    /// What each of its requests costs.
    #[must_use]
    pub fn usage(mut self, input: u64, cached: u64, output: u64) -> Reply {
        self.usage = Some(Tokens { input, cached, output });
        self
    }

    /// The model that its responses name.
    #[must_use]
    pub fn model(mut self, model: &str) -> Reply {
        self.model = Some(model.to_owned());
        self
    }

    /// One more act.
    #[must_use]
    pub fn act(mut self, act: Act) -> Reply {
        self.acts.push(act);
        self
    }

    /// Runs a command.
    #[must_use]
    pub fn shell(self, command: &str) -> Reply {
        self.act(Act::Shell(command.to_owned()))
    }

    /// Writes a file.
    #[must_use]
    pub fn write(self, path: &str, content: &str) -> Reply {
        self.act(Act::Write { path: path.to_owned(), content: content.to_owned() })
    }

    /// Says something.
    #[must_use]
    pub fn text(self, text: &str) -> Reply {
        self.act(Act::Text(text.to_owned()))
    }

    /// Gives the structured answer.
    #[must_use]
    pub fn json(self, answer: Value) -> Reply {
        self.act(Act::Json(answer))
    }

    /// Fails with a status and the API's own error object.
    #[must_use]
    pub fn status(self, code: u16) -> Reply {
        self.status_with(code, Body::Api, &[])
    }

    /// Fails with a status, a body and more headers.
    #[must_use]
    pub fn status_with(self, code: u16, body: Body, headers: &[(&str, &str)]) -> Reply {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.act(Act::Status { code, body, headers })
    }
}
