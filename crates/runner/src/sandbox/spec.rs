//! Builds the sandbox of one command.

#![expect(clippy::disallowed_methods, reason = "paths of the system and of the user")]

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use cuegate_engine::CommandId;
use cuegate_flow as flow;
use cuegate_flow::model::sandbox::{Host, Network};
use cuegate_provider::SandboxNeeds;
use tokio::sync::mpsc;

use super::bwrap::{self, Bwrap, SandboxError};
use super::confine::SandboxLimits;
use super::egress::{Egress, RefusalReporter, SOCKET};
use super::held_sources;
use super::kept_out::{KeptOutMark, is_settings_file};
use super::landlock_level::{self, LandlockAccess};
use super::mounts::{Mount, MountTable};
use super::proxy::AllowList;
use super::sandbox_init::{ACCESS_FLAG, EGRESS_FLAG, FORWARD_FLAG, LIMITS_FLAG, PROGRAM_FLAG};
use super::{environment, hidden_paths, sockets, visible};
use crate::{
    drive::ExecutorMessage,
    error,
    error::Error,
    process::{Launch, Shim},
    state_dir::{StateDir, user_key_path},
    worktree,
    worktree::AgentGit,
};

/// The folder in the sandbox for our own files.
const OURS: &str = "/run/cuegate";
/// The name of the file with the access by Landlock.
const ACCESS: &str = "access.json";
/// The name of the private temporary folder, if `/tmp` cannot be replaced.
const TEMPORARY: &str = "tmp";
/// The name of the file with git's settings.
const GIT_CONFIG: &str = "gitconfig";
/// Lists of keys in the user's keyrings.
const KEY_LISTS: [&str; 2] = ["/proc/keys", "/proc/key-users"];
/// On SIGTERM bubblewrap would end at once and kill all processes in the sandbox without a grace period. So it ignores
/// the signal, which the other processes of its group receive as well.
const IGNORE_TERM: &str = "trap '' TERM; exec \"$0\" \"$@\"";

/// The user's settings of every sandbox: `[sandbox]` in `cuegate.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxOptions {
    /// Whether validators and gates run outside.
    pub validators_outside: bool,
    /// Writable folders of package managers, as paths of a definition.
    pub caches: Vec<String>,
    /// Further files and folders that are shown, as paths of a definition.
    pub readable: Vec<String>,
    /// Further variables that are passed on: names, or beginnings of names with `*`.
    pub environment: Vec<String>,
    /// Further hosts that are allowed, unless the definition allows none.
    pub hosts: Vec<Host>,
    /// Limits of resources.
    pub limits: SandboxLimits,
}

/// How much a sandbox restricts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxLevel {
    /// A file system, processes and a network of its own.
    Full(Bwrap),
    /// Landlock alone, because bubblewrap does not work for this reason.
    Partial(SandboxError),
}

/// The sandbox of a run. It works on this machine.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub(super) level: SandboxLevel,
    pub(super) policy: flow::model::sandbox::SandboxPolicy,
    pub(super) options: SandboxOptions,
    /// How to start our own binary in the sandbox.
    pub(super) shim: Shim,
    /// The visible files and folders. Found once, before an agent can change a folder of `PATH`.
    shown: Vec<PathBuf>,
    /// The hidden files and folders inside of visible ones.
    hidden: Vec<PathBuf>,
    /// The settings of git, as a file.
    git_config: String,
    /// The sockets in folders of the system. Those that come later are found by their names only.
    sockets: BTreeSet<PathBuf>,
}

/// The kind of process in a sandbox.
pub(crate) enum ProcessKind {
    Agent {
        /// What it may write in the working tree.
        writes: TreeAccess,
        /// The files and services that its program needs.
        needs: SandboxNeeds,
    },
    /// A program of the definition, such as a handler or a validator. It may write in the working tree.
    Program,
}

/// What an agent may write in the working tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreeAccess {
    /// Everything, and commits.
    All,
    /// Every file, but nothing of git: new files are looked at afterwards.
    Files,
    /// What git ignores.
    Ignored,
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
    /// Files of the definition, relative to the project, which are read-only.
    pub(crate) sealed: &'r [PathBuf],
    /// Variables that are passed on, in addition to those of the sandbox and the agent.
    pub(crate) passed: &'r [&'r str],
    /// The git folder of the agents, if they have one.
    pub(crate) git: Option<&'r AgentGit>,
}

