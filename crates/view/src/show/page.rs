//! A flow as text.

use cuegate_flow::{
    Str,
    model::{
        Act, Ask, Conduct, Flow, Gate, Input, OutcomeReader, Param, Step, StepId, SystemWork, Validator,
        sandbox::SandboxRule,
    },
};

use super::{completion_rule, wording};
use crate::{
    format::{format_duration, plural},
    planned_effects::planned_effects,
    text::{Alignment, align_table, clean_to_one_line, count_columns, pad_right, sanitize_line, wrap_text},
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
pub fn render_flow(flow: &Flow) -> String {
    let mut blocks = vec![render_flow_header(flow)];
    if !flow.params.is_empty() {
        blocks.push(render_params(&flow.params));
    }
    if !flow.monitors.is_empty() {
        blocks.push(render_monitors(flow));
    }
    blocks.extend(flow.steps.iter().map(|step| step_text(flow, step)));
    blocks.join("\n\n")
}

fn render_flow_header(flow: &Flow) -> String {
    let iterations = plural(u64::from(flow.limits.iterations_max), "iteration");
    let mut lines = vec![
        format!("{} ({}), {}", flow.name, flow.dialect, plural(flow.steps.len() as u64, "step")),
        wrap_labelled_line("entry", &flow.step(flow.entry).name),
        wrap_labelled_line("limit", &format!("at most {iterations}")),
        wrap_labelled_line("run", &completion_rule::describe_completion_rule(&flow.verdict)),
    ];
    let everywhere = list_implied_edges(flow);
    if !everywhere.is_empty() {
        lines.push(wrap_labelled_line("all steps", &everywhere.join("; ")));
    }
    write_conduct_lines(flow, &mut lines);
    lines.join("\n")
}

/// Settings that apply to every answer.
fn write_conduct_lines(flow: &Flow, lines: &mut Vec<String>) {
    if let Some(response) = &flow.conduct.auto_response {
        let most = Conduct::QUESTIONS_MAX;
        lines.push(wrap_labelled_line(
            "questions",
            &format!("up to {most} per visit are answered with: {}", clean_to_one_line(response)),
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
        lines.push(wrap_labelled_line("actions", &shown));
    }
    if flow.conduct.issue.is_some() {
        for effect in planned_effects(flow, None).iter().filter(|effect| effect.when != "on request") {
            lines.push(wrap_labelled_line("issue", &effect.line()));
        }
    }
    if flow.conduct.inspects {
        lines.push(wrap_labelled_line("checks", "each answer against its schema"));
    }
    if let SandboxRule::Off = &flow.conduct.sandbox {
        lines.push(wrap_labelled_line("sandbox", "none"));
    }
    if let Some(sandbox) = flow.conduct.sandbox.required() {
        let more: String =
            sandbox.writable.iter().map(|path| format!(", {}", clean_to_one_line(path))).collect();
        let network = sandbox.network.describe();
        lines.push(wrap_labelled_line(
            "sandbox",
            &format!("can write to the working tree{more}; can connect to {network}"),
        ));
    }
}

/// The edges that the format adds to steps, each once.
pub(crate) fn list_implied_edges(flow: &Flow) -> Vec<String> {
    let mut edges = Vec::new();
    for step in &flow.steps {
        for edge in step.edges.iter().filter(|edge| edge.implied) {
            let way = format!(
                "{} → {}",
                wording::name_of_outcome(step, &edge.on),
                wording::describe_target(flow, &edge.to)
            );
            if !edges.contains(&way) {
                edges.push(way);
            }
        }
    }
    edges
}

fn render_params(params: &[Param]) -> String {
    let rows: Vec<Vec<String>> = params
        .iter()
        .map(|param| {
            let needed = match (&param.default, param.required) {
                (Some(default), _) => format!("default {}", clean_to_one_line(default)),
                (None, true) => "required".to_owned(),
                (None, false) => "optional".to_owned(),
            };
            let flag = if param.flag.is_empty() { &param.name } else { &param.flag };
            let flag = format!("  {flag}");
            vec![
                flag,
                wording::param_type(param.kind).to_owned(),
                needed,
                clean_to_one_line(&param.description),
            ]
        })
        .collect();
    format!("parameters\n{}", align_table(&rows, &[Alignment::Left; 4]).join("\n"))
}

fn render_monitors(flow: &Flow) -> String {
    let lines: Vec<String> = flow
        .monitors
        .iter()
        .map(|monitor| {
            let cycle = wording::stages_of_monitor(flow, monitor).join(" → ");
            let rounds = plural(u64::from(monitor.threshold), "round");
            let ignored = match wording::names_of_steps(flow, &monitor.ignored).join(", ") {
                none if none.is_empty() => none,
                names => format!(", without {names}"),
            };
            format!("  {} decides after {rounds} of {cycle}{ignored}", flow.step(monitor.judge).name)
        })
        .collect();
    format!("monitors\n{}", lines.join("\n"))
}

fn step_text(flow: &Flow, step: &Step<StepId>) -> String {
    let mut head = format!("{}  [{}]", step.name, wording::kind_of_step(step));
    if !step.counts {
        head.push_str(" [no iteration]");
    }
    if !step.title.is_empty() && step.title != step.name {
        head.push_str(&format!("  {}", clean_to_one_line(&step.title)));
    }
    let mut lines = vec![sanitize_line(&head)];
    if !step.selectors.is_empty() {
        lines.push(wrap_labelled_line(
            "selects",
            &format!("calls {} first", wording::names_of_steps(flow, &step.selectors).join(", ")),
        ));
    }
    if let Some(source) = &step.when {
        lines.push(wrap_labelled_line("works", &format!("if {} is set", wording::source_name(source))));
    }
    match &step.act {
        Act::Ask(ask) => ask_lines(flow, step, ask, &mut lines),
        Act::All { members, width } => {
            let names = wording::names_of_steps(flow, members).join(", ");
            lines.push(wrap_labelled_line("members", &format!("{names} ({width} at a time)")));
        }
        Act::Exec { commands } => command_lines(commands.iter(), &mut lines),
        Act::Person { question } => lines.push(wrap_labelled_line(
            "question",
            &format!("to a person, {}", wording::format_line_count(question)),
        )),
        Act::System(work) => system_lines(work, &mut lines),
    }
    gate_lines(flow, step, &mut lines);
    edge_lines(flow, step, &mut lines);
    lines.join("\n")
}

fn system_lines(work: &SystemWork, lines: &mut Vec<String>) {
    if work.delay_ms > 0 {
        lines.push(wrap_labelled_line("waits", &format_duration(work.delay_ms)));
    }
    let reads: Vec<String> =
        work.reads.iter().map(|read| format!("{} as {}", read.what.as_str(), read.name)).collect();
    let effects: Vec<&str> = work.effects.iter().map(|effect| &*effect.name).collect();
    for (label, of) in [("reads", reads.join(", ")), ("does", effects.join(", "))] {
        if !of.is_empty() {
            lines.push(wrap_labelled_line(label, &of));
        }
    }
}

fn ask_lines(flow: &Flow, step: &Step<StepId>, ask: &Ask, lines: &mut Vec<String>) {
    let mut prompt = wording::format_line_count(&ask.prompt);
    let reads = wording::source_names_of_template(&ask.prompt);
    if !reads.is_empty() {
        prompt.push_str(&format!(", reads {}", reads.join(", ")));
    }
    if let Some(system) = &ask.system {
        prompt.push_str(&format!("; system prompt of {}", wording::format_line_count(system)));
    }
    lines.push(wrap_labelled_line("prompt", &prompt));
    let mut answer = if ask.schema.is_some() { "by schema" } else { "any text" }.to_owned();
    if let Gate::Readers(readers) = &step.gate {
        let reads: Vec<String> = readers.iter().filter_map(|reader| reader_text(flow, reader)).collect();
        if !reads.is_empty() {
            answer.push_str(&format!("; outcome from {}", reads.join(", then ")));
        }
    }
    lines.push(wrap_labelled_line("answer", &answer));
    let boundary = &step.boundary;
    lines.push(wrap_labelled_line(
        "allowed",
        &format!("{}, {}", boundary.permission.as_str(), wording::describe_tools(&boundary.tools)),
    ));
    let mut session = vec![wording::describe_session_rule(&ask.session)];
    if let Some(persona) = &ask.persona {
        session.push(format!("persona {persona}"));
    }
    if let Some(model) = &ask.model {
        session.push(format!("model {model}"));
    }
    let later = |(visit, model): &(u32, _)| format!("model {model} from visit {visit} on");
    session.extend(ask.later_models.iter().map(later));
    lines.push(wrap_labelled_line("session", &session.join(", ")));
    if !step.inputs.is_empty() {
        let inputs: Vec<String> = step.inputs.iter().map(input_text).collect();
        lines.push(wrap_labelled_line("input", &inputs.join(", ")));
    }
    if !step.handoff.is_empty() {
        let left: Vec<&str> = step.handoff.iter().map(|handoff| &*handoff.key).collect();
        lines.push(wrap_labelled_line("handoff", &left.join(", ")));
    }
    if let Some(guard) = &ask.guard {
        command_lines(guard.commands.iter().map(|guarded| &guarded.validator), lines);
        lines.push(wrap_labelled_line("retries", &format!("at most {}", guard.mends_max)));
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
        (Some(default), _) => text.push_str(&format!(" (default {})", clean_to_one_line(default))),
        (None, false) => text.push_str(" (optional)"),
        (None, true) => {}
    }
    text
}

fn command_lines<'c>(commands: impl Iterator<Item = &'c Validator>, lines: &mut Vec<String>) {
    let rows: Vec<Vec<String>> = commands
        .map(|command| {
            let passes = format!("passes: {}", wording::describe_success(command.success));
            vec![
                command.name.to_string(),
                clean_to_one_line(&command.command),
                passes,
                format_duration(command.timeout_ms),
            ]
        })
        .collect();
    let rows = align_table(&rows, &[Alignment::Left, Alignment::Left, Alignment::Left, Alignment::Right]);
    lines.extend(
        rows.iter()
            .enumerate()
            .map(|(index, cells)| format_labelled_row(if index == 0 { "runs" } else { "" }, cells)),
    );
}

fn gate_lines(flow: &Flow, step: &Step<StepId>, lines: &mut Vec<String>) {
    let Gate::Join { rules, judges } = &step.gate else { return };
    let rules = rules
        .iter()
        .map(|rule| format!("{} → {}", wording::describe_join_pattern(&rule.pattern), rule.outcome));
    let judges = judges.iter().map(|judge| format!("else judge {}", flow.step(*judge).name));
    for (index, text) in rules.chain(judges).enumerate() {
        lines.push(wrap_labelled_line(if index == 0 { "joins" } else { "" }, &text));
    }
}

/// Edges with aligned arrows; consecutive outcomes with the same targets share a line.
fn edge_lines(flow: &Flow, step: &Step<StepId>, lines: &mut Vec<String>) {
    let groups = group_outcomes_by_target(flow, step);
    let width = groups.iter().map(|(names, _)| count_columns(names)).max().unwrap_or(0).min(NAMES);
    let mut label = "routes";
    for (names, ways) in &groups {
        for (index, way) in ways.iter().enumerate() {
            // A later edge on the same outcome is taken once the earlier one has reached its bound.
            let name = if index == 0 { names } else { "then" };
            lines.push(wrap_labelled_line(label, &format!("{} → {way}", pad_right(name, width))));
            label = "";
        }
    }
}

/// Outcomes with their targets in order.
fn group_outcomes_by_target(flow: &Flow, step: &Step<StepId>) -> Vec<(String, Vec<String>)> {
    let mut ways: Vec<(String, Vec<String>)> = Vec::new();
    for edge in step.edges.iter().filter(|edge| !edge.implied) {
        let mut way = wording::describe_target(flow, &edge.to);
        let notes = wording::notes_of_edge(flow, edge);
        if !notes.is_empty() {
            way.push_str(&format!("  ({})", notes.join("; ")));
        }
        let name = wording::name_of_outcome(step, &edge.on);
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
fn wrap_labelled_line(label: &str, text: &str) -> String {
    let hang = " ".repeat(LABEL + 2);
    let lines = wrap_text(&sanitize_line(text), WIDTH - LABEL - 2).join(&format!("\n{hang}"));
    format_labelled_row(label, &lines)
}

/// A labelled line that keeps its columns.
fn format_labelled_row(label: &str, text: &str) -> String {
    format!("  {}{text}", pad_right(label, LABEL)).trim_end().to_owned()
}
