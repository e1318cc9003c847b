//! Copies settings of git by an allow-list, for our own git and for that in the sandbox.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::WorktreeError;
use super::git;

/// Settings that are copied from any settings file: names, or beginnings of names with `*`. None of them names a program
/// that git starts while it works with files of the repository.
const COPIED: [&str; 46] = [
    "author.*",
    "branch.*",
    "committer.*",
    "core.abbrev",
    "core.autocrlf",
    "core.bigfilethreshold",
    "core.compression",
    "core.eol",
    "core.excludesfile",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.loosecompression",
    "core.precomposeunicode",
    "core.protecthfs",
    "core.protectntfs",
    "core.repositoryformatversion",
    "core.sharedrepository",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
    "diff.algorithm",
    "diff.renamelimit",
    "diff.renames",
    "extensions.compatobjectformat",
    "extensions.objectformat",
    "extensions.partialclone",
    "extensions.preciousobjects",
    "extensions.refstorage",
    "extensions.relativeworktrees",
    "http.*",
    "i18n.*",
    "index.version",
    "init.defaultbranch",
    "init.defaultobjectformat",
    "merge.conflictstyle",
    "merge.directoryrenames",
    "merge.renamelimit",
    "merge.renames",
    "pack.*",
    "push.default",
    "push.followtags",
    "push.autosetupremote",
    "safe.directory",
    "submodule.*",
    "user.*",
];

/// Settings of a remote that are copied.
const OF_REMOTE: [&str; 9] =
    ["url", "pushurl", "fetch", "push", "tagopt", "prune", "mirror", "promisor", "partialclonefilter"];

/// The values of the settings `filter.lfs.*` that are copied: those that `git lfs install` writes. Git gives them to a
/// shell.
const OF_LFS: [&str; 7] = [
    "git-lfs clean -- %f",
    "git-lfs filter-process",
    "git-lfs filter-process --skip",
    "git-lfs smudge --skip -- %f",
    "git-lfs smudge -- %f",
    "git-lfs smudge --skip %f",
    "true",
];

/// Settings that [`COPIED`] covers and that name programs.
const PROGRAMS: [&str; 2] = ["submodule.recurse", ".update"];

/// Settings of the user that are copied into the sandbox: none of them holds a key or names a program.
const INSIDE: [&str; 22] = [
    "author.*",
    "branch.autosetup*",
    "color.*",
    "column.*",
    "committer.*",
    "core.abbrev",
    "core.autocrlf",
    "core.eol",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.quotepath",
    "core.safecrlf",
    "diff.algorithm",
    "i18n.*",
    "init.defaultbranch",
    "merge.conflictstyle",
    "pull.ff",
    "pull.rebase",
    "push.default",
    "rebase.autostash",
    "safe.directory",
    "user.*",
];

/// The settings for our own git in a repository, as the text of a settings file. `files` are those of the repository and
/// of the worktree.
///
/// # Errors
/// When git cannot read the settings.
pub(super) fn render_allowed_settings(
    git_dir: &Path,
    [common, of_worktree]: &[PathBuf; 2],
) -> Result<String, WorktreeError> {
    // Lists settings and starts no program. The user's own settings may depend on the repository (`includeIf`).
    let mut command = build_git_command();
    command.args(["config", "--includes", "--list", "--show-scope", "-z"]).env("GIT_DIR", git_dir);
    let users = entries_of(command, true)?;
    let local = of_file(common)?;
    let by_worktree =
        local.iter().any(|(name, value)| name == "extensions.worktreeconfig" && value != "false");
    let of_worktree = if by_worktree { of_file(of_worktree)? } else { Vec::new() };
    let mut text = String::new();
    for (name, value) in users.into_iter().chain(local).chain(of_worktree) {
        if is_copied(&name) || (name.starts_with("filter.lfs.") && OF_LFS.contains(&value.as_str())) {
            write_entry(&name, &value, &mut text);
        }
    }
    Ok(text)
}

/// The user's settings for git in the sandbox, as the text of a settings file. Empty if git cannot list them.
pub(crate) fn render_sandbox_settings() -> String {
    let mut command = build_git_command();
    command.args(["config", "--global", "--includes", "--list", "-z"]);
    let mut text = String::new();
    for (name, value) in entries_of(command, false).unwrap_or_default() {
        if INSIDE.iter().any(|pattern| matches_name_pattern(pattern, &name)) && name != "user.signingkey" {
            write_entry(&name, &value, &mut text);
        }
    }
    text
}

