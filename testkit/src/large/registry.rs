//! A step registry of the closing generation: agent, registry, schemas and a prompt for each step.

use serde_json::{Map, Value, json};

use super::{Flaw, Large};

/// Steps of a stage.
const STAGE: usize = 10;
/// The number of steps whose schemas share one file.
const STEPS_A_FILE: usize = 100;

/// A step of a stage, before it has a number.
struct Role {
    /// Its name in the stage.
    name: &'static str,
    /// Its kind and first word: `work`, `verification` or `closure`.
    kind: &'static str,
    /// Its handoff field.
    hands: &'static [&'static str],
    /// Its input: a step of the stage and the handoff field of that step.
    reads: &'static [(&'static str, &'static str)],
    /// Its transitions. `+plan` is the first step of the next stage.
    leads: &'static [(&'static str, &'static str)],
}

/// The steps of a stage, in order. The value of `size` selects a target in brackets.
const ROLES: [Role; STAGE] = [
    Role {
        name: "plan",
        kind: "work",
        hands: &["analysis.plan", "analysis.size"],
        reads: &[],
        leads: &[("next", "{small:quick,large:design}"), ("repeat", "plan")],
    },
    Role {
        name: "quick",
        kind: "work",
        hands: &[],
        reads: &[("plan", "plan")],
        leads: &[("next", "check"), ("repeat", "quick")],
    },
    Role {
        name: "design",
        kind: "work",
        hands: &["notes"],
        reads: &[("plan", "plan")],
        leads: &[("next", "build"), ("repeat", "plan")],
    },
    Role {
        name: "build",
        kind: "work",
        hands: &[],
        reads: &[("plan", "plan"), ("design", "notes")],
        leads: &[("next", "check"), ("repeat", "build")],
    },
    Role {
        name: "check",
        kind: "verification",
        hands: &["verdict"],
        reads: &[("plan", "plan")],
        leads: &[("next", "merge"), ("repeat", "plan"), ("jump", "[quick,help]"), ("escalate", "help")],
    },
    Role {
        name: "help",
        kind: "work",
        hands: &[],
        reads: &[("check", "verdict")],
        leads: &[("next", "plan"), ("repeat", "help")],
    },
    Role {
        name: "merge",
        kind: "work",
        hands: &["change"],
        reads: &[("plan", "plan"), ("check", "verdict")],
        leads: &[("next", "test"), ("repeat", "merge")],
    },
    Role {
        name: "test",
        kind: "verification",
        hands: &[],
        reads: &[("merge", "change")],
        leads: &[("next", "write"), ("repeat", "merge"), ("escalate", "help")],
    },
    Role {
        name: "write",
        kind: "work",
        hands: &[],
        reads: &[("merge", "change")],
        leads: &[("next", "+plan"), ("repeat", "write"), ("handoff", "close")],
    },
    Role {
        name: "close",
        kind: "closure",
        hands: &[],
        reads: &[("merge", "change")],
        leads: &[("closing", ""), ("repeat", "close")],
    },
];

/// The agent `large`, with at least one stage of ten steps. Its iteration limit lets a run pass all stages.
pub fn registry(steps: usize, flaw: Flaw) -> Large {
    let stages = (steps / STAGE).max(1);
    let mut large = Large { path: ".agent/large".to_owned(), steps: stages * STAGE, ..Large::default() };
    let mut add = |path: String, text: String| {
        large.files.insert(format!(".agent/large/{path}"), text);
    };
    let (mut entries, mut schemas, mut guards) = (Map::new(), Map::new(), Map::new());
    let mut written = 0;
    for stage in 0..stages {
        for role in &ROLES {
            let step = Step { role, stage, last: stage + 1 == stages };
            let flawed = match flaw {
                Flaw::None => false,
                Flaw::Far => step.last,
                Flaw::Everywhere => true,
            };
            let file = format!("steps-{}.schema.json", written / STEPS_A_FILE);
            entries.insert(step.id(), step.entry(&file, flawed));
            schemas.insert(step.id(), step.schema());
            add(step.prompt_path(), step.prompt(flawed));
            written += 1;
            if written % STEPS_A_FILE == 0 || written == stages * STAGE {
                let file_text = json!({"$schema": "http://json-schema.org/draft-07/schema#",
                    "$defs": {"reason": {"type": "string", "description": "Why, in one sentence"}},
                    "definitions": std::mem::take(&mut schemas)});
                add(format!("schemas/{file}"), pretty(&file_text));
            }
        }
        guards.insert(format!("closure.s{stage}-close"), guard(stage));
        for pattern in ["tests-failed", "git-dirty"] {
            add(format!("prompts/steps/retry/s{stage}/f_failed_{pattern}.md"), remedy(pattern));
        }
    }
    let registry = json!({"agentId": "large", "version": "1.0.0", "c1": "steps", "userPromptsBase": "prompts",
        "schemasBase": "schemas", "entryStep": "work.s0-plan", "steps": entries,
        "validators": {
            "tests-pass": {"type": "command", "command": "sh test.sh", "successWhen": "exitCode:0",
                "failurePattern": "tests-failed", "extractParams": {"output": "errorOutput"}},
            "git-clean": {"type": "command", "command": "git status --porcelain", "successWhen": "empty",
                "failurePattern": "git-dirty", "extractParams": {"changedFiles": "parseChangedFiles"}}},
        "failurePatterns": {
            "tests-failed": {"description": "A test fails", "edition": "failed", "adaptation": "tests-failed",
                "params": ["output"]},
            "git-dirty": {"description": "Something is not committed", "edition": "failed",
                "adaptation": "git-dirty", "params": ["changedFiles"]}},
        "validationSteps": guards});
    let agent = json!({"version": "1.0.0", "name": "large", "displayName": "Large",
        "description": "A flow of many stages",
        "parameters": {"focus": {"type": "string", "description": "What to keep in mind", "required": false,
            "default": "the smallest change that is right", "cli": "--focus"}},
        "runner": {
            "flow": {"systemPromptPath": "prompts/system.md",
                "prompts": {"registry": "steps_registry.json", "fallbackDir": "prompts"}},
            "verdict": {"type": "detect:graph", "config": {"maxIterations": stages * STAGE}},
            "boundaries": {"allowedTools": ["Read", "Edit", "Bash"], "permissionMode": "acceptEdits"}}});
    add("agent.json".to_owned(), pretty(&agent));
    add("steps_registry.json".to_owned(), pretty(&registry));
    add("prompts/system.md".to_owned(), "You work on one project, stage by stage.\n".to_owned());
    large
}

