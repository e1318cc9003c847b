//! `config`: the settings in effect.

use cuegate_view::clean_to_one_line;
use serde_json::{Value, json};

use super::Place;
use crate::{
    Failure,
    cli::{
        args::{Config, ConfigVerb},
        print,
    },
    config, exit,
};

pub(super) fn config(place: &Place, args: &Config) -> Result<u8, Failure> {
    let ConfigVerb::Show(args) = &args.command;
    let root = place.home.root();
    let settings = config::load(root)?;
    let files = config::files(root);
    let settings: Value = serde_json::from_str(&settings.source).unwrap_or_default();
    if args.json {
        let files: Vec<Value> = files
            .iter()
            .map(|path| json!({"path": path.display().to_string(), "exists": path.is_file()}))
            .collect();
        print::json(&json!({"schema": "cuegate/config/v1", "files": files, "settings": settings}));
        return Ok(exit::DONE);
    }
    // Later files override earlier ones.
    for path in &files {
        let state = if path.is_file() { "" } else { " (does not exist)" };
        print::data(&format!("# {}{state}", clean_to_one_line(&path.display().to_string())));
    }
    let text = toml_edit::ser::to_string_pretty(&settings)
        .map_err(|error| Failure::environment(format!("failed to print the settings: {error}")))?;
    print::data(text.trim_end());
    Ok(exit::DONE)
}
