//! How what the model does becomes a call of one of the client's own tools.

use serde_json::{Map, Value, json};

use super::{
    scenario::Act,
    wire::{Asked, Call, Input},
};

/// Tools by which clients run commands, the better known first.
const SHELLS: [&str; 6] = ["Bash", "exec_command", "shell_command", "run_shell_command", "bash", "shell"];
/// Tools by which clients write files.
const WRITERS: [&str; 3] = ["Write", "write_file", "write"];
/// The tool by which Claude wants a structured answer.
const STRUCTURED: &str = "StructuredOutput";
/// How long codex waits for a command before it tells the model that it still runs, in milliseconds; the most that it
/// allows. Its default is shorter than a command may take on a busy machine.
const YIELD_MS: u64 = 30_000;

/// A tool on offer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tool {
    /// Its name, without its namespace.
    name: String,
    /// The group in which codex offers it.
    namespace: Option<String>,
    /// Whether it takes a text as it is instead of an object: codex' `exec`, which takes JavaScript.
    takes_text: bool,
    /// The properties of its arguments.
    properties: Value,
}

/// The tools of a list, those of its namespaces too.
pub(super) fn read(list: &Value) -> Vec<Tool> {
    let mut tools = Vec::new();
    for tool in list.as_array().into_iter().flatten() {
        if tool["type"] == "namespace" {
            let inner = read(&tool["tools"]).into_iter();
            let namespace = tool["name"].as_str().map(str::to_owned);
            tools.extend(inner.map(|inner| Tool { namespace: namespace.clone(), ..inner }));
            continue;
        }
        let function = if tool["function"].is_object() { &tool["function"] } else { tool };
        let schemas = [&function["input_schema"], &function["parameters"]];
        let schema = schemas.into_iter().find(|schema| schema.is_object()).unwrap_or(&Value::Null);
        // Built-in tools of an API have a type and no name.
        let name = function["name"].as_str().or_else(|| tool["type"].as_str()).unwrap_or_default().to_owned();
        let takes_text = tool["type"] == "custom" && tool["input_schema"].is_null();
        tools.push(Tool { name, namespace: None, takes_text, properties: schema["properties"].clone() });
    }
    tools
}

impl Tool {
    /// Its name, after that of its namespace.
    pub(super) fn full_name(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}.{}", self.name),
            None => self.name.clone(),
        }
    }

    fn call(&self, input: Value) -> Call {
        Call { name: self.name.clone(), namespace: self.namespace.clone(), input: Input::Object(input) }
    }
}

/// The first tool on offer that has one of these names.
fn find<'a>(asked: &'a Asked, names: &[&str]) -> Option<&'a Tool> {
    names.iter().find_map(|name| asked.tools.iter().find(|tool| tool.name == *name && !tool.takes_text))
}

/// The tool in which codex' newer models write their calls as a program.
fn program(asked: &Asked) -> Option<&Tool> {
    asked.tools.iter().find(|tool| tool.name == "exec" && tool.takes_text)
}

/// The call that an act becomes; nothing for a client that offers no tool to work with, and for acts that are none.
pub(super) fn call(asked: &Asked, act: &Act) -> Option<Call> {
    if !asked.tools.iter().any(|tool| tool.name != STRUCTURED) {
        return None;
    }
    match act {
        Act::Shell(command) => Some(shell(asked, command)),
        Act::Write { path, content } => Some(write(asked, path, content)),
        Act::Call { tool, input } => Some(by_name(asked, tool, input.clone())),
        _ => None,
    }
}

/// The call by which the client wants a structured answer, when it wants it by one.
pub(super) fn structured(asked: &Asked, answer: &Value) -> Option<Call> {
    match &asked.forced {
        Some(name) => Some(by_name(asked, name, answer.clone())),
        None => Some(find(asked, &[STRUCTURED])?.call(answer.clone())),
    }
}

/// A model may call what it was not offered.
fn by_name(asked: &Asked, name: &str, input: Value) -> Call {
    let unknown = || Call { name: name.to_owned(), namespace: None, input: Input::Object(input.clone()) };
    find(asked, &[name]).map_or_else(unknown, |tool| tool.call(input.clone()))
}

/// A model that may not run commands tries it all the same: it calls the shell that clients of this kind mostly have.
fn shell(asked: &Asked, command: &str) -> Call {
    if let Some(tool) = find(asked, &SHELLS) {
        return tool.call(arguments(tool, command));
    }
    if let Some(tool) = program(asked) {
        return Call { input: Input::Text(javascript(command)), ..tool.call(Value::Null) };
    }
    by_name(asked, SHELLS[0], json!({"command": command, "description": "as scripted"}))
}