/// Pretty-printed JSON, as people and generators write it.
fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

/// The validator at the end of a stage.
fn guard(stage: usize) -> Value {
    json!({"stepId": format!("closure.s{stage}-close"), "name": format!("Proof of stage {stage}"), "c2": "retry",
        "c3": format!("s{stage}"),
        "validationConditions": [{"validator": "tests-pass"}, {"validator": "git-clean"}],
        "onFailure": {"action": "retry", "maxAttempts": 3}})
}

fn remedy(pattern: &str) -> String {
    let read = if pattern == "tests-failed" { "output" } else { "changedFiles" };
    format!(
        "# It is not done yet\n\nYou said that you were done, but what was checked says otherwise.\n\n{{{{#if {read}}}}}\n\
         This is what was found:\n\n{{{{{read}}}}}\n{{{{else}}}}\nNothing was printed.\n{{{{/if}}}}\n\nFind out why, mend it, \
         commit, and answer with `next_action.action` `handoff`.\n"
    )
}

/// A step of a stage.
struct Step<'r> {
    role: &'r Role,
    stage: usize,
    /// Whether its stage is the last one.
    last: bool,
}

impl Step<'_> {
    fn id(&self) -> String {
        self.named(self.role.name)
    }

    /// The id of a step of this stage; `+` names one of the next.
    fn named(&self, name: &str) -> String {
        let (stage, name) = match name.strip_prefix('+') {
            Some(name) => (self.stage + 1, name),
            None => (self.stage, name),
        };
        let kind = ROLES.iter().find(|role| role.name == name).map_or("work", |role| role.kind);
        format!("{kind}.s{stage}-{name}")
    }

    /// Its transitions: what leads into the next stage is left out in the last one.
    fn leads(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let last = self.last;
        self.role.leads.iter().copied().filter(move |(_, to)| !(last && to.starts_with('+')))
    }

    /// Its inputs: name, step and handoff field. With a flaw, also a value that only one branch assigns.
    fn reads(&self, flawed: bool) -> Vec<(String, String)> {
        let mut reads: Vec<(String, String)> =
            self.role.reads.iter().map(|(step, key)| ((*key).to_owned(), self.named(step))).collect();
        if flawed && self.role.name == "check" {
            reads.push(("notes".to_owned(), self.named("design")));
        }
        reads
    }

    fn entry(&self, file: &str, flawed: bool) -> Value {
        let (c2, c3) = (self.role.kind, format!("s{}-{}", self.stage, self.role.name));
        let reads = self.reads(flawed);
        let mut variables: Vec<&str> = reads.iter().map(|(key, _)| key.as_str()).collect();
        variables.extend(["focus", "iteration"]);
        let intents: Vec<&str> = self.leads().map(|(intent, _)| intent).collect();
        let inputs: Map<String, Value> =
            reads.iter().map(|(key, step)| (key.clone(), json!({"from": format!("{step}.{key}")}))).collect();
        let transitions: Map<String, Value> =
            self.leads().map(|(intent, to)| (intent.to_owned(), self.transition(to))).collect();
        let mut gate = json!({"allowedIntents": intents,
            "intentSchemaRef": "#/properties/next_action/properties/action", "intentField": "next_action.action"});
        if !self.role.hands.is_empty() {
            gate["handoffFields"] = json!(self.role.hands);
        }
        if intents.contains(&"jump") {
            gate["targetField"] = json!("next_action.target");
        }
        let mut entry = json!({"stepId": self.id(), "name": format!("Stage {}: {}", self.stage, self.role.name),
            "stepKind": self.role.kind, "c2": c2, "c3": c3, "edition": "default", "uvVariables": variables,
            "usesStdin": self.role.name == "plan",
            "outputSchemaRef": {"file": file, "schema": self.id()},
            "structuredGate": gate, "transitions": transitions});
        if !inputs.is_empty() {
            entry["inputs"] = Value::Object(inputs);
        }
        entry
    }

    fn transition(&self, to: &'static str) -> Value {
        if let Some(cases) = braced(to, '{', '}') {
            let mut targets: Map<String, Value> = cases
                .filter_map(|case| case.split_once(':'))
                .map(|(value, step)| (value.to_owned(), json!(self.named(step))))
                .collect();
            targets.insert("default".to_owned(), json!(self.named("design")));
            return json!({"condition": "size", "targets": targets});
        }
        if let Some(steps) = braced(to, '[', ']') {
            let names = steps.map(|step| (self.named(step), json!(self.named(step))));
            return json!({"targets": names.collect::<Map<String, Value>>()});
        }
        json!({"target": if to.is_empty() { Value::Null } else { json!(self.named(to)) }})
    }

    fn schema(&self) -> Value {
        let mut action = Map::new();
        action.insert("type".to_owned(), json!("object"));
        let intents: Vec<&str> = self.leads().map(|(intent, _)| intent).collect();
        let mut needed = vec!["action"];
        let mut parts =
            json!({"action": {"type": "string", "enum": intents}, "reason": {"$ref": "#/$defs/reason"}});
        for (_, to) in self.leads() {
            if let Some(steps) = braced(to, '[', ']') {
                parts["target"] = json!({"enum": steps.map(|step| self.named(step)).collect::<Vec<_>>()});
            }
        }
        if parts.get("target").is_some() {
            needed.push("target");
        }
        action.insert("required".to_owned(), json!(needed));
        action.insert("properties".to_owned(), parts);
        let mut properties = json!({"stepId": {"type": "string", "const": self.id()},
            "summary": {"type": "string", "description": "What you did, in a few sentences"}});
        let mut required = vec!["stepId".to_owned(), "next_action".to_owned()];
        for path in self.role.hands {
            let text = || json!({"type": "string", "description": "What the next step has to know"});
            match path.split_once('.') {
                None => properties[path] = text(),
                Some((outer, inner)) => {
                    let value = if inner == "size" { json!({"enum": ["small", "large"]}) } else { text() };
                    if properties.get(outer).is_none() {
                        properties[outer] = json!({"type": "object", "required": [], "properties": {}});
                    }
                    properties[outer]["properties"][inner] = value;
                    if let Some(names) = properties[outer]["required"].as_array_mut() {
                        names.push(json!(inner));
                    }
                }
            }
            let outer = path.split('.').next().unwrap_or(path).to_owned();
            if !required.contains(&outer) {
                required.push(outer);
            }
        }
        properties["next_action"] = Value::Object(action);
        json!({"type": "object", "required": required, "properties": properties})
    }

    fn prompt_path(&self) -> String {
        format!("prompts/steps/{}/s{}-{}/f_default.md", self.role.kind, self.stage, self.role.name)
    }

    fn prompt(&self, flawed: bool) -> String {
        let reads = self.reads(flawed);
        let (id, name) = (self.id(), self.role.name);
        let listed: String = reads
            .iter()
            .map(|(key, _)| format!("  - {key}\n"))
            .chain(["  - focus\n  - iteration\n".to_owned()])
            .collect();
        let given: String =
            reads.iter().map(|(key, _)| format!("## What there is: {key}\n\n{{uv-{key}}}\n\n")).collect();
        let task = if name == "plan" { "## The task\n\n{input_text}\n\n" } else { "" };
        let answers: String =
            self.leads().map(|(intent, _)| format!("- `{intent}` where that is so\n")).collect();
        format!(
            "---\nstepId: {id}\nname: {name}\nuvVariables:\n{listed}---\n\n# Stage {}: {name}\n\nThis is iteration \
             {{uv-iteration}}. Keep in mind: {{uv-focus}}.\n\n{task}{given}Do what this stage needs, and nothing that a later \
             one does. Look at what is there before you change it, keep to the style of the files you touch, run the tests \
             that belong to them, and say what you leave open.\n\nAnswer with `next_action.action`:\n\n{answers}",
            self.stage
        )
    }
}

/// The comma-separated items between two brackets.
fn braced(text: &'static str, open: char, close: char) -> Option<std::str::Split<'static, char>> {
    Some(text.strip_prefix(open)?.strip_suffix(close)?.split(','))
}
