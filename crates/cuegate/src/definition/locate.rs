//! Finds a definition by path or name.

use std::path::{Path, PathBuf};

use cuegate_flow::diagnostics::Sources;

use cuegate_formats::format_of;
use cuegate_runner::worktree::is_working_tree;

use super::{
    named_definitions, names,
    names::folders_above,
    takt::{USER, find_installed, find_missing_language, list_installed, list_packages},
};

/// The location of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The folder whose files the definition may read: the project, or a folder of its own outside it.
    pub root: PathBuf,
    /// Whether `root` is outside the project.
    pub is_elsewhere: bool,
    /// Whether the definition is in the assumed project folder but `root` is above it.
    pub is_here: bool,
    /// Its folder relative to `root`, separated by `/`; empty if it is `root`. `~/.takt/…` for a workflow of the user,
    /// and `<takt>/…` for one of an installed TAKT.
    pub base: String,
    /// The file in it that was named.
    pub file: Option<String>,
    /// The built-in starter that it is.
    pub built_in: Option<&'static str>,
    /// The folder with the definitions of an installed TAKT, for a definition of TAKT.
    pub takt: Option<PathBuf>,
}

/// Whether several definitions of the project have a name.
pub fn has_several(typed: &str, here: &Path, project: &Path) -> bool {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    find_named(typed, &folders_above(here, project), home.as_deref()).len() > 1
}

/// Finds a definition: an agent folder, a registry file, a workflow of TAKT, or a name in `.agent`, `.takt/workflows` or
/// `.takt/pieces`, of a package (`@owner/repo/name`), or of an installed TAKT. `builtins` names the folder of the latter,
/// else it is looked for.
///
/// # Errors
/// A message and a hint.
pub fn find_definition(
    typed: &str,
    here: &Path,
    project: &Path,
    builtins: Option<&Path>,
) -> Result<Location, (String, String)> {
    let direct = here.join(typed);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let takt = || builtins.map(Path::to_owned).or_else(|| super::find_builtins(project));
    let by_name = || find_named(typed, &folders_above(here, project), home.as_deref());
    let one_by_name = || match by_name().as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        [one, other, ..] => Err(describe_ambiguity(typed, one, other, project)),
    };
    // A folder without a definition may have the name of one.
    let is_other_folder = || direct.is_dir() && !names::is_agent(&direct);
    let found = match direct.exists() {
        true if is_other_folder() => one_by_name()?.unwrap_or(direct),
        true => match by_name().into_iter().find(|other| !same_file(other, &direct)) {
            // An agent may have put one of them there.
            Some(other) => return Err(describe_ambiguity(typed, &direct, &other, project)),
            None => direct,
        },
        false => match one_by_name()? {
            Some(one) => one,
            None => {
                let takt = takt();
                let installed = takt.as_deref().and_then(|takt| find_installed(takt, project, typed));
                let Some((base, file)) = installed else {
                    return Err(not_found(typed, here, project, takt.as_deref()));
                };
                return Ok(Location::of_shared(project, base, file, takt));
            }
        },
    };
    let real = std::fs::canonicalize(&found)
        .map_err(|error| (format!("failed to open `{typed}`: {error}"), "check the path".to_owned()))?;
    let found = resolve_typed_path(&found, &real, project).unwrap_or(real);
    let (folder, file) = if found.is_dir() {
        require_no_project(typed, &found)?;
        (found, None)
    } else {
        let folder = found.parent().unwrap_or(&found).to_owned();
        let name = found.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The agent's own file means the agent.
        (folder, (name != "agent.json").then_some(name))
    };
    let workflow = format_of(file.as_deref()).variants();
    if let Some(name) = file.as_ref().filter(|_| workflow)
        && let Some(base) = home.as_deref().and_then(|home| folder_of_user(&folder, home, project))
    {
        return Ok(Location::of_shared(project, base, name.clone(), takt()));
    }
    let root = root_of(&folder, project, workflow);
    let base = folder
        .strip_prefix(&root)
        .unwrap_or(Path::new(""))
        .components()
        .map(|part| part.as_os_str().to_string_lossy())
        .collect::<Vec<_>>()
        .join("/");
    let is_elsewhere = !root.starts_with(canonicalize_if_exists(project));
    let is_here = is_elsewhere && root.join(&base) == canonicalize_if_exists(project);
    let takt = workflow.then(takt).flatten();
    Ok(Location { root, is_elsewhere, is_here, base, file, built_in: None, takt })
}

