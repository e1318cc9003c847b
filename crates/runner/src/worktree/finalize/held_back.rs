//! Files that a reviewer would not let into a commit: secrets, very large files, and what package managers install.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_provider::find_secret_forms;

use super::super::error::WorktreeError;
use super::super::tree_edit::TreeEdit;
use super::contents::RunWork;

/// The size from which a file is held back, in bytes.
const LARGE: u64 = 10 << 20;
/// The largest file in which keys are looked for, in bytes, and how many are read at a time.
const KEY_FILE_MAX: u64 = 1 << 20;
const PART: usize = 500;

/// Folders that package managers and build tools fill.
const INSTALLED: [&str; 10] = [
    "node_modules",
    "bower_components",
    "__pycache__",
    ".venv",
    ".tox",
    ".gradle",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".parcel-cache",
];
/// A folder with one of these files was made by a tool.
const MARKS: [&str; 2] = ["CACHEDIR.TAG", "pyvenv.cfg"];

/// Endings of `.env` files that are made to be shared.
const SHARED_ENV: [&str; 7] = ["example", "sample", "template", "dist", "defaults", "schema", "d.ts"];
/// Names of files with credentials.
const SECRET_NAMES: [&str; 10] = [
    ".netrc",
    ".pypirc",
    ".git-credentials",
    ".pgpass",
    ".htpasswd",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials.json",
];
/// Endings of files that hold keys in a binary form.
const KEY_STORES: [&str; 6] = ["p12", "pfx", "jks", "keystore", "kdbx", "ppk"];

/// Refuses a commit with such files, unless `allowed` names them: paths, with `*` as a wildcard. The text names
/// them and the way out.
pub(super) fn check_held_back_files(
    work: &RunWork<'_>,
    edits: &[TreeEdit],
    allowed: &[String],
) -> Result<Result<(), String>, WorktreeError> {
    const SHOWN: usize = 10;
    let held = find_held_back(work, edits, allowed)?;
    if held.is_empty() {
        return Ok(Ok(()));
    }
    let mut shown: Vec<String> =
        held.iter().take(SHOWN).map(|(name, why)| format!("`{name}` ({why})")).collect();
    if held.len() > SHOWN {
        shown.push(format!("{} more", held.len() - SHOWN));
    }
    let names: Vec<String> =
        held.keys().take(SHOWN).map(|name| format!("{:?}", name.trim_end_matches('/'))).collect();
    Ok(Err(format!(
        "held back: {}. Remove them in the worktree and retry, or allow them: `allow = [{}]` in `[worktree]` of \
         cuegate.toml and `cuegate retry --reload-config`",
        shown.join(", "),
        names.join(", ")
    )))
}

/// The files among these edits that a reviewer would not let in, and why.
pub(super) fn find_held_back(
    work: &RunWork<'_>,
    edits: &[TreeEdit],
    allowed: &[String],
) -> Result<BTreeMap<String, &'static str>, WorktreeError> {
    let is_allowed =
        |path: &str| allowed.iter().any(|pattern| matches_pattern(pattern.trim_start_matches("./"), path));
    // A file that the base has under this name was let in before.
    let mut held: BTreeMap<String, &'static str> = BTreeMap::new();
    let installed = installed_folders(edits.iter().filter(|edit| edit.is_addition()));
    let mut looked_into = Vec::new();
    for edit in edits.iter().filter(|edit| edit.leaves_file() || edit.leaves_link()) {
        let name = edit.name();
        if is_allowed(&name) {
            continue;
        }
        if let Some(folder) = installed.iter().find(|folder| name.starts_with(&format!("{folder}/"))) {
            if edit.is_addition() && !is_allowed(folder) {
                held.insert(format!("{folder}/"), "installed or built, and nothing ignores it");
            }
        } else if edit.is_addition() && has_secret_name(&name) {
            held.insert(name, "it is named like a file with secrets");
        } else if edit.leaves_file() {
            looked_into.push(edit);
        }
    }
    let objects: Vec<&str> = looked_into.iter().map(|edit| edit.after.1.as_str()).collect();
    let mut small = Vec::new();
    for (edit, size) in looked_into.iter().zip(work.trees.sizes(&objects)?) {
        if size > LARGE {
            held.insert(edit.name(), "it has more than 10 MB");
        } else if size <= KEY_FILE_MAX {
            small.push(*edit);
        }
    }
    for part in small.chunks(PART) {
        let objects: Vec<&str> = part.iter().map(|edit| edit.after.1.as_str()).collect();
        let contents = work.trees.contents(&objects)?;
        for (edit, content) in part.iter().zip(contents) {
            let found = find_secrets(&content);
            if found.is_empty() {
                continue;
            }
            let before = match edit.is_addition() {
                true => Vec::new(),
                false => work.trees.contents(&[&edit.before.1])?,
            };
            let known: BTreeSet<String> = before.iter().flat_map(|content| find_secrets(content)).collect();
            if !found.is_subset(&known) {
                held.insert(edit.name(), "it holds a key, a token or a login");
            }
        }
    }
    Ok(held)
}

