//! Installs the real agents that tests run.
//!
//! `xtask/agents/package.json` pins their versions and `package-lock.json` what they are made of, by digest and without
//! the name of a registry: npm takes them from the one that it is set up with. To take up newer ones, change the
//! versions and renew the lock there:
//! `npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::shell::{cargo, has, output, root, run};

/// The lock of what is installed: its name here and in `testkit/src/offline.rs`.
const INSTALLED: &str = "installed.json";
/// What installs npm where it is missing.
const NPM: [&[&str]; 2] = [&["update"], &["install", "-y", "--no-install-recommends", "nodejs", "npm"]];
/// `--ignore-scripts`: the binaries are taken from the packages of this platform, so that nothing of what is installed
/// runs here, and none is kept twice.
const CI: [&str; 5] = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];

/// Installs the agents into the target folder, unless those of the lock are there already. Needs npm and a registry.
pub(crate) fn agents() -> Result<(), String> {
    let source = root().join("xtask/agents");
    let folder = target()?.join("agents");
    let lock = read(&source.join("package-lock.json"))?;
    // One at a time: tests of several terminals may want them together.
    fs::create_dir_all(&folder).map_err(|error| format!("`{}`: {error}", folder.display()))?;
    let guard = folder.join(".lock");
    let guard = fs::File::create(&guard).map_err(|error| format!("`{}`: {error}", guard.display()))?;
    guard.lock().map_err(|error| format!("failed to lock `{}`: {error}", folder.display()))?;
    if fs::read_to_string(folder.join(INSTALLED)).is_ok_and(|installed| installed == lock) {
        eprintln!("agents: those of the lock are installed in {}", folder.display());
        return Ok(());
    }
    let npm = npm()?;
    eprintln!("agents: installing into {} (some 300 MB to fetch, 800 MB on disk)", folder.display());
    remove(&folder.join(INSTALLED))?;
    for name in ["package.json", "package-lock.json"] {
        let text = read(&source.join(name))?;
        fs::write(folder.join(name), text).map_err(|error| format!("`{name}`: {error}"))?;
    }
    // Its own cache, removed afterwards: npm's would keep all of it a second time.
    let cache = folder.join("cache");
    let mut words: Vec<String> = CI.iter().map(|word| (*word).to_owned()).collect();
    words.push(format!("--cache={}", cache.display()));
    run(&folder, npm, &words, &[])?;
    fs::remove_dir_all(&cache).map_err(|error| format!("`{}`: {error}", cache.display()))?;
    link(&folder)?;
    fs::write(folder.join(INSTALLED), lock).map_err(|error| format!("`{INSTALLED}`: {error}"))?;
    eprintln!("agents: claude and codex are in {}", folder.join("bin").display());
    Ok(())
}

/// Cargo's target folder, wherever it is set.
fn target() -> Result<PathBuf, String> {
    let metadata =
        output(&root(), &cargo(), &["metadata", "--format-version", "1", "--no-deps", "--locked"])?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let target = metadata["target_directory"].as_str().ok_or("`cargo metadata` names no target folder")?;
    Ok(target.into())
}

/// The program npm; on Debian, root gets it where it is missing.
fn npm() -> Result<&'static str, String> {
    let there = || has("npm", &["--version"]);
    if there() {
        return Ok("npm");
    }
    let how = "`apt-get install -y nodejs npm` installs it on Debian and Ubuntu";
    let is_root = output(Path::new("/"), "id", &["-u"]).is_ok_and(|id| id.trim() == "0");
    if !is_root || !Path::new("/etc/debian_version").exists() {
        return Err(format!("the agents that tests run are installed by npm, which is not there: {how}"));
    }
    eprintln!("agents: npm is not there; this is root on Debian, so apt-get installs it");
    for words in NPM {
        run(Path::new("/"), "apt-get", words, &[("DEBIAN_FRONTEND", "noninteractive")])?;
    }
    if there() { Ok("npm") } else { Err(format!("npm is still not there: {how}")) }
}

/// Puts both binaries, of whichever platform npm chose, under one name. Links: codex finds its helpers beside itself.
fn link(folder: &Path) -> Result<(), String> {
    let modules = folder.join("node_modules");
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).map_err(|error| format!("`{}`: {error}", bin.display()))?;
    for (name, begin, rest) in [
        ("claude", "@anthropic-ai/claude-code-", &["claude"][..]),
        ("codex", "@openai/codex-", &["vendor", "*", "bin", "codex"][..]),
    ] {
        let path = find(&modules, begin, rest).ok_or_else(|| {
            format!("npm installed no `{name}` for this platform below {}", modules.display())
        })?;
        let link = bin.join(name);
        remove(&link)?;
        #[cfg(unix)]
        let made = {
            let inside = path.strip_prefix(folder).expect("it was found in the folder");
            std::os::unix::fs::symlink(Path::new("..").join(inside), &link)
        };
        #[cfg(not(unix))]
        let made = fs::hard_link(&path, &link);
        made.map_err(|error| format!("`{}`: {error}", link.display()))?;
    }
    Ok(())
}

/// The file `rest` (with `*` for any folder) in the package whose name begins so.
fn find(modules: &Path, begin: &str, rest: &[&str]) -> Option<PathBuf> {
    let (scope, begin) = begin.split_once('/')?;
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_of =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(begin));
    let mut found: Vec<PathBuf> = entries(&modules.join(scope)).filter(is_of).collect();
    for word in rest {
        found = found
            .iter()
            .flat_map(|dir| if *word == "*" { entries(dir).collect() } else { vec![dir.join(word)] })
            .collect();
    }
    found.into_iter().find(|path| path.is_file())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("`{}`: {error}", path.display()))
}

fn remove(path: &Path) -> Result<(), String> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("`{}`: {error}", path.display()))
        }
        _ => Ok(()),
    }
}
