//! Runs the example in a fresh git repository.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::{
    agents,
    shell::{cargo, root, run},
};

/// Copies the example into a new repository in the system's temporary folder, runs it, and leaves the folder there.
pub(crate) fn demo() -> Result<(), String> {
    let root = root();
    run(&root, &cargo(), &["build", "--package", "cuegate"], &[])?;
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root.join("target"), Into::into);
    let cuegate = target.join("debug/cuegate");
    let example = root.join("examples/fix-failing-test");
    let place = project(&example)?.keep();
    println!("A small project with a failing test, in {}:", place.display());
    println!("\n$ sh test.sh");
    let _ = Command::new("sh").arg("test.sh").current_dir(&place).stdin(Stdio::null()).status();
    println!("\n$ cuegate run fixer \"The test fails. Make it pass.\" --script .agent/fixer/script.yaml\n");
    let script = ".agent/fixer/script.yaml";
    let status = Command::new(&cuegate)
        .args(["run", "fixer", "The test fails. Make it pass.", "--script", script])
        .current_dir(&place)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("failed to start `{}`: {error}", cuegate.display()))?;
    if !status.success() {
        return Err(format!("the run ended with {status}"));
    }
    println!("\n$ sh test.sh");
    run_quietly(&place, "sh", &["test.sh"])?;
    println!(
        "\nWhat happened: the agent planned, edited, committed and reported that it was done. The gate ran the test:"
    );
    println!(
        "it still failed, so the agent was called again with the output of the test. Its second fix passed the"
    );
    println!(
        "test and left a clean git tree; only then did the run complete. Every line above is in a journal that"
    );
    println!("survives kill -9: stop a run anywhere, and `cuegate resume` continues it.");
    println!("\nTo inspect:   cd {}", place.display());
    println!("and run       {} report last", cuegate.display());
    println!("the agent     {}", example.join("agent").display());
    Ok(())
}

/// A new repository with the example, in the system's temporary folder.
fn project(example: &Path) -> Result<tempfile::TempDir, String> {
    let folder = tempfile::Builder::new()
        .prefix("cuegate-demo-")
        .tempdir()
        .map_err(|error| format!("failed to create a temporary folder: {error}"))?;
    let place = folder.path();
    copy(&example.join("project"), place)?;
    copy(&example.join("agent"), &place.join(".agent/fixer"))?;
    copy_file(&example.join("script.yaml"), &place.join(".agent/fixer/script.yaml"))?;
    git(place, &["init", "--quiet", "--initial-branch", "main"])?;
    git(place, &["config", "user.name", "Demo"])?;
    git(place, &["config", "user.email", "demo@localhost"])?;
    git(place, &["add", "--all"])?;
    git(place, &["commit", "--quiet", "--message", "A project whose test fails"])?;
    Ok(folder)
}

/// Takes the pictures of the README, of the example and of the built-in `develop`. Needs Node.js, tmux and Chromium.
pub(crate) fn pictures() -> Result<(), String> {
    let root = root();
    agents::browser()?;
    run(&root, &cargo(), &["build", "--package", "cuegate"], &[])?;
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root.join("target"), Into::into);
    let project = project(&root.join("examples/fix-failing-test"))?;
    let chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let chromium = chromium.into_iter().find(|path| Path::new(path).exists());
    let chromium = chromium.ok_or("the pictures need Chromium: `apt-get install chromium`")?;
    let args: [&Path; 6] = [
        &root.join("xtask/browser/pictures.mjs"),
        &target.join("browser/node_modules"),
        &target.join("debug/cuegate"),
        project.path(),
        &root.join("docs/images"),
        Path::new(chromium),
    ];
    run(&root, "node", &args, &[])
}

fn git(place: &Path, args: &[&str]) -> Result<(), String> {
    run_quietly(place, "git", args)
}

fn run_quietly(place: &Path, program: &str, args: &[&str]) -> Result<(), String> {
    let status = Command::new(program)
        .args(args)
        .current_dir(place)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("failed to start `{program}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{program} {}` ended with {status}", args.join(" "))) }
}

/// Copies a folder recursively.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|error| format!("failed to create `{}`: {error}", to.display()))?;
    let entries =
        fs::read_dir(from).map_err(|error| format!("failed to read `{}`: {error}", from.display()))?;
    for entry in entries {
        let entry = entry.map_err(|error| format!("failed to read `{}`: {error}", from.display()))?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() { copy(&from, &to)? } else { copy_file(&from, &to)? }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(|_| ()).map_err(|error| format!("failed to copy `{}`: {error}", from.display()))
}
