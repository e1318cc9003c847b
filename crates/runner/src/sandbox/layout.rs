//! What is where in the room, as data, and bubblewrap's arguments for it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// What stands at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mount {
    /// What is there outside, to read.
    Read,
    /// What is there outside, to read and write.
    Write,
    /// What is elsewhere outside, to read.
    ReadFrom(PathBuf),
    /// An empty folder, to write, gone with the room.
    Scratch,
    /// An empty folder.
    Empty,
    /// An empty file.
    Nothing,
    /// The devices that every program needs.
    Devices,
    /// The processes of the room.
    Processes,
}

/// The places of a room. One within another goes before that one: the more precise path decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Layout(BTreeMap<PathBuf, Mount>);

impl Layout {
    /// Puts something at a place, in place of what was put there before. The path has no links in it.
    pub(super) fn put(&mut self, path: impl Into<PathBuf>, mount: Mount) {
        self.0.insert(path.into(), mount);
    }

    /// What decides about a path: what was put there, or on its way.
    pub(super) fn at(&self, path: &Path) -> Option<&Mount> {
        path.ancestors().find_map(|above| self.0.get(above))
    }

    /// bubblewrap's arguments. A map of paths is in the order of their parts, so that what is within another comes later.
    pub(super) fn args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        let mut say = |words: &[&dyn AsRef<std::ffi::OsStr>]| {
            args.extend(words.iter().map(|word| word.as_ref().to_owned()))
        };
        for (path, mount) in &self.0 {
            match mount {
                Mount::Read => say(&[&"--ro-bind", path, path]),
                Mount::Write => say(&[&"--bind", path, path]),
                Mount::ReadFrom(from) => say(&[&"--ro-bind", from, path]),
                Mount::Scratch | Mount::Empty => say(&[&"--tmpfs", path]),
                Mount::Nothing => say(&[&"--ro-bind", &"/dev/null", path]),
                Mount::Devices => say(&[&"--dev", path]),
                Mount::Processes => say(&[&"--proc", path]),
            }
        }
        // When everything in there has its place.
        for (path, _) in self.0.iter().filter(|(_, mount)| **mount == Mount::Empty) {
            say(&[&"--remount-ro", path]);
        }
        args
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_within_another_comes_later_and_decides() {
        let mut layout = Layout::default();
        layout.put("/p/.cuegate/runs/r/files", Mount::Read);
        layout.put("/p-more", Mount::Write);
        layout.put("/p/.cuegate", Mount::Empty);
        layout.put("/p", Mount::Write);
        layout.put("/", Mount::Read);
        layout.put("/p/.git/config", Mount::Nothing);
        layout.put("/p/.git/config", Mount::Read);
        let args: Vec<String> = layout.args().into_iter().map(|word| word.into_string().unwrap()).collect();
        assert_eq!(
            args.join(" "),
            "--ro-bind / / --bind /p /p --tmpfs /p/.cuegate --ro-bind /p/.cuegate/runs/r/files \
             /p/.cuegate/runs/r/files --ro-bind /p/.git/config /p/.git/config --bind /p-more /p-more --remount-ro \
             /p/.cuegate"
        );
        assert_eq!(layout.at(Path::new("/p/.cuegate/x")), Some(&Mount::Empty));
        assert_eq!(layout.at(Path::new("/q")), Some(&Mount::Read));
    }
}
