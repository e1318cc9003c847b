//! The room that a command is started in.

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
    egress::{Egress, SOCKET, Teller},
    layout::{Layout, Mount},
    mounts,
    proxy::Guests,
    sandbox_init::{DOOR, NEAR, PROGRAM},
};
use crate::{
    error::Error,
    process::{Launch, Shim},
};

/// Where a room has what is ours.
const OURS: &str = "/run/cuegate";
/// bubblewrap would end at the first signal to end, and everybody in the room with it, without the time that they have
/// for it. So it ignores that signal, which everybody else in its process group gets as well.
const PATIENT: &str = "trap '' TERM; exec \"$0\" \"$@\"";

/// The sandbox of a run, which was seen to be able to stand here.
#[derive(Debug, Clone)]
pub struct Sandbox {
    bwrap: Bwrap,
    wish: flow::model::sandbox::SandboxPolicy,
    /// How our own binary is started in a room.
    inside: Shim,
}

/// Who is in a room.
pub(crate) enum Who {
    /// An agent.
    Agent {
        /// Whether it may write in the working tree.
        writes: bool,
        /// What its program needs.
        needs: Needs,
    },
    /// A program of the definition. It may write in the working tree.
    Handler,
}

/// A room for a command.
pub(crate) struct SandboxSpec<'r> {
    /// Its sandbox.
    pub(crate) sandbox: &'r Sandbox,
    /// Who is in it.
    pub(crate) who: Who,
    /// The project.
    pub(crate) root: &'r Path,
    /// The folder that is worked in.
    pub(crate) work: &'r Path,
    /// The folder of our state, of which nothing is seen in the room.
    pub(crate) state: &'r Path,
    /// But these, to read, where they are.
    pub(crate) shown: Vec<PathBuf>,
    /// The folder of the command.
    pub(crate) command: &'r Path,
}

/// A room in use. Who drops it has seen to it that nobody is in there any more.
pub(crate) struct Used {
    _door: Egress,
    forbidden: Vec<PathBuf>,
}

impl Drop for Used {
    fn drop(&mut self) {
        for path in &self.forbidden {
            // It is looked at before git is: what stays behind although it can be removed is not there.
            let _ = fs::remove_file(path);
        }
    }
}

impl Sandbox {
    /// Finds out whether a sandbox can stand here.
    ///
    /// # Errors
    /// When it cannot, with what to do about it.
    pub fn raise(wish: &flow::model::sandbox::SandboxPolicy, inside: Shim) -> Result<Sandbox, SandboxError> {
        Ok(Sandbox { bwrap: Bwrap::find()?, wish: wish.clone(), inside })
    }

    /// What holds, in words.
    pub fn describe(&self) -> String {
        let writable = match self.wish.writable.as_slice() {
            [] => "the working tree".to_owned(),
            paths => format!("the working tree, {}", paths.join(", ")),
        };
        format!(
            "a sandbox ({}): writes {writable}; reaches {}",
            self.bwrap.version,
            self.wish.network.describe()
        )
    }

    /// The paths that the definition allows to be written and that are not there: nothing can be written there.
    pub fn missing(&self, work: &Path, root: &Path) -> Vec<String> {
        let home = mounts::home();
        let is_there = |path: &str| {
            mounts::written(path, work, root, home.as_deref()).is_some_and(|place| place.exists())
        };
        self.wish.writable.iter().filter(|path| !is_there(path)).map(|path| path.to_string()).collect()
    }
}

