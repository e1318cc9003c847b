//! The user's settings of git in a sandbox: a copy without keys and programs.

use std::{path::Path, time::Duration};

/// The settings that are copied: names, or beginnings of names with `*`.
const COPIED: [&str; 22] = [
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

/// Settings that name a key.
const KEYS: [&str; 1] = ["user.signingkey"];

/// Time limit for git to list the settings.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The user's settings as the text of a settings file.
pub(super) fn copy() -> String {
    let listed = cuegate_provider::look(
        Path::new("git"),
        &["config", "--global", "--includes", "--list", "-z"],
        &[],
        TIMEOUT,
    );
    text(&listed.unwrap_or_default())
}

/// Writes `name LF value NUL` entries as a settings file.
fn text(listed: &str) -> String {
    let mut text = String::new();
    for entry in listed.split('\0') {
        let Some((name, value)) = entry.split_once('\n') else { continue };
        let copied = COPIED.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == *pattern,
        });
        let Some((section, key)) = name.split_once('.').filter(|(_, key)| !key.contains('.')) else {
            continue;
        };
        if copied && !KEYS.contains(&name) {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            text.push_str(&format!("[{section}]\n\t{key} = \"{value}\"\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_keys_are_not_copied() {
        let listed = "user.name\nA \"B\"\0user.signingkey\nX\0core.fsmonitor\nevil\0url.https://t@h/.insteadof\nx\0\
                      http.extraheader\nAuthorization: x\0credential.helper\nstore\0core.autocrlf\ninput\0filter.x.clean\ny\0";
        assert_eq!(text(listed), "[user]\n\tname = \"A \\\"B\\\"\"\n[core]\n\tautocrlf = \"input\"\n");
    }
}
