//! `graph`.

use crate::cli::commands::shared_args::DefinitionArgs;
use cuegate_view::{Graph, graph_json, render_dot, render_mermaid, render_svg};

use crate::cli::commands::{ProjectPlace, load_as};
use crate::cli::commands::{diagnostics, read_options};
use crate::cli::{print, set_values};
use crate::{Failure, exit};
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    pub(crate) definition: DefinitionArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t, conflicts_with = "json")]
    pub(crate) format: GraphFormat,
    /// Print JSON: the same as `--format json`
    #[arg(long)]
    pub(crate) json: bool,
}

/// The output format of `graph`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// A Mermaid flowchart, which code hosts render in Markdown
    #[default]
    Mermaid,
    /// The DOT language of Graphviz
    Dot,
    /// A self-contained SVG image
    Svg,
    /// One `cuegate/graph/v1` object
    Json,
}

/// Mermaid's default limits `maxEdges` and `maxTextSize`; a diagram cannot change them.
const LINKS_MAX: usize = 500;
const LETTERS_MAX: usize = 50_000;

/// Draws a definition. One with errors is drawn as far as it could be read, with its findings, and exits with 2.
pub(in crate::cli::commands) fn draw_graph(place: &ProjectPlace, args: &GraphArgs) -> Result<u8, Failure> {
    let location = place.locate(&args.definition.path)?;
    let how =
        read_options::read_load_options(place, &args.definition.path, &location, args.definition.phases)?;
    let names = set_values::parse_set_names(&args.definition.set)?;
    let definition = load_as(&location, &names, &how)?;
    set_values::look_at(&definition, &args.definition.set, &names)?;
    let sound = definition.flow.is_some();
    let Some(flow) = definition.flow.as_deref().or(definition.unsound.as_ref()) else {
        diagnostics::print_diagnostics(&definition.diagnostics, &definition.sources, false);
        return Err(Failure::usage(
            format!("`{}` has no steps to draw", args.definition.path),
            format!("fix the errors above, then run `cuegate check {}`", args.definition.path),
        ));
    };
    let graph = Graph::new(flow, &definition.diagnostics);
    match if args.json { GraphFormat::Json } else { args.format } {
        GraphFormat::Mermaid => {
            let text = render_mermaid(&graph);
            if graph.links() > LINKS_MAX || text.chars().count() > LETTERS_MAX {
                print::print_line(&format!(
                    "the graph exceeds Mermaid's default limits ({LINKS_MAX} links, {LETTERS_MAX} characters): raise \
                     `maxEdges` and `maxTextSize`, or use `--format svg`"
                ));
            }
            print::print_data(&text);
        }
        GraphFormat::Dot => print::print_data(&render_dot(&graph)),
        GraphFormat::Svg => print::print_data(&render_svg(&graph)),
        GraphFormat::Json => print::print_json(&graph_json(&graph)),
    }
    if sound {
        return Ok(exit::DONE);
    }
    print::print_line(&format!("the definition has errors: see `cuegate check {}`", args.definition.path));
    Ok(exit::USAGE)
}
