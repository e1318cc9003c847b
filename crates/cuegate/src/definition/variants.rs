//! Checks a workflow both with and without a person: rules for persons only apply when somebody can answer.

use std::{panic::resume_unwind, thread};

use cuegate_engine::RecordedLoadOptions;
use cuegate_flow::diagnostics::{Diagnostic, Sources, sort_diagnostics};
use cuegate_formats::Files;

use cuegate_formats::format_of;

use super::{CompiledDefinition, inspect_definition};

/// The suffixes of findings that exist in one variant only.
const NOBODY: &str = "with nobody there";
const SOMEBODY: &str = "when a person is there";

/// Findings about unused parts. One that only the variant without a person has is dropped: a run with a person uses the
/// part.
const DEAD: [&str; 5] =
    ["bound-never-hit", "join-never-fires", "monitor-never-acts", "unwritten-report", "unreachable-step"];

/// Checks all variants of a definition and merges the findings: equal ones are reported once, one of a single variant
/// names it, and an unused part of a single variant is not reported. `how` gives the other options. The flow is that of
/// a run without a person.
///
/// A run has one variant, so each of them must be sound.
pub fn look_each_way(
    files: &dyn Files,
    base: &str,
    file: Option<&str>,
    set: &[String],
    how: &RecordedLoadOptions,
) -> CompiledDefinition {
    let (alone, there) = each_way(files, base, file, |interactive| {
        inspect_definition(files, base, file, set, &RecordedLoadOptions { interactive, ..how.clone() })
    });
    let Some(there) = there else { return alone };
    combine_variants(alone, there)
}

/// A definition as it is with nobody there, with what is found only when a person is there beside it.
pub fn combine_variants(alone: CompiledDefinition, there: CompiledDefinition) -> CompiledDefinition {
    let mut sources = alone.sources;
    let others = there
        .diagnostics
        .into_iter()
        .map(|finding| move_finding_spans(finding, &there.sources, &mut sources));
    let mut diagnostics = merge_variant_findings(alone.diagnostics, others.collect());
    sort_diagnostics(&mut diagnostics, &sources);
    CompiledDefinition { diagnostics, sources, ..alone }
}

/// Does something for a run with nobody there, and, where that may be another one, for a run with a person there. Both at
/// the same time.
pub fn each_way<T: Send>(
    files: &dyn Files,
    base: &str,
    file: Option<&str>,
    work: impl Fn(bool) -> T + Sync,
) -> (T, Option<T>) {
    if !file.is_some_and(|file| may_differ(files, base, file)) {
        return (work(false), None);
    }
    thread::scope(|scope| {
        let there = scope.spawn(|| work(true));
        let alone = work(false);
        (alone, Some(there.join().unwrap_or_else(|panic| resume_unwind(panic))))
    })
}

/// Whether a run of a definition may be another one where a person is there: of a workflow that has the one key which says so.
/// A key that is written with escapes has a backslash.
fn may_differ(files: &dyn Files, base: &str, file: &str) -> bool {
    let path = if base.is_empty() { file.to_owned() } else { format!("{base}/{file}") };
    format_of(Some(file)).variants()
        && files.read(&path).is_ok_and(|bytes| {
            let text = String::from_utf8_lossy(&bytes);
            text.contains("interactive_only") || text.contains('\\')
        })
}

/// A finding, with its place in other sources, which gain the file where they do not have it.
fn move_finding_spans(mut finding: Diagnostic, from: &Sources, to: &mut Sources) -> Diagnostic {
    for span in std::iter::once(&mut finding.span).chain(&mut finding.trace_spans) {
        if let Some(file) = from.get(span.file) {
            span.file = to.add(&file.path, &file.text);
        }
    }
    finding
}

fn merge_variant_findings(alone: Vec<Diagnostic>, mut there: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for finding in alone {
        let is_dead = DEAD.contains(&finding.code);
        // What to do, and the way that shows it, may differ: it is the same all the same. So may why a monitor is dead.
        let same = there.iter().position(|other| {
            let of = |it: &Diagnostic| (it.code, it.severity, it.span);
            let is_same = other.message == finding.message && other.step == finding.step;
            of(other) == of(&finding) && (is_same || finding.code == "monitor-never-acts")
        });
        match same {
            Some(at) => {
                there.remove(at);
                found.push(finding);
            }
            None if is_dead => {}
            None => found.push(mark_finding_variant(finding, NOBODY)),
        }
    }
    found.extend(there.into_iter().map(|finding| mark_finding_variant(finding, SOMEBODY)));
    found
}

fn mark_finding_variant(mut finding: Diagnostic, when: &str) -> Diagnostic {
    finding.message = format!("{} ({when})", finding.message);
    finding
}

#[cfg(test)]
mod tests {
    use cuegate_flow::diagnostics::{Diagnostic, FileId, Sources, Span, Trace};

    use super::{DEAD, merge_variant_findings, move_finding_spans};

    #[test]
    fn what_is_moved_keeps_its_places() {
        let (mut from, mut to) = (Sources::default(), Sources::default());
        to.add("first.yaml", "x");
        let (one, other) = (from.add("one.yaml", "a"), from.add("other.yaml", "b"));
        let mut trace = Trace::default();
        trace.push("a --x→", Span::start_of(other));
        trace.push("b", Span::start_of(one));
        let finding = Diagnostic::warning("code", Span::start_of(one), "m").trace(trace);
        let moved = move_finding_spans(finding, &from, &mut to);
        let path = |span: &Span| to.get(span.file).map(|file| file.path.to_string());
        let places: Vec<Option<String>> = moved.trace_spans.iter().map(path).collect();
        assert_eq!(path(&moved.span).as_deref(), Some("one.yaml"));
        assert_eq!(places, [Some("other.yaml".to_owned()), Some("one.yaml".to_owned())]);
    }

    #[test]
    fn what_is_dead_in_one_way_only_is_not_said() {
        let all: Vec<&str> = cuegate_flow::checks::list_codes().iter().map(|code| code.name).collect();
        assert!(DEAD.iter().all(|code| all.contains(code)));
        let at = |start| Span { file: FileId(0), start, end: start + 1 };
        let dead = |start, message: &str| Diagnostic::warning("unreachable-step", at(start), message);
        let found =
            merge_variant_findings(vec![dead(2, "a"), dead(2, "b")], vec![dead(2, "b"), dead(3, "c")]);
        let messages: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
        assert_eq!(messages, ["b", "c (when a person is there)"]);
    }

    #[test]
    fn the_same_is_said_once_and_the_rest_says_when() {
        let at = |start| Span { file: FileId(0), start, end: start + 1 };
        let finding = |start, message: &str| Diagnostic::warning("code", at(start), message);
        let alone = vec![finding(1, "a").hint("this"), finding(2, "b"), finding(2, "b")];
        let there = vec![finding(1, "a").hint("that"), finding(2, "b"), finding(3, "b")];
        let messages: Vec<(u32, String)> = merge_variant_findings(alone, there)
            .into_iter()
            .map(|found| (found.span.start, found.message))
            .collect();
        let text = |text: &str| text.to_owned();
        assert_eq!(
            messages,
            [
                (1, text("a")),
                (2, text("b")),
                (2, text("b (with nobody there)")),
                (3, text("b (when a person is there)"))
            ]
        );
    }
}
