//! What a reviewer decides by: where the work is proposed, whether it is proved, and what was denied.

mod marks;

use std::collections::BTreeMap;

use cuegate_engine::{EffectKind, EndState};

use crate::{
    format::plural,
    glance::{describe_last_validators, result_of_completed_run},
    run_end::{is_open_to_take, suggest_continue_commands},
    stamped::Texts,
    summary::{EffectRow, EffectState, RunState, RunView},
    text::{clean_to_one_line, shorten_end},
};

pub use marks::obeyed_by;

/// How many denied uses are listed; the rest are counted.
const DENIED_MAX: usize = 3;
/// How much of a denied use is shown, in columns.
const DENIED_COLUMNS: usize = 60;

/// A pull request that proposes the work of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    pub number: u64,
    pub url: String,
}

impl PullRequest {
    /// The pull request of an address: `https://github.com/owner/name/pull/12`.
    pub(crate) fn parse(url: &str) -> Option<PullRequest> {
        let (_, rest) = url.split_once("/pull/")?;
        let digits = rest.split(['/', '#', '?']).next()?;
        Some(PullRequest { number: digits.parse().ok()?, url: url.to_owned() })
    }
}

impl RunView {
    /// The pull request that proposes its work; the last one, if there are several.
    pub fn pull_request(&self) -> Option<PullRequest> {
        // Comments on a pull request have an address in it as well.
        let opened = |row: &&EffectRow| row.state == EffectState::Done && row.kind == EffectKind::PullRequest;
        let done = self.acts.effects.iter().rev().filter(opened);
        done.filter_map(|row| row.url.as_deref()).find_map(PullRequest::parse)
    }

    /// Whether a command passed on the work of a run that completed.
    pub fn is_proved(&self) -> bool {
        // What is published has passed the gates once more, if files had changed since.
        let is_published = self.acts.effects.iter().any(|row| {
            let finalizes =
                matches!(row.kind, EffectKind::Merge | EffectKind::Push | EffectKind::PullRequest);
            finalizes && row.state == EffectState::Done
        });
        let is_current = !self.is_proof_outdated || is_published;
        result_of_completed_run(self).is_some()
            && self.validators.last().is_some_and(|ran| ran.passed)
            && is_current
    }

    /// Why completed work is not proved; `None` if it is, or changed nothing.
    pub fn describe_missing_proof(&self) -> Option<String> {
        let is_done = self.state == RunState::Ended(EndState::Completed) && !self.agent_changes().is_empty();
        if !is_done || self.is_proved() {
            return None;
        }
        if self.is_proof_outdated && self.unvalidated.is_none() {
            return Some("files changed after the last command passed".to_owned());
        }
        let unvalidated = self.unvalidated.as_deref().map(clean_to_one_line);
        Some(unvalidated.unwrap_or_else(|| "no command verified these changes".to_owned()))
    }

    /// The commands that are next: those that continue it, and the one that takes its changes.
    pub fn suggest_next_commands(&self) -> Vec<String> {
        let take = is_open_to_take(self).then(|| format!("cuegate apply {}", self.run));
        suggest_continue_commands(self).into_iter().chain(take).collect()
    }

    /// What was denied to agents and commands, each with how often: hosts, and uses of tools.
    pub fn list_denied(&self) -> Vec<(String, u64)> {
        let mut known: BTreeMap<String, u64> = BTreeMap::new();
        for row in self.denied_tools() {
            let what = clean_to_one_line(&format!("{} {}", row.call.tool, row.call.target));
            *known.entry(what.trim_end().to_owned()).or_default() += 1;
        }
        let hosts = self.denied_hosts.iter().map(|(host, times)| (host.to_string(), *times));
        hosts.chain(known).collect()
    }
}

/// What a reviewer has to know of a run at rest, a line each: its proof or why it stopped, its pull request, and what was
/// denied.
pub fn list_verdict_lines(view: &RunView) -> Vec<String> {
    let mut lines = Vec::new();
    let is_done = view.state == RunState::Ended(EndState::Completed);
    match (describe_last_validators(view).filter(|_| is_done), view.describe_missing_proof(), &view.reason) {
        (_, Some(missing), _) => lines.push(format!("unproved: {missing}")),
        (Some(proof), None, _) => lines.push(format!("proved: {proof}")),
        (None, None, Some(reason)) => lines.push(clean_to_one_line(reason)),
        (None, None, None) => {}
    }
    if let Some(request) = view.pull_request() {
        lines.push(format!("pull request #{}: {}", request.number, clean_to_one_line(&request.url)));
    }
    lines.extend(describe_denied(view).map(|denied| format!("denied: {denied}")));
    lines
}

