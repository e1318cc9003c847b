//! Confines our own git where it reads or writes what agents left: its objects, references and settings may be made to
//! attack whoever reads them.

use std::{ffi::OsString, path::PathBuf};

use serde::{Deserialize, Serialize};

/// What a confined program reaches besides the programs and libraries of the system.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReachedPaths {
    /// Files and folders that it may read.
    pub read: Vec<PathBuf>,
    /// Folders that it may write too.
    pub write: Vec<PathBuf>,
}

/// How a program is confined: it has no network, and reads and writes only the named paths.
#[derive(Debug, Clone, Default)]
pub enum Confinement {
    /// Not at all: the agents of the run are not confined either.
    #[default]
    None,
    /// By bubblewrap.
    Mounts {
        /// The program `bwrap`.
        program: PathBuf,
        /// Its arguments up to the mounts of the paths.
        args: Vec<OsString>,
    },
    /// By Landlock, which our own program applies to itself before it starts the other one.
    Landlock {
        /// Our own program with the arguments that select the hidden command.
        command: Vec<OsString>,
        /// The programs and libraries of the system.
        system: Vec<PathBuf>,
    },
}

impl Confinement {
    /// The words before a command that confine it to these paths, which exist. Each is mounted as it is named, so no agent
    /// may write in the folders above it.
    pub fn words_before(&self, reached: &ReachedPaths) -> Vec<OsString> {
        match self {
            Confinement::None => Vec::new(),
            Confinement::Mounts { program, args } => {
                let mut words = vec![program.clone().into_os_string()];
                words.extend(args.iter().cloned());
                // What is read may be inside of what is written and the other way round: the longer path comes later.
                let read = reached.read.iter().map(|path| ("--ro-bind", path));
                let write = reached.write.iter().map(|path| ("--bind", path));
                let mut mounts: Vec<(&str, &PathBuf)> = read.chain(write).collect();
                mounts.sort_by_key(|(_, path)| path.components().count());
                for (flag, path) in mounts {
                    words.extend([flag.into(), path.into(), path.into()]);
                }
                words.push("--".into());
                words
            }
            Confinement::Landlock { command, system } => {
                let mut reached = reached.clone();
                reached.read.extend(system.iter().cloned());
                let mut words = command.clone();
                // A path that is no text is not readable inside, and the command fails.
                words.push(serde_json::to_string(&reached).unwrap_or_default().into());
                words.push("--".into());
                words
            }
        }
    }
}
