use std::fs;

use super::*;

/// Settings with an environment independent of this machine.
fn settings(home: &Path, more: &[(&str, &str)]) -> ClaudeSettings {
    let blank = [
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CODE_USE_FOUNDRY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_API_KEY",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CONFIG_DIR",
    ];
    let mut env: Vec<(String, String)> =
        blank.iter().map(|name| ((*name).to_owned(), String::new())).collect();
    env.push(("HOME".to_owned(), home.display().to_string()));
    env.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    ClaudeSettings { program: home.join("claude"), env, ..ClaudeSettings::default() }
}

#[test]
fn logins_are_detected() {
    let home = tempfile::tempdir().unwrap();
    let login = |more: &[(&str, &str)]| detect_login(&settings(home.path(), more));
    if cfg!(not(target_os = "macos")) {
        assert_eq!(login(&[]), Login::Missing);
    }
    assert_eq!(login(&[("ANTHROPIC_API_KEY", "k")]), Login::Key("ANTHROPIC_API_KEY".to_owned()));
    assert_eq!(
        login(&[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_AUTH_TOKEN", "t")]),
        Login::Key("ANTHROPIC_AUTH_TOKEN".to_owned())
    );
    assert_eq!(login(&[("CLAUDE_CODE_OAUTH_TOKEN", "t")]), Login::Subscription);
    assert_eq!(
        login(&[("CLAUDE_CODE_USE_BEDROCK", "1"), ("ANTHROPIC_API_KEY", "k")]),
        Login::Cloud("Amazon Bedrock".to_owned())
    );
    fs::write(home.path().join(".claude.json"), r#"{"primaryApiKey":"x"}"#).unwrap();
    assert_eq!(login(&[("CLAUDE_CODE_USE_VERTEX", "0")]), Login::Unknown);
    fs::create_dir(home.path().join(".claude")).unwrap();
    fs::write(home.path().join(".claude/.credentials.json"), "{}").unwrap();
    assert_eq!(login(&[]), Login::Subscription);
    let other = home.path().join("other").display().to_string();
    if cfg!(not(target_os = "macos")) {
        assert_eq!(login(&[("CLAUDE_CONFIG_DIR", &other)]), Login::Missing);
    }
}

#[test]
fn problems_are_reported_with_hints() {
    let home = tempfile::tempdir().unwrap();
    let found = inspect_claude(&settings(home.path(), &[("ANTHROPIC_API_KEY", "sk-secret")]));
    let [problem] = &found.problems[..] else { panic!("one problem") };
    assert_eq!(problem.class, FaultClass::MissingProgram);
    assert!(problem.hint.starts_with("install it with `"), "{}", problem.hint);
    assert!(!format!("{found:?}").contains("sk-secret"));
}
