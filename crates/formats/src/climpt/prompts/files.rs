//! Finds prompt files: `{c1}/{c2}/{c3}/f_{edition}_{adaptation}.md` below each base.

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, FileId, Span},
};

use super::path_template::PathTemplates;
use crate::climpt::agent::definition::AgentDefinition;
use crate::climpt::agent_paths::AgentFolder;
use crate::climpt::registry::definition::RegistryDefinition;
use crate::codes;
use crate::source::files::join_path;
use crate::source::loader::{LoadedFile, SourceLoader};
use crate::source::shared::SharedCell;
use crate::suggest::quote_names;
use crate::values::json::Text;

/// The default first part of all paths.
pub(crate) const USUAL_C1: &str = "steps";

/// The prompt bases and templates of a registry.
#[derive(Debug)]
pub(crate) struct PromptFiles<'p> {
    bases: Vec<String>,
    /// The base that the registry names, and how many of the bases belong to it.
    own: Option<(Text<'p>, usize)>,
    /// Whether a prompt was found below it, and whether one was found below another.
    found: SharedCell<(bool, bool)>,
    /// A finding for each prompt that no file was found for.
    missing: SharedCell<Vec<Diagnostic>>,
    c1: &'p str,
    templates: PathTemplates<'p>,
}

/// Which prompt is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptKey<'p> {
    /// Second part of the path.
    pub(crate) c2: &'p str,
    /// Third part of the path.
    pub(crate) c3: &'p str,
    pub(crate) edition: &'p str,
    /// The adaptation, if any.
    pub(crate) adaptation: Option<&'p str>,
}

/// A prompt file that was found.
#[derive(Debug, Clone)]
pub(crate) struct PromptFile {
    pub(crate) path: String,
    pub(crate) file: FileId,
    /// Its text, front matter included.
    pub(crate) text: Str,
    /// The index of the key that matched.
    pub(crate) by: usize,
}

/// The result of searching for a prompt.
#[derive(Debug)]
pub(crate) enum Search {
    /// The file.
    Found(PromptFile),
    /// No file; these paths were tried.
    Missing(Vec<String>),
    /// An unusable file; findings say why.
    Faulty,
}

impl<'p> PromptFiles<'p> {
    /// The search paths for prompts of a registry.
    pub(crate) fn new(
        registry: &RegistryDefinition<'p>,
        agent: &AgentDefinition<'_>,
        places: &AgentFolder<'_>,
        loader: &SourceLoader<'_>,
    ) -> PromptFiles<'p> {
        let mut bases = Vec::new();
        let mut own = None;
        if let Some(base) = registry.prompts_base {
            bases.extend(places.candidates(base.text, base.span, &loader.found));
            // A base outside the project is not searched, which has been reported.
            own = Some((base, bases.len())).filter(|(_, count)| *count > 0);
        }
        let (fallback_dir, span) = agent.fallback_dir;
        for base in places.candidates(fallback_dir, span.unwrap_or(registry.span), &loader.found) {
            if !bases.contains(&base) {
                bases.push(base);
            }
        }
        PromptFiles {
            bases,
            own,
            found: SharedCell::default(),
            missing: SharedCell::default(),
            c1: registry.c1.map_or(USUAL_C1, |c1| c1.text),
            templates: PathTemplates::read(registry, &loader.found),
        }
    }

    /// First part of all paths.
    pub(crate) fn c1(&self) -> &'p str {
        self.c1
    }

    /// Finds the first of several prompts.
    pub(crate) fn find(&self, keys: &[PromptKey<'_>], span: Span, loader: &SourceLoader<'_>) -> Search {
        let mut tried = Vec::new();
        for (by, key) in keys.iter().enumerate() {
            let relative = self.templates.fill(self.c1, key);
            for (at, base) in self.bases.iter().enumerate() {
                let Some(path) = join_path(base, &relative) else {
                    loader.found.push(
                        Diagnostic::error(
                            codes::ESCAPES_ROOT,
                            span,
                            format!("`{relative}` leads out of the project"),
                        )
                        .hint("`c1`, `c2`, `c3`, editions and adaptations are names, not paths"),
                    );
                    return Search::Faulty;
                };
                match loader.page(&path) {
                    LoadedFile::Text { file, text } => {
                        let (own, other) = self.found.get();
                        let is_own = self.own.is_some_and(|(_, count)| at < count);
                        *self.found.lock() = (own || is_own, other || !is_own);
                        return Search::Found(PromptFile { path, file, text, by });
                    }
                    LoadedFile::Missing if tried.contains(&path) => {}
                    LoadedFile::Missing => tried.push(path),
                    LoadedFile::Faulty => return Search::Faulty,
                }
            }
        }
        Search::Missing(tried)
    }

    /// Collects the finding for a prompt that no file was found for.
    pub(crate) fn add_missing_prompt(&self, finding: Diagnostic) {
        self.missing.lock().push(finding);
    }

    /// Reports the prompts that no file was found for: one finding where the registry says where prompts are, if none of
    /// them exists, else one for each.
    pub(crate) fn report_missing(
        &self,
        registry: &RegistryDefinition<'_>,
        agent: &AgentDefinition<'_>,
        loader: &SourceLoader<'_>,
    ) {
        let missing = std::mem::take(&mut *self.missing.lock());
        if self.found.get() != (false, false) || missing.len() < 2 {
            missing.into_iter().for_each(|finding| loader.found.push(finding));
            return;
        }
        let base = registry.prompts_base.map(|base| base.span).or(agent.fallback_dir.1);
        let unusual = registry.c1.filter(|c1| c1.text != USUAL_C1).map(|c1| c1.span);
        let at = unusual.or(base).or(registry.c1.map(|c1| c1.span)).unwrap_or(registry.span);
        let message = format!(
            "none of the {} prompt files exist under {}",
            missing.len(),
            quote_names(&self.bases.iter().map(|base| format!("{base}/{}", self.c1)).collect::<Vec<_>>())
        );
        let hint = format!(
            "correct `c1`, `userPromptsBase` or `pathTemplate`, or write the files; the first: {}",
            missing[0].message
        );
        loader.found.push(Diagnostic::error(codes::MISSING_PROMPT, at, message).hint(hint));
    }

    /// Reports a base of the registry without prompts, if other bases have some.
    pub(crate) fn report_unused(&self, loader: &SourceLoader<'_>) {
        if let (Some((base, _)), (false, true)) = (self.own, self.found.get()) {
            let message = format!("no prompt was found below `{}`", base.text);
            loader.found.push(
                Diagnostic::warning(codes::UNUSED_KEY, base.span, message)
                    .hint("correct the path, or remove `userPromptsBase`"),
            );
        }
    }
}
