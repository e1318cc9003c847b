//! The partial level of the sandbox, where bubblewrap cannot run: Landlock restricts which files, ports and processes a
//! program reaches. It creates no file system of its own, so it cannot hide or protect a path in a writable folder.

#![expect(clippy::disallowed_methods, reason = "paths of the system and of the user")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    held_sources::open_below,
    mounts::{Mount, MountTable},
};

/// The first version of Landlock in the kernel (Linux 6.12) that also restricts ports, signals and abstract sockets.
#[cfg(target_os = "linux")]
const ABI: landlock::ABI = landlock::ABI::V6;

/// What the program may access.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct LandlockAccess {
    /// Files and folders that are readable, with all that is in them.
    pub(super) read: Vec<PathBuf>,
    /// Files and folders that are writable too.
    pub(super) write: Vec<PathBuf>,
    /// TCP ports that can be connected to, besides that of the proxy.
    pub(super) ports: Vec<u16>,
    /// Folders in which agents may have put a link in the place of one of these paths.
    pub(super) held: Vec<PathBuf>,
}

/// Devices that every program needs. Terminals are not among them: they are those of the user, who types there.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

impl LandlockAccess {
    /// The access that comes closest to a layout of mounts, without allowing more reading.
    ///
    /// A rule holds for all that is in a folder. So a readable folder with something hidden in it is replaced by its
    /// other entries, as they are now; a writable folder is writable as a whole, because new entries have to be.
    pub(super) fn of_layout(layout: &MountTable) -> LandlockAccess {
        let mut access = LandlockAccess::default();
        access.add(Path::new("/"), layout);
        access
    }

    fn add(&mut self, path: &Path, layout: &MountTable) {
        let Some(mount) = layout.mount_of(path) else { return };
        let has_limits = layout.below(path).any(|(_, below)| rank_of_mount(below) < rank_of_mount(mount));
        match mount {
            Mount::Devices => {
                self.write.extend(DEVICES.map(|name| path.join(name)));
                return;
            }
            // The folders of processes change all the time. What they protect is protected by the kernel: a process
            // cannot be traced, which includes its variables and files, from a Landlock domain outside of which it is.
            Mount::Processes => return self.read.push(path.to_owned()),
            Mount::Write => self.write.push(path.to_owned()),
            Mount::Read if has_limits && path.is_dir() => {
                let entries = fs::read_dir(path).into_iter().flatten().flatten();
                // What a link leads to is visible if it is visible by its own name.
                let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
                return entries.for_each(|entry| self.add(&entry.path(), layout));
            }
            Mount::Read => self.read.push(path.to_owned()),
            Mount::ReadFrom(from) => self.read.push(from.clone()),
            Mount::WriteFrom(from) => self.write.push(from.clone()),
            Mount::Scratch | Mount::Empty | Mount::Hidden | Mount::Nothing => {}
        }
        for (below, _) in layout.below(path).filter(|(_, below)| rank_of_mount(below) > rank_of_mount(mount))
        {
            self.add(below, layout);
        }
    }
}

#[cfg(target_os = "linux")]
impl LandlockAccess {
    /// The rules that allow paths. One that is missing, or a link now, is left out.
    fn list_rules(
        &self,
        paths: &[PathBuf],
        allowed: landlock::BitFlags<landlock::AccessFs>,
    ) -> Vec<Result<landlock::PathBeneath<std::os::fd::OwnedFd>, landlock::RulesetError>> {
        let open = |path: &PathBuf| match open_below(&self.held, path, false) {
            Some(opened) => opened.ok(),
            None => {
                let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
                rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()
            }
        };
        let opened = paths.iter().filter_map(open);
        let rules = opened.map(|handle| {
            let kind =
                rustix::fs::fstat(&handle).map(|about| rustix::fs::FileType::from_raw_mode(about.st_mode));
            // What holds for folders only is no right of a file.
            let allowed = match kind {
                Ok(rustix::fs::FileType::Directory) => allowed,
                _ => allowed & landlock::AccessFs::from_file(ABI),
            };
            Ok(landlock::PathBeneath::new(handle, allowed))
        });
        rules.collect()
    }
}

/// More is allowed by a higher rank.
fn rank_of_mount(mount: &Mount) -> u8 {
    match mount {
        Mount::Scratch | Mount::Empty | Mount::Hidden | Mount::Nothing => 0,
        Mount::Read | Mount::ReadFrom(_) => 1,
        Mount::Write | Mount::WriteFrom(_) | Mount::Devices | Mount::Processes => 2,
    }
}

