//! A flow as text.

use cuegate_flow::{
    Str,
    model::{
        Act, Ask, Conduct, Flow, Gate, Input, OutcomeReader, Param, Step, StepId, Validator,
        sandbox::SandboxRule,
    },
};

use super::{completion_rule, wording};
use crate::{
    format::{duration, plural},
    planned_effects::planned_effects,
    text::{Align, clean, columns, pad, safe, table, wrap},
};

/// How wide the labels of a step's lines are.
const LABEL: usize = 10;
/// How wide a line should be.
const WIDTH: usize = 100;
/// Up to this width outcomes are padded, so that their arrows align.
const NAMES: usize = 66;

/// A flow as text: its limits, its parameters, and the act and edges of each step.
///
/// Edges that the format adds to every step are listed once, at the top.
pub fn show(flow: &Flow) -> String {
    let mut blocks = vec![header(flow)];
    if !flow.params.is_empty() {
        blocks.push(params(&flow.params));
    }
    if !flow.monitors.is_empty() {
        blocks.push(monitors(flow));
    }
    blocks.extend(flow.steps.iter().map(|step| step_text(flow, step)));
    blocks.join("\n\n")
}

fn header(flow: &Flow) -> String {
    let iterations = plural(u64::from(flow.limits.iterations_max), "iteration");
    let mut lines = vec![
        format!("{} ({}), {}", flow.name, flow.dialect, plural(flow.steps.len() as u64, "step")),
        line("entry", &flow.step(flow.entry).name),
        line("limit", &format!("at most {iterations}")),
        line("run", &completion_rule::words(&flow.verdict)),
    ];
    let everywhere = everywhere(flow);
    if !everywhere.is_empty() {
        lines.push(line("all steps", &everywhere.join("; ")));
    }
    conduct(flow, &mut lines);
    lines.join("\n")
}

/// Settings that apply to every answer.
fn conduct(flow: &Flow, lines: &mut Vec<String>) {
    if let Some(response) = &flow.conduct.auto_response {
        let most = Conduct::QUESTIONS_MAX;
        lines.push(line(
            "questions",
            &format!("up to {most} per visit are answered with: {}", clean(response)),
        ));
    }
    if let Some(actions) = &flow.conduct.actions {
        let handled = |name: &Str| match actions.handler(name) {
            Some(reaction) => format!("{name} → {}", reaction.as_text()),
            None => format!("{name} → ignored"),
        };
        let shown = match &actions.types {
            Some(types) if types.is_empty() => "none allowed".to_owned(),
            Some(types) => types.iter().map(handled).collect::<Vec<_>>().join(", "),
            None => {
                let named = actions.handlers.iter().map(|(name, _)| handled(name));
                named.chain(["others → ignored".to_owned()]).collect::<Vec<_>>().join(", ")
            }
        };
        lines.push(line("actions", &shown));
    }
    if flow.conduct.issue.is_some() {
        for effect in planned_effects(flow, None).iter().filter(|effect| effect.when != "on request") {
            lines.push(line("issue", &effect.line()));
        }
    }
    if flow.conduct.inspects {
        lines.push(line("checks", "each answer against its schema"));
    }
    if let SandboxRule::Off = &flow.conduct.sandbox {
        lines.push(line("sandbox", "none"));
    }
    if let Some(sandbox) = flow.conduct.sandbox.required() {
        let more: String = sandbox.writable.iter().map(|path| format!(", {}", clean(path))).collect();
        let network = sandbox.network.describe();
        lines
            .push(line("sandbox", &format!("can write to the working tree{more}; can connect to {network}")));
    }
}

/// The edges that the format adds to steps, each once.
pub(crate) fn everywhere(flow: &Flow) -> Vec<String> {
    let mut edges = Vec::new();
    for step in &flow.steps {
        for edge in step.edges.iter().filter(|edge| edge.implied) {
            let way = format!("{} → {}", wording::outcome(step, &edge.on), wording::target(flow, &edge.to));
            if !edges.contains(&way) {
                edges.push(way);
            }
        }
    }
    edges
}

fn params(params: &[Param]) -> String {
    let rows: Vec<Vec<String>> = params
        .iter()
        .map(|param| {
            let needed = match (&param.default, param.required) {
                (Some(default), _) => format!("default {}", clean(default)),
                (None, true) => "required".to_owned(),
                (None, false) => "optional".to_owned(),
            };
            let flag = format!("  {}", param.flag);
            vec![flag, wording::param_type(param.kind).to_owned(), needed, clean(&param.description)]
        })
        .collect();
    format!("parameters\n{}", table(&rows, &[Align::Left; 4]).join("\n"))
}

