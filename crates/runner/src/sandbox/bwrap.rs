//! Finds bubblewrap and checks that it works here.

#![expect(clippy::disallowed_methods, reason = "paths of the system and of the user")]

use std::{path::PathBuf, time::Duration};

/// The time limit of the check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Arguments of every sandbox: its processes end with us, see no processes outside and have no network. Our own program
/// is the first process, which no process inside can kill.
///
/// No `--new-session`: the second stage of the shim has created a session without a terminal, and signals to its
/// process group end the sandbox.
pub(super) const ALWAYS: [&str; 8] = [
    "--as-pid-1",
    "--die-with-parent",
    "--unshare-net",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--cap-drop",
    "ALL",
];

/// The capabilities that root keeps in the sandbox: those over files, needed for a tree of another user. By default,
/// bubblewrap would keep all capabilities.
const FILE_CAPABILITIES: [&str; 4] = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID"];

/// A bubblewrap that works on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bwrap {
    pub(super) program: PathBuf,
    /// Its name and version, as it prints them.
    pub version: String,
    /// Whether the source of a mount can be a handle: since version 0.10, and in security updates of earlier ones.
    pub(super) takes_handles: bool,
}

/// Why this machine cannot run a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct SandboxError {
    /// The problem.
    pub what: String,
    /// Advice for the user.
    pub hint: &'static str,
}

impl Bwrap {
    /// Whether it can limit the size of a temporary file system, and set its permissions: since version 0.7.
    pub(super) fn is_recent(&self) -> bool {
        let number = self.version.split_whitespace().last().unwrap_or_default();
        let mut parts = number.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default()) >= (0, 7)
    }

    /// Finds bubblewrap and creates a sandbox with it as a check.
    ///
    /// # Errors
    /// When bubblewrap is missing, or the system does not permit a sandbox.
    pub fn find() -> Result<Bwrap, SandboxError> {
        const INSTALL: &str = "install bubblewrap (`apt-get install bubblewrap`, `dnf install bubblewrap`, `pacman -S bubblewrap`)";
        const PERMIT: &str = "permit unprivileged user namespaces: `sysctl kernel.unprivileged_userns_clone=1`; in a \
                              container, start it with `--privileged` or the rights to mount";
        // Ubuntu since 24.04.
        const APPARMOR: &str = "AppArmor forbids it: permit user namespaces to bubblewrap by a profile \
                                (/etc/apparmor.d/bwrap: `abi <abi/4.0>, include <tunables/global> profile bwrap \
                                /usr/bin/bwrap flags=(unconfined) { userns, }`, then `systemctl reload apparmor`), or to \
                                all programs: `sysctl kernel.apparmor_restrict_unprivileged_userns=0`";
        if !cfg!(target_os = "linux") {
            let what = "the sandbox needs Linux".to_owned();
            return Err(SandboxError { what, hint: "run it on Linux, for example in a virtual machine" });
        }
        let missing = || SandboxError { what: "`bwrap` is not in PATH".to_owned(), hint: INSTALL };
        let program = cuegate_provider::locate_program("bwrap").ok_or_else(missing)?;
        let look =
            |args: &[&str]| cuegate_provider::capture_program_output(&program, args, &[], CHECK_TIMEOUT);
        let version = look(&["--version"]).map_err(|why| SandboxError {
            what: format!("`{}` does not work: {why}", program.display()),
            hint: INSTALL,
        })?;
        let version = version.lines().next().unwrap_or_default().trim().to_owned();
        let mut args: Vec<&str> = ALWAYS.to_vec();
        args.extend(list_capability_args());
        args.extend(
            "--ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --tmpfs /run --remount-ro /run true"
                .split(' '),
        );
        look(&args).map_err(|why| SandboxError {
            what: format!("{version} cannot create a sandbox here: {why}"),
            hint: if restricts_namespaces() { APPARMOR } else { PERMIT },
        })?;
        let takes_handles = look(&["--help"]).is_ok_and(|help| help.contains("--ro-bind-fd"));
        Ok(Bwrap { program, version, takes_handles })
    }
}

/// Whether AppArmor forbids user namespaces to programs without a profile.
fn restricts_namespaces() -> bool {
    let file = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    std::fs::read_to_string(file).is_ok_and(|value| value.trim() == "1")
}

/// The arguments that keep root's capabilities over files.
pub(super) fn list_capability_args() -> Vec<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Vec::new();
    }
    FILE_CAPABILITIES.iter().flat_map(|capability| ["--cap-add", capability]).collect()
}