/// Whether the kernel has all restrictions that this level needs.
#[cfg(target_os = "linux")]
pub fn is_available() -> bool {
    use landlock::{AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, Scope};
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let ruleset = ruleset.handle_access(landlock::Access::from_all(ABI) as landlock::BitFlags<AccessFs>);
    ruleset.and_then(|ruleset| ruleset.scope(Scope::Signal)).and_then(Ruleset::create).is_ok()
}

/// Other systems have no Landlock.
#[cfg(not(target_os = "linux"))]
pub fn is_available() -> bool {
    false
}

/// Restricts this thread and the processes that it starts. They keep their open files and the working folder. `proxy` is
/// a port that can be connected to.
///
/// # Errors
/// When the kernel refuses a restriction.
#[cfg(target_os = "linux")]
pub(super) fn restrict_thread(access: &LandlockAccess, proxy: Option<u16>) -> Result<(), String> {
    use std::os::fd::AsFd as _;

    use landlock::{
        Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, PathBeneath, Ruleset,
        RulesetAttr as _, RulesetCreatedAttr as _, Scope,
    };
    drop_capabilities().map_err(|error| error.to_string())?;
    let create = || {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI))?
            .handle_access(AccessNet::from_all(ABI))?
            .scope(Scope::from_all(ABI))?
            .create()?
            .set_compatibility(CompatLevel::BestEffort)
            .add_rules(access.list_rules(&access.read, AccessFs::from_read(ABI)))?
            .add_rules(access.list_rules(&access.write, AccessFs::from_all(ABI)))?;
        for port in access.ports.iter().copied().chain(proxy) {
            ruleset = ruleset.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
        }
        // `/dev/stdout` and `/dev/stderr` open the file of the output again.
        let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
        for output in [stdout.as_fd(), stderr.as_fd()] {
            let about = rustix::fs::fstat(output);
            let is_file = about.is_ok_and(|about| {
                rustix::fs::FileType::from_raw_mode(about.st_mode) == rustix::fs::FileType::RegularFile
            });
            if is_file {
                ruleset = ruleset.add_rule(PathBeneath::new(output, AccessFs::WriteFile))?;
            }
        }
        ruleset.restrict_self()
    };
    create().map(drop).map_err(|error: landlock::RulesetError| error.to_string())
}

/// Other systems have no Landlock.
#[cfg(not(target_os = "linux"))]
pub(super) fn restrict_thread(_access: &LandlockAccess, _proxy: Option<u16>) -> Result<(), String> {
    Err("Landlock needs Linux".to_owned())
}

/// Removes the capabilities of root from the programs that this thread starts, but for those that reading and writing the
/// files of another user needs.
#[cfg(target_os = "linux")]
fn drop_capabilities() -> rustix::io::Result<()> {
    use rustix::thread::{CapabilitySet, capability_is_in_bounding_set, remove_capability_from_bounding_set};
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let kept = CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER;
    for capability in (CapabilitySet::all() - kept).iter() {
        if capability_is_in_bounding_set(capability) == Ok(true) {
            remove_capability_from_bounding_set(capability)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_readable_folder_with_a_secret_is_replaced_by_its_other_entries() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for file in
            ["etc/hosts", "etc/ssl/cert", "etc/ssl/private/key", "home/bin/tool", "home/tree/x", "dev/null"]
        {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("ssl", root.join("etc/link")).unwrap();
        let mut layout = MountTable::default();
        let at = |path: &str| root.join(path);
        layout.put(&root, Mount::Read);
        layout.put(at("dev"), Mount::Devices);
        layout.put(at("etc/ssl/private"), Mount::Hidden);
        layout.put(at("home"), Mount::Scratch);
        layout.put(at("home/bin"), Mount::Read);
        layout.put(at("home/tree"), Mount::Write);
        layout.put(at("home/tree/.git"), Mount::Read);
        let mut access = LandlockAccess::default();
        access.add(&root, &layout);
        access.read.sort();
        access.read.retain(|path| !path.starts_with(at("home/tree")));
        assert_eq!(access.read, ["etc/hosts", "etc/ssl/cert", "home/bin"].map(at));
        assert!(access.write.contains(&at("home/tree")));
        assert!(access.write.contains(&at("dev/null")));
    }
}
