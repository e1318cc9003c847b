//! Finds the token and the repository.

use std::{
    ffi::OsString,
    io,
    process::{Command, Stdio},
};

/// The environment variables with tokens of GitHub. Agents do not see them.
pub const TOKEN_VARS: [&str; 4] =
    ["GITHUB_TOKEN", "GH_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN"];

/// The token of `GITHUB_TOKEN` or `GH_TOKEN`, else of the GitHub CLI for the host of `api`.
///
/// # Errors
/// When there is none; the text says where it was looked for.
pub fn find_token(api: &str, var: impl Fn(&str) -> Option<OsString>) -> Result<String, String> {
    for name in ["GITHUB_TOKEN", "GH_TOKEN"] {
        let value = var(name).map(|value| value.to_string_lossy().trim().to_owned());
        if let Some(token) = value.filter(|token| !token.is_empty()) {
            return Ok(token);
        }
    }
    let host = host_of_api(api);
    let mut command = Command::new(cuegate_provider::locate_or_missing("gh"));
    command.args(["auth", "token", "--hostname", &host]).stdin(Stdio::null()).stderr(Stdio::null());
    let why = match command.output() {
        Ok(output) if output.status.success() => {
            let token = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if !token.is_empty() {
                return Ok(token);
            }
            format!("`gh auth token --hostname {host}` printed none")
        }
        Ok(_) => format!("`gh` is not logged in to {host}"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => "`gh` is not installed".to_owned(),
        Err(error) => format!("`gh` cannot be started: {error}"),
    };
    Err(format!("no token for {host}: `GITHUB_TOKEN` and `GH_TOKEN` are not set, and {why}"))
}

/// The host of the pages of an API: `github.com` for `https://api.github.com`.
fn host_of_api(api: &str) -> String {
    let rest = api.split_once("://").map_or(api, |(_, rest)| rest);
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    host.strip_prefix("api.").unwrap_or(host).to_owned()
}

/// The owner and name of a repository from the address of a remote: `owner/name`. `None` for a path or another form.
pub fn repository_of(remote: &str) -> Option<String> {
    let remote = remote.trim();
    let path = match remote.split_once("://") {
        Some(("https" | "http" | "ssh" | "git" | "git+ssh", rest)) => rest.split_once('/')?.1,
        Some(_) => return None,
        // `git@github.com:owner/name.git`; a path with a colon has a slash before it.
        None => remote.split_once(':').filter(|(host, _)| !host.contains('/'))?.1,
    };
    let path = path.trim_matches('/');
    let mut parts = path.strip_suffix(".git").unwrap_or(path).rsplit('/');
    let (name, owner) = (parts.next()?, parts.next()?);
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    (is_word(name) && is_word(owner)).then(|| format!("{owner}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_read_from_addresses() {
        for (remote, repository) in [
            ("https://github.com/owner/name.git", Some("owner/name")),
            ("https://user:secret@github.com/owner/name", Some("owner/name")),
            ("git@github.com:owner/name.git", Some("owner/name")),
            ("ssh://git@github.example.com:2222/owner/na.me.git/", Some("owner/na.me")),
            ("../bare.git", None),
            ("/srv/git/owner/name", None),
            ("file:///srv/owner/name", None),
            ("https://github.com/name", None),
        ] {
            assert_eq!(repository_of(remote).as_deref(), repository, "{remote}");
        }
    }

    #[test]
    fn a_token_comes_from_the_environment_first() {
        let token = find_token("https://api.github.com", |name| (name == "GH_TOKEN").then(|| " t ".into()));
        assert_eq!(token.as_deref(), Ok("t"));
        assert_eq!(host_of_api("https://api.github.com"), "github.com");
        assert_eq!(host_of_api("https://github.example.com/api/v3"), "github.example.com");
    }
}
