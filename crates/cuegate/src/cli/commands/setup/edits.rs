//! Edits of files that belong to the user: what is added can be taken back, and the rest stays as it is.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use toml_edit::{DocumentMut, Item, Table, value};

use crate::Failure;

/// The name under which agents know the server.
const SERVER: &str = "cuegate";
/// What stands around our section in a file of the user's.
const BEGIN: &str = "<!-- cuegate: begin -->";
const END: &str = "<!-- cuegate: end -->";

/// A change of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileEdit {
    pub(super) path: PathBuf,
    before: Option<String>,
    /// `None`: the file goes.
    after: Option<String>,
    /// How many of the folders above it go with it if they are empty.
    folders: usize,
}

impl FileEdit {
    /// Whether anything would be different.
    pub(super) fn changes(&self) -> bool {
        self.before != self.after
    }

    /// The file and the lines that come and go, as in a difference.
    pub(super) fn describe(&self, root: &Path) -> String {
        let name = self.path.strip_prefix(root).unwrap_or(&self.path).display();
        let what = match (&self.before, &self.after) {
            (None, _) => "new",
            (_, None) => "removed",
            _ => "changed",
        };
        let (before, after) = (self.before.as_deref().unwrap_or(""), self.after.as_deref().unwrap_or(""));
        let mut text = format!("{name} ({what})");
        // What is added or taken away is one piece.
        let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
        let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let rest = old.len().min(new.len()) - same;
        let tail =
            old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
        for (sign, lines) in [('-', &old[same..old.len() - tail]), ('+', &new[same..new.len() - tail])] {
            for line in lines {
                let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
                text.push_str(&format!("\n  {sign} {line}"));
            }
        }
        text
    }

    pub(super) fn write(&self) -> Result<(), Failure> {
        let failed = |error: io::Error| {
            Failure::environment(format!("failed to write `{}`: {error}", self.path.display()))
        };
        let Some(text) = &self.after else {
            fs::remove_file(&self.path).map_err(failed)?;
            for folder in self.path.ancestors().skip(1).take(self.folders) {
                // One with other files stays, and those above it.
                if fs::remove_dir(folder).is_err() {
                    break;
                }
            }
            return Ok(());
        };
        // Through a link, as the user set it up.
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        let file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        fs::write(file.path(), text).map_err(failed)?;
        if let Ok(before) = fs::metadata(&path) {
            fs::set_permissions(file.path(), before.permissions()).map_err(failed)?;
        } else {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).map_err(failed)?;
        }
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::environment(format!("failed to read `{}`: {error}", path.display()))),
    }
}

fn refuse_unreadable(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::usage(
        format!("`{}` cannot be read: {why}", path.display()),
        "mend it, or move it away, and set up again",
    )
}

/// A file that is ours as a whole, in folders of its own. One that the user changed is not taken back.
pub(super) fn edit_whole_file(path: &Path, text: &str, adds: bool) -> Result<FileEdit, Failure> {
    let before = read(path)?;
    let after = match (adds, &before) {
        (true, _) => Some(text.to_owned()),
        (false, Some(found)) if found != text => before.clone(),
        (false, _) => None,
    };
    Ok(FileEdit { path: path.to_owned(), before, after, folders: 3 })
}

/// The entry of the server in a file like `.mcp.json`.
pub(super) fn edit_json_server(path: &Path, program: &str, adds: bool) -> Result<FileEdit, Failure> {
    const SERVERS: &str = "mcpServers";
    let before = read(path)?;
    let empty = Value::Object(Map::new());
    let mut whole: Value = match &before {
        Some(text) => serde_json::from_str(text).map_err(|error| refuse_unreadable(path, &error))?,
        None => empty.clone(),
    };
    let Some(object) = whole.as_object_mut() else { return Err(refuse_unreadable(path, &"it is no object")) };
    let servers = object.entry(SERVERS).or_insert(empty);
    let Some(servers) = servers.as_object_mut() else {
        return Err(refuse_unreadable(path, &"its `mcpServers` is no object"));
    };
    let entry = json!({ "command": program, "args": ["mcp"] });
    match adds {
        // An entry of the user's own, with variables for example, is kept.
        true if servers.contains_key(SERVER) => {}
        true => drop(servers.insert(SERVER.to_owned(), entry)),
        false => drop(servers.shift_remove(SERVER)),
    }
    if servers.is_empty() && !adds {
        object.shift_remove(SERVERS);
    }
    let is_ours = !adds && object.is_empty();
    let text = format!("{whole:#}\n");
    // What is as it was keeps its spelling.
    let is_same =
        before.as_ref().is_some_and(|before| serde_json::from_str::<Value>(before).ok() == Some(whole));
    let after = match (is_ours, is_same) {
        (true, _) => None,
        (_, true) => before.clone(),
        _ => Some(text),
    };
    Ok(FileEdit { path: path.to_owned(), before, after, folders: 0 })
}

