//! Resolves the paths of an agent's files.

use cuegate_flow::diagnostics::{Diagnostic, Span};

use crate::codes;
use crate::findings::Findings;
use crate::source::files::join_path;

/// The folder of an agent, and the names under which its files may call that folder `.agent/NAME`.
#[derive(Debug)]
pub(crate) struct AgentFolder<'p> {
    /// The folder, relative to the project root.
    pub(crate) agent_dir: &'p str,
    /// The agent's names: from `agent.json` and from the registry.
    pub(crate) names: Vec<&'p str>,
}

impl AgentFolder<'_> {
    /// The candidates for a path, in search order. A path is relative to the agent folder, but a path that begins with
    /// `.agent/` is relative to the project root. A path that begins with `.agent/NAME/` of this agent means its own
    /// folder first, wherever that folder is, and not a namesake's in the project.
    pub(crate) fn candidates(&self, path: &str, span: Span, found: &Findings) -> Vec<String> {
        let clean = path.strip_prefix("./").unwrap_or(path);
        let mut candidates: Vec<Option<String>> = Vec::new();
        if clean == ".agent" || clean.starts_with(".agent/") {
            for name in &self.names {
                let rest = clean.strip_prefix(".agent/").and_then(|rest| rest.strip_prefix(name));
                if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
                    candidates.push(join_path(self.agent_dir, rest.trim_start_matches('/')));
                }
            }
            candidates.push(join_path("", clean));
        } else {
            candidates.push(join_path(self.agent_dir, path));
        }
        if candidates.iter().any(Option::is_none) {
            found.push(
                Diagnostic::error(codes::ESCAPES_ROOT, span, format!("`{path}` leads out of the project"))
                    .hint("keep the files of an agent in its folder or in the project"),
            );
        }
        let mut distinct: Vec<String> = Vec::new();
        for candidate in candidates.into_iter().flatten() {
            if !distinct.contains(&candidate) {
                distinct.push(candidate);
            }
        }
        distinct
    }
}

#[cfg(test)]
mod tests {
    use super::AgentFolder;
    use crate::findings::Findings;
    use cuegate_flow::diagnostics::Span;

    #[test]
    fn bases_of_every_kind() {
        let places = AgentFolder { agent_dir: "agents/x", names: vec!["x", "x"] };
        let cases: [(&str, &[&str]); 7] = [
            ("prompts/", &["agents/x/prompts"]),
            (".agent/x/prompts", &["agents/x/prompts", ".agent/x/prompts"]),
            (".agent/x", &["agents/x", ".agent/x"]),
            (".agent/xy/prompts", &[".agent/xy/prompts"]),
            ("./.agent/shared", &[".agent/shared"]),
            ("../../shared", &["shared"]),
            ("../../../etc", &[]),
        ];
        for (path, expected) in cases {
            let found = Findings::default();
            assert_eq!(places.candidates(path, Span::default(), &found), expected, "{path}");
            assert_eq!(found.has_errors(), expected.is_empty(), "{path}");
        }
    }
}
