//! Where the files that a workflow names without a path are: beside the workflow, in the project, in the home folder, and
//! in an installed TAKT.

use crate::source::loader::{LoadedFile, SourceLoader};
use crate::values::{json::Kind, yaml};

/// The virtual folder of the user's TAKT files.
pub(in crate::takt) const HOME: &str = "~/.takt";
/// The virtual folder of the definitions of an installed TAKT.
pub(in crate::takt) const INSTALLED: &str = "<takt>";

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
        // The folder that holds the folder of the workflow, which may be a category below it.
        let parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        if let Some(at) = parts.iter().rposition(|part| matches!(*part, "workflows" | "pieces")) {
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
        // A name is one segment; anything else could leave the folder.
        if name.is_empty() || name.contains(['\\', '\0']) || name.split('/').any(|part| part.starts_with('.'))
        {
            return None;
        }
        let paths = self.folders.iter().flat_map(|folder| {
            let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            kinds.iter().flat_map(move |kind| {
                let folder = folder.clone();
                endings.iter().map(move |ending| format!("{folder}{kind}/{name}{ending}"))
            })
        });
        paths.into_iter().find(|path| loader.is_file(path))
    }

    /// Whether there is an installed TAKT, of which each version brings a definition `default`. A file and not a folder
    /// is looked for, because a run keeps the files of its definition.
    pub(in crate::takt) fn has_installed(&self, loader: &SourceLoader<'_>) -> bool {
        let installed = Layers {
            folders: self.folders.iter().filter(|folder| folder.starts_with(INSTALLED)).cloned().collect(),
        };
        installed.find(loader, &["workflows", "pieces"], "default", &[".yaml"]).is_some()
    }

    /// The places where a name is searched, for messages.
    pub(in crate::takt) fn places(&self, kind: &str) -> String {
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

/// The language that TAKT is configured to use.
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
