//! Reports declarations for prompts that no prompt reads.

use std::collections::BTreeSet;

use cuegate_flow::{Str, diagnostics::Diagnostic, model::Input};

use super::compile::Prompt;
use super::step_prompt::MANY;
use crate::climpt::agent::definition::AgentDefinition;
use crate::climpt::registry::inputs::DeclaredInput;
use crate::climpt::registry::step_definition::StepDefinition;
use crate::codes;
use crate::findings::Findings;
use crate::source::shared::SharedCell;
use crate::suggest::{find_nearest_name, quote_names};
use crate::templates::is_name;

/// The variables that prompts have read so far. All prompts must be compiled before unused ones are reported.
#[derive(Debug, Default)]
pub(crate) struct VariableReads {
    params: SharedCell<BTreeSet<String>>,
    sections: SharedCell<BTreeSet<String>>,
    /// Step and name of each input.
    inputs: SharedCell<BTreeSet<(String, String)>>,
    /// Undefined variables that prompts read: they may be misspellings of declared ones.
    unknown: SharedCell<BTreeSet<String>>,
    /// Whether a prompt includes a missing section.
    unknown_section: SharedCell<bool>,
    /// Whether a prompt could not be read, so that its variables are unknown.
    unreadable: SharedCell<bool>,
}

/// Parameters that identify the resource of `poll:state` or of GitHub.
const OF_RESOURCES: [&str; 4] = ["issue", "repository", "file", "url"];

impl VariableReads {
    /// Records that a prompt reads a parameter.
    pub(crate) fn param(&self, name: &str) {
        self.params.lock().insert(name.to_owned());
    }

    /// Records that a prompt reads an undefined variable.
    pub(crate) fn unknown(&self, name: &str) {
        self.unknown.lock().insert(name.to_owned());
    }

    /// Whether a prompt reads a parameter.
    pub(crate) fn reads_param(&self, name: &str) -> bool {
        self.params.lock().contains(name)
    }

    /// Whether a prompt reads an undefined variable with a similar name, which is reported as a typo.
    fn is_meant(&self, name: &str) -> bool {
        self.unknown.lock().iter().any(|unknown| find_nearest_name(unknown, [name]).is_some())
    }

    /// Records that a prompt includes a section.
    pub(crate) fn section(&self, id: &str) {
        self.sections.lock().insert(id.to_owned());
    }

    /// Records that a prompt includes a missing section.
    pub(crate) fn unknown_section(&self) {
        *self.unknown_section.lock() = true;
    }

    /// Records the inputs that a step's prompt reads.
    pub(crate) fn inputs(&self, step: &str, inputs: &[DeclaredInput], prompt: &Prompt) {
        let reads = |declared: &&DeclaredInput| {
            prompt.used.contains(&*declared.input.name) || prompt.used.contains(&declared.variable)
        };
        let read = inputs.iter().filter(reads);
        self.inputs.lock().extend(read.map(|read| (step.to_owned(), read.input.name.to_string())));
    }

    /// Records that a prompt could not be read.
    pub(crate) fn unreadable(&self) {
        *self.unreadable.lock() = true;
    }

    /// Reports unused declarations. Reports nothing when a prompt could not be read, or when no step can be asked: both
    /// have been reported.
    pub(crate) fn report(
        &self,
        agent: &AgentDefinition<'_>,
        steps: &[StepDefinition<'_>],
        inputs: &[(&str, Vec<DeclaredInput>)],
        found: &Findings,
    ) {
        if self.unreadable.get() || steps.iter().all(|step| step.section) {
            return;
        }
        self.report_params(agent, found);
        self.report_sections(steps, found);
        let sections: BTreeSet<&str> = steps.iter().filter(|step| step.section).map(|step| step.id).collect();
        for (step, inputs) in inputs {
            // Settings without effect in a section have been reported.
            if !sections.contains(step) {
                self.report_inputs(step, inputs, found);
            }
        }
    }

    /// Reports the unused parameters, if every prompt could be read.
    pub(crate) fn report_unread_params(&self, agent: &AgentDefinition<'_>, found: &Findings) {
        if !self.unreadable.get() {
            self.report_params(agent, found);
        }
    }

    fn report_params(&self, agent: &AgentDefinition<'_>, found: &Findings) {
        let read = self.params.lock();
        let resource =
            agent.conduct.issue.is_some() || matches!(agent.verdict.kind, "poll:state" | "meta:composite");
        for param in agent.params.iter().filter(|param| !read.contains(&*param.name)) {
            if resource && OF_RESOURCES.contains(&&*param.name) || self.is_meant(&param.name) {
                continue;
            }
            let name = &param.name;
            let message = format!("no prompt reads the parameter `{name}`, so giving it changes nothing");
            let hint = match is_name(name) {
                true => format!("write `{{uv-{name}}}` in the prompt that needs it, or remove the parameter"),
                false => {
                    "rename it: names that prompts can read have letters, digits, `_`, `-` and `.`".to_owned()
                }
            };
            found.push(Diagnostic::warning(codes::UNUSED_VARIABLE, param.span, message).hint(hint));
        }
    }

    fn report_sections(&self, steps: &[StepDefinition<'_>], found: &Findings) {
        if self.unknown_section.get() {
            return;
        }
        let included = self.sections.lock();
        for step in steps.iter().filter(|step| step.section && !included.contains(step.id)) {
            let hint = match step.id.starts_with("section.") {
                true => format!("write `{{{}}}` in the prompt it belongs to, or remove the step", step.id),
                false => format!("call it `section.{}` and include it by that name", step.id),
            };
            found.push(
                Diagnostic::warning(
                    codes::UNUSED_DEFINITION,
                    step.span,
                    format!("no prompt includes `{}`", step.id),
                )
                .step(step.id)
                .hint(hint),
            );
        }
    }

    fn report_inputs(&self, step: &str, inputs: &[DeclaredInput], found: &Findings) {
        let read = self.inputs.lock();
        let is_read = |name: &Str| read.contains(&(step.to_owned(), name.to_string())) || self.is_meant(name);
        let mut unread: Vec<&Input> =
            inputs.iter().map(|declared| &declared.input).filter(|input| !is_read(&input.name)).collect();
        if unread.len() >= MANY {
            let names: Vec<&str> = unread.iter().map(|input| &*input.name).collect();
            let message = format!("no prompt of `{step}` reads its inputs {}", quote_names(&names));
            let finding = Diagnostic::warning(codes::UNUSED_VARIABLE, unread[0].span, message).step(step);
            found.push(
                finding.hint("see that it is the right prompt, and read them there, or remove the inputs"),
            );
            unread.clear();
        }
        for input in unread {
            let message = format!("no prompt of `{step}` reads its input `{}`", input.name);
            found.push(
                Diagnostic::warning(codes::UNUSED_VARIABLE, input.span, message)
                    .step(step)
                    .hint(format!("write `{{uv-{}}}` in the prompt, or remove the input", input.name)),
            );
        }
    }
}
