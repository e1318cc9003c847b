//! `init`.

use std::path::Path;

use cuegate_view::{clean_to_one_line, pad_right, plural};
use serde_json::{Value, json};

use super::prompt_user;
use crate::before_start::baseline::try_once;
use crate::before_start::diagnose::{find_missing_in, find_setup};
use crate::before_start::settings::ConfigEntry;
use crate::before_start::trial::{TrialFailure, try_where_runs_work};
use crate::cli::commands::ProjectPlace;
use crate::cli::print;
use crate::init::{
    DetectedCommand, DetectedCommands, STARTERS, Starter, StarterFormat, StarterValues, TestUse, WriteSummary,
};
use crate::run::tried_command::TriedCommand;
use crate::{Failure, Program, config, exit, init};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The starter: `minimal`, `develop`, or another that `--list` prints
    pub(crate) starter: Option<String>,
    /// The name of the new definition [default: the name of the starter]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The test command that must pass before work is done [default: detected from the project's files]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) test: Option<String>,
    /// A further command that must pass before work is done, such as a linter; repeatable
    #[arg(long, value_name = "COMMAND")]
    pub(crate) check: Vec<String>,
    /// Do not run the test command once to see whether it works
    #[arg(long)]
    pub(crate) no_try: bool,
    /// List the starters
    #[arg(long, conflicts_with_all = ["starter", "name", "test", "check"])]
    pub(crate) list: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The starter with this name. A path is never one.
pub(in crate::cli::commands) fn built_in(typed: &str) -> Option<&'static Starter> {
    init::find_starter(typed).filter(|_| !typed.contains(['/', '.']))
}

/// The folder that workflows and what they share are written into.
const TAKT_FOLDER: &str = ".takt";

pub(in crate::cli::commands) fn create_from_starter(
    place: &ProjectPlace,
    args: &InitArgs,
) -> Result<u8, Failure> {
    let Some(asked) = args.starter.as_deref().filter(|_| !args.list) else {
        return Ok(print_starters(args.json));
    };
    let starter = init::find_starter(asked).ok_or_else(|| {
        Failure::usage(
            format!("there is no starter `{asked}`"),
            match init::find_nearest_starter(asked) {
                Some(nearest) => {
                    format!("did you mean `{nearest}`? `cuegate init --list` lists all starters")
                }
                None => "`cuegate init --list` lists all starters".to_owned(),
            },
        )
    })?;
    let root = place.home.root();
    let commands = choose_commands(starter, place, args)?;
    let name = args.name.as_deref().unwrap_or(starter.name);
    let test = commands.test.as_ref().map(|test| test.command.as_str());
    let checks = commands.checks.iter().map(|check| check.command.clone()).collect();
    let wanted = StarterValues::new(name, test)?.with_checks(checks)?;
    let (folder, definition, left) = match &starter.form {
        StarterFormat::Agent(files) => {
            let folder = format!(".agent/{name}");
            let files = files(&wanted);
            init::write_new_folder(&root.join(".agent").join(name), &files)?;
            let written = files.iter().map(|file| format!("{folder}/{}", file.path)).collect();
            (folder.clone(), folder, WriteSummary { written, ..WriteSummary::default() })
        }
        StarterFormat::Takt(workflow) => {
            if workflow.called() == Some(name) {
                return Err(Failure::usage(
                    format!("`{}` cannot be named `{name}`: it calls `{name}`", starter.name),
                    "choose another `--name`",
                ));
            }
            let left = init::merge_into_folder(
                root,
                TAKT_FOLDER,
                &workflow.own(&wanted),
                &workflow.shared(&wanted),
            )?;
            (TAKT_FOLDER.to_owned(), format!("{TAKT_FOLDER}/workflows/{name}.yaml"), left)
        }
    };
    let setup = match config::load_config(root)?.worktree.setup.0.is_empty() {
        true => find_setup(root, &place.here),
        false => None,
    };
    let mut written =
        InitResult { starter, place, name, folder, definition, left, commands, tried: Vec::new(), setup };
    if args.json {
        written.tried = written.try_commands(args.no_try, false)?;
        let trial = written.try_where_runs_work()?;
        print::print_json(&written.to_json(trial.as_ref()));
        return Ok(exit::DONE);
    }
    print::print_data(&written.left.written.join("\n"));
    written.lines().iter().for_each(|line| print::print_line(line));
    written.tried = written.try_commands(args.no_try, true)?;
    written.propose_setup()?;
    if written.passes() {
        print::print_line(&render_labelled_line(
            "trying",
            "the same where runs work: in a fresh worktree, in the sandbox",
        ));
        let lines = written
            .try_where_runs_work()?
            .map_or_else(|| vec!["passes".to_owned()], |trial| trial_lines(&trial));
        lines.iter().for_each(|text| print::print_line(&render_labelled_line("", text)));
    }
    written.next_lines().iter().for_each(|line| print::print_line(line));
    Ok(exit::DONE)
}