/// The virtual folder of a workflow of the user, which is the same in each project: `~/.takt/workflows`. `None` for other
/// folders, and if the project is there as well.
fn folder_of_user(folder: &Path, home: &Path, project: &Path) -> Option<String> {
    let takt = std::fs::canonicalize(home.join(".takt")).ok()?;
    if folder.starts_with(canonicalize_if_exists(project)) {
        return None;
    }
    let inside = folder.strip_prefix(takt).ok()?.to_str()?;
    Some(format!("{USER}/{inside}"))
}

fn same_file(one: &Path, other: &Path) -> bool {
    std::fs::canonicalize(one).ok() == std::fs::canonicalize(other).ok()
}

fn describe_ambiguity(typed: &str, one: &Path, other: &Path, project: &Path) -> (String, String) {
    let shown = |path: &Path| match path.strip_prefix(project) {
        // A bare name would be the ambiguous one again.
        Ok(own) if own == Path::new(typed) => format!("./{typed}"),
        Ok(own) => own.display().to_string(),
        Err(_) => path.display().to_string(),
    };
    let (one, other) = (shown(one), shown(other));
    (format!("`{typed}` names two definitions: `{one}` and `{other}`"), format!("write `{one}` or `{other}`"))
}

/// The path of a definition in the project as it was typed, also when it is a link or goes through one: findings name
/// it so, its ending tells its format, and a link out of the project is refused when it is read.
fn resolve_typed_path(found: &Path, real: &Path, project: &Path) -> Option<PathBuf> {
    let mut typed = PathBuf::new();
    for part in found.components() {
        match part {
            std::path::Component::ParentDir => _ = typed.pop(),
            std::path::Component::CurDir => {}
            part => typed.push(part),
        }
    }
    let project_real = canonicalize_if_exists(project);
    let own = typed.strip_prefix(project).or_else(|_| typed.strip_prefix(&project_real)).ok()?;
    let path = project_real.join(own);
    // `..` after a link leads elsewhere.
    (std::fs::canonicalize(&path).ok()? == *real).then_some(path)
}

/// The definitions of a name, which cannot leave its folder. Workflows may be in one level of category folders:
/// `category/name`. The nearest of `folders` decides, then the home folder; in one folder there may be several.
fn find_named(typed: &str, folders: &[PathBuf], home: Option<&Path>) -> Vec<PathBuf> {
    if let Some(package) = home.and_then(|home| find_in_package(typed, home)) {
        return vec![package];
    }
    let parts: Vec<&str> = typed.split('/').collect();
    let sound = |part: &&str| !part.is_empty() && !part.contains('\\') && !part.starts_with('.');
    if parts.len() > 2 || !parts.iter().all(sound) {
        return Vec::new();
    }
    let workflows = |top: &Path| -> Vec<PathBuf> {
        let folders = names::TAKT_FOLDERS.map(|folder| top.join(folder)).into_iter();
        folders
            .flat_map(|folder| ["yaml", "yml"].map(|ending| folder.join(format!("{typed}.{ending}"))))
            .filter(|file| file.is_file())
            .collect()
    };
    let all = |top: &Path| {
        let agent = Some(top.join(".agent").join(typed)).filter(|folder| parts.len() == 1 && folder.is_dir());
        let workflows = workflows(top);
        // A folder without an agent is no second definition.
        let agent = agent.filter(|folder| workflows.is_empty() || names::is_agent(folder));
        agent.into_iter().chain(workflows).collect::<Vec<_>>()
    };
    let own = folders.iter().map(|top| all(top)).find(|found| !found.is_empty());
    own.or_else(|| home.map(workflows)).unwrap_or_default()
}

/// The workflow of an installed package: `@owner/repo/name`. The folders of packages have small letters.
fn find_in_package(typed: &str, home: &Path) -> Option<PathBuf> {
    let (package, name) = typed.strip_prefix('@')?.rsplit_once('/')?;
    let (owner, repository) = package.split_once('/')?;
    let is_sound = |part: &str| !part.is_empty() && !part.contains(['/', '\\']) && !part.starts_with('.');
    if ![owner, repository, name].into_iter().all(is_sound) {
        return None;
    }
    let folder = home.join(".takt/repertoire").join(format!("@{}", package.to_lowercase()));
    let files = ["yaml", "yml"].map(|ending| folder.join("workflows").join(format!("{name}.{ending}")));
    files.into_iter().find(|file| file.is_file())
}

