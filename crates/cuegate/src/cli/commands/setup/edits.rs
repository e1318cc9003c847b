//! Edits of files that belong to the user: what is added can be taken back, and the rest stays as it is.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use cuegate_flow::model::BlobRef;
use jsonc_parser::{CollectOptions, ParseOptions};
use serde_json::{Value, json};
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
    /// Why the file, or our entry in it, is left as it is.
    pub(super) note: Option<String>,
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
        let path = &self.path;
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        let file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        fs::write(file.path(), text).map_err(failed)?;
        if let Ok(before) = fs::metadata(path) {
            fs::set_permissions(file.path(), before.permissions()).map_err(failed)?;
        } else {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).map_err(failed)?;
        }
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

/// A file of the user's: where it really is, and what is in it.
struct UserFile {
    path: PathBuf,
    text: Option<String>,
    /// `\r\n` if any line ends so.
    line_end: &'static str,
}

impl UserFile {
    fn read(path: &Path) -> Result<UserFile, Failure> {
        let failed = |error: io::Error| {
            Failure::usage(
                format!("failed to read `{}`: {error}", path.display()),
                "mend it, or move it away, and set up again",
            )
        };
        // Through a link, as the user set it up.
        let is_link = fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink());
        let path = if is_link { fs::canonicalize(path).map_err(failed)? } else { path.to_owned() };
        let text = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        let has_crlf = text.as_ref().is_some_and(|text| text.contains("\r\n"));
        Ok(UserFile { path, text, line_end: if has_crlf { "\r\n" } else { "\n" } })
    }

    fn edit(self, after: Option<String>, note: Option<String>) -> FileEdit {
        FileEdit { path: self.path, before: self.text, after, folders: 0, note }
    }

    fn keep(self, why: &str) -> FileEdit {
        let note = format!("`{}` is left as it is: {why}", self.path.display());
        let after = self.text.clone();
        self.edit(after, Some(note))
    }
}

fn refuse_unreadable(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::usage(
        format!("`{}` cannot be read: {why}", path.display()),
        "mend it, or move it away, and set up again",
    )
}

/// The line that tells whether a text is as a version of this program wrote it.
fn sign_text(text: &str) -> String {
    let digest = BlobRef::for_bytes(text.as_bytes()).digest.to_string();
    format!("{text}\n<!-- cuegate: {} -->\n", &digest[..16])
}

fn is_signed(text: &str) -> bool {
    let end = text.trim_end().rfind("\n<!-- cuegate: ");
    end.is_some_and(|end| sign_text(&text[..end]) == text)
}

/// A file that is ours as a whole, in folders of its own. One that somebody else wrote or changed is left.
pub(super) fn edit_whole_file(path: &Path, text: &str, adds: bool) -> Result<FileEdit, Failure> {
    let file = UserFile::read(path)?;
    if file.text.as_ref().is_some_and(|found| !is_signed(found)) {
        return Ok(file.keep("it is not as setup wrote it"));
    }
    let after = adds.then(|| sign_text(text));
    Ok(FileEdit { folders: 3, ..file.edit(after, None) })
}

/// Whether an entry of a server is as setup writes it, without anything of the user's.
fn is_own_entry(command: Option<&str>, args: &[&str], keys: usize) -> bool {
    let name = command.and_then(|command| Path::new(command).file_name()?.to_str());
    keys == 2 && name == Some(SERVER) && args == ["mcp"]
}

