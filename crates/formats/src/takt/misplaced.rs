//! Items that stand in a list of something else, because the line above them was lost or is indented otherwise: they are
//! read as what they are, and the lost line is one finding.

use std::collections::HashSet;

use cuegate_flow::diagnostics::{Diagnostic, Span};

use crate::lints;
use crate::source::findings::Findings;
use crate::values::json::{Entry, Json, Kind};

/// Puts everything where it belongs, and says what stood elsewhere.
pub(super) fn mend(piece: &mut Json, found: &Findings) {
    let Kind::Object(_) = piece.kind else { return };
    let movements =
        if piece.get("movements").is_none() && piece.get("steps").is_some() { "steps" } else { "movements" };
    let monitors = taken(piece, movements, is_monitor);
    say(&monitors, "loop monitor", "the movements", ("loop_monitors", movements), piece, found);
    let strays = taken(piece, "loop_monitors", is_movement);
    say(&strays, "movement", "the loop monitors", (movements, "loop_monitors"), piece, found);
    add(piece, "loop_monitors", monitors);
    add(piece, movements, strays);
    let Some(items) = list(piece, movements) else { return };
    leave_out_bare(items, found);
    to_owners(items, "the movements", found);
    for movement in items {
        let Some(members) = list(movement, "parallel") else { continue };
        // What follows on the last one belongs to all of them, unless they have rules.
        let at = members.iter().rposition(|item| !is_rule(item)).map_or(0, |last| last + 1);
        if movement.get("rules").is_none() {
            let rules = list(movement, "parallel").map(|members| members.split_off(at)).unwrap_or_default();
            let last = list(movement, "parallel").and_then(|members| members.last());
            say_rules(&rules, "the members", (last, "parallel"), found);
            let rules = if rules.is_empty() { rules_of_last(movement, found) } else { rules };
            add(movement, "rules", rules);
        }
        if let Some(members) = list(movement, "parallel") {
            to_owners(members, "the members", found);
        }
    }
}

fn is_monitor(item: &Json) -> bool {
    item.get("name").is_none() && item.get("cycle").is_some() && item.get("judge").is_some()
}

fn is_movement(item: &Json) -> bool {
    let asks = ["instruction", "instruction_template", "parallel"].iter().any(|key| item.get(key).is_some());
    item.get("name").is_some() && asks && item.get("cycle").is_none() && item.get("judge").is_none()
}

fn is_rule(item: &Json) -> bool {
    let is_more =
        ["name", "instruction", "instruction_template", "rules"].iter().any(|key| item.get(key).is_some());
    item.get("condition").is_some() && !is_more
}

/// Leaves out movements that are nothing but the name of another one: a line that stands twice.
fn leave_out_bare(items: &mut Vec<Json>, found: &Findings) {
    let name = |item: &Json| item.get("name").and_then(Json::as_text).map(str::to_owned);
    let is_bare = |item: &Json| item.pairs().len() == 1 && item.get("name").is_some();
    if !items.iter().any(is_bare) {
        return;
    }
    let mut known: HashSet<String> = items.iter().filter(|item| !is_bare(item)).filter_map(name).collect();
    items.retain(|item| {
        let Some(name) = name(item).filter(|_| is_bare(item)) else { return true };
        let message = format!("there is another movement `{name}`, and this one is nothing but its name");
        let is_new = known.insert(name);
        if !is_new {
            found.push(Diagnostic::error(lints::STEP_NAME, item.span, message).hint("remove it"));
        }
        is_new
    });
}

/// The items of a list below a key.
fn list<'j>(owner: &'j mut Json, key: &str) -> Option<&'j mut Vec<Json>> {
    let Kind::Object(entries) = &mut owner.kind else { return None };
    match &mut entries.iter_mut().find(|entry| &*entry.key == key)?.value.kind {
        Kind::List(items) => Some(items),
        _ => None,
    }
}

/// Takes items out of a list.
fn taken(owner: &mut Json, key: &str, is_one: fn(&Json) -> bool) -> Vec<Json> {
    list(owner, key).map(|items| items.extract_if(.., |item| is_one(item)).collect()).unwrap_or_default()
}

/// Adds items to a list, which is begun where there is none.
fn add(owner: &mut Json, key: &str, items: Vec<Json>) {
    let (Some(first), Some(last)) = (items.first(), items.last()) else { return };
    let span = Span { end: last.span.end, ..first.span };
    if let Some(known) = list(owner, key) {
        known.extend(items);
    } else if let Kind::Object(entries) = &mut owner.kind {
        let value = Json { span, kind: Kind::List(items) };
        entries.retain(|entry| &*entry.key != key);
        entries.push(Entry { key: key.into(), key_span: Span { end: span.start, ..span }, value });
    }
}

