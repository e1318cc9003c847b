//! Self-contained SVG: no fonts, scripts or files; it follows the reader's light or dark theme.

use std::fmt::Write as _;

use super::labels::{label_lines, label_title, node_lines, sanitize_graph_texts};
use super::layout::{
    Area, LETTER, LINE, PlacedGraph, Point, SMALL_LETTER, SMALL_LINE, estimate_text_width as text_width,
    is_sure, is_within, lay_out_graph,
};
use super::model::{Graph, LinkStyle, NodeKind};
use crate::text::shorten_middle;

/// The style sheet of the drawings; colours follow the reader's theme.
pub const SVG_STYLE: &str = "\
:root{--paper:#ffffff;--ink:#1c1b1f;--soft:#6b6a70;--fill:#f4f3f8;--work:#e8eefc;--judge:#fdf1d8;--check:#e6f4ea;\
--run:#ececf1;--person:#fbe6f0;--good:#cdebd3;--bad:#f7d3d0;--error:#b3261e;--warning:#8a5a00}\
@media(prefers-color-scheme:dark){:root{--paper:#17171b;--ink:#e6e4ea;--soft:#a3a1aa;--fill:#212127;--work:#22304f;\
--judge:#4a3b16;--check:#1f3d2a;--run:#2c2c34;--person:#472637;--good:#1f4a2c;--bad:#562622;--error:#f2867f;--warning:#e6b35c}}\
text{font:13px Helvetica,Arial,sans-serif;fill:var(--ink)}.small{font-size:11px}.soft{fill:var(--soft)}\
.name{font-weight:600}.error text.found{fill:var(--error)}.warning text.found{fill:var(--warning)}\
.shape{stroke:var(--ink);stroke-width:1}\
.shape.work{fill:var(--work)}.shape.judge{fill:var(--judge)}.shape.check{fill:var(--check)}\
.shape.members{fill:var(--fill)}.shape.commands{fill:var(--run)}.shape.person{fill:var(--person)}\
.shape.good{fill:var(--good)}.shape.bad{fill:var(--bad)}.warning .shape{stroke:var(--warning);stroke-width:1.6}\
.error .shape{stroke:var(--error);stroke-width:2}.entry .shape{stroke-width:3.4}\
.group{fill:var(--fill);stroke:var(--soft);stroke-dasharray:2 3}.inner{fill:none;stroke:var(--ink)}\
.link{fill:none;stroke:var(--soft);stroke-width:1.3}.remedy{stroke-width:2.6}.asks{stroke-dasharray:5 4}\
.head{fill:var(--soft)}.behind{fill:var(--paper);opacity:.85}.within{fill:var(--fill)}";

/// The height of the head with the flow's name.
const HEAD: f64 = 30.0;

/// The maximum links to one end node; with more, each step gets its own end node beside it.
const ENDS_MAX: usize = 5;

/// The maximum columns of the flow's name; the document title has the whole name.
const NAME_COLUMNS: usize = 80;

/// A flow as an SVG document.
pub fn render_svg(graph: &Graph) -> String {
    let graph = &sanitize_graph_texts(graph).with_ends_apart(ENDS_MAX);
    let placed = lay_out_graph(graph);
    let notes = graph.notes.len() as f64 * SMALL_LINE + 12.0;
    let legend = legend_lines(graph);
    let foot = legend.len() as f64 * SMALL_LINE + 12.0;
    let texts = graph.notes.iter().chain(&legend).map(|line| text_width(line, SMALL_LETTER));
    let name = shorten_middle(&graph.name, NAME_COLUMNS);
    let head = text_width(&format!("{name} {}", graph.dialect), LETTER);
    let width = placed.width.max(texts.fold(head, f64::max) + 40.0);
    let height = HEAD + notes + placed.height + foot;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\">\n<title>{}</title>\n<style>{SVG_STYLE}</style>\n<defs><marker id=\"head\" \
         viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\" \
         markerUnits=\"userSpaceOnUse\"><path class=\"head\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"var(--paper)\"/>\n",
        escape_xml(&format!("{} ({})", graph.name, graph.dialect))
    );
    let _ = writeln!(
        svg,
        "<text x=\"20\" y=\"24\"{} class=\"name\">{} <tspan class=\"soft\">{}</tspan></text>",
        format_text_length(&format!("{name} {}", graph.dialect), LETTER),
        escape_xml(&name),
        escape_xml(&graph.dialect)
    );
    for (index, note) in graph.notes.iter().enumerate() {
        let y = HEAD + 10.0 + index as f64 * SMALL_LINE;
        let _ = writeln!(
            svg,
            "<text x=\"20\" y=\"{y:.0}\"{} class=\"small soft\">{}</text>",
            format_text_length(note, SMALL_LETTER),
            escape_xml(note)
        );
    }
    let _ = writeln!(svg, "<g transform=\"translate(0 {:.0})\">", HEAD + notes);
    write_svg_graph(&mut svg, graph, &placed);
    svg.push_str("</g>\n");
    for (index, line) in legend.iter().enumerate() {
        let y = HEAD + notes + placed.height + 8.0 + index as f64 * SMALL_LINE;
        let _ = writeln!(svg, "<text x=\"20\" y=\"{y:.0}\" class=\"small soft\">{}</text>", escape_xml(line));
    }
    svg.push_str("</svg>\n");
    svg
}

