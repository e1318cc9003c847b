//! Where the files that a workflow names without a path are: beside the workflow, in the project, in the home folder, and
//! in an installed TAKT.

use crate::Files;
use crate::source::loader::{LoadedFile, SourceLoader};
use crate::values::{json::Kind, yaml};

/// The virtual folder of the user's TAKT files.
pub(in crate::takt) const HOME: &str = "~/.takt";
/// The virtual folder of the definitions of an installed TAKT.
pub(in crate::takt) const INSTALLED: &str = "<takt>";

/// The folder of the installed packages, in which each has a folder `@owner/repo`.
const PACKAGES: &str = "~/.takt/repertoire";

/// The folders that are searched, in order.
#[derive(Debug, Clone)]
pub(in crate::takt) struct Layers {
    folders: Vec<String>,
}

impl Layers {
    /// The layers of a workflow in `folder`.
    pub(in crate::takt) fn of(folder: &str, loader: &SourceLoader<'_>) -> Layers {
        let mut folders = Vec::new();
        let mut add = |folder: String| {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        };
        // The folder that holds the folder of the workflow, which may be a category below it. What the user and TAKT
        // itself have in theirs gives way to the project's, but a package brings its own.
        let is_layer = [HOME, INSTALLED].iter().any(|layer| folder.starts_with(layer));
        let has_own = !is_layer || folder.starts_with(PACKAGES);
        let parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        if has_own && let Some(at) = parts.iter().rposition(|part| matches!(*part, "workflows" | "pieces")) {
            add(parts[..at].join("/"));
        }
        add(".takt".to_owned());
        add(HOME.to_owned());
        let language = read_configured_language(loader).unwrap_or_else(|| "en".to_owned());
        add(format!("{INSTALLED}/{language}"));
        add(INSTALLED.to_owned());
        Layers { folders }
    }

    /// The path of the first file with this name below one of `kinds` in a layer. Kinds and `endings` are tried in order
    /// in each layer.
    pub(in crate::takt) fn find(
        &self,
        loader: &SourceLoader<'_>,
        kinds: &[&str],
        name: &str,
        endings: &[&str],
    ) -> Option<String> {
        self.find_other(loader, kinds, name, endings, &[])
    }

    /// As [`Layers::find`], without the files `not`.
    pub(in crate::takt) fn find_other(
        &self,
        loader: &SourceLoader<'_>,
        kinds: &[&str],
        name: &str,
        endings: &[&str],
        not: &[String],
    ) -> Option<String> {
        // A name is one segment; anything else could leave the folder.
        if name.is_empty() || name.contains(['\\', '\0']) || name.split('/').any(|part| part.starts_with('.'))
        {
            return None;
        }
        if let Some((package, name)) = split_package(name) {
            let package = format!("{PACKAGES}/{package}");
            let paths = kinds
                .iter()
                .flat_map(|kind| endings.iter().map(move |ending| (*kind, *ending)).collect::<Vec<_>>());
            let mut paths = paths.map(|(kind, ending)| format!("{package}/{kind}/{name}{ending}"));
            return paths.find(|path| loader.is_file(path));
        }
        let paths = self.folders.iter().flat_map(|folder| {
            let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            kinds.iter().flat_map(move |kind| {
                let folder = folder.clone();
                endings.iter().map(move |ending| format!("{folder}{kind}/{name}{ending}"))
            })
        });
        paths.into_iter().find(|path| !not.contains(path) && loader.is_file(path))
    }

    /// Whether there is an installed TAKT, of which each version brings a definition `default`. A file and not a folder
    /// is looked for, because a run keeps the files of its definition.
    pub(in crate::takt) fn has_installed(&self, loader: &SourceLoader<'_>) -> bool {
        let installed = Layers {
            folders: self.folders.iter().filter(|folder| folder.starts_with(INSTALLED)).cloned().collect(),
        };
        installed.find(loader, &["workflows", "pieces"], "default", &[".yaml"]).is_some()
    }

    /// The layers in which a fragment looks for others: the one in which it is, and those after it.
    pub(in crate::takt) fn starting_at(&self, path: &str) -> Layers {
        let is_inside = |folder: &str| {
            path.strip_prefix(folder).is_some_and(|rest| folder.is_empty() || rest.starts_with('/'))
        };
        let mut folders: Vec<String> = match path.strip_prefix(PACKAGES) {
            Some(inside) => {
                let package: Vec<&str> = inside.split('/').take(3).collect();
                let package = format!("{PACKAGES}{}", package.join("/"));
                std::iter::once(package).chain(self.folders.iter().cloned()).collect()
            }
            None => {
                let at = self.folders.iter().position(|folder| is_inside(folder)).unwrap_or_default();
                self.folders[at..].to_vec()
            }
        };
        folders.dedup();
        Layers { folders }
    }

    /// The places where a name is searched, for messages.
    pub(in crate::takt) fn places(&self, kind: &str, name: &str) -> String {
        if let Some((package, _)) = split_package(name) {
            return format!("`{PACKAGES}/{package}/{kind}`");
        }
        let shown = self.folders.iter().filter(|folder| *folder != INSTALLED).map(|folder| {
            match folder.strip_prefix(INSTALLED) {
                Some(language) => {
                    format!("the installed TAKT (`{}/{kind}`)", language.trim_start_matches('/'))
                }
                None if folder.is_empty() => format!("`{kind}`"),
                None => format!("`{folder}/{kind}`"),
            }
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

/// The folder of a package and the rest of a name: `@owner/repo/name`. Packages are installed in small letters.
pub(in crate::takt) fn split_package(name: &str) -> Option<(String, &str)> {
    let (package, rest) = name.strip_prefix('@')?.rsplit_once('/')?;
    (package.split('/').count() == 2).then(|| (format!("@{}", package.to_lowercase()), rest))
}

/// The language that TAKT is configured to use, in the `config.yaml` of the project or of the user.
pub fn read_takt_language(files: &dyn Files) -> Option<String> {
    read_configured_language(&SourceLoader::new(files))
}

fn read_configured_language(loader: &SourceLoader<'_>) -> Option<String> {
    [".takt/config.yaml", "~/.takt/config.yaml"].into_iter().find_map(|path| {
        let LoadedFile::Text { file, text } = loader.page(path) else { return None };
        // TAKT's own configuration is not checked here.
        let quiet = crate::findings::Findings::default();
        let config = yaml::parse(&text, file, &quiet)?;
        match &config.get("language")?.kind {
            Kind::Text(language) if language.chars().all(|c| c.is_ascii_alphabetic() || c == '-') => {
                Some(language.to_string())
            }
            _ => None,
        }
    })
}
