//! Large definitions that are sound, for measuring and for tests of what size does: the same size gives the same files.
//!
//! They are made of stages that look like the flows of real definitions: branches, loops back and on the spot, data that
//! is handed on, validators, parallel movements, monitors. One stage after the other makes them as long as wanted.

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
    /// It is sound.
    None,
    /// The last stage reads what a run can come to it without: one finding, with a path through all stages.
    Far,
    /// Each stage does.
    Everywhere,
}

/// The files of a definition, by their paths below a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Large {
    /// What is given to the program: the agent's folder, or the piece.
    pub path: String,
    /// The files.
    pub files: BTreeMap<String, String>,
    /// How many steps or movements it has, not counting what they are made of.
    pub steps: usize,
}

impl Large {
    /// Writes the files below a folder, and returns the path of the definition.
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
