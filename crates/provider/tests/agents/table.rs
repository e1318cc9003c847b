//! The list as data: what each provider shows of it, and the page that is made of it.

use std::{env, fmt::Write as _, fs, path::Path};

use cuegate_testkit::offline;

use crate::{scene::Who, suite::SECTIONS};

/// The page that is made of the list.
const PAGE: &str = "docs/providers.md";
/// With this variable the page is written instead of compared.
const WRITE: &str = "CUEGATE_WRITE_DOCS";

/// Whether a provider shows a behaviour.
#[derive(Clone, Copy)]
pub enum Cell {
    /// It does.
    Yes,
    /// It does, in its own way.
    So(&'static str),
    /// It does not, and why. The second shows that it is so.
    No(&'static str, fn(Who)),
}

/// Something that a provider can do.
pub struct Behaviour {
    /// In words, for the page.
    pub title: &'static str,
    /// What each provider shows of it. One that is not named has nothing to do with it.
    pub cells: &'static [(Who, Cell)],
}

/// Runs a cell where there is no network.
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

/// A cell in words, with the number of its note.
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
fn the_page_is_made_of_the_list() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    let page = page();
    if env::var_os(WRITE).is_some() {
        fs::write(&path, page).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "{PAGE} is not what the list says. This writes it anew:\n  \
         {WRITE}=1 cargo test -p cuegate-provider --test agents the_page"
    );
}