fn monitors(flow: &Flow) -> String {
    let lines: Vec<String> = flow
        .monitors
        .iter()
        .map(|monitor| {
            let cycle = wording::stages(flow, monitor).join(" → ");
            let rounds = plural(u64::from(monitor.threshold), "round");
            let ignored = match wording::names(flow, &monitor.ignored).join(", ") {
                none if none.is_empty() => none,
                names => format!(", without {names}"),
            };
            format!("  {} decides after {rounds} of {cycle}{ignored}", flow.step(monitor.judge).name)
        })
        .collect();
    format!("monitors\n{}", lines.join("\n"))
}

fn step_text(flow: &Flow, step: &Step<StepId>) -> String {
    let mut head = format!("{}  [{}]", step.name, wording::kind(step));
    if !step.counts {
        head.push_str(" [no iteration]");
    }
    if !step.title.is_empty() && step.title != step.name {
        head.push_str(&format!("  {}", clean(&step.title)));
    }
    let mut lines = vec![safe(&head)];
    if !step.selectors.is_empty() {
        lines.push(line(
            "selects",
            &format!("asks {} first", wording::names(flow, &step.selectors).join(", ")),
        ));
    }
    if let Some(source) = &step.when {
        lines.push(line("works", &format!("if {} is set", wording::source_name(source))));
    }
    match &step.act {
        Act::Ask(ask) => ask_lines(flow, step, ask, &mut lines),
        Act::All { members, width } => {
            let names = wording::names(flow, members).join(", ");
            lines.push(line("members", &format!("{names} ({width} at a time)")));
        }
        Act::Exec { commands } => command_lines(commands.iter(), &mut lines),
        Act::Person { question } => {
            lines.push(line("question", &format!("to a person, {}", wording::lines(question))))
        }
    }
    gate_lines(flow, step, &mut lines);
    edge_lines(flow, step, &mut lines);
    lines.join("\n")
}

fn ask_lines(flow: &Flow, step: &Step<StepId>, ask: &Ask, lines: &mut Vec<String>) {
    let mut prompt = wording::lines(&ask.prompt);
    let reads = wording::sources(&ask.prompt);
    if !reads.is_empty() {
        prompt.push_str(&format!(", reads {}", reads.join(", ")));
    }
    if let Some(system) = &ask.system {
        prompt.push_str(&format!("; system prompt of {}", wording::lines(system)));
    }
    lines.push(line("prompt", &prompt));
    let mut answer = if ask.schema.is_some() { "by schema" } else { "any text" }.to_owned();
    if let Gate::Readers(readers) = &step.gate {
        let reads: Vec<String> = readers.iter().filter_map(|reader| reader_text(flow, reader)).collect();
        if !reads.is_empty() {
            answer.push_str(&format!("; outcome from {}", reads.join(", then ")));
        }
    }
    lines.push(line("answer", &answer));
    let boundary = &step.boundary;
    lines.push(line(
        "allowed",
        &format!("{}, {}", boundary.permission.as_str(), wording::tools(&boundary.tools)),
    ));
    let mut session = vec![wording::session(&ask.session)];
    if let Some(persona) = &ask.persona {
        session.push(format!("persona {persona}"));
    }
    if let Some(model) = &ask.model {
        session.push(format!("model {model}"));
    }
    let later = |(visit, model): &(u32, _)| format!("model {model} from visit {visit} on");
    session.extend(ask.later_models.iter().map(later));
    lines.push(line("session", &session.join(", ")));
    if !step.inputs.is_empty() {
        let inputs: Vec<String> = step.inputs.iter().map(input_text).collect();
        lines.push(line("input", &inputs.join(", ")));
    }
    if !step.handoff.is_empty() {
        let left: Vec<&str> = step.handoff.iter().map(|handoff| &*handoff.key).collect();
        lines.push(line("handoff", &left.join(", ")));
    }
    if let Some(guard) = &ask.guard {
        command_lines(guard.commands.iter().map(|guarded| &guarded.validator), lines);
        lines.push(line("retries", &format!("at most {}", guard.mends_max)));
    }
}

