//! Lowers the verdict of an agent, and checks it against the registry.

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::{Act, Draft, Handler, LimitKey, LimitTarget, Param, Poll, Program, Resource, Verdict},
};

use super::agent::completion_type::CompletionRule;
use super::agent::entries::entry_step;
use super::agent::parameters::same_name;
use crate::climpt::kinds::StepKind;
use crate::climpt::lower::Definition;
use crate::climpt::prompts::compile::PromptCompiler;
use crate::climpt::validation::program::read_program;
use crate::codes;
use crate::source::files::join_path;
use crate::values::json::Text;

/// Lowers the verdict of an agent.
pub(crate) fn lower_verdict(
    definition: &Definition<'_, '_, '_>,
    params: &[Param],
    compiler: &PromptCompiler<'_, '_, '_>,
) -> Verdict {
    let checking = definition
        .registry
        .steps
        .iter()
        .filter(|step| !step.section && matches!(step.kind, Some(StepKind::Verification | StepKind::Closure)))
        .map(|step| step.id.into())
        .collect();
    VerdictLowering { definition, params, compiler, checking }.lower(&definition.agent.verdict.rule)
}

struct VerdictLowering<'l, 'd, 'f, 'j> {
    definition: &'l Definition<'d, 'f, 'j>,
    params: &'l [Param],
    compiler: &'l PromptCompiler<'l, 'f, 'j>,
    /// Steps whose answers count as checks.
    checking: Vec<Str>,
}

impl VerdictLowering<'_, '_, '_, '_> {
    fn lower(&self, rule: &CompletionRule<'_>) -> Verdict {
        match rule {
            CompletionRule::Graph | CompletionRule::Never => Verdict::Flow,
            CompletionRule::Iterations(max, _) => Verdict::Iterations(*max),
            CompletionRule::Checks(max, _) => Verdict::Checks { max: *max, of: self.checking.clone() },
            CompletionRule::Keyword(keyword) => Verdict::Keyword((*keyword).into()),
            CompletionRule::Signal(signal) => Verdict::Signal(signal.clone()),
            CompletionRule::Poll(resource, state, span) => match self.which(*resource, *span) {
                Some(param) => Verdict::Poll(Poll { resource: *resource, param, state: state.clone() }),
                None => Verdict::Flow,
            },
            CompletionRule::Handler(path, config) => match self.handler(*path) {
                Some(program) => Verdict::Handler(Handler { program, config: config.clone() }),
                None => Verdict::Flow,
            },
            CompletionRule::Composite(operator, parts) => {
                let parts = parts.iter().map(|part| self.lower(part)).collect();
                match *operator {
                    "and" => Verdict::Every(parts),
                    "or" => Verdict::Any(parts),
                    _ => Verdict::First(parts),
                }
            }
        }
    }

    /// The parameter that selects the resource.
    fn which(&self, resource: Resource, span: Span) -> Option<Str> {
        let (name, what, value) = match resource {
            Resource::File => ("file", "a file", "PATH"),
            Resource::Api => ("url", "an address", "URL"),
            // `--issue` gives the number also where no parameter does.
            Resource::Issue => return Some(self.number(&["issue"])),
            Resource::Project => return Some(self.number(&["project", "projectNumber"])),
        };
        let found = &self.definition.loader.found;
        let Some(param) = self.params.iter().find(|param| same_name(&param.name, name)) else {
            let message = format!("the verdict looks at {what}, and no parameter `{name}` says which");
            found.push(
                Diagnostic::error(codes::MISSING_KEY, span, message)
                    .hint(format!("declare the parameter `{name}`, or give it with `--set {name}={value}`")),
            );
            return None;
        };
        self.compiler.reads.param(&param.name);
        // Values given with `--set` are always present.
        let declared = self.definition.agent.params.iter().any(|declared| declared.name == param.name);
        if declared && !param.required && param.default.is_none() {
            let message = format!("the verdict looks at {what}, and the parameter `{name}` can be left out");
            found.push(
                Diagnostic::error(codes::MISSING_KEY, param.span, message)
                    .hint("set `\"required\": true`, or give it a `default`"),
            );
        }
        Some(param.name.clone())
    }

