//! Finds prompt files: `{c1}/{c2}/{c3}/f_{edition}_{adaptation}.md` below each base.

use cuegate_flow::{Diagnostic, FileId, Span, Str};

use super::agent::AgentDefinition;
use super::definition::RegistryDefinition;
use super::places::Places;
use crate::codes;
use crate::desk::{Desk, Page};
use crate::files::join;
use crate::json::Text;
use crate::nearest::list;

/// Where prompts lie.
#[derive(Debug)]
pub(crate) struct PromptFiles<'p> {
    bases: Vec<String>,
    c1: &'p str,
    adapted: &'p str,
    plain: &'p str,
}

/// Which prompt is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptKey<'p> {
    /// Second part of the path.
    pub(crate) c2: &'p str,
    /// Third part of the path.
    pub(crate) c3: &'p str,
    /// The edition.
    pub(crate) edition: &'p str,
    /// The adaptation, if any.
    pub(crate) adaptation: Option<&'p str>,
}

/// A prompt file that was found.
#[derive(Debug, Clone)]
pub(crate) struct PromptFile {
    /// Its path.
    pub(crate) path: String,
    /// The file.
    pub(crate) file: FileId,
    /// Its text, front matter included.
    pub(crate) text: Str,
}

/// What looking for a prompt gave.
#[derive(Debug)]
pub(crate) enum Search {
    /// It is there.
    Found(PromptFile),
    /// It is nowhere; these paths were tried.
    Missing(Vec<String>),
    /// It is there but of no use; findings say why.
    Faulty,
}

const ADAPTED: &str = "{c1}/{c2}/{c3}/f_{edition}_{adaptation}.md";
const PLAIN: &str = "{c1}/{c2}/{c3}/f_{edition}.md";

impl<'p> PromptFiles<'p> {
    /// Where the prompts of a registry lie.
    pub(crate) fn new(
        registry: &RegistryDefinition<'p>,
        agent: &AgentDefinition<'_>,
        places: &Places<'_>,
        desk: &Desk<'_>,
    ) -> PromptFiles<'p> {
        let mut bases = Vec::new();
        if let Some(base) = registry.prompts_base {
            bases.extend(places.candidates(base.text, base.span, &desk.found));
        }
        let (fallback_dir, span) = agent.fallback_dir;
        for base in places.candidates(fallback_dir, span.unwrap_or(registry.span), &desk.found) {
            if !bases.contains(&base) {
                bases.push(base);
            }
        }
        PromptFiles {
            bases,
            c1: registry.c1.map_or("steps", |c1| c1.text),
            adapted: template(registry.path_template, ADAPTED, desk),
            plain: template(registry.path_template_plain, PLAIN, desk),
        }
    }

    /// Looks for the first of some prompts.
    pub(crate) fn find(&self, keys: &[PromptKey<'_>], span: Span, desk: &Desk<'_>) -> Search {
        let mut tried = Vec::new();
        for key in keys {
            let relative = self.relative(key);
            for base in &self.bases {
                let Some(path) = join(base, &relative) else {
                    desk.found.push(
                        Diagnostic::error(
                            codes::ESCAPES_ROOT,
                            span,
                            format!("`{relative}` leads out of the project"),
                        )
                        .hint("`c1`, `c2`, `c3`, editions and adaptations are names, not paths"),
                    );
                    return Search::Faulty;
                };
                match desk.page(&path) {
                    Page::Text { file, text } => return Search::Found(PromptFile { path, file, text }),
                    Page::Missing if tried.contains(&path) => {}
                    Page::Missing => tried.push(path),
                    Page::Faulty => return Search::Faulty,
                }
            }
        }
        Search::Missing(tried)
    }

    fn relative(&self, key: &PromptKey<'_>) -> String {
        let template = if key.adaptation.is_some() { self.adapted } else { self.plain };
        let mut path = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            path.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                path.push('{');
                rest = after;
                continue;
            };
            path.push_str(match name {
                "c1" => self.c1,
                "c2" => key.c2,
                "c3" => key.c3,
                "edition" => key.edition,
                "adaptation" => key.adaptation.unwrap_or_default(),
                _ => "",
            });
            rest = after;
        }
        path.push_str(rest);
        path
    }
}

/// A path template whose placeholders are known.
fn template<'p>(written: Option<Text<'p>>, default: &'p str, desk: &Desk<'_>) -> &'p str {
    const KNOWN: [&str; 5] = ["c1", "c2", "c3", "edition", "adaptation"];
    let Some(written) = written else { return default };
    let unknown: Vec<&str> = written
        .text
        .split('{')
        .skip(1)
        .filter_map(|part| part.split_once('}').map(|(name, _)| name))
        .filter(|name| !KNOWN.contains(name))
        .collect();
    if unknown.is_empty() {
        return written.text;
    }
    let message = format!("a path template has no {}", list(&unknown));
    desk.found.push(
        Diagnostic::error(codes::INVALID_VALUE, written.span, message)
            .hint("use `{c1}`, `{c2}`, `{c3}`, `{edition}` and `{adaptation}`"),
    );
    default
}