/// The entry of the server in the settings of Codex, whose comments stay.
pub(super) fn edit_toml_server(path: &Path, program: &str, adds: bool) -> Result<FileEdit, Failure> {
    const SERVERS: &str = "mcp_servers";
    let before = read(path)?;
    let text = before.clone().unwrap_or_default();
    let mut document: DocumentMut = text.parse().map_err(|error| refuse_unreadable(path, &error))?;
    if adds {
        let servers = document.entry(SERVERS).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let Some(servers) = servers.as_table_like_mut() else {
            return Err(refuse_unreadable(path, &"its `mcp_servers` is no table"));
        };
        if !servers.contains_key(SERVER) {
            let mut entry = Table::new();
            entry.insert("command", value(program));
            entry.insert("args", value(toml_edit::Array::from_iter(["mcp"])));
            servers.insert(SERVER, Item::Table(entry));
        }
    } else if let Some(servers) = document.get_mut(SERVERS).and_then(Item::as_table_like_mut) {
        servers.remove(SERVER);
        if servers.is_empty() {
            document.remove(SERVERS);
        }
    }
    let text = document.to_string();
    let after = if text.trim().is_empty() && !adds { before.as_ref().and(None) } else { Some(text) };
    Ok(FileEdit { path: path.to_owned(), before, after, folders: 0 })
}

/// A section of a file of the user's.
pub(super) fn edit_block(path: &Path, text: &str, adds: bool) -> Result<FileEdit, Failure> {
    let before = read(path)?;
    let whole = before.clone().unwrap_or_default();
    let rest = match (whole.find(BEGIN), whole.find(END)) {
        (Some(begin), Some(end)) if begin < end => {
            let end = end + END.len();
            let tail = whole[end..].trim_start_matches('\n');
            format!("{}{}{tail}", whole[..begin].trim_end_matches('\n'), if begin > 0 { "\n" } else { "" })
        }
        _ => whole,
    };
    let after = match adds {
        true => {
            let gap = if rest.trim().is_empty() { "" } else { "\n" };
            let ends = if rest.is_empty() || rest.ends_with('\n') { "" } else { "\n" };
            Some(format!("{rest}{ends}{gap}{BEGIN}\n{}\n{END}\n", text.trim_end()))
        }
        false => Some(rest).filter(|rest| !rest.trim().is_empty()),
    };
    Ok(FileEdit { path: path.to_owned(), before, after, folders: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: Option<&str>) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        if let Some(text) = text {
            fs::write(&path, text).unwrap();
        }
        (folder, path)
    }

    /// Adds, adds again, and takes back, by an edit of a file with this text.
    fn go_round(
        text: Option<&str>,
        edit: impl Fn(&Path, bool) -> Result<FileEdit, Failure>,
    ) -> (String, Option<String>) {
        let (_folder, path) = file(text);
        edit(&path, true).unwrap().write().unwrap();
        let added = fs::read_to_string(&path).unwrap();
        assert!(!edit(&path, true).unwrap().changes(), "{added}");
        edit(&path, false).unwrap().write().unwrap();
        (added, fs::read_to_string(&path).ok())
    }

    #[test]
    fn what_is_added_is_taken_back_and_nothing_else() {
        let json = |path: &Path, adds: bool| edit_json_server(path, "cuegate", adds);
        let toml = |path: &Path, adds: bool| edit_toml_server(path, "cuegate", adds);
        let block = |path: &Path, adds: bool| edit_block(path, "# Cuegate\n\nUse it.\n", adds);
        let whole = |path: &Path, adds: bool| edit_whole_file(path, "text\n", adds);
        for edit in [&json as &dyn Fn(&Path, bool) -> _, &toml, &block, &whole] {
            let (added, left) = go_round(None, edit);
            assert!(!added.is_empty() && left.is_none(), "{added}{left:?}");
        }
        let others = "{\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"x\"\n    }\n  },\n  \"z\": 1\n}\n";
        let (added, left) = go_round(Some(others), json);
        assert!(added.contains("\"other\"") && added.contains("\"cuegate\""), "{added}");
        assert_eq!(left.as_deref(), Some(others));
        let settings = "# mine\nmodel = \"m\" # this one\n\n[mcp_servers.other]\ncommand = \"x\"\n";
        let (added, left) = go_round(Some(settings), toml);
        assert!(added.starts_with(settings) && added.contains("[mcp_servers.cuegate]"), "{added}");
        assert_eq!(left.as_deref(), Some(settings));
        for text in ["# Project\n\nBuild with make.\n", "no end of line"] {
            let (added, left) = go_round(Some(text), block);
            assert!(added.starts_with(text), "{added}");
            assert_eq!(left.unwrap().trim_end(), text.trim_end());
        }
    }

    #[test]
    fn what_the_user_wrote_is_kept() {
        let own = r#"{"mcpServers":{"cuegate":{"command":"cuegate","args":["mcp"],"env":{"A":"b"}}}}"#;
        let (_folder, path) = file(Some(own));
        assert!(!edit_json_server(&path, "cuegate", true).unwrap().changes());
        let (_folder, path) = file(Some("changed by the user"));
        assert!(!edit_whole_file(&path, "text\n", false).unwrap().changes());
        for text in ["{", "[]", r#"{"mcpServers": 3}"#] {
            let (_folder, path) = file(Some(text));
            assert!(edit_json_server(&path, "cuegate", true).unwrap_err().message.contains("cannot be read"));
        }
        let (_folder, path) = file(Some("model ="));
        assert!(edit_toml_server(&path, "cuegate", true).unwrap_err().message.contains("cannot be read"));
    }
}
