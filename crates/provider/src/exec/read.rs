//! Reads the lines of a program that is an agent.

use cuegate_ask::{FaultClass, Usage};

use super::wire::{AnswerLine, EventLine};
use crate::{Activity, Answer, AnswerReader, CutUsage, Fault, Prices, ProgramEnd, program::estimate_tokens};

/// How much of standard error a message quotes, in characters.
const QUOTED_MAX: usize = 400;

/// The lines of one ask.
pub(crate) struct ExecReader {
    name: String,
    model: Option<String>,
    prices: Prices,
    can_edit: bool,
    /// The length of the prompt, in bytes.
    prompt: u64,
    usage: Usage,
    has_usage: bool,
    has_begun: bool,
    answer: Option<AnswerLine>,
    fault: Option<Fault>,
    /// The first line that is none of the format, with the reason.
    unread: Option<String>,
}

impl ExecReader {
    pub(crate) fn new(
        (name, model): (&str, Option<&str>),
        prompt: &str,
        prices: Prices,
        can_edit: bool,
    ) -> ExecReader {
        ExecReader {
            name: name.to_owned(),
            model: model.map(str::to_owned),
            prices,
            can_edit,
            prompt: prompt.len() as u64,
            usage: Usage::default(),
            has_usage: false,
            has_begun: false,
            answer: None,
            fault: None,
            unread: None,
        }
    }

    fn add_usage(&mut self, usage: &Usage) {
        self.has_usage = true;
        self.usage.input_tokens = self.usage.input_tokens.saturating_add(usage.input_tokens);
        self.usage.cached_input_tokens =
            self.usage.cached_input_tokens.saturating_add(usage.cached_input_tokens);
        self.usage.output_tokens = self.usage.output_tokens.saturating_add(usage.output_tokens);
        self.usage.is_estimated |= usage.is_estimated;
        if let Some(cost) = usage.cost_usd.filter(|cost| cost.is_finite() && *cost >= 0.0) {
            self.usage.cost_usd = Some(self.usage.cost_usd.unwrap_or(0.0) + cost);
        }
    }

    /// What an answered ask used, of which the program reported nothing.
    fn estimated_usage(&self, answer: &AnswerLine) -> Usage {
        let output = answer.output.as_ref().map_or(0, |output| output.to_string().len());
        Usage {
            input_tokens: estimate_tokens(self.prompt),
            output_tokens: estimate_tokens((output + answer.text.len()) as u64),
            is_estimated: true,
            ..Usage::default()
        }
    }

    /// The usage so far, with its price if the program reports none.
    fn priced_usage(&self, model: Option<&str>) -> Usage {
        let price = || self.prices.cost(model, &self.usage);
        Usage { cost_usd: self.usage.cost_usd.or_else(price), ..self.usage }
    }

    fn fail(&self, class: FaultClass, message: String) -> Fault {
        Fault {
            usage: self.priced_usage(self.model.as_deref()),
            usage_unknown: self.has_begun && !self.has_usage,
            ..Fault::new(class, message)
        }
    }
}

