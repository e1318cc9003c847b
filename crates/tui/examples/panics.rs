//! Shows the runs of the current folder, and panics when the changes of one are wanted. The tests of the terminal start it
//! to see that a panic leaves the terminal clean.
#![expect(clippy::panic, clippy::unwrap_used, reason = "it is what this program is for")]

use std::sync::Arc;

use cuegate_journal::RunId;
use cuegate_observe::{Control, Observer, Problem, Project};
use cuegate_runner::StateDir;
use cuegate_tui::{App, show_until_left};
use serde_json::Value;

struct Panics(Observer);

impl Project for Panics {
    fn observer(&self) -> &Observer {
        &self.0
    }

    fn name(&self) -> String {
        "panics".to_owned()
    }

    fn graph(&self, _run: &RunId) -> Result<String, Problem> {
        Err(Problem::new(404, "nothing"))
    }

    fn findings(&self, _run: &RunId) -> Result<Value, Problem> {
        Err(Problem::new(404, "nothing"))
    }

    fn report(&self, _run: &RunId) -> Result<String, Problem> {
        Err(Problem::new(404, "nothing"))
    }

    fn diff(&self, _run: &RunId, _records: Option<(u64, u64)>) -> Result<String, Problem> {
        panic!("there are no changes")
    }

    fn compare(&self, _: &RunId, _: &RunId) -> Result<String, Problem> {
        unreachable!()
    }

    fn definitions(&self) -> Result<Value, Problem> {
        Err(Problem::new(404, "nothing"))
    }

    fn agents(&self) -> Result<Value, Problem> {
        unreachable!("nobody asks")
    }

    fn fleet(&self) -> Result<Option<Value>, Problem> {
        unreachable!("nobody asks")
    }

    fn has_batches(&self) -> Result<bool, Problem> {
        Ok(false)
    }

    fn batches(&self) -> Result<Value, Problem> {
        unreachable!("nobody asks")
    }

    fn batch(&self, _typed: &str) -> Result<Value, Problem> {
        unreachable!("nobody asks")
    }

    fn is_reviewed(&self, _run: &RunId) -> bool {
        false
    }

    fn open(&self, _run: &RunId) -> Result<String, Problem> {
        Err(Problem::new(404, "nothing"))
    }

    fn control(&self, _control: Control) -> Result<Value, Problem> {
        Err(Problem::new(404, "nothing"))
    }
}

fn main() {
    let here = std::env::current_dir().unwrap();
    let project = Arc::new(Panics(Observer::new(StateDir::new(&here))));
    let run = project.observer().find("last").unwrap().unwrap();
    let mut app = App::new(project, Some(&run)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _ = runtime.block_on(show_until_left(&mut app));
}
