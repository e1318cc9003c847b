//! Reads the rules of a step or a monitor: conditions and targets.

use std::collections::{HashMap, HashSet};

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::Outcome,
};

use super::condition;
use super::condition::Condition;
use super::{ABORT, COMPLETE};
use super::{decisions, predicate};
use crate::codes;
use crate::takt::answer_schema::NONE;
use crate::values::json::{Fields, Json, Text};

#[derive(Debug, Clone)]
pub(crate) struct Rule<'j> {
    /// The place in the file.
    pub(crate) span: Span,
    /// The condition as written; `when: EXPR` as `when(EXPR)`.
    pub(crate) condition: ConditionText,
    /// The parsed condition.
    pub(crate) kind: Condition,
    /// The outcome name in results: the condition, numbered when it is not unique.
    pub(crate) outcome: Str,
    /// The target.
    pub(crate) next: Option<Text<'j>>,
    /// Whether the rule asks a person before it continues.
    pub(crate) asks_person: bool,
    /// Extra output for an answer that chooses this rule; the person sees it too.
    pub(crate) appendix: Option<&'j str>,
    /// Whether the quality gates of the step have to pass before the rule leads on.
    pub(crate) gated: bool,
    /// Whether the rule is `interactive_only`.
    pub(crate) interactive_only: bool,
    /// The decision to which it leads instead of a target.
    pub(crate) decision: Option<usize>,
    /// Whether it cannot hold: it is `interactive_only` and the run is headless, or it is about failed members.
    pub(crate) hidden: bool,
}

/// What has to hold, and its place.
#[derive(Debug, Clone)]
pub(crate) struct ConditionText {
    pub(crate) text: Str,
    pub(crate) span: Span,
}

/// The kind of owner of a list of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A step that asks an agent.
    Step,
    Parallel,
    /// A member of a parallel step: its rules name outcomes and have no targets.
    Member,
    /// The judge of a monitor.
    Monitor,
    /// A system step.
    System,
}

/// Reads the rules of an owner.
pub(crate) fn read_rules<'j>(
    owner: &Fields<'j, '_>,
    whose: Owner,
    interactive: bool,
    step: &str,
) -> Vec<Rule<'j>> {
    if whose != Owner::Member {
        owner.need("rules");
    }
    let mut items = owner.items("rules");
    let always = match whose {
        Owner::Step | Owner::Parallel | Owner::System => items.iter().position(holds_always),
        Owner::Member | Owner::Monitor => None,
    };
    let mut meaning = None;
    if let Some(at) = always {
        // What comes after it never holds.
        items = &items[..=at];
        meaning = meaning_of_always(&items[..at]);
    }
    let last = items.len().saturating_sub(1);
    let read =
        |(at, item)| read_rule_entry(item, owner, whose, interactive, step, meaning.filter(|_| at == last));
    let mut rules: Vec<Rule<'j>> = items.iter().enumerate().filter_map(read).collect();
    if whose == Owner::Member {
        drop_repeated(&mut rules, owner);
    } else {
        warn_of_repeated(&rules, owner);
        warn_of_self(&rules, owner, step, whose);
    }
    number_duplicate_rules(&mut rules);
    rules
}

fn read_rule_entry<'j>(
    item: &'j Json,
    owner: &Fields<'j, '_>,
    whose: Owner,
    interactive: bool,
    step: &str,
    meaning: Option<&str>,
) -> Option<Rule<'j>> {
    let fields = Fields::of(item, "a rule", Some(step), owner.found)?;
    let condition = read_condition_text(&fields);
    let next = match whose {
        Owner::Member => {
            if let Some(next) = fields.text("next") {
                fields.inert(
                    next.span,
                    "`next` has no effect in a rule of a member",
                    "the rules of the parallel step lead on; remove it",
                );
            }
            None
        }
        // A result that leads nowhere has its own finding.
        _ if item.entry("return").is_some() => fields.filled("next"),
        _ => fields.required("next"),
    };
    let asks_person = read_rule_flag(&fields, "requires_user_input", whose);
    let gated = read_gated_flag(&fields, whose);
    let interactive_only = fields.boolean("interactive_only").is_some_and(|(value, _)| value);
    let appendix = fields.text("appendix").map(|text| text.text).filter(|text| !text.trim().is_empty());
    fields.finish();
    let mut condition = condition?;
    if let Some(meaning) = meaning {
        condition.text = meaning.into();
    }
    let kind = read_condition(&condition, owner, whose, step);
    if whose == Owner::System && meaning.is_none() {
        check_rule_of_system(&condition, &kind, owner);
    }
    let outcome = predicate::outcome_name(&kind).map_or_else(|| name_of(&condition.text), Str::from);
    Some(Rule {
        span: item.span,
        condition,
        kind,
        outcome,
        next: next.map(trim_text),
        asks_person,
        appendix,
        gated,
        interactive_only,
        decision: None,
        hidden: interactive_only && !interactive,
    })
}

