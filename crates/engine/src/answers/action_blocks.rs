//! Finds action blocks in an agent's text.

use cuegate_flow::Str;
use serde_json::Value;

/// A fenced block that addresses the program, not people.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionBlock {
    /// Its type.
    pub kind: Str,
    /// Its content: a JSON value, or the text if it is not JSON.
    pub value: Value,
}

/// The action blocks of these types in a text, in order.
///
/// An action block is a closed fenced block whose first word is the marker (`json`, in any case) and whose JSON object
/// has one of the types as its `action`, or whose first word is the type itself. An unclosed block is ignored, because
/// its answer was truncated.
pub fn find_action_blocks(text: &str, marker: &str, types: &[Str]) -> Vec<ActionBlock> {
    find_closed_fences(text)
        .into_iter()
        .filter_map(|fence| parse_action_block(&fence, marker, types))
        .collect()
}

/// All action blocks of a text, in order: closed fenced blocks with the marker of [`find_action_blocks`] whose JSON object has an
/// `action`, and those whose first word is one of these types.
pub fn find_all_action_blocks(text: &str, marker: &str, types: &[Str]) -> Vec<ActionBlock> {
    let any = |fence: &FencedBlock<'_>| {
        let value = serde_json::from_str::<Value>(&fence.body).ok();
        let action = value.as_ref().and_then(|value| value.get("action")).and_then(Value::as_str);
        match (fence.mark.eq_ignore_ascii_case(marker), action) {
            (true, Some(action)) => Some(ActionBlock { kind: action.into(), value: value? }),
            _ => parse_action_block(fence, marker, types),
        }
    };
    find_closed_fences(text).iter().filter_map(any).collect()
}

fn parse_action_block(fence: &FencedBlock<'_>, marker: &str, types: &[Str]) -> Option<ActionBlock> {
    let value = serde_json::from_str::<Value>(&fence.body).ok();
    if fence.mark.eq_ignore_ascii_case(marker) {
        let action = value.as_ref().and_then(|value| value.get("action")).and_then(Value::as_str);
        if let Some(kind) = types.iter().find(|kind| Some(&***kind) == action) {
            return Some(ActionBlock { kind: kind.clone(), value: value? });
        }
    }
    let kind = types.iter().find(|kind| ***kind == *fence.mark)?;
    let value = value.unwrap_or_else(|| Value::String(fence.body.trim_end().to_owned()));
    Some(ActionBlock { kind: kind.clone(), value })
}

/// A closed fenced block: the first word after its opening fence, and its lines.
struct FencedBlock<'t> {
    mark: &'t str,
    body: String,
}

/// The closed fenced blocks of a Markdown text, in order. A shorter fence inside a longer one is text.
fn find_closed_fences(text: &str) -> Vec<FencedBlock<'_>> {
    let mut found = Vec::new();
    let mut open: Option<(usize, char, FencedBlock<'_>)> = None;
    for line in text.lines() {
        let bare = line.trim();
        match &mut open {
            Some((length, with, fence)) => {
                let closing = bare.chars().all(|c| c == *with) && bare.len() >= *length;
                if closing {
                    found.extend(open.take().map(|(_, _, fence)| fence));
                } else {
                    fence.body.push_str(line);
                    fence.body.push('\n');
                }
            }
            None => open = parse_opening_fence(bare),
        }
    }
    found
}

/// The fence that a line opens, if it opens one.
fn parse_opening_fence(line: &str) -> Option<(usize, char, FencedBlock<'_>)> {
    let with = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == with).count();
    let info = &line[length..];
    // Further backticks on the line make it inline code.
    if length < 3 || (with == '`' && info.contains('`')) {
        return None;
    }
    let mark = info.split_whitespace().next().unwrap_or_default();
    Some((length, with, FencedBlock { mark, body: String::new() }))
}

#[cfg(test)]
mod tests {
    use super::find_action_blocks;
    use cuegate_flow::Str;
    use serde_json::{Value, json};

    fn found(text: &str) -> Vec<(String, Value)> {
        let types: [Str; 2] = ["issue-action".into(), "done".into()];
        find_action_blocks(text, "json", &types)
            .into_iter()
            .map(|block| (block.kind.to_string(), block.value))
            .collect()
    }

    #[test]
    fn blocks_are_marked_by_json_or_by_their_type() {
        for (text, expected) in [
            (
                "So:\n```json\n{\"action\": \"issue-action\", \"n\": 1}\n```\nand\n```done\n{\"ok\": true}\n```",
                vec![
                    ("issue-action", json!({"action": "issue-action", "n": 1})),
                    ("done", json!({"ok": true})),
                ],
            ),
            ("```JSON title=x\n{\"action\":\"done\"}\n```", vec![("done", json!({"action": "done"}))]),
            ("~~~~done\nall of it\n```\nmore\n~~~~", vec![("done", json!("all of it\n```\nmore"))]),
            ("  - it:\n    ```done\n    {}\n    ```", vec![("done", json!({}))]),
        ] {
            let expected: Vec<(String, Value)> =
                expected.into_iter().map(|(kind, value)| (kind.to_owned(), value)).collect();
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn other_fenced_blocks_are_ignored() {
        for text in [
            "",
            "{\"action\":\"done\"}",
            "```json\n{\"action\":\"other\"}\n```",
            "```json\n{\"action\":\"done\"",
            "```json\n[{\"action\":\"done\"}]\n```",
            "```json\n{\"action\":\"done\",}\n```",
            "```sh\n{\"action\":\"done\"}\n```",
            "```done",
            "a ```done``` word",
            "```done```",
            "````md\n```done\n{}\n```\n````",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }
}
