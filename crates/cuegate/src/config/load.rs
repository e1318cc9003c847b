//! Finds, reads and merges the configuration files.

use std::{
    io,
    path::{Path, PathBuf},
};

use toml::{Table, Value};

use cuegate_flow::diagnostics::find_nearest_name;
use cuegate_runner::{StateDir, sandbox::kept_out_files};

use super::Config;
use crate::Failure;
use crate::shared_journal::{JournalConfig, NamedBy, hide_password};
use crate::text_file::{hint_for_unread, read_text};

/// The name of the file, in the project and in the user's configuration folder.
const NAME: &str = "cuegate.toml";

/// The paths of the user's file and the project's file, in this order; either may be missing.
pub fn list_config_paths(root: &Path) -> Vec<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
    folder.map(|folder| folder.join("cuegate").join(NAME)).into_iter().chain([root.join(NAME)]).collect()
}

/// Reads the configuration of the project at `root`.
///
/// # Errors
/// When a file cannot be read or is invalid, with the position of the error.
pub fn load_config(root: &Path) -> Result<Config, Failure> {
    // An agent that works, or was killed, may have created one.
    load_config_without(root, &kept_out_files(StateDir::new(root).dir()))
}

/// As [`load_config`], with all files that are there: what is reviewed chooses none that are left out.
///
/// # Errors
/// As [`load_config`].
pub fn load_reviewed_config(root: &Path) -> Result<Config, Failure> {
    load_config_without(root, &[])
}

fn load_config_without(root: &Path, kept_out: &[PathBuf]) -> Result<Config, Failure> {
    let mut whole = Table::new();
    let mut read_ones = Vec::new();
    let mut named_by = NamedBy::Project;
    for path in list_config_paths(root) {
        if kept_out.contains(&path) {
            continue;
        }
        // A FIFO would be waited for.
        if path.metadata().is_ok_and(|about| !about.is_file()) {
            let message = format!("failed to read `{}`: it is not a regular file", path.display());
            return Err(Failure::usage(message, "remove it, or replace it by a file"));
        }
        match read_text(&path) {
            Ok(text) => {
                let table = parse_config_file(&path, &text)?;
                named_by = name_source(&table, path.starts_with(root)).unwrap_or(named_by);
                merge_tables(&mut whole, table);
                read_ones.push((path, text));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let message = format!("failed to read `{}`: {error}", path.display());
                let hint = hint_for_unread(&error, "make the file readable, or remove it");
                return Err(Failure::usage(message, hint));
            }
        }
    }
    let mut kept = serde_json::to_value(&whole).unwrap_or_default();
    if let Some(url) = kept.pointer_mut("/journal/url")
        && let Some(text) = url.as_str()
    {
        // Runs keep their settings, and show them.
        *url = hide_password(text).into();
    }
    let source = serde_json::to_string(&kept).unwrap_or_default();
    let config: Result<Config, _> = Value::Table(whole).try_into();
    config
        .map(|config| Config { source, journal: JournalConfig { named_by, ..config.journal }, ..config })
        .map_err(|error: toml::de::Error| failure_of_missing_field(&read_ones, &error))
}

/// Who chose the address of the journal that a file of settings names, if it names one.
fn name_source(table: &Table, is_in_project: bool) -> Option<NamedBy> {
    let url = table.get("journal")?.get("url")?.as_str()?;
    Some(match url.starts_with('$') {
        _ if !is_in_project => NamedBy::User,
        true => NamedBy::Variable,
        false => NamedBy::Project,
    })
}

/// The configuration that a run keeps.
///
/// # Errors
/// When this version of the program does not read it.
pub fn parse_kept_config(source: &str) -> Result<Config, Failure> {
    let table: Result<Value, _> = serde_json::from_str(source);
    let config: Result<Config, String> = match table {
        Ok(table) => table.try_into().map_err(|error: toml::de::Error| error.message().to_owned()),
        Err(error) => Err(error.to_string()),
    };
    config.map(|config| Config { source: source.to_owned(), ..config }).map_err(|why| {
        Failure::usage(
            format!("the settings that the run was started with are not valid here: {why}"),
            "`--reload-config` uses those of `cuegate.toml` as it is now",
        )
    })
}

/// The error of the merged files. Each file alone is valid, so a required field is missing from all of them: report it
/// in the first file that needs it.
fn failure_of_missing_field(files: &[(PathBuf, String)], error: &toml::de::Error) -> Failure {
    let lacking = files.iter().find_map(|(path, text)| {
        let error = toml::from_str::<Config>(text).err()?;
        is_missing(&error).then(|| failure_of_toml_error(path, text, &error))
    });
    lacking.unwrap_or_else(|| {
        Failure::usage(error.to_string().trim().replace('\n', " "), "docs/configuration.md lists all keys")
    })
}

/// Parses a file as a table and checks that it is a configuration.
fn parse_config_file(path: &Path, text: &str) -> Result<Table, Failure> {
    match toml::from_str::<Config>(text) {
        // A field that this file lacks may be in the other file.
        Err(error) if !is_missing(&error) => return Err(failure_of_toml_error(path, text, &error)),
        Ok(_) | Err(_) => {}
    }
    toml::from_str(text).map_err(|error| failure_of_toml_error(path, text, &error))
}

fn is_missing(error: &toml::de::Error) -> bool {
    error.message().starts_with("missing field")
}

