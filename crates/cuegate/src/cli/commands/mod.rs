//! One file per command.

mod answer;
mod apply;
mod budget;
mod check;
mod clean;
mod config;
mod detach;
mod diff;
mod doctor;
mod effect;
mod follow;
mod graph;
mod init;
mod inspect;
mod instruct;
mod list;
mod local_project;
mod manual;
mod price;
mod prompt;
mod prompt_user;
mod read_options;
mod resume;
mod run;
mod run_start;
mod schema;
mod screen;
mod serve;
mod simulate;
mod undo;
mod watch;
mod work;

use std::{
    ffi::OsString,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use clap::{FromArgMatches, error::ErrorKind};
use cuegate_engine::RecordedLoadOptions;
use cuegate_flow::model::BlobRef;
use cuegate_journal::{Journal, RunId};
use cuegate_runner::{StateDir, read_stored_text};

use super::{
    args::{Cli, Color, Verb},
    params, print,
};
use crate::{
    Failure,
    cli::help_groups::{self, grouped_command},
    config::Config,
    definition,
    definition::{Definition, DiskFiles, Location, locate},
    exit, project,
    project::view_of,
    run_changes::compare_files,
};

/// Parses the arguments and runs the command.
pub(super) fn dispatch(args: Vec<OsString>) -> Result<u8, Failure> {
    let mut place = Place::here()?;
    place.builtins = builtins_of(&place, &args)?;
    let (command, args) = command_for(&place, args);
    let matches = match command.try_get_matches_from(&args) {
        Ok(matches) => matches,
        Err(error) => {
            if error.kind() == ErrorKind::UnknownArgument {
                definition_is_sound(&place, &args)?;
            }
            let code = if error.use_stderr() { exit::USAGE } else { exit::DONE };
            let _ = error.print();
            let words: Vec<String> = args.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            if let Some(advice) = help_groups::advise_on(&error, &words) {
                print::important(&format!("hint: {advice}"));
            }
            return Ok(code);
        }
    };
    let cli =
        Cli::from_arg_matches(&matches).map_err(|error| Failure::usage(error.to_string(), "see --help"))?;
    print::want(print::Wanted {
        colours: match cli.color {
            Color::Auto => None,
            Color::Always => Some(true),
            Color::Never => Some(false),
        },
        quiet: cli.quiet,
        no_progress: cli.no_progress,
    });
    match cli.command {
        Verb::Check(args) => check::check(&place, args),
        Verb::Explain(args) => check::explain(&args),
        Verb::Schema(args) => schema::schema(&args),
        Verb::Show(args) => check::show(&place, &args),
        Verb::Price(args) => price::price(&place, &args),
        Verb::Graph(args) => graph::graph(&place, &args),
        Verb::Simulate(args) => simulate::simulate(&place, &args),
        Verb::Init(args) => init::init(&place, &args),
        Verb::List(args) => list::list(&place, &args),
        Verb::Run(args) => run::run(&place, *args, matches.subcommand_matches("run")),
        Verb::Work(args) => work::work(&place, &args),
        Verb::Resume(args) => resume::resume(&place, args),
        Verb::Retry(args) => resume::retry(&place, *args),
        Verb::Instruct(args) => instruct::instruct(&place, *args),
        Verb::Answer(args) => answer::answer(&place, args),
        Verb::Cancel(args) => answer::cancel(&place, &args),
        Verb::Runs(args) => inspect::runs(&place, &args),
        Verb::Status(args) => inspect::status(&place, &args),
        Verb::Log(args) => follow::log(&place, &args),
        Verb::Attach(args) => follow::attach(&place, &args),
        Verb::Prompt(args) => prompt::prompt(&place, &args),
        Verb::Serve(args) => serve::serve(&place, &args),
        Verb::Watch(args) => screen::watch(&place, &args),
        Verb::Report(args) => inspect::report(&place, &args),
        Verb::Diff(args) => diff::diff(&place, &args),
        Verb::Effect(args) => effect::effect(&place, &args),
        Verb::Clean(args) => clean::clean(&place, &args),
        Verb::Apply(args) => apply::apply(&place, &args),
        Verb::Undo(args) => undo::undo(&place, &args),
        Verb::Completions(args) => manual::completions(&args),
        Verb::Man(args) => manual::man(&place, &args),
        Verb::Doctor(args) => doctor::doctor(&place, &args),
        Verb::Config(args) => config::config(&place, &args),
    }
}

/// The value of `--builtins`, which the parameters of a definition may depend on.
fn builtins_of(place: &Place, args: &[OsString]) -> Result<Option<PathBuf>, Failure> {
    const FLAG: &str = "--builtins";
    let words = || args.iter().take_while(|word| *word != "--");
    let joined =
        words().find_map(|word| Some(word.to_str()?.strip_prefix(FLAG)?.strip_prefix('=')?.to_owned()));
    let next =
        words().skip_while(|word| *word != FLAG).nth(1).map(|word| word.to_string_lossy().into_owned());
    let Some(typed) = joined.or(next) else { return Ok(None) };
    let folder = place.here.join(&typed);
    if !folder.is_dir() {
        return Err(Failure::usage(
            format!("`{FLAG} {typed}` is no folder"),
            "name the folder of TAKT's package, or `builtins` in it",
        ));
    }
    Ok(Some(folder))
}

/// The command line, with the parameters of the definition to run as further options.
///
/// A word may be the PATH or the value of such an option, so each word is tried: it is the PATH if the command line,
/// parsed with the parameters of that definition, yields it as PATH.
fn command_for(place: &Place, args: Vec<OsString>) -> (clap::Command, Vec<OsString>) {
    for word in params::candidates(&args, &["run"]) {
        let Ok(location) = place.locate(&word) else { continue };
        // A definition with errors has options as well: `run` reports its errors.
        let Ok(Definition { params, settings, .. }) = load(&location, &params::set_names(&args)) else {
            continue;
        };
        let command = params::extend(grouped_command(), &params, &settings);
        let args = params::joined(&args, &params);
        // `--help` would stop the parser before the path is known.
        let asked = |word: &&OsString| *word != "--help" && *word != "-h";
        let read = command.clone().ignore_errors(true).try_get_matches_from(args.iter().filter(asked));
        let path =
            read.ok().and_then(|read| read.subcommand_matches("run")?.get_one::<String>("path").cloned());
        if path.as_deref() == Some(word.as_str()) {
            return (command, args);
        }
    }
    (grouped_command(), args)
}

/// Checks that the named definition has no errors, so that an unknown option is a mistake of the command line.
///
/// # Errors
/// When it has errors: the option may be a parameter that could not be read.
fn definition_is_sound(place: &Place, args: &[OsString]) -> Result<(), Failure> {
    let words = params::candidates(args, &["run", "price"]);
    let named = words.into_iter().find_map(|word| Some((place.locate(&word).ok()?, word)));
    let Some((location, word)) = named else { return Ok(()) };
    let definition = load(&location, &params::set_names(args))?;
    if definition.flow.is_some() {
        return Ok(());
    }
    check::tell(&definition.diagnostics, &definition.sources, false);
    Err(Failure::usage(
        format!("`{word}` has errors"),
        format!("fix the errors above, then run `cuegate check {word}`"),
    ))
}

/// The current folder and its project.
pub(super) struct Place {
    /// The current folder.
    here: PathBuf,
    /// The state dir of the project.
    home: StateDir,
    /// The folder with the definitions of an installed TAKT, if the user names one.
    builtins: Option<PathBuf>,
}

impl Place {
    fn here() -> Result<Place, Failure> {
        let here = std::env::current_dir()
            .map_err(|error| Failure::environment(format!("failed to find the current folder: {error}")))?;
        let home = StateDir::new(&project::root_of(&here));
        Ok(Place { here, home, builtins: None })
    }

    /// The same project, as seen from a folder of it.
    ///
    /// # Errors
    /// When there is no such folder, or it belongs to another project.
    fn within(&self, folder: &Path) -> Result<Place, Failure> {
        let shown = folder.display();
        let failed = |why: String, hint: &str| Err(Failure::usage(format!("`{shown}` {why}"), hint));
        let here = match std::fs::canonicalize(self.here.join(folder)) {
            Ok(here) if here.is_dir() => here,
            Ok(_) => return failed("is not a folder".to_owned(), "name a folder of the project with `--cd`"),
            Err(error) => {
                return failed(format!("cannot be opened: {error}"), "check the path given with `--cd`");
            }
        };
        let root = std::fs::canonicalize(self.home.root()).unwrap_or_else(|_| self.home.root().to_owned());
        let Ok(inside) = here.strip_prefix(&root) else {
            let hint = "start the command in that project";
            return failed(format!("is not in the project `{}`", root.display()), hint);
        };
        let here = self.home.root().join(inside);
        if project::root_of(&here) != self.home.root() {
            return failed("is a project of its own".to_owned(), "start the command there");
        }
        Ok(Place { here, home: self.home.clone(), builtins: self.builtins.clone() })
    }

    /// The folder relative to the top of the project, with `/`; `None` at the top.
    fn folder(&self) -> Option<String> {
        let folder = self.here.strip_prefix(self.home.root()).ok()?.to_string_lossy().into_owned();
        (!folder.is_empty()).then_some(folder)
    }

    /// Finds a definition, with the definitions of TAKT that the user names.
    fn locate(&self, typed: &str) -> Result<Location, Failure> {
        let mut location = self.locate_definition(typed)?;
        let configured = || crate::config::load(self.home.root()).ok()?.takt.builtins;
        if let Some(builtins) = self.builtins.clone().or_else(configured) {
            location.takt = Some(self.home.root().join(builtins));
        }
        Ok(location)
    }

    fn locate_definition(&self, typed: &str) -> Result<Location, Failure> {
        let found = locate(typed, &self.here, self.home.root());
        // A folder without a definition may have the name of a starter.
        let is_definition = found.as_ref().is_ok_and(Location::has_files);
        let Some(starter) = init::built_in(typed).filter(|_| !is_definition) else {
            return found.map_err(|(message, hint)| Failure::usage(message, hint));
        };
        let home = StateDir::create(self.home.root())?;
        let path =
            crate::init::write_built_in(starter, (home.root(), &self.here), &home.dir().join("starters"))?;
        let location = locate(&path.to_string_lossy(), &self.here, self.home.root());
        let location = location.map_err(|(message, hint)| Failure::usage(message, hint))?;
        Ok(Location { built_in: Some(starter.name), ..location })
    }

    /// A typed path as findings show it: relative to the project if it is inside.
    fn shown(&self, typed: &str) -> String {
        let mut whole = PathBuf::new();
        for part in self.here.join(typed).components() {
            match part {
                Component::ParentDir => _ = whole.pop(),
                Component::CurDir => {}
                part => whole.push(part),
            }
        }
        let own = whole.strip_prefix(self.home.root()).ok().and_then(Path::to_str);
        own.filter(|own| !own.is_empty()).unwrap_or(typed).to_owned()
    }

    /// The journal, read-only; an error if the project has no runs.
    fn view(&self) -> Result<Arc<dyn Journal>, Failure> {
        project::view(&self.home)?.ok_or_else(project::no_runs)
    }
}

/// Loads a definition with default options.
fn load(location: &Location, set: &[String]) -> Result<Definition, Failure> {
    load_as(location, set, &RecordedLoadOptions::default())
}

/// Loads a definition.
fn load_as(location: &Location, set: &[String], how: &RecordedLoadOptions) -> Result<Definition, Failure> {
    let files = disk(location)?;
    let mut definition = definition::load(&files, &location.base, location.file.as_deref(), set, how);
    location.show_in(&mut definition.sources);
    Ok(definition)
}

/// The files on disk that a definition may read.
fn disk(location: &Location) -> Result<DiskFiles, Failure> {
    DiskFiles::new(&location.root).map(|files| files.with_takt(location.takt.as_deref())).map_err(|error| {
        Failure::environment(format!("failed to open `{}`: {error}", location.root.display()))
    })
}

/// Looks up texts in the journal, for views.
fn texts(journal: &dyn Journal) -> impl Fn(&BlobRef) -> Option<String> + '_ {
    |blob| read_stored_text(journal, blob).ok()
}