/// The entry of the server in a file like `.mcp.json`. The rest of the file keeps its spelling.
pub(super) fn edit_json_server(path: &Path, program: &str, adds: bool) -> Result<FileEdit, Failure> {
    const SERVERS: &str = "mcpServers";
    let file = UserFile::read(path)?;
    let whole = |program: &str| {
        let entry = json!({ SERVERS: { SERVER: { "command": program, "args": ["mcp"] } } });
        format!("{entry:#}\n")
    };
    let Some(text) = file.text.clone() else {
        return Ok(file.edit(adds.then(|| whole(program)), None));
    };
    let read: Value = serde_json::from_str(&text).map_err(|error| refuse_unreadable(path, &error))?;
    if !read.is_object() {
        return Err(refuse_unreadable(path, &"it is no object"));
    }
    if !read[SERVERS].is_object() && !read[SERVERS].is_null() {
        return Err(refuse_unreadable(path, &"its `mcpServers` is no object"));
    }
    let entry = &read[SERVERS][SERVER];
    let args: Vec<&str> = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let command = entry["command"].as_str();
    let is_own = is_own_entry(command, &args, entry.as_object().map_or(0, serde_json::Map::len));
    match (adds, entry.is_null()) {
        (true, false) | (false, true) => return Ok(file.edit(Some(text), None)),
        (false, false) if !is_own => return Ok(file.keep("its entry `cuegate` is not as setup wrote it")),
        (false, false) if whole(command.unwrap_or_default()) == text => return Ok(file.edit(None, None)),
        _ => {}
    }
    let parsed = jsonc_parser::parse_to_ast(&text, &CollectOptions::default(), &ParseOptions::default())
        .map_err(|error| refuse_unreadable(path, &error))?;
    let Some(top) = parsed.value.as_ref().and_then(|value| value.as_object()) else {
        return Err(refuse_unreadable(path, &"it is no object"));
    };
    let servers = top.get_object(SERVERS);
    let after = match (adds, servers) {
        (true, Some(servers)) => {
            let entry = spell_entry(program, file.line_end);
            insert_first(
                &text,
                servers.range.start,
                servers.properties.is_empty(),
                &entry,
                "  ",
                file.line_end,
            )
        }
        (true, None) if top.get(SERVERS).is_some() => {
            return Err(refuse_unreadable(path, &"its `mcpServers` is no object"));
        }
        (true, None) => {
            let nl = file.line_end;
            let entry = format!("  \"{SERVERS}\": {{{nl}{}{nl}  }}", spell_entry(program, nl));
            insert_first(&text, top.range.start, top.properties.is_empty(), &entry, "", nl)
        }
        (false, servers) => {
            let property = servers.and_then(|servers| servers.get(SERVER));
            property.map_or_else(
                || text.clone(),
                |property| cut_property(&text, property.range.start, property.range.end),
            )
        }
    };
    Ok(file.edit(Some(after), None))
}

fn spell_entry(program: &str, nl: &str) -> String {
    let program = json!(program);
    format!("    \"{SERVER}\": {{{nl}      \"command\": {program},{nl}      \"args\": [\"mcp\"]{nl}    }}")
}

/// Puts a property at the beginning of the object that begins at `at`.
fn insert_first(text: &str, at: usize, is_empty: bool, entry: &str, indent: &str, nl: &str) -> String {
    let (head, tail) = text.split_at(at + 1);
    match is_empty {
        true => format!("{head}{nl}{entry}{nl}{indent}{}", tail.trim_start()),
        false => format!("{head}{nl}{entry},{tail}"),
    }
}

/// Takes a property out, with its comma.
fn cut_property(text: &str, begin: usize, end: usize) -> String {
    let (head, tail) = (text[..begin].trim_end(), &text[end..]);
    match (tail.trim_start().strip_prefix(','), head.strip_suffix(',')) {
        (Some(rest), _) => format!("{head}{rest}"),
        (None, Some(head)) => format!("{head}{tail}"),
        (None, None) => format!("{head}{}", tail.trim_start()),
    }
}

