//! Redacts the secrets of a program's environment from its output.

use serde_json::Value;

use crate::{
    Activity, Answer, AnswerReader, CutUsage, Fault, Inspection, ProgramEnd,
    redact::{Redactor, environment_secrets},
};

/// Wraps a reader and redacts secrets: in its input, because a quoted or truncated secret is no longer found, and in
/// its output, because text in an answer may contain JSON.
pub(crate) struct RedactingReader<R> {
    reader: R,
    redactor: Redactor,
}

impl<R: AnswerReader> RedactingReader<R> {
    pub fn new(reader: R, redactor: Redactor) -> RedactingReader<R> {
        RedactingReader { reader, redactor }
    }

    /// The redacted line; `None` if it contains no secret.
    fn clean_line(&self, line: &[u8]) -> Option<Vec<u8>> {
        if self.redactor.is_idle() {
            return None;
        }
        let Ok(mut event) = serde_json::from_slice::<Value>(line) else {
            return Some(self.clean_bytes(line));
        };
        self.redactor.clean_value(&mut event, is_protocol).then(|| event.to_string().into_bytes())
    }

    fn clean_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        if self.redactor.is_idle() {
            return bytes.to_owned();
        }
        self.redactor.clean(&String::from_utf8_lossy(bytes)).into_bytes()
    }

    fn clean_activity(&self, mut activity: Activity) -> Activity {
        match &mut activity {
            Activity::Text { text } => self.clean(text),
            Activity::ToolEnded { output, .. } => self.clean(output),
            Activity::Tool { name, target, .. } | Activity::Denied { name, target, .. } => {
                self.clean(name);
                self.clean(target);
            }
            Activity::Retry { reason } => self.clean(reason),
            Activity::Usage(_) => {}
        }
        activity
    }

    fn clean(&self, text: &mut String) {
        self.redactor.clean_in_place(text);
    }
}

impl AnswerReader for Box<dyn AnswerReader> {
    fn line(&mut self, line: &[u8]) -> Vec<Activity> {
        (**self).line(line)
    }

    fn is_stuck(&self) -> bool {
        (**self).is_stuck()
    }

    fn cut_usage(&self) -> CutUsage {
        (**self).cut_usage()
    }

    fn end(self: Box<Self>, ended: ProgramEnd, stderr: &[u8]) -> Result<Answer, Fault> {
        (*self).end(ended, stderr)
    }
}

/// Wraps the reader of any provider, so that no secret of the environment gets into the journal.
pub fn wrap_redacting_reader(reader: Box<dyn AnswerReader>) -> Box<dyn AnswerReader> {
    match environment_secrets() {
        secrets if secrets.is_idle() => reader,
        secrets => Box::new(RedactingReader::new(reader, secrets.clone())),
    }
}

/// Field names that identify events. They are not redacted in the input, because a key such as `result` must not make
/// the output unreadable. The output is redacted in any case.
fn is_protocol(name: &str) -> bool {
    matches!(name, "type" | "subtype")
}

impl<R: AnswerReader> AnswerReader for RedactingReader<R> {
    fn line(&mut self, line: &[u8]) -> Vec<Activity> {
        let clean = self.clean_line(line);
        let activities = self.reader.line(clean.as_deref().unwrap_or(line));
        activities.into_iter().map(|activity| self.clean_activity(activity)).collect()
    }

    fn is_stuck(&self) -> bool {
        self.reader.is_stuck()
    }

    fn cut_usage(&self) -> CutUsage {
        self.reader.cut_usage()
    }

    fn end(self: Box<Self>, ended: ProgramEnd, stderr: &[u8]) -> Result<Answer, Fault> {
        let stderr = self.clean_bytes(stderr);
        let RedactingReader { reader, redactor } = *self;
        match Box::new(reader).end(ended, &stderr) {
            Ok(mut answer) => {
                redactor.clean_in_place(&mut answer.text);
                for text in [&mut answer.blocked, &mut answer.asks_person].into_iter().flatten() {
                    redactor.clean_in_place(text);
                }
                if let Some(output) = &mut answer.output {
                    redactor.clean_value(output, |_| false);
                }
                Ok(answer)
            }
            Err(mut fault) => {
                redactor.clean_in_place(&mut fault.message);
                Err(fault)
            }
        }
    }
}

/// Redacts the problems of an inspection, which quote the program's output.
pub(crate) fn redact_inspection(mut inspection: Inspection, redactor: &Redactor) -> Inspection {
    for problem in &mut inspection.problems {
        redactor.clean_in_place(&mut problem.what);
        redactor.clean_in_place(&mut problem.hint);
    }
    inspection
}