/// Keeps the egress of a running sandbox open. Drop it when all processes in the sandbox have ended.
pub(crate) struct SandboxGuard {
    _egress: Egress,
    forbidden: Vec<PathBuf>,
    /// Files that were missing, and that programs outside would trust.
    kept_out: Option<KeptOutMark>,
    /// Folders that were made for what git ignores.
    made: Vec<PathBuf>,
    heard: mpsc::Sender<ExecutorMessage>,
}

impl Drop for SandboxGuard {
    fn drop(&mut self) {
        for path in &self.forbidden {
            // Runs before any git command, so that git never reads such a file.
            let _ = fs::remove_file(path);
        }
        for folder in &self.made {
            // Only if it is empty.
            let _ = fs::remove_dir(folder);
        }
        for text in self.kept_out.iter().flat_map(KeptOutMark::put_aside) {
            // A slow display misses it.
            let _ = self.heard.try_send(ExecutorMessage::Warning(text));
        }
    }
}

impl Sandbox {
    /// Checks that a sandbox works on this machine. `partial`: whether the partial level is enough.
    ///
    /// # Errors
    /// Why it does not, with advice.
    pub fn raise(
        policy: flow::model::sandbox::SandboxPolicy,
        options: SandboxOptions,
        shim: Shim,
        partial: bool,
    ) -> Result<Sandbox, SandboxError> {
        let level = match Bwrap::find() {
            Ok(bwrap) => SandboxLevel::Full(bwrap),
            Err(no_bwrap) if partial && landlock_level::is_available() => SandboxLevel::Partial(no_bwrap),
            Err(no_bwrap) => return Err(no_bwrap),
        };
        let home = hidden_paths::resolve_home();
        let shown = visible::find_visible_paths(home.as_deref()).into_iter().collect();
        let mut hidden: Vec<PathBuf> =
            home.iter().flat_map(|home| hidden_paths::list_secret_paths(home)).collect();
        hidden.extend(visible::secrets_of_system());
        // Whoever has it gives runs the rights of the user.
        hidden.extend(user_key_path());
        let unseen = visible::hidden_folders();
        let private = hidden_paths::list_private_folders();
        let sockets = sockets::find_system_sockets(|path| {
            hidden.iter().chain(&unseen).chain(&private).any(|hidden| path.starts_with(hidden))
        });
        Ok(Sandbox {
            sockets,
            level,
            policy,
            options,
            shim,
            shown,
            hidden,
            git_config: worktree::settings::render_sandbox_settings(),
        })
    }

    /// How much it restricts.
    pub fn level(&self) -> &SandboxLevel {
        &self.level
    }

    /// The bubblewrap that is used.
    pub fn bwrap_program(&self) -> Option<&Path> {
        match &self.level {
            SandboxLevel::Full(bwrap) => Some(&bwrap.program),
            SandboxLevel::Partial(_) => None,
        }
    }

    /// The names of the variables of this process that are not passed on to validators.
    pub fn hidden_variables(&self) -> Vec<OsString> {
        environment::list_removed_variables(self.options.environment.iter().map(String::as_str))
    }

    /// Whether validators and gates run inside.
    pub fn holds_validators(&self) -> bool {
        !self.options.validators_outside
    }

    /// Wraps a validator into the sandbox before a run starts. `work` is the top of the working tree, `sealed` are files of
    /// the project that it cannot change. Refused connections are sent to `heard`, as [`ExecutorMessage::Refused`].
    /// Needs a tokio runtime. Keep the returned guard until the validator has ended.
    ///
    /// # Errors
    /// When its files cannot be written.
    pub fn enclose_validator(
        &self,
        launch: Launch,
        home: &StateDir,
        work: &Path,
        sealed: &[PathBuf],
        heard: mpsc::Sender<ExecutorMessage>,
    ) -> Result<(Launch, impl Sized + use<>), Error> {
        let git = self.scratch_git(home, work)?;
        let spec = SandboxSpec {
            sandbox: self,
            kind: ProcessKind::Program,
            root: home.root(),
            work,
            state: home.dir(),
            shown: Vec::new(),
            sealed,
            passed: &[],
            git: git.as_ref().map(|(git, _)| git),
        };
        let (launch, guard) = spec.enclose(launch, RefusalReporter::new(CommandId::new(0, None), heard))?;
        Ok((launch, (guard, git)))
    }

