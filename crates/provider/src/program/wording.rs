//! Texts of faults and activities.

use std::path::Path;

use crate::{Fault, FaultClass, ProgramEnd};

/// The maximum number of bytes that a message quotes from a program's output.
const QUOTE_MAX: usize = 300;

/// The longest argument passed to a program, in bytes. Linux allows 128 KiB for one argument.
pub(crate) const ARGUMENT_MAX: usize = 100 << 10;

/// The beginning of some output.
pub(crate) fn quote_output(bytes: &[u8]) -> String {
    let bytes = bytes.trim_ascii();
    let cut = &bytes[..bytes.len().min(QUOTE_MAX)];
    let more = if cut.len() < bytes.len() { "…" } else { "" };
    format!("{}{more}", String::from_utf8_lossy(cut))
}

/// A tool's target on one line.
pub(crate) fn shorten_target(text: &str) -> String {
    const CHARACTERS_MAX: usize = 200;
    let line = text.trim().lines().next().unwrap_or_default();
    let mut target: String = line.chars().take(CHARACTERS_MAX).collect();
    if target.len() < text.trim().len() {
        target.push('…');
    }
    target
}

/// The fault of a program that exited without a result.
pub(crate) fn without_result(name: &str, program: &Path, ended: &ProgramEnd, stderr: &[u8]) -> Fault {
    let (class, why) = match ended {
        ProgramEnd::TimedOut => (FaultClass::Timeout, "timed out".to_owned()),
        ProgramEnd::TooMuchOutput => (FaultClass::Malformed, "output limit exceeded".to_owned()),
        ProgramEnd::Signal(signal) => (FaultClass::Crashed, format!("killed by signal {signal}")),
        ProgramEnd::NotStarted(why) => {
            (FaultClass::MissingProgram, format!("failed to start `{}`: {why}", program.display()))
        }
        ProgramEnd::Exit(0) => (FaultClass::Malformed, "exited without a result".to_owned()),
        ProgramEnd::Exit(code) => (FaultClass::Crashed, format!("exited with code {code} without a result")),
    };
    let stderr = quote_output(stderr);
    let quoted = if stderr.is_empty() { String::new() } else { format!("; stderr: {stderr}") };
    Fault::new(class, format!("no answer from {name}: {why}{quoted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_decides_the_class() {
        let fault = |ended| without_result("agent", Path::new("/bin/agent"), &ended, b" oh no \n");
        let class = |ended| fault(ended).class;
        assert_eq!(class(ProgramEnd::TimedOut), FaultClass::Timeout);
        assert_eq!(class(ProgramEnd::TooMuchOutput), FaultClass::Malformed);
        assert_eq!(class(ProgramEnd::Signal(9)), FaultClass::Crashed);
        assert_eq!(class(ProgramEnd::Exit(0)), FaultClass::Malformed);
        assert_eq!(class(ProgramEnd::NotStarted("none".to_owned())), FaultClass::MissingProgram);
        assert_eq!(
            fault(ProgramEnd::Exit(143)).to_string(),
            "no answer from agent: exited with code 143 without a result; stderr: oh no"
        );
    }

    #[test]
    fn targets_are_one_short_line() {
        assert_eq!(shorten_target(" ls -l "), "ls -l");
        assert_eq!(shorten_target("cat <<E\nx\nE"), "cat <<E…");
        assert_eq!(shorten_target(&"x".repeat(300)).chars().count(), 201);
    }
}
