//! Finds the prompts of a check flow, by path or by parts, and compiles them.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};

use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::Template,
};

use super::steps::{CheckFlow, CheckedStep, PromptPlace, PromptReference};
use crate::climpt::agent::definition::AgentDefinition;
use crate::climpt::agent::parameters::normalize_variable_name;
use crate::climpt::agent_paths::AgentFolder;
use crate::climpt::prompts::compile::{Prompt, PromptCompiler};
use crate::climpt::prompts::files::PromptFile;
use crate::climpt::prompts::front_matter::PromptUser;
use crate::climpt::prompts::step_prompt::{find_unread_variables, unread_hint};
use crate::climpt::prompts::variables::{Inputs, PromptScope};
use crate::codes;
use crate::findings::Findings;
use crate::source::files::join_path;
use crate::source::loader::{LoadedFile, SourceLoader};
use crate::suggest::quote_names;
use crate::values::json::Text;

/// The prompt bases, and how many of them, counted from the first, belong to `basePath`.
fn bases_of(
    flow: &CheckFlow<'_>,
    agent: &AgentDefinition<'_>,
    places: &AgentFolder<'_>,
    found: &Findings,
) -> (Vec<String>, usize) {
    let add = |bases: &mut Vec<String>, base: &str, span: Span| {
        for place in places.candidates(base, span, found) {
            if !bases.contains(&place) {
                bases.push(place);
            }
        }
    };
    let mut bases = Vec::new();
    if let Some(base) = flow.base {
        add(&mut bases, base.text, base.span);
    }
    let own = bases.len();
    let (fallback_dir, span) = agent.fallback_dir;
    add(&mut bases, fallback_dir, span.unwrap_or(flow.span));
    (bases, own)
}

/// The path of a prompt below a base.
fn relative_path_of_prompt(reference: &PromptReference<'_>, editions: &[(&str, &str)]) -> String {
    match reference.place {
        PromptPlace::Path(path) => path.text.to_owned(),
        PromptPlace::Parts { c1, c2, c3, edition, adaptation } => {
            let file = editions.iter().find(|(name, _)| *name == edition);
            let edition = file.map_or(edition, |(_, file)| file);
            let adaptation = adaptation.map(|adaptation| format!("_{adaptation}")).unwrap_or_default();
            format!("{c1}/{c2}/{c3}/f_{edition}{adaptation}.md")
        }
    }
}

/// The prompt bases of a check flow.
pub(super) struct CheckFlowPrompts<'p, 'f, 'j> {
    compiler: &'p PromptCompiler<'p, 'f, 'j>,
    bases: Vec<String>,
    /// How many of these belong to `basePath`.
    own: usize,
    /// Whether prompts were found below those, and below others.
    found: Cell<(bool, bool)>,
    editions: &'p [(&'j str, &'j str)],
}