    /// Describes the limits in words. `tree` is what agents may write of the working tree.
    pub fn describe(&self, tree: &str) -> String {
        let writable = match self.policy.writable.as_slice() {
            [] => tree.to_owned(),
            paths => format!("{tree}, {}", paths.join(", ")),
        };
        let network = match (&self.policy.network, self.options.hosts.as_slice()) {
            (Network::None, _) | (_, []) => self.policy.network.describe(),
            (network, hosts) => {
                let hosts: Vec<String> = hosts.iter().map(Host::to_string).collect();
                format!("{}, {}", network.describe(), hosts.join(", "))
            }
        };
        let outside = if self.options.validators_outside { "; validators run outside" } else { "" };
        let by = match &self.level {
            SandboxLevel::Full(bwrap) => format!("a sandbox ({})", bwrap.version),
            SandboxLevel::Partial(why) => format!("a partial sandbox (Landlock, because {why})"),
        };
        format!("{by}: writes {writable}; reaches {network}{outside}")
    }

    /// The paths of the definition and the settings that do not exist, with the names of their keys.
    pub fn missing(&self, work: &Path, root: &Path) -> Vec<(String, &'static str)> {
        let home = hidden_paths::resolve_home();
        let is_there = |path: &str| {
            hidden_paths::resolve_path(path, work, root, home.as_deref()).is_some_and(|place| place.exists())
        };
        let written = self.policy.writable.iter().map(|path| (path.to_string(), "allowedPaths"));
        let caches = self.options.caches.iter().map(|path| (path.clone(), "caches"));
        let readable = self.options.readable.iter().map(|path| (path.clone(), "readable"));
        written.chain(caches).chain(readable).filter(|(path, _)| !is_there(path)).collect()
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
        // A service may be named twice, and a port in the sandbox leads to one place.
        let mut ports = BTreeSet::new();
        let forwards: Vec<String> = allow_list
            .services
            .iter()
            .chain(&allow_list.hosts)
            .filter(|host| host.is_local())
            .filter_map(|host| Some((host.name(), host.port()?)))
            .filter(|(_, port)| ports.insert(*port))
            .map(|(name, port)| format!("{name}:{port}"))
            .collect();
        let heard = reporter.channel();
        let egress = Egress::open(allow_list, reporter)?;
        // With mounts there is either a folder that stands in for `.git`, or no repository: then a `.git` is an agent's.
        let repository = match (&self.sandbox.level, self.git) {
            (SandboxLevel::Partial(_), None) => hidden_paths::prepare_repository_paths(self.work),
            _ => hidden_paths::RepositoryPaths::default(),
        };
        let git_config = egress.folder().join(GIT_CONFIG);
        fs::write(&git_config, &self.sandbox.git_config).map_err(error::io_error_at("write", &git_config))?;
        let (ignored, made) = match self.tree_access() {
            TreeAccess::Ignored => worktree::ignored_places(self.work, true).unwrap_or_default(),
            TreeAccess::All | TreeAccess::Files => Default::default(),
        };
        let layout = self.list_mounts(&launch.program, &repository, &ignored, &egress);
        let options = &self.sandbox.options;
        let ours = Path::new(OURS);
        // The sandbox may hide the path of our own program and the folder of the egress.
        let (exe, folder) = match &self.sandbox.level {
            SandboxLevel::Full(_) => (ours.join("cuegate"), ours.join("door")),
            SandboxLevel::Partial(_) => (self.sandbox.shim.exe.clone(), egress.folder().to_owned()),
        };
        let mut env = launch.env;
        let mut args: Vec<OsString> = self.sandbox.shim.args.clone();
        args.extend([EGRESS_FLAG.into(), folder.join(SOCKET).into()]);
        for forward in &forwards {
            args.extend([FORWARD_FLAG.into(), forward.into()]);
        }
        args.extend([LIMITS_FLAG.into(), options.limits.to_argument().into()]);
        if let SandboxLevel::Partial(_) = &self.sandbox.level {
            let temporary = folder.join(TEMPORARY);
            fs::create_dir_all(&temporary).map_err(error::io_error_at("create", &temporary))?;
            let held = self.writable_folders(&resolve_links(self.work));
            let access = build_landlock_access(&layout, &folder, &temporary, &forwards, held);
            let file = folder.join(ACCESS);
            let text = serde_json::to_vec(&access).unwrap_or_default();
            fs::write(&file, text).map_err(error::io_error_at("write", &file))?;
            args.extend([ACCESS_FLAG.into(), file.into()]);
            env.extend(["TMPDIR", "TMP", "TEMP"].map(|name| (name.into(), temporary.clone().into())));
        }
        let is_ours = Path::new(&launch.program) == self.sandbox.shim.exe;
        let program: OsString = if is_ours { exe.clone().into() } else { launch.program.clone() };
        args.extend([PROGRAM_FLAG.into(), program]);
        args.extend(launch.args.iter().cloned());
        let (program, args) = match &self.sandbox.level {
            SandboxLevel::Full(bwrap) => {
                let mut inner: Vec<OsString> = vec![bwrap.program.clone().into()];
                inner.extend(bwrap::ALWAYS.iter().chain(&bwrap::list_capability_args()).map(OsString::from));
                inner.extend(layout.args(options.limits.tmp_size, bwrap.is_recent()));
                inner.extend(["--chdir".into(), launch.cwd.clone().into(), "--".into(), exe.into()]);
                inner.extend(args);
                // Where no other command is at work nobody can change a path meanwhile.
                if bwrap.takes_handles && self.git.is_none_or(AgentGit::is_shared) {
                    let roots = self.writable_folders(&resolve_links(self.work));
                    inner = held_sources::hold_sources(&self.sandbox.shim, &roots, inner);
                }
                let mut outer: Vec<OsString> = vec!["-c".into(), IGNORE_TERM.into()];
                outer.extend(inner);
                ("/bin/sh".into(), outer)
            }
            SandboxLevel::Partial(_) => (exe.into(), args),
        };
        let settings = self.sealed.iter().filter(|file| is_settings_file(file));
        let kept_out = KeptOutMark::mark(self.state, self.work, settings.map(PathBuf::as_path))
            .map_err(error::io_error_at("write a mark in", self.state))?;
        let guard = SandboxGuard { _egress: egress, forbidden: repository.forbidden, kept_out, made, heard };
        env.push(("GIT_CONFIG_GLOBAL".into(), folder.join(GIT_CONFIG).into()));
        let passed = |name: &OsString| env.iter().any(|(set, _)| set == name);
        let mut env_remove = launch.env_remove;
        env_remove.extend(
            environment::list_removed_variables(self.variables()).into_iter().filter(|name| !passed(name)),
        );
        Ok((Launch { program, args, env, env_remove, ..launch }, guard))
    }

