//! Parts of a flow as text, shared by the text and JSON forms.

use cuegate_flow::model::{
    Act, Edge, Ending, Fact, Flow, JoinPattern, Monitor, Outcome, ParamType, Piece, Role, Selector,
    SessionRule, Source, Step, StepId, Success, Target, Template, Tools,
};

pub(crate) fn kind_of_step(step: &Step<StepId>) -> &'static str {
    match &step.act {
        Act::Ask(ask) => name_of_role(ask.role),
        Act::All { .. } => "parallel",
        Act::Exec { .. } => "commands",
        Act::Person { .. } => "person",
        Act::System(_) => "system",
    }
}

pub(crate) fn name_of_role(role: Role) -> &'static str {
    match role {
        Role::Work => "work",
        Role::Judge => "judge",
        Role::Check => "check",
    }
}

pub(crate) fn target_name_of_end(ending: &Ending) -> String {
    match ending {
        Ending::Completed => "@completed".to_owned(),
        Ending::Aborted => "@aborted".to_owned(),
        Ending::Failed(reason) => format!("@failed ({reason})"),
    }
}

/// The name of an outcome; a failed command is named after its validator.
pub(crate) fn name_of_outcome(step: &Step<StepId>, outcome: &Outcome) -> String {
    match (outcome, &step.act) {
        (Outcome::Fail(index), Act::Exec { commands }) => match commands.get(*index as usize) {
            Some(command) => format!("{} fails", command.name),
            None => outcome.to_string(),
        },
        (Outcome::Pass, _) => "all pass".to_owned(),
        _ => outcome.to_string(),
    }
}

pub(crate) fn names_of_steps<'f>(flow: &'f Flow, ids: &[StepId]) -> Vec<&'f str> {
    ids.iter().map(|id| &*flow.step(*id).name).collect()
}

/// The stages of a monitor: a step, or several in brackets.
pub(crate) fn stages_of_monitor(flow: &Flow, monitor: &Monitor<StepId>) -> Vec<String> {
    let stage = |steps: &Vec<StepId>| match names_of_steps(flow, steps).as_slice() {
        [one] => (*one).to_owned(),
        several => format!("({})", several.join(", ")),
    };
    monitor.cycle.iter().map(stage).collect()
}

/// The target of an edge.
pub(crate) fn describe_target(flow: &Flow, to: &Target<StepId>) -> String {
    let name = |id: &StepId| flow.step(*id).name.to_string();
    match to {
        Target::Step(id) => name(id),
        Target::End(end) => target_name_of_end(end),
        Target::Origin { among } => {
            format!("the step that handed off ({})", names_of_steps(flow, among).join(", "))
        }
        Target::Select { by, cases, default } => {
            let mut ways: Vec<String> =
                cases.iter().map(|(value, id)| format!("{value} → {}", name(id))).collect();
            if let Some(default) = default {
                ways.push(format!("else → {}", name(default)));
            }
            format!("by {}: {}", describe_selector(by), ways.join(", "))
        }
        Target::Jump { field, among, default } => {
            let mut text = match field {
                Some(field) => {
                    format!("the step named in {field} ({})", names_of_steps(flow, among).join(", "))
                }
                None => String::new(),
            };
            if let Some(default) = default {
                text.push_str(if text.is_empty() { "" } else { ", else " });
                text.push_str(&name(default));
            }
            text
        }
    }
}

pub(crate) fn describe_selector(by: &Selector) -> String {
    match by {
        Selector::Field(path) => path.to_string(),
        Selector::Handoff(key) => key.to_string(),
    }
}

/// The bound and the side effects of an edge.
pub(crate) fn notes_of_edge(flow: &Flow, edge: &Edge<StepId>) -> Vec<String> {
    let mut notes = Vec::new();
    match edge.bound.map(|bound| bound.max) {
        None => {}
        Some(0) => notes.push("never".to_owned()),
        Some(1) => notes.push("once".to_owned()),
        Some(max) => notes.push(format!("at most {max} times")),
    }
    if let Some(remedy) = &edge.remedy {
        notes.push(format!("retry prompt of {}", format_line_count(remedy)));
    }
    if edge.again {
        notes.push("same visit".to_owned());
    }
    if !edge.resets.is_empty() {
        let counters: Vec<&str> = edge.resets.iter().map(|id| &*flow.counter(*id).name).collect();
        notes.push(format!("resets {}", counters.join(", ")));
    }
    notes
}