/// The text of a settings file for a repository whose references are files.
pub(super) fn with_ref_files(text: &str) -> String {
    let is_format = |line: &&str| !line.trim_start().starts_with("refstorage = ");
    text.lines().filter(is_format).map(|line| format!("{line}\n")).collect()
}

/// Whether a pattern, a name or the beginning of one with `*`, covers a name.
pub(crate) fn matches_name_pattern(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

/// Whether a setting is copied.
fn is_copied(name: &str) -> bool {
    if let Some((_, key)) = name.strip_prefix("remote.").and_then(|rest| rest.rsplit_once('.')) {
        return OF_REMOTE.contains(&key);
    }
    COPIED.iter().any(|pattern| matches_name_pattern(pattern, name))
        && !PROGRAMS.iter().any(|end| name.ends_with(end))
}

/// The settings of one file, without the files that it includes.
pub(super) fn of_file(file: &Path) -> Result<Vec<(String, String)>, WorktreeError> {
    if !file.is_file() {
        return Ok(Vec::new());
    }
    let mut command = build_git_command();
    command.args(["config", "--no-includes", "--list", "-z", "--file"]).arg(file);
    entries_of(command, false)
}

/// The entries that git prints: `name LF value NUL`, each after its scope and NUL if `scoped`. Then only those of the
/// system and the user are returned.
pub(super) fn entries_of(mut command: Command, scoped: bool) -> Result<Vec<(String, String)>, WorktreeError> {
    let listed = command.output().map_err(WorktreeError::Start)?;
    if !listed.status.success() {
        return Err(git::build_git_error(&["config", "--list"], &listed));
    }
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut parts = listed.split('\0');
    let mut entries = Vec::new();
    loop {
        let scope = if scoped { parts.next() } else { Some("global") };
        let (Some(scope), Some(entry)) = (scope, parts.next()) else { return Ok(entries) };
        // A name without a value is true.
        let (name, value) = entry.split_once('\n').unwrap_or((entry, "true"));
        if std::matches!(scope, "system" | "global") && !name.is_empty() {
            entries.push((name.to_owned(), value.to_owned()));
        }
    }
}

/// Writes a setting: `[section "subsection"] key = "value"`.
pub(super) fn write_entry(name: &str, value: &str, text: &mut String) {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let (Some((section, _)), Some((_, key))) = (name.split_once('.'), name.rsplit_once('.')) else { return };
    let between =
        name.get(section.len() + 1..name.len() - key.len()).and_then(|between| between.strip_suffix('.'));
    match between {
        Some(subsection) if !subsection.contains('\n') => {
            text.push_str(&format!("[{section} \"{}\"]\n", quoted(subsection)));
        }
        Some(_) => return,
        None => text.push_str(&format!("[{section}]\n")),
    }
    let value = quoted(value).replace('\n', "\\n").replace('\t', "\\t");
    text.push_str(&format!("\t{key} = \"{value}\"\n"));
}

/// Git, to read settings. It is in no repository unless one is named.
pub(super) fn build_git_command() -> Command {
    let mut command = Command::new(git::locate_git());
    git::clear_variables(&mut command);
    command.current_dir("/").stdin(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_settings_are_copied() {
        for (name, copied) in [
            ("core.filemode", true),
            ("user.email", true),
            ("remote.origin.url", true),
            ("remote.a.b.fetch", true),
            ("branch.main.merge", true),
            ("submodule.lib.url", true),
            ("core.fsmonitor", false),
            ("core.hookspath", false),
            ("core.sshcommand", false),
            ("core.worktree", false),
            ("core.attributesfile", false),
            ("core.pager", false),
            ("diff.external", false),
            ("diff.x.textconv", false),
            ("extensions.worktreeconfig", false),
            ("filter.x.clean", false),
            ("gpg.program", false),
            ("include.path", false),
            ("merge.x.driver", false),
            ("remote.origin.uploadpack", false),
            ("remote.origin.vcs", false),
            ("submodule.lib.update", false),
        ] {
            assert_eq!(is_copied(name), copied, "{name}");
        }
    }

    #[test]
    fn no_key_or_program_of_the_user_gets_into_the_sandbox() {
        let passes = |name: &str| INSIDE.iter().any(|pattern| matches_name_pattern(pattern, name));
        for name in ["user.name", "core.autocrlf", "color.ui"] {
            assert!(passes(name), "{name}");
        }
        for name in [
            "core.fsmonitor",
            "credential.helper",
            "filter.x.clean",
            "http.extraheader",
            "url.https://t@h/.insteadof",
        ] {
            assert!(!passes(name), "{name}");
        }
    }
}
