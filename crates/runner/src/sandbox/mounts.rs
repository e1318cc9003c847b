//! The mounts of a sandbox, and the bubblewrap arguments for them.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// What is mounted at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sandbox) enum Mount {
    /// The same path of the host, read-only.
    Read,
    /// The same path of the host, writable.
    Write,
    /// Another path of the host, read-only.
    ReadFrom(PathBuf),
    /// Another path of the host, writable.
    WriteFrom(PathBuf),
    /// An empty writable folder, removed with the sandbox.
    Scratch,
    /// An empty read-only folder.
    Empty,
    /// An empty folder, read-only for other users than root, for whom it is removed with the sandbox.
    Hidden,
    /// An empty file.
    Nothing,
    /// The devices that every program needs.
    Devices,
    /// The processes of the sandbox.
    Processes,
}

/// The mounts of a sandbox by path. The longest matching path decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::sandbox) struct MountTable(BTreeMap<PathBuf, Mount>);

impl MountTable {
    /// Sets the mount of a path, replacing a former one. The path contains no links.
    pub(in crate::sandbox) fn put(&mut self, path: impl Into<PathBuf>, mount: Mount) {
        self.0.insert(path.into(), mount);
    }

    /// Whether a path of the host is not visible.
    pub(in crate::sandbox) fn hides(&self, path: &Path) -> bool {
        matches!(self.mount_of(path), Some(Mount::Scratch | Mount::Empty | Mount::Hidden | Mount::Nothing))
    }

    /// The mount that applies to a path: its own or that of the nearest parent.
    pub(in crate::sandbox) fn mount_of(&self, path: &Path) -> Option<&Mount> {
        path.ancestors().find_map(|above| self.0.get(above))
    }

    /// The mounts below a path.
    pub(in crate::sandbox) fn below<'l>(
        &'l self,
        path: &'l Path,
    ) -> impl Iterator<Item = (&'l PathBuf, &'l Mount)> {
        self.0
            .range(path.to_owned()..)
            .skip_while(move |(at, _)| *at == path)
            .take_while(move |(at, _)| at.starts_with(path))
    }

    /// The bubblewrap arguments. The map orders paths by component, so that parents precede their children.
    /// `tmp_size` is the limit of each private folder in bytes; `is_recent` is that
    /// of [`super::Bwrap`].
    pub(in crate::sandbox) fn args(&self, tmp_size: Option<u64>, is_recent: bool) -> Vec<OsString> {
        let tmp_size = tmp_size.filter(|_| is_recent).map(|size| size.to_string());
        let mut args: Vec<OsString> = Vec::new();
        let mut push = |words: &[&dyn AsRef<std::ffi::OsStr>]| {
            args.extend(words.iter().map(|word| word.as_ref().to_owned()))
        };
        for (path, mount) in &self.0 {
            match mount {
                Mount::Read => push(&[&"--ro-bind", path, path]),
                Mount::Write => push(&[&"--bind", path, path]),
                Mount::WriteFrom(from) => push(&[&"--bind", from, path]),
                Mount::ReadFrom(from) => push(&[&"--ro-bind", from, path]),
                Mount::Scratch => match &tmp_size {
                    Some(size) => push(&[&"--size", size, &"--tmpfs", path]),
                    None => push(&[&"--tmpfs", path]),
                },
                Mount::Empty => push(&[&"--tmpfs", path]),
                Mount::Hidden if !is_recent => push(&[&"--tmpfs", path]),
                Mount::Hidden => push(&[&"--perms", &"0555", &"--tmpfs", path]),
                Mount::Nothing => push(&[&"--ro-bind", &"/dev/null", path]),
                Mount::Devices => push(&[&"--dev", path]),
                Mount::Processes => push(&[&"--proc", path]),
            }
        }
        // Remount read-only after all mounts inside of it exist.
        for (path, _) in self.0.iter().filter(|(_, mount)| **mount == Mount::Empty) {
            push(&[&"--remount-ro", path]);
        }
        args
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_mount_comes_later_and_decides() {
        let mut layout = MountTable::default();
        layout.put("/p/.cuegate/runs/r/files", Mount::Read);
        layout.put("/p-more", Mount::Write);
        layout.put("/p/.cuegate", Mount::Empty);
        layout.put("/p", Mount::Write);
        layout.put("/", Mount::Read);
        layout.put("/p/.git/config", Mount::Nothing);
        layout.put("/p/.git/config", Mount::Read);
        let args: Vec<String> =
            layout.args(None, true).into_iter().map(|word| word.into_string().unwrap()).collect();
        assert_eq!(
            args.join(" "),
            "--ro-bind / / --bind /p /p --tmpfs /p/.cuegate --ro-bind /p/.cuegate/runs/r/files \
             /p/.cuegate/runs/r/files --ro-bind /p/.git/config /p/.git/config --bind /p-more /p-more --remount-ro \
             /p/.cuegate"
        );
        assert_eq!(layout.mount_of(Path::new("/p/.cuegate/x")), Some(&Mount::Empty));
        assert_eq!(layout.mount_of(Path::new("/q")), Some(&Mount::Read));
    }
}
