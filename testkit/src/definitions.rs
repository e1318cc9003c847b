//! A definition of each format as text, without findings. Tests change something in it.

use std::collections::BTreeMap;

/// Files of a project, by their paths.
pub type Project = BTreeMap<String, Vec<u8>>;

/// An agent of the "closing" generation in `.agent/fixer`: three steps, a section, a validator.
pub const CLOSING: &str = include_str!("definitions/closing.txt");
/// An agent of the "complete" generation in `.agent/solver`: a domain of three stages, a validator before its end.
pub const COMPLETE: &str = include_str!("definitions/complete.txt");
/// An agent with a check flow of two steps in `.agent/improver`.
pub const CHECK_FLOW: &str = include_str!("definitions/check_flow.txt");
/// The piece `.takt/pieces/sound.yaml`, with most keys of the format.
pub const PIECE: &str = include_str!("definitions/piece.txt");

/// Parses concatenated files, each after a line `//- PATH`.
pub fn project(text: &str) -> Project {
    let mut files = Project::new();
    for part in text.split("//- ").skip(1) {
        let (path, content) = part.split_once('\n').expect("a line break follows the path of a file");
        files.insert(path.trim().to_owned(), content.as_bytes().to_vec());
    }
    files
}

/// Replaces a text that occurs exactly once in all files.
///
/// # Panics
///
/// When it does not occur exactly once, or a file is not UTF-8.
pub fn edit(files: &Project, from: &str, to: &str) -> Project {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("files to be edited are UTF-8");
    let holders: Vec<(&String, String)> = files
        .iter()
        .map(|(path, bytes)| (path, text(bytes)))
        .filter(|(_, text)| text.contains(from))
        .collect();
    assert_eq!(holders.len(), 1, "`{from}` stands in {} files", holders.len());
    let (path, text) = &holders[0];
    assert_eq!(text.matches(from).count(), 1, "`{from}` stands more than once in {path}");
    let mut edited = files.clone();
    edited.insert((*path).clone(), text.replace(from, to).into_bytes());
    edited
}
