//! Findings about a definition.

use crate::{
    Str,
    diagnostics::{Sources, Span, Trace},
};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The definition cannot run.
    Error,
    /// It runs, but probably not as the author intended.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// The word that is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// One finding: the problem, its position, and the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code of the finding, in kebab case.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The problem: a lowercase fragment with literals in backticks.
    pub message: String,
    /// Its position.
    pub span: Span,
    /// The step it is about, when it is about one.
    pub step: Option<Str>,
    /// The fix.
    pub hint: Option<String>,
    /// A shortest path through the flow that shows the problem, one entry per hop.
    pub trace: Vec<String>,
    /// The position of each hop; empty if unknown.
    pub trace_spans: Vec<Span>,
}

impl Diagnostic {
    /// A finding of severity error.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: shorten_quoted_values(message.into()),
            span,
            step: None,
            hint: None,
            trace: Vec::new(),
            trace_spans: Vec::new(),
        }
    }

    /// A finding of severity warning.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// A finding of severity note.
    pub fn note(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Note, ..Diagnostic::error(code, span, message) }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a "did you mean" hint.
    #[must_use]
    pub fn did_you_mean(self, word: &str) -> Diagnostic {
        self.hint(format!("did you mean `{word}`?"))
    }

    /// Names the step it is about.
    #[must_use]
    pub fn step(mut self, step: &str) -> Diagnostic {
        self.step = Some(step.into());
        self
    }

    /// Adds the path that shows it.
    #[must_use]
    pub fn trace(mut self, trace: Trace) -> Diagnostic {
        (self.trace, self.trace_spans) = trace.into_parts();
        self
    }
}

/// The most characters of a quoted value in a message.
const QUOTED_MAX: usize = 100;

/// A message with long quoted values cut.
fn shorten_quoted_values(message: String) -> String {
    if message.len() <= QUOTED_MAX {
        return message;
    }
    let cut = |(at, part): (usize, &str)| match part.char_indices().nth(QUOTED_MAX) {
        // Every second part is quoted.
        Some(_) if at % 2 == 1 => part.chars().take(QUOTED_MAX - 1).chain(['…']).collect(),
        _ => part.to_owned(),
    };
    message.split('`').enumerate().map(cut).collect::<Vec<String>>().join("`")
}

/// Moves a finding in a text of the program to the place where the definition refers to it.
fn leave_built_in(finding: &mut Diagnostic, sources: &Sources) {
    let Some((name, used_at)) = sources.get(finding.span.file).and_then(|file| file.built_in.as_ref()) else {
        return;
    };
    let place = format!("this is line {} of {name}", sources.locate(finding.span).line);
    finding.hint = Some(match &finding.hint {
        Some(hint) => format!("{hint}; {place}"),
        None => place,
    });
    finding.span = *used_at;
}

/// Sorts findings by file, line and column, and drops exact repetitions. Findings in texts of the program are moved to
/// the place where the definition refers to them.
pub fn sort_diagnostics(diagnostics: &mut Vec<Diagnostic>, sources: &Sources) {
    diagnostics.iter_mut().for_each(|finding| leave_built_in(finding, sources));
    diagnostics.sort_by(|a, b| {
        let path = |d: &Diagnostic| sources.get(d.span.file).map(|file| file.path.clone());
        let first = |d: &Diagnostic| (path(d), d.span.start, d.severity, d.code);
        // Threads report findings in any order; the output must be deterministic.
        let rest = |d: &Diagnostic| (d.span.end, d.step.clone(), d.hint.clone());
        (first(a).cmp(&first(b))).then_with(|| a.message.cmp(&b.message)).then_with(|| rest(a).cmp(&rest(b)))
    });
    diagnostics.dedup();
}

#[cfg(test)]
mod tests {
    use super::{QUOTED_MAX, shorten_quoted_values};

    #[test]
    fn long_quoted_values_are_cut() {
        let long = "ä".repeat(QUOTED_MAX + 1);
        let cut = format!("`{}…` is not a step, {long}", "ä".repeat(QUOTED_MAX - 1));
        assert_eq!(shorten_quoted_values(format!("`{long}` is not a step, {long}")), cut);
        assert_eq!(shorten_quoted_values(format!("`a` {long} `b`")), format!("`a` {long} `b`"));
    }
}