/// The command that passed last on the work and says that it ran no test, if there is one.
pub(crate) fn find_empty_tests(view: &RunView, texts: Texts<'_>) -> Option<String> {
    let last = view.validators.last().filter(|ran| ran.passed)?;
    let output: String = [&last.stdout, &last.stderr].into_iter().filter_map(texts).collect();
    says_no_test(&output)
        .then(|| format!("`{}` passed, but its output says that it ran no test", last.command))
}

/// Whether the output of a test runner says that there was no test: pytest, unittest, node, jest, vitest, mocha, rspec,
/// cargo, go.
fn says_no_test(output: &str) -> bool {
    const NONE: [&str; 9] = [
        "no tests ran",
        "collected 0 items",
        "ran 0 tests",
        "no tests found",
        "no test files",
        "tests 0",
        "0 passing",
        "0 examples, 0 failures",
        "running 0 tests",
    ];
    let is_some = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let counts = |pair: &[&str], before: &[&str], after: &[&str]| {
            let is_count = |word: &str| word.parse::<u64>().is_ok_and(|count| count > 0);
            (before.contains(&pair[0]) && is_count(pair[1]))
                || (is_count(pair[0]) && after.contains(&pair[1]))
        };
        let before = ["running", "collected", "ran", "tests", "tests:"];
        let after = ["passed", "passed,", "passed;", "passing", "examples,", "tests", "items"];
        words.windows(2).any(|pair| counts(pair, &before, &after))
            || (words.first() == Some(&"ok") && words.len() > 1)
    };
    let lower = output.to_lowercase();
    lower.lines().any(|line| NONE.iter().any(|none| line.contains(none))) && !lower.lines().any(is_some)
}

/// What was denied in one line: `2 uses: evil.example:443, Bash rm -rf /`.
pub(crate) fn describe_denied(view: &RunView) -> Option<String> {
    let denied = view.list_denied();
    let all: u64 = denied.iter().map(|(_, times)| times).sum();
    let shown = denied.iter().take(DENIED_MAX).map(|(what, times)| match times {
        1 => shorten_end(what, DENIED_COLUMNS),
        times => format!("{} ({times} times)", shorten_end(what, DENIED_COLUMNS)),
    });
    let shown: Vec<String> = shown.collect();
    let more = match denied.len().saturating_sub(DENIED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (all > 0).then(|| format!("{}: {}{more}", plural(all, "use"), shown.join(", ")))
}

/// What to do with the work, as a label and a command or an address: to review its pull request, or to take its changes.
pub(crate) fn suggest_review(view: &RunView) -> Option<(&'static str, String)> {
    if let Some(request) = view.pull_request() {
        return Some((
            "review",
            format!("pull request #{}: {}", request.number, clean_to_one_line(&request.url)),
        ));
    }
    is_open_to_take(view).then(|| ("take", format!("cuegate apply {}", view.run)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_no_test_is_told_from_others() {
        for none in [
            "collected 0 items\n\n=== no tests ran in 0.01s ===",
            "Ran 0 tests in 0.000s\n\nOK",
            "# tests 0\n# pass 0",
            "No tests found, exiting with code 0",
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed",
            "?   \texample.com/a\t[no test files]",
        ] {
            assert!(says_no_test(none), "{none}");
        }
        for some in [
            "collected 3 items\n\n3 passed in 0.01s",
            "running 2 tests\ntest result: ok. 2 passed\n\nrunning 0 tests",
            "?   \texample.com/a\t[no test files]\nok  \texample.com/b\t0.1s",
            "# tests 4\n# pass 4",
            "all good",
        ] {
            assert!(!says_no_test(some), "{some}");
        }
    }

    #[test]
    fn the_number_of_a_pull_request_is_that_of_its_address() {
        let number = |url: &str| PullRequest::parse(url).map(|request| request.number);
        assert_eq!(number("https://github.com/a/b/pull/12"), Some(12));
        assert_eq!(number("http://127.0.0.1:1/a/b/pull/7#issuecomment-1"), Some(7));
        assert_eq!(number("https://github.com/a/b/issues/12"), None);
    }
}