/// The entry of the server in the settings of Codex, whose comments stay.
pub(super) fn edit_toml_server(path: &Path, program: &str, adds: bool) -> Result<FileEdit, Failure> {
    const SERVERS: &str = "mcp_servers";
    let file = UserFile::read(path)?;
    let text = file.text.clone().unwrap_or_default();
    let mut document: DocumentMut = text.parse().map_err(|error| refuse_unreadable(path, &error))?;
    let is_table = |item: &Item| item.is_table_like();
    if document.get(SERVERS).is_some_and(|servers| !is_table(servers)) {
        return Err(refuse_unreadable(path, &"its `mcp_servers` is no table"));
    }
    let whole = |program: &str| {
        let program = value(program);
        format!("[{SERVERS}.{SERVER}]\ncommand = {}\nargs = [\"mcp\"]\n", program.to_string().trim())
    };
    let entry = document.get(SERVERS).and_then(|servers| servers.get(SERVER));
    if adds {
        if entry.is_some() {
            let after = file.text.clone();
            return Ok(file.edit(after, None));
        }
        if text.trim().is_empty() {
            return Ok(file.edit(Some(whole(program)), None));
        }
        let servers = document.entry(SERVERS).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let mut entry = Table::new();
        entry.insert("command", value(program));
        entry.insert("args", value(toml_edit::Array::from_iter(["mcp"])));
        if let Some(servers) = servers.as_table_like_mut() {
            servers.insert(SERVER, Item::Table(entry));
        }
    } else {
        let Some(entry) = entry else {
            let after = file.text.clone();
            return Ok(file.edit(after, None));
        };
        let args: Vec<&str> = entry
            .get("args")
            .and_then(Item::as_array)
            .into_iter()
            .flatten()
            .filter_map(|arg| arg.as_str())
            .collect();
        let command = entry.get("command").and_then(Item::as_str);
        if !is_own_entry(command, &args, entry.as_table_like().map_or(0, |table| table.len())) {
            return Ok(file.keep("its `[mcp_servers.cuegate]` is not as setup wrote it"));
        }
        if whole(command.unwrap_or_default()) == text {
            return Ok(file.edit(None, None));
        }
        if let Some(servers) = document.get_mut(SERVERS).and_then(Item::as_table_like_mut) {
            servers.remove(SERVER);
        }
        let is_left =
            |servers: &Item| servers.as_table().is_some_and(|table| table.is_implicit() && table.is_empty());
        if document.get(SERVERS).is_some_and(is_left) {
            document.remove(SERVERS);
        }
    }
    let after = document.to_string().replace("\r\n", "\n").replace('\n', file.line_end);
    Ok(file.edit(Some(after), None))
}

