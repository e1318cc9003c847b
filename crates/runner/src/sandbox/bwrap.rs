//! bubblewrap, found and tried.

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long the try may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What every room has: nobody in it outlives us, sees processes outside, or has a network.
///
/// No `--new-session`: the second stage of the shim has made one, without a terminal, and its process group is how those
/// in the room are asked to end.
pub(super) const ALWAYS: [&str; 7] = [
    "--die-with-parent",
    "--unshare-net",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--cap-drop",
    "ALL",
];

/// What root keeps of its rights in the room: those over files, which a tree that belongs to somebody else needs.
/// bubblewrap would give it all of them.
const FILE_RIGHTS: [&str; 4] = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID"];

/// bubblewrap, which was seen to work here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bwrap {
    /// The program.
    pub(super) program: PathBuf,
    /// What it calls itself, with its version.
    pub version: String,
}

/// Why no sandbox can stand here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct SandboxError {
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub hint: &'static str,
}

impl Bwrap {
    /// Finds it, and builds a room with all that a real one has.
    ///
    /// # Errors
    /// When it is not there, or the system does not let it.
    pub fn find() -> Result<Bwrap, SandboxError> {
        const INSTALL: &str = "install bubblewrap (`apt-get install bubblewrap`, `dnf install bubblewrap`, `pacman -S bubblewrap`)";
        const PERMIT: &str = "permit unprivileged user namespaces: `sysctl kernel.unprivileged_userns_clone=1`, on \
                              Ubuntu `kernel.apparmor_restrict_unprivileged_userns=0`; in a container, start it with \
                              `--privileged` or the rights to mount";
        if !cfg!(target_os = "linux") {
            let what = "the sandbox stands on Linux only".to_owned();
            return Err(SandboxError { what, hint: "run it on Linux, for example in a virtual machine" });
        }
        let missing = || SandboxError { what: "`bwrap` is not in PATH".to_owned(), hint: INSTALL };
        let program = in_path("bwrap").ok_or_else(missing)?;
        let look = |args: &[&str]| cuegate_provider::look(&program, args, &[], PATIENCE);
        let version = look(&["--version"]).map_err(|why| SandboxError {
            what: format!("`{}` does not work: {why}", program.display()),
            hint: INSTALL,
        })?;
        let version = version.lines().next().unwrap_or_default().trim().to_owned();
        let mut args: Vec<&str> = ALWAYS.to_vec();
        args.extend(rights());
        args.extend(
            "--ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --tmpfs /run --remount-ro /run true"
                .split(' '),
        );
        look(&args).map_err(|why| SandboxError {
            what: format!("{version} can build no sandbox here: {why}"),
            hint: PERMIT,
        })?;
        Ok(Bwrap { program, version })
    }
}

/// The arguments that leave root its rights over files.
pub(super) fn rights() -> Vec<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Vec::new();
    }
    FILE_RIGHTS.iter().flat_map(|right| ["--cap-add", right]).collect()
}

/// The file that a name in `PATH` leads to.
pub(super) fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}
