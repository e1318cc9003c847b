//! Judge asks: they choose between the rules of a step, or decide whether a loop makes progress.

use cuegate_flow::{
    Str,
    diagnostics::Span,
    model::{
        Act, AgentKeys, Ask, Boundary, Draft, FieldPath, Gate, Name, Outcome, OutcomeReader, Permission,
        Role, SchemaId, SessionRule, Step, Template, Tools,
    },
};

use crate::takt::answer_schema;
use crate::takt::answer_schema::AnswerSchemaCache;
use crate::takt::routing::condition::Condition;
use crate::takt::routing::rules::{Rule, collapse_to_line, normalize_word, outcome_of_rule};
use crate::takt::texts::prompt::{PromptBuilder, end_prompt_part};
use crate::takt::texts::prompt_texts;

/// The tag name for a judge's plain-text answer; the step's own tags count too.
const TAG: &str = "JUDGE";
/// The tag that is numbered from zero.
pub(in crate::takt) const STEP_TAG: &str = "STEP";

/// What a judge decides, and for which step.
pub(in crate::takt) struct JudgeSubject<'s> {
    /// The step's name.
    pub(in crate::takt) step: &'s str,
    /// The session that the judge looks back on.
    pub(in crate::takt) session: Str,
    /// Where the step is defined.
    pub(in crate::takt) span: Span,
    /// The model of the step.
    pub(in crate::takt) model: Option<Str>,
    /// The schema cache of the workflow.
    pub(in crate::takt) schemas: &'s AnswerSchemaCache,
}

/// Adds the judges that the rules of a step need and returns their names in the order in which they are asked:
/// one for all `ai(…)` conditions, then one for the plain-text conditions.
pub(in crate::takt) fn add_judges(
    judged: &JudgeSubject<'_>,
    rules: &[Rule<'_>],
    draft: &mut Draft,
) -> Vec<Name> {
    let eligible = |rule: &&Rule<'_>| !rule.hidden;
    let ai: Vec<(&Rule<'_>, &str)> = rules
        .iter()
        .filter(eligible)
        .filter_map(|rule| match &rule.kind {
            Condition::Ai(inner) => Some((rule, &**inner)),
            _ => None,
        })
        .collect();
    let texts = rules.iter().filter(eligible).any(|rule| rule.kind == Condition::Text);
    let mut names = Vec::new();
    if !ai.is_empty() {
        names.push(ai_judge(judged, &ai, draft));
    }
    if texts {
        names.push(text_judge(judged, rules, draft));
    }
    names
}

/// The judge for `ai(…)` conditions: their inner texts, with their own numbering.
fn ai_judge(judged: &JudgeSubject<'_>, rules: &[(&Rule<'_>, &str)], draft: &mut Draft) -> Name {
    let inner = number_duplicate_texts(rules.iter().map(|(_, inner)| *inner));
    let outcomes: Vec<Outcome> = rules.iter().map(|(rule, _)| outcome_of_rule(rule)).collect();
    let mut page = PromptBuilder::default();
    page.text(prompt_texts::JUDGE);
    for (index, text) in inner.iter().enumerate() {
        page.text(&format!("{}. {text}\n", index + 1));
    }
    page.text(prompt_texts::JUDGE_NONE);
    page.text(prompt_texts::JUDGE_ANSWER);
    page.text(&as_tag(TAG));
    page.text(&as_none(TAG));
    let tags = vec![OutcomeReader::Tag { name: TAG.into(), base: 1, outcomes: outcomes.clone() }];
    let words = inner.into_iter().zip(outcomes).collect();
    add_judge_step(judged, "ai", page.template(), words, tags, draft)
}

