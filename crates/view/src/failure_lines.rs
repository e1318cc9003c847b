//! The lines of a failed command's output that tell why it failed.

use cuegate_flow::model::BlobRef;

use crate::{
    stamped::Texts,
    text::{clean_lines, shorten_end},
};

/// The longest printed line, in characters.
const WIDTH_MAX: usize = 200;

/// The lines that tell why a command failed, from its standard output and standard error: see [`failure_lines`].
pub fn output_tail(output: [&BlobRef; 2], texts: Texts<'_>, lines_max: usize) -> Vec<String> {
    let printed = output.into_iter().filter(|blob| blob.len > 0).filter_map(texts);
    let printed: Vec<String> = printed.map(|text| text.trim_end().to_owned()).collect();
    failure_lines(&printed.join("\n"), lines_max)
}

/// The lines of a command's output that tell why it failed, without control characters: those that report a failure, if
/// any do, otherwise the last ones. Test runners often print a summary of counts at the end.
pub fn failure_lines(text: &str, lines_max: usize) -> Vec<String> {
    let text = clean_lines(text);
    let lines: Vec<&str> = text.lines().filter(|line| !is_noise(line)).collect();
    let telling: Vec<usize> = (0..lines.len()).filter(|at| tells_failure(lines[*at])).collect();
    let (Some(first), Some(last)) = (telling.first(), telling.last()) else {
        return shorten_lines(&lines[lines.len().saturating_sub(lines_max)..]);
    };
    // If all of them fit with the lines between them, those explain the failure.
    let kept: Vec<&str> = match last - first < lines_max {
        true => lines[*first..].iter().take(lines_max).copied().collect(),
        false => telling.iter().take(lines_max).map(|at| lines[*at]).collect(),
    };
    shorten_lines(&kept)
}

/// Whether a line of a test runner, compiler or linter reports a failure.
fn tells_failure(line: &str) -> bool {
    let line = line.trim_start();
    let starts = ["not ok", "FAIL", "✖", "✗", "✘", "E  ", "error:", "error[", "Error:", "fatal:", "--- FAIL"];
    let contains =
        ["AssertionError", "Error: ", " panicked at ", "... FAILED", "Traceback (", ": error: ", "not found"];
    starts.iter().any(|mark| line.starts_with(mark)) || contains.iter().any(|mark| line.contains(mark))
}

/// Whether a line is not about the failure: empty, or a notice of a package manager.
fn is_noise(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with("npm notice") || line.starts_with("npm warn")
}

fn shorten_lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| shorten_end(line.trim_end(), WIDTH_MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::failure_lines;

    #[test]
    fn the_failures_of_test_runners_are_found() {
        let node = "TAP version 13\n# Subtest: adds\nnot ok 1 - adds\n  ---\n  error: 'Expected 3'\n  ...\n1..1\n# tests 1\n\
                    # pass 0\n# fail 1\n# cancelled 0\n# skipped 0\n# todo 0\n# duration_ms 40\n";
        assert_eq!(failure_lines(node, 3), ["not ok 1 - adds", "  ---", "  error: 'Expected 3'"]);
        let pytest = "collected 2 items\n\ntest_a.py .F\n\n    def test_b():\n>       assert f() == 2\nE       assert 1 == 2\n\n\
                      test_a.py:4: AssertionError\n=== short test summary info ===\nFAILED test_a.py::test_b\n1 failed\n";
        let told =
            ["E       assert 1 == 2", "test_a.py:4: AssertionError", "=== short test summary info ==="];
        assert_eq!(failure_lines(pytest, 4)[..3], told);
        let many: String = (0..9).map(|n| format!("step {n}\nFAIL: {n}\nmore\n")).collect();
        assert_eq!(failure_lines(&many, 2), ["FAIL: 0", "FAIL: 1"]);
    }

    #[test]
    fn otherwise_the_last_lines_are_shown() {
        assert_eq!(failure_lines("one\n\ntwo\nthree\nnpm notice new version\n", 2), ["two", "three"]);
        assert_eq!(failure_lines("", 2), [""; 0]);
        assert_eq!(failure_lines("sh: 1: pnpm: not found", 2), ["sh: 1: pnpm: not found"]);
        assert_eq!(failure_lines(&"x".repeat(300), 1)[0].chars().count(), 200);
    }
}
