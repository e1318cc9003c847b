//! Turns an agent of an older generation into one of the "closing" generation that runs the same way.
//!
//! The documents themselves are changed, so that what they say in their own order stays as it is. What has no place in
//! the newer generation is a note.

mod agent;
mod prompts;
mod registry;
mod schemas;
mod script;
mod words;

use serde_json::Value;

use super::agent::{AgentDefinition, read_agent};
use super::behavior::modern;
use super::definition::read_registry;
use super::generation::{Generation, detect};
use super::load::{load_agent, open_agent, open_registry};
use super::places::Places;
use crate::desk::Desk;
use crate::files::join;
use crate::{Files, Loaded, Options, ReadError};
use words::Words;

pub use script::{MigratedScript, migrate_script};

/// An agent in the newer generation.
#[derive(Debug, Default)]
pub struct Migration {
    /// Its files: path in its folder, and text.
    pub files: Vec<(String, String)>,
    /// What could not be said in the newer generation, and what to look at.
    pub notes: Vec<MigrationNote>,
    /// What the answers of its steps say now: for scripts.
    pub answers: Answers,
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

/// What the words of answers have become, by step.
#[derive(Debug, Clone, Default)]
pub struct Answers(Vec<(String, Words)>);

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
        self.files.push((path.to_owned(), text));
    }
}

/// Migrates the agent in a folder, or the registry that was named instead with the agent beside it.
///
/// # Errors
/// When it is not sound, belongs to the newest generation already, or to one that cannot be migrated.
pub fn migrate_agent(files: &dyn Files, options: &Options) -> Result<Migration, NotMigrated> {
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
    match detect(&registry_json, None, &desk).ok_or_else(refused)? {
        Generation::Complete => {}
        Generation::Closing => {
            return Err(NotMigrated::Refused("it belongs to the “closing” generation already".to_owned()));
        }
        Generation::Check => {
            let why =
                "a check flow asks for checks of its own, which the “closing” generation has no word for";
            return Err(NotMigrated::Refused(why.to_owned()));
        }
    }
    let definition = read_registry(&registry_json, Generation::Complete, &desk.found).ok_or_else(refused)?;
    let places = Places {
        agent_dir: &agent_dir,
        names: agent.name.into_iter().chain(definition.agent_id.map(|id| id.text)).collect(),
    };
    let source =
        Source { agent: &agent, registry: &definition, places: &places, desk: &desk, loaded: &loaded };
    let mut migration = Migration::default();
    let agent_document = agent_json.as_ref().map(|modern| modern.json.to_value());
    agent::migrate(agent_document, &source, &mut migration);
    let schemas = schemas::migrate(&source, &mut migration);
    registry::migrate(registry_json.to_value(), &schemas, &source, &mut migration);
    prompts::migrate(&recorded.paths.into_inner(), &source, &mut migration);
    migration.answers = Answers(schemas.into_iter().map(|schema| (schema.id, schema.words)).collect());
    migration.note(
        "answers",
        "the newer generation also understands `pass`, `fail`, `done` and `finished`, which were bad answers before",
        false,
    );
    Ok(migration)
}

/// What is migrated.
struct Source<'s, 'f, 'j> {
    agent: &'s AgentDefinition<'j>,
    registry: &'s super::definition::RegistryDefinition<'j>,
    places: &'s Places<'s>,
    desk: &'s Desk<'f>,
    loaded: &'s Loaded,
}

/// Remembers what was read.
struct Reads<'f> {
    files: &'f dyn Files,
    paths: std::cell::RefCell<Vec<String>>,
}

impl Files for Reads<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let bytes = self.files.read(path)?;
        self.paths.borrow_mut().push(path.to_owned());
        Ok(bytes)
    }
}
