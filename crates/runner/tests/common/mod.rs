//! Helpers of the process tests: the shim, scripts and waiting for conditions.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cuegate_runner::process::{Launch, Shim};

/// The example `shim`. `cargo test` does not build examples when run for a single test target, so a missing or outdated
/// example is built here.
pub fn shim() -> Shim {
    static EXE: OnceLock<PathBuf> = OnceLock::new();
    let exe = EXE.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let profile = test.parent().unwrap().parent().unwrap();
        let exe = profile.join("examples/shim");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/process");
        if modified(&exe).is_none_or(|built| built < newest_in(&source)) {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--example", "shim", "--manifest-path"]);
            cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
            cargo.arg("--target-dir").arg(profile.parent().unwrap());
            if profile.ends_with("release") {
                cargo.arg("--release");
            }
            assert!(cargo.status().unwrap().success(), "the example `shim` cannot be built");
        }
        exe
    });
    Shim { exe: exe.clone(), args: vec!["__shim".into()] }
}

fn modified(path: &Path) -> Option<std::time::SystemTime> {
    path.metadata().ok()?.modified().ok()
}

fn newest_in(dir: &Path) -> std::time::SystemTime {
    std::fs::read_dir(dir).unwrap().filter_map(|entry| modified(&entry.unwrap().path())).max().unwrap()
}

/// A command that runs a shell script in the folder `cwd`.
pub fn script(cwd: &Path, text: &str) -> Launch {
    let mut launch = Launch::new("sh", cwd);
    launch.args = vec!["-c".into(), text.into()];
    launch
}

/// A unique sleep duration, which identifies the processes of one test.
pub fn tag() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("300.{:07}{:03}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The number of processes that run `sleep TAG`, without zombies.
pub fn sleeping(tag: &str) -> usize {
    let output = Command::new("ps").args(["-A", "-o", "args="]).output().unwrap();
    let wanted = format!("sleep {tag}");
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.trim() == wanted).count()
}

/// Waits until `condition` holds, at most `within`.
pub fn eventually(what: &str, within: Duration, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + within;
    while !condition() {
        assert!(Instant::now() < until, "not within {within:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A timeout that suffices on slow machines.
pub const SOON: Duration = Duration::from_secs(90);
