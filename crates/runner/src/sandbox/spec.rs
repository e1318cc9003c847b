//! Builds the sandbox of one command.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use cuegate_flow as flow;
use cuegate_flow::model::sandbox::Host;
use cuegate_provider::Needs;

use super::{
    bwrap,
    bwrap::{Bwrap, SandboxError},
    egress::{Egress, RefusalReporter, SOCKET},
    layout::{Layout, Mount},
    mounts,
    proxy::AllowList,
    sandbox_init::{EGRESS_FLAG, FORWARD_FLAG, PROGRAM_FLAG},
};
use crate::{
    error::Error,
    process::{Launch, Shim},
};

/// The folder in the sandbox for our own files.
const OURS: &str = "/run/cuegate";
/// On SIGTERM bubblewrap would end at once and kill all processes in the sandbox without a grace period. So it ignores
/// the signal, which the other processes of its group receive as well.
const IGNORE_TERM: &str = "trap '' TERM; exec \"$0\" \"$@\"";

/// The sandbox of a run. It works on this machine.
#[derive(Debug, Clone)]
pub struct Sandbox {
    bwrap: Bwrap,
    policy: flow::model::sandbox::SandboxPolicy,
    /// How to start our own binary in the sandbox.
    shim: Shim,
}

/// The kind of process in a sandbox.
pub(crate) enum ProcessKind {
    /// An agent.
    Agent {
        /// Whether it may write in the working tree.
        writes: bool,
        /// The files and services that its program needs.
        needs: Needs,
    },
    /// A program of the definition. It may write in the working tree.
    Handler,
}

/// The sandbox of one command.
pub(crate) struct SandboxSpec<'r> {
    /// The sandbox of the run.
    pub(crate) sandbox: &'r Sandbox,
    /// The kind of process.
    pub(crate) kind: ProcessKind,
    /// The project.
    pub(crate) root: &'r Path,
    /// The working folder.
    pub(crate) work: &'r Path,
    /// The state dir, which is hidden.
    pub(crate) state: &'r Path,
    /// Paths below the state dir that stay readable, if they exist.
    pub(crate) shown: Vec<PathBuf>,
    /// The folder of the command.
    pub(crate) command: &'r Path,
}

/// Keeps the egress of a running sandbox open. Drop it when all processes in the sandbox have ended.
pub(crate) struct SandboxGuard {
    _egress: Egress,
    forbidden: Vec<PathBuf>,
}

impl Drop for SandboxGuard {
    fn drop(&mut self) {
        for path in &self.forbidden {
            // Runs before any git command, so that git never reads such a file.
            let _ = fs::remove_file(path);
        }
    }
}

impl Sandbox {
    /// Checks that a sandbox works on this machine.
    ///
    /// # Errors
    /// Why it does not, with advice.
    pub fn raise(policy: &flow::model::sandbox::SandboxPolicy, shim: Shim) -> Result<Sandbox, SandboxError> {
        Ok(Sandbox { bwrap: Bwrap::find()?, policy: policy.clone(), shim })
    }

    /// Describes the limits in words.
    pub fn describe(&self) -> String {
        let writable = match self.policy.writable.as_slice() {
            [] => "the working tree".to_owned(),
            paths => format!("the working tree, {}", paths.join(", ")),
        };
        format!(
            "a sandbox ({}): writes {writable}; reaches {}",
            self.bwrap.version,
            self.policy.network.describe()
        )
    }

    /// The writable paths of the definition that do not exist: nothing can be written there.
    pub fn missing(&self, work: &Path, root: &Path) -> Vec<String> {
        let home = mounts::home();
        let is_there = |path: &str| {
            mounts::resolve_path(path, work, root, home.as_deref()).is_some_and(|place| place.exists())
        };
        self.policy.writable.iter().filter(|path| !is_there(path)).map(|path| path.to_string()).collect()
    }
}