/// Nobody answers in a system step, so only values can decide.
fn check_rule_of_system(condition: &ConditionText, kind: &Condition, owner: &Fields<'_, '_>) {
    let needs_answer = match kind {
        Condition::Text => !predicate::is_predicate(&condition.text),
        Condition::When { label, .. } => label.is_some(),
        Condition::Ai(_) => true,
        // Those about members have their own finding.
        _ => false,
    };
    if needs_answer {
        let message = format!("`{}` needs an answer, and a system step asks nobody", condition.text);
        let finding = Diagnostic::error(codes::INVALID_CONDITION, condition.span, message);
        owner.push(finding.hint("write `when(…)` about what it read and did, or about an earlier step"));
    }
}

/// Reads the condition of a rule: `condition`, or `when: EXPR` for `when(EXPR)`.
fn read_condition_text(fields: &Fields<'_, '_>) -> Option<ConditionText> {
    let Some(when) = fields.nullable("when") else {
        let text = fields.required("condition")?;
        return Some(ConditionText { text: text.text.trim().into(), span: text.span });
    };
    if let Some(written) = fields.filled("condition") {
        let message = "`when` and `condition` are both conditions";
        let finding = Diagnostic::error(codes::CONFLICTING_KEYS, when.key_span, message);
        fields.push(finding.hint("keep one of them"));
        return Some(ConditionText { text: written.text.trim().into(), span: written.span });
    }
    let Some(expression) = fields.entry("when")?.value.scalar_text() else {
        fields.wrong_type("when", &when.value, "text");
        return None;
    };
    Some(ConditionText { text: format!("when({})", expression.trim()).into(), span: when.value.span })
}

/// Whether the condition of a rule is `when(true)`.
fn holds_always(rule: &Json) -> bool {
    let is_true = |text: &str, wanted: &str| text.chars().filter(|c| !c.is_whitespace()).eq(wanted.chars());
    match (rule.get("condition"), rule.get("when")) {
        (Some(condition), _) => condition.as_text().is_some_and(|text| is_true(text, "when(true)")),
        (None, Some(when)) => when.scalar_text().is_some_and(|text| is_true(&text, "true")),
        (None, None) => false,
    }
}

/// What a rule that always holds means after these rules, as a text. `None` if the structured answer decides all of them.
fn meaning_of_always(before: &[Json]) -> Option<&'static str> {
    let is_predicate = |rule: &Json| match (rule.get("condition"), rule.get("when")) {
        (Some(condition), _) => condition.as_text().is_some_and(predicate::is_predicate),
        (None, when) => when.is_some(),
    };
    match before {
        [] => Some("done"),
        before if before.iter().all(is_predicate) => None,
        _ => Some("none of the others holds"),
    }
}

/// Reports a text that its author may have meant as a call.
fn report_no_call(condition: &ConditionText, owner: &Fields<'_, '_>, whose: Owner) {
    let near = condition::near_miss(&condition.text).map(|meant| {
        (
            meant,
            format!(
                "write `{meant}(\"…\")`: in lower case, without white space before `(`, with straight quotes"
            ),
        )
    });
    let within = || {
        // Where there are no members, a sentence may quote the conditions of a step that has some.
        let meant = condition::call_within(&condition.text)
            .filter(|meant| whose == Owner::Parallel || *meant == "ai")?;
        Some((
            meant,
            format!("write `{meant}(\"…\")` and nothing else; for what is beside it write further rules"),
        ))
    };
    let open = || {
        let meant = condition::find_unclosed_call(&condition.text);
        meant.map(|meant| (meant, "put `)` at its end".to_owned()))
    };
    if let Some((meant, hint)) = near.or_else(open).or_else(within) {
        let message = format!("`{}` is a text as any other, and no `{meant}(…)`", condition.text);
        owner.push(Diagnostic::warning(codes::INVALID_CONDITION, condition.span, message).hint(hint));
    }
}

/// Reads a flag. It has no effect where rules have no targets.
fn read_rule_flag(fields: &Fields<'_, '_>, key: &'static str, whose: Owner) -> bool {
    // An unreadable value counts as set.
    let Some((value, span)) = fields.boolean(key) else { return fields.nullable(key).is_some() };
    if whose == Owner::Member && value {
        let message = format!("`{key}` has no effect in a rule of a member");
        fields.inert(span, message, "put it into a rule of the parallel step");
        return false;
    }
    value
}

