//! Check flows: work, and its check as a verification or a closure step, once for each count that decides the way.

use cuegate_flow::Str;
use serde_json::{Map, Value, json};

use super::super::check_flow::{
    CheckFlow, CheckedStep, EXECUTIONS_MAX, PromptReference, check_name, file_of,
};
use super::answers::{Says, Speaking};
use super::checked_steps::{self, FAILED, Words, schema_of_done};
use super::rounds::{Limit, Rounds, To};
use super::schemas::FILE;
use super::{Documents, Migration, Source, agent, programs, prompts};

/// Facts whose numbers count checks as well now.
const COUNTED: [&str; 4] = ["iteration", "completed_iterations", "max_iterations", "remaining"];

/// Keys of a front matter that say where a prompt belongs.
const PLACES: [&str; 7] = ["stepId", "stepKind", "c1", "c2", "c3", "edition", "adaptation"];

/// Migrates a check flow. `None` when it names a step or a prompt that is not there.
pub(super) fn migrate(
    documents: Documents<'_>,
    flow: &CheckFlow<'_>,
    limit: Option<u32>,
    source: &Source<'_, '_, '_>,
) -> Option<Migration> {
    let mut migration = Migration { name: documents.name(source), ..Migration::default() };
    let entry = source.agent.verdict.entry.or(flow.entry)?;
    let executions_max = limit.unwrap_or(EXECUTIONS_MAX);
    // A run can be given more than its definition says, but never more than the document does.
    let rounds = Rounds::of(flow, entry.text, EXECUTIONS_MAX)?;
    let limit = rounds.limit(executions_max);
    agent::of_check_flow(documents.agent.clone(), prompts::SYSTEM, limit.visits_max, source, &mut migration);
    prompts::system(&documents.read, source, &mut migration);
    let mut writing = Writing { flow, rounds: &rounds, source, schemas: Map::new(), editions: Vec::new() };
    let mut steps = Map::new();
    for at in 0..rounds.nodes.len() {
        writing.step(at, &mut steps, &mut migration)?;
    }
    let registry = json!({
        "agentId": migration.name, "version": "1.0.0", "c1": "steps", "userPromptsBase": "prompts",
        "schemasBase": "schemas", "entryStep": writing.id(0), "steps": steps,
    });
    migration.write("steps_registry.json", &registry);
    let schemas =
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": writing.schemas});
    migration.write(&format!("schemas/{FILE}"), &schemas);
    programs::migrate(documents.agent.as_ref(), source, &mut migration);
    note_copies(flow, &rounds, &mut migration);
    note_limit(&limit, executions_max, &mut migration);
    note_rest(&mut migration);
    Some(migration)
}

/// Writes the steps of a check flow.
struct Writing<'w, 'f, 'j> {
    flow: &'w CheckFlow<'j>,
    rounds: &'w Rounds,
    source: &'w Source<'w, 'f, 'j>,
    schemas: Map<String, Value>,
    /// The prompts of checks by what their agents are told to say: step, words, edition.
    editions: Vec<(usize, Words, String)>,
}

