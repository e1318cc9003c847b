//! `config`: the settings in effect.

use cuegate_view::clean_to_one_line;
use serde_json::{Value, json};

use crate::cli::commands::ProjectPlace;
use crate::cli::print;
use crate::{Failure, config, exit};
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigVerb {
    /// Print the settings in effect, and the files that they come from
    Show(ConfigShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigShowArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(in crate::cli::commands) fn show_config(place: &ProjectPlace, args: &ConfigArgs) -> Result<u8, Failure> {
    let ConfigVerb::Show(args) = &args.command;
    let root = place.home.root();
    let settings = config::load_config(root)?;
    let files = config::list_config_paths(root);
    let settings: Value = serde_json::from_str(&settings.source).unwrap_or_default();
    if args.json {
        let files: Vec<Value> = files
            .iter()
            .map(|path| json!({"path": path.display().to_string(), "exists": path.is_file()}))
            .collect();
        print::print_json(&json!({"schema": "cuegate/config/v1", "files": files, "settings": settings}));
        return Ok(exit::DONE);
    }
    // Later files override earlier ones.
    for path in &files {
        let state = if path.is_file() { "" } else { " (does not exist)" };
        print::print_data(&format!("# {}{state}", clean_to_one_line(&path.display().to_string())));
    }
    let text = toml_edit::ser::to_string_pretty(&settings)
        .map_err(|error| Failure::environment(format!("failed to print the settings: {error}")))?;
    print::print_data(text.trim_end());
    Ok(exit::DONE)
}