/// Gives rules that stand beside whom they belong to the one before them.
fn to_owners(items: &mut Vec<Json>, among: &str, found: &Findings) {
    let mut kept: Vec<Json> = Vec::new();
    let mut rules: Vec<Json> = Vec::new();
    for item in std::mem::take(items) {
        match kept.last_mut() {
            Some(_) if is_rule(&item) => rules.push(item),
            owner => {
                if let Some(owner) = owner {
                    say_rules(&rules, among, (Some(&*owner), "name"), found);
                    add(owner, "rules", std::mem::take(&mut rules));
                }
                kept.push(item);
            }
        }
    }
    if let Some(owner) = kept.last_mut() {
        say_rules(&rules, among, (Some(&*owner), "name"), found);
        add(owner, "rules", rules);
    }
    *items = kept;
}

/// Says that rules stand among other items. A line `rules:` that stands too far in belongs to the item before them
/// (`before`), which has it twice then.
fn say_rules(rules: &[Json], among: &str, (before, beside): (Option<&Json>, &str), found: &Findings) {
    let Some(first) = rules.first() else { return };
    let above = before.and_then(second_rules).filter(|above| {
        let is_it = |known: &Diagnostic| known.code == lints::DUPLICATE_KEY && known.span == *above;
        !found.take(is_it).is_empty()
    });
    let message = match (rules.len(), &above) {
        (_, Some(_)) => format!("`rules` is indented too far, so that its rules stand among {among}"),
        (1, None) => format!("a rule stands among {among}"),
        (count, None) => format!("{count} rules stand among {among}"),
    };
    let hint = match above {
        Some(_) => format!("move it as far to the left as `{beside}`"),
        None => format!("write `rules:` above it, as far to the left as `{beside}`"),
    };
    let span = above.unwrap_or(first.span);
    found.push(Diagnostic::error(lints::INVALID_VALUE, span, message).hint(hint));
}

/// The second rules of the last member of a movement that has none of its own: they are indented too far.
fn rules_of_last(movement: &mut Json, found: &Findings) -> Vec<Json> {
    let Some(last) = list(movement, "parallel").and_then(|members| members.last_mut()) else {
        return Vec::new();
    };
    let name = last.get("name").and_then(Json::as_text).map(|name| format!(" `{name}`")).unwrap_or_default();
    let Kind::Object(entries) = &mut last.kind else { return Vec::new() };
    let mut all = (0..entries.len()).filter(|at| &*entries[*at].key == "rules").skip(1);
    let Some(second) = all.next() else { return Vec::new() };
    let at = entries[second].key_span;
    let is_it = |known: &Diagnostic| known.code == lints::DUPLICATE_KEY && known.span == at;
    if !matches!(entries[second].value.kind, Kind::List(_)) || found.take(is_it).is_empty() {
        return Vec::new();
    }
    let message =
        format!("`rules` is indented too far, so that they stand in the member{name}, which has some");
    let finding = Diagnostic::error(lints::INVALID_VALUE, at, message);
    found.push(finding.hint("move it as far to the left as `parallel`"));
    match entries.remove(second).value.kind {
        Kind::List(rules) => rules,
        _ => Vec::new(),
    }
}

/// Where an item has `rules` once more, with nothing below it.
fn second_rules(item: &Json) -> Option<Span> {
    let mut all = item.pairs().iter().filter(|entry| &*entry.key == "rules").skip(1);
    all.find(|entry| matches!(entry.value.kind, Kind::Null)).map(|entry| entry.key_span)
}

/// Says that items of one list (`own`) stand in another one (`other`).
fn say(items: &[Json], what: &str, among: &str, (own, other): (&str, &str), piece: &Json, found: &Findings) {
    let Some(first) = items.first() else { return };
    let message = match items.len() {
        1 => format!("a {what} stands among {among}"),
        count => format!("{count} {what}s stand among {among}"),
    };
    let hint = match piece.get(own) {
        Some(_) => format!("move it below `{own}`"),
        None => format!("write `{own}:` above it, as far to the left as `{other}:`"),
    };
    found.push(Diagnostic::error(lints::INVALID_VALUE, first.span, message).hint(hint));
}
