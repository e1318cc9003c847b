//! The log for programs: one JSON object of `cuegate/event/v1` per event.
//!
//! **The names of events and of their fields are public**: new ones may be added; existing ones keep their name and
//! meaning. They follow the journal's, with these differences:
//!
//! - Every line has `schema`, `run`, `seq` (the record), `at` (RFC 3339, UTC) and `event`.
//! - A value that the journal stores by digest is its text when that is available and short, else
//!   `{"blob": digest, "bytes": n}`. `output` is the parsed JSON.
//! - A time is RFC 3339 (`not_before`, `until`, `looked`), not milliseconds.
//! - A field without a value is left out; only `answered` has all of its fields but `handshake` always, null where it has none.
//! - Internal fields are left out: a provider's receipt, the plan of a prompt. The exact prompt of an ask is in its
//!   `answered`.
//!
//! | event | fields besides those of every line |
//! |---|---|
//! | `run_started` | `program flow dialect path base file sources params task set provider model agents{stand_ins[] steps{STEP[]} reports{STEP[]}} script iterations_max repairs_max same_answers_max same_files_max wait_max_ms poll_interval_ms place tree budget{usd tokens asks minutes ask_usd ask_tokens} notional load{separate interactive gate_retries width} sandboxed settings programs{NAME} asks_max report_dir machine{id host root}` |
//! | `step_entered` | `step counts visit attempt iteration remedy{of validator}` |
//! | `origin_set` | `step origin` |
//! | `ask_requested` | `step member kind not_before judge agent` |
//! | `report_written` | `step member name visit content` |
//! | `responded` | `step answers[{step text outcome blocked why}]` |
//! | `reserved` | `ask usd tokens` |
//! | `ask_cut` | `ask step usage spoilt` |
//! | `overspent` | `ask what of usd tokens` |
//! | `time_passed` | `ms` |
//! | `changed_by_others` | `step paths[] tree{}` |
//! | `main_checkout_changed` | `step paths[] more` |
//! | `left_in_git` | `what[]` |
//! | `snapshot_gaps` | `what[]` |
//! | `sandbox_denied` | `by{seq member} step to why` |
//! | `command_requested` | `step index`, `member`, `claim` (the outcome, when all pass) |
//! | `tools_used` | `ask step calls[{tool target result at_ms duration_ms output output_bytes}] more` (`result` is `ok`, `failed`, `denied` or `unknown`) |
//! | `answered` | `ask{seq member} step kind prompt system_prompt output text usage{input_tokens output_tokens cost_usd estimated} model provider handshake session duration_ms changed_files tree put{schema session}` |
//! | `answered_late` | `ask usage` |
//! | `answer_rejected` | `step member why` |
//! | `boundary_violated` | `step permission paths` |
//! | `handed_off` | `step key value scalar text` |
//! | `summarised` | `summary read_only` |
//! | `faulted` | `ask step class message agent usage changed_files tree` |
//! | `agent_out` | `ask step agent model any_model class until` |
//! | `command_finished` | `step index validator passed ended stdout stderr duration_ms tree`, `member`, `changed_files` |
//! | `counter_set` | `counter value` |
//! | `decided` | `step outcome reason fallback way` |
//! | `member_ended` | `index step outcome why blocked answer` |
//! | `monitor_fired` | `monitor rounds` |
//! | `condition_met` | `condition why` |
//! | `probes_requested` | `probes next{step again} outcome` |
//! | `probed` | `probe condition holds failed said looked duration_ms last tree` |
//! | `step_left` | `step outcome target overridden_by` |
//! | `visit_ended` | `step visit attempt outcome target overridden_by changed_files` |
//! | `person_asked` | `question again` |
//! | `person_answered` | `text found asks_max` |
//! | `question_answered` | `step member question text` |
//! | `inspected` | `ask step found problems` |
//! | `action_found` | `step member index action value handler allowed` |
//! | `effects_requested` | `phase first effects[]{kind}` |
//! | `closure_narrowed` | `step closure{labels closes}` |
//! | `effect_delayed` | `effect action delay why until_ms` |
//! | `effect_resent` | `effect action` |
//! | `effect_finished` | `effect step action state said url stdout stderr duration_ms changed_files tree` |
//! | `ending` | `state reason validated hold{step again} stays` |
//! | `validation_skipped` | `step failed` |
//! | `suspended` | `waiting{kind detail until}` |
//! | `forked` | `run records moment place first_tree tree budget report_dir finalize no_github new_sessions[] machine{id host root}` |
//! | `resumed` | `iterations_max repairs_max provider model agents script budget unsandboxed asks_max found retry note settings new_sessions moved{to{id host root} work report_dir}` |
//! | `ended` | `state reason validated hold{step again} stays` |