/// Rejects a project folder that contains definitions but is not one.
///
/// # Errors
/// A message, and a hint with the names of the definitions.
fn require_no_project(typed: &str, folder: &Path) -> Result<(), (String, String)> {
    if ["agent.json", "steps_registry.json"].iter().any(|file| folder.join(file).exists()) {
        return Ok(());
    }
    let within = |inside: &str| {
        let entries = std::fs::read_dir(folder.join(inside)).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let agents = within(".agent").into_iter().filter(|path| path.join("agent.json").is_file());
    let agents = agents.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let workflows = names::TAKT_FOLDERS.into_iter().flat_map(within).filter(|path| {
        path.is_file()
            && path.file_name().is_some_and(|name| format_of(Some(&name.to_string_lossy())).variants())
    });
    let workflows = workflows.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()));
    let mut names: Vec<String> = agents.chain(workflows).map(|name| format!("`{name}`")).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return Ok(());
    }
    Err((format!("`{typed}` is a project, not a definition"), format!("name one: {}", names.join(", "))))
}

fn not_found(typed: &str, here: &Path, project: &Path, takt: Option<&Path>) -> (String, String) {
    let known = named_definitions(here, project);
    let installed = takt.map(|takt| list_installed(takt, project)).unwrap_or_default();
    let names = known.iter().map(|known| known.name.as_str());
    let names = names.chain(crate::init::STARTERS.iter().map(|starter| starter.name));
    let packages = list_packages();
    let names = names.chain(installed.iter().chain(&packages).map(String::as_str));
    let meant = cuegate_flow::diagnostics::find_nearest_name(typed, names);
    let meant = meant.map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
    let language = takt.and_then(|takt| find_missing_language(takt, project));
    let language = language.map(|language| {
        format!("; the installed TAKT has no workflows for `language: {language}` of `.takt/config.yaml`")
    });
    (
        format!("`{typed}` is not a file, a folder or the name of a definition"),
        format!("{meant}`cuegate list` lists all names{}", language.unwrap_or_default()),
    )
}

/// The project if the definition is in it, else the nearest git repository above, else the definition's own folder. A
/// workflow outside the project may read the folder above its own, or above `.takt/pieces` if it is in a category there:
/// personas and instructions are there.
fn root_of(folder: &Path, project: &Path, workflow: bool) -> PathBuf {
    let project = canonicalize_if_exists(project);
    // Without `.git`, a workflows folder may be the assumed project; its siblings then belong to the workflow.
    let is_alone = workflow && folder == project && !is_working_tree(&project);
    if folder.starts_with(&project) && !is_alone {
        return project;
    }
    if workflow {
        let is_top = |workflows: &&Path| names::TAKT_FOLDERS.iter().any(|folder| workflows.ends_with(folder));
        let category = folder.parent().filter(is_top);
        let workflows = category.unwrap_or(folder);
        return workflows.parent().unwrap_or(folder).to_owned();
    }
    let above = folder.ancestors().skip(1).find(|above| is_working_tree(above));
    above.map_or_else(|| folder.to_owned(), Path::to_owned)
}

