//! `cuegate/flow/v1`.

use cuegate_flow::{
    Str,
    model::{
        Act, Edge, Flow, Gate, Outcome, OutcomeReader, Step, StepId, Target, Template, Tools, Validator,
        sandbox::{Network, SandboxPolicy, SandboxRule},
    },
};
use serde_json::{Map, Value, json};

use super::{completion_rule, wording};

/// A flow as a JSON object of `cuegate/flow/v1`. Prompts and schemas are described, not copied.
pub fn show_json(flow: &Flow) -> Value {
    let params: Vec<Value> = flow
        .params
        .iter()
        .map(|param| {
            json!({
                "name": param.name, "flag": param.flag, "type": wording::param_type(param.kind),
                "required": param.required, "default": param.default, "description": param.description,
            })
        })
        .collect();
    let monitors: Vec<Value> = flow
        .monitors
        .iter()
        .map(|monitor| {
            json!({
                "name": monitor.name, "cycle": wording::stages_of_monitor(flow, monitor),
                "ignored": wording::names_of_steps(flow, &monitor.ignored),
                "threshold": monitor.threshold, "judge": flow.step(monitor.judge).name,
            })
        })
        .collect();
    json!({
        "schema": "cuegate/flow/v1",
        "name": flow.name,
        "dialect": flow.dialect,
        "entry": flow.step(flow.entry).name,
        "limits": { "iterations_max": flow.limits.iterations_max },
        "verdict": completion_rule::json_of_completion_rule(&flow.verdict),
        "params": params,
        "steps": flow.steps.iter().map(|step| step_json(flow, step)).collect::<Vec<_>>(),
        "monitors": monitors,
        "conduct": json_of_conduct(flow),
    })
}

fn json_of_conduct(flow: &Flow) -> Value {
    let conduct = &flow.conduct;
    let actions = conduct.actions.as_ref().map(|actions| {
        let handlers: Map<String, Value> = actions
            .handlers
            .iter()
            .map(|(name, reaction)| (name.to_string(), json!(reaction.as_text())))
            .collect();
        json!({ "marker": actions.marker, "types": actions.types, "handlers": handlers })
    });
    let mut object =
        json!({ "auto_response": conduct.auto_response, "actions": actions, "inspects": conduct.inspects });
    if let Some(issue) = &conduct.issue {
        object["issue"] = json!({
            "in_progress": issue.in_progress, "blocked": issue.blocked, "add": issue.add, "remove": issue.remove,
            "closure": issue.closure.as_str(),
        });
    }
    if conduct.sandbox == SandboxRule::Off {
        object["sandbox"] = json!(false);
    }
    if let Some(SandboxPolicy { network, writable }) = conduct.sandbox.required() {
        let (mode, hosts) = match network {
            Network::None => ("none", &[][..]),
            Network::Trusted(hosts) => ("trusted", &hosts[..]),
            Network::Custom(hosts) => ("custom", &hosts[..]),
        };
        let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        object["sandbox"] = json!({ "network": mode, "hosts": hosts, "writable": writable });
    }
    object
}

fn step_json(flow: &Flow, step: &Step<StepId>) -> Value {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("name", json!(step.name));
    put("title", json!(step.title));
    put("kind", json!(wording::kind_of_step(step)));
    put("counts", json!(step.counts));
    match &step.act {
        Act::Ask(ask) => {
            put("prompt", json_of_template(&ask.prompt));
            put("system", json!(ask.system.as_ref().map(json_of_template)));
            put("schema", json!(ask.schema.is_some()));
            put("persona", json!(ask.persona));
            put("reports", ask.reports.iter().map(|report| json!(report.name)).collect());
            put("model", json!(ask.model));
            let later = ask.later_models.iter();
            put(
                "later_models",
                later.map(|(visit, model)| json!({"visit": visit, "model": model})).collect(),
            );
            put("session", json!(wording::describe_session_rule(&ask.session)));
            put("permission", json!(step.boundary.permission.as_str()));
            put("tools", json_of_tools(&step.boundary.tools));
            if let Some(guard) = &ask.guard {
                put(
                    "commands",
                    guard.commands.iter().map(|guarded| json_of_command(&guarded.validator)).collect(),
                );
                put("mends_max", json!(guard.mends_max));
            }
        }
        Act::All { members, width } => {
            put("members", json!(wording::names_of_steps(flow, members)));
            put("width", json!(width));
        }
        Act::Exec { commands } => {
            put("commands", commands.iter().map(json_of_command).collect());
        }
        Act::Person { question } => {
            put("question", json_of_template(question));
        }
        Act::System(work) => {
            put("delay_ms", json!(work.delay_ms));
            let reads = work.reads.iter();
            put(
                "reads",
                reads.map(|read| json!({ "name": read.name, "what": read.what.as_str() })).collect(),
            );
            put("effects", work.effects.iter().map(|effect| json!(effect.name)).collect());
        }
    }
    put("gate", json_of_gate(flow, &step.gate));
    let inputs = step.inputs.iter().map(|input| {
        json!({
            "name": input.name, "step": input.step, "key": input.key,
            "required": input.required, "default": input.default,
        })
    });
    put("inputs", inputs.collect());
    let handoff = step.handoff.iter().map(|left| {
        let mut object = json!({ "key": left.key, "path": left.path.to_string() });
        if let Some(item) = &left.item {
            object["contains"] = json!(item);
        }
        object
    });
    put("handoff", handoff.collect());
    put("selectors", json!(wording::names_of_steps(flow, &step.selectors)));
    put("when", json!(step.when.as_ref().map(wording::source_name)));
    put("edges", step.edges.iter().map(|edge| edge_json(flow, edge)).collect());
    Value::Object(object)
}