fn arguments(tool: &Tool, command: &str) -> Value {
    let has = |key: &str| tool.properties[key].is_object();
    let mut input = Map::new();
    let key = if has("cmd") { "cmd" } else { "command" };
    let is_list = tool.properties[key]["type"] == "array";
    let value = if is_list { json!(["bash", "-lc", command]) } else { command.into() };
    input.insert(key.to_owned(), value);
    if has("yield_time_ms") {
        input.insert("yield_time_ms".to_owned(), YIELD_MS.into());
    }
    if has("description") {
        input.insert("description".to_owned(), "as scripted".into());
    }
    input.into()
}

/// A program that runs a command to its end and says what it printed.
fn javascript(command: &str) -> String {
    let first = json!({"cmd": command, "yield_time_ms": YIELD_MS});
    format!(
        "let ran = await tools.exec_command({first});\n\
         text(ran.output);\n\
         while (ran.session_id !== undefined && ran.exit_code === undefined) {{\n\
         \x20 ran = await tools.write_stdin({{session_id: ran.session_id, yield_time_ms: {YIELD_MS}}});\n\
         \x20 text(ran.output);\n\
         }}\n\
         text(`exit code ${{ran.exit_code}}`);\n"
    )
}

fn write(asked: &Asked, path: &str, content: &str) -> Call {
    if let Some(tool) = find(asked, &WRITERS) {
        let keys = ["file_path", "filePath", "absolute_path", "path"];
        let key = keys.into_iter().find(|key| tool.properties[key].is_object()).unwrap_or(keys[0]);
        return tool.call(json!({key: path, "content": content}));
    }
    if find(asked, &SHELLS).or_else(|| program(asked)).is_some() {
        return shell(asked, &format!("printf %s {} > {}", quoted(content), quoted(path)));
    }
    by_name(asked, WRITERS[0], json!({"file_path": path, "content": content}))
}

/// A word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(tools: Value) -> Asked {
        Asked { tools: read(&tools), ..Asked::default() }
    }

    fn input(call: Option<Call>) -> (String, Value) {
        let call = call.unwrap();
        match call.input {
            Input::Object(input) => (call.name, input),
            Input::Text(text) => (call.name, text.into()),
        }
    }

    #[test]
    fn a_command_is_called_as_the_client_names_it() {
        let act = Act::Shell("ls".to_owned());
        let codex = json!([{"type": "function", "name": "exec_command", "parameters": {"properties": {
            "cmd": {"type": "string"}, "yield_time_ms": {"type": "number"}}}}]);
        let expected = json!({"cmd": "ls", "yield_time_ms": 30_000});
        assert_eq!(input(call(&asked(codex), &act)), ("exec_command".to_owned(), expected));
        let words = json!([{"type": "function", "name": "shell", "parameters": {"properties": {
            "command": {"type": "array"}}}}]);
        let expected = json!({"command": ["bash", "-lc", "ls"]});
        assert_eq!(input(call(&asked(words), &act)), ("shell".to_owned(), expected));
        let qwen = json!([{"type": "function", "function": {"name": "run_shell_command", "parameters": {
            "properties": {"command": {"type": "string"}}}}}]);
        assert_eq!(input(call(&asked(qwen), &act)).0, "run_shell_command");
    }

    #[test]
    fn a_command_becomes_a_program_where_the_client_takes_programs() {
        let tools = json!([{"type": "namespace", "name": "functions", "tools": [
            {"type": "custom", "name": "exec"}, {"type": "function", "name": "wait"}]}]);
        let called = call(&asked(tools), &Act::Shell("echo \"a\"".to_owned())).unwrap();
        assert_eq!(called.namespace.as_deref(), Some("functions"));
        let Input::Text(text) = called.input else { panic!("{called:?}") };
        assert!(text.starts_with(r#"let ran = await tools.exec_command({"cmd":"echo \"a\"","#), "{text}");
    }

    #[test]
    fn without_tools_nothing_is_called() {
        let act = Act::Shell("ls".to_owned());
        assert_eq!(call(&asked(json!([])), &act), None);
        assert_eq!(call(&asked(json!([{"name": "StructuredOutput"}])), &act), None);
        assert_eq!(call(&asked(json!([{"name": "Read"}])), &act).unwrap().name, "Bash");
    }

    #[test]
    fn a_file_is_written_by_a_shell_where_nothing_else_can() {
        let act = Act::Write { path: "a b".to_owned(), content: "it's\n".to_owned() };
        let shell = asked(json!([{"name": "exec_command", "parameters": {"properties": {"cmd": {}}}}]));
        assert_eq!(input(call(&shell, &act)).1["cmd"], "printf %s 'it'\\''s\n' > 'a b'");
        let claude = asked(json!([{"name": "Bash"}, {"name": "Write", "input_schema": {"properties": {
            "file_path": {}}}}]));
        assert_eq!(input(call(&claude, &act)).1, json!({"file_path": "a b", "content": "it's\n"}));
    }
}