    /// The variables that are passed on besides the usual ones.
    fn variables(&self) -> impl Iterator<Item = &str> + Clone {
        let of_agent = match &self.kind {
            ProcessKind::Agent { needs, .. } => needs.variables.as_slice(),
            ProcessKind::Program => &[],
        };
        let named = self.sandbox.options.environment.iter().chain(of_agent).map(String::as_str);
        named.chain(self.passed.iter().copied())
    }

    fn allow_list(&self) -> AllowList {
        let services = match &self.kind {
            ProcessKind::Agent { needs, .. } => {
                needs.services.iter().map(|service| Host::with_port(&service.host, service.port)).collect()
            }
            ProcessKind::Program => Vec::new(),
        };
        let mut hosts = self.sandbox.policy.network.hosts();
        if self.sandbox.policy.network != Network::None {
            hosts.extend(self.sandbox.options.hosts.iter().cloned());
        }
        AllowList { services, hosts }
    }

    pub(super) fn tree_access(&self) -> TreeAccess {
        match self.kind {
            ProcessKind::Agent { writes, .. } => writes,
            ProcessKind::Program => TreeAccess::All,
        }
    }

    fn list_mounts(
        &self,
        program: &OsStr,
        repository: &hidden_paths::RepositoryPaths,
        ignored: &[PathBuf],
        egress: &Egress,
    ) -> MountTable {
        let home = hidden_paths::resolve_home();
        let work = resolve_links(self.work);
        let mut layout = MountTable::default();
        layout.put("/", Mount::Read);
        layout.put("/dev", Mount::Devices);
        layout.put("/proc", Mount::Processes);
        // The first process is our own.
        layout.put("/proc/1", Mount::Empty);
        if rustix::process::geteuid().is_root() {
            hidden_paths::proc_paths().for_each(|path| layout.put(path.clone(), Mount::ReadFrom(path)));
        }
        KEY_LISTS
            .iter()
            .filter(|path| Path::new(path).exists())
            .for_each(|path| layout.put(path, Mount::Nothing));
        visible::hidden_folders().into_iter().for_each(|path| layout.put(path, Mount::Hidden));
        hidden_paths::list_private_folders().iter().for_each(|path| layout.put(path, Mount::Scratch));
        home.iter().for_each(|home| layout.put(home, Mount::Scratch));
        hidden_paths::run_paths().for_each(|path| layout.put(path, Mount::Read));

        let located = |path: &str| hidden_paths::resolve_path(path, &work, self.root, home.as_deref());
        let readable = self.sandbox.options.readable.iter().filter_map(|path| located(path));
        let readable: Vec<PathBuf> = readable.collect();
        let writable = self.writable_folders(&work);
        let readable = hidden_paths::resolve_safely(&readable, &writable);
        let started: &[PathBuf] = match &self.kind {
            ProcessKind::Agent { needs, .. } => &needs.programs,
            ProcessKind::Program => &[],
        };
        let program = std::iter::once(Path::new(program))
            .chain(started.iter().map(PathBuf::as_path))
            // The script of an interpreter need not be a program itself.
            .filter_map(|path| match path.is_absolute() {
                true => Some(path.to_owned()),
                false => cuegate_provider::locate_program(path),
            })
            .flat_map(|path| visible::of_program(&path, home.as_deref()));
        let project = hidden_paths::top_of_repository(self.root).unwrap_or_else(|| resolve_links(self.root));
        let mut searched = vec![project.clone()];
        let shown = self
            .sandbox
            .shown
            .iter()
            .cloned()
            .chain(program)
            .chain(readable.iter().cloned())
            .chain([project]);
        for path in shown.filter(|path| path.exists()) {
            if !layout.hides(&path) {
                continue;
            }
            // A link is shown as what it leads to, under its own name. One that an agent may have made leads nowhere else.
            let is_own = |target: &Path| {
                writable.iter().all(|folder| !path.starts_with(folder) || target.starts_with(folder))
            };
            match fs::canonicalize(&path) {
                Ok(target) if target != path && !is_own(&target) => {}
                Ok(target) if target != path => layout.put(path, Mount::ReadFrom(target)),
                _ => layout.put(path, Mount::Read),
            }
        }

        let (keys, state): (&[PathBuf], _) = match &self.kind {
            ProcessKind::Agent { needs, .. } => (&needs.keys, self.agent_state()),
            ProcessKind::Program => (&[], Vec::new()),
        };
        let is_ours = |path: &Path| state.iter().any(|own| path.starts_with(own));
        for secret in self.sandbox.hidden.iter().filter(|path| !is_ours(path)) {
            // Most of them are hidden already with the folder that they are in.
            if secret.exists() && !layout.hides(secret) {
                layout.put(secret, if secret.is_dir() { Mount::Hidden } else { Mount::Nothing });
            }
        }
        keys.iter()
            .filter_map(|path| fs::canonicalize(path).ok())
            .for_each(|path| layout.put(path, Mount::Read));
        let open: Vec<PathBuf> =
            [&work].into_iter().chain(&repository.written).chain(&state).cloned().collect();
        let caches = self.sandbox.options.caches.iter().filter_map(|path| located(path));
        let wanted = self.sandbox.policy.writable.iter().filter_map(|path| located(path)).chain(caches);
        let wanted: Vec<PathBuf> = wanted.collect();
        let wanted = hidden_paths::resolve_safely(&wanted, &open);
        searched.extend(wanted.iter().cloned().chain(readable));
        wanted.into_iter().for_each(|path| layout.put(path, Mount::Write));
        state.iter().for_each(|path| layout.put(path, Mount::Write));
        if let ProcessKind::Agent { needs, .. } = &self.kind {
            // Agents write in the folders with their settings, and may have put a link there.
            let is_secret = |path: &Path| {
                let secrets = self.sandbox.hidden.iter().filter(|secret| !is_ours(secret));
                secrets.into_iter().any(|secret| secret.starts_with(path) || path.starts_with(secret))
            };
            let settings = needs.settings.iter().filter_map(|path| fs::canonicalize(path).ok());
            let settings = settings.filter(|path| is_ours(path) || !is_secret(path));
            settings.collect::<Vec<_>>().into_iter().for_each(|path| layout.put(path, Mount::Read));
        }
        self.put_git(&work, &mut layout);
        let access = self.tree_access();
        layout.put(&work, if access == TreeAccess::Ignored { Mount::Read } else { Mount::Write });
        match access {
            TreeAccess::All => repository.written.iter().for_each(|path| layout.put(path, Mount::Write)),
            TreeAccess::Files => {
                let own = repository.written.iter().filter(|path| path.starts_with(&work));
                own.for_each(|path| layout.put(path, Mount::Read));
            }
            TreeAccess::Ignored => ignored.iter().for_each(|path| {
                // Another member may have put a link there meanwhile.
                let place = resolve_links(path);
                if place.starts_with(&work) && !layout.hides(&place) {
                    layout.put(place, Mount::Write);
                }
            }),
        }
        if access != TreeAccess::Ignored {
            repository.sealed.iter().for_each(|path| layout.put(path, Mount::Read));
            hidden_paths::mounts_of_sealed_files(&work, self.sealed)
                .into_iter()
                .for_each(|(path, mount)| layout.put(path, mount));
        }
        let state = resolve_links(self.state);
        let ignore = state.join(".gitignore");
        layout.put(state, Mount::Empty);
        // Without it git would show what is visible in there as new files.
        if ignore.is_file() {
            layout.put(ignore, Mount::Read);
        }
        let shown = self.shown.iter().filter_map(|path| fs::canonicalize(path).ok());
        shown.for_each(|path| layout.put(path, Mount::Read));
        let ours = Path::new(OURS);
        layout.put(ours.join("cuegate"), Mount::ReadFrom(resolve_links(&self.sandbox.shim.exe)));
        layout.put(ours.join("door"), Mount::ReadFrom(resolve_links(egress.folder())));
        let mut sockets = sockets::list_listening_sockets();
        sockets.extend(self.sandbox.sockets.iter().filter(|socket| socket.exists()).cloned());
        for folder in std::iter::once(work).chain(searched) {
            sockets.extend(sockets::find_sockets_below(&folder, |path| layout.hides(path)));
        }
        for socket in sockets {
            if !layout.hides(&socket) {
                layout.put(socket, Mount::Nothing);
            }
        }
        layout
    }
}

/// What Landlock allows. `folder` is that of the egress; its socket is not needed inside.
fn build_landlock_access(
    layout: &MountTable,
    folder: &Path,
    temporary: &Path,
    forwards: &[String],
    held: Vec<PathBuf>,
) -> LandlockAccess {
    let mut access = LandlockAccess { held, ..LandlockAccess::of_layout(layout) };
    access.read.retain(|path| path != folder);
    access.read.push(folder.join(GIT_CONFIG));
    access.write.push(temporary.to_owned());
    access.ports = forwards.iter().filter_map(|forward| forward.rsplit_once(':')?.1.parse().ok()).collect();
    access
}

/// Resolves the links of a path; returns it unchanged if it does not exist.
fn resolve_links(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