fn json_of_command(command: &Validator) -> Value {
    json!({
        "name": command.name, "command": command.command,
        "passes": wording::describe_success(command.success), "timeout_ms": command.timeout_ms,
    })
}

fn json_of_template(template: &Template) -> Value {
    json!({ "lines": wording::line_count(template), "reads": wording::source_names_of_template(template) })
}

fn json_of_tools(tools: &Tools) -> Value {
    match tools {
        Tools::All => json!("*"),
        Tools::Only(names) => json!(names),
    }
}

fn json_of_gate(flow: &Flow, gate: &Gate<StepId>) -> Value {
    match gate {
        Gate::Readers(readers) => {
            let readers: Vec<Value> = readers.iter().map(|reader| reader_json(flow, reader)).collect();
            json!({ "readers": readers })
        }
        Gate::Join { rules, judges } => {
            let rules: Vec<Value> = rules
                .iter()
                .map(|rule| {
                    json!({ "when": wording::describe_join_pattern(&rule.pattern), "outcome": rule.outcome.to_string() })
                })
                .collect();
            let mut gate = json!({ "join": rules });
            if !judges.is_empty() {
                let judges = judges.iter().map(|judge| json!(flow.step(*judge).name)).collect();
                gate["judges"] = Value::Array(judges);
            }
            gate
        }
        Gate::Cases(cases) => {
            let outcomes = cases.iter().map(|case| json!(case.outcome.to_string()));
            json!({ "cases": outcomes.collect::<Vec<_>>() })
        }
        Gate::Exit => json!({ "exit": true }),
        Gate::Always(outcome) => json!({ "always": outcome.to_string() }),
    }
}

fn reader_json(flow: &Flow, reader: &OutcomeReader<StepId>) -> Value {
    match reader {
        OutcomeReader::Field { path, words, .. } => {
            json!({ "field": path.to_string(), "words": words_json(words) })
        }
        OutcomeReader::Said { name, words } => json!({ "said": name, "words": words_json(words) }),
        OutcomeReader::Otherwise(outcome) => json!({ "otherwise": outcome.to_string() }),
        OutcomeReader::Tag { name, base, outcomes } => {
            let outcomes: Vec<String> = outcomes.iter().map(ToString::to_string).collect();
            json!({ "tag": name, "base": base, "outcomes": outcomes })
        }
        OutcomeReader::Judge { step } => json!({ "judge": flow.step(*step).name }),
        OutcomeReader::Fallback(outcome) => json!({ "fallback": outcome.to_string() }),
        OutcomeReader::FirstFallback(outcome) => {
            json!({ "fallback": outcome.to_string(), "first_iteration_only": true })
        }
        OutcomeReader::Silence(text) => json!({ "silence": json_of_template(text) }),
    }
}

fn words_json(words: &[(Str, Outcome)]) -> Map<String, Value> {
    words.iter().map(|(word, outcome)| (word.to_string(), json!(outcome.to_string()))).collect()
}

fn edge_json(flow: &Flow, edge: &Edge<StepId>) -> Value {
    let bound =
        edge.bound.map(|bound| json!({ "counter": flow.counter(bound.counter).name, "max": bound.max }));
    let resets: Vec<_> = edge.resets.iter().map(|id| &flow.counter(*id).name).collect();
    json!({
        "on": edge.on.to_string(),
        "to": json_of_target(flow, &edge.to),
        "bound": bound,
        "resets": resets,
        "remedy": edge.remedy.as_ref().map(json_of_template),
        "hands_off": edge.hands_off,
        "again": edge.again,
        "implied": edge.implied,
        "label": edge.label,
    })
}

fn json_of_target(flow: &Flow, to: &Target<StepId>) -> Value {
    let name = |id: &StepId| &flow.step(*id).name;
    match to {
        Target::Step(id) => json!({ "step": name(id) }),
        Target::End(end) => json!({ "end": wording::target_name_of_end(end) }),
        Target::Origin { among } => json!({ "origin": wording::names_of_steps(flow, among) }),
        Target::Select { by, cases, default } => {
            let cases: Map<String, Value> =
                cases.iter().map(|(value, id)| (value.to_string(), json!(name(id)))).collect();
            json!({
                "select": wording::describe_selector(by), "cases": cases,
                "default": default.as_ref().map(name),
            })
        }
        Target::Jump { field, among, default } => json!({
            "jump": field.as_ref().map(ToString::to_string), "among": wording::names_of_steps(flow, among),
            "default": default.as_ref().map(name),
        }),
    }
}
