//! `migrate`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use cuegate_dialect::{Migration, MigrationNote, NotMigrated, Options, migrate_agent, migrate_script};
use cuegate_view::{clean, pad};
use serde_json::{Value, json};

use super::{
    Place,
    check::{plural, tell},
    load,
};
use crate::{
    Failure,
    cli::{args::Migrate, print},
    definition::{self, DiskFiles, Location},
    exit,
    init::{self, File},
};

/// What a folder of a migrated agent is called after the agent's own.
const SUFFIX: &str = "-closing";

/// Writes a definition of an older generation as one of the newest.
pub(super) fn migrate(place: &Place, args: &Migrate) -> Result<u8, Failure> {
    let location = place.locate(&args.path)?;
    let definition = load(&location, &args.set)?;
    if definition.has_errors() {
        tell(&definition.diagnostics, &definition.sources, false);
        return Err(unsound(&args.path));
    }
    let mut migration = read(&location, args)?;
    let script = match &args.script {
        Some(path) => Some(script(&place.here.join(path), &mut migration)?),
        None => None,
    };
    check(&migration, args)?;
    let folder = match &args.out {
        Some(out) => place.here.join(out),
        None => beside(&location),
    };
    let mut files: Vec<File> =
        migration.files.iter().map(|(path, text)| File { path: path.clone(), text: text.clone() }).collect();
    files.extend(script);
    init::write(&folder, &files).map_err(|failure| match failure.code {
        exit::USAGE => Failure { hint: Some("choose another folder with `--out DIR`".to_owned()), ..failure },
        _ => failure,
    })?;
    let shown = folder.strip_prefix(&place.here).unwrap_or(&folder).display().to_string();
    let paths: Vec<String> = files.iter().map(|file| format!("{shown}/{}", file.path)).collect();
    if args.json {
        print::json(&to_json(&shown, &paths, &migration.notes));
    } else {
        print::data(&paths.join("\n"));
        for line in lines(&shown, paths.len(), &migration.notes) {
            print::line(&line);
        }
    }
    Ok(exit::DONE)
}

fn unsound(path: &str) -> Failure {
    Failure::usage(
        format!("`{path}` is not sound, so that nobody can tell how it runs"),
        format!("mend what is found above, then `cuegate check {path}`"),
    )
}

fn read(location: &Location, args: &Migrate) -> Result<Migration, Failure> {
    let files = DiskFiles::new(&location.root).map_err(|error| {
        Failure::environment(format!("failed to open `{}`: {error}", location.root.display()))
    })?;
    let base = &location.base;
    let registry = location
        .file
        .as_ref()
        .map(|file| if base.is_empty() { file.clone() } else { format!("{base}/{file}") });
    let options = Options { agent_dir: base.clone(), registry, set: args.set.clone() };
    migrate_agent(&files, &options).map_err(|why| match why {
        NotMigrated::Unsound(_) => unsound(&args.path),
        NotMigrated::Refused(why) => {
            Failure::usage(format!("`{}` is not migrated: {why}", args.path), "nothing was written")
        }
    })
}

/// A script of a stand-in agent in the newer words.
fn script(path: &Path, migration: &mut Migration) -> Result<File, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("failed to read `{}`: {error}", path.display()), "name a script file")
    })?;
    let script = migrate_script(&text, &migration.answers).map_err(|error| {
        Failure::usage(format!("`{}` is no script: {error}", path.display()), "name a script file")
    })?;
    migration.notes.extend(script.notes);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(File { path: format!("{stem}.script.json"), text: script.text })
}

/// What is written has to be sound; where it is not, nothing is.
fn check(migration: &Migration, args: &Migrate) -> Result<(), Failure> {
    let files: BTreeMap<String, Vec<u8>> =
        migration.files.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())).collect();
    let newer = definition::load(&files, "", None, &args.set, &Default::default());
    if newer.has_errors() {
        tell(&newer.diagnostics, &newer.sources, false);
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

fn to_json(folder: &str, paths: &[String], notes: &[MigrationNote]) -> Value {
    let note = |note: &MigrationNote| json!({"place": note.place, "message": note.text, "changes_runs": note.changes_runs});
    json!({"schema": "cuegate/migrate/v1", "folder": folder, "files": paths,
        "notes": notes.iter().map(note).collect::<Vec<Value>>()})
}

fn lines(folder: &str, files: usize, notes: &[MigrationNote]) -> Vec<String> {
    let line = |label: &str, text: &str| format!("{}{}", pad(label, 12), clean(text));
    let mut lines = vec![line("wrote", &format!("{folder}, {files} file{}", plural(files)))];
    let of = |changes: bool| notes.iter().filter(move |note| note.changes_runs == changes);
    for (label, changes) in [("look at", true), ("note", false)] {
        for (index, note) in of(changes).enumerate() {
            lines.push(line(if index == 0 { label } else { "" }, &format!("{}: {}", note.place, note.text)));
        }
    }
    lines.push(line("next", &format!("cuegate check {folder}")));
    lines
}