/// The commands that a definition uses, and what else was detected.
struct InitCommands {
    test: Option<DetectedCommand>,
    /// Further commands that must pass, from `--check`.
    checks: Vec<DetectedCommand>,
    others: Vec<DetectedCommand>,
    /// Test commands of packages, none of which was chosen.
    packages: Vec<DetectedCommand>,
    /// Detected lint and format commands that are not used.
    proposed: Vec<DetectedCommand>,
}

/// The commands, given or detected.
fn choose_commands(
    starter: &Starter,
    place: &ProjectPlace,
    args: &InitArgs,
) -> Result<InitCommands, Failure> {
    let here = |command: &str| init::from_here(place.home.root(), &place.here, command);
    let given = args.test.as_deref().map(|test| DetectedCommand::given(&here(test), "--test"));
    let decides = matches!(starter.tests, TestUse::Decide | TestUse::DecideTwice);
    if starter.tests == TestUse::Unused && given.is_some() || !decides && !args.check.is_empty() {
        let (what, flag) =
            if args.check.is_empty() { ("a test command", "--test") } else { ("checks", "--check") };
        return Err(Failure::usage(
            format!("`{}` does not run {what}", starter.name),
            format!("leave out `{flag}`"),
        ));
    }
    let found = match starter.tests {
        TestUse::Unused => DetectedCommands::default(),
        _ => init::detect_commands(place.home.root(), &place.here),
    };
    let mut others = found.tests;
    let checks: Vec<DetectedCommand> =
        args.check.iter().map(|check| DetectedCommand::given(&here(check), "--check")).collect();
    let is_used = |found: &DetectedCommand| checks.iter().any(|check| check.command == found.command);
    let mut proposed = found.checks;
    proposed.retain(|found| decides && !is_used(found));
    let packages = if given.is_some() { Vec::new() } else { found.packages };
    let test = given.or_else(|| (!others.is_empty()).then(|| others.remove(0)));
    Ok(InitCommands { test, checks, others, packages, proposed })
}

fn print_starters(json: bool) -> u8 {
    if json {
        let one =
            |starter: &Starter| json!({"name": starter.name, "also": starter.also, "about": starter.about});
        let all: Vec<Value> = STARTERS.iter().map(one).collect();
        print::print_json(&json!({"schema": "cuegate/starters/v1", "starters": all}));
    } else {
        let width = STARTERS.iter().map(|starter| starter.name.len()).max().unwrap_or(0) + 2;
        let mut lines = Vec::new();
        for starter in &STARTERS {
            lines.push(format!("{}{}", pad_right(starter.name, width), starter.about));
            lines.extend(starter.also.map(|also| format!("{}also called {also}", pad_right("", width))));
        }
        print::print_data(&lines.join("\n"));
    }
    exit::DONE
}

struct InitResult<'a> {
    starter: &'a Starter,
    place: &'a ProjectPlace,
    name: &'a str,
    /// The folder of all written files. Like all paths here, relative to the project's top folder.
    folder: String,
    /// The folder or the file that is the definition.
    definition: String,
    left: WriteSummary,
    commands: InitCommands,
    /// How the commands ended when they were tried.
    tried: Vec<(String, TriedCommand)>,
    /// A setup command for worktrees by the lock file, if the configuration has none.
    setup: Option<String>,
}