/// Whether the quality gates of the step have to pass before a rule leads on: not with `quality_gates: false` or
/// `command_gates: skip`, for an outcome that does not claim that the step is done.
fn read_gated_flag(fields: &Fields<'_, '_>, whose: Owner) -> bool {
    let skipped = fields.one_of("command_gates", &["skip"]).map(|(_, span)| ("command_gates", false, span));
    let said = fields.boolean("quality_gates").map(|(value, span)| ("quality_gates", value, span));
    let Some((key, value, span)) = skipped.or(said) else { return true };
    if whose != Owner::Step {
        let message = format!("`{key}` has no effect in this rule");
        fields.inert(span, message, "it belongs into a rule of a step that has quality gates");
        return true;
    }
    value
}

fn read_condition(condition: &ConditionText, owner: &Fields<'_, '_>, whose: Owner, step: &str) -> Condition {
    if predicate::is_predicate(&condition.text) {
        return read_predicate(condition, owner, whose, step);
    }
    match condition::parse_condition(&condition.text) {
        Ok(kind) if kind.is_aggregate() && whose != Owner::Parallel => {
            let message = format!("`{}` is about members, and there are none", condition.text);
            owner.push(
                Diagnostic::error(codes::INVALID_CONDITION, condition.span, message)
                    .hint("`all` and `any` belong into the rules of a step with `parallel`"),
            );
            Condition::Text
        }
        Ok(kind) => {
            if kind == Condition::Text {
                report_no_call(condition, owner, whose);
            }
            kind
        }
        // A sentence that quotes a condition of other steps is a text.
        Err(_) if whose != Owner::Parallel && !condition.text.starts_with("ai(") => Condition::Text,
        Err((message, hint)) => {
            owner.push(Diagnostic::error(codes::INVALID_CONDITION, condition.span, message).hint(hint));
            Condition::Text
        }
    }
}

/// Reads `when(…)`. Only a step with an agent has an answer that it can be about.
fn read_predicate(condition: &ConditionText, owner: &Fields<'_, '_>, whose: Owner, step: &str) -> Condition {
    let read = match whose {
        Owner::Member => predicate::parse_predicate(&condition.text, step),
        // What the answer alone decides is simpler.
        Owner::Step => predicate::parse_predicate(&condition.text, step)
            .or_else(|_| decisions::parse_when(&condition.text)),
        Owner::Parallel | Owner::System => decisions::parse_when(&condition.text),
        Owner::Monitor => Err((
            format!("`{}` is not supported here yet", condition.text),
            "`when(…)` can be a rule of a step with `structured_output`; write a text here",
        )),
    };
    match read {
        // `when(true)` alone needs no data; the predicates before it have their own finding.
        Ok(kind @ Condition::Field(..))
            if whose == Owner::Member && owner.nullable("structured_output").is_none() =>
        {
            let message = format!("`{step}` has no `structured_output` that `{}` reads", condition.text);
            let finding = Diagnostic::error(codes::INVALID_CONDITION, condition.span, message);
            owner.push(finding.hint("add it, or write the condition as a text"));
            kind
        }
        Ok(kind) => kind,
        Err((message, hint)) => {
            let finding = match whose {
                Owner::Member | Owner::Monitor => {
                    Diagnostic::error(codes::UNSUPPORTED_YET, condition.span, message)
                }
                Owner::Step | Owner::Parallel | Owner::System => {
                    Diagnostic::error(codes::INVALID_CONDITION, condition.span, message)
                }
            };
            owner.push(finding.hint(hint));
            Condition::Text
        }
    }
}

/// Reports and drops equal rules of a member: they are one outcome.
fn drop_repeated(rules: &mut Vec<Rule<'_>>, owner: &Fields<'_, '_>) {
    let mut seen = HashSet::new();
    rules.retain(|rule| {
        let is_new = seen.insert(rule.condition.text.clone());
        if !is_new {
            let message = format!("duplicate condition `{}`", rule.condition.text);
            let finding = Diagnostic::warning(codes::DUPLICATE_ITEM, rule.condition.span, message);
            owner.push(finding.hint("remove one: the rules of a member name its outcomes, and lead nowhere"));
        }
        is_new
    });
}