/// The judge for plain-text conditions. It uses the rule numbers, so a tag of the step is valid here too.
fn text_judge(judged: &JudgeSubject<'_>, rules: &[Rule<'_>], draft: &mut Draft) -> Name {
    let holds = |rule: &Rule<'_>| !rule.hidden && rule.kind == Condition::Text;
    let mut page = PromptBuilder::default();
    page.text(prompt_texts::JUDGE);
    for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| holds(rule)) {
        page.text(&format!("{}. {}\n", index + 1, rule.outcome));
        if let Some(appendix) = rule.appendix {
            page.text(&format!("   It comes with: {}\n", collapse_to_line(appendix)));
        }
    }
    page.text(prompt_texts::JUDGE_NONE);
    page.text(prompt_texts::JUDGE_ANSWER);
    page.text(&as_tag(&judged.step.to_uppercase()));
    page.text(&as_none(&judged.step.to_uppercase()));
    let outcomes: Vec<Outcome> =
        rules.iter().map(|rule| if holds(rule) { outcome_of_rule(rule) } else { Outcome::None }).collect();
    let words = rules
        .iter()
        .filter(|rule| holds(rule))
        .map(|rule| (rule.outcome.to_string(), outcome_of_rule(rule)))
        .collect();
    let mut tags = build_tag_readers(judged.step, outcomes.clone());
    tags.push(OutcomeReader::Tag { name: TAG.into(), base: 1, outcomes });
    add_judge_step(judged, "judge", page.template(), words, tags, draft)
}

/// The tags that a step's answer may carry: its own from one, and `STEP` from zero unless the step has that
/// name.
pub(in crate::takt) fn build_tag_readers(step: &str, outcomes: Vec<Outcome>) -> Vec<OutcomeReader<Name>> {
    let mut readers = vec![OutcomeReader::Tag { name: step.into(), base: 1, outcomes: outcomes.clone() }];
    if !step.eq_ignore_ascii_case(STEP_TAG) {
        readers.push(OutcomeReader::Tag { name: STEP_TAG.into(), base: 0, outcomes });
    }
    readers
}

fn add_judge_step(
    judged: &JudgeSubject<'_>,
    which: &str,
    prompt: Template,
    mut words: Vec<(String, Outcome)>,
    tags: Vec<OutcomeReader<Name>>,
    draft: &mut Draft,
) -> Name {
    words.push((answer_schema::NONE.to_owned(), Outcome::None));
    let name: Str = format!("{}@{which}", judged.step).into();
    let ask = Ask {
        session: SessionRule::Branch(judged.session.clone()),
        model: judged.model.clone(),
        ..judge_ask(prompt, add_schema(&words, judged.schemas, draft))
    };
    draft.steps.push(judge_step(name.clone(), judged.span, ask, build_judge_gate(words, tags)));
    Name { text: name, span: judged.span }
}

/// The judge of a monitor, without its edges.
pub(in crate::takt) struct MonitorJudge<'s> {
    pub(in crate::takt) name: Str,
    /// The name that the original program gives this judge; it is accepted in tags too.
    pub(in crate::takt) alias: Str,
    pub(in crate::takt) span: Span,
    pub(in crate::takt) system: Option<Template>,
    pub(in crate::takt) persona: Option<Str>,
    pub(in crate::takt) persona_names: Vec<Str>,
    pub(in crate::takt) rules: &'s [Rule<'s>],
    pub(in crate::takt) schemas: &'s AnswerSchemaCache,
}