fn reader_text(flow: &Flow, reader: &OutcomeReader<StepId>) -> Option<String> {
    Some(match reader {
        OutcomeReader::Field { path, .. } => path.to_string(),
        OutcomeReader::Tag { name, .. } => format!("the tag [{name}:N]"),
        OutcomeReader::Judge { step } => format!("judge {}", flow.step(*step).name),
        OutcomeReader::Said { name, .. } => format!("`{name}: …` in the text"),
        OutcomeReader::Otherwise(outcome) => format!("otherwise \"{outcome}\", without a retry"),
        OutcomeReader::Fallback(outcome) => format!("fallback \"{outcome}\""),
        OutcomeReader::FirstFallback(outcome) => format!("fallback \"{outcome}\" in the first iteration"),
        // The text for an empty answer does not read an outcome.
        OutcomeReader::Silence(_) => return None,
    })
}

fn input_text(input: &Input) -> String {
    let mut text = format!("{} ← {}.{}", input.name, input.step, input.key);
    match (&input.default, input.required) {
        (Some(default), _) => text.push_str(&format!(" (default {})", clean(default))),
        (None, false) => text.push_str(" (optional)"),
        (None, true) => {}
    }
    text
}

fn command_lines<'c>(commands: impl Iterator<Item = &'c Validator>, lines: &mut Vec<String>) {
    let rows: Vec<Vec<String>> = commands
        .map(|command| {
            let passes = format!("passes: {}", wording::success(command.success));
            vec![command.name.to_string(), clean(&command.command), passes, duration(command.timeout_ms)]
        })
        .collect();
    let rows = table(&rows, &[Align::Left, Align::Left, Align::Left, Align::Right]);
    lines.extend(
        rows.iter().enumerate().map(|(index, cells)| row(if index == 0 { "runs" } else { "" }, cells)),
    );
}

fn gate_lines(flow: &Flow, step: &Step<StepId>, lines: &mut Vec<String>) {
    let Gate::Join { rules, judges } = &step.gate else { return };
    let rules = rules.iter().map(|rule| format!("{} → {}", wording::pattern(&rule.pattern), rule.outcome));
    let judges = judges.iter().map(|judge| format!("else judge {}", flow.step(*judge).name));
    for (index, text) in rules.chain(judges).enumerate() {
        lines.push(line(if index == 0 { "joins" } else { "" }, &text));
    }
}

/// Edges with aligned arrows; consecutive outcomes with the same targets share a line.
fn edge_lines(flow: &Flow, step: &Step<StepId>, lines: &mut Vec<String>) {
    let groups = groups(flow, step);
    let width = groups.iter().map(|(names, _)| columns(names)).max().unwrap_or(0).min(NAMES);
    let mut label = "routes";
    for (names, ways) in &groups {
        for (index, way) in ways.iter().enumerate() {
            // A later edge on the same outcome is taken once the earlier one has reached its bound.
            let name = if index == 0 { names } else { "then" };
            lines.push(line(label, &format!("{} → {way}", pad(name, width))));
            label = "";
        }
    }
}

/// Outcomes with their targets in order.
fn groups(flow: &Flow, step: &Step<StepId>) -> Vec<(String, Vec<String>)> {
    let mut ways: Vec<(String, Vec<String>)> = Vec::new();
    for edge in step.edges.iter().filter(|edge| !edge.implied) {
        let mut way = wording::target(flow, &edge.to);
        let notes = wording::conditions(flow, edge);
        if !notes.is_empty() {
            way.push_str(&format!("  ({})", notes.join("; ")));
        }
        let name = wording::outcome(step, &edge.on);
        match ways.iter_mut().find(|(outcome, _)| *outcome == name) {
            Some((_, ways)) => ways.push(way),
            None => ways.push((name, vec![way])),
        }
    }
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    // Conditions that are sentences stay on their own lines: joined by commas they are unreadable.
    let words = matches!(step.gate, Gate::Exit) || !ways.iter().any(|(name, _)| name.contains([' ', ',']));
    for (name, ways) in ways {
        match groups.last_mut() {
            Some((names, same)) if words && *same == ways => names.push_str(&format!(", {name}")),
            _ => groups.push((name, ways)),
        }
    }
    groups
}

/// A labelled line, wrapped at `WIDTH`.
fn line(label: &str, text: &str) -> String {
    let hang = " ".repeat(LABEL + 2);
    let lines = wrap(&safe(text), WIDTH - LABEL - 2).join(&format!("\n{hang}"));
    row(label, &lines)
}

/// A labelled line that keeps its columns.
fn row(label: &str, text: &str) -> String {
    format!("  {}{text}", pad(label, LABEL)).trim_end().to_owned()
}
