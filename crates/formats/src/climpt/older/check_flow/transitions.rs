//! Reads the transitions of a check result: `onPass` and `onFail`.

use cuegate_flow::diagnostics::{Diagnostic, Span};

use crate::codes;
use crate::values::json::{Fields, Kind, Text};

/// The transition of a check result.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CheckTransition<'j> {
    /// The run is completed.
    Complete,
    /// Continue with a step.
    Next(Text<'j>),
    /// Another round of the same step, up to a maximum; then the fallback, else the run fails.
    Retry {
        /// The maximum; `None` = without a limit of its own.
        max: Option<u32>,
        /// The place of the maximum.
        max_span: Option<Span>,
        /// The target afterwards.
        fallback: Option<Text<'j>>,
    },
    /// Back to a step.
    Fallback(Text<'j>),
}

/// The transition of a result; precedence: `complete`, `next`, `retry`, `fallback`.
pub(super) fn read_way<'j>(fields: Fields<'j, '_>, name: &str) -> Option<CheckTransition<'j>> {
    let (complete, retry) = (fields.boolean("complete"), fields.boolean("retry"));
    let (next, fallback) = (fields.filled("next"), fields.filled("fallback"));
    let limit = fields.count("maxRetries", 0).filter(|(max, _)| *max > 0);
    let (limit, max_span) = (limit.map(|(max, _)| max), limit.map(|(_, span)| span));
    let is_set = |flag: Option<(bool, Span)>| flag.is_some_and(|(set, _)| set);
    let way = match (is_set(complete), next, is_set(retry), fallback) {
        (true, ..) => Some(CheckTransition::Complete),
        (_, Some(next), ..) => Some(CheckTransition::Next(next)),
        (_, _, true, fallback) => Some(CheckTransition::Retry { max: limit, max_span, fallback }),
        (_, _, _, Some(fallback)) => Some(CheckTransition::Fallback(fallback)),
        _ => None,
    };
    let inert = |key: &'static str, why: &str| {
        let entry = fields.nullable(key).filter(|entry| !matches!(entry.value.kind, Kind::Boolean(false)));
        if let Some(entry) = entry {
            let message = format!("`{key}` of `{name}` never acts: {why}");
            fields.push(
                Diagnostic::warning(codes::UNREACHABLE_TRANSITION, entry.key_span, message)
                    .hint("remove it, or what stands before it"),
            );
        }
    };
    match &way {
        Some(CheckTransition::Complete) => {
            ["next", "retry", "maxRetries", "fallback"]
                .iter()
                .for_each(|key| inert(key, "`complete` comes first"));
        }
        Some(CheckTransition::Next(_)) => {
            ["retry", "maxRetries", "fallback"].iter().for_each(|key| inert(key, "`next` comes first"));
        }
        Some(CheckTransition::Retry { max: None, fallback: Some(_), .. }) => {
            inert("fallback", "`retry` has no limit, which `maxRetries` would set");
        }
        Some(CheckTransition::Fallback(_)) => {
            inert("maxRetries", "it counts retries, and `retry` is not set")
        }
        Some(CheckTransition::Retry { .. }) => {}
        None => {
            // A present but unreadable setting has been reported.
            let written = |key| fields.nullable(key).is_some();
            let faulty = written("next")
                || written("fallback")
                || (written("complete") && complete.is_none())
                || (written("retry") && retry.is_none());
            if !faulty {
                let message = format!("`{name}` leads nowhere");
                fields.push(
                    Diagnostic::error(codes::MISSING_TRANSITION, fields.opening(), message)
                        .hint("give it one of `next`, `fallback`, `retry` and `complete`"),
                );
            }
        }
    }
    fields.finish();
    way
}

impl<'j> CheckTransition<'j> {
    /// The step that it finally leads to, if one is named.
    fn leads_to(&self) -> Option<Text<'j>> {
        match self {
            CheckTransition::Next(to) | CheckTransition::Fallback(to) => Some(*to),
            CheckTransition::Retry { fallback, .. } => *fallback,
            CheckTransition::Complete => None,
        }
    }

    /// Whether it does the same as another one.
    fn is_same(&self, other: &CheckTransition<'_>) -> bool {
        let is_alike = match (self, other) {
            (CheckTransition::Complete, CheckTransition::Complete) => true,
            (
                CheckTransition::Next(_) | CheckTransition::Fallback(_),
                CheckTransition::Next(_) | CheckTransition::Fallback(_),
            ) => true,
            (CheckTransition::Retry { max: one, .. }, CheckTransition::Retry { max: two, .. }) => one == two,
            _ => false,
        };
        is_alike && self.leads_to().map(|to| to.text) == other.leads_to().map(|to| to.text)
    }
}

/// Reports transitions that make a step's check useless: a failed result counts as done, both results lead to the same
/// target, or the step restarts without a counter. `once`: nothing but these transitions follows from a result.
pub(super) fn check_ways(
    id: &str,
    once: bool,
    ways: [Option<&CheckTransition<'_>>; 2],
    check: &Fields<'_, '_>,
) {
    let [pass, fail] = ways;
    let span = |key| check.nullable(key).map_or(check.opening(), |entry| entry.key_span);
    if let Some(CheckTransition::Complete) = fail {
        let message = format!("a check of `{id}` that does not pass completes the run");
        check.push(
            Diagnostic::warning(codes::FAILURE_COMPLETES, span("onFail"), message)
                .hint("lead it to a step, or use `retry` with `maxRetries`, after which the run has failed"),
        );
    } else if once && pass.zip(fail).is_some_and(|(pass, fail)| pass.is_same(fail)) {
        let message = format!("whether the check of `{id}` passes changes nothing: both ways are the same");
        check.push(
            Diagnostic::warning(codes::CHECK_DECIDES_NOTHING, span("onFail"), message)
                .hint("lead `onFail` elsewhere, or use `retry` with `maxRetries`"),
        );
    }
    for (key, way) in ["onPass", "onFail"].into_iter().zip(ways) {
        let own = way.and_then(CheckTransition::leads_to).filter(|to| to.text == id);
        if let Some(own) = own {
            let message = format!("`{key}` of `{id}` leads to itself, where its counting begins anew");
            check.push(
                Diagnostic::warning(codes::SELF_NEXT, own.span, message)
                    .hint("use `retry` with `maxRetries` for further rounds, and lead on to another step"),
            );
        }
    }
}
