//! A builder of small definitions for single tests.

use serde_json::{Map, Value, json};

use crate::support::Project;

/// An agent named `agent`: steps, with a prompt and a schema for each, and whatever else is put into its files.
pub struct Registry {
    agent: Value,
    registry: Value,
    schemas: Map<String, Value>,
    prompts: Vec<(String, String)>,
}

/// Puts an object into another one, level by level.
fn put(into: &mut Value, what: Value) {
    match (into, what) {
        (Value::Object(into), Value::Object(what)) => {
            for (key, value) in what {
                put(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, what) => *into = what,
    }
}

/// An answer of a script: the step's intent.
pub fn says(step: &str, intent: &str) -> Value {
    json!({"step": step, "output": {"next_action": {"action": intent}}})
}

/// The same with more in the entry.
pub fn says_with(step: &str, intent: &str, more: Value) -> Value {
    let mut entry = says(step, intent);
    put(&mut entry, more);
    entry
}

/// `work` repeats by `repeat`, leads to `close` by `handoff`, and `close` ends by `closing`.
pub fn small() -> Registry {
    Registry::new()
        .step("work", "work", json!({"repeat": {"target": "work"}, "handoff": {"target": "close"}}))
        .step("close", "closure", json!({"closing": {"target": null}}))
}

impl Registry {
    /// Without steps.
    pub fn new() -> Registry {
        let agent = json!({
            "version": "1.0.0", "name": "agent", "displayName": "Agent", "description": "Of a test",
            "runner": {
                "flow": {"systemPromptPath": "prompts/system.md"},
                "verdict": {"type": "detect:graph", "config": {"maxIterations": 20}},
                "boundaries": {"permissionMode": "acceptEdits"}
            }
        });
        let registry = json!({
            "agentId": "agent", "version": "1.0.0", "c1": "steps", "userPromptsBase": "prompts",
            "schemasBase": "schemas", "steps": {}
        });
        let system = ("prompts/system.md".to_owned(), "You are an agent.\n".to_owned());
        Registry { agent, registry, schemas: Map::new(), prompts: vec![system] }
    }

    /// Adds a step that may decide what it has transitions for. The first one is the entry.
    pub fn step(mut self, id: &str, kind: &str, transitions: Value) -> Registry {
        if self.registry.get("entryStep").is_none() {
            self.registry["entryStep"] = json!(id);
        }
        let intents: Vec<&String> = transitions.as_object().unwrap().keys().collect();
        let action = json!({"type": "string", "enum": intents});
        let next = json!({"type": "object", "required": ["action"], "properties": {"action": action}});
        self.schemas.insert(
            id.to_owned(),
            json!({"type": "object", "required": ["next_action"], "properties": {"next_action": next}}),
        );
        self.registry["steps"][id] = json!({
            "stepId": id, "name": id, "stepKind": kind, "c2": kind, "c3": id, "edition": "default",
            "outputSchemaRef": {"file": "all.json", "schema": id},
            "structuredGate": {
                "allowedIntents": intents, "intentSchemaRef": "#/properties/next_action/properties/action",
                "intentField": "next_action.action"
            },
            "transitions": transitions
        });
        self.prompts.push((format!("prompts/steps/{kind}/{id}/f_default.md"), format!("Do {id}.\n")));
        self
    }

    /// Puts more into a step.
    pub fn with(mut self, step: &str, more: Value) -> Registry {
        put(&mut self.registry["steps"][step], more);
        self
    }

    /// Puts more into a step's schema, as properties.
    pub fn field(mut self, step: &str, more: Value) -> Registry {
        put(&mut self.schemas[step]["properties"], more);
        self
    }

    /// Replaces a step's prompt.
    pub fn prompt(mut self, step: &str, text: &str) -> Registry {
        let end = format!("/{step}/f_default.md");
        let prompt = self.prompts.iter_mut().find(|(path, _)| path.ends_with(&end));
        prompt.unwrap().1 = text.to_owned();
        self
    }

    /// Adds a validator command to the closure step `close`; its output is in the remedy prompt.
    pub fn validator(mut self, command: &str, on_failure: Value) -> Registry {
        put(
            &mut self.registry,
            json!({
                "validators": {"proof": {
                    "type": "command", "command": command, "successWhen": "exitCode:0",
                    "failurePattern": "unproven", "extractParams": {"output": "stdout"}
                }},
                "failurePatterns": {"unproven": {
                    "description": "Not proven", "edition": "failed", "adaptation": "unproven",
                    "params": ["output"]
                }},
                "validationSteps": {"close": {
                    "stepId": "close", "name": "Proof", "c2": "retry", "c3": "close",
                    "validationConditions": [{"validator": "proof"}], "onFailure": on_failure
                }}
            }),
        );
        let path = "prompts/steps/retry/close/f_failed_unproven.md".to_owned();
        self.prompts.push((path, "Mend it. It says:\n{{output}}\n".to_owned()));
        self
    }

    /// Puts more into `agent.json`.
    pub fn agent(mut self, more: Value) -> Registry {
        put(&mut self.agent, more);
        self
    }

    /// Puts more into `runner` of `agent.json`.
    pub fn runner(self, more: Value) -> Registry {
        self.agent(json!({ "runner": more }))
    }

    /// Writes it below `.agent/agent`.
    pub fn write(&self, project: &Project) {
        let pretty = |value: &Value| format!("{value:#}\n");
        project.write(".agent/agent/agent.json", &pretty(&self.agent));
        project.write(".agent/agent/steps_registry.json", &pretty(&self.registry));
        let schemas = json!({ "definitions": self.schemas });
        project.write(".agent/agent/schemas/all.json", &pretty(&schemas));
        for (path, text) in &self.prompts {
            project.write(&format!(".agent/agent/{path}"), text);
        }
    }

    /// A repository that holds it, a file `a.txt` and a script of these answers, which git ignores.
    pub fn project(&self, answers: Value) -> Project {
        let project = Project::empty();
        self.write(&project);
        project.write("a.txt", "one\n");
        project.write(".gitignore", "/script*\n");
        project.init();
        project.script("script.json", &answers);
        project
    }
}

impl Project {
    /// Runs the agent with its script.
    pub fn go(&self, more: &[&str]) -> crate::support::Ran {
        self.run(&begin(more))
    }
}

/// The arguments that run the agent with its script.
pub fn begin<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "agent", "--script", "script.json"], more].concat()
}
