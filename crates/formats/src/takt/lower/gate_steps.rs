//! Lowers the commands among the quality gates of a step to steps between its outcomes and their targets.

use cuegate_flow::model::{
    Act, Boundary, Counter, CounterId, Draft, Edge, EdgeBound, Ending, Extractor, Gate, LimitKey,
    LimitTarget, MemberCommand, MemberGate, Name, Outcome, Permission, Piece, Step, Success, Target,
    Template, Tools, Validator,
};

use super::WorkflowLowering;
use crate::takt::read::{AgentSettings, GateCommand, WorkflowStep};
use crate::takt::routing::rules::collapse_to_line;
use crate::takt::texts::prompt::PromptBuilder;
use crate::takt::texts::prompt_texts;

/// The value captured from a command's output.
const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";
const EXIT_CODE: &str = "exit_code";

/// Inserts the gate commands before the target of every outcome that claims the step is done. An outcome that
/// gives up, or repeats the step, makes no such claim, and its work need not pass the commands yet; nor does a
/// rule with `quality_gates: false`.
pub(in crate::takt) fn insert_gate_steps(
    lowering: &WorkflowLowering<'_, '_, '_>,
    step: &WorkflowStep<'_>,
    asked: &AgentSettings<'_>,
    prompt: &Template,
    edges: &mut [Edge<Name>],
    draft: &mut Draft,
) {
    let commands = &asked.gates.commands;
    if commands.is_empty() {
        return;
    }
    let name = step.name.text;
    draft.counters.push(Counter { name: format!("{name} quality gates").into() });
    let counter = CounterId(draft.counters.len() as u32 - 1);
    add_gate_retry_limit(lowering, draft, LimitTarget::Counter(counter));
    for (index, edge) in edges.iter_mut().enumerate() {
        if step.rules.iter().any(|rule| !rule.gated && rule.span == edge.span) {
            // The next visit gets the full number of retries again.
            edge.resets.push(counter);
            continue;
        }
        let gates = Name::new(&format!("{name}@gates:{}", index + 1), edge.span);
        let guarded = Target::Step(gates.clone());
        let mut dangling = Vec::new();
        let to = match &edge.to {
            Target::End(Ending::Aborted) => continue,
            Target::Step(to) => match find_person_edge(draft, to) {
                // The commands run after the person's answer: continuing from there claims that the step is done.
                Some(answered) if is_completion_claim(&answered.to, name) => {
                    dangling = std::mem::take(&mut answered.dangling);
                    std::mem::replace(&mut answered.to, guarded)
                }
                Some(_) => {
                    // Work done after the person's answer gets the full number of retries again.
                    edge.resets.push(counter);
                    continue;
                }
                None => std::mem::replace(&mut edge.to, guarded),
            },
            _ => std::mem::replace(&mut edge.to, guarded),
        };
        // Unresolved targets move behind the commands too.
        dangling.append(&mut edge.dangling);
        // A command that passed may fail at a later visit, which gets the full number of retries again.
        let passed = Edge::new(Outcome::Pass, to, edge.span);
        let mut out = vec![Edge { resets: vec![counter], dangling, ..passed }];
        for (failed, command) in commands.iter().enumerate() {
            let on = Outcome::Fail(failed as u16);
            let retries = lowering.options.quality_gate_retries;
            if retries > 0 {
                let back = Target::Step(Name::new(name, step.name.span));
                out.push(Edge {
                    bound: Some(EdgeBound { counter, max: retries }),
                    remedy: Some(build_gate_remedy(command, prompt)),
                    ..Edge::new(on.clone(), back, command.span)
                });
            }
            let reason =
                format!("the quality gate `{}` of `{name}` fails", collapse_to_line(&command.command));
            out.push(Edge::new(on, Target::End(Ending::Failed(reason.into())), command.span));
        }
        draft.steps.push(Step {
            name: gates.text.clone(),
            title: gates.text,
            span: step.name.span,
            counts: false,
            act: Act::Exec { commands: commands.iter().map(build_gate_validator).collect() },
            gate: Gate::Exit,
            boundary: Boundary { permission: Permission::AcceptEdits, tools: Tools::All },
            handoff: Vec::new(),
            inputs: Vec::new(),
            selectors: Vec::new(),
            when: None,
            edges: out,
        });
    }
}

