//! Reads the loop monitors of a workflow.

use std::collections::BTreeMap;

use cuegate_flow::diagnostics::{Diagnostic, Span};

use super::agent::Persona;
use super::sections::{FacetText, Section, Sections};
use super::step::{check_rules_without_person, is_empty_list};
use crate::codes;
use crate::takt::compose::ComposedMonitor;
use crate::takt::routing::rules::{self, Owner, Rule};
use crate::takt::spellings;
use crate::values::json::{Fields, Kind, Text};

/// A monitored cycle of steps.
pub(crate) struct MonitorDefinition<'j> {
    /// The place in the file.
    pub(crate) span: Span,
    /// The steps of one round.
    pub(crate) cycle: Vec<Stage<'j>>,
    /// The steps that neither count nor break a round.
    pub(crate) ignored: Vec<Stage<'j>>,
    /// The number of rounds after which the judge is asked.
    pub(crate) threshold: u32,
    /// The place of that number.
    pub(crate) threshold_span: Option<Span>,
    /// The judge's persona.
    pub(crate) persona: Option<Persona>,
    /// The judge's instruction; `None` selects the built-in text.
    pub(crate) instruction: Option<FacetText>,
    /// The rules that the judge chooses between.
    pub(crate) rules: Vec<Rule<'j>>,
}

/// A step of a cycle, or a called workflow.
pub(crate) struct Stage<'j> {
    pub(crate) name: Text<'j>,
    /// The steps of the called workflow.
    pub(crate) steps: Vec<Text<'j>>,
}

impl<'j> Stage<'j> {
    /// All steps that count as it.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Text<'j>> + '_ {
        let own = self.steps.is_empty().then_some(self.name);
        own.into_iter().chain(self.steps.iter().copied())
    }
}

/// The default number of rounds.
const THRESHOLD: u32 = 3;

impl MonitorDefinition<'_> {
    /// The monitor's name in results and the name of its judge step; unique per cycle.
    pub(crate) fn name(&self) -> String {
        let names = self.cycle.iter().map(|stage| stage.name.text.replace('\\', "\\\\").replace('+', "\\+"));
        format!("monitor:{}", names.collect::<Vec<String>>().join("+"))
    }
}

/// Reads the monitors of a workflow and of those that it calls.
pub(crate) fn read_monitors<'j>(
    composed: &'j [ComposedMonitor],
    workflow: &Fields<'j, '_>,
    sections: &Sections<'_, '_>,
    interactive: bool,
) -> Vec<MonitorDefinition<'j>> {
    // A value that is no list is reported; its items are read as they were composed.
    workflow.items("loop_monitors");
    let monitors: Vec<_> = composed
        .iter()
        .filter_map(|monitor| read_monitor(monitor, workflow, sections, interactive))
        .collect();
    // Of monitors of one cycle only the first one that reaches its threshold ever acts.
    let mut acting: BTreeMap<String, (u32, usize)> = BTreeMap::new();
    for (at, monitor) in monitors.iter().enumerate() {
        let rank = (monitor.threshold, at);
        acting.entry(monitor.name()).and_modify(|known| *known = rank.min(*known)).or_insert(rank);
    }
    let mut kept = Vec::new();
    for (at, monitor) in monitors.into_iter().enumerate() {
        if acting.get(&monitor.name()).is_some_and(|(_, acts)| *acts == at) {
            kept.push(monitor);
            continue;
        }
        let message =
            format!("another monitor of `{}` always acts first", &monitor.name()["monitor:".len()..]);
        let finding = Diagnostic::warning(codes::MONITOR_NEVER_ACTS, monitor.span, message);
        workflow.push(finding.hint("keep one: the lower threshold acts first, of equal ones the first"));
    }
    kept
}

