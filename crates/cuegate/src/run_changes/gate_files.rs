//! Finds changed files that decide what a gate runs: its script, or the file that the tool of its command reads.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use cuegate_flow::model::{Act, Flow};
use cuegate_view::GateFile;
use serde_json::Value;

/// The files from which the tools of commands read what to run, by the name of the tool.
const READ_BY: [(&[&str], &[&str]); 12] = [
    (&["make", "gmake"], &["Makefile", "makefile", "GNUmakefile"]),
    (&["npm", "npx", "pnpm", "yarn", "bun", "deno"], &["package.json", "deno.json"]),
    (&["jest"], &["jest.config.js", "jest.config.ts", "jest.config.mjs", "jest.config.cjs"]),
    (&["vitest"], &["vitest.config.js", "vitest.config.ts", "vitest.config.mjs", "vitest.config.mts"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["task"], &["Taskfile.yml", "Taskfile.yaml"]),
    (&["mvn", "mvnw"], &["pom.xml", "mvnw"]),
    (&["gradle", "gradlew"], &["build.gradle", "build.gradle.kts", "settings.gradle", "gradlew"]),
    (&["pytest", "tox", "nox"], &["conftest.py", "pytest.ini", "tox.ini", "noxfile.py"]),
    (&["cargo"], &[".cargo/config.toml", ".config/nextest.toml"]),
    (&["rake", "bundle", "rspec"], &["Rakefile", ".rspec"]),
    (&["composer", "phpunit"], &["composer.json", "phpunit.xml"]),
];

/// The commands that validate the work of a flow, once each.
pub(crate) fn gate_commands(flow: &Flow) -> BTreeSet<String> {
    let mut commands = BTreeSet::new();
    for step in &flow.steps {
        match &step.act {
            Act::Exec { commands: own } => commands.extend(own.iter().map(|known| known.command.to_string())),
            Act::Ask(ask) => {
                let guards = ask.guard.iter().flat_map(|guard| &guard.commands);
                commands.extend(guards.map(|known| known.validator.command.to_string()));
            }
            _ => {}
        }
    }
    commands
}

/// The changed files that these commands run or read their orders from. `changed` are paths relative to the top of the
/// working tree, `folder` is the one in it where commands start; `content` reads a file before and after the changes.
pub(crate) fn find_gate_files(
    commands: &BTreeSet<String>,
    changed: &BTreeSet<String>,
    folder: &str,
    content: &dyn Fn(&str) -> [Option<String>; 2],
) -> Vec<GateFile> {
    let mut found = BTreeSet::new();
    for command in commands {
        let mut texts = vec![command.clone()];
        let words = words_of(command);
        let folders = folders_of(&words, folder);
        for (tools, files) in READ_BY {
            // A script that the command runs may be what starts the tool.
            let is_used =
                texts.iter().flat_map(|text| words_of(text)).any(|word| tools.contains(&program_of(word)));
            if !is_used {
                continue;
            }
            let files = folders.iter().flat_map(|folder| files.iter().map(|file| join_path(folder, file)));
            for file in files {
                let is_changed = changed.contains(&file);
                // What its scripts run is run by the command.
                let [before, after] =
                    content(&file).map(|text| text.map(|text| scripts_of(&file, &text, &words)));
                let is_same = after.is_some() && before == after;
                texts.extend(after.into_iter().flatten());
                if is_changed && !(is_manifest(&file) && is_same) {
                    found.insert(GateFile { path: file, command: command.clone() });
                }
            }
        }
        let named: BTreeSet<String> = texts
            .iter()
            .flat_map(|text| text.split(['\n', ';', '&', '|', '(', ')', '`']))
            .flat_map(list_deciding_words)
            .flat_map(|word| folders.iter().flat_map(move |folder| paths_of(word, folder)))
            .collect();
        let tests = texts.iter().any(|text| runs_tests(text));
        // Adding tests is part of most work, taking some away is not.
        let loses_lines = |path: &str| {
            let [before, after] = content(path);
            before.is_some_and(|before| has_lost_lines(&before, after.as_deref().unwrap_or_default()))
        };
        let run = changed
            .iter()
            .filter(|path| named.contains(*path) || (tests && is_test_path(path) && loses_lines(path)));
        found.extend(run.map(|path| GateFile { path: path.clone(), command: command.clone() }));
    }
    found.into_iter().collect()
}

/// The folders in which a command looks for files: where it starts, and those that it changes to.
fn folders_of(words: &[&str], folder: &str) -> Vec<String> {
    const CHANGES: [&str; 7] = ["cd", "pushd", "-C", "--cwd", "--dir", "--directory", "--prefix"];
    let into = words.windows(2).filter(|pair| CHANGES.contains(&pair[0]));
    let into = into.map(|pair| join_path(folder, pair[1].trim_start_matches("./").trim_end_matches('/')));
    std::iter::once(folder.to_owned()).chain(into).collect()
}

/// The files that a word may name: a path, or a module of Python.
fn paths_of(word: &str, folder: &str) -> [String; 2] {
    let path =
        ["./", "$PWD/", "${PWD}/"].into_iter().find_map(|start| word.strip_prefix(start)).unwrap_or(word);
    [join_path(folder, path), join_path(folder, &format!("{}.py", word.replace('.', "/")))]
}

/// Whether a file holds more than scripts.
fn is_manifest(path: &str) -> bool {
    matches!(
        Path::new(path).file_name().and_then(|name| name.to_str()),
        Some("package.json" | "composer.json" | "deno.json")
    )
}

/// The scripts in a file that a command runs: those of a manifest that it names, with what these name, or the whole file.
fn scripts_of(path: &str, text: &str, words: &[&str]) -> Vec<String> {
    if !is_manifest(path) {
        return vec![text.to_owned()];
    }
    let json: Value = serde_json::from_str(text).unwrap_or_default();
    let tables = ["scripts", "tasks"].into_iter().filter_map(|key| json.get(key)?.as_object());
    let scripts: BTreeMap<&str, String> = tables
        .flatten()
        .map(|(name, script)| {
            (name.as_str(), script.as_str().map_or_else(|| script.to_string(), str::to_owned))
        })
        .collect();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = words.to_vec();
    // `npm t` is `npm test`.
    open.extend(words.iter().filter(|word| ["t", "tst"].contains(word)).map(|_| "test"));
    while let Some(word) = open.pop() {
        for name in ["", "pre", "post"].map(|start| format!("{start}{word}")) {
            if let Some((name, script)) = scripts.get_key_value(name.as_str())
                && names.insert(name)
            {
                open.extend(words_of(script));
            }
        }
    }
    names.into_iter().map(|name| scripts[name].clone()).collect()
}

/// Whether a command runs tests, by its words.
fn runs_tests(command: &str) -> bool {
    words_of(command)
        .iter()
        .any(|word| RUNNERS.contains(&program_of(word)) || word.to_lowercase().contains("test"))
}

/// Whether a text has not all lines any more that it had, apart from empty ones.
fn has_lost_lines(before: &str, after: &str) -> bool {
    let mut remaining: BTreeMap<&str, usize> = BTreeMap::new();
    for line in after.lines().map(str::trim) {
        *remaining.entry(line).or_default() += 1;
    }
    before.lines().map(str::trim).filter(|line| !line.is_empty()).any(|line| match remaining.get_mut(line) {
        Some(times @ 1..) => {
            *times -= 1;
            false
        }
        _ => true,
    })
}

/// Programs that run tests.
const RUNNERS: [&str; 12] = [
    "ava",
    "bats",
    "behave",
    "cypress",
    "jest",
    "mocha",
    "phpunit",
    "playwright",
    "pytest",
    "rspec",
    "unittest",
    "vitest",
];

/// The words of a simple command that may name files which decide how it ends: the script that it runs, tests, and settings
/// of tests. A source that it only reads, as a linter or a compiler does, is what is judged.
fn list_deciding_words(command: &str) -> Vec<&str> {
    const WRAPPERS: [&str; 18] = [
        "bunx", "corepack", "dlx", "env", "exec", "nice", "nohup", "npx", "pdm", "pnpm", "poetry", "run",
        "time", "timeout", "uv", "uvx", "xvfb-run", "yarn",
    ];
    const INTERPRETERS: [&str; 17] = [
        ".", "bash", "bun", "dash", "deno", "include", "node", "perl", "php", "python", "python3", "ruby",
        "sh", "source", "ts-node", "tsx", "zsh",
    ];
    let is_assignment = |word: &str| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
    };
    let is_amount = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    // In a Makefile, `@` may stand before a command.
    let mut words = command
        .split_whitespace()
        .map(|word| word.trim_matches(['"', '\'']).trim_start_matches('@'))
        .filter(|word| !word.is_empty())
        .skip_while(|word| {
            WRAPPERS.contains(word) || word.starts_with('-') || is_assignment(word) || is_amount(word)
        });
    let Some(program) = words.next() else { return Vec::new() };
    // A test in a file is named as `FILE::TEST`.
    let rest: Vec<&str> = words.map(|word| word.split_once("::").map_or(word, |(file, _)| file)).collect();
    let is_runner = |word: &&str| RUNNERS.contains(&program_of(word)) || *word == "--test";
    let mut deciding = vec![program];
    if is_runner(&program) || rest.iter().any(is_runner) {
        deciding.extend(&rest);
    } else if INTERPRETERS.contains(&program_of(program)) {
        if let Some((_, text)) = command.split_once(" -c ") {
            deciding.extend(list_deciding_words(text));
        } else if !rest.iter().any(|word| ["--check", "-n"].contains(word)) {
            // `node --check` and `sh -n` run nothing.
            deciding.extend(rest.iter().find(|word| !word.starts_with('-') && **word != "run"));
        }
    }
    let names_settings =
        |flag: &str| flag == "--config" || (flag == "-f" && ["make", "gmake"].contains(&program));
    deciding.extend(rest.windows(2).filter(|pair| names_settings(pair[0])).map(|pair| pair[1]));
    deciding.extend(rest.iter().filter(|word| is_test_path(word)));
    deciding
}

