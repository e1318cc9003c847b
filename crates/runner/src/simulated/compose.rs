//! Answers that say what they are wanted to say, in the ways in which agents say it.

use cuegate_engine::{Reading, Run, read, target};
use cuegate_flow::{
    Act, Ask, FieldPath, Flow, Gate, Outcome, Reader, Schema, Selector, Step, StepId, Str, Target,
    reach::{Choice, Left, Pick},
    ways,
};
use serde_json::{Map, Value, json};

use super::sample::{put, sample, take_away};

/// An answer: what came as a structured one, and the text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Words {
    pub(super) output: Option<Value>,
    pub(super) text: String,
}

/// How an answer says its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// As a structured answer.
    Structured,
    /// In plain words, where that can be read, else as JSON in the text.
    Plain,
    /// Not at all, where a judge is asked then.
    Judged,
}

/// What is known where an answer is made.
pub(super) struct Scene<'s> {
    pub(super) flow: &'s Flow,
    pub(super) run: &'s Run,
    /// The step that is asked.
    pub(super) asked: StepId,
    /// What is said besides: what a verdict looks for, what is asked for in blocks.
    pub(super) beside: &'s str,
    /// Which of the alternatives of its schema an answer takes.
    pub(super) variant: usize,
}

impl Scene<'_> {
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

    fn readers(&self) -> &[Reader<StepId>] {
        match &self.step().gate {
            Gate::Readers(readers) => readers,
            _ => &[],
        }
    }

    /// An answer that the step's gate reads as what is chosen, in the first of some ways in which it can be said; `None`
    /// when there is none.
    pub(super) fn words(&self, choice: &Choice, styles: &[Style]) -> Option<Words> {
        let say = |style| {
            (0..4)
                .flat_map(move |variant| self.candidates(choice, style, self.variant + variant))
                .find(|words| self.says(words, choice, style))
        };
        styles.iter().find_map(|style| say(*style))
    }

    /// Anything that can be said: where nothing else can.
    pub(super) fn anything(&self) -> Words {
        match self.schema() {
            Some(schema) => Words { output: Some(sample(schema.value(), self.variant)), text: String::new() },
            None => Words { output: None, text: format!("As simulated.\n{}", self.beside) },
        }
    }

    fn candidates(&self, choice: &Choice, style: Style, variant: usize) -> Vec<Words> {
        let structured = |outcome: &Outcome| {
            let bodies = self.bodies(outcome, choice, variant);
            bodies.into_iter().map(|body| Words { output: Some(body), text: self.beside.to_owned() })
        };
        let plain = |text: String| Words { output: None, text: format!("{text}\n{}", self.beside) };
        match style {
            Style::Structured => structured(&choice.outcome).collect(),
            Style::Plain => {
                let said = self.said(&choice.outcome).into_iter().map(plain);
                let json = self.bodies(&choice.outcome, choice, variant);
                said.chain(json.into_iter().map(|body| plain(body.to_string()))).collect()
            }
            Style::Judged => {
                let nothing = plain("All is as it was simulated to be.".to_owned());
                std::iter::once(nothing).chain(structured(&Outcome::None)).collect()
            }
        }
    }

    /// Words in plain text that say an outcome.
    fn said(&self, outcome: &Outcome) -> Vec<String> {
        let mut found = Vec::new();
        for reader in self.readers() {
            match reader {
                Reader::Tag { name, base, outcomes } => {
                    let place = outcomes.iter().position(|means| means == outcome);
                    // Zero says that none holds, where numbers begin at one.
                    let none = (*outcome == Outcome::None && *base == 1).then_some(0);
                    let number = place.map(|place| place as u32 + base).or(none);
                    found.extend(number.map(|number| format!("As simulated. [{name}:{number}]")));
                }
                Reader::Said { name, words } => {
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

    /// Structured answers that may say an outcome, the likeliest first.
    fn bodies(&self, outcome: &Outcome, choice: &Choice, variant: usize) -> Vec<Value> {
        let named = self.readers().iter().find_map(|reader| match reader {
            Reader::Field { path, words, .. } => {
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
        let base = self.base(choice, variant);
        let Some((path, words)) = named else { return vec![base] };
        let values = self.spelled(path, &words);
        let body = |value: Value| {
            let mut body = base.clone();
            put(&mut body, path, value);
            body
        };
        values.into_iter().map(body).collect()
    }

    /// The values that say one of some words: as the schema lists them, else as they are.
    fn spelled(&self, path: &FieldPath, words: &[&Str]) -> Vec<Value> {
        let listed = self.schema().and_then(|schema| schema.values_at(path)).unwrap_or_default();
        let says = |value: &Value| {
            let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_lowercase());
            words.iter().any(|word| ***word == *text)
        };
        let listed = listed.into_iter().filter(says);
        listed.chain(words.iter().map(|word| Value::from(&***word))).collect()
    }

    /// All of an answer but its outcome: what its schema requires, what it hands on and reports, what selects.
    fn base(&self, choice: &Choice, variant: usize) -> Value {
        let mut body = match self.schema() {
            Some(schema) => sample(schema.value(), variant),
            None => Value::Object(Map::new()),
        };
        if !body.is_object() {
            body = Value::Object(Map::new());
        }
        for handoff in &self.step().handoff {
            let wanted = choice.leaves.iter().find(|(key, _)| *key == handoff.key).map(|(_, value)| value);
            match wanted {
                Some(value) => self.put_selecting(&mut body, &handoff.path, value),
                None if handoff.path.get(&body).is_none() => {
                    self.put_fitting(&mut body, &handoff.path, "as simulated");
                }
                None => {}
            }
        }
        if let Some(fused) = self.ask().and_then(|ask| ask.fused.as_ref()) {
            put(&mut body, &fused.response, json!("As simulated."));
            let reports: Map<String, Value> = self
                .ask()
                .into_iter()
                .flat_map(|ask| &ask.reports)
                .map(|report| (report.name.to_string(), json!(report_text(&report.name))))
                .collect();
            if !reports.is_empty() {
                put(&mut body, &fused.reports, Value::Object(reports));
            }
        }
        self.select(&mut body, choice);
        body
    }

    /// Says what selects the step that is chosen.
    fn select(&self, body: &mut Value, choice: &Choice) {
        let Some(edge) = choice.edge.and_then(|edge| self.step().edges.get(edge)) else { return };
        let (Target::Select { by: Selector::Field(path), .. } | Target::Jump { field: Some(path), .. }) =
            &edge.to
        else {
            return;
        };
        match &choice.pick {
            Pick::Field(value) => self.put_selecting(body, path, value),
            Pick::Named(step) => put(body, path, Value::from(&*self.flow.step(*step).name)),
            Pick::Unnamed => self.put_selecting(body, path, &Left::Absent),
            Pick::Any => {}
        }
    }

    /// Puts a value that selects at a path; where it is to be absent and something has to be there, `null`.
    fn put_selecting(&self, body: &mut Value, path: &FieldPath, value: &Left) {
        match value {
            Left::Is(text) => self.put_fitting(body, path, text),
            Left::Other => self.put_fitting(body, path, "none of these"),
            Left::Absent if self.schema().is_some_and(|schema| schema.requires(path)) => {
                put(body, path, Value::Null);
            }
            Left::Absent => take_away(body, path),
        }
    }

    /// Puts a text at a path in the form that the schema has for it: a number, a truth value, one that it lists.
    fn put_fitting(&self, body: &mut Value, path: &FieldPath, text: &str) {
        let part = self.schema().and_then(|schema| schema.at(path)).cloned();
        let Some(part) = part else { return put(body, path, json!(text)) };
        let rule = Schema::new(part.clone()).ok();
        let fits = |value: &Value| rule.as_ref().is_none_or(|rule| rule.problems(value).is_empty());
        let scalar = serde_json::from_str::<Value>(text).ok().filter(|value| !value.is_string());
        let listed = part.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        let same = listed.iter().find(|value| value.as_str() == Some(text)).cloned();
        let any = [Some(json!(text)), scalar, same].into_iter().flatten().find(|value| fits(value));
        let value = any.unwrap_or_else(|| sample(&part, self.variant));
        put(body, path, value);
    }

    /// Whether the engine reads an answer as what is chosen.
    fn says(&self, words: &Words, choice: &Choice, style: Style) -> bool {
        let reading = read(self.flow, self.step(), words.output.as_ref(), &words.text, 0);
        match reading {
            Ok(Reading::Outcome { outcome, output, .. }) if outcome == choice.outcome => {
                self.leads(choice, output.as_ref())
            }
            Ok(Reading::Judge { judge, reader, .. }) if style == Style::Judged => {
                let later =
                    self.readers().iter().skip(usize::from(reader)).filter_map(|reader| match reader {
                        Reader::Judge { step } => Some(*step),
                        _ => None,
                    });
                let says = |judge: StepId| {
                    ways::outcomes(self.flow, self.flow.step(judge)).contains(&choice.outcome)
                };
                says(judge) || later.into_iter().any(says)
            }
            _ => false,
        }
    }

    /// Whether an answer leads where the choice does.
    fn leads(&self, choice: &Choice, output: Option<&Value>) -> bool {
        let Some(edge) = choice.edge.and_then(|edge| self.step().edges.get(edge)) else { return true };
        let handed = self
            .step()
            .handoff
            .iter()
            .filter_map(|handoff| Some((handoff.key.clone(), handoff.path.get(output?)?.clone())))
            .collect();
        let from = self.run.visit.as_ref().map_or(&self.step().name, |visit| &visit.step);
        let led = target(self.flow, self.run, from, &edge.to, output, &handed);
        match led {
            Ok(cuegate_engine::Route::Step(to)) => choice.to == Some(to),
            Ok(cuegate_engine::Route::End(_)) => choice.to.is_none(),
            Err(_) => false,
        }
    }
}

/// What a simulated report says.
pub(super) fn report_text(name: &str) -> String {
    format!("# {name}\n\nAs simulated.\n")
}
