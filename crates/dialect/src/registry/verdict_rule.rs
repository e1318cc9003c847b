//! What a verdict comes down to in a flow, and what can be said about it only once the registry is known.

use cuegate_flow::{Act, Diagnostic, Draft, Handler, Param, Poll, Resource, Span, Str, Verdict};

use super::kinds::StepKind;
use super::lower::Definition;
use super::parameters::same_name;
use super::prompt::Compiler;
use super::verdict::Rule;
use crate::codes;
use crate::desk::Page;
use crate::files::join;
use crate::json::Text;

/// Lowers the verdict of an agent.
pub(crate) fn lower_verdict(
    definition: &Definition<'_, '_, '_>,
    params: &[Param],
    compiler: &Compiler<'_, '_, '_>,
) -> Verdict {
    let checking = definition
        .registry
        .steps
        .iter()
        .filter(|step| !step.section && matches!(step.kind, Some(StepKind::Verification | StepKind::Closure)))
        .map(|step| step.id.into())
        .collect();
    Lowering { definition, params, compiler, checking }.lower(&definition.agent.verdict.rule)
}

struct Lowering<'l, 'd, 'f, 'j> {
    definition: &'l Definition<'d, 'f, 'j>,
    params: &'l [Param],
    compiler: &'l Compiler<'l, 'f, 'j>,
    /// Steps whose answers count as checks.
    checking: Vec<Str>,
}

impl Lowering<'_, '_, '_, '_> {
    fn lower(&self, rule: &Rule<'_>) -> Verdict {
        match rule {
            Rule::Graph | Rule::Never => Verdict::Flow,
            Rule::Iterations(max) => Verdict::Iterations(*max),
            Rule::Checks(max) => Verdict::Checks { max: *max, of: self.checking.clone() },
            Rule::Keyword(keyword) => Verdict::Keyword((*keyword).into()),
            Rule::Signal(signal) => Verdict::Signal(signal.clone()),
            Rule::Poll(resource, state, span) => match self.which(*resource, *span) {
                Some(param) => Verdict::Poll(Poll { resource: *resource, param, state: state.clone() }),
                None => Verdict::Flow,
            },
            Rule::Handler(path, config) => match self.handler(*path) {
                Some((name, start, body)) => {
                    let path = path.text.into();
                    Verdict::Handler(Handler { path, name, start, body, config: config.clone() })
                }
                None => Verdict::Flow,
            },
            Rule::Composite(operator, parts) => {
                let parts = parts.iter().map(|part| self.lower(part)).collect();
                match *operator {
                    "and" => Verdict::Every(parts),
                    "or" => Verdict::Any(parts),
                    _ => Verdict::First(parts),
                }
            }
        }
    }

    /// The parameter that says which resource is looked at.
    fn which(&self, resource: Resource, span: Span) -> Option<Str> {
        let (name, what, value) = match resource {
            Resource::File => ("file", "a file", "PATH"),
            Resource::Api => ("url", "an address", "URL"),
        };
        let found = &self.definition.desk.found;
        let Some(param) = self.params.iter().find(|param| same_name(&param.name, name)) else {
            let message = format!("the verdict looks at {what}, and no parameter `{name}` says which");
            found.push(
                Diagnostic::error(codes::POLL_WITHOUT_RESOURCE, span, message)
                    .hint(format!("declare the parameter `{name}`, or give it with `--set {name}={value}`")),
            );
            return None;
        };
        self.compiler.reads.param(&param.name);
        // What is given with `--set` is given.
        let declared = self.definition.agent.params.iter().any(|declared| declared.name == param.name);
        if declared && !param.required && param.default.is_none() {
            let message = format!("the verdict looks at {what}, and the parameter `{name}` can be left out");
            found.push(
                Diagnostic::error(codes::POLL_WITHOUT_RESOURCE, param.span, message)
                    .hint("set `\"required\": true`, or give it a `default`"),
            );
        }
        Some(param.name.clone())
    }

    /// The name of a handler's file, how it is started, and what stands in it.
    fn handler(&self, path: Text<'_>) -> Option<(Str, Vec<Str>, Str)> {
        let Definition { places, desk, .. } = self.definition;
        let joined = join(places.agent_dir, path.text)?;
        let text = match desk.page(&joined) {
            Page::Text { text, .. } => text,
            Page::Missing => {
                desk.found.push(
                    Diagnostic::error(codes::UNREADABLE_FILE, path.span, format!("there is no `{joined}`"))
                        .hint("write the handler, or correct the path"),
                );
                return None;
            }
            Page::Faulty => return None,
        };
        let name = joined.rsplit('/').next().unwrap_or(&joined);
        match start_of(name, &text) {
            Some(start) => Some((name.into(), start, text)),
            None => {
                let message = format!("nobody knows how `{name}` is started");
                let hint = "begin it with the line `#!/usr/bin/env PROGRAM`, or call it `.sh`, `.py`, `.js` or `.mjs`";
                desk.found.push(Diagnostic::error(codes::HANDLER_UNSTARTABLE, path.span, message).hint(hint));
                None
            }
        }
    }
}

