//! `migrate`.

mod older;
mod programs;
mod tell;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use cuegate_dialect::{Migration, MigrationNote, NotMigrated, Options, migrate_agent, migrate_script};

use self::older::Older;
use super::{Place, check, load};
use crate::{
    Failure,
    cli::{args::Migrate, given, print},
    definition::{self, Definition, DiskFiles, Location},
    exit,
    init::{self, Written},
};

/// What a folder of a migrated agent is called after the agent's own.
const SUFFIX: &str = "-closing";

/// Writes a definition of an older generation as one of the newest.
pub(super) fn migrate(place: &Place, mut args: Migrate) -> Result<u8, Failure> {
    let given = std::mem::take(&mut args.set);
    args.set = given::names(&given)?;
    let args = &args;
    let location = place.locate(&args.path)?;
    if location.file.as_deref().is_some_and(definition::is_piece) {
        return Err(Failure::usage(
            format!("`{}` is a piece, which has one generation: there is nothing to migrate", args.path),
            "name an agent whose registry is a check flow, or one of the “complete” generation",
        ));
    }
    let older = load(&location, &args.set)?;
    given::look_at(&older, &given, &args.set)?;
    if older.has_errors() {
        check::tell(&older.diagnostics, &older.sources, false);
        return Err(unsound(&args.path));
    }
    let folder = match &args.out {
        Some(out) => place.here.join(out),
        None => beside(&location),
    };
    let mut migration = read(&location, &folder, args)?;
    let script = match &args.script {
        Some(path) => Some(script(&place.here.join(path), &older, &mut migration)?),
        None => None,
    };
    check_newer(&migration, args)?;
    let mut files = programs::all(&location, &mut migration)?;
    files.extend(script);
    write(&folder, &location, &files, args)?;
    let told = tell::Told {
        shown: folder.strip_prefix(&place.here).unwrap_or(&folder).display().to_string(),
        called: called(&folder, place),
        script: files.last().filter(|_| args.script.is_some()).map(|file| file.path.clone()),
        migration: &migration,
        older: &older,
        set: &args.set,
    };
    let paths: Vec<String> = files.iter().map(|file| format!("{}/{}", told.shown, file.path)).collect();
    if args.json {
        print::json(&told.to_json(&paths));
    } else {
        print::data(&paths.join("\n"));
        told.lines(paths.len()).iter().for_each(|line| print::line(line));
    }
    Ok(exit::DONE)
}

fn unsound(path: &str) -> Failure {
    Failure::usage(
        format!("`{path}` is not sound, so that nobody can tell how it runs"),
        format!("mend what is found above, then `cuegate check {path}`"),
    )
}

fn files_of(location: &Location) -> Result<DiskFiles, Failure> {
    DiskFiles::new(&location.root).map_err(|error| {
        Failure::environment(format!("failed to open `{}`: {error}", location.root.display()))
    })
}

fn read(location: &Location, folder: &Path, args: &Migrate) -> Result<Migration, Failure> {
    let files = files_of(location)?;
    let base = &location.base;
    let registry = location
        .file
        .as_ref()
        .map(|file| if base.is_empty() { file.clone() } else { format!("{base}/{file}") });
    let options = Options { agent_dir: base.clone(), registry, set: args.set.clone() };
    // Who names the folder names the agent, where that is a name for one.
    let name =
        folder.file_name().map(|name| name.to_string_lossy().into_owned()).filter(|name| is_name(name));
    migrate_agent(&files, &options, name.as_deref()).map_err(|why| match why {
        NotMigrated::Unsound(_) => unsound(&args.path),
        NotMigrated::Refused(why) => {
            Failure::usage(format!("`{}` is not migrated: {why}", args.path), "nothing was written")
        }
    })
}

fn is_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(good)
}

/// A script of a stand-in agent in the newer words.
fn script(path: &Path, older: &Definition, migration: &mut Migration) -> Result<Written, Failure> {
    let wrong = |why: String| Failure::usage(why, "name a script file");
    let text = fs::read_to_string(path)
        .map_err(|error| wrong(format!("failed to read `{}`: {error}", path.display())))?;
    let Some(flow) = &older.flow else {
        return Err(Failure::environment("the older definition cannot be run".to_owned()));
    };
    let script = migrate_script(&text, &migration.answers, &Older(flow))
        .map_err(|error| wrong(format!("`{}` is no script: {error}", path.display())))?;
    let of = path.file_name().unwrap_or_default().to_string_lossy();
    migration.notes.extend(
        script.notes.into_iter().map(|note| MigrationNote { place: format!("{of}: {}", note.place), ..note }),
    );
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Written { path: format!("{stem}.script.json"), bytes: script.text.into_bytes(), executable: false })
}

/// What is written has to be sound; where it is not, nothing is.
fn check_newer(migration: &Migration, args: &Migrate) -> Result<(), Failure> {
    let files: BTreeMap<String, Vec<u8>> =
        migration.files.iter().map(|file| (file.path.clone(), file.text.clone().into_bytes())).collect();
    let newer = definition::load(&files, "", None, &args.set, &Default::default());
    if newer.has_errors() {
        check::tell(&newer.diagnostics, &newer.sources, false);
        return Err(Failure::usage(
            format!("`{}` has no sound counterpart in the newest generation, nothing was written", args.path),
            "what is found above is about the files that would have been written: change the definition so that it \
             does not come to that",
        ));
    }
    Ok(())
}

/// The folder beside the agent's own.
fn beside(location: &Location) -> PathBuf {
    let folder = location.root.join(&location.base);
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    folder.with_file_name(format!("{name}{SUFFIX}"))
}

fn write(folder: &Path, location: &Location, files: &[Written], args: &Migrate) -> Result<(), Failure> {
    let taken = fs::symlink_metadata(folder).is_ok();
    if args.force && taken {
        may_go(folder, location)?;
        return init::replace(folder, files);
    }
    init::write_all(folder, files).map_err(|failure| match failure.code {
        exit::USAGE => Failure {
            hint: Some(
                "choose another folder with `--out DIR`, or replace that one with `--force`".to_owned(),
            ),
            ..failure
        },
        _ => failure,
    })
}

/// Whether a folder holds an agent and nothing that is needed: only that is replaced.
fn may_go(folder: &Path, location: &Location) -> Result<(), Failure> {
    let refuse = |why: &str| {
        Failure::usage(
            format!("`{}` is not replaced: {why}", folder.display()),
            "choose another folder with `--out DIR`",
        )
    };
    let real = fs::canonicalize(folder).map_err(|error| refuse(&error.to_string()))?;
    if !real.is_dir() || fs::symlink_metadata(folder).is_ok_and(|about| about.is_symlink()) {
        return Err(refuse("it is no folder"));
    }
    if location.root.join(&location.base).starts_with(&real) {
        return Err(refuse("the older definition lies in it"));
    }
    if !real.join("agent.json").is_file() || real.join(".git").exists() {
        return Err(refuse("it holds no agent"));
    }
    Ok(())
}

/// What the new agent is asked for by: its bare name where it lies among the project's agents.
fn called(folder: &Path, place: &Place) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let canonical = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let agents = fs::canonicalize(place.home.root()).unwrap_or_else(|_| place.home.root().to_owned());
    let hidden = place.here.join(&name).exists();
    if canonical == agents.join(".agent").join(&name) && !hidden {
        return name;
    }
    folder.strip_prefix(&place.here).unwrap_or(folder).display().to_string()
}
