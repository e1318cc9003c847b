//! How what the model does becomes a call of one of the client's own tools.

use serde_json::{Map, Value, json};

use super::{scenario::Act, wire::Asked};

/// Tools by which clients run commands, the better known first.
const SHELLS: [&str; 6] = ["Bash", "exec_command", "shell_command", "run_shell_command", "bash", "shell"];
/// Tools by which clients write files.
const WRITERS: [&str; 3] = ["Write", "write_file", "write"];
/// The tool by which Claude wants a structured answer.
const STRUCTURED: &str = "StructuredOutput";
/// How long codex waits for a command before it tells the model that it still runs, in milliseconds; the most that it
/// allows. Its default is shorter than a command may take on a busy machine.
const YIELD_MS: u64 = 30_000;

/// The name of a tool as each API has it.
fn name(tool: &Value) -> Option<&str> {
    tool["name"].as_str().or_else(|| tool["function"]["name"].as_str())
}

/// The first tool on offer that has one of these names.
fn find<'a>(asked: &'a Asked, names: &[&str]) -> Option<(&'a str, &'a Value)> {
    let tool = |wanted: &&str| asked.tools.iter().find(|tool| name(tool) == Some(*wanted));
    let tool = names.iter().find_map(tool)?;
    let schemas = [&tool["input_schema"], &tool["parameters"], &tool["function"]["parameters"]];
    let schema = schemas.into_iter().find(|schema| schema.is_object()).unwrap_or(&Value::Null);
    Some((name(tool)?, &schema["properties"]))
}

/// The call that an act becomes; nothing for a client that offers no tool to work with, and for acts that are none.
pub(super) fn call(asked: &Asked, act: &Act) -> Option<(String, Value)> {
    let works = asked.tools.iter().any(|tool| name(tool).is_some_and(|name| name != STRUCTURED));
    if !works {
        return None;
    }
    match act {
        Act::Shell(command) => Some(shell(asked, command)),
        Act::Write { path, content } => Some(write(asked, path, content)),
        Act::Call { tool, input } => Some((tool.clone(), input.clone())),
        _ => None,
    }
}

/// The call by which the client wants a structured answer, when it wants it by one.
pub(super) fn structured(asked: &Asked) -> Option<String> {
    asked.forced.clone().or_else(|| find(asked, &[STRUCTURED]).map(|(name, _)| name.to_owned()))
}

/// A model that may not run commands tries it all the same: it calls the shell that clients of this kind mostly have.
fn shell(asked: &Asked, command: &str) -> (String, Value) {
    let Some((name, properties)) = find(asked, &SHELLS) else {
        return (SHELLS[0].to_owned(), json!({"command": command, "description": "as scripted"}));
    };
    let mut input = Map::new();
    let key = if properties["cmd"].is_object() { "cmd" } else { "command" };
    let value = if properties[key]["type"] == "array" { json!(["bash", "-lc", command]) } else { command.into() };
    input.insert(key.to_owned(), value);
    if properties["yield_time_ms"].is_object() {
        input.insert("yield_time_ms".to_owned(), YIELD_MS.into());
    }
    if properties["description"].is_object() {
        input.insert("description".to_owned(), "as scripted".into());
    }
    (name.to_owned(), input.into())
}

fn write(asked: &Asked, path: &str, content: &str) -> (String, Value) {
    if let Some((name, properties)) = find(asked, &WRITERS) {
        let keys = ["file_path", "filePath", "absolute_path", "path"];
        let key = keys.into_iter().find(|key| properties[key].is_object()).unwrap_or(keys[0]);
        return (name.to_owned(), json!({key: path, "content": content}));
    }
    if find(asked, &SHELLS).is_some() {
        return shell(asked, &format!("printf %s {} > {}", quoted(content), quoted(path)));
    }
    (WRITERS[0].to_owned(), json!({"file_path": path, "content": content}))
}

/// A word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(tools: Value) -> Asked {
        Asked { tools: tools.as_array().unwrap().clone(), ..Asked::default() }
    }

    #[test]
    fn a_command_is_called_as_the_client_names_it() {
        let act = Act::Shell("ls".to_owned());
        let codex = json!([{"type": "function", "name": "exec_command", "parameters": {"properties": {
            "cmd": {"type": "string"}, "yield_time_ms": {"type": "number"}}}}]);
        assert_eq!(
            call(&asked(codex), &act),
            Some(("exec_command".to_owned(), json!({"cmd": "ls", "yield_time_ms": 30_000})))
        );
        let words = json!([{"type": "function", "name": "shell", "parameters": {"properties": {
            "command": {"type": "array"}}}}]);
        let call_of = call(&asked(words), &act).unwrap();
        assert_eq!(call_of, ("shell".to_owned(), json!({"command": ["bash", "-lc", "ls"]})));
        let qwen = json!([{"type": "function", "function": {"name": "run_shell_command", "parameters": {
            "properties": {"command": {"type": "string"}}}}}]);
        assert_eq!(call(&asked(qwen), &act).unwrap().0, "run_shell_command");
    }

    #[test]
    fn without_tools_nothing_is_called() {
        let act = Act::Shell("ls".to_owned());
        assert_eq!(call(&asked(json!([])), &act), None);
        assert_eq!(call(&asked(json!([{"name": "StructuredOutput"}])), &act), None);
        assert_eq!(call(&asked(json!([{"name": "Read"}])), &act).unwrap().0, "Bash");
    }

    #[test]
    fn a_file_is_written_by_a_shell_where_nothing_else_can() {
        let act = Act::Write { path: "a b".to_owned(), content: "it's\n".to_owned() };
        let shell = asked(json!([{"name": "exec_command", "parameters": {"properties": {"cmd": {}}}}]));
        assert_eq!(call(&shell, &act).unwrap().1["cmd"], "printf %s 'it'\\''s\n' > 'a b'");
        let claude = asked(json!([{"name": "Bash"}, {"name": "Write", "input_schema": {"properties": {
            "file_path": {}}}}]));
        assert_eq!(call(&claude, &act).unwrap().1, json!({"file_path": "a b", "content": "it's\n"}));
    }
}