impl Writing<'_, '_, '_> {
    fn id(&self, at: usize) -> String {
        checked_steps::id(self.flow, &self.rounds.nodes[at], self.words(at))
    }

    /// The words of a check; those of work are of no meaning.
    fn words(&self, at: usize) -> Words {
        Words::of(&self.rounds.nodes[at])
    }

    /// The step that a way leads to.
    fn target(&self, at: usize, to: To) -> Value {
        match to {
            To::Node(next) => json!(self.id(next)),
            To::Completed => Value::Null,
            To::Failed => json!(format!("{FAILED}.{}", self.id(at))),
        }
    }

    fn step(&mut self, at: usize, steps: &mut Map<String, Value>, migration: &mut Migration) -> Option<()> {
        let node = &self.rounds.nodes[at];
        let step = self.flow.steps.get(node.copy.step)?;
        match node.copy.checks {
            false => self.work(at, step, steps, migration),
            true => self.check(at, step, steps, migration),
        }
    }

    fn work(
        &mut self,
        at: usize,
        step: &CheckedStep<'_>,
        steps: &mut Map<String, Value>,
        migration: &mut Migration,
    ) -> Option<()> {
        let (id, to) = (self.id(at), self.rounds.nodes[at].pass);
        let word = match to {
            To::Node(next) if next == at => "repeat",
            To::Node(next) if self.closes(next) => "handoff",
            _ => "next",
        };
        let schema = format!("work.{word}");
        self.schemas.entry(schema.clone()).or_insert_with(|| schema_of_done(word));
        let target = self.target(at, to);
        let mut written = checked_steps::step(&id, &title(step, &self.rounds.nodes[at].copy), "work", "work");
        written["c3"] = json!(step.id);
        written["outputSchemaRef"] = json!({"file": FILE, "schema": schema});
        // Whatever an agent says of its work, it was done.
        written["structuredGate"] = json!({
            "allowedIntents": [word], "intentSchemaRef": "#/properties/next_action/properties/action",
            "intentField": "next_action.action", "failFast": false, "fallbackIntent": word,
        });
        written["transitions"] = json!({word: {"target": target}});
        self.prompt(step.prompt.as_ref()?, &format!("work/{}/f_default.md", step.id), "", migration)?;
        migration.answers.steps.push(Speaking {
            id: id.clone(),
            of: step.id.to_owned(),
            says: Says::Done(word),
        });
        steps.insert(id, written);
        Some(())
    }

    fn check(
        &mut self,
        at: usize,
        step: &CheckedStep<'_>,
        steps: &mut Map<String, Value>,
        migration: &mut Migration,
    ) -> Option<()> {
        let node = &self.rounds.nodes[at];
        let (id, words, check) = (self.id(at), self.words(at), step.check.as_ref()?);
        let fails = [node.pass, node.fail].contains(&To::Failed);
        let mut schema = words.schema(&check.format.schema);
        if fails {
            schema["properties"][checked_steps::NEVER] = json!({"type": "null"});
        }
        let reference = self.schema_of(step.id, schema);
        let mut written = checked_steps::step(&id, &title(step, &node.copy), words.kind(), "check");
        written["c3"] = json!(step.id);
        let edition = self.edition(node.copy.step, words);
        if edition != "default" {
            written["edition"] = json!(edition);
        }
        written["outputSchemaRef"] = json!({"file": FILE, "schema": reference});
        written["structuredGate"] = words.gate();
        if fails {
            written["structuredGate"]["handoffFields"] = json!([checked_steps::NEVER]);
        }
        let mut transitions = Map::new();
        for (word, to) in [(words.pass, node.pass), (words.fail, node.fail)] {
            transitions.insert(word.to_owned(), json!({"target": self.target(at, to)}));
        }
        written["transitions"] = Value::Object(transitions);
        let to = format!("check/{}/f_{edition}.md", step.id);
        self.prompt(check.prompt.as_ref()?, &to, &words.told(), migration)?;
        let declared = &check.format.schema["properties"];
        let is_text = |key: &&str| declared.get(key).is_none_or(|about| *about == json!({"type": "string"}));
        migration.answers.steps.push(Speaking {
            id: id.clone(),
            of: step.id.to_owned(),
            says: Says::Check {
                check: check_name(step.id),
                pass: words.pass,
                fail: words.fail,
                texts: ["message", "summary"].into_iter().filter(is_text).collect(),
            },
        });
        steps.insert(id.clone(), written);
        if fails {
            self.failure(&id, step, steps, migration);
        }
        Some(())
    }

    /// The step that fails a run: it needs what no step leaves.
    fn failure(
        &mut self,
        check: &str,
        step: &CheckedStep<'_>,
        steps: &mut Map<String, Value>,
        migration: &mut Migration,
    ) {
        let id = format!("{FAILED}.{check}");
        let title = format!("{}: no retries left", step.name.unwrap_or(step.id));
        let mut written = checked_steps::step(&id, &title, "work", FAILED);
        written["c3"] = json!(step.id);
        written["inputs"] =
            json!({checked_steps::NEVER: {"from": format!("{check}.{}", checked_steps::NEVER)}});
        self.schemas.entry(FAILED).or_insert_with(|| schema_of_done("abort"));
        written["outputSchemaRef"] = json!({"file": FILE, "schema": FAILED});
        written["structuredGate"] = json!({
            "allowedIntents": ["abort"], "intentSchemaRef": "#/properties/next_action/properties/action",
            "intentField": "next_action.action",
        });
        written["transitions"] = json!({"abort": {"target": null}});
        steps.insert(id, written);
        let path = format!("prompts/steps/{FAILED}/{}/f_default.md", step.id);
        if migration.at(&path).is_none() {
            let text = format!(
                "Nobody is asked this. The check of `{}` did not pass and no retries are left: a run that comes here has \
                 failed, because this step needs `{{uv-{never}}}`, which no step leaves.\n",
                step.id,
                never = checked_steps::NEVER
            );
            migration.put(&path, text);
        }
    }

    /// Whether a copy completes runs, so that work hands off to it.
    fn closes(&self, at: usize) -> bool {
        self.rounds.nodes[at].copy.checks && self.words(at).kind() == "closure"
    }

    /// A schema's name: one for all copies of a step that have the same.
    fn schema_of(&mut self, step: &str, schema: Value) -> String {
        let mut names = (1..).map(|nth| if nth == 1 { step.to_owned() } else { format!("{step}.{nth}") });
        let same = |name: &String| self.schemas.get(name).is_none_or(|known| *known == schema);
        let name = names.find(same).unwrap_or_else(|| step.to_owned());
        self.schemas.insert(name.clone(), schema);
        name
    }

    /// The edition of a check's prompt that tells these words.
    fn edition(&mut self, step: usize, words: Words) -> String {
        let of_step = self.editions.iter().filter(|(known, ..)| *known == step);
        if let Some((.., edition)) = of_step.clone().find(|(_, known, _)| *known == words) {
            return edition.clone();
        }
        let edition = match of_step.count() {
            0 => "default".to_owned(),
            _ => format!("{}-{}", words.pass, words.fail),
        };
        self.editions.push((step, words, edition.clone()));
        edition
    }

    /// Writes a prompt once, with what is told besides.
    fn prompt(
        &self,
        reference: &PromptReference<'_>,
        to: &str,
        told: &str,
        migration: &mut Migration,
    ) -> Option<()> {
        let path = format!("prompts/steps/{to}");
        if migration.at(&path).is_some() {
            return Some(());
        }
        let Source { agent, places, desk, .. } = self.source;
        let (_, text): (String, Str) = file_of(reference, self.flow, agent, places, desk)?;
        for (number, line) in text.lines().enumerate() {
            let reads = |fact: &&&str| {
                line.contains(&format!("{{uv-{fact}}}")) || line.contains(&format!("{{{{{fact}}}}}"))
            };
            if let Some(fact) = COUNTED.iter().find(reads) {
                let text = format!("line {} reads `{fact}`, which counts checks as well now", number + 1);
                migration.note(&path, text, false);
            }
        }
        let mut text = without_place(&text);
        if !told.is_empty() {
            let note = "says at its end how to answer: take out what it says before of `ok` and `ng`";
            migration.note(&path, note, false);
            text = format!("{}\n\n{told}\n", text.trim_end());
        }
        migration.put(&path, text);
        Some(())
    }
}