use cuegate_engine::{Event, RunEnd, RunResumed, Usage};
use cuegate_flow::model::BlobRef;
use serde_json::{Map, Value, json};

use crate::{
    budget::{budget_json, usd_of_micros},
    format::format_rfc3339,
    stamped::{StampedRecord, Texts},
    summary::{json_of_agent_plan, json_of_cost, json_of_waiting},
};

/// Texts up to this many bytes are inlined; longer ones are printed as digests.
const INLINE_MAX: u64 = 4 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogOptions {
    /// Inlines texts of any length.
    pub full: bool,
}

/// The events of a record as JSON objects of `cuegate/event/v1`, one per line of the log.
pub fn event_json(run: &str, record: &StampedRecord, texts: Texts<'_>, options: LogOptions) -> Vec<Value> {
    let texts = TextLookup { texts, full: options.full };
    let line = |event: &Event| {
        let mut object = Map::new();
        object.insert("schema".to_owned(), json!("cuegate/event/v1"));
        object.insert("run".to_owned(), json!(run));
        object.insert("seq".to_owned(), json!(record.seq));
        object.insert("at".to_owned(), json!(format_rfc3339(record.at_ms)));
        object.extend(fields_of_event(event, &texts));
        Value::Object(object)
    };
    record.events.iter().map(line).collect()
}

struct TextLookup<'t> {
    texts: Texts<'t>,
    full: bool,
}

impl TextLookup<'_> {
    /// A stored text, or its digest when it is long or missing.
    fn short(&self, blob: &BlobRef) -> Value {
        match self.full || blob.len <= INLINE_MAX {
            true => self.whole(blob),
            false => json_of_blob_ref(blob),
        }
    }

    /// A stored text of any length, or its digest when it is missing.
    fn whole(&self, blob: &BlobRef) -> Value {
        (self.texts)(blob).map_or_else(|| json_of_blob_ref(blob), Value::String)
    }

    fn parsed(&self, blob: &BlobRef) -> Value {
        let text = (self.texts)(blob);
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_else(|| json_of_blob_ref(blob))
    }
}

fn json_of_blob_ref(blob: &BlobRef) -> Value {
    json!({ "blob": blob.digest, "bytes": blob.len })
}

