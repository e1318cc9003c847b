//! A comparison as text, Markdown and JSON.

use cuegate_view::{clean_to_one_line, format_count, format_money, plural};
use serde_json::{Value, json};

use super::Comparison;
use super::difference::{Change, Fate, WorkflowDifference};
use super::facts::Bound;
use super::recorded_runs::ReplayedRuns;

pub(super) fn format_usd(micro: u64) -> String {
    format_money(Some(micro as f64 / 1e6))
}

/// `$18.00, 30 calls`
fn describe_bound(bound: Bound) -> String {
    let calls = format!("{} calls", format_count(bound.calls));
    match bound.usd_micro {
        Some(usd) => format!("{}, {calls}", format_usd(usd)),
        None => calls,
    }
}

/// The sentence about the worst case; `None` if it is as it was.
fn describe_worst_case(workflow: &WorkflowDifference) -> Option<String> {
    if workflow.errors > 0 {
        return Some(format!("has {}, so it does not run", plural(workflow.errors as u64, "error")));
    }
    match (workflow.before, workflow.after) {
        (None, Some(after)) if workflow.fate != Fate::New => {
            Some(format!("has no errors any more, at most {}", describe_bound(after)))
        }
        (None, Some(after)) => Some(format!("is new, at most {}", describe_bound(after))),
        (Some(_), None) => Some("is gone".to_owned()),
        (Some(before), Some(after)) if before != after => {
            let (calls, was) = (format_count(after.calls), format_count(before.calls));
            Some(match (before.usd_micro, after.usd_micro) {
                (Some(old), Some(new)) if new != old => {
                    format!(
                        "{} the worst case from {} to {}",
                        choose_verb(new > old),
                        format_usd(old),
                        format_usd(new)
                    )
                }
                (None, Some(new)) => format!("bounds the worst case: {}", format_usd(new)),
                (Some(old), None) => format!("takes the bound of {} away", format_usd(old)),
                _ if before.calls != after.calls => {
                    format!(
                        "{} the worst case from {was} to {calls} calls",
                        choose_verb(after.calls > before.calls)
                    )
                }
                _ => return None,
            })
        }
        _ => None,
    }
}

fn choose_verb(is_more: bool) -> &'static str {
    if is_more { "raises" } else { "lowers" }
}

fn describe_fate(workflow: &WorkflowDifference) -> String {
    match &workflow.fate {
        Fate::New => "new".to_owned(),
        Fate::Deleted => "deleted".to_owned(),
        Fate::Renamed(from) => format!("renamed from `{from}`"),
        Fate::Changed => "changed".to_owned(),
        Fate::Same => "as it was".to_owned(),
    }
}

fn list_differing(comparison: &Comparison) -> impl Iterator<Item = &WorkflowDifference> {
    comparison.workflows.iter().filter(|workflow| workflow.fate != Fate::Same || workflow.errors > 0)
}

/// Why there is no bound in money, if there is none.
fn advise_money(comparison: &Comparison) -> Option<&'static str> {
    let unbounded = comparison
        .workflows
        .iter()
        .filter_map(|workflow| workflow.after)
        .any(|bound| bound.usd_micro.is_none());
    unbounded.then_some(
        "no bound in dollars: `usd` or `call_usd` in `[budget]` of cuegate.toml, or `[prices]` with `call_tokens`, sets one",
    )
}

pub(super) fn render_text(comparison: &Comparison) -> String {
    let mut lines = vec![format!("{}, compared with {}", comparison.head, comparison.base)];
    for workflow in list_differing(comparison) {
        lines.push(format!("\n{}  {}", workflow.name, describe_fate(workflow)));
        lines.extend(describe_worst_case(workflow).map(|text| format!("  {text}")));
        lines.extend(workflow.changes.iter().map(|change| format!("  {}", describe_change(change))));
    }
    if !comparison.settings.is_empty() {
        lines.push("\nsettings".to_owned());
        lines.extend(comparison.settings.iter().map(|change| format!("  {}", describe_change(change))));
    }
    let same = plural((comparison.workflows.len() - list_differing(comparison).count()) as u64, "workflow");
    let is_same = list_differing(comparison).next().is_none() && comparison.settings.is_empty();
    lines.push(match (is_same, comparison.workflows.is_empty()) {
        (_, true) => "\nthe project has no workflows".to_owned(),
        (true, _) => format!("\nnothing changed: {same}"),
        (false, _) => format!("\nas before: {same}"),
    });
    lines.extend(comparison.replayed.iter().map(ReplayedRuns::describe));
    lines.extend(advise_money(comparison).map(str::to_owned));
    lines.join("\n")
}

fn describe_change(change: &Change) -> String {
    let wider = if change.widens { " (wider)" } else { "" };
    format!("{}{wider}", clean_to_one_line(&change.text))
}

