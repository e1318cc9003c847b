//! Finds and compiles the prompt of a step, and compares it with the step's declarations.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::{IssueClosure, Piece, Template},
};

use super::builtin::{built_in, guess_prompt_key, list_prompt_keys};
use super::compile::{Prompt, PromptCompiler};
use super::files::{PromptFile, PromptKey, Search};
use super::front_matter::PromptUser;
use super::variables::PromptScope;
use crate::climpt::agent::parameters::normalize_variable_name;
use crate::climpt::generation::Generation;
use crate::climpt::kinds::StepKind;
use crate::climpt::registry::step_definition::StepDefinition;
use crate::codes;
use crate::suggest::{find_nearest_name, quote_names};
use crate::templates::is_name;
use crate::values::json::Text;

/// The prompts that can serve a step, best first: a closure step tries the adaptation of the closure action first, then
/// its own.
pub(crate) fn keys_of<'s>(step: &StepDefinition<'s>, action: Option<IssueClosure>) -> Vec<PromptKey<'s>> {
    let (Some(c2), Some(c3)) = (step.c2, step.c3) else { return Vec::new() };
    let adaptation = step.adaptation.map(|adaptation| adaptation.text);
    let own = PromptKey { c2: c2.text, c3: c3.text, edition: step.edition(), adaptation };
    let adapted = action.filter(|_| step.kind == Some(StepKind::Closure)).map(IssueClosure::as_str);
    let adapted = adapted.map(|adaptation| PromptKey { adaptation: Some(adaptation), ..own });
    adapted.into_iter().chain([own]).collect()
}

/// The template of a step's prompt; empty when the prompt is missing, which is reported.
pub(crate) fn step_prompt(
    step: &StepDefinition<'_>,
    scope: PromptScope<'_>,
    action: Option<IssueClosure>,
    compiler: &PromptCompiler<'_, '_, '_>,
) -> Template {
    let keys = keys_of(step, action);
    if keys.is_empty() {
        compiler.reads.unreadable();
        return Template::default();
    }
    match compiler.files.find(&keys, step.span, compiler.loader) {
        Search::Found(file) => {
            check_adaptation(step, keys[file.by].adaptation, compiler);
            check_fallback(step, compiler);
            let prompt = compiler.compile(&file, scope, PromptUser::Step { step, key: keys[file.by] });
            // An empty prompt has been reported.
            if !is_blank(&prompt.template) {
                check_variables(step, &prompt, Span::start_of(file.file), compiler);
                check_task(step, &prompt, compiler);
            }
            if let PromptScope::Step(inputs) = scope {
                compiler.reads.inputs(step.id, inputs.all, &prompt);
            }
            prompt.template
        }
        Search::Missing(tried) => {
            if let Some(key) = step.fallback_key.filter(|_| !step.section)
                && let Some(file) =
                    built_in(key.text, key.span, Some(step), compiler.variables, compiler.loader)
            {
                report_fallback(step, key, &tried, compiler);
                return compile_built_in(step, &file, keys[0], scope, compiler);
            }
            compiler.reads.unreadable();
            report_missing(step, &tried, compiler);
            Template::default()
        }
        Search::Faulty => {
            compiler.reads.unreadable();
            Template::default()
        }
    }
}

/// Whether a template is empty.
pub(crate) fn is_blank(template: &Template) -> bool {
    template.pieces.iter().all(|piece| matches!(piece, Piece::Text(text) if text.trim().is_empty()))
}

/// A finished registry of the "complete" generation has a file for every prompt; built-in prompts are only a safety net
/// ("Step Flow Design", the contract of prompts).
fn report_fallback(
    step: &StepDefinition<'_>,
    key: Text<'_>,
    tried: &[String],
    compiler: &PromptCompiler<'_, '_, '_>,
) {
    if step.generation == Generation::Complete {
        let (id, key_text) = (step.id, key.text);
        let message = format!("`{id}` has no prompt file, and the built-in `{key_text}` is only for safety");
        compiler.loader.found.push(
            Diagnostic::warning(codes::MISSING_PROMPT, key.span, message)
                .step(id)
                .hint(format!("write {}", quote_names(tried))),
        );
    }
}

/// The template of a built-in prompt. What it reads is known, so that `uvVariables` need not list it; what they list all
/// the same has to stand in it.
fn compile_built_in(
    step: &StepDefinition<'_>,
    file: &PromptFile,
    key: PromptKey<'_>,
    scope: PromptScope<'_>,
    compiler: &PromptCompiler<'_, '_, '_>,
) -> Template {
    let prompt = compiler.compile(file, scope, PromptUser::Step { step, key });
    report_unread(step, &prompt, compiler);
    check_task(step, &prompt, compiler);
    if let PromptScope::Step(inputs) = scope {
        compiler.reads.inputs(step.id, inputs.all, &prompt);
    }
    prompt.template
}

