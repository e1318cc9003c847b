//! Turns an agent of an older generation into one of the "closing" generation that runs the same way.
//!
//! The documents themselves are changed, so that what they say in their own order stays as it is. What has no place in
//! the newer generation is a note.

mod agent;
mod answers;
mod checked;
mod checked_steps;
mod fallback;
mod programs;
mod prompts;
mod registry;
mod rounds;
mod schemas;
mod script;
mod words;

use std::collections::BTreeSet;

use serde_json::Value;

use super::agent::{AgentDefinition, read_agent};
use super::behavior::modern;
use super::check_flow::{self, read_check_flow};
use super::definition::{RegistryDefinition, read_registry};
use super::generation::{Generation, detect};
use super::load::{load_agent, open_agent, open_registry};
use super::places::Places;
use crate::desk::Desk;
use crate::files::join;
use crate::json::Json;
use crate::shared::Shared;
use crate::{Files, Loaded, Options, ReadError};

pub use answers::{Answers, OlderAnswers};
pub use script::{MigratedScript, migrate_script};

/// What a migrated agent is called after the older one.
const SUFFIX: &str = "-closing";

/// An agent in the newer generation.
#[derive(Debug, Default)]
pub struct Migration {
    /// What it is called: another name than the older one has, so that both can lie side by side.
    pub name: String,
    /// Its files.
    pub files: Vec<MigratedFile>,
    /// What could not be said in the newer generation, and what to look at.
    pub notes: Vec<MigrationNote>,
    /// What the answers of its steps say now: for scripts.
    pub answers: Answers,
}

/// A file of a migrated agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigratedFile {
    /// Its path in the agent's folder.
    pub path: String,
    /// What it holds.
    pub text: String,
    /// The file of the project that it is a copy of, where it is one of a program: it is executable where that is.
    pub program: Option<String>,
}

/// Something that a migration leaves to its author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationNote {
    /// What it is about: a file, or a key in it.
    pub place: String,
    /// What it is.
    pub text: String,
    /// Whether a run can go another way because of it.
    pub changes_runs: bool,
}

/// Why an agent was not migrated.
#[derive(Debug)]
pub enum NotMigrated {
    /// It is not sound: only what runs can run the same way afterwards.
    Unsound(Box<Loaded>),
    /// There is nothing to do, or nothing that can be done.
    Refused(String),
}

impl Migration {
    fn note(&mut self, place: impl Into<String>, text: impl Into<String>, changes_runs: bool) {
        self.notes.push(MigrationNote { place: place.into(), text: text.into(), changes_runs });
    }

    fn write(&mut self, path: &str, document: &Value) {
        let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
        text.push('\n');
        self.put(path, text);
    }

    fn put(&mut self, path: &str, text: String) {
        self.files.push(MigratedFile { path: path.to_owned(), text, program: None });
    }