/// What people call a copy.
fn title(step: &CheckedStep<'_>, copy: &super::rounds::Copy) -> String {
    let mut title = step.name.unwrap_or(step.id).to_owned();
    if copy.retries > 0 {
        title.push_str(&format!(", retry {}", copy.retries));
    }
    if copy.run > 1 {
        title.push_str(&format!(", execution {}", copy.run));
    }
    if copy.checks {
        title.push_str(": check");
    }
    title
}

/// A prompt whose front matter no longer says where it belonged.
fn without_place(text: &str) -> String {
    let mut fences = 0;
    let kept = text.split_inclusive('\n').enumerate().filter(|(number, line)| {
        let fence = line.trim_end() == "---";
        if fence && (*number == 0 || fences == 1) {
            fences += 1;
        }
        let key = line.split_once(':').map(|(key, _)| key);
        !(fences == 1 && !fence && key.is_some_and(|key| PLACES.contains(&key)))
    });
    let kept: String = kept.map(|(_, line)| line).collect();
    // What said nothing else is gone.
    kept.strip_prefix("---\n---\n").map(str::to_owned).unwrap_or(kept)
}

fn note_copies(flow: &CheckFlow<'_>, rounds: &Rounds, migration: &mut Migration) {
    for (index, step) in flow.steps.iter().enumerate() {
        let of = |checks: bool| {
            rounds.nodes.iter().filter(|node| node.copy.step == index && node.copy.checks == checks).count()
        };
        let place = format!("steps.{}", step.id);
        match (of(false), of(true)) {
            (0, _) => migration.note(&place, "left out: no run comes to it", false),
            (1, 1) => {}
            (work, checks) => {
                let text = format!(
                    "{work} work steps and {checks} checks stand for it, with the same prompts: the newer generation does \
                     not count executions and retries, so that each count has steps of its own"
                );
                migration.note(&place, text, false);
            }
        }
        let fails = |node: &super::rounds::Node| {
            node.copy.step == index && node.copy.checks && [node.pass, node.fail].contains(&To::Failed)
        };
        if rounds.nodes.iter().any(fails) {
            let text = "a run fails in a step `failed.*` when no retries are left: the newer generation has no word for \
                        that, so that the step needs what no step leaves";
            migration.note(&place, text, false);
        }
    }
}