/// Reports an adaptation of the step without effect, because the closure action's adaptation takes precedence.
fn check_adaptation(step: &StepDefinition<'_>, found: Option<&str>, compiler: &PromptCompiler<'_, '_, '_>) {
    let own = step.adaptation.filter(|own| Some(own.text) != found);
    if let (Some(own), Some(found)) = (own, found) {
        let message = format!("`{}` has no effect: the closure action's prompt `{found}` is there", own.text);
        compiler.loader.found.push(
            Diagnostic::warning(codes::UNUSED_KEY, own.span, message)
                .step(step.id)
                .hint("remove `adaptation`, or change `defaultClosureAction`"),
        );
    }
}

/// Reports a key of no built-in prompt beside a prompt file: nothing would stand in for the file.
fn check_fallback(step: &StepDefinition<'_>, compiler: &PromptCompiler<'_, '_, '_>) {
    let unknown =
        step.fallback_key.filter(|key| !step.section && !list_prompt_keys().any(|known| known == key.text));
    if let Some(key) = unknown {
        compiler.loader.found.push(
            Diagnostic::warning(
                codes::MISSING_PROMPT,
                key.span,
                format!("there is no built-in prompt `{}` for `{}`", key.text, step.id),
            )
            .step(step.id)
            .hint(fallback_hint(key.text, "remove `fallbackKey`: the step has a prompt file")),
        );
    }
}

fn fallback_hint(key: &str, otherwise: &str) -> String {
    match guess_prompt_key(key) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.to_owned(),
    }
}

/// Says that a prompt is missing; where that is said.
fn report_missing(step: &StepDefinition<'_>, tried: &[String], compiler: &PromptCompiler<'_, '_, '_>) {
    let tried = quote_names(tried);
    let finding = match step.fallback_key {
        Some(key) if !step.section => {
            Diagnostic::error(
                codes::MISSING_PROMPT,
                key.span,
                // The wording of "14. Steps Registry", 14.4.1.
                format!(
                    "No fallback prompt found for key: \"{}\" (step: {}), and there is no file {tried}",
                    key.text, step.id
                ),
            )
            .hint(fallback_hint(key.text, "write the file"))
        }
        _ => Diagnostic::error(
            codes::MISSING_PROMPT,
            step.span,
            format!("`{}` has no prompt: no file {tried}", step.id),
        )
        .hint("write the file"),
    };
    compiler.files.add_missing_prompt(finding.step(step.id));
}

/// Compares the variables that a step declares with those that its prompt reads.
fn check_variables(
    step: &StepDefinition<'_>,
    prompt: &Prompt,
    start: Span,
    compiler: &PromptCompiler<'_, '_, '_>,
) {
    let Some(declared) = &step.variables else { return };
    let found = &compiler.loader.found;
    let names: HashSet<Cow<'_, str>> =
        declared.iter().map(|known| normalize_variable_name(known.text)).collect();
    let declares = |name: &str| names.contains(&normalize_variable_name(name));
    // An undefined variable is reported already; it is not reported as undeclared, too.
    let unknown: HashSet<&String> = prompt.unknown.iter().collect();
    let is_given = |name: &String| !unknown.contains(name);
    let read = prompt.from_outside.iter().filter(|(name, _)| is_given(name) && !declares(name));
    let listed = prompt.listed.iter().filter(|name| !declares(name));
    // An unused declared variable beside a similar undeclared one is a typo, reported where the prompt reads it.
    let undeclared: BTreeSet<Cow<'_, str>> = read
        .clone()
        .map(|(name, _)| name)
        .chain(listed.clone())
        .map(|name| normalize_variable_name(name))
        .collect();
    if let ([name], [only]) =
        (find_unread_variables(declared, &[prompt]).as_slice(), &*Vec::from_iter(&undeclared))
    {
        let message = format!(
            "`uvVariables` list `{}`, which the prompt of `{}` does not read, and not its `{only}`",
            name.text, step.id
        );
        found.push(
            Diagnostic::warning(codes::UNUSED_VARIABLE, name.span, message)
                .step(step.id)
                .hint(format!("write `{only}` in its place, or remove it and add `{only}`")),
        );
        return;
    }
    for (name, span) in read {
        let message =
            format!("the prompt of `{}` reads `{name}`, which its `uvVariables` do not list", step.id);
        found.push(
            Diagnostic::warning(codes::UNDECLARED_VARIABLE, *span, message)
                .step(step.id)
                .hint(format!("add `{name}` to `uvVariables`")),
        );
    }
    // Variables that the prompt reads are reported at the prompt.
    let is_read = |name: &str| {
        prompt
            .from_outside
            .iter()
            .any(|(read, _)| normalize_variable_name(read) == normalize_variable_name(name))
    };
    for name in listed.filter(|name| !is_read(name)) {
        let message = format!("the front matter lists `{name}`, which `uvVariables` of `{}` do not", step.id);
        found.push(
            Diagnostic::warning(codes::UNDECLARED_VARIABLE, start, message)
                .step(step.id)
                .hint(format!("add `{name}` to `uvVariables`, or remove it from the front matter")),
        );
    }
    report_unread(step, prompt, compiler);
}

