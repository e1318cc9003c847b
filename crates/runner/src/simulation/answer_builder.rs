//! Builds answers that select a given outcome, in the forms that agents use.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cuegate_engine::{GateResult, ParsedAnswer, Run, read_answer, resolve_target};
use cuegate_flow::{
    Str,
    analysis::{
        flow_queries,
        state_graph::{Choice, Pick, SelectingValue},
    },
    model::{
        Act, Ask, FieldPath, Flow, Gate, Outcome, OutcomeReader, Schema, Selector, Step, StepId, Target,
    },
};
use serde_json::{Map, Value, json};

use super::numbers::generate_numbers;
use super::set_path::{set_value_at_path, take_away};
use super::texts::generate_texts;
use super::value_sampler::{extract_subschema, sample_value, sample_with};

/// A text that is unlikely to equal a case.
const NO_CASE: &str = "none of these";

/// How many values are tried to find one that equals no case.
const OTHERS_MAX: usize = 64;

/// An answer: the structured output and the text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct AnswerContent {
    pub(super) output: Option<Value>,
    pub(super) text: String,
}

/// How an answer states its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerStyle {
    /// In the structured output.
    Structured,
    /// In plain text if the gate can read that, else as JSON in the text.
    Plain,
    /// Not at all: a judge is asked afterwards.
    Judged,
}

/// What an answer must have at a path.
#[derive(Debug, Clone, PartialEq)]
enum WantedValue {
    /// This value.
    Is(Value),
    /// Any valid value.
    There,
    /// No value.
    Away,
}

pub(super) struct AnswerContext<'s> {
    pub(super) flow: &'s Flow,
    pub(super) run: &'s Run,
    pub(super) asked: StepId,
    /// Additional text: what the verdict looks for, and action blocks.
    pub(super) beside: &'s str,
    /// Selects the alternatives of the schema.
    pub(super) variant: usize,
}