/// A number as people count: `3rd`.
fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

fn note_limit(limit: &Limit, executions_max: u32, migration: &mut Migration) {
    let Limit { visits_max, exact, fails } = limit;
    let place = "runner.verdict.config.maxIterations";
    if !exact {
        let text = format!(
            "{visits_max} visits stand for {executions_max} executions: checks are visits now, and steps with `min` above 1 \
             are not checked each time, so that a run may execute more often before it is exhausted"
        );
        migration.note(place, text, true);
    }
    if !fails {
        let text = format!(
            "a run whose {} execution uses up the last retry ends as exhausted and not as failed",
            ordinal(executions_max)
        );
        migration.note(place, text, true);
    }
    let text = format!(
        "checks are visits now: {visits_max} visits stand for {executions_max} executions, also for `--max-iterations`"
    );
    migration.note(place, text, false);
}

fn note_rest(migration: &mut Migration) {
    let text = "agents may give up with `abort` in every step, which a check flow does not know";
    migration.note("answers", text, true);
    let text = "work says `next_action` and a check one of its words; an answer that does not is asked for once more \
                (`--repairs 0` for not), and then means what it meant: that the work was done, that the check did not pass";
    migration.note("answers", text, false);
    let text =
        "rows have no `check` and no `transition`, and checks are rows of their own: outcomes say the same";
    migration.note("results", text, false);
}

#[cfg(test)]
mod tests {
    use super::ordinal;

    #[test]
    fn numbers_as_people_count() {
        let all = [1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 100, 101, 111, 112].map(ordinal);
        let expected = "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 23rd 100th 101st 111th 112th";
        assert_eq!(all.join(" "), expected);
    }
}
