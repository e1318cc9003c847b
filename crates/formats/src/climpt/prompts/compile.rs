//! Compiles prompt files to templates.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::Template,
};

use crate::climpt::prompts::placeholders::PromptBody;
use crate::climpt::prompts::unresolved_placeholders::UnresolvedPlaceholders;

use super::body::Prose;
use super::files::{PromptFile, PromptFiles};
use super::front_matter::{FrontMatterClashes, PromptUser, check_matter};
use super::reads::ReadPlaces;
use super::undeclared_variables::UndefinedVariables;
use super::unused::VariableReads;
use super::variables::{PromptScope, Variables};
use crate::climpt::agent::parameters::normalize_variable_name;
use crate::climpt::registry::index::StepIndex;
use crate::climpt::registry::step_definition::StepDefinition;
use crate::codes;
use crate::source::loader::SourceLoader;
use crate::source::shared::SharedCell;
use crate::suggest::quote_names;
use crate::templates::{FrontMatter, parse_failure_prompt, split_front_matter};

/// Compiles the prompts of one registry.
pub(crate) struct PromptCompiler<'c, 'f, 'j> {
    pub(crate) loader: &'c SourceLoader<'f>,
    pub(crate) files: &'c PromptFiles<'j>,
    pub(crate) variables: &'c Variables<'c>,
    pub(crate) steps: &'c [StepDefinition<'j>],
    /// The steps by their names.
    pub(crate) index: StepIndex<'j>,
    /// Files seen so far: findings about a file as a whole are reported once, however many steps use it.
    seen: SharedCell<HashSet<String>>,
    /// Whether some parameters could not be read.
    pub(crate) params_misread: bool,
    /// The variables that prompts have read so far.
    pub(crate) reads: VariableReads,
    /// Undefined variables in prompts other than the steps' own.
    pub(crate) outside: UndefinedVariables,
    /// Front matter values that the registry does not confirm.
    pub(crate) matters: FrontMatterClashes,
    /// Places where prompts of steps read variables that may be missing.
    pub(crate) places: SharedCell<ReadPlaces>,
}

/// A compiled prompt.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    pub(crate) template: Template,
    /// Every variable it reads, as written.
    pub(crate) used: BTreeSet<String>,
    /// The variables in its own text from outside the run, each with its first place.
    pub(crate) from_outside: Vec<(String, Span)>,
    /// The same by their names.
    pub(crate) outside: HashSet<String>,
    /// Those of them that are undefined, which is reported.
    pub(crate) unknown: Vec<String>,
    /// The variables that its front matter lists.
    pub(crate) listed: Vec<String>,
    /// The values of a failing validator that it reads, each with its first place.
    pub(crate) failure_values: Vec<(String, Span)>,
    /// Whether it is malformed, so that it may read unknown variables.
    pub(crate) malformed: bool,
    /// The first place of `{input_text}`.
    pub(crate) input_text: Option<Span>,
    /// Whether it reads the task, as `{input_text}` or as a variable.
    pub(crate) reads_task: bool,
}

impl Prompt {
    /// The variables that it reads, as [`normalize_variable_name`], for repeated lookup.
    pub(crate) fn read(&self) -> HashSet<Cow<'_, str>> {
        self.used.iter().map(|used| normalize_variable_name(used)).collect()
    }
}

/// The maximum number of sections one prompt may include: sections that include each other twice grow exponentially.
pub(crate) const SECTIONS_MAX: usize = 64;