/// How a file is started: by the program that its first line names, else by its ending.
fn start_of(name: &str, text: &str) -> Option<Vec<Str>> {
    if let Some(line) = text.strip_prefix("#!") {
        // As the kernel reads it: a program, and all that follows as one argument.
        let line = line.lines().next().unwrap_or_default().trim();
        let (program, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let words = [program, rest.trim()];
        return Some(words.into_iter().filter(|word| !word.is_empty()).map(Into::into).collect())
            .filter(|words: &Vec<Str>| !words.is_empty());
    }
    let program = match name.rsplit_once('.')?.1 {
        "sh" => "sh",
        "bash" => "bash",
        "py" => "python3",
        "js" | "mjs" | "cjs" => "node",
        _ => return None,
    };
    Some(vec![program.into()])
}

/// What can be said about a verdict once the flow is there: that it passes validators by, or never holds.
pub(crate) fn check_verdict(definition: &Definition<'_, '_, '_>, draft: &Draft) {
    let settings = &definition.agent.verdict;
    let found = &definition.desk.found;
    let guarded = draft.steps.iter().find(|step| matches!(step.act, Act::Exec { .. }));
    if let (Some(step), true) = (guarded, draft.verdict.can_fire()) {
        let message = match &draft.verdict {
            Verdict::Iterations(max) => {
                format!("`count:iteration` completes the run after {max} iterations, validators or not")
            }
            _ => format!("`{}` can complete the run before its validators have passed", settings.kind),
        };
        found.push(
            Diagnostic::warning(codes::VERDICT_PAST_VALIDATORS, step.span, message)
                .hint("use `detect:graph`, where only `closing` completes the run"),
        );
    }
    let Some(span) = settings.span else { return };
    let mut whys = Vec::new();
    if let Rule::Checks(_) = settings.rule {
        never(&settings.rule, draft, &mut whys);
    }
    if let Rule::Composite(..) = settings.rule {
        never(&settings.rule, draft, &mut whys);
    }
    for why in whys {
        found.push(
            Diagnostic::warning(codes::VERDICT_NEVER_HOLDS, span, why)
                .hint("correct it, or leave it out: only an end of the flow completes the run then"),
        );
    }
}

/// Why parts of a verdict never hold.
fn never(rule: &Rule<'_>, draft: &Draft, whys: &mut Vec<String>) {
    match rule {
        Rule::Checks(_) if !checks(&draft.verdict) => {
            whys.push(
                "`count:check` counts answers of verification and closure steps, and there is no such step"
                    .to_owned(),
            );
        }
        Rule::Iterations(max) if *max > draft.limits.iterations_max => whys.push(format!(
            "`count:iteration` holds after {max} iterations, and the limit of the run is {}",
            draft.limits.iterations_max
        )),
        Rule::Composite(operator, parts) => {
            if *operator == "and" && parts.iter().any(|part| matches!(part, Rule::Graph)) {
                whys.push(
                    "`and` waits for `detect:graph`, and at an end of the flow the run is over anyway"
                        .to_owned(),
                );
            }
            parts.iter().for_each(|part| never(part, draft, whys));
        }
        _ => {}
    }
}

/// Whether answers of some step count.
fn checks(verdict: &Verdict) -> bool {
    verdict.places().iter().any(|(_, part)| matches!(part, Verdict::Checks { of, .. } if !of.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::start_of;

    #[test]
    fn a_handler_is_started_by_its_first_line_or_by_its_ending() {
        for (name, text, expected) in [
            ("h.sh", "exit 0", Some(vec!["sh"])),
            ("h.py", "", Some(vec!["python3"])),
            ("h.mjs", "", Some(vec!["node"])),
            ("h.sh", "#!/bin/bash\nexit 0", Some(vec!["/bin/bash"])),
            ("h", "#! /usr/bin/env  python3\r\n", Some(vec!["/usr/bin/env", "python3"])),
            ("h.ts", "#!/usr/bin/env -S deno run\n", Some(vec!["/usr/bin/env", "-S deno run"])),
            ("h.ts", "export default 1", None),
            ("h", "echo", None),
            ("h", "#!\n", None),
        ] {
            let start = start_of(name, text);
            let words = start.as_ref().map(|start| start.iter().map(|word| &**word).collect::<Vec<_>>());
            assert_eq!(words, expected, "{name} {text}");
        }
    }
}
