//! `graph`.

use cuegate_view::{Graph, graph_json, render_dot, render_mermaid, render_svg};

use super::{ProjectPlace, check, load_as, read_options};
use crate::{
    Failure,
    cli::{args, args::GraphFormat, print, set_values},
    exit,
};

/// Mermaid's default limits `maxEdges` and `maxTextSize`; a diagram cannot change them.
const LINKS_MAX: usize = 500;
const LETTERS_MAX: usize = 50_000;

/// Draws a definition. One with errors is drawn as far as it could be read, with its findings, and exits with 2.
pub(super) fn draw_graph(place: &ProjectPlace, args: &args::GraphArgs) -> Result<u8, Failure> {
    let location = place.locate(&args.path)?;
    let how = read_options::read_load_options(place, &args.path, &location, args.phases)?;
    let names = set_values::parse_set_names(&args.set)?;
    let definition = load_as(&location, &names, &how)?;
    set_values::look_at(&definition, &args.set, &names)?;
    let sound = definition.flow.is_some();
    let Some(flow) = definition.flow.as_deref().or(definition.unsound.as_ref()) else {
        check::print_diagnostics(&definition.diagnostics, &definition.sources, false);
        return Err(Failure::usage(
            format!("`{}` has no steps to draw", args.path),
            format!("fix the errors above, then run `cuegate check {}`", args.path),
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
    print::print_line(&format!("the definition has errors: see `cuegate check {}`", args.path));
    Ok(exit::USAGE)
}
