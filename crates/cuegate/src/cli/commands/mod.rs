//! One file per command.

pub(super) mod compare;
mod diagnostics;
pub(super) mod follow_up;
pub(super) mod go_on;
mod local_project;
pub(super) mod mcp;
mod read_options;
pub(super) mod setup;
pub(super) mod shared_args;
pub(super) mod start;
pub(super) mod take;
pub(super) mod tools;
pub(super) mod write;

use std::{
    ffi::OsString,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use clap::{FromArgMatches, error::ErrorKind};
use cuegate_engine::RecordedLoadOptions;
use cuegate_flow::model::{BlobRef, Flow};
use cuegate_journal::{Journal, RunId, log::RunVersion};
use cuegate_observe::keep_row;
use cuegate_runner::{SharedStore, StateDir, read_stored_text};

use super::{
    args::{Cli, Color, Verb},
    logging, params, print,
};
use crate::before_start::nesting::OuterRun;
use crate::cli::commands::mcp::McpArgs;
use crate::project::FoldedRun;
use crate::retention;
use crate::{
    Failure,
    cli::help_groups::{self, grouped_command},
    config::Config,
    definition,
    definition::{CompiledDefinition, DiskFiles, Location, find_definition, has_several},
    exit,
    exported_run::{ExportedRun, RunProject, open_run_project, read_run_file},
    project,
    project::view_of,
    run_changes::compare_files,
    shared_journal::{JournalConfig, NamedBy, PostgresStore},
};

/// Parses the arguments and runs the command.
pub(super) fn dispatch_command(args: Vec<OsString>) -> Result<u8, Failure> {
    let mut place = ProjectPlace::here()?;
    place.builtins = read_builtins_flag(&place, &args)?;
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
                print::print_important(&format!("hint: {advice}"));
            }
            return Ok(code);
        }
    };
    let cli =
        Cli::from_arg_matches(&matches).map_err(|error| Failure::usage(error.to_string(), "see --help"))?;
    place.home = find_shared_journal(place.home, &args, cli.command.only_reads_definitions());
    logging::init_logging(cli.verbose)?;
    print::set_output_options(print::PrintOptions {
        colours: match cli.color {
            Color::Auto => None,
            Color::Always => Some(true),
            Color::Never => Some(false),
        },
        quiet: cli.quiet,
        no_progress: cli.no_progress,
    });
    if cli.command.calls_agents()
        && let Some(outer) = OuterRun::find()
    {
        return Err(outer.refusal());
    }
    match cli.command {
        Verb::Check(args) => write::check::check_or_watch(&place, args),
        Verb::Explain(args) => write::explain::explain_finding(&args),
        Verb::Schema(args) => write::schema::print_schema(&args),
        Verb::Show(args) => write::show::show_definition(&place, &args),
        Verb::Price(args) => write::price::price_definition(&place, &args),
        Verb::Graph(args) => write::graph::draw_graph(&place, &args),
        Verb::Simulate(args) => write::simulate::simulate_definition(&place, &args),
        Verb::Init(args) => start::init::create_from_starter(&place, &args),
        Verb::List(args) => start::list::list_definitions(&place, &args),
        Verb::Run(args) => start::run::run(&place, *args, matches.subcommand_matches("run")),
        Verb::Work(args) => start::work::work_on_queue(&place, &args),
        Verb::Resume(args) => go_on::resume::resume_stopped_run(&place, args),
        Verb::Retry(args) => go_on::retry::retry_run(&place, *args),
        Verb::Fork(args) => go_on::fork::fork_run(&place, *args),
        Verb::Instruct(args) => go_on::instruct::start_follow_up_run(&place, *args),
        Verb::Answer(args) => go_on::answer::answer_run(&place, args),
        Verb::Cancel(args) => go_on::cancel::cancel_run(&place, &args),
        Verb::Runs(args) => follow_up::runs::list_runs(&place, &args),
        Verb::Status(args) => follow_up::status::print_run_status(&place, &args),
        Verb::Why(args) => follow_up::why::explain_state_of_run(&place, &args),
        Verb::Log(args) => follow_up::log::print_log(&place, &args),
        Verb::Attach(args) => follow_up::attach::attach_to_run(&place, &args),
        Verb::Prompt(args) => write::prompt::preview_prompt(&place, &args),
        Verb::Serve(args) => follow_up::serve::serve_project(&place, &args),
        Verb::Watch(args) => follow_up::watch::watch_runs(&place, &args),
        Verb::Export(args) => follow_up::export::export_run(&place, &args),
        Verb::Replay(args) => follow_up::replay::replay_runs(&place, &args),
        Verb::Report(args) => follow_up::report::print_run_report(&place, &args),
        Verb::Diff(args) => take::diff::print_diff(&place, &args),
        Verb::Effect(args) => take::effect::list_or_settle_effects(&place, &args),
        Verb::Clean(args) => take::clean::clean_worktrees(&place, &args),
        Verb::Gc(args) => take::gc::collect_garbage(&place, &args),
        Verb::Apply(args) => take::apply::apply_changes(&place, &args),
        Verb::Restore(args) => take::restore::restore_files(&place, &args),
        Verb::Undo(args) => take::undo::undo_changes(&place, &args),
        Verb::Completions(args) => tools::completions::print_completions(&args),
        Verb::Man(args) => tools::man::write_manual(&place, &args),
        Verb::Agents(args) => tools::agents::list_agents(&place, &args),
        Verb::Doctor(args) => tools::doctor::run_doctor(&place, &args),
        Verb::Config(args) => tools::config::show_config(&place, &args),
        Verb::Compare(args) => compare::compare_revisions(&place, &args),
        Verb::Setup(args) => setup::set_up_agent(&place, &args),
        Verb::Mcp(McpArgs {}) => mcp::serve_tools(&place),
    }
}

