//! The definitions that can be named: those of the project, those of the user's home folder, and the built-in starters.

use std::path::{Path, PathBuf};

use cuegate_formats::format_of;

/// The folders of TAKT's definitions, of the current vocabulary and of an older one.
pub(super) const TAKT_FOLDERS: [&str; 2] = [".takt/workflows", ".takt/pieces"];

/// Where a definition comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The project.
    Project,
    /// The user's home folder.
    Home,
}

/// A definition with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedDefinition {
    /// The name: of an agent in `.agent`, or of a workflow in `.takt/workflows` or `.takt/pieces`, after its category.
    pub name: String,
    /// The agent's folder, or the workflow.
    pub path: PathBuf,
    /// Where it comes from.
    pub origin: Origin,
}

/// A folder of a project and those above it up to the project's own, the nearest first.
pub(super) fn folders_above(here: &Path, project: &Path) -> Vec<PathBuf> {
    let above: Vec<PathBuf> =
        here.ancestors().take_while(|folder| folder.starts_with(project)).map(Path::to_owned).collect();
    if above.is_empty() { vec![project.to_owned()] } else { above }
}

/// The definitions of the project, as seen from its folder `here`, and of the home folder, sorted by origin and name. A
/// name means those of the nearest folder that has it; two of them in one folder are both here, and the name is refused.
pub fn named_definitions(here: &Path, project: &Path) -> Vec<NamedDefinition> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home != project);
    let mut all = Vec::new();
    let mut add = |mut names: Vec<(String, PathBuf)>, origin| {
        names.sort_unstable();
        names.retain(|(name, _)| !all.iter().any(|known: &NamedDefinition| known.name == *name));
        all.extend(names.into_iter().map(|(name, path)| NamedDefinition { name, path, origin }));
    };
    for top in folders_above(here, project) {
        let agents = list_entries(&top.join(".agent")).into_iter().filter(|path| is_agent(path));
        let agents = agents.filter_map(|path| Some((name_of(&path)?, path)));
        let of_takt = TAKT_FOLDERS.iter().flat_map(|folder| list_workflows(&top.join(folder)));
        add(agents.chain(of_takt).collect(), Origin::Project);
    }
    if let Some(home) = home {
        add(
            TAKT_FOLDERS.iter().flat_map(|folder| list_workflows(&home.join(folder))).collect(),
            Origin::Home,
        );
    }
    all
}

/// The names of the definitions of the home folder, unless that is the project.
pub fn names_in_home(project: &Path) -> Vec<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home != project);
    let all = home
        .iter()
        .flat_map(|home| TAKT_FOLDERS.iter().flat_map(|folder| list_workflows(&home.join(folder))));
    all.map(|(name, _)| name).collect()
}

pub(super) fn is_agent(folder: &Path) -> bool {
    ["agent.json", "steps_registry.json"].iter().any(|file| folder.join(file).is_file())
}

/// The workflows of a folder and of its categories, by name.
fn list_workflows(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for path in list_entries(folder) {
        if path.is_dir() {
            let category = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let own = list_entries(&path).into_iter().filter(|path| is_workflow_file(path));
            found.extend(own.filter_map(|path| Some((format!("{category}/{}", name_of(&path)?), path))));
        } else if is_workflow_file(&path) {
            found.extend(name_of(&path).map(|name| (name, path)));
        }
    }
    found
}

fn is_workflow_file(path: &Path) -> bool {
    path.is_file() && path.file_name().is_some_and(|name| format_of(Some(&name.to_string_lossy())).variants())
}

/// The name of an agent's folder, or of a workflow without its ending.
fn name_of(path: &Path) -> Option<String> {
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.map(|name| name.to_string_lossy().into_owned()).filter(|name| !name.starts_with('.'))
}

fn list_entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