impl AnswerReader for ExecReader {
    fn line(&mut self, line: &[u8]) -> Vec<Activity> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Vec::new();
        }
        let event: EventLine = match serde_json::from_slice(line) {
            Ok(event) => event,
            Err(error) => {
                self.has_begun = true;
                self.unread.get_or_insert_with(|| error.to_string());
                return Vec::new();
            }
        };
        self.has_begun = true;
        match event {
            EventLine::Text { text } => vec![Activity::Text { text }],
            EventLine::Tool { id, name, target } => vec![Activity::Tool { id, name, target }],
            EventLine::ToolEnded { id, failed, output } => vec![Activity::ToolEnded { id, failed, output }],
            EventLine::Denied { id, name, target } => vec![Activity::Denied { id, name, target }],
            EventLine::Retry { reason } => vec![Activity::Retry { reason }],
            EventLine::Usage(usage) => {
                self.add_usage(&usage);
                vec![Activity::Usage(usage)]
            }
            EventLine::Answer(answer) => {
                self.answer = Some(*answer);
                Vec::new()
            }
            EventLine::Error { class, message, retry_after_ms } => {
                let fault = Fault { resets_in_ms: retry_after_ms, ..Fault::new(class, message) };
                self.fault = Some(fault);
                Vec::new()
            }
        }
    }

    fn cut_usage(&self) -> CutUsage {
        // It was at work, and only it knows for what.
        CutUsage { usage: self.priced_usage(self.model.as_deref()), unknown: !self.has_usage }
    }

    fn end(mut self: Box<Self>, ended: ProgramEnd, stderr: &[u8]) -> Result<Answer, Fault> {
        if let Some(fault) = self.fault.clone() {
            let Fault { class, message, resets_in_ms, .. } = fault;
            return Err(Fault { resets_in_ms, ..self.fail(class, message) });
        }
        let said = String::from_utf8_lossy(stderr).trim().chars().take(QUOTED_MAX).collect::<String>();
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        let name = &self.name;
        match ended {
            ProgramEnd::Exit(0) => {}
            ProgramEnd::NotStarted(why) => {
                return Err(
                    self.fail(FaultClass::MissingProgram, format!("`{name}` could not be started: {why}"))
                );
            }
            ProgramEnd::TimedOut => {
                let fault = self.fail(FaultClass::Timeout, format!("`{name}` took too long{said}"));
                return Err(Fault { usage_unknown: !self.has_usage, ..fault });
            }
            ProgramEnd::TooMuchOutput => {
                return Err(self.fail(FaultClass::Malformed, format!("`{name}` printed too much")));
            }
            ProgramEnd::Exit(code) => {
                return Err(self.fail(FaultClass::Crashed, format!("`{name}` exited with {code}{said}")));
            }
            ProgramEnd::Signal(signal) => {
                let why = format!("`{name}` was ended by signal {signal}{said}");
                let fault = self.fail(FaultClass::Crashed, why);
                return Err(Fault { usage_unknown: !self.has_usage, ..fault });
            }
        }
        let Some(answer) = self.answer.take() else {
            let why = self.unread.as_ref().map_or_else(
                || "printed no answer".to_owned(),
                |why| format!("printed no answer, and a line that is no event: {why}"),
            );
            return Err(self.fail(FaultClass::Malformed, format!("`{name}` {why}{said}")));
        };
        if !self.has_usage {
            self.usage = self.estimated_usage(&answer);
        }
        let model = answer.model.clone().or_else(|| self.model.clone());
        Ok(Answer {
            output: answer.output.clone(),
            text: answer.text.clone(),
            usage: self.priced_usage(model.as_deref()),
            session: answer.session.clone().filter(|id| !id.is_empty()),
            totals: answer.totals,
            handshake: answer.handshake.clone(),
            model,
            edited: self.can_edit,
            blocked: answer.blocked.clone(),
            asks_person: answer.question.clone(),
            receipt: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str], ended: ProgramEnd, stderr: &str) -> Result<Answer, Fault> {
        let mut reader = Box::new(ExecReader::new(("mine", Some("m")), "Do it", Prices::default(), true));
        for line in lines {
            reader.line(line.as_bytes());
        }
        reader.end(ended, stderr.as_bytes())
    }

    #[test]
    fn the_last_answer_counts_with_the_sum_of_the_usage() {
        let lines = [
            r#"{"event": "text", "text": "I look."}"#,
            r#"{"event": "usage", "input_tokens": 10, "output_tokens": 2, "cost_usd": 0.5}"#,
            "",
            r#"{"event": "usage", "input_tokens": 5, "output_tokens": 1, "cost_usd": 0.25}"#,
            r#"{"event": "answer", "text": "Done.", "output": {"next": "x"}, "session": "s-1"}"#,
        ];
        let answer = read(&lines, ProgramEnd::Exit(0), "").unwrap();
        assert_eq!((answer.text.as_str(), answer.session.as_deref()), ("Done.", Some("s-1")));
        assert_eq!((answer.usage.input_tokens, answer.usage.cost_usd), (15, Some(0.75)));
        assert_eq!(answer.model.as_deref(), Some("m"));
    }

    #[test]
    fn without_an_answer_there_is_a_reason() {
        let fault = |lines: &[&str], ended: ProgramEnd| read(lines, ended, "boom").unwrap_err();
        let limit =
            r#"{"event": "error", "class": "rate_limited", "message": "later", "retry_after_ms": 1500}"#;
        let limited = fault(&[limit], ProgramEnd::Exit(1));
        assert_eq!((limited.class, limited.resets_in_ms), (FaultClass::RateLimited, Some(1500)));
        assert!(limited.usage_unknown, "it has begun, and said nothing about its usage");
        let crashed = fault(&[], ProgramEnd::Exit(3));
        assert_eq!((crashed.class, crashed.usage_unknown), (FaultClass::Crashed, false));
        assert_eq!(crashed.message, "`mine` exited with 3: boom");
        let silent = fault(&[], ProgramEnd::Exit(0));
        assert_eq!(silent.message, "`mine` printed no answer: boom");
        let garbled = fault(&["hello"], ProgramEnd::Exit(0));
        assert!(garbled.message.contains("a line that is no event"), "{}", garbled.message);
        let late = fault(&[], ProgramEnd::TimedOut);
        assert!(late.usage_unknown, "it was at work");
        let killed = fault(&[r#"{"event": "answer", "text": "x"}"#], ProgramEnd::Signal(9));
        assert_eq!(killed.class, FaultClass::Crashed, "an answer of a killed program may be a part of it");
    }
}
