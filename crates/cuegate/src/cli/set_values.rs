//! `--set`: `run` needs `NAME=VALUE`; the commands that only inspect a definition also accept `NAME`.

use std::collections::BTreeSet;

use cuegate_flow::model::{Act, Flow, Param, Source, Verdict};

use super::{params, print};
use crate::{Failure, definition::CompiledDefinition};

/// The names in `--set NAME` and `--set NAME=VALUE`.
///
/// # Errors
/// When a name is empty.
pub(super) fn parse_set_names(set: &[String]) -> Result<Vec<String>, Failure> {
    let name = |given: &String| given.split_once('=').map_or(given.as_str(), |(name, _)| name).to_owned();
    let names: Vec<String> = set.iter().map(name).collect();
    match set.iter().zip(&names).find(|(_, name)| name.is_empty()) {
        Some((given, _)) => Err(Failure::usage(
            format!("`--set {given}` has no name"),
            "write `--set NAME` or `--set NAME=VALUE`",
        )),
        None => Ok(names),
    }
}

/// Checks the given values against the types and rules of their parameters, as `run` does.
///
/// # Errors
/// When a value does not fit.
pub(super) fn check_set_values(declared: &[Param], set: &[String]) -> Result<(), Failure> {
    for (name, value) in set.iter().filter_map(|given| given.split_once('=')) {
        if let Some(param) = declared.iter().find(|param| params::is_same_param(&param.name, name)) {
            params::check_param_value(param, value, &format!("--set {name}=VALUE"))?;
        }
    }
    Ok(())
}

/// The names of all inputs of a run that the prompts and the verdict of a flow read.
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
            Act::System(work) => {
                let values = work.effects.iter().flat_map(|effect| &effect.values);
                sources.extend(values.flat_map(|(_, text)| text.sources()));
            }
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

/// Notes names that no flow reads, which are probably misspelt, and names that shadow a built-in variable.
pub(super) fn tell_unread<'f>(names: &[String], flows: impl IntoIterator<Item = &'f Flow>) {
    let read: BTreeSet<&str> = flows.into_iter().flat_map(read_by).collect();
    let mut noted = BTreeSet::new();
    for name in names {
        if read.iter().any(|known| params::is_same_param(known, name)) {
            if let Some(hidden) = cuegate_formats::built_in(name).filter(|_| noted.insert(name)) {
                print::print_line(&format!("note: `--set {name}` shadows the built-in variable `{hidden}`"));
            }
        } else if noted.insert(name) {
            let near = cuegate_flow::diagnostics::find_nearest_name(name, read.iter().copied());
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            print::print_line(&format!("note: no prompt of the definition reads `{name}`{near}"));
        }
    }
}

/// Checks the values and notes the unread names of `--set`, for a command that inspects one definition.
///
/// # Errors
/// When a value does not fit its parameter.
pub(super) fn look_at(
    definition: &CompiledDefinition,
    set: &[String],
    names: &[String],
) -> Result<(), Failure> {
    check_set_values(&definition.params, set)?;
    // Without a flow it is unknown which names are read.
    if let Some(flow) = &definition.flow {
        tell_unread(names, [&**flow]);
    }
    Ok(())
}
