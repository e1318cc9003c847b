//! The confinement of our own git where it reads what agents left: stricter than the sandbox of the agents, because it
//! needs nothing but the system's programs and the repository.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use super::{
    Sandbox, SandboxLevel,
    bwrap::{self, list_capability_args},
    confine::{refuse_calls, refuse_sockets},
    hidden_paths,
    landlock_level::{self, LandlockAccess},
    visible,
};
use crate::confinement::{Confinement, ReachedPaths};

/// The option of the hidden subcommand before the paths that a program reaches by Landlock.
pub(super) const CONFINED_FLAG: &str = "--confined";

/// Programs and libraries of the system, and what the loader reads.
const SYSTEM: [&str; 11] = [
    "/bin",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/gnu/store",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/sbin",
    "/usr",
];

impl Sandbox {
    /// How our own git is confined where it reads what the agents in this sandbox left.
    pub fn confine_git(&self) -> Confinement {
        let git = cuegate_provider::locate_or_missing("git");
        let home = hidden_paths::resolve_home();
        let mut system: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        for path in visible::of_program(&git, home.as_deref()) {
            // What is in one of the folders is there with it.
            if !system.iter().any(|folder| path.starts_with(folder)) {
                system.push(path);
            }
        }
        system.retain(|path| path.exists());
        match &self.level {
            SandboxLevel::Full(bwrap) => {
                // The first process ends with the one that it was started for, so no process is left.
                let own = bwrap::ALWAYS.iter().filter(|word| **word != "--as-pid-1");
                let mut args: Vec<OsString> = own.map(OsString::from).collect();
                args.push("--new-session".into());
                args.extend(list_capability_args().into_iter().map(OsString::from));
                for path in &system {
                    // A link such as `/bin` is one inside too.
                    match path.read_link() {
                        Ok(target) => args.extend(["--symlink".into(), target.into(), path.into()]),
                        Err(_) => args.extend(["--ro-bind".into(), path.into(), path.into()]),
                    }
                }
                args.extend(["--dev", "/dev", "--proc", "/proc", "--chdir", "/"].map(OsString::from));
                Confinement::Mounts { program: bwrap.program.clone(), args }
            }
            SandboxLevel::Partial(_) => {
                let mut command = vec![self.shim.exe.clone().into_os_string()];
                command.extend(self.shim.args.iter().cloned());
                command.push(CONFINED_FLAG.into());
                Confinement::Landlock { command, system }
            }
        }
    }
}

/// Confines this process by Landlock and executes a program in its place. `args`: the paths as JSON, `--`, the program and
/// its arguments. Returns only if that fails.
pub(super) fn execute_confined(args: &[OsString]) -> ExitCode {
    let why = match args {
        [paths, separator, program, args @ ..] if separator == "--" => {
            confine_by_landlock(paths).map(|()| Command::new(program).args(args).exec().to_string())
        }
        _ => Err("invalid arguments: only cuegate starts this command".to_owned()),
    };
    let _ = writeln!(io::stderr(), "cuegate: {}", why.unwrap_or_else(|why| why));
    ExitCode::from(126)
}

fn confine_by_landlock(paths: &OsString) -> Result<(), String> {
    let text = paths.to_str().ok_or("the paths are no text")?;
    let reached: ReachedPaths = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let devices = ["/dev/null", "/dev/urandom"].map(PathBuf::from);
    let write = reached.write.into_iter().chain(devices).collect();
    let access = LandlockAccess { read: reached.read, write, ports: Vec::new(), held: Vec::new() };
    landlock_level::restrict_thread(&access, None)?;
    refuse_sockets()?;
    refuse_calls()?;
    // The folder where it was started is not among the paths.
    std::env::set_current_dir(Path::new("/")).map_err(|error| error.to_string())
}
