//! What happened in a run, at a glance: its result with the proof, the agent's summary, the changed files. The end of a
//! run, `status` and `report` begin with it.

use std::collections::BTreeMap;

use cuegate_engine::EndState;
use cuegate_flow::model::BlobRef;

use crate::{
    format::plural,
    stamped::Texts,
    summary::{LineCount, RunState, RunView},
    text::{clean_lines, clean_to_one_line, shorten_end},
};

/// How many changed files are listed; the rest are counted.
const NAMES_MAX: usize = 8;
/// How many commands are named.
const COMMANDS_MAX: usize = 3;
/// How many lines of the agent's summary are shown; `report` prints all of it.
const SUMMARY_LINES: usize = 6;

/// How the commands that judge the work ended last, with the number of the try: `` `npm test` passes (2nd try)``. `None` if
/// none ran.
pub(crate) fn describe_last_validators(view: &RunView) -> Option<String> {
    // By command: the tries, whether the last one passed, and how it ended.
    let mut commands: BTreeMap<&str, (u64, &crate::summary::ValidatorRow)> = BTreeMap::new();
    for row in &view.validators {
        let tries = commands.get(row.command.as_str()).map_or(0, |(tries, _)| *tries);
        commands.insert(&row.command, (tries + 1, row));
    }
    let mut last: Vec<_> = commands.into_values().collect();
    last.sort_by_key(|(_, row)| row.seq);
    let all = last.len();
    let words = last.into_iter().take(COMMANDS_MAX).map(|(tries, row)| {
        let ended = if row.passed {
            "passes".to_owned()
        } else {
            format!("failed, {}", clean_to_one_line(&row.ended))
        };
        let tries = if tries > 1 { format!(" ({} try)", format_ordinal(tries)) } else { String::new() };
        format!("`{}` {ended}{tries}", row.command)
    });
    let words: Vec<String> = words.collect();
    let more = if all > words.len() { format!(" and {} more", all - words.len()) } else { String::new() };
    (all > 0).then(|| format!("{}{more}", words.join(", ")))
}

/// `1st`, `2nd`, `11th`.
fn format_ordinal(n: u64) -> String {
    let ending = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// The result of a completed run: what proves it.
pub(crate) fn result_of_completed_run(view: &RunView) -> Option<String> {
    let is_done = view.state == RunState::Ended(EndState::Completed);
    let proof = describe_last_validators(view).filter(|_| is_done && view.unvalidated.is_none())?;
    Some(match view.is_proof_outdated {
        true => format!("{proof}, before the last changes"),
        false => proof,
    })
}

impl RunView {
    /// What an agent said last that may change files, or any agent if none of them said anything: what a reviewer says of the
    /// work does not tell what was done.
    pub fn summary_text(&self, texts: Texts<'_>) -> Option<String> {
        let said = |blob: &Option<BlobRef>| words_of_answer(&texts(blob.as_ref()?)?);
        // An aborted run gave up for the reason in its very last answer, often that of a reviewer.
        let is_done = self.state == RunState::Ended(EndState::Completed);
        let work = if is_done { said(&self.work_summary) } else { None };
        work.or_else(|| said(&self.summary))
    }
}

/// The words of an answer for people: an object without a text for them has none.
fn words_of_answer(text: &str) -> Option<String> {
    const FOR_PEOPLE: [&str; 4] = ["summary", "response", "message", "reason"];
    let words = match serde_json::from_str::<serde_json::Value>(text) {
        Ok(serde_json::Value::Object(answer)) => {
            FOR_PEOPLE.iter().find_map(|key| answer.get(*key)?.as_str())?.to_owned()
        }
        _ => text.to_owned(),
    };
    (!words.trim().is_empty()).then_some(words)
}

/// What the agent's summary is called: in a run that did not complete it reports no result.
pub(crate) fn summary_label(view: &RunView) -> &'static str {
    match &view.state {
        RunState::Ended(EndState::Completed) => "summary",
        _ => "last said",
    }
}

/// The first lines of the agent's summary, without empty ones.
pub(crate) fn summary_lines(view: &RunView, texts: Texts<'_>) -> Vec<String> {
    let Some(text) = view.summary_text(texts) else { return Vec::new() };
    let text = clean_lines(&text);
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).take(SUMMARY_LINES);
    lines.map(|line| shorten_end(line, 200)).collect()
}

/// The changed files with the numbers of their lines: `2 files, +12 −3: src/a.rs +10 −2, src/b.rs +2 −1`.
pub(crate) fn describe_changed_files(view: &RunView) -> String {
    if !view.git {
        return "unknown: the folder is not a git repository".to_owned();
    }
    let (agents, commands) = (view.agent_changes(), view.command_changes());
    let by_agents =
        if agents.is_empty() { "nothing".to_owned() } else { list_files_with_counts(view, &agents) };
    match commands.is_empty() {
        true => by_agents,
        false => format!("{by_agents}; by commands: {}", list_files_with_counts(view, &commands)),
    }
}

fn list_files_with_counts(view: &RunView, files: &[&str]) -> String {
    let count_of = |file: &&str| view.difference.as_ref().and_then(|all| all.get(*file)).copied();
    let counts = files.iter().filter_map(count_of);
    let sum = counts.fold(LineCount::default(), |sum, one| LineCount {
        added: Some(sum.added.unwrap_or(0) + one.added.unwrap_or(0)),
        removed: Some(sum.removed.unwrap_or(0) + one.removed.unwrap_or(0)),
    });
    let named = files.iter().take(NAMES_MAX).map(|file| {
        let count = count_of(file).and_then(|count| count.describe());
        format!("{}{}", clean_to_one_line(file), count.map(|count| format!(" {count}")).unwrap_or_default())
    });
    let named: Vec<String> = named.collect();
    let more = if files.len() > named.len() {
        format!(" and {} more", files.len() - named.len())
    } else {
        String::new()
    };
    // One file has its own numbers.
    let sum = sum.describe().filter(|_| files.len() > 1).map(|sum| format!(", {sum}")).unwrap_or_default();
    format!("{}{sum}: {}{more}", plural(files.len() as u64, "file"), named.join(", "))
}

/// The report that a workflow wrote last, which is its result.
pub(crate) fn result_file(view: &RunView) -> Option<String> {
    let files = view.reports.files();
    let newest = files.iter().filter(|file| file.path == format!("reports/{}", file.name));
    newest.max_by_key(|file| file.version.order).map(|file| clean_to_one_line(file.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals() {
        let words: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 22, 101, 111].map(format_ordinal).to_vec();
        assert_eq!(words.join(" "), "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 101st 111th");
    }
}
