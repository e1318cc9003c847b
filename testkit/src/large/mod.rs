//! Large definitions without errors, for benchmarks and size tests. The same size gives the same files.
//!
//! They are sequences of stages that resemble real definitions: branches, loops, handoff values, validators, parallel
//! movements, monitors.

mod chain;
mod piece;
mod registry;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

pub use chain::{Shape, chain_of_movements, chain_of_steps};
pub use piece::piece;
pub use registry::registry;

/// A variation of a large definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// No finding.
    None,
    /// The last stage reads a value that may be unassigned: one finding, with a path through all stages.
    Far,
    /// Each stage reads such a value: one finding per stage.
    Everywhere,
}

/// The files of a definition, by path in the project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Large {
    /// The path to pass to the program: the agent's folder, or the piece.
    pub path: String,
    /// The files.
    pub files: BTreeMap<String, String>,
    /// The number of steps or movements, without members.
    pub steps: usize,
}

impl Large {
    /// Writes the files into a folder and returns the path of the definition.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, project: &Path) -> io::Result<PathBuf> {
        for (path, text) in &self.files {
            let path = project.join(path);
            fs::create_dir_all(path.parent().unwrap_or(project))?;
            fs::write(path, text)?;
        }
        Ok(project.join(&self.path))
    }

    /// The files as they are read.
    pub fn bytes(&self) -> BTreeMap<String, Vec<u8>> {
        self.files.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())).collect()
    }
}