impl InitResult<'_> {
    fn to_json(&self, trial: Option<&TrialFailure>) -> Value {
        let found = |found: &DetectedCommand| json!({"command": found.command, "source": found.source});
        json!({
            "schema": "cuegate/init/v1",
            "starter": self.starter.name,
            "name": self.name,
            "root": self.root().display().to_string(),
            "folder": self.folder,
            "definition": self.definition,
            "files": self.left.written,
            "same": self.left.same,
            "kept": self.left.kept,
            "test": self.commands.test.as_ref().map(found),
            "checks": self.commands.checks.iter().map(found).collect::<Vec<Value>>(),
            "others": self.commands.others.iter().map(found).collect::<Vec<Value>>(),
            "packages": self.commands.packages.iter().map(found).collect::<Vec<Value>>(),
            "proposed": self.commands.proposed.iter().map(found).collect::<Vec<Value>>(),
            "tried": self.tried.iter().map(tried_json).collect::<Vec<Value>>(),
            "setup": self.setup,
            "where_runs_work": self.passes().then(|| json!({
                "passed": trial.is_none(),
                "why": trial.map(|trial| trial_lines(trial).join("\n")),
            })),
        })
    }

    fn root(&self) -> &Path {
        self.place.home.root()
    }

    fn is_workflow(&self) -> bool {
        matches!(self.starter.form, StarterFormat::Takt(_))
    }

    /// Runs each command that decides once.
    fn try_commands(&self, skip: bool, tell: bool) -> Result<Vec<(String, TriedCommand)>, Failure> {
        let decides = matches!(self.starter.tests, TestUse::Decide | TestUse::DecideTwice);
        let mut all = Vec::new();
        if skip || !decides {
            return Ok(all);
        }
        let program = Program::current()?;
        for found in self.commands.test.iter().chain(&self.commands.checks) {
            let command = &found.command;
            if tell {
                print::print_line(&render_labelled_line(
                    "trying",
                    &format!("{command} (at most 2 minutes; `--no-try` skips it)"),
                ));
            }
            let tried = try_once(&program, command, self.root())?;
            if tell {
                tried_lines(command, &tried)
                    .iter()
                    .for_each(|text| print::print_line(&render_labelled_line("", text)));
            }
            all.push((command.clone(), tried));
        }
        Ok(all)
    }

    /// Whether the commands that decide were tried in the working tree of the user and passed.
    fn passes(&self) -> bool {
        !self.tried.is_empty() && self.tried.iter().all(|(_, tried)| tried.passed)
    }

    /// Tries the test command where runs work, if it passes here.
    fn try_where_runs_work(&self) -> Result<Option<TrialFailure>, Failure> {
        let Some((command, _)) = self.tried.first().filter(|_| self.passes()) else { return Ok(None) };
        let program = Program::current()?;
        let config = config::load_config(self.root())?;
        try_where_runs_work((&program, &config), self.root(), command, self.setup.as_deref())
    }

    /// Offers to write the setup command of worktrees, or says which it is.
    fn propose_setup(&mut self) -> Result<(), Failure> {
        let Some(setup) = &self.setup else { return Ok(()) };
        let setting = ConfigEntry::text("worktree", "setup", setup);
        if !print::is_interactive() {
            let told = format!(
                "write `{setting}` under `[worktree]` in cuegate.toml: a new worktree has no installed packages"
            );
            print::print_line(&render_labelled_line("setup", &told));
            return Ok(());
        }
        print::print_line(&render_labelled_line("setup", "a new worktree has no installed packages"));
        let question = format!("write `{setting}` under `[worktree]` into cuegate.toml? [Y/n] ");
        let answer = prompt_user::read_terminal_line(&question)?;
        if answer.is_some_and(|answer| !answer.trim().to_lowercase().starts_with('n')) {
            setting.write(self.root())?;
            self.setup = None;
        }
        Ok(())
    }

    /// The written files and the commands.
    fn lines(&self) -> Vec<String> {
        let mut lines = self.files();
        lines.extend(self.tests());
        let mut list = |label: &str, found: &[DetectedCommand]| {
            for (index, found) in found.iter().enumerate() {
                let label = if index == 0 { label } else { "" };
                lines.push(render_labelled_line(label, &format!("{} ({})", found.command, found.source)));
            }
        };
        list("checks", &self.commands.checks);
        list("also seen", &self.commands.others);
        list("packages", &self.commands.packages);
        list("proposed", &self.commands.proposed);
        if !self.commands.proposed.is_empty() {
            lines.push(render_labelled_line("", "not used: `--check \"COMMAND\"` makes one decide too"));
        }
        if !cuegate_runner::worktree::is_working_tree(self.root()) {
            lines.push(render_labelled_line(
                "note",
                "no git repository: runs work here, but their changes cannot be listed or undone",
            ));
        }
        lines
    }

    /// The commands to type next.
    fn next_lines(&self) -> Vec<String> {
        let path = self.typed();
        let mut lines = vec![render_labelled_line("next", &format!("cuegate check {path}"))];
        lines.push(render_labelled_line("", &format!("cuegate show {path}")));
        if let Some(rehearsal) = self.rehearsal() {
            let asks = format!("cuegate run {path} \"a rehearsal\" --script {rehearsal}");
            lines.push(render_labelled_line("", &format!("{asks} # no agent, no changes")));
        }
        lines.push(render_labelled_line("", &format!("cuegate run {path} \"what to do\" --provider claude")));
        lines
    }

    fn files(&self) -> Vec<String> {
        let root = self.root().display();
        if !self.is_workflow() {
            let count = self.left.written.len();
            return vec![render_labelled_line("wrote", &format!("{} in {root}, {count} files", self.folder))];
        }
        let mut lines = vec![render_labelled_line("wrote", &format!("{} in {root}", self.definition))];
        let others = self.left.written.len().saturating_sub(1);
        if others > 0 {
            lines.push(render_labelled_line(
                "",
                &format!("{} in {} that it references", plural(others as u64, "other file"), self.folder),
            ));
        }
        if !self.left.same.is_empty() {
            let count = self.left.same.len();
            lines.push(render_labelled_line("shared", &format!("{count} files already existed, unchanged")));
        }
        for (index, kept) in self.left.kept.iter().enumerate() {
            let label = if index == 0 { "kept" } else { "" };
            lines.push(render_labelled_line(
                label,
                &format!("{kept}: existed with other content and was not overwritten"),
            ));
        }
        lines
    }

    fn tests(&self) -> Vec<String> {
        let (proved, unproved) = match self.starter.tests {
            TestUse::Unused => return Vec::new(),
            TestUse::Decide if self.is_workflow() => (
                "each edit is done only when this passes, within 10 minutes",
                "an edit is done when the agent reports it; no test command verifies it",
            ),
            TestUse::Decide => (
                "a run is done only when this passes, within 10 minutes",
                "a run is done when the agent reports it; no test command verifies it",
            ),
            TestUse::DecideTwice => (
                "it must fail after the tests are written, and pass after the code is written",
                "tests fail and pass when the agent reports it; no test command verifies it",
            ),
            TestUse::Told => (
                "the prompts contain it; no outcome depends on it",
                "the prompts tell agents to look for tests",
            ),
        };
        let Some(test) = &self.commands.test else {
            let what = if self.is_workflow() { "file" } else { "folder" };
            let again = format!("cuegate init {} --test \"COMMAND\"", self.again());
            let none = if self.commands.packages.is_empty() {
                "none found"
            } else {
                "several packages, none chosen"
            };
            return vec![
                render_labelled_line("tests", &format!("{none}: {unproved}")),
                render_labelled_line("", &format!("to set a command, remove that {what} and run {again}")),
            ];
        };
        vec![
            render_labelled_line("tests", &format!("{} ({})", test.command, test.source)),
            render_labelled_line("", proved),
        ]
    }

    /// The arguments of `init` that repeat this call, without `--test`.
    fn again(&self) -> String {
        if self.name == self.starter.name {
            return self.starter.name.to_owned();
        }
        format!("{} --name {}", self.starter.name, self.name)
    }

    /// What to type for the definition: its name, or its path if the name is ambiguous.
    fn typed(&self) -> String {
        let agent = self.root().join(".agent").join(self.name);
        let other = self.place.here.join(self.name).exists() || self.is_workflow() && agent.exists();
        if other { self.seen_here(&self.definition) } else { self.name.to_owned() }
    }

    /// The path of its rehearsal script.
    fn rehearsal(&self) -> Option<String> {
        let wanted = format!("{TAKT_FOLDER}/rehearsals/{}.yaml", self.name);
        let script = self.left.written.iter().chain(&self.left.same).find(|path| **path == wanted)?;
        Some(self.seen_here(script))
    }

    fn seen_here(&self, path: &str) -> String {
        if self.root() == self.place.here {
            return path.to_owned();
        }
        self.root().join(path).display().to_string()
    }
}

