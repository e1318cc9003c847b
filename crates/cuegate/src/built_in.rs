//! Starters that run without `init`: their files are written into the state dir.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use cuegate_engine::RecordedLoadOptions;

use crate::init::DefinitionFile;
use crate::init::{Starter, StarterFormat, StarterValues, detect_commands};
use crate::{
    Failure,
    definition::{self, CompiledDefinition},
};

/// Writes a starter into `folder`, with the test command that is detected in the project with the top folder `top` from
/// `here`, and returns the path of its definition. Files of an earlier version are replaced.
///
/// # Errors
/// When the files cannot be written.
pub(crate) fn write_built_in(
    starter: &Starter,
    (top, here): (&Path, &Path),
    folder: &Path,
) -> Result<PathBuf, Failure> {
    let test = detect_commands(top, here).tests.into_iter().next();
    let wanted = StarterValues::new(starter.name, test.as_ref().map(|test| test.command.as_str()))?;
    let write = |below: &Path, files: &[DefinitionFile]| -> Result<(), Failure> {
        for file in files {
            let path = below.join(&file.path);
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            // Another process may read the file.
            let partial = path.with_extension(format!("partial-{}", std::process::id()));
            let written = made.and_then(|()| std::fs::write(&partial, &file.text));
            written.and_then(|()| std::fs::rename(&partial, &path)).map_err(|error| {
                Failure::environment(format!("failed to write `{}`: {error}", path.display()))
            })?;
        }
        Ok(())
    };
    match &starter.form {
        StarterFormat::Agent(files) => {
            let agent = folder.join(".agent").join(starter.name);
            write(&agent, &files(&wanted))?;
            Ok(agent)
        }
        StarterFormat::Takt(workflow) => {
            let takt = folder.join(".takt");
            write(&takt, &workflow.own(&wanted))?;
            write(&takt, &workflow.shared(&wanted))?;
            Ok(takt.join(format!("workflows/{}.yaml", starter.name)))
        }
    }
}

/// A starter as `check` reads it, without a test command and without writing its files.
pub(crate) fn look_at_built_in(starter: &Starter) -> Option<CompiledDefinition> {
    let wanted = StarterValues::new(starter.name, None).ok()?;
    let (base, file, files) = match &starter.form {
        StarterFormat::Agent(files) => (format!(".agent/{}", starter.name), None, files(&wanted)),
        StarterFormat::Takt(workflow) => {
            let files = workflow.own(&wanted).into_iter().chain(workflow.shared(&wanted)).collect();
            (".takt/workflows".to_owned(), Some(format!("{}.yaml", starter.name)), files)
        }
    };
    let below = if file.is_some() { ".takt" } else { &*base };
    let files: BTreeMap<String, Vec<u8>> =
        files.into_iter().map(|file| (format!("{below}/{}", file.path), file.text.into_bytes())).collect();
    Some(definition::inspect_definition(&files, &base, file.as_deref(), &[], &RecordedLoadOptions::default()))
}