    /// The parameter with the number of an issue or a project.
    fn number(&self, names: &[&'static str]) -> Str {
        let mut params =
            names.iter().filter_map(|name| self.params.iter().find(|param| same_name(&param.name, name)));
        match params.next() {
            Some(param) => {
                self.compiler.reads.param(&param.name);
                param.name.clone()
            }
            None => names[0].into(),
        }
    }

    fn handler(&self, path: Text<'_>) -> Option<Program> {
        let Definition { places, loader, .. } = self.definition;
        let joined = join_path(places.agent_dir, path.text)?;
        let program = read_program(loader, &joined, path.span)?;
        Some(Program { path: path.text.into(), ..program })
    }
}

/// The keys of a verdict's counters, besides the iteration limit of the run.
pub(crate) fn verdict_keys(rule: &CompletionRule<'_>, draft: &mut Draft) {
    let mut places = 0;
    add_keys(rule, &mut places, draft);
}

fn add_keys(rule: &CompletionRule<'_>, places: &mut u32, draft: &mut Draft) {
    let turn = LimitTarget::Part(*places);
    *places += 1;
    match rule {
        CompletionRule::Iterations(max, Some(span)) => {
            draft.keys.push(LimitKey::new("maxIterations", *span, *max, 1, turn));
        }
        CompletionRule::Checks(max, span) => {
            draft.keys.push(LimitKey::new("maxChecks", *span, *max, 1, turn))
        }
        CompletionRule::Composite(_, parts) => parts.iter().for_each(|part| add_keys(part, places, draft)),
        _ => {}
    }
}

/// Checks a verdict against the lowered flow: a verdict that bypasses validators, or that never holds.
pub(crate) fn check_verdict(definition: &Definition<'_, '_, '_>, draft: &Draft) {
    let settings = &definition.agent.verdict;
    let found = &definition.loader.found;
    // A verdict that prevents every run from starting is reported as that.
    let mapping = definition.registry.entry_mapping.iter().copied();
    let begins =
        settings.entry.or_else(|| entry_step(settings.kind, mapping, definition.registry.entry_step));
    let mut guards = draft.steps.iter().filter(|_| begins.is_some());
    let guarded = guards.find(|step| matches!(step.act, Act::Exec { .. }));
    if let (Some(step), true) = (guarded, draft.verdict.can_fire_within(draft.limits.iterations_max)) {
        let message = match &draft.verdict {
            Verdict::Iterations(max) => {
                format!(
                    "`count:iteration` can complete the run after {max} iterations before its validators run"
                )
            }
            _ => format!("`{}` can complete the run before its validators have passed", settings.kind),
        };
        let ending = definition.registry.generation.ending().as_str();
        found.push(
            Diagnostic::warning(codes::CLOSURE_SKIPPED, step.span, message)
                .hint(format!("use `detect:graph`, where only `{ending}` completes the run")),
        );
    }
    let Some(span) = settings.span else { return };
    let mut whys = Vec::new();
    if let CompletionRule::Checks(..) | CompletionRule::Composite(..) = settings.rule {
        explain_unsatisfiable_parts(&settings.rule, span, draft, &mut whys);
    }
    // The other parts of the verdict can still complete runs.
    let hint = match draft.verdict.can_fire_within(draft.limits.iterations_max) {
        true => "correct it, or leave it out",
        false => "correct it, or leave it out: only an end of the flow completes the run then",
    };
    for (span, why) in whys {
        found.push(Diagnostic::warning(codes::VERDICT_NEVER_HOLDS, span, why).hint(hint));
    }
}

/// Why parts of a verdict never hold, and where: at the part if its place is known, else at the whole verdict.
fn explain_unsatisfiable_parts(
    rule: &CompletionRule<'_>,
    whole: Span,
    draft: &Draft,
    whys: &mut Vec<(Span, String)>,
) {
    match rule {
        CompletionRule::Checks(..) if !has_check_steps(&draft.verdict) => {
            let why =
                "`count:check` counts answers of verification and closure steps, and there is no such step";
            whys.push((whole, why.to_owned()));
        }
        CompletionRule::Iterations(max, span) if *max > draft.limits.iterations_max => {
            let limit = draft.limits.iterations_max;
            let why = format!(
                "`count:iteration` holds after {max} iterations, and the limit of the run is {limit}"
            );
            whys.push((span.unwrap_or(whole), why));
        }
        CompletionRule::Composite(operator, parts) => {
            if *operator == "and" && parts.iter().any(|part| matches!(part, CompletionRule::Graph)) {
                let why = "`and` waits for `detect:graph`, and at an end of the flow the run is over anyway";
                whys.push((whole, why.to_owned()));
            }
            parts.iter().for_each(|part| explain_unsatisfiable_parts(part, whole, draft, whys));
        }
        _ => {}
    }
}

/// Whether the answers of any step count as checks.
fn has_check_steps(verdict: &Verdict) -> bool {
    verdict.places().iter().any(|(_, part)| matches!(part, Verdict::Checks { of, .. } if !of.is_empty()))
}