/// The state dir with the journal that `--journal` or `[journal]` of the settings names. `only_reads`: whether one that the
/// project names is left alone.
fn find_shared_journal(home: StateDir, args: &[OsString], only_reads: bool) -> StateDir {
    let flag = read_flag(args, "--journal");
    let store = match crate::config::load_config(home.root()) {
        Ok(config) if only_reads && flag.is_none() && config.journal.named_by != NamedBy::User => None,
        Err(_) if only_reads && flag.is_none() => None,
        Ok(config) => PostgresStore::of(home.root(), flag, &config.journal),
        // Whoever needs no journal goes on; nobody takes the files here for the runs of the project.
        Err(failure) if flag.is_none() => PostgresStore::of_broken_settings(home.root(), &failure.message),
        Err(_) => PostgresStore::of(home.root(), flag, &JournalConfig::default()),
    };
    home.with_shared(store.map(|store| Arc::new(store) as Arc<dyn SharedStore>))
}

/// The value of a flag that is needed before the arguments are parsed.
fn read_flag(args: &[OsString], flag: &str) -> Option<String> {
    let words = || args.iter().take_while(|word| *word != "--");
    let joined =
        words().find_map(|word| Some(word.to_str()?.strip_prefix(flag)?.strip_prefix('=')?.to_owned()));
    let next = || words().skip_while(|word| *word != flag).nth(1);
    joined.or_else(|| next().map(|word| word.to_string_lossy().into_owned()))
}

/// The value of `--builtins`, which the parameters of a definition may depend on.
fn read_builtins_flag(place: &ProjectPlace, args: &[OsString]) -> Result<Option<PathBuf>, Failure> {
    const FLAG: &str = "--builtins";
    let Some(typed) = read_flag(args, FLAG) else { return Ok(None) };
    let folder = place.here.join(&typed);
    if !folder.is_dir() {
        return Err(Failure::usage(
            format!("`{FLAG} {typed}` is not a folder"),
            "name the folder of TAKT's package, or `builtins` in it",
        ));
    }
    Ok(Some(folder))
}