/// Adds the retry limit. The `quality_gate_retries` setting bounds it too.
pub(in crate::takt) fn add_gate_retry_limit(
    lowering: &WorkflowLowering<'_, '_, '_>,
    draft: &mut Draft,
    turn: LimitTarget,
) {
    const NAME: &str = "quality_gate_retries";
    let value = lowering.options.quality_gate_retries;
    match draft.keys.iter_mut().find(|key| &*key.name == NAME) {
        Some(key) => key.turns.push(turn),
        None => {
            draft.keys.push(LimitKey { name: NAME.into(), span: None, value, least: 0, turns: vec![turn] })
        }
    }
}

/// The outgoing edge of a step that asks a person, if `name` is one. Those steps are made before the gates of the
/// step.
fn find_person_edge<'d>(draft: &'d mut Draft, name: &Name) -> Option<&'d mut Edge<Name>> {
    let asks = |step: &&mut Step<Name>| step.name == name.text && matches!(step.act, Act::Person { .. });
    draft.steps.iter_mut().find(asks)?.edges.first_mut()
}

/// Whether this target claims that the step is done: not the step itself and not an abort.
pub(in crate::takt) fn is_completion_claim(to: &Target<Name>, step: &str) -> bool {
    match to {
        Target::End(ending) => *ending != Ending::Aborted,
        Target::Step(to) => *to.text != *step,
        _ => true,
    }
}

fn build_gate_validator(command: &GateCommand<'_>) -> Validator {
    Validator {
        name: collapse_to_line(&command.command).into(),
        command: (*command.command).into(),
        success: Success::ExitCode(0),
        extract: vec![
            (STDOUT.into(), Extractor::Stdout),
            (STDERR.into(), Extractor::Stderr),
            (EXIT_CODE.into(), Extractor::ExitCode),
        ],
        timeout_ms: command.timeout_ms,
        values: Vec::new(),
    }
}

/// The commands that a member must pass before its outcome counts. A member has no target of its own, so command
/// steps cannot be inserted behind it.
pub(in crate::takt) fn of_member(
    lowering: &WorkflowLowering<'_, '_, '_>,
    asked: &AgentSettings<'_>,
) -> Option<MemberGate> {
    let guarded = |command: &GateCommand<'_>| {
        let mut page = build_gate_failure_prompt(command);
        page.text(prompt_texts::GATE_MEND_HERE);
        MemberCommand { validator: build_gate_validator(command), mend: page.template() }
    };
    let commands: Vec<MemberCommand> = asked.gates.commands.iter().map(guarded).collect();
    let mends_max = lowering.options.quality_gate_retries;
    (!commands.is_empty()).then_some(MemberGate { commands, mends_max })
}

/// The prompt after a failed command: the command's output, then the original prompt.
fn build_gate_remedy(command: &GateCommand<'_>, prompt: &Template) -> Template {
    let mut page = build_gate_failure_prompt(command);
    page.text(prompt_texts::GATE_MEND);
    let mut pieces = page.template().pieces;
    // Texts of the prompt are shared, because it names all commands and each of them has its own remedy.
    let mut rest = prompt.pieces.iter().cloned().peekable();
    if let (Some(Piece::Text(last)), Some(Piece::Text(first))) = (pieces.last_mut(), rest.peek()) {
        *last = format!("{last}{first}").into();
        rest.next();
    }
    pieces.extend(rest);
    Template { pieces }
}

fn build_gate_failure_prompt(command: &GateCommand<'_>) -> PromptBuilder {
    let mut page = PromptBuilder::default();
    page.text(prompt_texts::GATE_FAILED);
    page.text(&format!("    {}\n\n", collapse_to_line(&command.command)));
    page.pieces(vec![
        build_failure_value_piece(EXIT_CODE, "Exit code"),
        build_failure_value_piece(STDOUT, "Output"),
        build_failure_value_piece(STDERR, "Errors"),
    ]);
    page
}

fn build_failure_value_piece(name: &str, heading: &str) -> Piece {
    Piece::If {
        name: name.into(),
        then: vec![
            Piece::Text(format!("{heading}: ").into()),
            Piece::Failure(name.into()),
            Piece::Text("\n".into()),
        ],
        otherwise: Vec::new(),
    }
}