fn read_monitor<'j>(
    composed: &'j ComposedMonitor,
    workflow: &Fields<'j, '_>,
    sections: &Sections<'_, '_>,
    interactive: bool,
) -> Option<MonitorDefinition<'j>> {
    let fields = Fields::of(&composed.source, "a loop monitor", None, workflow.found)?;
    sections.enter(composed.scope);
    fields.need("cycle");
    fields.need("judge");
    let cycle = read_cycle(&fields, composed);
    let ignored = read_stages(&fields, "ignore_steps", composed);
    let watched = |stage: &&Stage<'_>| cycle.iter().flatten().any(|other| other.name.text == stage.name.text);
    if let Some(both) = ignored.iter().find(watched) {
        let message = format!("`ignore_steps` names `{}`, a step of the cycle", both.name.text);
        let finding = Diagnostic::error(codes::MONITOR_NEVER_ACTS, both.name.span, message);
        fields.push(finding.hint("remove it from one of them"));
    }
    let written = fields.count("threshold", 1);
    let (threshold, threshold_span) =
        (written.map_or(THRESHOLD, |(value, _)| value), written.map(|(_, span)| span));
    if fields.entry("judge").is_none() {
        fields.missing("judge");
    }
    let judge = fields.object("judge");
    fields.finish();
    let (judge, cycle) = (judge?, cycle?);
    for key in ["provider", "model", "provider_options", "tags"] {
        judge.stray(key, "the agent of a run and its options are chosen in cuegate.toml");
    }
    judge.strays(&["policy", "knowledge"], "a judge of a loop reads its persona and its instruction");
    let persona = judge.filled(spellings::find_persona_key(&judge)).map(|reference| {
        let reference = Text { text: reference.text.trim(), ..reference };
        let body = sections.resolve(Section::Personas, reference, &judge);
        let keyed = sections.has(Section::Personas, reference.text)
            || body.as_ref().is_some_and(|body| body.stem.is_some());
        Persona { key: keyed.then(|| reference.text.into()), body }
    });
    let instruction = read_judge_instruction(&judge, sections);
    let rules = rules::read_rules(&judge, Owner::Monitor, interactive, "");
    if judge.entry("rules").is_none() {
        judge.missing("rules");
    } else if is_empty_list(&judge, "rules") {
        judge.invalid(judge.opening(), "`rules` has no rule", "add one with `condition` and `next`");
    }
    check_rules_without_person(&judge, &rules);
    judge.finish();
    Some(MonitorDefinition {
        span: composed.source.span,
        cycle,
        ignored,
        threshold,
        threshold_span,
        persona,
        instruction,
        rules,
    })
}

/// The judge's instruction: an inline text or, in later versions, a key of `instructions`.
fn read_judge_instruction(judge: &Fields<'_, '_>, sections: &Sections<'_, '_>) -> Option<FacetText> {
    let (key, _) = spellings::find_renamed_entry(judge, "instruction", &["instruction_template"]);
    let text = judge.filled(key)?;
    if key == "instruction" {
        let reference = Text { text: text.text.trim_end(), ..text };
        return sections.resolve(Section::Instructions, reference, judge);
    }
    Some(sections.inline(text))
}

/// The steps of one round, at least two. A step may occur twice.
fn read_cycle<'j>(fields: &Fields<'j, '_>, monitor: &'j ComposedMonitor) -> Option<Vec<Stage<'j>>> {
    let Some(entry) = fields.entry("cycle") else {
        fields.missing("cycle");
        return None;
    };
    let items = fields.items("cycle");
    let names = read_stages(fields, "cycle", monitor);
    let is_list = matches!(entry.value.kind, Kind::List(_));
    if is_list && names.len() == items.len() && names.len() < 2 {
        let message = "a cycle goes through at least two steps";
        let finding = Diagnostic::error(codes::MONITOR_NEVER_ACTS, entry.value.span, message);
        fields.push(finding.hint("name the steps of one round, in order"));
    }
    (names.len() >= 2).then_some(names)
}

/// Reads a list of steps. Where it names a called workflow, each step of that workflow counts.
fn read_stages<'j>(
    fields: &Fields<'j, '_>,
    key: &'static str,
    monitor: &'j ComposedMonitor,
) -> Vec<Stage<'j>> {
    let mut stages = Vec::new();
    for item in fields.items(key) {
        let Some(text) = item.as_text().map(str::trim) else {
            fields.wrong_type(key, item, "a list of steps");
            continue;
        };
        let steps = monitor.stages.get(text).into_iter().flatten();
        let steps = steps.map(|step| Text { text: step, span: item.span }).collect();
        stages.push(Stage { name: Text { text, span: item.span }, steps });
    }
    stages
}
