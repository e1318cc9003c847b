//! What `--set` gives: names, with a value where a run begins, with or without one where a definition is looked at.

use std::collections::BTreeSet;

use cuegate_flow::model::{Act, Flow, Param, Source, Verdict};

use super::{params, print};
use crate::{Failure, definition::Definition};

/// The names that `--set NAME` and `--set NAME=VALUE` give.
///
/// # Errors
/// When one gives no name.
pub(super) fn names(set: &[String]) -> Result<Vec<String>, Failure> {
    let name = |given: &String| given.split_once('=').map_or(given.as_str(), |(name, _)| name).to_owned();
    let names: Vec<String> = set.iter().map(name).collect();
    match set.iter().zip(&names).find(|(_, name)| name.is_empty()) {
        Some((given, _)) => Err(Failure::usage(
            format!("`--set {given}` gives nothing a name"),
            "write `--set NAME` or `--set NAME=VALUE`",
        )),
        None => Ok(names),
    }
}

/// Holds the values that are given against the parameters that they are for.
///
/// # Errors
/// When one does not fit, as where a run begins.
pub(super) fn fit(declared: &[Param], set: &[String]) -> Result<(), Failure> {
    for (name, value) in set.iter().filter_map(|given| given.split_once('=')) {
        if let Some(param) = declared.iter().find(|param| params::same(&param.name, name)) {
            params::fits(param, value, &format!("--set {name}=VALUE"))?;
        }
    }
    Ok(())
}

/// Everything that the prompts and the verdict of a flow read of what a run is given, by name.
pub(super) fn read_by(flow: &Flow) -> BTreeSet<&str> {
    let mut sources: Vec<&Source> = Vec::new();
    for step in &flow.steps {
        match &step.act {
            Act::Ask(ask) => {
                sources.extend(ask.prompt.sources());
                sources.extend(ask.system.iter().flat_map(|system| system.sources()));
                sources.extend(ask.reports.iter().flat_map(|report| report.request.sources()));
            }
            Act::Person { question } => sources.extend(question.sources()),
            Act::All { .. } | Act::Exec { .. } => {}
        }
        let remedies = step.edges.iter().filter_map(|edge| edge.remedy.as_ref());
        sources.extend(remedies.flat_map(|remedy| remedy.sources()));
    }
    let of_prompts = sources.into_iter().filter_map(|source| match source {
        Source::Param(name) => Some(&**name),
        Source::Task => Some("input_text"),
        _ => None,
    });
    let of_verdict = flow.verdict.places().into_iter().filter_map(|(_, verdict)| match verdict {
        Verdict::Poll(poll) => Some(&*poll.param),
        _ => None,
    });
    of_prompts.chain(of_verdict).collect()
}

/// Says which names none of some definitions reads: they are probably misspelt, or meant for another one; and which hide
/// what every run has.
pub(super) fn tell_unread<'f>(names: &[String], flows: impl IntoIterator<Item = &'f Flow>) {
    let read: BTreeSet<&str> = flows.into_iter().flat_map(read_by).collect();
    let mut told = BTreeSet::new();
    for name in names {
        if read.iter().any(|known| params::same(known, name)) {
            if let Some(hidden) = cuegate_formats::built_in(name).filter(|_| told.insert(name)) {
                print::line(&format!("note: `--set {name}` hides `{hidden}`, which every run has"));
            }
        } else if told.insert(name) {
            let near = cuegate_flow::diagnostics::nearest(name, read.iter().copied());
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            print::line(&format!("note: no prompt of the definition reads `{name}`{near}"));
        }
    }
}

/// What is said of the names that are given to one definition that is looked at.
///
/// # Errors
/// When a value does not fit its parameter.
pub(super) fn look_at(definition: &Definition, set: &[String], names: &[String]) -> Result<(), Failure> {
    fit(&definition.params, set)?;
    // Of what could not be read nobody knows what it reads.
    if let Some(flow) = &definition.flow {
        tell_unread(names, [&**flow]);
    }
    Ok(())
}