/// As [`render_svg`], for a page that has the style sheet [`SVG_STYLE`] itself.
pub fn svg_without_style(graph: &Graph) -> String {
    render_svg(graph).replacen(&format!("<style>{SVG_STYLE}</style>\n"), "", 1)
}

fn legend_lines(graph: &Graph) -> Vec<String> {
    const SHAPES: [(NodeKind, &str); 8] = [
        (NodeKind::Work, "rectangle: work by an agent"),
        (NodeKind::Judge, "diamond: decision by an agent"),
        (NodeKind::Check, "pill: check by an agent"),
        (NodeKind::Parallel, "double frame: parallel members"),
        (NodeKind::Commands, "hexagon: commands"),
        (NodeKind::Person, "slanted: answer of a person"),
        (NodeKind::System, "thin frame: done by Cuegate itself"),
        (NodeKind::Unknown, "flag: no such step"),
    ];
    let shapes: Vec<&str> = SHAPES
        .iter()
        .filter(|(kind, _)| graph.nodes.iter().any(|node| node.kind == *kind))
        .map(|(_, words)| *words)
        .collect();
    let mut lines = vec![format!("{}; thick frame: entry", shapes.join("; "))];
    let mut kinds: Vec<&str> = Vec::new();
    if graph.links.iter().any(|link| link.line == LinkStyle::Remedy) {
        kinds.push("thick: back with a retry prompt");
    }
    if graph.links.iter().any(|link| link.line == LinkStyle::Asks) {
        kinds.push("dashed: asks the step, then continues");
    }
    if !kinds.is_empty() {
        lines.push(format!("lines — {}", kinds.join("; ")));
    }
    lines
}

fn write_svg_graph(svg: &mut String, graph: &Graph, placed: &PlacedGraph) {
    for (_, area) in &placed.groups {
        let _ = writeln!(svg, "<rect class=\"group\" {} rx=\"8\"/>", format_rect_attributes(*area, 0.0));
    }
    for (link, course) in graph.links.iter().zip(&placed.links) {
        let class = match link.line {
            LinkStyle::Plain => "link",
            LinkStyle::Remedy => "link remedy",
            LinkStyle::Asks => "link asks",
        };
        let _ = writeln!(
            svg,
            "<path class=\"{class}\" data-from=\"{}\" data-to=\"{}\" d=\"{}\" marker-end=\"url(#head)\"/>",
            escape_xml(&graph.nodes[link.from].name),
            escape_xml(&graph.nodes[link.to].name),
            render_rounded_path(&course.points)
        );
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        let area = placed.nodes[index];
        let mut class = String::from("node");
        if node.entry {
            class.push_str(" entry");
        }
        // The first mark is the most severe.
        if let Some(mark) = node.marks.first() {
            class.push(' ');
            class.push_str(mark.severity.as_str());
        }
        let step = escape_xml(&node.name);
        let _ =
            writeln!(svg, "<g class=\"{class}\" data-step=\"{step}\">{}", render_svg_shape(node.kind, area));
        let text = node_lines(node);
        let whole: Vec<&str> =
            [Some(node.name.as_str()), node.title.as_deref()].into_iter().flatten().collect();
        if text.iter().zip(&whole).any(|(shown, whole)| shown != whole) {
            let _ = writeln!(svg, "<title>{}</title>", escape_tooltip(&whole.join("\n")));
        }
        let top = area.middle.y - (text.len() as f64 - 1.0) * LINE / 2.0 + 4.5;
        let marks_from = text.len() - node.marks.len();
        for (line, words) in text.iter().enumerate() {
            let (class, letter) = match line {
                0 => ("name", LETTER),
                line if line >= marks_from => ("small found", SMALL_LETTER),
                _ => ("small soft", SMALL_LETTER),
            };
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\"{} class=\"{class}\">{}</text>",
                area.middle.x,
                top + line as f64 * LINE,
                format_text_length(words, letter),
                escape_xml(words)
            );
        }
        svg.push_str("</g>\n");
    }
    // Labels are drawn over links, so that they stay readable where links cross.
    for (link, course) in graph.links.iter().zip(&placed.links) {
        let Some(area) = course.label else { continue };
        svg.push_str("<g>");
        if let Some(whole) = label_title(&link.label) {
            let _ = write!(svg, "<title>{}</title>", escape_tooltip(&whole));
        }
        let class = if is_within(graph, link) { "behind within" } else { "behind" };
        let _ = writeln!(svg, "<rect class=\"{class}\" {}/>", format_rect_attributes(area, 1.0));
        for (line, words) in label_lines(&link.label).iter().enumerate() {
            let y = area.top() + line as f64 * SMALL_LINE + 10.5;
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"middle\"{} class=\"small\">{}</text>",
                area.middle.x,
                format_text_length(words, SMALL_LETTER),
                escape_xml(words)
            );
        }
        svg.push_str("</g>\n");
    }
}

