//! Finds prompt files: `{c1}/{c2}/{c3}/f_{edition}_{adaptation}.md` below each base.

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, FileId, Span},
};

use super::path_template::PathTemplates;
use crate::climpt::agent::definition::AgentDefinition;
use crate::climpt::agent_paths::Places;
use crate::climpt::registry::definition::RegistryDefinition;
use crate::lints;
use crate::source::files::join;
use crate::source::loader::{Desk, Page};
use crate::source::shared::Shared;
use crate::values::json::Text;

/// The first part of all paths, where a registry does not say it.
pub(crate) const USUAL_C1: &str = "steps";

/// Where prompts lie.
#[derive(Debug)]
pub(crate) struct PromptFiles<'p> {
    bases: Vec<String>,
    /// The base that the registry names, and how many of the bases that is.
    own: Option<(Text<'p>, usize)>,
    /// Whether a prompt was found below it, and whether one was found below another.
    found: Shared<(bool, bool)>,
    /// What came of looking by the template without an adaptation, and by the one with.
    looked: Shared<[Looked; 2]>,
    c1: &'p str,
    templates: PathTemplates<'p>,
}

/// What came of looking by one path template.
#[derive(Debug, Clone, Default)]
pub(crate) struct Looked {
    /// Whether a file was found by it.
    pub(crate) found: bool,
    /// Where it is said of which prompts that they are missing.
    pub(crate) missing: Vec<Span>,
    /// Whether the file of one of them is where the template would lead that no registry has to write.
    pub(crate) by_default: bool,
    /// The steps for which a built-in prompt stands in.
    pub(crate) stood_in: Vec<String>,
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
    /// Which of the keys that were looked for it was found by.
    pub(crate) by: usize,
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

impl<'p> PromptFiles<'p> {
    /// Where the prompts of a registry lie.
    pub(crate) fn new(
        registry: &RegistryDefinition<'p>,
        agent: &AgentDefinition<'_>,
        places: &Places<'_>,
        desk: &Desk<'_>,
    ) -> PromptFiles<'p> {
        let mut bases = Vec::new();
        let mut own = None;
        if let Some(base) = registry.prompts_base {
            bases.extend(places.candidates(base.text, base.span, &desk.found));
            // One that leads out of the project is no place to look in, which has been said.
            own = Some((base, bases.len())).filter(|(_, count)| *count > 0);
        }
        let (fallback_dir, span) = agent.fallback_dir;
        for base in places.candidates(fallback_dir, span.unwrap_or(registry.span), &desk.found) {
            if !bases.contains(&base) {
                bases.push(base);
            }
        }
        PromptFiles {
            bases,
            own,
            found: Shared::default(),
            looked: Shared::default(),
            c1: registry.c1.map_or(USUAL_C1, |c1| c1.text),
            templates: PathTemplates::read(registry, &desk.found),
        }
    }

    /// First part of all paths.
    pub(crate) fn c1(&self) -> &'p str {
        self.c1
    }

    /// Looks for the first of some prompts.
    pub(crate) fn find(&self, keys: &[PromptKey<'_>], span: Span, desk: &Desk<'_>) -> Search {
        let mut tried = Vec::new();
        for (by, key) in keys.iter().enumerate() {
            let relative = self.templates.fill(self.c1, key);
            for (at, base) in self.bases.iter().enumerate() {
                let Some(path) = join(base, &relative) else {
                    desk.found.push(
                        Diagnostic::error(
                            lints::ESCAPES_ROOT,
                            span,
                            format!("`{relative}` leads out of the project"),
                        )
                        .hint("`c1`, `c2`, `c3`, editions and adaptations are names, not paths"),
                    );
                    return Search::Faulty;
                };
                match desk.page(&path) {
                    Page::Text { file, text } => {
                        let (own, other) = self.found.get();
                        let is_own = self.own.is_some_and(|(_, count)| at < count);
                        *self.found.lock() = (own || is_own, other || !is_own);
                        self.looked.lock()[template_of(key)].found = true;
                        return Search::Found(PromptFile { path, file, text, by });
                    }
                    Page::Missing if tried.contains(&path) => {}
                    Page::Missing => tried.push(path),
                    Page::Faulty => return Search::Faulty,
                }
            }
        }
        Search::Missing(tried)
    }

    /// Remembers where it is said that a prompt is missing.
    pub(crate) fn missed(&self, key: &PromptKey<'_>, said: Span, desk: &Desk<'_>) {
        let relative = PathTemplates::DEFAULT.fill(self.c1, key);
        let is_there = |base: &String| join(base, &relative).is_some_and(|path| desk.is_file(&path));
        let by_default = self.bases.iter().any(is_there);
        let looked = &mut self.looked.lock()[template_of(key)];
        looked.missing.push(said);
        looked.by_default |= by_default;
    }

    /// Remembers that a built-in prompt stands in for one of which there is no file.
    pub(crate) fn stood_in(&self, key: &PromptKey<'_>, step: &str) {
        self.looked.lock()[template_of(key)].stood_in.push(step.to_owned());
    }

    /// What came of looking: without an adaptation, and with one.
    pub(crate) fn looked(&self) -> [Looked; 2] {
        self.looked.get()
    }

    /// Reports a base that the registry names and that no prompt was found below, though others were found.
    pub(crate) fn report_unused(&self, desk: &Desk<'_>) {
        if let (Some((base, _)), (false, true)) = (self.own, self.found.get()) {
            let message = format!("no prompt was found below `{}`", base.text);
            desk.found.push(
                Diagnostic::warning(lints::UNUSED_KEY, base.span, message)
                    .hint("correct the path, or remove `userPromptsBase`"),
            );
        }
    }
}

/// By which of the two templates a prompt is looked for.
fn template_of(key: &PromptKey<'_>) -> usize {
    usize::from(key.adaptation.is_some())
}
