//! A fast reader for front matters that contain only names, words and lists of words.
//!
//! Nearly all do, and a definition has one for each prompt: the YAML parser would take a tenth of the time of a
//! check. Anything that could mean something else in YAML is left to that parser.

use serde_json::{Map, Value};

/// Reads lines of `name: word`, and of `name:` with a list of words below. Returns `None` for anything else.
pub(super) fn read_plain_yaml(yaml: &str) -> Option<Map<String, Value>> {
    let mut matter = Map::new();
    let mut lines = yaml.lines().peekable();
    while let Some(line) = lines.next() {
        let (name, rest) = line.split_once(':')?;
        if !is_name(name) || matter.contains_key(name) {
            return None;
        }
        let value = match rest {
            "" => {
                let mut items = Vec::new();
                while let Some(item) = lines.peek().and_then(|line| line.strip_prefix("  - ")) {
                    items.push(parse_plain_word(item)?);
                    lines.next();
                }
                // A key without a list is `null`, and other indentation needs the YAML parser.
                (!items.is_empty()).then_some(Value::Array(items))?
            }
            rest => parse_plain_word(rest.strip_prefix(' ')?)?,
        };
        matter.insert(name.to_owned(), value);
    }
    (!matter.is_empty()).then_some(matter)
}

/// Letters, then also digits and underscores. No other kind of YAML key looks like that, except for reserved words.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !is_reserved(text)
}

/// A word: a plain string, or `true` or `false`.
fn parse_plain_word(text: &str) -> Option<Value> {
    match text {
        "true" => return Some(Value::Bool(true)),
        "false" => return Some(Value::Bool(false)),
        _ => {}
    }
    let plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/'));
    (plain && !is_reserved(text)).then(|| text.into())
}

/// Whether any version of YAML reads the word as something other than a string.
fn is_reserved(text: &str) -> bool {
    const WORDS: [&str; 11] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::read_plain_yaml;
    use cuegate_testkit::world::roll;
    use serde_json::Value;

    #[test]
    fn it_reads_what_yaml_reads() {
        let lines = [
            "stepId: initial.issue",
            "name: a",
            "list:",
            "  - a",
            "  - b-c",
            "- a",
            "on: x",
            "x: yes",
            "x: True",
            "x: true",
            "x: 1",
            "x: a b",
            "x: a # b",
            "x: \"a\"",
            "x:a",
            "x:  a",
            "  - a: b",
            "x: e1",
            "x: .5",
            "y: z",
            "",
            " x: a",
            "x: ~",
            "x: null",
            "x: a:",
            "x: a:b",
            "z_9: a/b.c",
            "# c",
            "  - false",
            "x: a\t",
            "? a",
            "é: a",
            "x: é",
            "...",
            "x: Infinity",
            "x: nan",
            "a: &b",
            "a: |",
            "   - a",
            "\t- a",
        ];
        let mut turn = 0;
        let mut below = |n: usize| {
            turn += 1;
            roll(turn, "front matter") as usize % n
        };
        let mut plain = 0;
        for _ in 0..30_000 {
            let count = 1 + below(5);
            // Most cases use the first few lines, so that many of them are plain.
            let chosen: Vec<&str> = (0..count)
                .map(|_| if below(3) > 0 { lines[below(5)] } else { lines[below(lines.len())] })
                .collect();
            let yaml = format!("{}\n", chosen.join(if below(9) == 0 { "\r\n" } else { "\n" }));
            if let Some(read) = read_plain_yaml(&yaml) {
                plain += 1;
                let known = serde_saphyr::from_str::<Value>(&yaml).ok();
                assert_eq!(Some(Value::Object(read)), known, "{yaml}");
            }
        }
        assert!(plain > 2_000, "{plain}");
    }
}