/// The fields of an event, its name first.
fn fields_of_event(event: &Event, texts: &TextLookup<'_>) -> Map<String, Value> {
    let mut object = journal_fields_of_event(event);
    // This runs before answers are inserted: an answer that looks like a digest must stay an answer.
    for value in object.values_mut() {
        if let Some(blob) = as_blob(value) {
            *value = texts.short(&blob);
        }
    }
    match event {
        Event::RunStarted(started) => {
            if !started.agents.is_usual() {
                object.insert("agents".to_owned(), json_of_agent_plan(&started.agents));
            }
            // A secret while the run lasts, and of no use afterwards.
            object.shift_remove("fence_key");
            let sources = started.sources.iter().map(|source| source_json(&source.path, &source.blob));
            object.insert("sources".to_owned(), sources.collect());
            if let Some(script) = &started.script {
                object.insert("script".to_owned(), source_json(&script.path, &script.blob));
            }
            let params = started.params.iter().map(|(name, blob)| (name.to_string(), texts.short(blob)));
            object.insert("params".to_owned(), params.collect());
            if started.budget.limits() {
                object.insert("budget".to_owned(), budget_json(&started.budget));
            }
        }
        Event::StepEntered { remedy: Some(remedy), .. } => {
            let remedy = json!({ "of": remedy.of, "validator": remedy.validator });
            object.insert("remedy".to_owned(), remedy);
        }
        Event::AskRequested(request) => {
            for internal in ["not_before_ms", "follow", "context"] {
                object.shift_remove(internal);
            }
            if let Some(ms) = request.not_before_ms {
                object.insert("not_before".to_owned(), json!(format_rfc3339(ms)));
            }
            if let Some(agent) = &request.agent {
                object.insert("agent".to_owned(), json!(agent.to_string()));
            }
            if let Some(judging) = request.context.judging() {
                object.insert("judge".to_owned(), json!(judging.judge));
            }
        }
        Event::CommandRequested { claim: Some(claim), .. } => {
            object.insert("claim".to_owned(), json!(claim.outcome));
        }
        Event::Responded { answers, .. } => {
            let spoken = answers.iter().map(|spoken| {
                let text = spoken.text.as_ref().map(|blob| texts.short(blob));
                json!({ "step": spoken.step, "text": text, "outcome": spoken.outcome,
                    "blocked": spoken.blocked, "why": spoken.why })
            });
            object.insert("answers".to_owned(), spoken.collect());
        }
        Event::ActionFound { handler: Some(handler), .. } => {
            object.insert("handler".to_owned(), json!(handler.to_string()));
        }
        Event::ToolsUsed { calls, .. } => {
            let calls = calls.iter().map(|call| {
                let output = call.output.as_ref().map(|blob| texts.short(blob));
                let mut call = json!(call);
                if let (Some(output), Some(call)) = (output, call.as_object_mut()) {
                    call.insert("output".to_owned(), output);
                }
                call
            });
            object.insert("calls".to_owned(), calls.collect());
        }
        Event::Answered { .. } => write_answer_fields(&mut object, event, texts),
        Event::AnsweredLate { usage, .. } => {
            object.insert("usage".to_owned(), usage_json(usage));
        }
        Event::AskCut { usage, .. } => {
            object.insert("usage".to_owned(), usage_json(usage));
        }
        Event::Reserved { share, .. } | Event::Overspent { share, .. } => {
            object.shift_remove("usd_micro");
            object.insert("usd".to_owned(), json!(share.usd_micro.map(usd_of_micros)));
            object.insert("tokens".to_owned(), json!(share.tokens));
        }
        Event::AgentOut { until_ms, .. } => {
            object.shift_remove("until_ms");
            if let Some(ms) = until_ms {
                object.insert("until".to_owned(), json!(format_rfc3339(*ms)));
            }
        }
        Event::Faulted { usage, agent, .. } => {
            object.shift_remove("receipt");
            if let Some(agent) = agent {
                object.insert("agent".to_owned(), json!(agent.to_string()));
            }
            object.insert("usage".to_owned(), usage_json(usage));
        }
        Event::Suspended { waiting: wait } => {
            object.insert("waiting".to_owned(), json_of_waiting(wait));
        }
        Event::Forked(fork) => {
            object.insert("budget".to_owned(), budget_json(&fork.budget));
        }
        Event::Resumed(resumed) => {
            let RunResumed { script, budget, agents, .. } = resumed;
            if let Some(agents) = agents {
                object.insert("agents".to_owned(), json_of_agent_plan(agents));
            }
            if let Some(script) = script {
                object.insert("script".to_owned(), source_json(&script.path, &script.blob));
            }
            if let Some(budget) = budget {
                object.insert("budget".to_owned(), budget_json(budget));
            }
        }
        Event::ProbesRequested { next, .. } => {
            object.insert("next".to_owned(), json!({ "step": next.step, "again": next.again }));
        }
        Event::Probed { at_ms, .. } => {
            object.shift_remove("at_ms");
            object.insert("looked".to_owned(), json!(format_rfc3339(*at_ms)));
        }
        Event::Ending(RunEnd { hold: Some(hold), .. }) | Event::Ended { hold: Some(hold), .. } => {
            object.insert("hold".to_owned(), json!({ "step": hold.step, "again": hold.again }));
        }
        _ => {}
    }
    object
}