/// Whether a path is one of a test, by its name or its folder.
fn is_test_path(path: &str) -> bool {
    let mut parts: Vec<&str> = path.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    parts.iter().any(|folder| ["test", "tests", "spec", "specs", "__tests__", "e2e"].contains(folder))
        || [".test.", ".spec.", "_test.", "_spec."].iter().any(|mark| name.contains(mark))
        || ["test.", "test_", "conftest."].iter().any(|start| name.starts_with(start))
}

/// The words of a shell command, without quotes.
fn words_of(command: &str) -> Vec<&str> {
    let is_end = |c: char| c.is_whitespace() || ";|&()<>\"'`=".contains(c);
    command.split(is_end).filter(|word| !word.is_empty()).collect()
}

fn program_of(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn join_path(folder: &str, file: &str) -> String {
    if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(command: &str, changed: &[&str], folder: &str, files: [&str; 2]) -> Vec<String> {
        let changed: BTreeSet<String> = changed.iter().map(ToString::to_string).collect();
        let content = |_: &str| files.map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()));
        let commands = [command.to_owned()].into();
        find_gate_files(&commands, &changed, folder, &content).into_iter().map(|file| file.path).collect()
    }

    #[test]
    fn files_that_a_gate_runs_are_found() {
        let package = |test: &str, more: &str| format!("{{\"scripts\": {{\"test\": \"{test}\"}}{more}}}");
        let plain = package("node --test", "");
        let none: [&str; 0] = [];
        for (command, changed, files, wanted) in [
            ("sh test.sh", vec!["test.sh", "src/a.rs"], ["", ""], vec!["test.sh"]),
            ("cd t && ./run.sh", vec!["t/run.sh", "run.c"], ["", ""], vec!["t/run.sh"]),
            ("make -C t", vec!["t/Makefile"], ["old", "new"], vec!["t/Makefile"]),
            (
                "make test",
                vec!["t/run.sh", "x.mk", "a.c"],
                ["x:\n\tsh t/run.sh a.c\ninclude x.mk"; 2],
                vec!["t/run.sh", "x.mk"],
            ),
            ("python3 -m unittest t.x", vec!["t/x.py", "t/y.py"], ["", ""], vec!["t/x.py"]),
            ("sh $PWD/t/run.sh", vec!["t/run.sh"], ["", ""], vec!["t/run.sh"]),
            (
                "cd x && ./scripts/check.py --all",
                vec!["scripts/check.py"],
                ["", ""],
                vec!["scripts/check.py"],
            ),
            ("make -s test", vec!["Makefile"], ["old", "new"], vec!["Makefile"]),
            ("npm test", vec!["package.json"], [&plain, &package("true", "")], vec!["package.json"]),
            (
                "npm test",
                vec!["package.json"],
                [&plain, &package("node --test", ", \"x\": 1")],
                none.to_vec(),
            ),
            (
                "npm test",
                vec!["run.js"],
                [&package("node run.js", ""); 2].map(|text| text.as_str()),
                vec!["run.js"],
            ),
            ("cargo test", vec!["src/lib.rs", "Makefile"], ["", ""], none.to_vec()),
            (
                "npm test",
                vec!["server.js", "src/a.js", "check.js", "test/a.test.js", "tools/build.js"],
                [r#"{"scripts": {"start": "node server.js", "build": "node tools/build.js",
                    "pretest": "CI=1 npm run lint", "lint": "eslint src/a.js && node --check src/a.js && A=1 node check.js",
                    "test": "node --test test/a.test.js src/a.js.map"}}"#; 2],
                vec!["check.js", "test/a.test.js"],
            ),
            (
                "npm test",
                vec!["package.json"],
                [
                    r#"{"scripts": {"start": "node a.js", "test": "node --test"}}"#,
                    r#"{"scripts": {"start": "node b.js", "test": "node --test"}}"#,
                ],
                none.to_vec(),
            ),
            ("npx eslint src/a.js", vec!["src/a.js"], ["", ""], none.to_vec()),
            ("gcc -c src/a.c", vec!["src/a.c"], ["", ""], none.to_vec()),
            (
                "timeout 20 sh -e scripts/check.sh",
                vec!["scripts/check.sh"],
                ["", ""],
                vec!["scripts/check.sh"],
            ),
            ("env CI=1 ./run-all", vec!["run-all"], ["", ""], vec!["run-all"]),
            ("bash -c 'sh scripts/check.sh'", vec!["scripts/check.sh"], ["", ""], vec!["scripts/check.sh"]),
            ("pytest tests/a.py::test_x", vec!["tests/a.py"], ["", ""], vec!["tests/a.py"]),
            ("python3 -m pytest", vec!["tests/test_a.py"], ["one\ntwo", "one\ntwo\nthree"], none.to_vec()),
            ("python3 -m pytest", vec!["tests/test_a.py"], ["one\ntwo", "one"], vec!["tests/test_a.py"]),
            ("cargo test", vec!["tests/a.rs"], ["one", ""], vec!["tests/a.rs"]),
            ("pytest -q tests/test_a.py", vec!["tests/test_a.py"], ["", ""], vec!["tests/test_a.py"]),
            ("sh -e check.sh src/a.js", vec!["check.sh", "src/a.js"], ["", ""], vec!["check.sh"]),
        ] {
            assert_eq!(found(command, &changed, "", files), wanted, "{command}");
        }
        assert_eq!(found("sh test.sh", &["a/test.sh", "test.sh"], "a", ["", ""]), ["a/test.sh"]);
    }
}
