//! Reads what the program prints, and says what came of the ask.

use std::path::PathBuf;

use super::{
    body::Bound,
    fault,
    fault::{Service, brief},
    meter::Meter,
    wire::{Line, Trouble},
};
use crate::{Activity, Answer, AnswerReader, Ended, Fault, FaultClass};

/// How many bytes of text are told at once when no line ends before.
const TELL_MIN: usize = 200;

/// Reads the lines of one ask.
pub(super) struct OpenAiReader {
    program: PathBuf,
    service: Service,
    bound: Option<Bound>,
    /// Whether the text is to be the structured answer.
    structured: bool,
    meter: Meter,
    text: String,
    /// How much of the text was told.
    told: usize,
    refusal: String,
    tools: Vec<String>,
    finish: Option<String>,
    model: Option<String>,
    receipt: Option<String>,
    result: Option<Result<(), Trouble>>,
    broken: Option<String>,
}

impl OpenAiReader {
    pub fn new(
        program: PathBuf,
        service: Service,
        bound: Option<Bound>,
        structured: bool,
        meter: Meter,
    ) -> OpenAiReader {
        OpenAiReader {
            program,
            service,
            bound,
            structured,
            meter,
            text: String::new(),
            told: 0,
            refusal: String::new(),
            tools: Vec::new(),
            finish: None,
            model: None,
            receipt: None,
            result: None,
            broken: None,
        }
    }

    fn read(&mut self, line: Line) -> Vec<Activity> {
        match line {
            Line::Head { id, model } => {
                if let Some(model) = &model {
                    self.meter.called(model);
                }
                (self.receipt, self.model) = (id, model);
                return self.meter.began().into_iter().collect();
            }
            Line::Text(text) => {
                self.text.push_str(&text);
                let usage = self.meter.wrote(text.len() as u64);
                return self.tell(false).into_iter().chain(usage).collect();
            }
            Line::Thought(bytes) => return self.meter.wrote(bytes).into_iter().collect(),
            Line::Refusal(text) => {
                self.refusal.push_str(&text);
                return self.meter.wrote(text.len() as u64).into_iter().collect();
            }
            Line::Tool(name) => self.tools.push(name),
            Line::Used(used) => return self.meter.used(used).into_iter().collect(),
            Line::Finish(reason) => {
                self.finish = Some(reason);
                return self.tell(true).into_iter().collect();
            }
            Line::Done => self.result = Some(Ok(())),
            Line::Failed(trouble) => self.result = Some(Err(trouble)),
        }
        Vec::new()
    }

    /// What was said since the last time: whole lines, or much, or all. A token at a time is nothing for eyes.
    fn tell(&mut self, all: bool) -> Option<Activity> {
        let new = &self.text[self.told..];
        let end = match new.rfind('\n') {
            _ if all || new.len() >= TELL_MIN => new.len(),
            Some(line) => line + 1,
            None => return None,
        };
        self.told += end;
        let text = new[..end].trim_end().to_owned();
        (!text.is_empty()).then_some(Activity::Text { text })
    }

    /// What came of it. A program that was ended did not answer, whatever it had printed by then.
    fn outcome(&mut self, ended: &Ended, stderr: &[u8]) -> Result<Answer, Fault> {
        let stderr = brief(&String::from_utf8_lossy(stderr));
        let said = if stderr.is_empty() { String::new() } else { format!("; it said: {stderr}") };
        let ours = |class, message: String| Err(Fault::new(class, format!("{message}{said}")));
        match (ended, self.broken.take(), self.result.take()) {
            (Ended::TimedOut, ..) => {
                ours(FaultClass::Timeout, format!("{} took longer than it may", self.service.base))
            }
            (Ended::TooMuchOutput, ..) => {
                ours(FaultClass::Malformed, format!("{} wrote more than it may", self.service.base))
            }
            (Ended::Signal(signal), ..) => {
                ours(FaultClass::Crashed, format!("signal {signal} ended the program that asks"))
            }
            (Ended::NotStarted(why), ..) => {
                ours(FaultClass::MissingProgram, format!("`{}` did not start: {why}", self.program.display()))
            }
            (Ended::Exit(0), Some(line), _) => ours(
                FaultClass::Malformed,
                format!("the program that asks printed what cannot be read: `{line}`"),
            ),
            (Ended::Exit(0), None, Some(Ok(()))) => self.answer(),
            (Ended::Exit(0), None, Some(Err(trouble))) => Err(fault::fault(&trouble, &self.service)),
            (Ended::Exit(0), None, None) => {
                ours(FaultClass::Malformed, "the program that asks ended without a result".to_owned())
            }
            (Ended::Exit(code), ..) => {
                ours(FaultClass::Crashed, format!("the program that asks exited with {code}"))
            }
        }
    }

