//! Selects the reply and the response for a request.

use std::collections::BTreeMap;

use super::{
    scenario::{Act, Body, Reply, Scenario},
    tools,
    wire::{Asked, Piece, Stop},
};

/// One response of the API.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Response {
    /// The delay before its start, in milliseconds.
    pub delay_ms: u64,
    /// The delay between two pieces, in milliseconds.
    pub slow_ms: Option<u64>,
    /// The content.
    pub pieces: Vec<Piece>,
    /// How it ends.
    pub end: End,
}

/// How a response ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum End {
    /// Normally.
    Said(Stop),
    /// It has another status than 200.
    Status { code: u16, body: Body, headers: BTreeMap<String, String> },
    /// The request is too long.
    Overflow,
    /// With an error event.
    FailMidStream(String),
    /// It never starts.
    Hang,
    /// It never ends.
    HangMidStream,
    /// The connection closes within the response.
    DropMidStream,
    /// The connection closes without a response.
    Drop,
    /// It is malformed.
    Garbage,
}

/// How often each reply was completed.
#[derive(Debug, Default)]
pub(super) struct Played(Vec<u32>);

impl Played {
    /// The reply to a request and the index of its response; `None` if no reply matches. A reply is completed when its
    /// last response is returned.
    pub(super) fn next(&mut self, scenario: &Scenario, asked: &Asked) -> Option<(usize, Response)> {
        self.0.resize(scenario.replies.len(), 0);
        let fits = |(nth, reply): &(usize, &Reply)| {
            let left = reply.times == 0 || self.0[*nth] < reply.times;
            left && reply.when.as_ref().is_none_or(|when| asked.user.contains(when.as_str()))
        };
        let (nth, reply) = scenario.replies.iter().enumerate().find(fits)?;
        let mut responses = responses(&reply.acts, asked);
        let last = responses.len() - 1;
        let due = asked.results.min(last);
        if due == last {
            self.0[nth] += 1;
        }
        Some((nth, responses.swap_remove(due)))
    }
}

/// The responses that the acts produce for a client; at least one.
fn responses(acts: &[Act], asked: &Asked) -> Vec<Response> {
    let mut done = Vec::new();
    let mut now = Building::default();
    for act in acts {
        if let Some(end) = now.act(act, asked) {
            done.push(now.end(end));
            now = Building::default();
        }
    }
    let is_submitted = matches!(acts.last(), Some(Act::Json(_))) && tools::submit_tool(asked).is_some();
    if is_submitted {
        now.pieces.push(Piece::Text("I gave my answer.".to_owned()));
    }
    if now != Building::default() || done.is_empty() {
        done.push(now.end(End::Said(Stop::End)));
    }
    done
}

#[derive(Debug, Default, PartialEq)]
struct Building {
    delay_ms: u64,
    slow_ms: Option<u64>,
    pieces: Vec<Piece>,
}

impl Building {
    /// Adds an act; returns how the response ends, if it ends.
    fn act(&mut self, act: &Act, asked: &Asked) -> Option<End> {
        match act {
            Act::Shell(_) | Act::Write { .. } | Act::Call { .. } => {
                self.pieces.push(Piece::Call(tools::call(asked, act)?));
                return Some(End::Said(Stop::Tool));
            }
            Act::Text(text) => self.pieces.push(Piece::Text(text.clone())),
            Act::Delay(ms) => self.delay_ms += ms,
            Act::Slow(ms) => self.slow_ms = Some(*ms),
            Act::Json(answer) => {
                if let Some(call) = tools::structured(asked, answer) {
                    self.pieces.push(Piece::Call(call));
                    return Some(End::Said(Stop::Tool));
                }
                if asked.constrained {
                    self.pieces.clear();
                }
                self.pieces.push(Piece::Text(answer.to_string()));
                return Some(End::Said(Stop::End));
            }
            Act::Refuse(words) => {
                self.pieces.push(Piece::Refusal(words.clone()));
                return Some(End::Said(Stop::Refusal));
            }
            Act::CutShort(text) => {
                self.pieces.push(Piece::Text(text.clone()));
                return Some(End::Said(Stop::Length));
            }
            Act::Status { code, body, headers } => {
                let (body, headers) = (body.clone(), headers.clone());
                return Some(End::Status { code: *code, body, headers });
            }
            Act::ContextOverflow => return Some(End::Overflow),
            Act::FailMidStream(kind) => return Some(End::FailMidStream(kind.clone())),
            Act::Hang => return Some(End::Hang),
            Act::HangMidStream => return Some(End::HangMidStream),
            Act::DropMidStream => return Some(End::DropMidStream),
            Act::Drop => return Some(End::Drop),
            Act::Garbage => return Some(End::Garbage),
        }
        None
    }

    fn end(self, end: End) -> Response {
        Response { delay_ms: self.delay_ms, slow_ms: self.slow_ms, pieces: self.pieces, end }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(user: &str, results: usize) -> Asked {
        Asked {
            user: user.to_owned(),
            results,
            tools: tools::read(&json!([{"name": "Bash"}])),
            ..Asked::default()
        }
    }

    /// A short description of the next response.
    fn next(played: &mut Played, scenario: &Scenario, asked: &Asked) -> String {
        let Some((nth, response)) = played.next(scenario, asked) else { return "nothing".to_owned() };
        let pieces = response.pieces.iter().map(|piece| match piece {
            Piece::Text(text) | Piece::Refusal(text) => text.clone(),
            Piece::Call(call) => format!("{}()", call.name),
        });
        format!("{nth}: {} {:?}", pieces.collect::<Vec<_>>().join("+"), response.end)
    }

    #[test]
    fn a_reply_goes_on_with_the_results_of_its_calls() {
        let scenario = Scenario::new()
            .reply(Reply::to("fix").text("first").shell("ls").shell("cat").text("done").text("all"));
        let mut played = Played::default();
        assert_eq!(next(&mut played, &scenario, &asked("fix it", 0)), "0: first+Bash() Said(Tool)");
        // A repeated request gets the same response.
        assert_eq!(next(&mut played, &scenario, &asked("fix it", 0)), "0: first+Bash() Said(Tool)");
        assert_eq!(next(&mut played, &scenario, &asked("fix it", 1)), "0: Bash() Said(Tool)");
        assert_eq!(next(&mut played, &scenario, &asked("fix it", 2)), "0: done+all Said(End)");
        assert_eq!(next(&mut played, &scenario, &asked("fix it", 2)), "nothing");
    }

    #[test]
    fn a_reply_is_used_up_and_the_next_one_answers() {
        let scenario = Scenario::new()
            .reply(Reply::to("fix").status(529).times(2))
            .reply(Reply::to("other").text("never"))
            .reply(Reply::any().text("a").for_ever());
        let mut played = Played::default();
        let mut tell = || next(&mut played, &scenario, &asked("fix it", 0));
        assert!(tell().starts_with("0:"));
        assert!(tell().starts_with("0:"));
        assert_eq!(tell(), "2: a Said(End)");
        assert_eq!(tell(), "2: a Said(End)");
    }

    #[test]
    fn a_client_without_tools_gets_what_is_said() {
        let scenario = Scenario::new().reply(Reply::any().shell("ls").text("so").json(json!({"a": 1})));
        let plain = Asked { user: "x".to_owned(), ..Asked::default() };
        assert_eq!(next(&mut Played::default(), &scenario, &plain), r#"0: so+{"a":1} Said(End)"#);
        let constrained = Asked { constrained: true, ..plain };
        assert_eq!(next(&mut Played::default(), &scenario, &constrained), r#"0: {"a":1} Said(End)"#);
    }
}
