//! Settings that are proposed to the user, and written into `cuegate.toml` of the project.

use std::{fmt, path::Path};

use toml_edit::{Array, DocumentMut, Item, Table, value};

use crate::{Failure, text_file::read_text};

/// A key of `cuegate.toml` with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigEntry {
    pub(crate) table: &'static str,
    key: &'static str,
    /// The entries of a list; one text if it is not a list.
    entries: Vec<String>,
    is_list: bool,
}

impl ConfigEntry {
    /// A setting with a text.
    pub(crate) fn text(table: &'static str, key: &'static str, text: &str) -> ConfigEntry {
        ConfigEntry { table, key, entries: vec![text.to_owned()], is_list: false }
    }

    /// Entries that are added to a list.
    pub(crate) fn list(table: &'static str, key: &'static str, entries: &[String]) -> ConfigEntry {
        ConfigEntry { table, key, entries: entries.to_vec(), is_list: true }
    }

    fn item(&self) -> Item {
        match self.is_list {
            true => value(self.entries.iter().map(String::as_str).collect::<Array>()),
            false => value(self.entries.concat()),
        }
    }

    /// Writes it into `cuegate.toml` of the project at `root`. The rest of the file stays as it is; a list is extended.
    ///
    /// # Errors
    /// When the file is invalid, already has another value, or cannot be written.
    pub(crate) fn write(&self, root: &Path) -> Result<(), Failure> {
        let path = root.join("cuegate.toml");
        let failed = |why: String| {
            let hint = format!("write `{self}` under `[{}]` yourself", self.table);
            Failure::usage(format!("failed to write `{}`: {why}", path.display()), hint)
        };
        let text = match read_text(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(error.to_string())),
        };
        let mut document: DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| failed(error.to_string()))?;
        let table = document.entry(self.table).or_insert_with(|| Item::Table(Table::new()));
        let table =
            table.as_table_like_mut().ok_or_else(|| failed(format!("`{}` is not a table", self.table)))?;
        match table.get_mut(self.key) {
            None => _ = table.insert(self.key, self.item()),
            Some(known) => {
                let list = known.as_array_mut().filter(|_| self.is_list);
                let list = list.ok_or_else(|| failed(format!("`{}` is set already", self.key)))?;
                list.extend(self.entries.iter().map(String::as_str));
            }
        }
        std::fs::write(&path, document.to_string()).map_err(|error| failed(error.to_string()))
    }
}

impl fmt::Display for ConfigEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.key, self.item().to_string().trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_added_and_the_rest_stays() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("cuegate.toml");
        let setup = ConfigEntry::text("worktree", "setup", "npm ci");
        setup.write(root.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[worktree]\nsetup = \"npm ci\"\n");
        std::fs::write(&path, "# mine\n[sandbox]\nhosts = [\"a:1\"] # why\n").unwrap();
        let hosts = ConfigEntry::list("sandbox", "hosts", &["127.0.0.1:8099".to_owned()]);
        assert_eq!(hosts.to_string(), "hosts = [\"127.0.0.1:8099\"]");
        hosts.write(root.path()).unwrap();
        setup.write(root.path()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "# mine\n[sandbox]\nhosts = [\"a:1\", \"127.0.0.1:8099\"] # why\n\n[worktree]\nsetup = \"npm ci\"\n"
        );
        assert!(setup.write(root.path()).unwrap_err().message.contains("set already"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}
