//! Definitions of other programs, recognised by the keys that only they have, so that one finding names the program instead
//! of a dozen that call its keys unknown.

use cuegate_flow::diagnostics::{Diagnostic, FileId, Span};
use cuegate_flow::model::Draft;

use crate::codes;
use crate::source::{
    files::Files,
    loaded::{LoadedDefinition, RunSettings},
    loader::{LoadedFile, SourceLoader},
};
use crate::values::json::{Json, Kind};

/// The program that a YAML file is a workflow of, if it is none that is read here.
pub(crate) fn program_of(root: &Json) -> Option<&'static str> {
    let is_list = |of: Option<&Json>| of.is_some_and(|json| matches!(json.kind, Kind::List(_)));
    let workflow = root.get("workflow");
    if root.get("kind").and_then(Json::as_text) == Some("WavePipeline") {
        return Some("Wave");
    }
    if workflow.is_some_and(|workflow| workflow.get("entry_point").is_some()) && is_list(root.get("agents")) {
        return Some("Conductor");
    }
    if workflow.is_some_and(|workflow| workflow.get("id").is_some()) && is_list(root.get("steps")) {
        return Some("Spec Kit");
    }
    let has_id = |node: &Json| node.get("id").is_some();
    match root.get("nodes").map(|nodes| &nodes.kind) {
        Some(Kind::List(nodes)) if root.get("steps").is_none() && nodes.iter().any(has_id) => Some("Archon"),
        _ => None,
    }
}

/// The finding about a definition of another program.
pub(crate) fn build_unsupported_finding(program: &str, span: Span) -> Diagnostic {
    let message = format!("this is a workflow of {program}, whose format is not supported");
    Diagnostic::error(codes::UNSUPPORTED_YET, span, message)
        .hint("Cuegate runs TAKT workflows and Climpt agents; write it as one of them")
}

/// Whether a file is named as graphs in the DOT language are.
pub(crate) fn is_dot(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".dot", ".gv", ".fabro"].iter().any(|ending| name.ends_with(ending))
}

/// Loads a graph in the DOT language: what it is, is its only finding.
pub(crate) fn load_dot(files: &dyn Files, path: &str) -> LoadedDefinition {
    let loader = SourceLoader::new(files);
    let place = |file: FileId| Span { file, start: 0, end: 0 };
    match loader.page(path) {
        LoadedFile::Text { file, .. } => {
            loader.found.push(build_unsupported_finding("Attractor or Fabro, a DOT graph", place(file)))
        }
        LoadedFile::Missing => {
            let finding = Diagnostic::error(
                codes::UNREADABLE_FILE,
                loader.unread(path),
                format!("there is no `{path}`"),
            );
            loader.found.push(finding.hint("correct the path"));
        }
        LoadedFile::Faulty => {}
    }
    let (found, sources) = loader.into_parts();
    let (diagnostics, _) = found.into_parts();
    let draft = Draft::empty("dot", "dot");
    LoadedDefinition { draft, diagnostics, sources, run: RunSettings::default() }.sorted()
}