/// The result of a command that was tried.
fn tried_lines(command: &str, tried: &TriedCommand) -> Vec<String> {
    if tried.timed_out {
        return vec!["still running after 2 minutes: not judged".to_owned()];
    }
    if tried.passed {
        return vec!["passes".to_owned()];
    }
    let mut lines = vec![format!("fails before any change: {}", tried.ended)];
    lines.extend(tried.output.iter().map(|text| format!("| {text}")));
    match find_missing_in(&tried.text, tried.cannot_run, &tried.ended) {
        Some(cause) => lines.push(format!("{}; {}", cause.describe(command), cause.cure())),
        None => lines.push("fix it first, unless that is the task of the first run".to_owned()),
    }
    lines
}

/// Where and why the tests fail, though they pass in the working tree of the user.
fn trial_lines(trial: &TrialFailure) -> Vec<String> {
    let (place, failed) = match trial {
        TrialFailure::Sandbox(failed) => ("in the sandbox", failed),
        TrialFailure::Worktree(failed) => ("in a fresh worktree", failed),
        TrialFailure::Setup(how) => {
            return vec![
                format!("the setup command fails in a fresh worktree: {how}"),
                "fix `setup` under `[worktree]` in cuegate.toml".to_owned(),
            ];
        }
    };
    let mut lines = vec![format!("fails {place}: {}", failed.ended)];
    lines.extend(failed.output.iter().map(|text| format!("| {text}")));
    match &failed.cause {
        Some(cause) => lines.extend([cause.describe(&failed.command), cause.cure()]),
        None => lines
            .push("docs/sandbox.md lists what the sandbox hides, and the settings that show it".to_owned()),
    }
    lines
}

fn tried_json((command, tried): &(String, TriedCommand)) -> Value {
    json!({
        "command": command,
        "passed": tried.passed,
        "timed_out": tried.timed_out,
        "ended": tried.ended,
        "output": tried.output,
    })
}

fn render_labelled_line(label: &str, text: &str) -> String {
    format!("{}{}", pad_right(label, 12), clean_to_one_line(text))
}