/// A section of a file of the user's.
pub(super) fn edit_block(path: &Path, text: &str, adds: bool) -> Result<FileEdit, Failure> {
    let file = UserFile::read(path)?;
    let (whole, nl) = (file.text.clone().unwrap_or_default(), file.line_end);
    let (begins, ends) = (whole.matches(BEGIN).count(), whole.matches(END).count());
    let rest = match (whole.find(BEGIN), whole.find(END)) {
        (None, None) => whole,
        (Some(begin), Some(end)) if begins == 1 && ends == 1 && begin < end => {
            let head = &whole[..begin];
            // The empty line that was put before it.
            let head = head.strip_suffix(nl).filter(|head| head.ends_with(nl)).unwrap_or(head);
            let tail = &whole[end + END.len()..];
            format!("{head}{}", tail.strip_prefix(nl).unwrap_or(tail))
        }
        _ => {
            return Err(Failure::usage(
                format!("the marks `{BEGIN}` and `{END}` in `{}` are no pair", path.display()),
                "remove the section between them by hand, and the marks",
            ));
        }
    };
    let after = match adds {
        true => {
            let gap = if rest.trim().is_empty() { "" } else { nl };
            let end = if rest.is_empty() || rest.ends_with(nl) { "" } else { nl };
            let text = text.trim_end().replace('\n', nl);
            Some(format!("{rest}{end}{gap}{BEGIN}{nl}{text}{nl}{END}{nl}"))
        }
        false => Some(rest).filter(|rest| !rest.is_empty()),
    };
    Ok(file.edit(after, None))
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
        let whole = |path: &Path, adds: bool| edit_whole_file(path, "text", adds);
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
        for text in [
            "{}",
            "{\"mcpServers\":{}}\n",
            "{\r\n\t\"n\": 12345678901234567890123,\r\n\t\"caf\\u00e9\": 1\r\n}\r\n",
            "{\"mcpServers\":{\"a\":{\"command\":\"x\"}},\"z\":[]}",
        ] {
            let (added, left) = go_round(Some(text), json);
            let servers = serde_json::from_str::<Value>(&added).unwrap()["mcpServers"].clone();
            assert_eq!(servers["cuegate"]["args"], json!(["mcp"]), "{added}");
            assert_eq!(
                added.matches("\r\n").count(),
                if text.contains('\r') { added.matches('\n').count() } else { 0 }
            );
            // What was empty before may be spelt in another way.
            let compact = |text: &str| {
                text.split_whitespace()
                    .collect::<String>()
                    .replace(",\"mcpServers\":{}", "")
                    .replace("\"mcpServers\":{},", "")
                    .replace("\"mcpServers\":{}", "")
            };
            assert_eq!(compact(&left.unwrap()), compact(text));
        }
        let (_, left) = go_round(Some("a = 1\r\n\r\n[mcp_servers]\r\n"), toml);
        assert_eq!(left.as_deref(), Some("a = 1\r\n\r\n[mcp_servers]\r\n"));
        let (added, left) = go_round(Some("Mine\r\n\r\n\r\n"), block);
        assert_eq!(
            (added.matches("\r\n").count(), left.as_deref()),
            (added.matches('\n').count(), Some("Mine\r\n\r\n\r\n"))
        );
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
        for (text, edit) in [
            (own, &(|path: &Path| edit_json_server(path, "cuegate", false)) as &dyn Fn(&Path) -> _),
            (
                "[mcp_servers.cuegate]\ncommand = \"cuegate\"\nargs = [\"mcp\"]\nenv_vars = [\"A\"]\n",
                &|path| edit_toml_server(path, "cuegate", false),
            ),
            ("changed by the user", &|path| edit_whole_file(path, "text", false)),
            ("changed by the user", &|path| edit_whole_file(path, "text", true)),
        ] {
            let (_folder, path) = file(Some(text));
            let edit = edit(&path).unwrap();
            assert!(
                !edit.changes() && edit.note.is_some_and(|note| note.contains("not as setup wrote it")),
                "{text}"
            );
        }
        // An older text of ours is renewed and taken back.
        let (_folder, path) = file(Some(&sign_text("an older text")));
        assert!(edit_whole_file(&path, "text", true).unwrap().changes());
        assert_eq!(edit_whole_file(&path, "text", false).unwrap().after, None);
        // A section without its end.
        let (_folder, path) = file(Some(&format!("{BEGIN}\nours\nUSER TEXT\n")));
        for adds in [true, false] {
            assert!(edit_block(&path, "x", adds).unwrap_err().message.contains("are no pair"));
        }
        // Links are followed, and one that leads nowhere is an error.
        let (folder, path) = file(Some("{}"));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        edit_json_server(&link, "cuegate", true).unwrap().write().unwrap();
        edit_json_server(&link, "cuegate", false).unwrap().write().unwrap();
        assert!(link.is_symlink() && !fs::read_to_string(&path).unwrap().contains("cuegate"));
        fs::remove_file(&path).unwrap();
        assert!(edit_json_server(&link, "cuegate", true).is_err());
        for text in ["{", "[]", r#"{"mcpServers": 3}"#] {
            let (_folder, path) = file(Some(text));
            assert!(edit_json_server(&path, "cuegate", true).unwrap_err().message.contains("cannot be read"));
        }
        let (_folder, path) = file(Some("model ="));
        assert!(edit_toml_server(&path, "cuegate", true).unwrap_err().message.contains("cannot be read"));
    }
}