pub(crate) fn describe_join_pattern(pattern: &JoinPattern) -> String {
    let quoted = |outcomes: &[Outcome]| {
        let word = |outcome: &Outcome| match outcome {
            Outcome::None => "failed".to_owned(),
            outcome => format!("\"{outcome}\""),
        };
        outcomes.iter().map(word).collect::<Vec<_>>().join(", ")
    };
    match pattern {
        JoinPattern::All(outcome) => format!("all {}", quoted(std::slice::from_ref(outcome))),
        JoinPattern::Each(outcomes) => format!("in order {}", quoted(outcomes)),
        JoinPattern::Any(outcomes) => format!("any {}", quoted(outcomes)),
    }
}

pub(crate) fn describe_session_rule(rule: &SessionRule) -> String {
    match rule {
        SessionRule::Continue(key) => format!("continues {key}"),
        SessionRule::Renew(key) => format!("begins {key} anew"),
        SessionRule::Branch(key) => format!("a branch of {key}"),
        SessionRule::Fresh => "its own".to_owned(),
    }
}

pub(crate) fn describe_tools(tools: &Tools) -> String {
    match tools {
        Tools::All => "all tools".to_owned(),
        Tools::Only(names) if names.is_empty() => "no tools".to_owned(),
        Tools::Only(names) => {
            format!("tools {}", names.iter().map(|name| &**name).collect::<Vec<_>>().join(", "))
        }
    }
}

pub(crate) fn describe_success(success: Success) -> String {
    match success {
        Success::Empty => "prints nothing".to_owned(),
        Success::NonEmpty => "prints something".to_owned(),
        Success::ExitCode(code) => format!("exit {code}"),
    }
}

pub(crate) fn param_type(kind: ParamType) -> &'static str {
    match kind {
        ParamType::Text => "text",
        ParamType::Number => "number",
        ParamType::Boolean => "boolean",
        ParamType::List => "list",
    }
}

/// How long a template is: `1 line`, `12 lines`.
pub(crate) fn format_line_count(template: &Template) -> String {
    crate::format::plural(line_count(template), "line")
}

/// The number of lines of a template before its values are filled in.
pub(crate) fn line_count(template: &Template) -> u64 {
    match template.pieces.is_empty() {
        true => 0,
        false => count_line_breaks(&template.pieces) + 1,
    }
}

fn count_line_breaks(pieces: &[Piece]) -> u64 {
    let breaks_of = |piece: &Piece| match piece {
        // A trailing line break starts no new line; it is subtracted below.
        Piece::Text(text) => text.matches('\n').count() as u64,
        Piece::If { then, otherwise, .. } => count_line_breaks(then) + count_line_breaks(otherwise),
        Piece::Each { body, .. } | Piece::Filled { body, .. } => count_line_breaks(body),
        Piece::Value(_) | Piece::Failure(_) | Piece::Item(_) => 0,
    };
    let all: u64 = pieces.iter().map(breaks_of).sum();
    match pieces.last() {
        Some(Piece::Text(text)) if text.ends_with('\n') => all.saturating_sub(1),
        _ => all,
    }
}

/// The values that a template uses, each once, in order.
pub(crate) fn source_names_of_template(template: &Template) -> Vec<String> {
    let mut named = Vec::new();
    for source in template.sources() {
        let name = source_name(source);
        if !named.contains(&name) {
            named.push(name);
        }
    }
    named
}

pub(crate) fn source_name(source: &Source) -> String {
    match source {
        Source::Param(name) | Source::Input(name) => name.to_string(),
        Source::Task => "task".to_owned(),
        Source::Handoff { step, key } => format!("{step}.{key}"),
        Source::Report(name) => format!("report:{name}"),
        Source::Fact(fact) => match fact {
            Fact::Iteration => "iteration",
            Fact::CompletedIterations => "completed_iterations",
            Fact::MaxIterations => "max_iterations",
            Fact::Remaining => "remaining",
            Fact::PreviousSummary => "previous_summary",
            Fact::PreviousResponse => "previous_response",
            Fact::Visit => "step_iteration",
            Fact::ReportDir => "report_dir",
            Fact::ReviewScope => "review_scope",
            Fact::UserInputs => "user_inputs",
            Fact::Rounds => "cycle_count",
            Fact::Checks => "check_count",
        }
        .to_owned(),
    }
}
