//! Definitions in one string, findings and drafts as text.

use std::fmt::Write as _;

use cuegate_flow::{
    checks::check_draft,
    diagnostics::sort_diagnostics,
    model::{
        Act, Draft, Edge, Gate, Name, Outcome, OutcomeReader, Piece, Selector, SessionRule, Source, Target,
        Template,
    },
};
use cuegate_formats::{AgentOptions, LoadedDefinition, load_agent};
use cuegate_testkit::definitions;
pub use cuegate_testkit::definitions::{Project, edit, project};

/// Loads the agent in a folder.
pub fn load(files: &Project, agent_dir: &str) -> LoadedDefinition {
    load_agent(files, &AgentOptions { agent_dir: agent_dir.to_owned(), ..AgentOptions::default() })
}

/// Everything that loading and checking an agent find, one line each.
pub fn findings(files: &Project, agent_dir: &str) -> String {
    findings_of(load(files, agent_dir))
}

/// Everything that was found by loading, and is found by checking what was loaded.
pub fn findings_of(loaded: LoadedDefinition) -> String {
    lines(loaded, |_| true)
}

/// The same of some codes, each with its way.
pub fn lines(loaded: LoadedDefinition, wanted: impl Fn(&str) -> bool) -> String {
    let mut all = loaded.diagnostics;
    for finding in &all {
        assert!(finding.hint.is_some(), "a finding says what to do: {finding:?}");
        assert!(loaded.sources.get(finding.span.file).is_some(), "a finding has a place: {finding:?}");
    }
    if !loaded.draft.steps.is_empty() {
        all.extend(check_draft(loaded.draft).diagnostics);
    }
    sort_diagnostics(&mut all, &loaded.sources);
    let mut text = String::new();
    for finding in all.into_iter().filter(|finding| wanted(finding.code)) {
        let path = loaded.sources.get(finding.span.file).map_or("?", |file| &file.path);
        let name = path.rsplit('/').next().unwrap();
        let at = loaded.sources.locate(finding.span);
        let (severity, code) = (finding.severity.as_str(), finding.code);
        writeln!(text, "{name}:{}:{} {severity}[{code}]: {}", at.line, at.column, finding.message).unwrap();
    }
    text
}

/// A draft as text.
pub fn dump(draft: &Draft) -> String {
    let mut text = String::new();
    let entry = draft.entry.as_ref().map_or("none", |entry| &entry.text);
    let others: Vec<&str> = draft.other_entries.iter().map(|name| &*name.text).collect();
    writeln!(text, "{} ({}) enters {entry} {others:?}", draft.name, draft.dialect).unwrap();
    writeln!(text, "{:?}, at most {} iterations", draft.verdict, draft.limits.iterations_max).unwrap();
    for param in &draft.params {
        let (kind, required) = (param.kind, if param.required { " required" } else { "" });
        let default = param.default.as_ref().map(|default| format!(" = {default}")).unwrap_or_default();
        writeln!(text, "param {} {} {kind:?}{required}{default}", param.name, param.flag).unwrap();
    }
    for (index, counter) in draft.counters.iter().enumerate() {
        writeln!(text, "counter {index}: {}", counter.name).unwrap();
    }
    for step in &draft.steps {
        let counts = if step.counts { "" } else { " (not counted)" };
        writeln!(text, "\n{} “{}”{counts}", step.name, step.title).unwrap();
        writeln!(text, "  {:?} {:?}", step.boundary.permission, step.boundary.tools).unwrap();
        match &step.act {
            Act::Ask(ask) => {
                let session = match &ask.session {
                    SessionRule::Continue(key) => format!("continues {key}"),
                    other => format!("{other:?}"),
                };
                let model = ask.model.as_deref().unwrap_or("default");
                writeln!(text, "  ask {:?}, {session}, model {model}, schema {:?}", ask.role, ask.schema)
                    .unwrap();
                if let Some(system) = &ask.system {
                    writeln!(text, "  system {}", template(system)).unwrap();
                }
                writeln!(text, "  prompt {}", template(&ask.prompt)).unwrap();
            }
            Act::System(work) => writeln!(text, "  {work:?}").unwrap(),
            Act::Exec { commands } => {
                for command in commands {
                    let extract: Vec<String> = command
                        .extract
                        .iter()
                        .map(|(name, extractor)| format!("{name}: {extractor:?}"))
                        .collect();
                    let (name, success) = (&command.name, command.success);
                    writeln!(text, "  exec {name} `{}` {success:?} {extract:?}", command.command).unwrap();
                }
            }
            Act::All { members, width } => {
                writeln!(text, "  all of {}, {width} at a time", names(members)).unwrap();
            }
            Act::Person { question } => writeln!(text, "  asks a person {}", template(question)).unwrap(),
        }
        for input in &step.inputs {
            let optional = if input.required { "" } else { " optional" };
            let default = input.default.as_ref().map(|default| format!(" = {default}")).unwrap_or_default();
            writeln!(text, "  needs {} = {} . {}{optional}{default}", input.name, input.step, input.key)
                .unwrap();
        }
        gate(&step.gate, &mut text);
        for left in &step.handoff {
            writeln!(text, "  leaves {} = {}", left.key, left.path).unwrap();
        }
        for one in &step.edges {
            writeln!(text, "  {}", edge(one)).unwrap();
        }
    }
    text
}

