//! Reads `companion`: the reviewers of the work of a step, whose findings its agent gets before the run goes on.

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
};

use super::agent::{KeyedText, Persona};
use super::sections::{FacetText, Section};
use super::step::StepReader;
use crate::codes;
use crate::source::loader::{LoadedFile, SourceLoader};
use crate::takt::compose::{INSTALL, items_of_list};
use crate::values::json::{Entry, Fields, Json, Kind, Text};
use crate::values::yaml;

/// The most reviewers of a step, as in TAKT.
const REVIEWERS_MAX: usize = 3;

/// The reviewers of a step.
pub(crate) struct Companions {
    pub(crate) reviewers: Vec<Companion>,
    /// Who decides which findings count.
    pub(crate) moderator: Option<Companion>,
    pub(crate) span: Span,
}

/// A reviewer, from a file of its own.
pub(crate) struct Companion {
    pub(crate) name: Str,
    pub(crate) persona: Option<Persona>,
    pub(crate) policies: Vec<KeyedText>,
    pub(crate) knowledge: Vec<KeyedText>,
    pub(crate) instruction: Option<FacetText>,
}

/// What `runtime.yaml` says of companions. They are off unless it says otherwise.
#[derive(Debug, Clone, Copy, Default)]
struct CompanionPolicy {
    is_enabled: bool,
    /// Whether they review while the agent works, and not only its answer.
    is_live: bool,
}

impl CompanionPolicy {
    /// The policy of the user and that of the project: both may turn companions off, and the project's mode holds.
    fn read(loader: &SourceLoader<'_>) -> CompanionPolicy {
        let (mut enabled, mut mode) = (Vec::new(), None);
        for path in ["~/.takt/runtime.yaml", ".takt/runtime.yaml"] {
            let LoadedFile::Text { file, text } = loader.page(path) else { continue };
            // The reader of agents reports invalid YAML.
            let Some(root) = yaml::parse(&text, file, &crate::findings::Findings::default()) else {
                continue;
            };
            let Some(companion) = root.get("companion") else { continue };
            let is_known = matches!(companion.kind, Kind::Object(_))
                && companion.get("enabled").is_none_or(|value| matches!(value.kind, Kind::Boolean(_)));
            if !is_known {
                let message = "`companion.enabled` must be `true` or `false`";
                loader.found.push(
                    Diagnostic::error(codes::WRONG_TYPE, companion.span, message)
                        .hint("write `companion: { enabled: true }`"),
                );
            }
            enabled.extend(companion.get("enabled").map(|value| matches!(value.kind, Kind::Boolean(true))));
            mode = companion.get("review_mode").and_then(Json::as_text).map(str::to_owned).or(mode);
        }
        CompanionPolicy {
            is_enabled: !enabled.is_empty() && enabled.iter().all(|enabled| *enabled),
            is_live: mode.as_deref() == Some("live"),
        }
    }
}

impl StepReader<'_, '_, '_> {
    /// Reads the companions of a step. `is_left_out` says that the step is a member or has a `team_leader`, whose answers
    /// nobody reviews.
    pub(super) fn read_companions(&self, fields: &Fields<'_, '_>, is_left_out: bool) -> Option<Companions> {
        let older = fields.shunned("companions");
        let entry = fields.shunned("companion").or(older)?;
        let policy = CompanionPolicy::read(self.files.loader);
        if !policy.is_enabled {
            return None;
        }
        if is_left_out {
            let statement = "no companion reviews the work of a member or of a `team_leader`";
            self.notes.approximate(entry.key_span, statement);
            return None;
        }
        let (names, moderator) = self.read_companion_names(fields, entry)?;
        if policy.is_live && !names.is_empty() {
            let statement = "companions review an answer when it is given, not while the agent works";
            self.notes.approximate(entry.key_span, statement);
        }
        if names.len() > REVIEWERS_MAX {
            let message = format!("a step has at most {REVIEWERS_MAX} companions");
            fields.invalid(names[REVIEWERS_MAX].span, message, "leave out the others");
        }
        for (index, name) in names.iter().enumerate() {
            if names[..index].iter().any(|before| before.text == name.text) {
                fields.invalid(name.span, format!("duplicate companion `{}`", name.text), "name it once");
            }
        }
        let names = names.into_iter().take(REVIEWERS_MAX);
        let reviewers: Vec<Companion> = names.filter_map(|name| self.read_companion(name)).collect();
        let moderator = moderator.and_then(|name| self.read_companion(name));
        (!reviewers.is_empty()).then_some(Companions { reviewers, moderator, span: entry.key_span })
    }

    /// The names of the reviewers, and that of the moderator.
    fn read_companion_names<'j>(
        &self,
        fields: &Fields<'j, '_>,
        entry: &'j Entry,
    ) -> Option<(Vec<Text<'j>>, Option<Text<'j>>)> {
        let texts = |list: &'j Json| {
            let text = |item: &'j Json| Some(Text { text: item.as_text()?.trim(), span: item.span });
            items_of_list(list).iter().filter_map(text).collect::<Vec<_>>()
        };
        match &entry.value.kind {
            Kind::List(_) => Some((texts(&entry.value), None)),
            Kind::Object(_) => {
                let object = Fields::of(&entry.value, "`companion`", None, fields.found)?;
                let mut names = object.nullable("fixed").map(|fixed| texts(&fixed.value)).unwrap_or_default();
                if let Some(pool) = object.nullable("pool") {
                    let statement =
                        "of a pool of companions the first three review, and nobody selects among them";
                    self.notes.approximate(pool.key_span, statement);
                    names.extend(
                        texts(&pool.value).into_iter().take(REVIEWERS_MAX.saturating_sub(names.len())),
                    );
                }
                let moderator = object.filled("moderator");
                object.finish();
                Some((names, moderator))
            }
            Kind::Null => None,
            _ => {
                fields.wrong_type(
                    &entry.key,
                    &entry.value,
                    "a list of companions, or `fixed`, `pool` and `moderator`",
                );
                None
            }
        }
    }

    /// Reads the file of a companion.
    fn read_companion(&self, name: Text<'_>) -> Option<Companion> {
        const FOLDER: &str = "companions";
        let layers = &self.sections.scope().layers;
        let Some(path) = layers.find(self.files.loader, &[FOLDER], name.text, &[".yaml", ".yml"]) else {
            let message = format!("the companion `{}` is not found", name.text);
            let hint = format!("it is looked for in {}; {INSTALL}", layers.places(FOLDER, name.text));
            self.notes.refuse(Diagnostic::error(codes::UNKNOWN_NAME, name.span, message).hint(hint));
            return None;
        };
        let Some(file) = self.files.parse(&path) else {
            self.notes.mark_refused();
            return None;
        };
        let fields = Fields::of(&file, "the companion", None, &self.files.loader.found)?;
        for key in ["name", "description", "interval_ms"] {
            fields.shunned(key);
        }
        let persona = fields.filled("persona").map(|reference| self.read_persona(reference, &fields));
        let policies = self.read_texts(&fields, "policy", Section::Policies);
        let knowledge = self.read_texts(&fields, "knowledge", Section::Knowledge);
        let instruction = fields.nullable("instruction").and_then(|_| self.read_instruction(&fields));
        fields.finish();
        Some(Companion { name: name.text.into(), persona, policies, knowledge, instruction })
    }
}
