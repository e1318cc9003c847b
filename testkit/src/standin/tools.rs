//! Turns acts of the model into calls of the client's tools.

use serde_json::{Map, Value, json};

use super::{
    scenario::Act,
    wire::{Asked, Call, Input},
};

/// Tools that run commands, the most common first.
const SHELLS: [&str; 6] = ["Bash", "exec_command", "shell_command", "run_shell_command", "bash", "shell"];
/// Tools that write files.
const WRITERS: [&str; 4] = ["Write", "write_file", "write", "create"];
/// Claude's tool for structured answers.
const STRUCTURED: &str = "StructuredOutput";
/// The end of the name of our own tool for them, in the server of which agents offer it.
const SUBMIT: &str = "submit_answer";
/// The longest time in milliseconds that codex waits for a command before it reports it as running. Its default is too
/// short for a busy machine.
const YIELD_MS: u64 = 30_000;

/// A tool on offer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tool {
    /// Its name, without its namespace.
    name: String,
    /// The group in which codex offers it.
    namespace: Option<String>,
    /// Whether its argument is plain text, not an object: codex's `exec` takes JavaScript.
    takes_text: bool,
    /// The properties of its arguments.
    properties: Value,
}

/// The tools of a list, including those in namespaces.
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

/// The tool in which newer codex models write their calls as a program.
fn program(asked: &Asked) -> Option<&Tool> {
    asked.tools.iter().find(|tool| tool.name == "exec" && tool.takes_text)
}

/// The tool call for an act; `None` if the client offers no fitting tool or the act is not a call.
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

/// The tool call for a structured answer, if the client uses a tool for it.
pub(super) fn structured(asked: &Asked, answer: &Value) -> Option<Call> {
    match &asked.forced {
        Some(name) => Some(by_name(asked, name, answer.clone())),
        None => {
            find(asked, &[STRUCTURED]).or_else(|| submit_tool(asked)).map(|tool| tool.call(answer.clone()))
        }
    }
}

/// Our own tool for answers, after which the model has to end the turn itself.
pub(super) fn submit_tool(asked: &Asked) -> Option<&Tool> {
    asked.tools.iter().find(|tool| tool.name.ends_with(SUBMIT))
}

/// A model may call a tool that was not offered.
fn by_name(asked: &Asked, name: &str, input: Value) -> Call {
    let unknown = || Call { name: name.to_owned(), namespace: None, input: Input::Object(input.clone()) };
    if let Some(tool) = find(asked, &[name]) {
        return tool.call(input);
    }
    // Codex groups the tools of a server, or lets a program call them.
    let in_group =
        |tool: &&Tool| tool.namespace.as_ref().is_some_and(|group| format!("{group}__{}", tool.name) == name);
    if let Some(tool) = asked.tools.iter().find(in_group) {
        return tool.call(input);
    }
    match program(asked).filter(|_| name.starts_with("mcp__")) {
        Some(tool) => {
            let text = format!("let said = await tools.{name}({input}); text(JSON.stringify(said));");
            Call { input: Input::Text(text), ..tool.call(Value::Null) }
        }
        None => {
            // Others have names of their own for a tool of a server.
            let own = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
            let is_own = |tool: &&Tool| {
                own.is_some_and(|(server, last)| {
                    tool.name == last || tool.name.ends_with(last) && tool.name.contains(server)
                })
            };
            asked.tools.iter().find(is_own).map_or_else(unknown, |tool| tool.call(input.clone()))
        }
    }
}

/// A model without a shell tool tries it anyway: it calls the usual shell of this kind of client.
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

/// A program that runs a command and returns its output.
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
        let text = if tool.properties["file_text"].is_object() { "file_text" } else { "content" };
        return tool.call(json!({key: path, text: content}));
    }
    if find(asked, &SHELLS).or_else(|| program(asked)).is_some() {
        return shell(asked, &format!("printf %s {} > {}", quoted(content), quoted(path)));
    }
    by_name(asked, WRITERS[0], json!({"file_path": path, "content": content}))
}

/// Quotes a word for a POSIX shell.
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
