//! Loading a piece returns for any input.

use cuegate_flow::checks::check_draft;
use cuegate_formats::{Phases, TaktOptions, load_takt_workflow};

use crate::fuzz::Random;
use crate::support::Project;
use crate::takt::takt_support::{FILE, sound};

fn survives(files: &Project) {
    for (phases, interactive) in [(Phases::Fused, false), (Phases::Separate, true)] {
        let options = TaktOptions {
            file: FILE.to_owned(),
            set: vec!["extra".to_owned()],
            phases,
            interactive,
            ..TaktOptions::default()
        };
        let loaded = load_takt_workflow(files, &options);
        for finding in &loaded.diagnostics {
            assert!(finding.hint.is_some(), "a finding says what to do: {finding:?}");
            loaded.sources.locate(finding.span);
        }
        let sound = !loaded.has_errors();
        if !loaded.draft.steps.is_empty() {
            let checked = check_draft(loaded.draft);
            let errors = checked
                .diagnostics
                .iter()
                .any(|found| found.severity == cuegate_flow::diagnostics::Severity::Error);
            assert!(!sound || errors || checked.flow.is_some());
        }
    }
}

fn with(text: Vec<u8>) -> Project {
    let mut files = sound();
    files.insert(FILE.to_owned(), text);
    files
}

#[test]
fn truncated_anywhere() {
    for (path, bytes) in &sound() {
        let step = (bytes.len() / 80).max(1);
        for end in (0..bytes.len()).step_by(step) {
            let mut files = sound();
            files.insert(path.clone(), bytes[..end].to_vec());
            survives(&files);
        }
    }
}

#[test]
fn mutated_in_many_places() {
    const PIECES: [&[u8]; 30] = [
        b"null",
        b"~",
        b"{}",
        b"[]",
        b"\"\"",
        b"-1",
        b"1e999",
        b"true",
        b": ",
        b"\n",
        b"\n  ",
        b"- ",
        b"\t",
        b"|",
        b"\"",
        b"'",
        b"&a ",
        b"*a",
        b"!!str ",
        b"<<: ",
        b"\xff",
        b"\x00",
        b"..",
        b"{report:",
        b"all(\"",
        b"ai(\"x\")",
        b"COMPLETE",
        b"---\n",
        b"name",
        "é漢".as_bytes(),
    ];
    let sound = sound();
    let paths: Vec<&String> = sound.keys().collect();
    let mut random = Random(11);
    for _ in 0..700 {
        let mut files = sound.clone();
        for _ in 0..=random.below(3) {
            // Most errors are possible in the piece file itself.
            let path = if random.below(4) > 0 { FILE } else { paths[random.below(paths.len())] };
            let bytes = files.get_mut(path).unwrap();
            let at = random.below(bytes.len());
            let cut = random.below(12).min(bytes.len() - at);
            let piece = PIECES[random.below(PIECES.len())];
            bytes.splice(at..at + cut, piece.iter().copied());
        }
        survives(&files);
    }
}

/// Replaces the value after a key, so that the text stays YAML and the readers behind the parser run.
#[test]
fn mutated_values() {
    const VALUES: [&str; 11] = [
        "~",
        "{}",
        "[]",
        "\"\"",
        "0",
        "[plan, plan]",
        "[[], {}]",
        "{a: {b: c}}",
        "../../../../x",
        "all(\"approved\")",
        "[{name: x, condition: y, next: z}]",
    ];
    let text = String::from_utf8(sound()[FILE].clone()).unwrap();
    let ends = text.match_indices('\n').map(|(at, _)| at);
    for end in ends {
        let start = text[..end].rfind('\n').map_or(0, |at| at + 1);
        let Some(colon) = text[start..end].find(": ").map(|at| start + at + 2) else { continue };
        for value in VALUES {
            survives(&with(format!("{}{value}{}", &text[..colon], &text[end..]).into_bytes()));
        }
    }
}

#[test]
fn random_bytes() {
    let mut random = Random(5);
    for length in [1, 7, 80, 900] {
        for _ in 0..60 {
            let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            survives(&with(bytes));
            let printable: Vec<u8> =
                (0..length).map(|_| b"-: \n[]{}&*!|>'\"%@`#,?ab0"[random.below(24)]).collect();
            survives(&with(printable));
        }
    }
}

#[test]
fn deep_and_large_parts() {
    survives(&with("[".repeat(1 << 20).into_bytes()));
    survives(&with("a: ".repeat(100_000).into_bytes()));
    survives(&with("- ".repeat(100_000).into_bytes()));
    survives(&with(
        (0..2_000).map(|level| format!("{}a:\n", " ".repeat(level))).collect::<String>().into_bytes(),
    ));
    let bomb: String = (1..60).map(|n| format!("a{n}: &a{n} [*a{}, *a{}]\n", n - 1, n - 1)).collect();
    survives(&with(format!("a0: &a0 [x]\n{bomb}").into_bytes()));
    let text = String::from_utf8(sound()[FILE].clone()).unwrap();
    let braces = text.replace("Plan {task}.", &"{report:{task}".repeat(50_000));
    survives(&with(braces.into_bytes()));
    let rules: String =
        (0..2_000).map(|n| format!("      - condition: Done\n        next: m{n}\n")).collect();
    survives(&with(text.replacen("    rules:\n", &format!("    rules:\n{rules}"), 1).into_bytes()));
    let many: String = (0..500)
        .map(|n| format!("  - name: m{n}\n    edit: false\n    instruction_template: x\n    rules:\n      - condition: y\n        next: m{}\n", n + 1))
        .collect();
    survives(&with(text.replacen("movements:\n", &format!("movements:\n{many}"), 1).into_bytes()));
}