fn gate(gate: &Gate<Name>, text: &mut String) {
    if let Gate::Join { rules, judges } = gate {
        for rule in rules {
            writeln!(text, "  {:?} is {}", rule.pattern, rule.outcome).unwrap();
        }
        for judge in judges {
            writeln!(text, "  judge {}", judge.text).unwrap();
        }
        return;
    }
    let Gate::Readers(readers) = gate else {
        writeln!(text, "  gate {gate:?}").unwrap();
        return;
    };
    for reader in readers {
        match reader {
            OutcomeReader::Field { path, words, .. } => {
                let words: Vec<String> = words
                    .iter()
                    .map(|(word, outcome)| match outcome {
                        Outcome::Named(name) if name == word => word.to_string(),
                        other => format!("{word}={other}"),
                    })
                    .collect();
                writeln!(text, "  reads {path}: {}", words.join(" ")).unwrap();
            }
            OutcomeReader::Said { name, words } => {
                let words: Vec<String> =
                    words.iter().map(|(word, outcome)| format!("{word}={outcome}")).collect();
                writeln!(text, "  hears {name}: {}", words.join(" ")).unwrap();
            }
            OutcomeReader::Otherwise(outcome) => writeln!(text, "  otherwise {outcome}").unwrap(),
            OutcomeReader::Fallback(outcome) => writeln!(text, "  else {outcome}").unwrap(),
            OutcomeReader::FirstFallback(outcome) => writeln!(text, "  else at first {outcome}").unwrap(),
            // The same for every step, which one test shows.
            OutcomeReader::Silence(_) => {}
            OutcomeReader::Tag { name, base, outcomes } => {
                let outcomes: Vec<String> = outcomes.iter().map(|outcome| outcome.to_string()).collect();
                writeln!(text, "  tag [{name}:{base}…] {}", outcomes.join(" | ")).unwrap();
            }
            OutcomeReader::Judge { step } => writeln!(text, "  judge {}", step.text).unwrap(),
        }
    }
}

fn names(names: &[Name]) -> String {
    names.iter().map(|name| &*name.text).collect::<Vec<_>>().join(" | ")
}

/// An edge as text.
pub fn edge(edge: &Edge<Name>) -> String {
    let or = |default: &Option<Name>| {
        default.as_ref().map(|name| format!(", else {}", name.text)).unwrap_or_default()
    };
    let to = match &edge.to {
        Target::Step(name) => name.text.to_string(),
        Target::End(ending) => format!("{ending:?}"),
        Target::Origin { among } => format!("origin among {}", names(among)),
        Target::Select { by, cases, default } => {
            let by = match by {
                Selector::Field(path) => format!("field {path}"),
                Selector::Handoff(key) => format!("handoff {key}"),
            };
            let cases: Vec<String> =
                cases.iter().map(|(value, name)| format!("{value}: {}", name.text)).collect();
            format!("select by {by} {{{}}}{}", cases.join(", "), or(default))
        }
        Target::Jump { field, among, default } => {
            let field = field.as_ref().map(|field| field.to_string()).unwrap_or_default();
            format!("jump by {field} among {}{}", names(among), or(default))
        }
    };
    let mut line = format!("{} → {to}", edge.on);
    if let Some(bound) = edge.bound {
        write!(line, ", at most {} on counter {}", bound.max, bound.counter.0).unwrap();
    }
    if edge.hands_off {
        line.push_str(", hands off");
    }
    if edge.implied {
        line.push_str(", implied");
    }
    if edge.again {
        line.push_str(", same visit");
    }
    if !edge.resets.is_empty() {
        let resets: Vec<u32> = edge.resets.iter().map(|counter| counter.0).collect();
        write!(line, ", resets {resets:?}").unwrap();
    }
    if let Some(label) = &edge.label {
        write!(line, ", called {label}").unwrap();
    }
    if let Some(remedy) = &edge.remedy {
        write!(line, ", with {}", template(remedy)).unwrap();
    }
    line
}

/// A template as text.
pub fn template(template: &Template) -> String {
    format!("“{}”", pieces(&template.pieces))
}

fn pieces(list: &[Piece]) -> String {
    list.iter()
        .map(|piece| match piece {
            Piece::Text(text) => text.replace('\n', "⏎"),
            Piece::Value(Source::Param(name)) => format!("<param {name}>"),
            Piece::Value(Source::Task) => "<task>".to_owned(),
            Piece::Value(Source::Input(name)) => format!("<input {name}>"),
            Piece::Value(Source::Handoff { step, key }) => format!("<left by {step}: {key}>"),
            Piece::Value(Source::Report(name)) => format!("<report {name}>"),
            Piece::Value(Source::Fact(fact)) => format!("<{fact:?}>"),
            Piece::Failure(name) => format!("<failure {name}>"),
            Piece::Item(None) => "<this>".to_owned(),
            Piece::Item(Some(field)) => format!("<this.{field}>"),
            Piece::If { name, then, otherwise } => {
                format!("<if {name}>{}<else>{}<end>", pieces(then), pieces(otherwise))
            }
            Piece::Each { name, body } => format!("<each {name}>{}<end>", pieces(body)),
            Piece::Filled { body, .. } => format!("<filled>{}<end>", pieces(body)),
        })
        .collect()
}

/// A sound agent: three steps, a section, a validator, nothing to find.
pub const SOUND: &str = definitions::CLOSING;

/// The folder of the sound agent.
pub const DIR: &str = ".agent/fixer";

/// The sound agent's files.
pub fn sound() -> Project {
    project(SOUND)
}

/// What is found in the sound agent after some replacements.
pub fn broken(edits: &[(&str, &str)]) -> String {
    let files = edits.iter().fold(sound(), |files, (from, to)| edit(&files, from, to));
    findings(&files, DIR)
}

/// One finding, at a place, that says all of this.
pub fn says(found: &str, parts: &[&str]) {
    assert_eq!(found.lines().count(), 1, "{found}");
    for part in parts {
        assert!(found.contains(part), "{part}: {found}");
    }
}