/// The topmost folders among these paths that tools fill.
fn installed_folders<'e>(edits: impl Iterator<Item = &'e TreeEdit>) -> Vec<String> {
    let mut folders = Vec::new();
    for edit in edits {
        let name = edit.name();
        let parts: Vec<&str> = name.split('/').collect();
        let by_name = parts[..parts.len() - 1].iter().position(|part| INSTALLED.contains(part));
        let marked = MARKS.contains(parts.last().unwrap_or(&"")) && parts.len() > 1;
        let depth = by_name.map(|at| at + 1).or_else(|| marked.then(|| parts.len() - 1));
        if let Some(depth) = depth {
            folders.push(parts[..depth].join("/"));
        }
    }
    folders.sort();
    folders.dedup();
    folders
}

fn has_secret_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    if name == ".env" || name == ".envrc" || path.ends_with(".aws/credentials") {
        return true;
    }
    if path.split('/').any(|folder| folder == ".env") {
        return true;
    }
    if let Some(kind) = name.strip_prefix(".env.") {
        return !SHARED_ENV.iter().any(|shared| kind == *shared || kind.ends_with(&format!(".{shared}")));
    }
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    SECRET_NAMES.contains(&name.as_str()) || KEY_STORES.contains(&ending) || name.ends_with(".env")
}

/// The keys and tokens in a text, the beginnings of private keys in PEM form, and the logins of package registries.
fn find_secrets(text: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().map(str::trim).filter(|line| {
        let is_login = line.split_once("_authToken=").is_some_and(|(_, token)| !token.starts_with("${"));
        let is_key = line.strip_prefix("-----BEGIN ").is_some_and(|rest| {
            rest.ends_with("PRIVATE KEY-----") || rest.ends_with("PRIVATE KEY BLOCK-----")
        });
        is_login || is_key || line.contains("PuTTY-User-Key-File-")
    });
    lines.chain(find_secret_forms(&text)).map(str::to_owned).collect()
}

/// Whether a path, or a folder above it, matches a pattern with `*` as a wildcard, which also matches `/`.
fn matches_pattern(pattern: &str, path: &str) -> bool {
    fn whole(pattern: &[u8], path: &[u8]) -> bool {
        match pattern {
            [] => path.is_empty(),
            [b'*', rest @ ..] => (0..=path.len()).any(|skipped| whole(rest, &path[skipped..])),
            [byte, rest @ ..] => path.first() == Some(byte) && whole(rest, &path[1..]),
        }
    }
    let pattern = pattern.trim_end_matches('/');
    let above = path.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| &path[..at]);
    above.chain([path]).any(|path| whole(pattern.as_bytes(), path.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in
            [".env", "a/.env.local", "b/.env.production", ".envrc", "deploy/id_ed25519", "c.p12", "prod.env"]
        {
            assert!(has_secret_name(name), "{name}");
        }
        for name in
            [".env.example", "a/.env.local.sample", "env.ts", "id_rsa.pub", "environment", ".env.d.ts"]
        {
            assert!(!has_secret_name(name), "{name}");
        }
        assert!(!find_secrets(b"x\n-----BEGIN OPENSSH PRIVATE KEY-----\n").is_empty());
        assert!(!find_secrets(b"//registry.npmjs.org/:_authToken=npm_x\n").is_empty());
        assert!(find_secrets(b"//registry.npmjs.org/:_authToken=${NPM_TOKEN}\n").is_empty());
        assert!(find_secrets(b"looks for `-----BEGIN PRIVATE KEY-----` in files\n").is_empty());
    }

    #[test]
    fn a_pattern_allows_files_and_folders() {
        for (pattern, path, is) in [
            (".env.ci", ".env.ci", true),
            ("fixtures/*.pem", "fixtures/a/b.pem", true),
            ("vendor", "vendor/node_modules/x", true),
            ("vendor/", "vendored/x", false),
            ("*.pem", "x.pem.bak", false),
        ] {
            assert_eq!(matches_pattern(pattern, path), is, "{pattern} {path}");
        }
    }
}