/// Creates the step for the judge of a monitor, without edges.
pub(in crate::takt) fn monitor_step(
    judge: MonitorJudge<'_>,
    mut page: PromptBuilder,
    draft: &mut Draft,
) -> Step<Name> {
    let rules: Vec<&Rule<'_>> = judge.rules.iter().filter(|rule| !rule.hidden).collect();
    end_prompt_part(&mut page);
    page.text(prompt_texts::ANSWER);
    page.text(prompt_texts::MONITOR_ANSWER);
    // This step is already a judge, so `ai("…")` is reduced to its inner text.
    let texts = number_duplicate_texts(rules.iter().map(|rule| match &rule.kind {
        Condition::Ai(inner) => &**inner,
        _ => &*rule.outcome,
    }));
    for (rule, text) in rules.iter().zip(&texts) {
        let number = judge.rules.iter().position(|other| std::ptr::eq(other, *rule)).unwrap_or_default() + 1;
        page.text(&format!("{number}. {}\n", collapse_to_line(text)));
        if let Some(appendix) = rule.appendix {
            page.text(&format!("   It comes with: {}\n", collapse_to_line(appendix)));
        }
    }
    page.text(prompt_texts::JUDGE_ANSWER);
    page.text(&as_tag(TAG));
    let outcomes: Vec<Outcome> = judge
        .rules
        .iter()
        .map(|rule| if rule.hidden { Outcome::None } else { outcome_of_rule(rule) })
        .collect();
    let words: Vec<(String, Outcome)> = texts
        .iter()
        .zip(&rules)
        .map(|(text, rule)| (collapse_to_line(text), outcome_of_rule(rule)))
        .collect();
    let tag = |name: Str| OutcomeReader::Tag { name, base: 1, outcomes: outcomes.clone() };
    let tags = vec![tag(TAG.into()), tag(judge.alias)];
    let ask = Ask {
        system: judge.system,
        persona: judge.persona,
        persona_names: judge.persona_names,
        agent_keys: AgentKeys { seat: Some("loop-judge".into()), ..AgentKeys::default() },
        ..judge_ask(page.template(), add_schema(&words, judge.schemas, draft))
    };
    judge_step(judge.name, judge.span, ask, build_judge_gate(words, tags))
}

fn add_schema(words: &[(String, Outcome)], schemas: &AnswerSchemaCache, draft: &mut Draft) -> SchemaId {
    let texts: Vec<String> = words.iter().map(|(word, _)| word.clone()).collect();
    draft.schemas.push(schemas.judged(&texts));
    SchemaId(draft.schemas.len() as u32 - 1)
}

pub(in crate::takt) fn judge_ask(prompt: Template, schema: SchemaId) -> Ask {
    Ask {
        role: Role::Judge,
        prompt,
        system: None,
        schema: Some(schema),
        model: None,
        later_models: Vec::new(),
        agent_keys: Default::default(),
        persona: None,
        persona_names: Vec::new(),
        session: SessionRule::Fresh,
        reports: Vec::new(),
        fused: None,
        blocked_mark: None,
        delay_ms: 0,
        guard: None,
    }
}

fn build_judge_gate(words: Vec<(String, Outcome)>, tags: Vec<OutcomeReader<Name>>) -> Gate<Name> {
    let field = OutcomeReader::Field {
        path: parse_answer_path(answer_schema::OUTCOME),
        words: words.into_iter().map(|(word, outcome)| (normalize_word(&word), outcome)).collect(),
        reasons: vec![parse_answer_path(answer_schema::REASON)],
    };
    Gate::Readers(std::iter::once(field).chain(tags).collect())
}

/// Creates a judge step. A judge has no write permission.
pub(in crate::takt) fn judge_step(name: Str, span: Span, ask: Ask, gate: Gate<Name>) -> Step<Name> {
    Step {
        title: name.clone(),
        name,
        span,
        counts: false,
        act: Act::Ask(ask),
        gate,
        boundary: Boundary { permission: Permission::Plan, tools: Tools::All },
        handoff: Vec::new(),
        inputs: Vec::new(),
        selectors: Vec::new(),
        when: None,
        edges: Vec::new(),
    }
}

fn as_tag(tag: &str) -> String {
    format!(" In plain text, end with `[{tag}:N]`, where N is the number of the condition.\n")
}

fn as_none(tag: &str) -> String {
    format!("When none of them holds, that is `[{tag}:0]` or the word `none` alone.\n")
}

/// The path of an answer field.
pub(in crate::takt) fn parse_answer_path(name: &str) -> FieldPath {
    FieldPath::parse(name).expect("the fields of our own schemas are paths")
}

/// Numbers equal texts, and renames a text that equals the word for "none".
fn number_duplicate_texts<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<String> {
    let mut taken: Vec<Str> = vec![answer_schema::NONE.into()];
    texts
        .map(|text| {
            let mut name = text.to_owned();
            let mut number = 1;
            while taken.contains(&normalize_word(&name)) {
                number += 1;
                name = format!("{text} ({number})");
            }
            taken.push(normalize_word(&name));
            name
        })
        .collect()
}