/// The failure for an error in a file, with its position.
fn failure_of_toml_error(path: &Path, text: &str, error: &toml::de::Error) -> Failure {
    let place = error.span().map_or(String::new(), |span| {
        let before = text.get(..span.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!(":{line}:{column}")
    });
    // `unknown field `typed`, expected one of `known`, …`
    let mut names = error.message().split('`').skip(1).step_by(2);
    let typed = names.next().filter(|_| error.message().starts_with("unknown field"));
    let meant = typed.and_then(|typed| find_nearest_name(typed, names));
    let hint = match meant {
        Some(meant) => format!("did you mean `{meant}`? docs/configuration.md lists all keys"),
        None => "docs/configuration.md lists all keys".to_owned(),
    };
    Failure::usage(format!("{}{place}: {}", path.display(), error.message()), hint)
}

/// Merges `over` into `under`: tables key by key; other values replace.
fn merge_tables(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => merge_tables(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde::Deserialize;

    use super::*;

    fn refused(text: &str) -> String {
        parse_config_file(Path::new("cuegate.toml"), text).unwrap_err().message
    }

    #[test]
    fn the_project_overrides_the_user() {
        let mut whole =
            parse_config_file(Path::new("a"), "notify = \"a\"\n[budget]\nusd = 1\ncalls = 5").unwrap();
        merge_tables(
            &mut whole,
            parse_config_file(Path::new("b"), "[budget]\nusd = 2.5\n[prices.m]\ninput = 1\noutput = 2")
                .unwrap(),
        );
        let config: Config = Value::Table(whole).try_into().unwrap();
        assert_eq!(config.notify.command.as_deref(), Some("a"));
        let budget = config.budget.budget();
        assert_eq!((budget.usd_micro, budget.asks), (Some(2_500_000), Some(5)));
        assert_eq!(config.prices.0["m"].output, 2.0);
    }

    #[test]
    fn a_required_field_may_be_in_either_file() {
        let mut whole =
            parse_config_file(Path::new("a"), "[providers.openai]\nbase_url = \"http://localhost:1/v1\"")
                .unwrap();
        merge_tables(
            &mut whole,
            parse_config_file(Path::new("b"), "[providers.openai]\nmodel = \"m\"").unwrap(),
        );
        let config: Config = Value::Table(whole).try_into().unwrap();
        assert_eq!(config.providers.openai.unwrap().model.as_deref(), Some("m"));
    }

    #[test]
    fn a_field_missing_from_all_files_is_reported_with_a_position() {
        let text = "[run]\nwidth = 2\n[prices.m]\ninput = 1\n".to_owned();
        let whole = parse_config_file(Path::new("cuegate.toml"), &text).unwrap();
        let error = Config::deserialize(Value::Table(whole)).unwrap_err();
        let failure = failure_of_missing_field(&[(PathBuf::from("cuegate.toml"), text)], &error);
        insta::assert_snapshot!(failure.message, @"cuegate.toml:3:1: missing field `output`");
    }

    #[test]
    fn the_example_in_the_docs_is_valid() {
        let page = include_str!("../../../../docs/configuration.md");
        let text = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let config: Config =
            Value::Table(parse_config_file(Path::new("docs"), text).unwrap()).try_into().unwrap();
        assert_eq!(config.budget.budget().usd_micro, Some(5_000_000));
        assert_eq!(config.providers.codex.service.as_deref(), Some("azure"));
    }

    #[test]
    fn invalid_values_have_a_position() {
        insta::assert_snapshot!(refused("[run]\nretries = 3"), @"cuegate.toml:2:1: unknown field `retries`, expected one of `provider`, `baseline`, `repairs_max`, `wait_max`, `call_timeout`, `idle_warning`, `quality_gate_retries`, `same_answers_max`, `same_files_max`, `max_iterations`, `width`");
        insta::assert_snapshot!(refused("[run]\nwidth = 0"), @"cuegate.toml:2:9: expected a number from 1 to 1000, found 0");
        insta::assert_snapshot!(refused("[run]\nquality_gate_retries = 101"), @"cuegate.toml:2:24: expected a number from 0 to 100, found 101");
        insta::assert_snapshot!(refused("[takt]\nphases = \"two\""), @"cuegate.toml:2:10: unknown variant `two`, expected `fused` or `separate`");
        insta::assert_snapshot!(refused("[budget]\nusd = -3"), @"cuegate.toml:2:7: an amount of US dollars must be greater than 0, such as `2.50`");
        insta::assert_snapshot!(refused("[budget]\nusd = \"5\""), @"cuegate.toml:2:7: expected a number without quotes");
        insta::assert_snapshot!(refused("[run]\nwait_max = \"soon\""), @"cuegate.toml:2:12: `soon` is not a duration; write `90s`, `10m` or `1h 30m`");
        insta::assert_snapshot!(refused("[run]\nwait_max = "), @"cuegate.toml:2:12: string values must be quoted, expected literal string");
        insta::assert_snapshot!(refused("[providers.bard]\nmodel = \"x\""), @"cuegate.toml:1:12: unknown field `bard`, expected one of `claude`, `codex`, `openai`, `opencode`, `copilot`, `gemini`, `qwen`");
        insta::assert_snapshot!(refused("[run]\nrepairs_max = 101"), @"cuegate.toml:2:15: expected a number from 0 to 100, found 101");
    }
}
