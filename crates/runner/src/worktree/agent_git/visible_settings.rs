//! Which settings of a repository the git of agents has: those without secrets.

use std::path::Path;

use super::super::{
    error::WorktreeError,
    settings::{build_git_command, entries_of, of_file, write_entry},
};

/// The settings of a repository for the git of agents, as the text of a settings file: without secrets, without those
/// that make git start a service or read other files, and for references in files.
///
/// # Errors
/// When git cannot read the settings.
pub(super) fn read_settings_for_agents(git_dir: &Path, common: &Path) -> Result<String, WorktreeError> {
    let mut command = build_git_command();
    command.args(["config", "--local", "--includes", "--list", "-z"]).env("GIT_DIR", git_dir);
    let mut settings = entries_of(command, false)?;
    let by_worktree =
        settings.iter().any(|(name, value)| name == "extensions.worktreeconfig" && value != "false");
    // In a linked worktree, `--local` already names the shared file.
    if by_worktree && common.join("config").is_file() {
        settings.extend(of_file(&git_dir.join("config.worktree"))?);
    }
    let mut text = String::new();
    for (name, value) in settings {
        if !is_hidden(&name, &value) {
            write_entry(&name, &without_secrets(&value), &mut text);
        }
    }
    Ok(text)
}

/// Sections that hold logins, start programs of the user's or read other files.
const SECTIONS: [&str; 5] = ["credential.", "imap.", "include.", "includeif.", "sendemail."];
/// Settings that make git start a service or a program with a login, or that have no use in the git folder of agents.
const NAMES: [&str; 8] = [
    "core.askpass",
    "core.fsmonitor",
    "core.gitproxy",
    "core.splitindex",
    "core.sshcommand",
    "core.untrackedcache",
    "extensions.refstorage",
    "extensions.worktreeconfig",
];
/// Words in the name of a setting that holds a secret.
const SECRETS: [&str; 10] = [
    "apikey",
    "auth",
    "cookie",
    "credential",
    "extraheader",
    "passw",
    "privatekey",
    "secret",
    "sslkey",
    "token",
];
/// Words in a command line that holds a secret.
const SECRET_VALUES: [&str; 8] =
    ["apikey", "api-key", "api_key", "authorization", "bearer ", "passw", "secret", "token"];

/// Sections whose values are names and paths, which may contain such words, and addresses, which are cleaned. Without
/// `core.worktree` a submodule named `tokenizer` would not work.
const NO_COMMANDS: [&str; 9] =
    ["author.", "branch.", "committer.", "core.", "lfs.", "remote.", "submodule.", "url.", "user."];

/// Whether a setting holds a secret, or has no use in the git folder of agents.
fn is_hidden(name: &str, value: &str) -> bool {
    let key = name.rsplit_once('.').map_or(name, |(_, key)| key);
    let is_command = !NO_COMMANDS.iter().any(|section| name.starts_with(section));
    let value = value.to_ascii_lowercase();
    SECTIONS.iter().any(|section| name.starts_with(section))
        || NAMES.contains(&name)
        || SECRETS.iter().any(|secret| key.contains(secret))
        || (is_command && SECRET_VALUES.iter().any(|word| value.contains(word)))
        // The address is a part of the name of a setting for it.
        || without_secrets(name) != name
}

/// A text without the secrets in its addresses: `https://user:token@host/x?key=y` becomes `https://host/x`. The user of an
/// address for ssh stays, its password does not. A part of the path that looks like a key becomes `***`.
fn without_secrets(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        clean.push_str(before);
        let end = after.find([' ', '\'', '"']).unwrap_or(after.len());
        let (address, behind) = after.split_at(end);
        let address = address.split(['?', '#']).next().unwrap_or_default();
        let (authority, path) = match address.split_once('/') {
            Some((authority, path)) => (authority, Some(path)),
            None => (address, None),
        };
        match authority.rsplit_once('@') {
            Some((login, host)) if before.ends_with("ssh://") => {
                let user = login.split(':').next().unwrap_or_default();
                clean.push_str(&format!("{user}@{host}"));
            }
            Some((_, host)) => clean.push_str(host),
            None => clean.push_str(authority),
        }
        for part in path.into_iter().flat_map(|path| path.split('/')) {
            clean.push('/');
            clean.push_str(if looks_like_key(part) { "***" } else { part });
        }
        rest = behind;
    }
    clean + rest
}

/// Whether a part of a path is a key rather than a name: long, of letters and digits mixed.
fn looks_like_key(part: &str) -> bool {
    const LENGTH_MIN: usize = 20;
    const DIGITS_MIN: usize = 3;
    let part = part.strip_suffix(".git").unwrap_or(part);
    let longest = part.split(|c: char| !c.is_ascii_alphanumeric()).max_by_key(|word| word.len());
    let word = longest.unwrap_or_default();
    word.len() >= LENGTH_MIN
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
        && word.bytes().filter(u8::is_ascii_digit).count() >= DIGITS_MIN
}

#[cfg(test)]
mod tests {
    use super::{is_hidden, without_secrets};

    #[test]
    fn addresses_lose_their_secrets() {
        for (address, clean) in [
            ("https://user:s3cret@example.com/x.git", "https://example.com/x.git"),
            ("https://example.com/x.git?token=abc#y", "https://example.com/x.git"),
            ("https://example.com/glpat0123456789abcdefghij/x.git", "https://example.com/***/x.git"),
            ("https://example.com/ghp_0123456789abcdefghijABCDEF/x.git", "https://example.com/***/x.git"),
            ("ssh://git:s3cret@example.com:22/x", "ssh://git@example.com:22/x"),
            ("git@example.com:me/x.git", "git@example.com:me/x.git"),
            (
                "https://example.com/a-long-name-of-a-repository-2026/x",
                "https://example.com/a-long-name-of-a-repository-2026/x",
            ),
            ("!curl 'https://u:p@example.com/x?k=v' -o y", "!curl 'https://example.com/x' -o y"),
            ("file:///srv/x", "file:///srv/x"),
        ] {
            assert_eq!(without_secrets(address), clean);
        }
    }

    #[test]
    fn settings_with_secrets_are_hidden() {
        for (name, value) in [
            ("sendemail.smtppass", "x"),
            ("core.sshcommand", "ssh -i /home/me/key"),
            ("alias.up", "!curl -H 'Authorization: Basic eHg=' https://example.com"),
            ("alias.up", "!UPLOAD_TOKEN=x make upload"),
            ("http.https://user:x@example.com/.proxy", "http://proxy"),
            ("url.https://x@example.com/.insteadof", "https://example.com/"),
        ] {
            assert!(is_hidden(name, value), "{name} {value}");
        }
        for (name, value) in [
            ("alias.st", "status"),
            ("branch.token-refresh.merge", "refs/heads/token-refresh"),
            ("author.email", "secretary@example.com"),
            ("core.hookspath", ".husky"),
            ("core.worktree", "../../../vendor/tokenizer"),
            ("lfs.url", "https://example.com/tokens"),
            ("remote.origin.url", "https://example.com/me/tokenizer.git"),
        ] {
            assert!(!is_hidden(name, value), "{name} {value}");
        }
    }
}