/// The canonical path, or the path itself if it does not exist.
fn canonicalize_if_exists(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

impl Location {
    /// A workflow of the user or of an installed TAKT.
    fn of_shared(project: &Path, base: String, file: String, takt: Option<PathBuf>) -> Location {
        Location {
            root: canonicalize_if_exists(project),
            is_elsewhere: true,
            is_here: false,
            base,
            file: Some(file),
            built_in: None,
            takt,
        }
    }

    /// Whether it is in a folder that projects share.
    fn is_shared(&self) -> bool {
        self.base.starts_with(['~', '<'])
    }

    /// Whether an installed TAKT brings it.
    pub(crate) fn is_installed(&self) -> bool {
        self.base.starts_with('<')
    }

    /// Whether it is a file, or a folder with the files of an agent.
    pub(crate) fn has_files(&self) -> bool {
        let folder = self.root.join(&self.base);
        self.file.is_some()
            || ["agent.json", "steps_registry.json"].iter().any(|file| folder.join(file).exists())
    }

    /// Sets how findings show the paths of a definition outside the project.
    pub fn show_in(&self, sources: &mut Sources) {
        if !self.is_elsewhere || self.is_shared() {
            return;
        }
        let root = self.root.to_string_lossy();
        sources.show_as(|path| match path.strip_prefix(&format!("{}/", self.base)) {
            // A shared folder.
            _ if path.starts_with(['~', '<']) => path.to_owned(),
            // As it was typed.
            Some(own) if self.is_here => own.to_owned(),
            _ if self.is_here => format!("../{path}"),
            _ => format!("{}/{path}", root.trim_end_matches('/')),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Sources, find_definition, find_named};

    #[test]
    fn locates_folders_files_and_names() {
        let dir = tempfile::tempdir().unwrap();
        let project = std::fs::canonicalize(dir.path()).unwrap().join("p");
        let agent = project.join(".agent/fixer");
        std::fs::create_dir_all(&agent).unwrap();
        std::fs::write(agent.join("agent.json"), "{}").unwrap();
        std::fs::write(agent.join("steps_registry.json"), "{}").unwrap();
        let at = |typed: &str| find_definition(typed, &project, &project, None).map(|at| (at.base, at.file));
        let fixer = || ".agent/fixer".to_owned();
        assert_eq!(at(".agent/fixer"), Ok((fixer(), None)));
        assert_eq!(at("fixer"), Ok((fixer(), None)));
        assert_eq!(at(".agent/fixer/agent.json"), Ok((fixer(), None)));
        let registry = "steps_registry.json".to_owned();
        assert_eq!(at(".agent/fixer/steps_registry.json"), Ok((fixer(), Some(registry))));
        assert!(at("../fixer").is_err() && at("nobody").is_err());
        let (message, hint) = at(".").unwrap_err();
        assert_eq!(message, "`.` is a project, not a definition");
        assert_eq!(hint, "name one: `fixer`");
        let other = dir.path().join("elsewhere");
        std::fs::create_dir_all(&other).unwrap();
        let found = find_definition(other.to_str().unwrap(), &project, &project, None).unwrap();
        assert_eq!((found.base.as_str(), found.root), ("", std::fs::canonicalize(&other).unwrap()));
    }

    #[test]
    fn locates_pieces_by_path_and_name() {
        let dir = tempfile::tempdir().unwrap();
        let top = std::fs::canonicalize(dir.path()).unwrap();
        let (project, home) = (top.join("p"), top.join("home"));
        for file in [
            "p/.takt/pieces/team/fix.yaml",
            "home/.takt/pieces/team/own.yaml",
            "p/.takt/pieces/review.yaml",
            "p/.takt/pieces/fix.yml",
            "home/.takt/pieces/mine.yaml",
        ] {
            std::fs::create_dir_all(top.join(file).parent().unwrap()).unwrap();
            std::fs::write(top.join(file), "name: x").unwrap();
        }
        let by_name =
            |name: &str| find_named(name, std::slice::from_ref(&project), Some(&home)).first().cloned();
        assert_eq!(by_name("review"), Some(project.join(".takt/pieces/review.yaml")));
        assert_eq!(by_name("fix"), Some(project.join(".takt/pieces/fix.yml")));
        assert_eq!(by_name("mine"), Some(home.join(".takt/pieces/mine.yaml")));
        assert_eq!((by_name("../pieces/review"), by_name("none"), by_name("")), (None, None, None));
        // Categories are folders of one level.
        assert_eq!(by_name("team/fix"), Some(project.join(".takt/pieces/team/fix.yaml")));
        assert_eq!((by_name("team/../fix"), by_name("/fix"), by_name("team/")), (None, None, None));
        assert_eq!((by_name("../x"), by_name("team/none")), (None, None));
        let own = by_name("team/own").unwrap();
        let found = find_definition(own.to_str().unwrap(), &project, &project, None).unwrap();
        assert_eq!((found.root, found.base.as_str()), (home.join(".takt"), "pieces/team"));
        let found = find_definition(".takt/pieces/review.yaml", &project, &project, None).unwrap();
        assert_eq!(
            (&found.root, found.base.as_str(), found.file.as_deref()),
            (&project, ".takt/pieces", Some("review.yaml"))
        );
        // Siblings of the workflows folder belong to the workflow.
        let found =
            find_definition(home.join(".takt/pieces/mine.yaml").to_str().unwrap(), &project, &project, None)
                .unwrap();
        assert_eq!((found.root, found.base.as_str()), (home.join(".takt"), "pieces"));
        // The same holds if the workflows folder is the assumed project, unless it is a git repository itself.
        let workflows = home.join(".takt/pieces");
        let found = find_definition("mine.yaml", &workflows, &workflows, None).unwrap();
        assert_eq!((found.root.clone(), found.base.as_str()), (home.join(".takt"), "pieces"));
        let mut sources = Sources::default();
        let own = ["pieces/mine.yaml", "personas/x.md"].map(|path| sources.add(path, ""));
        found.show_in(&mut sources);
        let shown = own.map(|id| sources.get(id).unwrap().display_path().to_owned());
        assert_eq!(shown, ["mine.yaml", "../personas/x.md"]);
        // From a sibling folder a workflow is shown with its full path.
        let beside = home.join(".takt/other");
        std::fs::create_dir(&beside).unwrap();
        assert!(!find_definition("../pieces/mine.yaml", &beside, &beside, None).unwrap().is_here);
        let git = workflows.join(".git");
        for folder in ["objects", "refs"] {
            std::fs::create_dir_all(git.join(folder)).unwrap();
        }
        std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(find_definition("mine.yaml", &workflows, &workflows, None).unwrap().root, workflows);
    }
}