/// Warns of equal conditions with different targets: which of them holds is ambiguous. The comparison ignores case,
/// as the reading of answers does.
fn warn_of_repeated(rules: &[Rule<'_>], owner: &Fields<'_, '_>) {
    // For equal conditions: the first rule, and the first rule with another target.
    let mut equal: HashMap<Str, (&Rule<'_>, Option<&Rule<'_>>)> = HashMap::new();
    for rule in rules {
        // One of them is for runs with a person, the other for runs without.
        let text = match rule.interactive_only {
            true => continue,
            false => &*rule.condition.text,
        };
        let (first, other) = equal.entry(normalize_word(text)).or_insert((rule, None));
        let known = if next_of(first) == next_of(rule) { *other } else { Some(*first) };
        if next_of(first) != next_of(rule) {
            other.get_or_insert(rule);
        }
        let Some(known) = known else { continue };
        // Of two equal aggregate conditions the first always wins; the flow check reports that.
        if rule.kind.is_aggregate() && *known.condition.text == *text {
            continue;
        }
        let message = if *known.condition.text == *text {
            format!("duplicate condition `{text}` with different targets")
        } else {
            format!(
                "the conditions `{}` and `{text}` differ only in case and have different targets",
                known.condition.text
            )
        };
        let finding = Diagnostic::warning(codes::DUPLICATE_ITEM, rule.condition.span, message);
        owner.push(finding.hint("say in each condition what tells it from the other"));
    }
}

fn next_of<'j>(rule: &Rule<'j>) -> Option<&'j str> {
    rule.next.map(|next| next.text)
}

/// The word for a member that failed, unless a member has a rule of that text.
pub(in crate::takt) const FAILED: &str = "error";

/// Warns of a rule that repeats its own step with unchanged input.
fn warn_of_self(rules: &[Rule<'_>], owner: &Fields<'_, '_>, step: &str, whose: Owner) {
    // A step named like an end has its own finding; these rules end the run.
    let is_end = matches!(step, COMPLETE | ABORT);
    // A step that changes files works off a list, one visit after the other, up to the limit of the workflow.
    let edits =
        || owner.nullable("edit").is_some_and(|edit| edit.value.scalar_text().as_deref() == Some("true"));
    let is_worked_off = whose == Owner::Step && edits();
    // What failed is done again, and what values decide may have changed.
    let may_differ = |rule: &&Rule<'_>| match &rule.kind {
        Condition::Any(words) => words.iter().all(|word| word == FAILED),
        Condition::All(word) => word == FAILED,
        Condition::When { .. } => true,
        _ => is_worked_off && says_that_more_is_left(&rule.condition.text),
    };
    for rule in rules.iter().filter(|rule| !rule.asks_person && !rule.hidden && !is_end && !may_differ(rule))
    {
        if let Some(next) = rule.next.filter(|next| next.text == step) {
            let message = format!("`{}` of `{step}` leads to itself", rule.condition.text);
            let hint = "lead to another step, or let the rule ask a person with `requires_user_input`";
            owner.push(Diagnostic::warning(codes::SELF_NEXT, next.span, message).hint(hint));
        }
    }
}

/// Whether a condition says that a list is not worked off yet.
fn says_that_more_is_left(condition: &str) -> bool {
    const WORDS: [&str; 18] = [
        "more",
        "remain",
        "left",
        "next",
        "continue",
        "another",
        "pending",
        "unfinished",
        "not all",
        "still",
        "残",
        "続",
        "次",
        "まだ",
        "未完了",
        "剩",
        "继续",
        "还有",
    ];
    let text = condition.to_lowercase();
    WORDS.iter().any(|word| text.contains(word))
}

/// Gives each rule a unique name. Names are compared as answers are: ignoring case.
fn number_duplicate_rules(rules: &mut [Rule<'_>]) {
    let mut times: HashMap<Str, usize> = HashMap::new();
    for rule in rules.iter() {
        *times.entry(normalize_word(&rule.outcome)).or_default() += 1;
    }
    // `none` is the answer for "no condition holds".
    times.entry(NONE.into()).and_modify(|times| *times += 1);
    let mut taken: HashSet<Str> = times.keys().cloned().chain([NONE.into()]).collect();
    let mut numbers: HashMap<Str, u32> = HashMap::new();
    for rule in rules {
        let text = normalize_word(&rule.outcome);
        if times[&text] == 1 {
            continue;
        }
        let number = numbers.entry(text).or_default();
        let free = loop {
            *number += 1;
            let name = format!("{} ({number})", rule.outcome);
            if taken.insert(normalize_word(&name)) {
                break name;
            }
        };
        rule.outcome = free.into();
    }
}

/// A condition, or an answer, as they are compared: in lower case.
pub(in crate::takt) fn normalize_word(text: &str) -> Str {
    text.trim().to_lowercase().into()
}

/// The outcome that chooses a rule.
pub(in crate::takt) fn outcome_of_rule(rule: &Rule<'_>) -> Outcome {
    Outcome::Named(rule.outcome.clone())
}

/// The outcome name of a condition: the text on one line.
pub(in crate::takt) fn name_of(condition: &str) -> Str {
    if condition.chars().any(char::is_control) {
        collapse_to_line(condition).into()
    } else {
        condition.into()
    }
}

fn trim_text(text: Text<'_>) -> Text<'_> {
    Text { text: text.text.trim(), ..text }
}

/// Collapses a text to one line.
pub(in crate::takt) fn collapse_to_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
