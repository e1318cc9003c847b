//! Whatever stands in the files, loading returns.

use crate::support::{DIR, Project, sound};
use cuegate_flow::checks::check_draft;
use cuegate_formats::{AgentOptions, load_agent};

/// A linear congruential generator (Knuth's constants): the same mutations at every run.
pub struct Random(pub u64);

impl Random {
    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound.max(1)
    }
}

fn survives(files: &Project) {
    let options = AgentOptions { agent_dir: DIR.to_owned(), registry: None, set: vec!["extra".to_owned()] };
    let loaded = load_agent(files, &options);
    for finding in &loaded.diagnostics {
        loaded.sources.locate(finding.span);
    }
    if !loaded.draft.steps.is_empty() {
        check_draft(loaded.draft);
    }
}

#[test]
fn truncated_anywhere() {
    let sound = sound();
    for (path, bytes) in &sound {
        let step = (bytes.len() / 60).max(1);
        for end in (0..bytes.len()).step_by(step) {
            let mut files = sound.clone();
            files.insert(path.clone(), bytes[..end].to_vec());
            survives(&files);
        }
    }
}

#[test]
fn missing_one_after_the_other() {
    let sound = sound();
    for path in sound.keys() {
        let mut files = sound.clone();
        files.remove(path);
        survives(&files);
    }
}

#[test]
fn mutated_in_many_places() {
    const PIECES: [&[u8]; 24] = [
        b"null",
        b"{}",
        b"[]",
        b"\"\"",
        b"-1",
        b"1e999",
        b"true",
        b"{",
        b"}",
        b"\"",
        b",",
        b"\xff",
        b"\x00",
        b"..",
        b"{{#if x}}",
        b"{{/each}}",
        b"{section.context}",
        b"{uv-",
        b"---\n",
        b"jump",
        b"\\u0000",
        b"\"$ref\": \"#\"",
        b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
        "é漢".as_bytes(),
    ];
    let sound = sound();
    let paths: Vec<&String> = sound.keys().collect();
    let mut random = Random(7);
    for _ in 0..600 {
        let mut files = sound.clone();
        for _ in 0..=random.below(3) {
            let bytes = files.get_mut(paths[random.below(paths.len())]).unwrap();
            let at = random.below(bytes.len());
            let cut = random.below(12).min(bytes.len() - at);
            let piece = PIECES[random.below(PIECES.len())];
            bytes.splice(at..at + cut, piece.iter().copied());
        }
        survives(&files);
    }
}

/// Replaces whole values, so that the text stays JSON and the readers behind the parser are met.
#[test]
fn mutated_values() {
    const VALUES: [&str; 12] = [
        "null",
        "{}",
        "[]",
        "\"\"",
        "0",
        "true",
        "\"closing\"",
        "[\"jump\", \"abort\"]",
        "\"../../..\"",
        "[null, {}]",
        "{\"target\": 3}",
        "{\"a\": {\"from\": \"x\"}}",
    ];
    let sound = sound();
    for path in sound.keys().filter(|path| path.ends_with(".json")) {
        let text = String::from_utf8(sound[path].clone()).unwrap();
        let places = serde_places(&text);
        for (start, end) in places {
            for value in VALUES {
                let mut files = sound.clone();
                files.insert(path.clone(), format!("{}{value}{}", &text[..start], &text[end..]).into_bytes());
                survives(&files);
            }
        }
    }
}

/// Where values stand: after each colon, up to where a JSON reader ends the value.
pub fn serde_places(text: &str) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    for (colon, _) in text.match_indices(": ") {
        let start = colon + 2;
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<serde_json::Value>();
        if let Some(Ok(_)) = stream.next() {
            places.push((start, start + stream.byte_offset()));
        }
    }
    places
}

#[test]
fn deep_and_large_parts() {
    let with = |path: &str, text: String| {
        let mut files = sound();
        files.insert(format!("{DIR}/{path}"), text.into_bytes());
        survives(&files);
    };
    with("prompts/system.md", format!("---\na: {}\n---\n", "[".repeat(200_000)));
    let bomb: String = (1..30).map(|n| format!("a{n}: &a{n} [*a{}, *a{}]\n", n - 1, n - 1)).collect();
    with("prompts/system.md", format!("---\na0: &a0 [x]\n{bomb}---\n"));
    with("prompts/system.md", "{section.context}".repeat(10_000));
    with("prompts/system.md", "{uv-issue}{{".repeat(100_000));
    with("prompts/steps/retry/fix/f_failed_git-dirty.md", "{{#each changedFiles}}".repeat(100_000));
    // Objects in objects, each in a definition of its own, as deep as a resolved schema may be and deeper.
    for levels in [20, 40, 49, 60] {
        let mut definitions = serde_json::json!({"d0": {"type": "object"}});
        for level in 1..=levels {
            let inner = serde_json::json!({"$ref": format!("#/$defs/d{}", level - 1)});
            definitions[format!("d{level}")] =
                serde_json::json!({"type": "object", "properties": {"x": inner}});
        }
        definitions["initial.fix"] = definitions[format!("d{levels}")].clone();
        with("schemas/fix.json", serde_json::json!({"$defs": definitions}).to_string());
    }
}
