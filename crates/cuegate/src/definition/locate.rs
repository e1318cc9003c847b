//! Finding a definition by what was typed.

use std::path::{Path, PathBuf};

/// Where a definition lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The folder whose files it may read: the project, or where the definition lies on its own.
    pub root: PathBuf,
    /// Its folder below that, separated by `/`; empty when it is the root.
    pub base: String,
    /// The file that was named in it.
    pub file: Option<String>,
}

/// Finds the definition that `typed` means: an agent folder, a registry file, or a name below `.agent`.
///
/// # Errors
/// A sentence that says what was looked for, and what to do.
pub fn locate(typed: &str, here: &Path, project: &Path) -> Result<Location, (String, String)> {
    let direct = here.join(typed);
    let found = if direct.exists() { direct } else { named(typed, project).ok_or_else(|| nothing(typed))? };
    let found = std::fs::canonicalize(&found)
        .map_err(|error| (format!("failed to open `{typed}`: {error}"), "check the path".to_owned()))?;
    let (folder, file) = if found.is_dir() {
        (found, None)
    } else {
        let folder = found.parent().unwrap_or(&found).to_owned();
        let name = found.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The agent's own file means the agent.
        (folder, (name != "agent.json").then_some(name))
    };
    let root = root_of(&folder, project);
    let base = folder
        .strip_prefix(&root)
        .unwrap_or(Path::new(""))
        .components()
        .map(|part| part.as_os_str().to_string_lossy())
        .collect::<Vec<_>>()
        .join("/");
    Ok(Location { root, base, file })
}

/// A bare name never leaves its folder.
fn named(typed: &str, project: &Path) -> Option<PathBuf> {
    let bare = !typed.is_empty() && !typed.contains(['/', '\\']) && !typed.starts_with('.');
    let folder = project.join(".agent").join(typed);
    (bare && folder.is_dir()).then_some(folder)
}

fn nothing(typed: &str) -> (String, String) {
    (
        format!("`{typed}` is no file, no folder and no agent below `.agent`"),
        "give an agent folder (it holds `agent.json`), a `steps_registry.json`, or the name of an agent below `.agent`"
            .to_owned(),
    )
}

/// The project when the definition lies in it, else the nearest folder above that looks like one, else its own.
fn root_of(folder: &Path, project: &Path) -> PathBuf {
    let project = std::fs::canonicalize(project).unwrap_or_else(|_| project.to_owned());
    if folder.starts_with(&project) {
        return project;
    }
    let above = folder.ancestors().skip(1).find(|above| above.join(".git").exists());
    above.map_or_else(|| folder.to_owned(), Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::locate;

    #[test]
    fn folders_files_and_names() {
        let dir = tempfile::tempdir().unwrap();
        let project = std::fs::canonicalize(dir.path()).unwrap().join("p");
        let agent = project.join(".agent/fixer");
        std::fs::create_dir_all(&agent).unwrap();
        std::fs::write(agent.join("agent.json"), "{}").unwrap();
        std::fs::write(agent.join("steps_registry.json"), "{}").unwrap();
        let at = |typed: &str| locate(typed, &project, &project).map(|at| (at.base, at.file));
        let fixer = || ".agent/fixer".to_owned();
        assert_eq!(at(".agent/fixer"), Ok((fixer(), None)));
        assert_eq!(at("fixer"), Ok((fixer(), None)));
        assert_eq!(at(".agent/fixer/agent.json"), Ok((fixer(), None)));
        let registry = "steps_registry.json".to_owned();
        assert_eq!(at(".agent/fixer/steps_registry.json"), Ok((fixer(), Some(registry))));
        assert!(at("../fixer").is_err() && at("nobody").is_err() && at("").is_ok());
        let other = dir.path().join("elsewhere");
        std::fs::create_dir_all(&other).unwrap();
        let found = locate(other.to_str().unwrap(), &project, &project).unwrap();
        assert_eq!((found.base.as_str(), found.root), ("", std::fs::canonicalize(&other).unwrap()));
    }
}