/// The command line, with the parameters of the definition to run as further options.
///
/// A word may be the PATH or the value of such an option, so each word is tried: it is the PATH if the command line,
/// parsed with the parameters of that definition, yields it as PATH.
fn command_for(place: &ProjectPlace, args: Vec<OsString>) -> (clap::Command, Vec<OsString>) {
    for word in params::find_path_candidates(&args, &["run"]) {
        let Ok(location) = place.locate(&word) else { continue };
        // A definition with errors has options as well: `run` reports its errors.
        let Ok(CompiledDefinition { params, settings, .. }) =
            load_with_defaults(&location, &params::set_names(&args))
        else {
            continue;
        };
        let command = params::add_param_options(grouped_command(), &params, &settings);
        let args = params::join_boolean_flags(&args, &params);
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
fn definition_is_sound(place: &ProjectPlace, args: &[OsString]) -> Result<(), Failure> {
    let words = params::find_path_candidates(args, &["run", "price"]);
    let named = words.into_iter().find_map(|word| Some((place.locate(&word).ok()?, word)));
    let Some((location, word)) = named else { return Ok(()) };
    let definition = load_with_defaults(&location, &params::set_names(args))?;
    sound_flow(&definition, &word).map(|_| ())
}

/// The current folder and its project.
pub(super) struct ProjectPlace {
    /// The current folder.
    here: PathBuf,
    /// The state dir of the project.
    home: StateDir,
    /// The folder with the definitions of an installed TAKT, if the user names one.
    builtins: Option<PathBuf>,
}

impl ProjectPlace {
    fn here() -> Result<ProjectPlace, Failure> {
        let here = std::env::current_dir()
            .map_err(|error| Failure::environment(format!("failed to find the current folder: {error}")))?;
        let home = StateDir::new(&project::root_of(&here));
        Ok(ProjectPlace { here, home, builtins: None })
    }

    /// The same project, as seen from a folder of it.
    ///
    /// # Errors
    /// When there is no such folder, or it belongs to another project.
    fn within(&self, folder: &Path) -> Result<ProjectPlace, Failure> {
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
        Ok(ProjectPlace { here, home: self.home.clone(), builtins: self.builtins.clone() })
    }

    /// The folder relative to the top of the project, with `/`; `None` at the top.
    fn folder(&self) -> Option<String> {
        let folder = self.here.strip_prefix(self.home.root()).ok()?.to_string_lossy().into_owned();
        (!folder.is_empty()).then_some(folder)
    }

    /// Finds a definition, with the definitions of TAKT that the user names.
    fn locate(&self, typed: &str) -> Result<Location, Failure> {
        let builtins = self.takt_builtins();
        let find = |typed: &str| find_definition(typed, &self.here, self.home.root(), builtins.as_deref());
        let found = find(typed);
        // A folder without a definition, or a workflow of an installed TAKT, may have the name of a starter.
        let is_definition = found.as_ref().is_ok_and(|found| found.has_files() && !found.is_installed())
            || has_several(typed, &self.here, self.home.root());
        let Some(starter) = start::init::built_in(typed).filter(|_| !is_definition) else {
            return found.map_err(|(message, hint)| Failure::usage(message, hint));
        };
        let home = self.home.create_missing()?;
        let path = crate::built_in::write_built_in(
            starter,
            (home.root(), &self.here),
            &home.dir().join("starters"),
        )?;
        let location =
            find(&path.to_string_lossy()).map_err(|(message, hint)| Failure::usage(message, hint))?;
        Ok(Location { built_in: Some(starter.name), ..location })
    }

    /// The folder with the definitions of TAKT that the user names.
    fn takt_builtins(&self) -> Option<PathBuf> {
        let configured = || crate::config::load_config(self.home.root()).ok()?.takt.builtins;
        let builtins = self.builtins.clone().or_else(configured);
        builtins.map(|builtins| self.home.root().join(builtins))
    }

    /// The names of the workflows of an installed TAKT, without those that mean another definition.
    fn names_of_takt(&self) -> Vec<String> {
        let builtins = self.takt_builtins().or_else(|| definition::find_builtins(self.home.root()));
        let Some(builtins) = builtins else { return Vec::new() };
        let nearer = definition::named_definitions(&self.here, self.home.root());
        let mut names = definition::list_installed(&builtins, self.home.root());
        names.retain(|name| {
            nearer.iter().all(|named| named.name != *name) && start::init::built_in(name).is_none()
        });
        names
    }

    /// A typed path as findings show it: relative to the project if it is inside.
    fn path_from_top(&self, typed: &str) -> String {
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

    /// The journal and the run that a person names: a run of the project, or one in an exported file.
    fn view_run(&self, typed: &str) -> Result<(Arc<dyn Journal>, RunId), Failure> {
        if let Some(ExportedRun { journal, id }) = read_run_file(&self.here.join(typed))? {
            return Ok((journal, id));
        }
        let journal = self.view()?;
        let id = project::find_run_id(&self.home, &*journal, typed)?;
        Ok((journal, id))
    }

    /// The project of a run in an exported file, which lives as long as it; `None` if no such file is named.
    fn open_run_file(&self, typed: &str) -> Result<Option<(ProjectPlace, RunProject)>, Failure> {
        let opened = open_run_project(&self.here.join(typed))?;
        Ok(opened.map(|project| {
            let here = project.home.root().to_owned();
            (ProjectPlace { here, home: project.home.clone(), builtins: self.builtins.clone() }, project)
        }))
    }

    /// The journal, read-only; an error if the project has no runs.
    fn view(&self) -> Result<Arc<dyn Journal>, Failure> {
        project::open_journal_read_only(&self.home)?.ok_or_else(project::no_runs)
    }
}

/// Loads a definition with default options.
fn load_with_defaults(location: &Location, set: &[String]) -> Result<CompiledDefinition, Failure> {
    load_as(location, set, &RecordedLoadOptions::default())
}

/// Loads a definition.
fn load_as(
    location: &Location,
    set: &[String],
    how: &RecordedLoadOptions,
) -> Result<CompiledDefinition, Failure> {
    let files = open_disk_files(location)?;
    let mut definition =
        definition::compile_definition(&files, &location.base, location.file.as_deref(), set, how);
    location.show_in(&mut definition.sources);
    Ok(definition)
}

/// The flow of a definition that a person typed.
///
/// # Errors
/// When the definition has errors, which are printed.
fn sound_flow(definition: &CompiledDefinition, typed: &str) -> Result<Arc<Flow>, Failure> {
    definition.flow.clone().ok_or_else(|| {
        diagnostics::print_diagnostics(&definition.diagnostics, &definition.sources, false);
        Failure::usage(
            format!("`{typed}` has errors"),
            format!("fix the errors above, then run `cuegate check {typed}`"),
        )
    })
}

/// The files on disk that a definition may read.
fn open_disk_files(location: &Location) -> Result<DiskFiles, Failure> {
    DiskFiles::new(&location.root).map(|files| files.with_takt(location.takt.as_deref())).map_err(|error| {
        Failure::environment(format!("failed to open `{}`: {error}", location.root.display()))
    })
}

/// Looks up the texts of a run, for views.
fn texts_of_run<'j>(journal: &'j dyn Journal, id: &'j RunId) -> impl Fn(&BlobRef) -> Option<String> + 'j {
    move |blob| read_stored_text(journal, id, blob).ok()
}

/// Drives a run with live output.
fn drive_run(ready: crate::run::start_run::PreparedRun) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::environment(format!("failed to start: {error}")))?;
    let driven = runtime.block_on(async {
        let stop = super::stop::of_run("cuegate resume last");
        let mut live = super::live::LivePrinter::new(ready.journal(), ready.id().clone());
        live.catch_up(&ready.before);
        ready.drive(stop, &mut |notice| live.show(&notice)).await
    });
    // Do not wait for git processes that still scan a large tree.
    runtime.shutdown_background();
    if let Some(trouble) = driven?.trouble {
        print::print_line(&format!("note: {trouble}"));
    }
    Ok(())
}

/// Prints the state of a run after it was driven.
fn tell_end(
    place: &ProjectPlace,
    journal: &dyn Journal,
    id: &RunId,
    config: &Config,
    json: bool,
) -> Result<u8, Failure> {
    let version = RunVersion::of(&place.home.run(id));
    let FoldedRun { mut view, history, .. } = FoldedRun::read(journal, id)?;
    compare_files(&place.home, journal, id, &mut view, &history);
    if let (cuegate_view::Liveness::None, Some(version)) = (view.live, version) {
        keep_row(&place.home, id, version, &cuegate_view::RunRow::of(&view));
    }
    if json {
        print::print_json(&view.to_json(&texts_of_run(journal, id)));
    } else {
        let undo = take::diff::undo_hint(&view);
        let zone = cuegate_view::TimeZone::system();
        for line in cuegate_view::render_run_end(&view, &texts_of_run(journal, id), &zone, undo.as_deref()) {
            // A result, which `--quiet` keeps.
            print::print_important(&line);
        }
        if let Some(bytes) = retention::measure_when_due(&place.home) {
            print::print_line(&format!(
                "note: `.cuegate` holds {:.1} GiB; `cuegate gc --dry-run` shows what can go",
                bytes as f64 / (1_u64 << 30) as f64
            ));
        }
    }
    // A user who interrupted the run needs no notification.
    if view.exit_code() != Some(exit::INTERRUPTED) {
        let summary = view.summary_text(&texts_of_run(journal, id));
        super::notify::send_notifications(&config.notify, &view, summary);
    }
    Ok(view.exit_code().unwrap_or(exit::ENVIRONMENT))
}