/// Drives a run with live output.
fn drive(ready: crate::start_run::Ready) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::environment(format!("failed to start: {error}")))?;
    let driven = runtime.block_on(async {
        let stop = super::stop::on_signals("cuegate resume last");
        let mut live = super::live::Live::new(ready.journal());
        live.catch_up(&ready.before);
        ready.drive(stop, &mut |notice| live.show(&notice)).await
    });
    // Do not wait for git processes that still scan a large tree.
    runtime.shutdown_background();
    if let Some(trouble) = driven?.trouble {
        print::line(&format!("note: {trouble}"));
    }
    Ok(())
}

/// Prints the state of a run after it was driven.
fn tell_end(
    place: &Place,
    journal: &dyn Journal,
    id: &RunId,
    config: &Config,
    json: bool,
) -> Result<u8, Failure> {
    let (mut view, records) = view_of(journal, id)?;
    compare_files(&place.home, journal, &mut view, &records);
    if json {
        print::json(&view.to_json(&texts(journal)));
    } else {
        let undo = diff::undo_hint(place, id.as_str(), &records);
        let zone = cuegate_view::TimeZone::system();
        for line in cuegate_view::render_run_end(&view, &texts(journal), &zone, undo.as_deref()) {
            // A result, which `--quiet` keeps.
            print::important(&line);
        }
    }
    // A user who interrupted the run needs no notification.
    if view.exit_code() != Some(exit::INTERRUPTED) {
        let summary = view.summary_text(&texts(journal));
        super::notify::notify(&config.notify, &view, summary);
    }
    Ok(view.exit_code().unwrap_or(exit::ENVIRONMENT))
}
