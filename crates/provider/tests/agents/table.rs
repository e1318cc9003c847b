//! The data model of the table of behaviours, and the page generated from it.

use std::{env, fmt::Write as _, fs, path::Path};

use cuegate_testkit::offline;

use crate::{scene::Who, suite::SECTIONS};

/// The generated page.
const PAGE: &str = "docs/agents.md";
/// If this variable is set, the test writes the page instead of comparing it.
const WRITE: &str = "CUEGATE_WRITE_DOCS";

/// Whether a provider has a behaviour.
#[derive(Clone, Copy)]
pub enum Cell {
    /// It has it.
    Yes,
    /// It has it, with a note.
    So(&'static str),
    /// It does not have it: the reason, and a test of that.
    No(&'static str, fn(Who)),
}

/// A behaviour of providers.
pub struct Behaviour {
    /// The title on the page.
    pub title: &'static str,
    /// The cell of each provider. The behaviour does not apply to providers without one.
    pub cells: &'static [(Who, Cell)],
}

/// Runs the test of a cell, without a network.
pub fn run(who: Who, show: fn(Who), cell: Cell) {
    if !offline::inside() {
        return;
    }
    match cell {
        Cell::Yes | Cell::So(_) => show(who),
        Cell::No(_, lack) => lack(who),
    }
}

fn page() -> String {
    let mut page = String::from(include_str!("page.md"));
    let mut notes = Vec::new();
    for (section, behaviours) in SECTIONS {
        let names = Who::ALL.map(|who| format!("`{}`", who.name())).join(" | ");
        writeln!(page, "\n## {section}\n\n| what | {names} |\n|---|---|---|---|---|").unwrap();
        for behaviour in *behaviours {
            let cells = Who::ALL.map(|who| word(who, behaviour, &mut notes)).join(" | ");
            writeln!(page, "| {} | {cells} |", behaviour.title).unwrap();
        }
    }
    page.push_str("\n## Notes\n\n");
    for (index, note) in notes.iter().enumerate() {
        writeln!(page, "{}. {note}", index + 1).unwrap();
    }
    page
}

/// The text of a cell, with the number of its note.
fn word(who: Who, behaviour: &Behaviour, notes: &mut Vec<String>) -> String {
    let cell = behaviour.cells.iter().find(|(named, _)| *named == who).map(|(_, cell)| *cell);
    let (word, note) = match cell {
        None => return "–".to_owned(),
        Some(Cell::Yes) => return "yes".to_owned(),
        Some(Cell::So(note)) => ("yes", note),
        Some(Cell::No(reason, _)) => ("**no**", reason),
    };
    let note = format!("{}: {note}.", who.name());
    let index = notes.iter().position(|known| *known == note).unwrap_or_else(|| {
        notes.push(note);
        notes.len() - 1
    });
    format!("{word} ({})", index + 1)
}

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    let page = page();
    if env::var_os(WRITE).is_some() {
        fs::write(&path, page).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "{PAGE} is out of date. Update it with:\n  \
         {WRITE}=1 cargo test -p cuegate-provider --test agents the_page"
    );
}