impl SandboxSpec<'_> {
    /// Wraps a launch into the sandbox and opens its egress.
    ///
    /// # Errors
    /// When the egress cannot be opened.
    pub(crate) fn enclose(
        &self,
        launch: Launch,
        reporter: RefusalReporter,
    ) -> Result<(Launch, SandboxGuard), Error> {
        let allow_list = self.allow_list();
        let forwards: Vec<String> = allow_list
            .services
            .iter()
            .chain(&allow_list.hosts)
            .filter(|host| host.is_local())
            .filter_map(|host| Some(format!("{}:{}", host.name(), host.port()?)))
            .collect();
        let egress = Egress::open(self.command, allow_list, reporter)?;
        let repository = mounts::repository(self.work);
        let layout = self.layout(&launch.program, &repository, &egress);
        let ours = Path::new(OURS);
        let mut args: Vec<OsString> =
            vec!["-c".into(), IGNORE_TERM.into(), self.sandbox.bwrap.program.clone().into()];
        args.extend(bwrap::ALWAYS.iter().chain(&bwrap::capabilities()).map(OsString::from));
        args.extend(layout.args());
        args.extend(["--chdir".into(), launch.cwd.clone().into(), "--".into(), ours.join("cuegate").into()]);
        args.extend(self.sandbox.shim.args.iter().cloned());
        args.extend([EGRESS_FLAG.into(), ours.join("door").join(SOCKET).into()]);
        for forward in forwards {
            args.extend([FORWARD_FLAG.into(), forward.into()]);
        }
        args.push(PROGRAM_FLAG.into());
        // The sandbox may hide the path of our own program.
        let is_ours = Path::new(&launch.program) == self.sandbox.shim.exe;
        args.push(if is_ours { ours.join("cuegate").into() } else { launch.program.clone() });
        args.extend(launch.args.iter().cloned());
        let guard = SandboxGuard { _egress: egress, forbidden: repository.forbidden };
        Ok((Launch { program: "/bin/sh".into(), args, ..launch }, guard))
    }

    fn allow_list(&self) -> AllowList {
        let services = match &self.kind {
            ProcessKind::Agent { needs, .. } => {
                needs.services.iter().map(|service| Host::with_port(&service.host, service.port)).collect()
            }
            ProcessKind::Handler => Vec::new(),
        };
        AllowList { services, hosts: self.sandbox.policy.network.hosts() }
    }

    fn layout(&self, program: &OsStr, repository: &mounts::Repository, egress: &Egress) -> Layout {
        let home = mounts::home();
        let work = real(self.work);
        let mut layout = Layout::default();
        layout.put("/", Mount::Read);
        layout.put("/dev", Mount::Devices);
        layout.put("/proc", Mount::Processes);
        mounts::proc_paths().for_each(|path| layout.put(path.clone(), Mount::ReadFrom(path)));
        let private = mounts::private();
        private.iter().for_each(|path| layout.put(path, Mount::Scratch));
        mounts::run_paths().for_each(|path| layout.put(path, Mount::Read));
        // Needed paths inside of folders that the sandbox replaces.
        let needed = programs(program).into_iter().filter_map(|path| top(&path, &private));
        let needed =
            needed.chain(home.clone()).chain([real(self.root)]).filter(|path| is_within(path, &private));
        needed.for_each(|path| layout.put(path, Mount::Read));
        let keys: &[PathBuf] = match &self.kind {
            ProcessKind::Agent { needs, .. } => &needs.keys,
            ProcessKind::Handler => &[],
        };
        let state = self.agent_state();
        let is_ours = |path: &Path| state.iter().any(|own| path.starts_with(own));
        for secret in home.iter().flat_map(|home| mounts::secrets(home)).filter(|path| !is_ours(path)) {
            let mount = if secret.is_dir() { Mount::Empty } else { Mount::Nothing };
            layout.put(secret, mount);
        }
        keys.iter()
            .filter_map(|path| fs::canonicalize(path).ok())
            .for_each(|path| layout.put(path, Mount::Read));
        let open: Vec<PathBuf> =
            [&work].into_iter().chain(&repository.written).chain(&state).cloned().collect();
        let written = |path: &flow::Str| mounts::resolve_path(path, &work, self.root, home.as_deref());
        let wanted: Vec<PathBuf> = self.sandbox.policy.writable.iter().filter_map(written).collect();
        mounts::resolve_safely(&wanted, &open).into_iter().for_each(|path| layout.put(path, Mount::Write));
        state.into_iter().for_each(|path| layout.put(path, Mount::Write));
        if let ProcessKind::Agent { needs, .. } = &self.kind {
            let settings = needs.settings.iter().filter_map(|path| fs::canonicalize(path).ok());
            settings.for_each(|path| layout.put(path, Mount::Read));
        }
        let writes = !matches!(self.kind, ProcessKind::Agent { writes: false, .. });
        layout.put(work, if writes { Mount::Write } else { Mount::Read });
        if writes {
            repository.written.iter().for_each(|path| layout.put(path, Mount::Write));
            repository.sealed.iter().for_each(|path| layout.put(path, Mount::Read));
        }
        layout.put(real(self.state), Mount::Empty);
        let shown = self.shown.iter().filter_map(|path| fs::canonicalize(path).ok());
        shown.for_each(|path| layout.put(path, Mount::Read));
        layout.put(Path::new(OURS).join("cuegate"), Mount::ReadFrom(real(&self.sandbox.shim.exe)));
        layout.put(Path::new(OURS).join("door"), Mount::ReadFrom(real(egress.folder())));
        for socket in mounts::sockets() {
            // Sockets below replaced folders are hidden already.
            if !matches!(layout.mount_of(&socket), Some(Mount::Scratch | Mount::Empty)) {
                layout.put(socket, Mount::Nothing);
            }
        }
        layout
    }

    /// The state paths of an agent's program. Creates missing folders, as the program would without the sandbox.
    fn agent_state(&self) -> Vec<PathBuf> {
        let ProcessKind::Agent { needs, .. } = &self.kind else { return Vec::new() };
        for path in needs.state.iter().filter(|path| !path.exists() && path.extension().is_none()) {
            let _ = fs::create_dir_all(path);
        }
        needs.state.iter().filter_map(|path| fs::canonicalize(path).ok()).collect()
    }
}

/// Resolves the links of a path; returns it unchanged if it does not exist.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn is_within(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder) && path != folder)
}

/// The folders and files of programs: the started one, as named and as resolved, and the folders in `PATH`.
fn programs(program: &OsStr) -> Vec<PathBuf> {
    let named = match Path::new(program).components().count() {
        1 => program.to_str().and_then(bwrap::in_path),
        _ => Some(PathBuf::from(program)),
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
    if let Some(named) = named {
        found.extend(fs::canonicalize(&named));
        found.extend(named.parent().map(Path::to_owned));
    }
    // Also as named: the links on the way must exist.
    let real: Vec<PathBuf> = found.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    found.into_iter().filter(|path| path.exists()).chain(real).collect()
}

/// The outermost folder below one of `folders` that contains a path: a program may need files next to it.
fn top(path: &Path, folders: &[PathBuf]) -> Option<PathBuf> {
    let folder = folders
        .iter()
        .filter(|folder| path.starts_with(folder))
        .max_by_key(|folder| folder.as_os_str().len())?;
    let first = path.strip_prefix(folder).ok()?.components().next()?;
    Some(folder.join(first))
}