    /// What lies at a path already.
    fn at(&self, path: &str) -> Option<&MigratedFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

/// Migrates the agent in a folder, or the registry that was named instead with the agent beside it. It is called
/// `name`; its older name with `-closing` behind it where nothing is said.
///
/// # Errors
/// When it is not sound, belongs to the newest generation already, or cannot be migrated.
pub fn migrate_agent(
    files: &dyn Files,
    options: &Options,
    name: Option<&str>,
) -> Result<Migration, NotMigrated> {
    let recorded = Reads { files, paths: Default::default() };
    let loaded = load_agent(&recorded, options);
    if loaded.has_errors() || loaded.draft.steps.is_empty() {
        return Err(NotMigrated::Unsound(Box::new(loaded)));
    }
    let refused = || NotMigrated::Refused("its files changed while they were read".to_owned());
    let desk = Desk::new(files);
    let agent_dir = join("", &options.agent_dir).ok_or_else(refused)?;
    let agent_json = open_agent(&desk, &agent_dir, options.registry.is_some()).ok_or_else(refused)?;
    let agent_json = match agent_json {
        Some(json) => Some(modern(json, &desk.found).ok_or_else(refused)?),
        None => None,
    };
    let agent = match &agent_json {
        Some(modern) => read_agent(&modern.json, &agent_dir, &desk.found).ok_or_else(refused)?,
        None => AgentDefinition::default(),
    };
    let registry_json = open_registry(&desk, &agent_dir, &agent, options).ok_or_else(refused)?;
    let step_flow = agent_json.as_ref().and_then(|modern| modern.step_flow);
    let generation =
        detect(&registry_json, step_flow.map(|_| Generation::Check), &desk).ok_or_else(refused)?;
    let documents = Documents {
        agent: agent_json.as_ref().map(|modern| modern.json.to_value()),
        registry: &registry_json,
        read: recorded.paths.into_inner().into_iter().collect(),
        name,
    };
    match generation {
        Generation::Closing => {
            let why = "it belongs to the “closing” generation already, so that there is nothing to migrate";
            Err(NotMigrated::Refused(why.to_owned()))
        }
        Generation::Complete => {
            let definition =
                read_registry(&registry_json, Generation::Complete, &desk.found).ok_or_else(refused)?;
            let id = definition.agent_id.map(|id| id.text);
            let names = agent.name.into_iter().chain(id).collect();
            let places = Places { agent_dir: &agent_dir, names };
            let source = Source {
                agent: &agent,
                registry: &definition,
                places: &places,
                desk: &desk,
                loaded: &loaded,
            };
            Ok(complete(documents, &source))
        }
        Generation::Check => {
            let flow = read_check_flow(&registry_json, &desk.found).ok_or_else(refused)?;
            let limit = agent_json.as_ref().and_then(|m| check_flow::written_limit(&m.json, &desk.found));
            let places = Places { agent_dir: &agent_dir, names: agent.name.into_iter().collect() };
            let none = RegistryDefinition::default();
            let source =
                Source { agent: &agent, registry: &none, places: &places, desk: &desk, loaded: &loaded };
            checked::migrate(documents, &flow, limit, &source).ok_or_else(refused)
        }
    }
}

/// The documents of an agent as they were read.
struct Documents<'d> {
    /// `agent.json`, in the shape of the runner reference.
    agent: Option<Value>,
    /// The registry.
    registry: &'d Json,
    /// Every file that was read.
    read: Vec<String>,
    /// What the newer agent is called, where that is said.
    name: Option<&'d str>,
}

impl Documents<'_> {
    /// What the newer agent is called.
    fn name(&self, source: &Source<'_, '_, '_>) -> String {
        let older = source.agent.name.or(source.registry.agent_id.map(|id| id.text)).unwrap_or("agent");
        self.name.map_or_else(|| format!("{older}{SUFFIX}"), str::to_owned)
    }
}

/// Migrates an agent of the "complete" generation.
fn complete(documents: Documents<'_>, source: &Source<'_, '_, '_>) -> Migration {
    let mut migration = Migration { name: documents.name(source), ..Migration::default() };
    let copies = prompts::plan(&documents.read, source);
    let first = fallback::first(source);
    agent::migrate(documents.agent.clone(), &copies.system, source, &mut migration);
    let schemas = schemas::migrate(source, &mut migration);
    registry::migrate(documents.registry.to_value(), &schemas, first.as_ref(), source, &mut migration);
    prompts::migrate(&copies, source, &mut migration);
    programs::migrate(documents.agent.as_ref(), source, &mut migration);
    migration.answers = Answers::of_words(schemas, first.as_ref());
    migration.note(
        "answers",
        "the newer generation also understands `pass`, `fail`, `done` and `finished`, which were bad answers before",
        false,
    );
    migration
}

/// What is migrated.
struct Source<'s, 'f, 'j> {
    agent: &'s AgentDefinition<'j>,
    registry: &'s RegistryDefinition<'j>,
    places: &'s Places<'s>,
    desk: &'s Desk<'f>,
    loaded: &'s Loaded,
}

/// Remembers what was read, in whichever order.
struct Reads<'f> {
    files: &'f dyn Files,
    paths: Shared<BTreeSet<String>>,
}

impl Files for Reads<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let bytes = self.files.read(path)?;
        self.paths.lock().insert(path.to_owned());
        Ok(bytes)
    }
}