/// The event as the journal writes it.
fn journal_fields_of_event(event: &Event) -> Map<String, Value> {
    match serde_json::to_value(event) {
        Ok(Value::Object(object)) => object,
        // Every event serialises to an object: its keys are strings, its numbers finite or null.
        _ => Map::new(),
    }
}

/// An answer; unlike other events it has all its fields.
fn write_answer_fields(object: &mut Map<String, Value>, event: &Event, texts: &TextLookup<'_>) {
    let Event::Answered {
        ask,
        step,
        kind,
        output,
        text,
        prompt,
        system_prompt,
        usage,
        provider,
        model,
        handshake,
        session,
        duration_ms,
        changed_files,
        tree,
        put: way,
        ..
    } = event
    else {
        return;
    };
    let short = |blob: &Option<BlobRef>| blob.as_ref().map(|blob| texts.short(blob));
    let name = object.shift_remove("event").unwrap_or_default();
    object.clear();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("event", name);
    put("ask", json!(ask));
    put("step", json!(step));
    put("kind", json!(kind));
    put("prompt", json!(short(prompt)));
    put("system_prompt", json!(short(system_prompt)));
    put("output", json!(output.as_ref().map(|blob| texts.parsed(blob))));
    put("text", json!(text.as_ref().map(|blob| texts.whole(blob))));
    put("usage", usage_json(usage));
    put("model", json!(model));
    put("provider", json!(provider));
    if let Some(handshake) = handshake {
        put("handshake", json!(handshake));
    }
    put("session", json!(session));
    put("duration_ms", json!(duration_ms));
    put("changed_files", json!(changed_files));
    if let Some(tree) = tree {
        put("tree", json!(tree));
    }
    if let Some(way) = way {
        put("put", json!(way));
    }
}

fn usage_json(usage: &Usage) -> Value {
    let mut json = json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": json_of_cost(usage.cost_usd),
    });
    if usage.is_estimated {
        json["estimated"] = true.into();
    }
    json
}

fn source_json(path: &str, blob: &BlobRef) -> Value {
    json!({ "path": path, "blob": blob.digest, "bytes": blob.len })
}

