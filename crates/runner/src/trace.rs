//! The ids of a run in traces, by the W3C's Trace Context. They are made of the run, so a resumed run continues its trace,
//! and an agent knows its span before that is sent.

use cuegate_engine::CommandId;
use cuegate_flow::model::BlobRef;
use cuegate_journal::RunId;

/// The trace of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    id: String,
}

impl Trace {
    /// The trace of a run that was started at this time, in milliseconds since 1970: ids of runs are short.
    pub fn new(run: &RunId, started_ms: i64) -> Trace {
        Trace { id: hex_digest_of_text(&format!("run {run} {started_ms}"), 32) }
    }

    /// The id of the trace: 32 digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The id of a span by its name in the run: 16 digits.
    pub fn span(&self, name: &str) -> String {
        hex_digest_of_text(&format!("{} {name}", self.id), 16)
    }

    /// The id of the span of a command.
    pub fn command(&self, command: CommandId) -> String {
        self.span(&format!("command {command}"))
    }

    /// `TRACEPARENT` for the program of a command.
    pub fn parent(&self, command: CommandId) -> String {
        format!("00-{}-{}-01", self.id, self.command(command))
    }
}

fn hex_digest_of_text(text: &str, digits: usize) -> String {
    let digest = BlobRef::for_bytes(text.as_bytes()).digest;
    let hex: String = digest.chars().filter(char::is_ascii_hexdigit).collect();
    // The prefix of the digest may have such letters as well.
    hex[hex.len() - 64..][..digits].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_the_run_alone() {
        let run: RunId = "abcdefgh".parse().unwrap();
        let trace = Trace::new(&run, 1);
        assert_eq!(trace, Trace::new(&run, 1));
        assert_ne!(trace, Trace::new(&run, 2));
        let parent = trace.parent(CommandId::new(3, Some(1)));
        let parts: Vec<&str> = parent.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [2, 32, 16, 2]);
        assert_eq!(parts[2], trace.command(CommandId::new(3, Some(1))));
        assert_ne!(trace.command(CommandId::new(3, None)), trace.command(CommandId::new(3, Some(0))));
    }
}
