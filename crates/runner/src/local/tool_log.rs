//! Collects the tools that an agent uses in an ask, for the journal.

use std::{collections::HashMap, time::Instant};

use cuegate_engine::{ToolCall, ToolResult, Tools};
use cuegate_flow::model::BlobRef;
use cuegate_provider::Activity;

/// The number of uses that are kept for one ask.
const CALLS_MAX: usize = 1_000;
/// The length in bytes up to which an output is kept.
const OUTPUT_MAX: usize = 16 << 10;

/// The tools used in one ask.
#[derive(Default)]
pub(super) struct ToolLog {
    /// The start of the ask; `None` when its output is read after a crash.
    started: Option<Instant>,
    tools: Tools,
    /// The index of each use by its id.
    by_id: HashMap<String, usize>,
    outputs: Vec<Vec<u8>>,
}

impl ToolLog {
    pub(super) fn starting_now() -> ToolLog {
        ToolLog { started: Some(Instant::now()), ..ToolLog::default() }
    }

    pub(super) fn add(&mut self, activity: &Activity) {
        match activity {
            Activity::Tool { id, name, target } => self.start(id, name, target, ToolResult::Unknown),
            Activity::ToolEnded { id, failed, output } => self.end(id, *failed, output),
            Activity::Denied { id, name, target } => match self.by_id.get(id).filter(|_| !id.is_empty()) {
                Some(&index) => {
                    let call = &mut self.tools.calls[index];
                    call.result = ToolResult::Denied;
                    if call.target.is_empty() {
                        call.target.clone_from(target);
                    }
                }
                None => self.start(id, name, target, ToolResult::Denied),
            },
            Activity::Text { .. } | Activity::Usage(_) | Activity::Retry { .. } => {}
        }
    }

    fn start(&mut self, id: &str, name: &str, target: &str, result: ToolResult) {
        // Denials are few and explain failures: they are kept in any case.
        if self.tools.calls.len() >= CALLS_MAX && result != ToolResult::Denied {
            self.tools.more += 1;
            return;
        }
        self.by_id.insert(id.to_owned(), self.tools.calls.len());
        self.tools.calls.push(ToolCall {
            tool: name.to_owned(),
            target: target.to_owned(),
            result,
            at_ms: self.now_ms(),
            duration_ms: None,
            output: None,
            output_bytes: None,
        });
    }

    fn end(&mut self, id: &str, failed: bool, output: &str) {
        let now = self.now_ms();
        let Some(call) = self.by_id.get(id).and_then(|&index| self.tools.calls.get_mut(index)) else {
            return;
        };
        if call.result != ToolResult::Denied {
            call.result = if failed { ToolResult::Failed } else { ToolResult::Ok };
        }
        call.duration_ms = now.zip(call.at_ms).map(|(now, then)| now.saturating_sub(then));
        if !output.is_empty() {
            let kept = &output.as_bytes()[..output.floor_char_boundary(OUTPUT_MAX)];
            call.output = Some(BlobRef::for_bytes(kept));
            call.output_bytes = (kept.len() < output.len()).then_some(output.len() as u64);
            self.outputs.push(kept.to_owned());
        }
    }

    fn now_ms(&self) -> Option<u64> {
        self.started.map(|started| u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// The uses, and the outputs that they name by digest.
    pub(super) fn finish(self) -> (Tools, Vec<Vec<u8>>) {
        (self.tools, self.outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(id: &str, target: &str) -> Activity {
        Activity::Tool { id: id.to_owned(), name: "Bash".to_owned(), target: target.to_owned() }
    }

    fn ended(id: &str, failed: bool, output: &str) -> Activity {
        Activity::ToolEnded { id: id.to_owned(), failed, output: output.to_owned() }
    }

    #[test]
    fn results_belong_to_their_uses() {
        let mut log = ToolLog::starting_now();
        let denied = |id: &str| Activity::Denied {
            id: id.to_owned(),
            name: "Write".to_owned(),
            target: "/etc/x".to_owned(),
        };
        let long = "é".repeat(OUTPUT_MAX);
        for activity in [
            tool("1", "ls"),
            tool("2", "false"),
            tool("3", "rm x"),
            tool("4", "sleep 9"),
            ended("2", true, "exit 1"),
            ended("1", false, &long),
            ended("3", true, "not permitted"),
            denied("3"),
            denied("5"),
            ended("unknown", false, ""),
        ] {
            log.add(&activity);
        }
        let (tools, outputs) = log.finish();
        let results: Vec<ToolResult> = tools.calls.iter().map(|call| call.result).collect();
        use ToolResult::{Denied, Failed, Ok, Unknown};
        assert_eq!(results, [Ok, Failed, Denied, Unknown, Denied]);
        assert_eq!(tools.calls[0].output_bytes, Some(2 * OUTPUT_MAX as u64));
        assert!(tools.calls[0].duration_ms.is_some() && tools.calls[3].duration_ms.is_none());
        assert_eq!(tools.calls[4].target, "/etc/x");
        for call in &tools.calls {
            let kept = call.output.as_ref();
            assert!(kept.is_none_or(|blob| outputs.iter().any(|text| BlobRef::for_bytes(text) == *blob)));
        }
    }

    #[test]
    fn only_the_first_uses_and_all_denials_are_kept() {
        let mut log = ToolLog::default();
        for _ in 0..CALLS_MAX + 7 {
            log.add(&tool("", "ls"));
        }
        log.add(&Activity::Denied { id: String::new(), name: "Write".to_owned(), target: String::new() });
        let (tools, _) = log.finish();
        assert_eq!((tools.calls.len(), tools.more), (CALLS_MAX + 1, 7));
        assert_eq!(tools.calls[0].at_ms, None);
    }
}