/// A text in Markdown, in which names of others are between backticks or not: whatever they hold stays text. What is between
/// two backticks is code; everything else is escaped.
fn escape_markdown(text: &str) -> String {
    let line = clean_to_one_line(text);
    let parts: Vec<&str> = line.split('`').collect();
    let mut escaped = String::new();
    for (at, part) in parts.iter().enumerate() {
        let is_last = at + 1 == parts.len();
        if at % 2 == 1 && !is_last {
            escaped.push_str(&format!("`{}`", part.replace('|', "\\|")));
            continue;
        }
        if at % 2 == 1 {
            // One without its counterpart.
            escaped.push_str("\\`");
        }
        for character in part.chars() {
            match character {
                '\\' | '*' | '_' | '[' | ']' | '|' | '~' => escaped.extend(['\\', character]),
                '<' => escaped.push_str("&lt;"),
                '>' => escaped.push_str("&gt;"),
                '@' => escaped.push_str("&#64;"),
                other => escaped.push(other),
            }
        }
    }
    escaped
}

/// A name between backticks.
fn quote_name(name: &str) -> String {
    escape_markdown(&format!("`{}`", name.replace('`', "'")))
}

pub(super) fn render_markdown(comparison: &Comparison) -> String {
    let mut lines = Vec::new();
    let raised: Vec<String> = list_differing(comparison)
        .filter_map(|workflow| {
            let text = describe_worst_case(workflow)?;
            Some(format!("**{} {}.**", quote_name(&workflow.name), escape_markdown(&text)))
        })
        .collect();
    lines.push("### Workflows".to_owned());
    lines.push(match (raised.is_empty(), list_differing(comparison).next().is_none()) {
        (_, true) if comparison.settings.is_empty() => "No workflow changed.".to_owned(),
        (true, _) => "The worst case of each workflow is as it was.".to_owned(),
        (false, _) => raised.join(" "),
    });
    if comparison.widens() {
        lines.push("⚠️ Agents may do more than before.".to_owned());
    }
    if list_differing(comparison).next().is_some() {
        let mut table = "| workflow | | at most before | at most now |\n|---|---|---|---|".to_owned();
        for workflow in list_differing(comparison) {
            let bound = |bound: Option<Bound>| bound.map_or_else(|| "–".to_owned(), describe_bound);
            let now = if workflow.errors > 0 { "errors".to_owned() } else { bound(workflow.after) };
            table.push_str(&format!(
                "\n| {} | {} | {} | {now} |",
                quote_name(&workflow.name),
                escape_markdown(&describe_fate(workflow)),
                bound(workflow.before)
            ));
        }
        lines.push(table);
    }
    let changes: Vec<String> = list_differing(comparison)
        .flat_map(|workflow| workflow.changes.iter().map(|change| (workflow.name.as_str(), change)))
        .chain(comparison.settings.iter().map(|change| ("settings", change)))
        .map(|(name, change)| {
            format!("- {}: {}", escape_markdown(name), escape_markdown(&describe_change(change)))
        })
        .collect();
    if !changes.is_empty() {
        lines.push(changes.join("\n"));
    }
    lines.extend(comparison.replayed.iter().map(|replayed| escape_markdown(&replayed.describe())));
    lines.extend(comparison.refused.iter().map(|why| format!("❌ {}", escape_markdown(why))));
    lines.extend(advise_money(comparison).map(str::to_owned));
    lines.join("\n\n")
}

pub(super) fn render_json(comparison: &Comparison) -> Value {
    let bound = |bound: Option<Bound>| {
        bound.map(|bound| {
            json!({ "calls": bound.calls, "usd": bound.usd_micro.map(|usd| usd as f64 / 1e6), "tokens": bound.tokens })
        })
    };
    let changes = |changes: &[Change]| -> Value {
        changes.iter().map(|change| json!({ "what": change.text, "widens": change.widens })).collect()
    };
    let workflows: Vec<Value> = comparison
        .workflows
        .iter()
        .map(|workflow| {
            let (fate, from) = match &workflow.fate {
                Fate::New => ("new", None),
                Fate::Deleted => ("deleted", None),
                Fate::Renamed(from) => ("renamed", Some(from)),
                Fate::Changed => ("changed", None),
                Fate::Same => ("same", None),
            };
            json!({
                "name": workflow.name, "fate": fate, "from": from, "errors": workflow.errors,
                "changes": changes(&workflow.changes), "before": bound(workflow.before), "after": bound(workflow.after),
                "worst_case": describe_worst_case(workflow),
            })
        })
        .collect();
    json!({
        "schema": "cuegate/compare/v1", "base": comparison.base, "head": comparison.head, "workflows": workflows,
        "settings": changes(&comparison.settings), "wider": comparison.widens(),
        "replayed": comparison.replayed.iter().map(ReplayedRuns::to_json).collect::<Vec<_>>(), "refused": comparison.refused,
    })
}

#[cfg(test)]
mod tests {
    use super::{escape_markdown, quote_name};

    #[test]
    fn names_of_others_stay_text() {
        assert_eq!(escape_markdown("`a` may edit, was plan"), "`a` may edit, was plan");
        assert_eq!(
            escape_markdown("a|b <i> @org **x** [l](u)"),
            "a\\|b &lt;i&gt; &#64;org \\*\\*x\\*\\* \\[l\\](u)"
        );
        // A name that ends the span of another one: what follows is escaped, and the rest is a span again.
        assert_eq!(escape_markdown("`a` **b** `c` is new"), "`a` \\*\\*b\\*\\* `c` is new");
        assert_eq!(escape_markdown("`a` ![p](u) `"), "`a` !\\[p\\](u) \\`");
        assert_eq!(quote_name("a` ![p](u) `|b"), "`a' ![p](u) '\\|b`");
    }
}
