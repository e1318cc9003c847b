//! The page in a real browser.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::client::Server;
use crate::{
    agent::registry::small,
    support::{CUEGATE, Project},
};

/// The folder of playwright-core and axe-core, and the browser; `None` if one is missing, with a line that says so.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn tools() -> Option<(PathBuf, PathBuf)> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/browser/node_modules");
    let chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let chromium = chromium.iter().map(PathBuf::from).find(|path| path.exists());
    match chromium {
        Some(chromium) if modules.join("playwright-core").is_dir() => Some((modules, chromium)),
        _ => {
            eprintln!("skipped: `cargo xtask test` installs playwright-core, and Chromium on Debian as root");
            None
        }
    }
}

/// A project without runs whose agent follows scripts.
fn project() -> Project {
    let project = Project::empty();
    small().write(&project);
    project.write(".gitignore", "/script*\n");
    project.init();
    project
}

#[test]
fn a_person_uses_the_page() {
    let Some((modules, chromium)) = tools() else { return };
    let project = project();
    let server = Server::start(&project, &["--allow-control"]);
    let link = format!("http://{}/#token={}", server.host(), server.link);
    let ran = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/page/browser.mjs"))
        .envs([("LINK", link.as_str()), ("CUEGATE", CUEGATE)])
        .env("PROJECT", project.path())
        .env("MODULES", modules)
        .env("CHROMIUM", chromium)
        .envs(project.command(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(said.lines().filter(|line| line.starts_with("passed: ")).count(), 12, "{said}");
    server.stop();
}