/// From this number on, the unused variables of a prompt are reported together.
pub(crate) const MANY: usize = 3;

/// Reports variables that a step declares and its prompt does not read.
fn report_unread(step: &StepDefinition<'_>, prompt: &Prompt, compiler: &PromptCompiler<'_, '_, '_>) {
    let found = &compiler.loader.found;
    let declared = step.variables.as_deref().unwrap_or_default();
    let is_slip =
        |name: &&Text<'_>| find_nearest_name(name.text, prompt.used.iter().map(String::as_str)).is_some();
    let (mut slips, others): (Vec<&Text<'_>>, Vec<&Text<'_>>) =
        find_unread_variables(declared, &[prompt]).into_iter().partition(is_slip);
    // Many unused variables have one cause: it is another prompt, or it was rewritten.
    if others.len() >= MANY {
        let names: Vec<&str> = others.iter().map(|name| name.text).collect();
        let (names, id) = (quote_names(&names), step.id);
        let message = format!("`uvVariables` list {names}, which the prompt of `{id}` does not read");
        let finding = Diagnostic::warning(codes::UNUSED_VARIABLE, others[0].span, message).step(id);
        found.push(
            finding
                .hint("see that it is the right prompt, and read them there, or remove them from the list"),
        );
    } else {
        slips.extend(others);
    }
    for name in slips {
        let message =
            format!("`uvVariables` list `{}`, which the prompt of `{}` does not read", name.text, step.id);
        found.push(
            Diagnostic::warning(codes::UNUSED_VARIABLE, name.span, message).step(step.id).hint(unread_hint(
                name.text,
                &[prompt],
                "the prompt",
            )),
        );
    }
}

/// The hint for a listed variable that the named prompts do not read.
pub(crate) fn unread_hint(name: &str, prompts: &[&Prompt], called: &str) -> String {
    let read = prompts.iter().flat_map(|prompt| prompt.used.iter().map(String::as_str));
    match find_nearest_name(name, read) {
        Some(near) => format!("did you mean `{near}`?"),
        None if !is_name(name) => "no placeholder can be called so: remove it from the list".to_owned(),
        None => format!("write `{{uv-{name}}}` in {called}, or remove it from the list"),
    }
}

/// The listed variables that none of the prompts reads.
pub(crate) fn find_unread_variables<'t, 'j>(
    declared: &'t [Text<'j>],
    prompts: &[&Prompt],
) -> Vec<&'t Text<'j>> {
    // A similar undefined variable may be a misspelling of this one.
    let unknown = prompts.iter().flat_map(|prompt| &prompt.unknown);
    let is_meant = |name: &str| unknown.clone().any(|unknown| find_nearest_name(unknown, [name]).is_some());
    let read: HashSet<Cow<'_, str>> = prompts.iter().flat_map(|prompt| prompt.read()).collect();
    let unread = declared.iter().filter(|name| !read.contains(&normalize_variable_name(name.text)));
    unread.filter(|name| !is_meant(name.text)).collect()
}

/// Compares the step's declared use of the task with its prompt. (In a section the declaration has no effect, which is
/// reported where it is read.)
fn check_task(step: &StepDefinition<'_>, prompt: &Prompt, compiler: &PromptCompiler<'_, '_, '_>) {
    let (Some((uses, span)), false) = (step.uses_stdin, step.section) else { return };
    let found = &compiler.loader.found;
    if uses && !prompt.reads_task {
        found.push(
            Diagnostic::warning(
                codes::UNUSED_VARIABLE,
                span,
                format!("`usesStdin` asks for the task, which the prompt of `{}` does not read", step.id),
            )
            .step(step.id)
            .hint("write `{input_text}` in the prompt, or make `usesStdin` false"),
        );
    }
    if let Some(at) = prompt.input_text.filter(|_| !uses) {
        found.push(
            Diagnostic::warning(
                codes::UNDECLARED_VARIABLE,
                at,
                format!("the prompt of `{}` reads the task, but its `usesStdin` is false", step.id),
            )
            .step(step.id)
            .hint("make `usesStdin` true: a run needs the task either way"),
        );
    }
}