impl<'c, 'f, 'j> PromptCompiler<'c, 'f, 'j> {
    /// Creates a compiler.
    pub(crate) fn new(
        loader: &'c SourceLoader<'f>,
        files: &'c PromptFiles<'j>,
        variables: &'c Variables<'c>,
        steps: &'c [StepDefinition<'j>],
        params_misread: bool,
    ) -> Self {
        let (reads, matters, outside) =
            (VariableReads::default(), FrontMatterClashes::default(), UndefinedVariables::default());
        let index = StepIndex::new(steps);
        let (seen, places) = (SharedCell::default(), SharedCell::default());
        PromptCompiler {
            loader,
            files,
            variables,
            steps,
            index,
            seen,
            params_misread,
            reads,
            outside,
            matters,
            places,
        }
    }

    /// Compiles a prompt.
    pub(crate) fn compile(&self, file: &PromptFile, scope: PromptScope<'_>, user: PromptUser<'_>) -> Prompt {
        let mut prompt = Prompt::default();
        let matter = split_front_matter(&file.text);
        let first = self.seen.lock().insert(file.path.clone());
        if first {
            check_matter(file, &matter, &self.loader.found);
            self.check_empty(file, &matter, user);
        }
        prompt.listed = matter.names("uvVariables");
        let mut body = PromptBody {
            compiler: self,
            prompt: &mut prompt,
            scope,
            user,
            step: user.step(),
            custom: matter.names("customVariables"),
            emptied: Vec::new(),
            filled: Vec::new(),
            file: file.file,
            including: Vec::new(),
            included: 0,
            stays: UnresolvedPlaceholders::default(),
        };
        let (mut pieces, prose) = (Vec::new(), Prose::of(&matter));
        if user.is_remedy() {
            let (nodes, faults) = parse_failure_prompt(matter.body);
            for fault in faults {
                self.reads.unreadable();
                body.prompt.malformed = true;
                let at = matter.body_at + fault.at;
                body.push(
                    Diagnostic::error(codes::MALFORMED_TEMPLATE, body.span(at, 2), fault.what)
                        .hint("blocks are `{{#each x}}…{{/each}}` and `{{#if x}}…{{else}}…{{/if}}`"),
                );
            }
            body.nodes(&prose, &nodes, &mut pieces);
        } else {
            if first {
                body.literal_blocks(&prose);
            }
            body.text(&prose, prose.body, prose.at, &mut pieces);
        }
        std::mem::take(&mut body.stays).findings().for_each(|finding| body.push(finding));
        let emptied = std::mem::take(&mut body.emptied);
        let filled = std::mem::take(&mut body.filled);
        if first {
            self.check_custom(file, &matter, &emptied, &filled);
        }
        prompt.template = Template { pieces };
        self.matters.compare(file, &matter, user, self.files.c1(), &prompt, &self.index);
        prompt
    }

    /// Reports a file without a prompt.
    fn check_empty(&self, file: &PromptFile, matter: &FrontMatter<'_>, user: PromptUser<'_>) {
        if !matter.body.trim().is_empty() {
            return;
        }
        // The prompt that is still to be written may read the unused variables.
        self.reads.unreadable();
        let what = if file.text.trim().is_empty() { "is empty" } else { "has a front matter, but no prompt" };
        let finding = Diagnostic::warning(
            codes::MISSING_PROMPT,
            Span::start_of(file.file),
            format!("`{}` {what}", file.path),
        );
        let finding = finding.hint("write the prompt, or remove what uses it");
        self.loader.found.push(match user.step() {
            Some(step) => finding.step(step),
            None => finding,
        });
    }

    /// Reports custom variables without a value: they are empty in the prompt, or unused.
    fn check_custom(
        &self,
        file: &PromptFile,
        matter: &FrontMatter<'_>,
        emptied: &[(String, Span)],
        filled: &[String],
    ) {
        let report = |names: &[String], span, message: String| {
            if !names.is_empty() {
                self.loader.found.push(
                    Diagnostic::warning(codes::UNKNOWN_VARIABLE, span, message)
                        .hint("use `{uv-name}` with a parameter or an input, or remove them"),
                );
            }
        };
        let (met, at): (Vec<String>, Vec<Span>) = emptied.iter().cloned().unzip();
        let at = at.first().copied().unwrap_or_default();
        report(
            &met,
            at,
            format!(
                "{} in `{}` {} no value",
                quote_names(&met),
                file.path,
                if met.len() == 1 { "has" } else { "have" }
            ),
        );
        let mut unmet = matter.names("customVariables");
        unmet.retain(|name| !met.contains(name) && !filled.contains(name));
        let start = matter.at("customVariables");
        let span =
            Span { file: file.file, start: start as u32, end: (start + "customVariables".len()) as u32 };
        report(
            &unmet,
            span,
            format!("`{}` does not use its custom variables {}", file.path, quote_names(&unmet)),
        );
    }
}
