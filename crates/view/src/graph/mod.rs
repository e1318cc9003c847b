//! A flow as a graph: Mermaid, DOT, SVG or JSON.

mod dot;
mod json;
mod labels;
mod lanes;
mod layout;
mod mermaid;
mod model;
mod parallel_block;
mod svg;

pub use dot::render_dot;
pub use json::graph_json;
pub use mermaid::render_mermaid;
pub use model::Graph;
pub use svg::{SVG_STYLE, render_svg, svg_without_style};

#[cfg(test)]
mod tests;