/// The digest in a value of the journal's form `{digest, len}`.
fn as_blob(value: &Value) -> Option<BlobRef> {
    let object = value.as_object().filter(|object| object.len() == 2)?;
    let digest = object.get("digest")?.as_str()?.to_owned();
    Some(BlobRef { digest, len: object.get("len")?.as_u64()? })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{LogOptions, event_json};
    use crate::testing::{START_MS, Scene};

    fn lines(scene: &Scene, options: LogOptions) -> Vec<Value> {
        scene
            .records
            .iter()
            .flat_map(|record| event_json("r1", record, &|blob| scene.text(blob), options))
            .collect()
    }

    fn event_named<'v>(lines: &'v [Value], event: &str) -> &'v Value {
        lines.iter().find(|line| line["event"] == event).expect("it happened")
    }

    #[test]
    fn one_of_each_event() {
        let mut seen: Vec<String> = Vec::new();
        let mut first_lines = Vec::new();
        for scene in [Scene::remedied(), Scene::reviewed()] {
            for line in lines(&scene, LogOptions::default()) {
                let event = line["event"].as_str().unwrap().to_owned();
                if !seen.contains(&event) {
                    seen.push(event);
                    first_lines.push(line.to_string());
                }
            }
        }
        insta::assert_snapshot!(first_lines.join("\n"), @r#"
        {"schema":"cuegate/event/v1","run":"r1","seq":0,"at":"2026-11-21T12:00:00.000Z","event":"run_started","program":"0.1.0","flow":"iterator","dialect":"registry-closing","path":".agent/iterator","base":"","sources":[{"path":"agent.json","blob":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","bytes":2}],"params":{"issue":"7"},"set":[],"provider":"scripted","iterations_max":8,"repairs_max":1,"wait_max_ms":60000,"place":{"work":"/work/project","owned":false,"dirty":true},"tree":{"tree":"t0","head":"c0","refs":"r0"}}
        {"schema":"cuegate/event/v1","run":"r1","seq":0,"at":"2026-11-21T12:00:00.000Z","event":"step_entered","step":"initial.fix","counts":true,"visit":1,"attempt":1,"iteration":1}
        {"schema":"cuegate/event/v1","run":"r1","seq":0,"at":"2026-11-21T12:00:00.000Z","event":"ask_requested","step":"initial.fix","kind":"work"}
        {"schema":"cuegate/event/v1","run":"r1","seq":1,"at":"2026-11-21T12:00:01.200Z","event":"answered","ask":{"for":"step","seq":0},"step":"initial.fix","kind":"work","prompt":"Fix issue 7.\nKeep it small.\n","system_prompt":{"blob":"717a1fb67874c01bcfbf92f4dbbb2926e8ee77cc4d5061efd23012c6ea019eca","bytes":5100},"output":{"action":"next","approach":"small steps","summary":"Understood."},"text":null,"usage":{"input_tokens":1200,"output_tokens":300,"cost_usd":0.012},"model":"stand-in-1","provider":"scripted","session":"s-1","duration_ms":1200,"changed_files":["src/a.txt"],"tree":{"tree":"t1","head":"c0","refs":"r0"}}
        {"schema":"cuegate/event/v1","run":"r1","seq":1,"at":"2026-11-21T12:00:01.200Z","event":"summarised","summary":"Understood."}
        {"schema":"cuegate/event/v1","run":"r1","seq":1,"at":"2026-11-21T12:00:01.200Z","event":"handed_off","step":"initial.fix","key":"approach","value":"small steps","scalar":"small steps","text":true}
        {"schema":"cuegate/event/v1","run":"r1","seq":1,"at":"2026-11-21T12:00:01.200Z","event":"decided","step":"initial.fix","outcome":"next","fallback":false}
        {"schema":"cuegate/event/v1","run":"r1","seq":1,"at":"2026-11-21T12:00:01.200Z","event":"visit_ended","step":"initial.fix","visit":1,"attempt":1,"outcome":"next","target":"continuation.fix","changed_files":["src/a.txt"]}
        {"schema":"cuegate/event/v1","run":"r1","seq":2,"at":"2026-11-21T12:00:02.400Z","event":"answer_rejected","step":"continuation.fix","why":"`action` is `finish`, allowed are `next`, `handoff`, `abort`"}
        {"schema":"cuegate/event/v1","run":"r1","seq":3,"at":"2026-11-21T12:00:03.600Z","event":"origin_set","step":"closure.fix","origin":"continuation.fix"}
        {"schema":"cuegate/event/v1","run":"r1","seq":4,"at":"2026-11-21T12:00:04.800Z","event":"command_requested","step":"closure.fix/validators","index":0,"command":"cargo test"}
        {"schema":"cuegate/event/v1","run":"r1","seq":5,"at":"2026-11-21T12:00:05.000Z","event":"command_finished","step":"closure.fix/validators","index":0,"validator":"tests","command":"cargo test","passed":false,"ended":"exit 1","stdout":"running 3 tests\n\u001b[31mtest a ... FAILED\u001b[0m\n```\n","stderr":"","duration_ms":200}
        {"schema":"cuegate/event/v1","run":"r1","seq":5,"at":"2026-11-21T12:00:05.000Z","event":"counter_set","counter":"remedies:closure.fix","value":1}
        {"schema":"cuegate/event/v1","run":"r1","seq":5,"at":"2026-11-21T12:00:05.000Z","event":"step_left","step":"closure.fix/validators","outcome":"fail(0)","target":"continuation.fix"}
        {"schema":"cuegate/event/v1","run":"r1","seq":6,"at":"2026-11-21T12:00:05.050Z","event":"faulted","ask":{"for":"step","seq":5},"step":"continuation.fix","class":"rate_limited","message":"slow down","usage":{"input_tokens":10,"output_tokens":0,"cost_usd":null}}
        {"schema":"cuegate/event/v1","run":"r1","seq":10,"at":"2026-11-21T12:00:07.850Z","event":"ended","state":"completed","reason":"`closure.fix` completed the workflow","validated":true}
        {"schema":"cuegate/event/v1","run":"r1","seq":1,"at":"2026-11-21T12:00:01.200Z","event":"responded","step":"plan","answers":[{"step":"plan","text":"{\"action\":\"ready\"}","outcome":null,"blocked":false,"why":null}]}
        {"schema":"cuegate/event/v1","run":"r1","seq":2,"at":"2026-11-21T12:00:02.100Z","event":"member_ended","index":1,"step":"style","outcome":"needs_fix","blocked":false,"answer":"{\"action\":\"needs_fix\"}"}
        {"schema":"cuegate/event/v1","run":"r1","seq":7,"at":"2026-11-21T12:00:07.200Z","event":"monitor_fired","monitor":"monitor:reviewers+fix","rounds":2}
        "#);
    }

    #[test]
    fn long_texts_are_digests_unless_full() {
        let scene = Scene::remedied();
        let short = lines(&scene, LogOptions::default());
        assert_eq!(event_named(&short, "answered")["system_prompt"]["bytes"], 5_100);
        let full = lines(&scene, LogOptions { full: true });
        let text = event_named(&full, "answered")["system_prompt"].as_str().unwrap();
        assert_eq!(text.len(), 5_100);
    }

    #[test]
    fn missing_texts_are_digests() {
        let scene = Scene::remedied();
        let line = event_json("r1", &scene.records[1], &|_| None, LogOptions { full: true });
        assert_eq!(line[0]["output"]["bytes"], 66);
        assert!(line[0]["prompt"]["blob"].is_string());
    }

    #[test]
    fn an_answer_that_looks_like_a_digest_stays_an_answer() {
        let mut scene = Scene::start(crate::testing::registry());
        scene.says(json!({"digest": "00", "len": 1}));
        let lines = lines(&scene, LogOptions::default());
        assert_eq!(event_named(&lines, "answered")["output"], json!({"digest": "00", "len": 1}));
    }

    #[test]
    fn times_are_rfc_3339() {
        let mut scene = Scene::start(crate::testing::registry());
        scene.faults(cuegate_engine::FaultClass::Crashed, "gone", None).faults(
            cuegate_engine::FaultClass::RateLimited,
            "later",
            Some(3_600_000),
        );
        assert_eq!(scene.records[0].at_ms, START_MS);
        let lines = lines(&scene, LogOptions::default());
        let again = lines.iter().find(|line| line.get("not_before").is_some()).unwrap();
        assert_eq!(again["not_before"], "2026-11-21T12:00:01.050Z");
        assert_eq!(event_named(&lines, "suspended")["waiting"]["until"], "2026-11-21T13:00:00.100Z");
        assert!(lines.iter().all(|line| !line.to_string().contains("_ms\":17")));
    }
}