    /// The answer, when what was said is one. A part of one is none: it could pass for a whole one where only text is
    /// wanted.
    fn answer(&mut self) -> Result<Answer, Fault> {
        let base = &self.service.base;
        let fault = |class, message: String| Err(Fault::new(class, message));
        let refused = || fault(FaultClass::Refused, format!("{base} refuses: {}", brief(&self.refusal)));
        if let Some(tool) = self.tools.first() {
            let message = format!("the model of {base} called the tool `{}`, and it has none", brief(tool));
            return fault(FaultClass::Malformed, message);
        }
        match self.finish.as_deref() {
            Some("content_filter") if self.refusal.is_empty() => {
                return fault(FaultClass::Refused, format!("a filter of {base} stopped the answer"));
            }
            Some("content_filter") => return refused(),
            Some("length") => return Err(self.too_long()),
            // The second to fourth are what some servers of local models say instead.
            Some("stop" | "eos_token" | "stop_sequence" | "end_turn") => {}
            Some(reason) => {
                let message =
                    format!("the answer of {base} ended for an unknown reason: `{}`", brief(reason));
                return fault(FaultClass::Malformed, message);
            }
            None => {
                return fault(
                    FaultClass::Malformed,
                    format!("the answer of {base} does not say that it is whole"),
                );
            }
        }
        if !self.refusal.is_empty() {
            return refused();
        }
        if self.text.trim().is_empty() {
            return fault(FaultClass::Malformed, format!("the answer of {base} is empty"));
        }
        let output = if self.structured { serde_json::from_str(&self.text).ok() } else { None };
        Ok(Answer {
            output,
            text: std::mem::take(&mut self.text),
            usage: self.meter.total(),
            model: self.model.take().or_else(|| Some(self.service.model.clone())),
            receipt: self.receipt.take(),
            ..Answer::default()
        })
    }

    /// It stopped because it had written so much.
    fn too_long(&self) -> Fault {
        let (base, model) = (&self.service.base, &self.service.model);
        let written = self.meter.written();
        match self.bound.filter(|bound| written.is_none_or(|written| written >= bound.tokens)) {
            Some(Bound { tokens, is_cap: true }) => Fault::new(
                FaultClass::OverCap,
                format!("the answer reached the {tokens} tokens that the cap of the ask leaves for it"),
            ),
            Some(Bound { tokens, is_cap: false }) => Fault::new(
                FaultClass::ContextOverflow,
                format!("the answer is longer than {tokens} tokens: raise `max_output_tokens`"),
            ),
            None => Fault::new(
                FaultClass::ContextOverflow,
                format!(
                    "the answer was cut off by a limit of {base}: `{model}` cannot read and write more at once, or the \
                     server was started with a smaller context"
                ),
            ),
        }
    }
}

impl AnswerReader for OpenAiReader {
    fn line(&mut self, line: &[u8]) -> Vec<Activity> {
        match serde_json::from_slice(line) {
            // The result is the last line: what follows it was not written by our program.
            Ok(_) if self.result.is_some() => self.broken = Some(brief(&String::from_utf8_lossy(line))),
            Ok(line) => return self.read(line),
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(_) => self.broken = Some(brief(&String::from_utf8_lossy(line))),
        }
        Vec::new()
    }

    fn end(mut self: Box<Self>, ended: Ended, stderr: &[u8]) -> Result<Answer, Fault> {
        let mut outcome = self.outcome(&ended, stderr);
        if let Err(fault) = &mut outcome {
            fault.usage = self.meter.total();
            fault.usage_unknown = self.meter.is_unknown();
            fault.receipt = self.receipt.take();
        }
        outcome
    }
}

#[cfg(test)]
mod tests;