impl AnswerContext<'_> {
    fn step(&self) -> &Step<StepId> {
        self.flow.step(self.asked)
    }

    fn ask(&self) -> Option<&Ask> {
        match &self.step().act {
            Act::Ask(ask) => Some(ask),
            _ => None,
        }
    }

    fn schema(&self) -> Option<&Schema> {
        self.ask()?.schema.map(|schema| self.flow.schema(schema))
    }

    fn readers(&self) -> &[OutcomeReader<StepId>] {
        match &self.step().gate {
            Gate::Readers(readers) => readers,
            _ => &[],
        }
    }

    /// An answer of a selector with these values set, and an outcome of its gate. Lists have at least the items that their
    /// schema requires, and at most those that it allows.
    pub(super) fn selection(&self, is_set: &dyn Fn(&str) -> bool, outcome: &Outcome) -> AnswerContent {
        let mut lists: BTreeMap<&FieldPath, Vec<(&Str, bool)>> = BTreeMap::new();
        let mut wanted: Vec<(&FieldPath, WantedValue)> = Vec::new();
        for handoff in &self.step().handoff {
            match &handoff.item {
                Some(item) => lists.entry(&handoff.path).or_default().push((item, is_set(&handoff.key))),
                None => {
                    let text = if is_set(&handoff.key) { "as simulated" } else { "" };
                    wanted.push((&handoff.path, WantedValue::Is(json!(text))));
                }
            }
        }
        for (path, items) in lists {
            let part = self.schema().and_then(|schema| schema.subschema(path));
            let limit = |key: &str| part.and_then(|part| part.get(key)?.as_u64());
            let (least, most) = (limit("minItems").unwrap_or(0), limit("maxItems").unwrap_or(u64::MAX));
            let mut chosen: Vec<&Str> = items.iter().filter(|(_, set)| *set).map(|(item, _)| *item).collect();
            let others = items.iter().filter(|(_, set)| !set).map(|(item, _)| *item);
            chosen.extend(others.take((least as usize).saturating_sub(chosen.len())));
            chosen.truncate(most.min(items.len() as u64) as usize);
            wanted.push((path, WantedValue::Is(json!(chosen))));
        }
        let word = self.readers().iter().find_map(|reader| match reader {
            OutcomeReader::Field { path, words, .. } => {
                Some((path, words.iter().find(|(_, means)| means == outcome)?.0.clone()))
            }
            _ => None,
        });
        wanted.extend(word.map(|(path, word)| (path, WantedValue::Is(json!(&*word)))));
        AnswerContent { output: Some(self.body(&wanted, self.variant)), text: String::new() }
    }

    /// An answer that the step's gate reads as `choice`, in the first style that works; `None` if there is none.
    pub(super) fn words(&self, choice: &Choice, styles: &[AnswerStyle]) -> Option<AnswerContent> {
        let say = |style| {
            (0..4)
                .flat_map(move |variant| self.candidates(choice, style, self.variant + variant))
                .find(|words| self.says(words, choice, style))
        };
        styles.iter().find_map(|style| say(*style))
    }

    /// Any valid answer, for when no answer fits the choice.
    pub(super) fn anything(&self) -> AnswerContent {
        match self.schema() {
            Some(schema) => AnswerContent {
                output: Some(sample_value(schema.value(), self.variant)),
                text: String::new(),
            },
            None => AnswerContent { output: None, text: format!("As simulated.\n{}", self.beside) },
        }
    }

    fn candidates(&self, choice: &Choice, style: AnswerStyle, variant: usize) -> Vec<AnswerContent> {
        let structured = |outcome: &Outcome| {
            let bodies = self.bodies(outcome, choice, variant);
            bodies.into_iter().map(|body| AnswerContent { output: Some(body), text: self.beside.to_owned() })
        };
        let plain = |text: String| AnswerContent { output: None, text: format!("{text}\n{}", self.beside) };
        match style {
            AnswerStyle::Structured => structured(&choice.outcome).collect(),
            AnswerStyle::Plain => {
                let said = self.said(&choice.outcome).into_iter().map(plain);
                let json = self.bodies(&choice.outcome, choice, variant);
                said.chain(json.into_iter().map(|body| plain(body.to_string()))).collect()
            }
            AnswerStyle::Judged => {
                let nothing = plain("All is as it was simulated to be.".to_owned());
                std::iter::once(nothing).chain(structured(&Outcome::None)).collect()
            }
        }
    }

    /// Plain texts that state an outcome.
    fn said(&self, outcome: &Outcome) -> Vec<String> {
        let mut found = Vec::new();
        for reader in self.readers() {
            match reader {
                OutcomeReader::Tag { name, base, outcomes } => {
                    let place = outcomes.iter().position(|means| means == outcome);
                    // Zero means that no condition holds, if numbers start at one.
                    let none = (*outcome == Outcome::None && *base == 1).then_some(0);
                    let number = place.map(|place| place as u32 + base).or(none);
                    found.extend(number.map(|number| format!("As simulated. [{name}:{number}]")));
                }
                OutcomeReader::Said { name, words } => {
                    let word = words.iter().find(|(_, means)| means == outcome);
                    found.extend(word.map(|(word, _)| format!("As simulated. {name}: {word}")));
                }
                _ => {}
            }
        }
        if matches!(self.step().gate, Gate::Always(_)) {
            found.push("As simulated.".to_owned());
        }
        found
    }

    /// Structured answers that may state an outcome, the most likely first.
    fn bodies(&self, outcome: &Outcome, choice: &Choice, variant: usize) -> Vec<Value> {
        let named = self.readers().iter().find_map(|reader| match reader {
            OutcomeReader::Field { path, words, .. } => {
                let words: Vec<&Str> =
                    words.iter().filter(|(_, means)| means == outcome).map(|(word, _)| word).collect();
                (!words.is_empty()).then_some((path, words))
            }
            _ => None,
        });
        let always = matches!(self.step().gate, Gate::Always(_));
        if named.is_none() && !always && self.said(outcome).is_empty() {
            return Vec::new();
        }
        if named.is_none() && self.schema().is_none() {
            return Vec::new();
        }
        let Some((path, words)) = named else { return self.filled(choice, variant, None) };
        let values = self.list_matching_values(path, &words).into_iter();
        values.flat_map(|value| self.filled(choice, variant, Some((path, value)))).collect()
    }

    /// Answers that state the choice: with all handoff values, and with the required ones only.
    fn filled(&self, choice: &Choice, variant: usize, said: Option<(&FieldPath, Value)>) -> Vec<Value> {
        let mut wanted = self.wanted(choice);
        wanted.extend(said.map(|(path, value)| (path, WantedValue::Is(value))));
        let body = |wanted: &[(&FieldPath, WantedValue)]| self.body(wanted, variant);
        let full = body(&wanted);
        let has_optional = wanted.iter().any(|(_, wanted)| *wanted == WantedValue::There);
        wanted.retain(|(_, wanted)| *wanted != WantedValue::There);
        let mut found = vec![full];
        if has_optional {
            found.extend(Some(body(&wanted)).filter(|body| *body != found[0]));
        }
        found
    }

    /// Values that equal one of the words: the schema's own values first, then the words.
    fn list_matching_values(&self, path: &FieldPath, words: &[&Str]) -> Vec<Value> {
        let listed = self.schema().and_then(|schema| schema.values_at(path)).unwrap_or_default();
        let says = |value: &Value| {
            let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_lowercase());
            words.iter().any(|word| ***word == *text)
        };
        let listed = listed.into_iter().filter(says);
        listed.chain(words.iter().map(|word| Value::from(&***word))).collect()
    }

    /// What an answer must have in addition to its outcome: handoff values and selectors.
    fn wanted(&self, choice: &Choice) -> Vec<(&FieldPath, WantedValue)> {
        let mut wanted: Vec<(&FieldPath, WantedValue)> = Vec::new();
        for handoff in &self.step().handoff {
            let value = choice.leaves.iter().find(|(key, _)| *key == handoff.key).map(|(_, value)| value);
            let value = value.map_or(WantedValue::There, |value| self.selecting(&handoff.path, value));
            wanted.push((&handoff.path, value));
        }
        let Some(edge) = choice.edge.and_then(|edge| self.step().edges.get(edge)) else { return wanted };
        let (Target::Select { by: Selector::Field(path), .. } | Target::Jump { field: Some(path), .. }) =
            &edge.to
        else {
            return wanted;
        };
        match &choice.pick {
            Pick::Field(value) => wanted.push((path, self.selecting(path, value))),
            Pick::Named(step) => {
                wanted.push((path, WantedValue::Is(Value::from(&*self.flow.step(*step).name))));
            }
            Pick::Unnamed => wanted.push((path, self.selecting(path, &SelectingValue::Absent))),
            Pick::Any => {}
        }
        wanted
    }

    /// Builds an answer from what its schema requires, the wanted values, and the reports.
    fn body(&self, wanted: &[(&FieldPath, WantedValue)], variant: usize) -> Value {
        let pins = wanted.iter().filter_map(|(path, wanted)| match wanted {
            WantedValue::Is(value) => Some(((*path).clone(), Some(value.clone()))),
            WantedValue::There => Some(((*path).clone(), None)),
            WantedValue::Away => None,
        });
        let mut body = match self.schema() {
            Some(schema) => sample_with(schema.value(), &pins.collect::<Vec<_>>(), variant),
            None => Value::Object(Map::new()),
        };
        if !body.is_object() {
            body = Value::Object(Map::new());
        }
        for (path, _) in wanted.iter().filter(|(_, wanted)| *wanted == WantedValue::There) {
            if path.get(&body).is_none() {
                set_value_at_path(&mut body, path, self.fitting(path, "as simulated"));
            }
        }
        if let Some(fused) = self.ask().and_then(|ask| ask.fused.as_ref()) {
            set_value_at_path(&mut body, &fused.response, json!("As simulated."));
            let reports: Map<String, Value> = self
                .ask()
                .into_iter()
                .flat_map(|ask| &ask.reports)
                .map(|report| (report.name.to_string(), json!(report_text(&report.name))))
                .collect();
            if !reports.is_empty() {
                set_value_at_path(&mut body, &fused.reports, Value::Object(reports));
            }
        }
        for (path, wanted) in wanted {
            match wanted {
                WantedValue::Is(value) => set_value_at_path(&mut body, path, value.clone()),
                WantedValue::Away => take_away(&mut body, path),
                WantedValue::There => {}
            }
        }
        body
    }

    /// The wanted value for a selector. If the field should be absent but is required, `null`.
    fn selecting(&self, path: &FieldPath, value: &SelectingValue) -> WantedValue {
        match value {
            SelectingValue::Is(text) => WantedValue::Is(self.fitting(path, text)),
            SelectingValue::Other => {
                WantedValue::Is(self.other(path).unwrap_or_else(|| self.fitting(path, NO_CASE)))
            }
            SelectingValue::Absent if self.schema().is_some_and(|schema| schema.requires(path)) => {
                WantedValue::Is(Value::Null)
            }
            SelectingValue::Absent => WantedValue::Away,
        }
    }

    /// A value that equals no case: a listed object or array, else any valid value.
    fn other(&self, path: &FieldPath) -> Option<Value> {
        let schema = self.schema()?;
        let is_whole = |value: &Value| value.is_object() || value.is_array();
        let listed = schema.values_at(path);
        if let Some(whole) = listed.iter().flatten().find(|value| is_whole(value)) {
            return Some(whole.clone());
        }
        let cases: Vec<&str> = self.cases().collect();
        let is_other = |value: &Value| !value.is_null() && !cases.iter().any(|case| is_case(value, case));
        if let Some(listed) = listed {
            return listed.into_iter().find(is_other);
        }
        let part = schema.subschema(path)?;
        let rule = extract_subschema(schema.value(), part);
        let fits = |value: &Value| rule.as_ref().is_none_or(|rule| rule.problems(value).is_empty());
        let likely = self.fitting(path, NO_CASE);
        let of_part = part.as_object().into_iter();
        let others = of_part.flat_map(|part| {
            let is_whole = part.get("type").is_some_and(|kind| kind == "integer");
            generate_texts(part, self.variant).map(|text| json!(text)).chain(generate_numbers(part, is_whole))
        });
        let samples = (0..OTHERS_MAX).map(|more| sample_value(part, self.variant + more));
        std::iter::once(likely).chain(others).chain(samples).find(|value| fits(value) && is_other(value))
    }

    /// All values that selectors compare with. A handoff value may be selected on at another step.
    fn cases(&self) -> impl Iterator<Item = &str> {
        let edges = self.flow.steps.iter().flat_map(|step| &step.edges);
        let cases = edges.filter_map(|edge| match &edge.to {
            Target::Select { cases, .. } => Some(cases),
            _ => None,
        });
        cases.flatten().map(|(case, _)| &**case)
    }

    /// Converts a text to the type that the schema has at a path: a number, a boolean, or a listed value.
    fn fitting(&self, path: &FieldPath, text: &str) -> Value {
        let Some(schema) = self.schema() else { return json!(text) };
        let listed = schema.values_at(path).unwrap_or_default();
        if let Some(value) = listed.into_iter().find(|value| is_text_of_value(value, text)) {
            return value;
        }
        let Some(part) = schema.subschema(path) else { return json!(text) };
        let rule = extract_subschema(schema.value(), part);
        let fits = |value: &Value| rule.as_ref().is_none_or(|rule| rule.problems(value).is_empty());
        let scalar = serde_json::from_str::<Value>(text).ok().filter(|value| !value.is_string());
        // `007` equals the number 7: the engine compares numbers by value.
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        let whole = number.filter(|number| number.fract() == 0.0).map(|number| json!(number as i64));
        let forms = [Some(json!(text)), scalar, whole, number.map(|number| json!(number))];
        let any = forms.into_iter().flatten().find(|value| fits(value));
        any.unwrap_or_else(|| sample_value(part, self.variant))
    }

    /// Whether the engine reads an answer as the choice.
    fn says(&self, words: &AnswerContent, choice: &Choice, style: AnswerStyle) -> bool {
        let answer = ParsedAnswer::new(self.flow, self.step(), words.output.as_ref(), &words.text);
        match read_answer(self.flow, self.step(), &answer, 0) {
            Ok(GateResult::Outcome { outcome, output, .. }) if outcome == choice.outcome => {
                self.leads(choice, output.as_ref())
            }
            Ok(GateResult::Judge { judge, reader, .. }) if style == AnswerStyle::Judged => {
                let later =
                    self.readers().iter().skip(usize::from(reader)).filter_map(|reader| match reader {
                        OutcomeReader::Judge { step } => Some(*step),
                        _ => None,
                    });
                let says = |judge: StepId| {
                    flow_queries::list_step_outcomes(self.flow, self.flow.step(judge))
                        .contains(&choice.outcome)
                };
                says(judge) || later.into_iter().any(says)
            }
            _ => false,
        }
    }

    /// Whether an answer selects the target of the choice.
    fn leads(&self, choice: &Choice, output: Option<&Value>) -> bool {
        let Some(edge) = choice.edge.and_then(|edge| self.step().edges.get(edge)) else { return true };
        let handed = self
            .step()
            .handoff
            .iter()
            .filter_map(|handoff| Some((handoff.key.clone(), handoff.value(output?)?)))
            .collect();
        let from = self.run.progress.visit.as_ref().map_or(&self.step().name, |visit| &visit.step);
        let led = resolve_target(self.flow, self.run, from, &edge.to, output, &handed);
        match led {
            Ok(cuegate_engine::Route::Step(to)) => choice.to == Some(to),
            Ok(cuegate_engine::Route::End(_)) => choice.to.is_none(),
            Err(_) => false,
        }
    }
}

/// Whether a value equals a case. Numbers are compared by value.
fn is_case(value: &Value, case: &str) -> bool {
    let is_equal = |number: f64| case.parse::<f64>().is_ok_and(|case| case == number);
    is_text_of_value(value, case) || value.as_f64().is_some_and(is_equal)
}

/// Whether a text states the value.
fn is_text_of_value(value: &Value, text: &str) -> bool {
    let written = value.as_str().map_or_else(|| Cow::from(value.to_string()), Cow::from);
    written == text
}

/// The content of a simulated report.
pub(super) fn report_text(name: &str) -> String {
    format!("# {name}\n\nAs simulated.\n")
}
