//! Parses the output of the child process into an answer or a fault.

use std::path::PathBuf;

use super::{
    body::OutputLimit,
    fault,
    fault::{ServiceContext, shorten_text},
    meter::Meter,
    wire::{OpenAiLine, RequestTrouble},
};
use crate::{Activity, Answer, AnswerReader, CutUsage, Fault, FaultClass, ProgramEnd};

/// The number of bytes of text after which an activity is reported without a line end.
const TELL_MIN: usize = 200;

/// Parses the lines of one ask.
pub(super) struct OpenAiReader {
    program: PathBuf,
    service: ServiceContext,
    bound: Option<OutputLimit>,
    /// Whether the text is the structured answer.
    structured: bool,
    meter: Meter,
    text: String,
    /// How many bytes of the text were reported.
    told: usize,
    refusal: String,
    tools: Vec<String>,
    finish: Option<String>,
    model: Option<String>,
    receipt: Option<String>,
    result: Option<Result<(), RequestTrouble>>,
    broken: Option<String>,
}

impl OpenAiReader {
    pub fn new(
        program: PathBuf,
        service: ServiceContext,
        bound: Option<OutputLimit>,
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

    fn read(&mut self, line: OpenAiLine) -> Vec<Activity> {
        match line {
            OpenAiLine::Head { id, model } => {
                if let Some(model) = &model {
                    self.meter.called(model);
                }
                (self.receipt, self.model) = (id, model);
                return self.meter.began().into_iter().collect();
            }
            OpenAiLine::Text(text) => {
                self.text.push_str(&text);
                let usage = self.meter.wrote(text.len() as u64);
                return self.tell(false).into_iter().chain(usage).collect();
            }
            OpenAiLine::Thought(bytes) => return self.meter.wrote(bytes).into_iter().collect(),
            OpenAiLine::Refusal(text) => {
                self.refusal.push_str(&text);
                return self.meter.wrote(text.len() as u64).into_iter().collect();
            }
            OpenAiLine::Tool(name) => self.tools.push(name),
            OpenAiLine::Used(used) => return self.meter.used(used).into_iter().collect(),
            OpenAiLine::Finish(reason) => {
                self.finish = Some(reason);
                return self.tell(true).into_iter().collect();
            }
            OpenAiLine::Done => self.result = Some(Ok(())),
            OpenAiLine::Failed(trouble) => self.result = Some(Err(trouble)),
        }
        Vec::new()
    }

    /// The text since the last activity: whole lines, a long piece, or the rest. Single tokens are not worth reporting.
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

    /// The result. A killed program has no answer, whatever it printed before.
    fn outcome(&mut self, ended: &ProgramEnd, stderr: &[u8]) -> Result<Answer, Fault> {
        let stderr = shorten_text(&String::from_utf8_lossy(stderr));
        let quoted = if stderr.is_empty() { String::new() } else { format!("; stderr: {stderr}") };
        let ours = |class, message: String| Err(Fault::new(class, format!("{message}{quoted}")));
        match (ended, self.broken.take(), self.result.take()) {
            (ProgramEnd::TimedOut, ..) => {
                ours(FaultClass::Timeout, format!("{} timed out", self.service.base))
            }
            (ProgramEnd::TooMuchOutput, ..) => {
                ours(FaultClass::Malformed, format!("{} exceeded the output limit", self.service.base))
            }
            (ProgramEnd::Signal(signal), ..) => {
                ours(FaultClass::Crashed, format!("the request process was killed by signal {signal}"))
            }
            (ProgramEnd::NotStarted(why), ..) => ours(
                FaultClass::MissingProgram,
                format!("failed to start `{}`: {why}", self.program.display()),
            ),
            (ProgramEnd::Exit(0), Some(line), _) => {
                ours(FaultClass::Malformed, format!("the request process printed invalid output: `{line}`"))
            }
            (ProgramEnd::Exit(0), None, Some(Ok(()))) => self.answer(),
            (ProgramEnd::Exit(0), None, Some(Err(trouble))) => {
                Err(fault::fault_of_trouble(&trouble, &self.service))
            }
            (ProgramEnd::Exit(0), None, None) => {
                ours(FaultClass::Malformed, "the request process exited without a result".to_owned())
            }
            (ProgramEnd::Exit(code), ..) => {
                ours(FaultClass::Crashed, format!("the request process exited with code {code}"))
            }
        }
    }

    /// The answer, if it is complete. A partial answer is a fault, because it could pass for a complete one where only
    /// text is wanted.
    fn answer(&mut self) -> Result<Answer, Fault> {
        let base = &self.service.base;
        let fault = |class, message: String| Err(Fault::new(class, message));
        let refused =
            || fault(FaultClass::Refused, format!("{base} refused: {}", shorten_text(&self.refusal)));
        if let Some(tool) = self.tools.first() {
            let message =
                format!("the model of {base} called the tool `{}`, but it has no tools", shorten_text(tool));
            return fault(FaultClass::Malformed, message);
        }
        match self.finish.as_deref() {
            Some("content_filter") if self.refusal.is_empty() => {
                return fault(FaultClass::Refused, format!("a content filter of {base} stopped the answer"));
            }
            Some("content_filter") => return refused(),
            Some("length") => return Err(self.too_long()),
            // Some servers of local models report one of the last three.
            Some("stop" | "eos_token" | "stop_sequence" | "end_turn") => {}
            Some(reason) => {
                let message =
                    format!("the answer of {base} has an unknown finish reason: `{}`", shorten_text(reason));
                return fault(FaultClass::Malformed, message);
            }
            None => {
                return fault(FaultClass::Malformed, format!("the answer of {base} has no finish reason"));
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

    /// The fault of an answer that reached a limit.
    fn too_long(&self) -> Fault {
        let (base, model) = (&self.service.base, &self.service.model);
        let written = self.meter.written();
        match self.bound.filter(|bound| written.is_none_or(|written| written >= bound.tokens)) {
            Some(OutputLimit { tokens, cap: Some(limit) }) => {
                let message = format!(
                    "the answer reached the limit of {tokens} tokens that the limit of the call leaves"
                );
                Fault { limit: Some(limit), ..Fault::new(FaultClass::OverCap, message) }
            }
            Some(OutputLimit { tokens, cap: None }) => Fault::new(
                FaultClass::ContextOverflow,
                format!("the answer is longer than {tokens} tokens: raise `max_output_tokens`"),
            ),
            None => Fault::new(
                FaultClass::ContextOverflow,
                format!(
                    "the answer of {base} was truncated: it reached the context window of `{model}` or of the server"
                ),
            ),
        }
    }
}

impl AnswerReader for OpenAiReader {
    fn line(&mut self, line: &[u8]) -> Vec<Activity> {
        match serde_json::from_slice(line) {
            // The result is the last line. Output after it was not written by our program.
            Ok(_) if self.result.is_some() => {
                self.broken = Some(shorten_text(&String::from_utf8_lossy(line)))
            }
            Ok(line) => return self.read(line),
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(_) => self.broken = Some(shorten_text(&String::from_utf8_lossy(line))),
        }
        Vec::new()
    }

    fn cut_usage(&self) -> CutUsage {
        CutUsage { usage: self.meter.total(), unknown: false }
    }

    fn end(mut self: Box<Self>, ended: ProgramEnd, stderr: &[u8]) -> Result<Answer, Fault> {
        let mut outcome = self.outcome(&ended, stderr);
        if let Err(fault) = &mut outcome {
            fault.usage = self.meter.total();
            fault.receipt = self.receipt.take();
        }
        outcome
    }
}

#[cfg(test)]
mod tests;