impl<'p, 'f, 'j> CheckFlowPrompts<'p, 'f, 'j> {
    /// First below `basePath`, then below the agent's `fallbackDir`.
    pub(super) fn new(
        flow: &'p CheckFlow<'j>,
        agent: &AgentDefinition<'_>,
        places: &AgentFolder<'_>,
        compiler: &'p PromptCompiler<'p, 'f, 'j>,
    ) -> CheckFlowPrompts<'p, 'f, 'j> {
        let (bases, own) = bases_of(flow, agent, places, &compiler.loader.found);
        CheckFlowPrompts { compiler, bases, own, found: Cell::default(), editions: &flow.editions }
    }

    /// Compiles the prompts of a step and of its check, and compares the step's declarations with what they read.
    pub(super) fn of(&self, step: &CheckedStep<'_>) -> (Template, Template) {
        let work = self.prompt(step, step.prompt.as_ref(), "prompt");
        let check = step.check.as_ref().and_then(|check| check.prompt.as_ref());
        let check = self.prompt(step, check, "check");
        if let (Some((work, at)), Some((check, _))) = (&work, &check) {
            self.compare(step, [work, check], *at);
        }
        let template = |prompt: Option<(Prompt, Span)>| prompt.map(|(prompt, _)| prompt.template);
        (template(work).unwrap_or_default(), template(check).unwrap_or_default())
    }

    /// A prompt and the start of its file; `None` when it is missing, which is reported.
    fn prompt(
        &self,
        step: &CheckedStep<'_>,
        reference: Option<&PromptReference<'_>>,
        what: &str,
    ) -> Option<(Prompt, Span)> {
        let found = reference.and_then(|reference| self.find(step, reference, what));
        let Some((file, reference, by_fallback)) = found else {
            self.compiler.reads.unreadable();
            return None;
        };
        let mut said: Vec<(&'static str, &str)> = Vec::new();
        if let (PromptPlace::Parts { c1, c2, c3, edition, adaptation }, false) =
            (reference.place, by_fallback)
        {
            said.extend([("c1", c1), ("c2", c2), ("c3", c3), ("edition", edition)]);
            said.extend(adaptation.map(|adaptation| ("adaptation", adaptation)));
        }
        let user = PromptUser::Reference { step: step.id, said: &said };
        let start = Span::start_of(file.file);
        Some((self.compiler.compile(&file, PromptScope::Step(Inputs::few(&[])), user), start))
    }

    fn find<'r, 's>(
        &self,
        step: &CheckedStep<'_>,
        reference: &'r PromptReference<'s>,
        what: &str,
    ) -> Option<(PromptFile, &'r PromptReference<'s>, bool)> {
        let mut tried = Vec::new();
        let fallback = reference.fallback.map(|fallback: Text<'_>| fallback.text.to_owned());
        let own = relative_path_of_prompt(reference, self.editions);
        for (index, relative) in std::iter::once(own).chain(fallback).enumerate() {
            for (at, base) in self.bases.iter().enumerate() {
                let Some(path) = join_path(base, &relative) else {
                    let message = format!("`{relative}` leads out of the project");
                    self.push(
                        step,
                        Diagnostic::error(codes::ESCAPES_ROOT, reference.span, message)
                            .hint("keep the prompts of an agent in its folder or in the project"),
                    );
                    return None;
                };
                match self.compiler.loader.page(&path) {
                    LoadedFile::Text { file, text } => {
                        let (own, other) = self.found.get();
                        self.found.set((own || at < self.own, other || at >= self.own));
                        return Some((PromptFile { path, file, text, by: index }, reference, index > 0));
                    }
                    LoadedFile::Missing if tried.contains(&path) => {}
                    LoadedFile::Missing => tried.push(path),
                    LoadedFile::Faulty => return None,
                }
            }
        }
        if reference.misread {
            return None;
        }
        let message =
            format!("`{}` has no prompt for its `{what}`: no file {}", step.id, quote_names(&tried));
        self.push(
            step,
            Diagnostic::error(codes::MISSING_PROMPT, reference.span, message)
                .hint("write the file, or correct the path"),
        );
        None
    }

    /// Reports a `basePath` without prompts, if other bases have some.
    pub(super) fn report_unused(&self, flow: &CheckFlow<'_>) {
        if let (Some(base), 1.., (false, true)) = (flow.base, self.own, self.found.get()) {
            let message = format!("no prompt was found below `{}`", base.text);
            let hint = "correct the path, or name the folder where the prompts are";
            let finding = Diagnostic::warning(codes::UNUSED_KEY, base.span, message).hint(hint);
            self.compiler.loader.found.push(finding);
        }
    }

    /// Checks that the variables and the task use that a step declares match what its prompts read.
    fn compare(&self, step: &CheckedStep<'_>, prompts: [&Prompt; 2], at: Span) {
        if let Some(declared) = &step.variables {
            self.compare_variables(step, declared, prompts);
        }
        let reads_task = prompts.iter().any(|prompt| prompt.reads_task);
        match step.uses_stdin {
            Some((true, span)) if !reads_task => {
                let message =
                    format!("`usesStdin` asks for the task, which no prompt of `{}` reads", step.id);
                self.push(
                    step,
                    Diagnostic::warning(codes::UNUSED_VARIABLE, span, message)
                        .hint("write `{input_text}` in a prompt, or make it false"),
                );
            }
            Some((false, _)) if reads_task => {
                let at = prompts.iter().find_map(|prompt| prompt.input_text).unwrap_or(at);
                let message =
                    format!("a prompt of `{}` reads the task, but its `usesStdin` is false", step.id);
                self.push(
                    step,
                    Diagnostic::warning(codes::UNDECLARED_VARIABLE, at, message)
                        .hint("make `usesStdin` true: a run needs the task either way"),
                );
            }
            _ => {}
        }
    }

    fn compare_variables(&self, step: &CheckedStep<'_>, declared: &[Text<'_>], prompts: [&Prompt; 2]) {
        let listed: HashSet<Cow<'_, str>> =
            declared.iter().map(|known| normalize_variable_name(known.text)).collect();
        // An undefined variable is reported already; it is not reported as undeclared, too.
        let unlisted = prompts.into_iter().flat_map(|prompt| {
            let is_given = |name: &String| !prompt.unknown.contains(name);
            prompt.from_outside.iter().filter(move |(name, _)| is_given(name))
        });
        let unlisted: Vec<_> =
            unlisted.filter(|(name, _)| !listed.contains(&normalize_variable_name(name))).collect();
        let names: BTreeSet<Cow<'_, str>> =
            unlisted.iter().map(|(name, _)| normalize_variable_name(name)).collect();
        let unread = find_unread_variables(declared, &prompts);
        // An unused declared variable beside a similar undeclared one is a typo, reported where the prompt reads it.
        if let ([name], [only]) = (&unread[..], &*Vec::from_iter(&names)) {
            let message = format!(
                "`variables` list `{}`, which no prompt of `{}` reads, and not its `{only}`",
                name.text, step.id
            );
            let hint = format!("write `{only}` in its place, or remove it and add `{only}`");
            return self
                .push(step, Diagnostic::warning(codes::UNUSED_VARIABLE, name.span, message).hint(hint));
        }
        for (name, span) in unlisted {
            let message =
                format!("a prompt of `{}` reads `{name}`, which its `variables` do not list", step.id);
            let hint = format!("add `{name}` to `variables`");
            self.push(step, Diagnostic::warning(codes::UNDECLARED_VARIABLE, *span, message).hint(hint));
        }
        for name in unread {
            let message = format!("`variables` list `{}`, which no prompt of `{}` reads", name.text, step.id);
            let hint = unread_hint(name.text, &prompts, "a prompt");
            self.push(step, Diagnostic::warning(codes::UNUSED_VARIABLE, name.span, message).hint(hint));
        }
    }

    fn push(&self, step: &CheckedStep<'_>, finding: Diagnostic) {
        let loader: &SourceLoader<'_> = self.compiler.loader;
        loader.found.push(finding.step(step.id));
    }
}