/// Limits a text to its estimated width where fonts may need more.
fn format_text_length(text: &str, letter: f64) -> String {
    match is_sure(text) {
        true => String::new(),
        false => format!(" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\"", text_width(text, letter)),
    }
}

fn format_rect_attributes(area: Area, more: f64) -> String {
    format!(
        "x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"",
        area.left() - more,
        area.top() - more,
        area.width + 2.0 * more,
        area.height + 2.0 * more
    )
}

fn render_svg_shape(kind: NodeKind, area: Area) -> String {
    let fill = match kind {
        NodeKind::Work => "work",
        NodeKind::Judge => "judge",
        NodeKind::Check => "check",
        NodeKind::Parallel => "members",
        NodeKind::Commands => "commands",
        NodeKind::Person => "person",
        NodeKind::System => "system",
        NodeKind::Completed => "good",
        NodeKind::Aborted | NodeKind::Failed | NodeKind::Unknown => "bad",
    };
    let paint = format!("class=\"shape {fill}\"");
    match corners_of_shape(kind, area) {
        Some(corners) => {
            let points: Vec<String> = corners.iter().map(|at| format!("{:.1},{:.1}", at.x, at.y)).collect();
            format!("<polygon {paint} points=\"{}\"/>", points.join(" "))
        }
        None => {
            let round = match kind {
                NodeKind::Work | NodeKind::Parallel => 6.0,
                _ => area.height / 2.0,
            };
            let mut shape =
                format!("<rect {paint} {} rx=\"{round:.1}\"/>", format_rect_attributes(area, 0.0));
            if kind == NodeKind::Parallel {
                let _ =
                    write!(shape, "<rect class=\"inner\" {} rx=\"4\"/>", format_rect_attributes(area, -3.5));
            }
            shape
        }
    }
}

/// The corners of polygonal shapes.
fn corners_of_shape(kind: NodeKind, area: Area) -> Option<Vec<Point>> {
    let at = |x, y| Point { x, y };
    let (left, right, top, bottom, middle) =
        (area.left(), area.right(), area.top(), area.bottom(), area.middle);
    match kind {
        NodeKind::Judge => {
            Some(vec![at(middle.x, top), at(right, middle.y), at(middle.x, bottom), at(left, middle.y)])
        }
        NodeKind::Commands => Some(vec![
            at(left + 13.0, top),
            at(right - 13.0, top),
            at(right, middle.y),
            at(right - 13.0, bottom),
            at(left + 13.0, bottom),
            at(left, middle.y),
        ]),
        NodeKind::Person => {
            Some(vec![at(left + 13.0, top), at(right, top), at(right - 13.0, bottom), at(left, bottom)])
        }
        NodeKind::Unknown => Some(vec![
            at(left, top),
            at(right, top),
            at(right, bottom),
            at(left, bottom),
            at(left + 13.0, middle.y),
        ]),
        _ => None,
    }
}

/// The radius of bends, in pixels.
const ROUND: f64 = 9.0;

/// A path through these points with rounded bends.
fn render_rounded_path(points: &[Point]) -> String {
    let mut path = String::new();
    for (index, at) in points.iter().enumerate() {
        match (index.checked_sub(1).and_then(|before| points.get(before)), points.get(index + 1)) {
            (None, _) => {
                let _ = write!(path, "M{:.1} {:.1}", at.x, at.y);
            }
            (Some(_), None) => {
                let _ = write!(path, "L{:.1} {:.1}", at.x, at.y);
            }
            (Some(before), Some(next)) => {
                let (one, other) = (move_point_towards(*at, *before), move_point_towards(*at, *next));
                let _ = write!(
                    path,
                    "L{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}",
                    one.x, one.y, at.x, at.y, other.x, other.y
                );
            }
        }
    }
    path
}

/// The point at most `ROUND` pixels from one point towards another.
fn move_point_towards(from: Point, to: Point) -> Point {
    let (x, y) = (to.x - from.x, to.y - from.y);
    let length = x.hypot(y).max(1e-9);
    let part = (ROUND.min(length / 2.0)) / length;
    Point { x: from.x + x * part, y: from.y + y * part }
}

/// A tooltip; line breaks are kept.
fn escape_tooltip(text: &str) -> String {
    text.lines().map(escape_xml).collect::<Vec<_>>().join("\n")
}

fn escape_xml(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML forbids these characters, even as entities.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other if crate::text::is_unsafe(other) => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}
