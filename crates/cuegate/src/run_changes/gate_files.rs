//! Finds changed files that decide what a gate runs: its script, or the file that the tool of its command reads.

use std::{collections::BTreeSet, path::Path};

use cuegate_flow::model::{Act, Flow};
use cuegate_view::GateFile;
use serde_json::Value;

/// The files from which the tools of commands read what to run, by the name of the tool.
const READ_BY: [(&[&str], &[&str]); 12] = [
    (&["make", "gmake"], &["Makefile", "makefile", "GNUmakefile"]),
    (&["npm", "npx", "pnpm", "yarn", "bun", "deno"], &["package.json", "deno.json"]),
    (
        &["npm", "npx", "pnpm", "yarn", "bun", "jest"],
        &["jest.config.js", "jest.config.ts", "jest.config.mjs", "jest.config.cjs"],
    ),
    (
        &["npm", "npx", "pnpm", "yarn", "bun", "vitest"],
        &["vitest.config.js", "vitest.config.ts", "vitest.config.mjs"],
    ),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["task"], &["Taskfile.yml", "Taskfile.yaml"]),
    (&["mvn", "mvnw"], &["pom.xml", "mvnw"]),
    (&["gradle", "gradlew"], &["build.gradle", "build.gradle.kts", "settings.gradle", "gradlew"]),
    (
        &["pytest", "tox", "nox", "python", "python3", "uv"],
        &["conftest.py", "pytest.ini", "tox.ini", "noxfile.py"],
    ),
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
            if !words.iter().any(|word| tools.contains(&program_of(word))) {
                continue;
            }
            let files = folders.iter().flat_map(|folder| files.iter().map(|file| join_path(folder, file)));
            for file in files {
                let is_changed = changed.contains(&file);
                // What its scripts run is run by the command.
                let [before, after] = content(&file);
                let scripts = after.as_deref().map(|after| scripts_of(&file, after));
                let same =
                    scripts.is_some() && before.as_deref().map(|before| scripts_of(&file, before)) == scripts;
                texts.extend(scripts.into_iter().flatten());
                if is_changed && !(is_manifest(&file) && same) {
                    found.insert(GateFile { path: file, command: command.clone() });
                }
            }
        }
        let named: BTreeSet<String> = texts
            .iter()
            .flat_map(|text| words_of(text))
            .flat_map(|word| folders.iter().flat_map(move |folder| paths_of(word, folder)))
            .collect();
        let run = changed.iter().filter(|path| named.contains(*path));
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

/// The commands in a file: the scripts of a manifest, else the scripts that the file names.
fn scripts_of(path: &str, text: &str) -> Vec<String> {
    const SCRIPTS: [&str; 9] = [".sh", ".bash", ".py", ".js", ".mjs", ".ts", ".rb", ".pl", ".mk"];
    if !is_manifest(path) {
        let names = words_of(text).into_iter().filter(|word| SCRIPTS.iter().any(|end| word.ends_with(end)));
        return names.map(str::to_owned).collect();
    }
    let json: Value = serde_json::from_str(text).unwrap_or_default();
    let scripts = ["scripts", "tasks"].into_iter().filter_map(|key| json.get(key)?.as_object());
    scripts
        .flatten()
        .map(|(name, script)| {
            format!("{name}: {}", script.as_str().map_or_else(|| script.to_string(), str::to_owned))
        })
        .collect()
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
        ] {
            assert_eq!(found(command, &changed, "", files), wanted, "{command}");
        }
        assert_eq!(found("sh test.sh", &["a/test.sh", "test.sh"], "a", ["", ""]), ["a/test.sh"]);
    }
}