impl SandboxSpec<'_> {
    /// Makes what is to be started start in the room, and opens the door.
    ///
    /// # Errors
    /// When the door cannot be opened.
    pub(crate) fn enclose(&self, launch: Launch, teller: Teller) -> Result<(Launch, Used), Error> {
        let guests = self.guests();
        let near: Vec<String> = guests
            .services
            .iter()
            .chain(&guests.hosts)
            .filter(|host| host.is_local())
            .filter_map(|host| Some(format!("{}:{}", host.name(), host.port()?)))
            .collect();
        let door = Egress::open(self.command, guests, teller)?;
        let repository = mounts::repository(self.work);
        let layout = self.layout(&launch.program, &repository, &door);
        let ours = Path::new(OURS);
        let mut args: Vec<OsString> =
            vec!["-c".into(), PATIENT.into(), self.sandbox.bwrap.program.clone().into()];
        args.extend(bwrap::ALWAYS.iter().chain(&bwrap::rights()).map(OsString::from));
        args.extend(layout.args());
        args.extend(["--chdir".into(), launch.cwd.clone().into(), "--".into(), ours.join("cuegate").into()]);
        args.extend(self.sandbox.inside.args.iter().cloned());
        args.extend([DOOR.into(), ours.join("door").join(SOCKET).into()]);
        for near in near {
            args.extend([NEAR.into(), near.into()]);
        }
        args.push(PROGRAM.into());
        // Our own program may lie where the room has other things.
        let is_own = Path::new(&launch.program) == self.sandbox.inside.exe;
        args.push(if is_own { ours.join("cuegate").into() } else { launch.program.clone() });
        args.extend(launch.args.iter().cloned());
        let used = Used { _door: door, forbidden: repository.forbidden };
        Ok((Launch { program: "/bin/sh".into(), args, ..launch }, used))
    }

    fn guests(&self) -> Guests {
        let services = match &self.who {
            Who::Agent { needs, .. } => {
                needs.services.iter().map(|service| Host::at(&service.host, service.port)).collect()
            }
            Who::Handler => Vec::new(),
        };
        Guests { services, hosts: self.sandbox.wish.network.hosts() }
    }

    fn layout(&self, program: &OsStr, repository: &mounts::Repository, door: &Egress) -> Layout {
        let home = mounts::home();
        let work = real(self.work);
        let mut layout = Layout::default();
        layout.put("/", Mount::Read);
        layout.put("/dev", Mount::Devices);
        layout.put("/proc", Mount::Processes);
        mounts::of_proc().for_each(|path| layout.put(path.clone(), Mount::ReadFrom(path)));
        let private = mounts::private();
        private.iter().for_each(|path| layout.put(path, Mount::Scratch));
        mounts::of_run().for_each(|path| layout.put(path, Mount::Read));
        // What lies where the room has a folder of its own, and is needed.
        let needed = programs(program).into_iter().filter_map(|path| top(&path, &private));
        let needed =
            needed.chain(home.clone()).chain([real(self.root)]).filter(|path| is_within(path, &private));
        needed.for_each(|path| layout.put(path, Mount::Read));
        let keys: &[PathBuf] = match &self.who {
            Who::Agent { needs, .. } => &needs.keys,
            Who::Handler => &[],
        };
        let state = self.agent_state();
        let is_own = |path: &Path| state.iter().any(|own| path.starts_with(own));
        for secret in home.iter().flat_map(|home| mounts::secrets(home)).filter(|path| !is_own(path)) {
            let mount = if secret.is_dir() { Mount::Empty } else { Mount::Nothing };
            layout.put(secret, mount);
        }
        keys.iter()
            .filter_map(|path| fs::canonicalize(path).ok())
            .for_each(|path| layout.put(path, Mount::Read));
        let open: Vec<PathBuf> =
            [&work].into_iter().chain(&repository.written).chain(&state).cloned().collect();
        let written = |path: &flow::Str| mounts::written(path, &work, self.root, home.as_deref());
        let wanted: Vec<PathBuf> = self.sandbox.wish.writable.iter().filter_map(written).collect();
        mounts::steady(&wanted, &open).into_iter().for_each(|path| layout.put(path, Mount::Write));
        state.into_iter().for_each(|path| layout.put(path, Mount::Write));
        if let Who::Agent { needs, .. } = &self.who {
            let settings = needs.settings.iter().filter_map(|path| fs::canonicalize(path).ok());
            settings.for_each(|path| layout.put(path, Mount::Read));
        }
        let writes = !matches!(self.who, Who::Agent { writes: false, .. });
        layout.put(work, if writes { Mount::Write } else { Mount::Read });
        if writes {
            repository.written.iter().for_each(|path| layout.put(path, Mount::Write));
            repository.sealed.iter().for_each(|path| layout.put(path, Mount::Read));
        }
        layout.put(real(self.state), Mount::Empty);
        let shown = self.shown.iter().filter_map(|path| fs::canonicalize(path).ok());
        shown.for_each(|path| layout.put(path, Mount::Read));
        layout.put(Path::new(OURS).join("cuegate"), Mount::ReadFrom(real(&self.sandbox.inside.exe)));
        layout.put(Path::new(OURS).join("door"), Mount::ReadFrom(real(door.folder())));
        for socket in mounts::sockets() {
            // Where the room has other things it is not seen anyway.
            if !matches!(layout.at(&socket), Some(Mount::Scratch | Mount::Empty)) {
                layout.put(socket, Mount::Nothing);
            }
        }
        layout
    }

    /// What an agent's program keeps of its own. A folder that is missing is made: it would be, without the sandbox.
    fn agent_state(&self) -> Vec<PathBuf> {
        let Who::Agent { needs, .. } = &self.who else { return Vec::new() };
        for path in needs.state.iter().filter(|path| !path.exists() && path.extension().is_none()) {
            let _ = fs::create_dir_all(path);
        }
        needs.state.iter().filter_map(|path| fs::canonicalize(path).ok()).collect()
    }
}

/// A path without links in it; as it is where it leads nowhere.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn is_within(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder) && path != folder)
}

/// Where programs lie: the one that is started, as it is called and as it is, and what is in `PATH`.
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
    // As they are named, too: links on the way have to be there.
    let real: Vec<PathBuf> = found.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    found.into_iter().filter(|path| path.exists()).chain(real).collect()
}

/// The outermost folder below one of these that a path lies in: what a program needs may lie beside it.
fn top(path: &Path, folders: &[PathBuf]) -> Option<PathBuf> {
    let folder = folders
        .iter()
        .filter(|folder| path.starts_with(folder))
        .max_by_key(|folder| folder.as_os_str().len())?;
    let first = path.strip_prefix(folder).ok()?.components().next()?;
    Some(folder.join(first))
}
