//! `schema`.

use cuegate_flow::diagnostics::find_nearest_name;
use cuegate_formats::list_format_schemas;

use crate::cli::print;
use crate::{Failure, exit};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The format; without it, the formats are listed
    #[arg(value_name = "FORMAT")]
    pub(crate) dialect: Option<String>,
}

/// Prints the JSON Schema of a definition format, or lists the formats.
pub(in crate::cli::commands) fn print_schema(args: &SchemaArgs) -> Result<u8, Failure> {
    let known = list_format_schemas();
    let Some(name) = &args.dialect else {
        let width = known.iter().map(|schema| schema.name.len()).max().unwrap_or_default();
        for schema in known {
            print::print_data(&format!("{:width$}  {}", schema.name, schema.of));
        }
        return Ok(exit::DONE);
    };
    if let Some(schema) = known.iter().find(|schema| schema.name == name) {
        print::print_data(schema.text);
        return Ok(exit::DONE);
    }
    let names: Vec<&str> = known.iter().map(|schema| schema.name).collect();
    let hint = match find_nearest_name(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of {}", names.join(", ")),
    };
    Err(Failure::usage(format!("there is no schema `{name}`"), hint))
}
