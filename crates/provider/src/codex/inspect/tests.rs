use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use super::*;

fn settings(home: &Path, said: &str, more: &[(&str, &str)]) -> CodexSettings {
    let program = home.join("codex");
    fs::write(
        &program,
        format!("#!/bin/sh\n[ \"$1\" = --version ] && echo codex-cli 0.169.0 && exit 0\n{said}\n"),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let own = [("CODEX_API_KEY", ""), ("CODEX_HOME", "/home/somebody/.codex"), ("TMPDIR", "/somewhere/tmp")];
    let env = own.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    CodexSettings { program, env, ..CodexSettings::default() }
}

#[test]
fn logins_are_detected() {
    let home = tempfile::tempdir().unwrap();
    let login = |said: &str, more: &[(&str, &str)]| inspect_codex(&settings(home.path(), said, more)).login;
    assert_eq!(login("echo 'Logged in using ChatGPT' >&2", &[]), Login::Subscription);
    assert_eq!(
        login("echo 'Logged in using an API key - sk-proj-***abcd' >&2", &[]),
        Login::Key("its own login".to_owned())
    );
    assert_eq!(login("exit 1", &[("CODEX_API_KEY", "k")]), Login::Key("CODEX_API_KEY".to_owned()));
    assert_eq!(login("exit 1", &[("OPENAI_API_KEY", "k")]), Login::Missing);
    let other = CodexSettings { service: Some("azure".to_owned()), ..settings(home.path(), "exit 1", &[]) };
    assert_eq!(inspect_codex(&other).login, Login::Unknown);
}

#[test]
fn problems_are_reported() {
    let home = tempfile::tempdir().unwrap();
    let whats = |settings: &CodexSettings| -> Vec<String> {
        inspect_codex(settings).problems.into_iter().map(|problem| problem.what).collect()
    };
    assert_eq!(whats(&settings(home.path(), "echo using ChatGPT", &[])), [""; 0]);
    assert_eq!(whats(&settings(home.path(), "exit 1", &[])), ["codex is not logged in"]);
    assert_eq!(
        whats(&settings(home.path(), "echo using ChatGPT", &[("CODEX_HOME", "/somewhere/tmp/x")])),
        ["CODEX_HOME is inside the temporary folder: `/somewhere/tmp/x`"]
    );
}
