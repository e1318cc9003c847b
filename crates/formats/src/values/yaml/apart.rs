//! Items of a list that became one where a `- ` is gone. That keys stand twice there has been said; read as the items that
//! were meant, nothing else is wrong because of it.

use std::collections::BTreeSet;

use cuegate_flow::diagnostics::Span;

use crate::values::json::{Entry, Json, Kind};

/// The items that one is made of: another one begins with a key that stands there already, where a third of what follows does: items
/// of one list have keys of their own as well.
pub(super) fn apart(item: Json) -> Vec<Json> {
    let mut items = Vec::new();
    let mut rest = item;
    while let Some((first, second)) = split(&mut rest) {
        items.push(first);
        rest = second;
    }
    items.push(rest);
    items
}

/// The first item of several, and what comes after it; `None` where it is one item, whose key somebody wrote twice.
fn split(item: &mut Json) -> Option<(Json, Json)> {
    let span = item.span;
    let Kind::Object(entries) = &mut item.kind else { return None };
    let mut seen = BTreeSet::new();
    let begin = entries.iter().position(|entry| !seen.insert(entry.key.clone()))?;
    let again = entries[begin..].iter().filter(|entry| seen.contains(&entry.key)).count();
    if again < 2 || again * 3 < entries.len() - begin {
        return None;
    }
    let rest: Vec<Entry> = entries.drain(begin..).collect();
    let first = std::mem::take(entries);
    let (start, end) = (rest[0].key_span.start, first.last()?.value.span.end);
    let object = |span, entries| Json { span, kind: Kind::Object(entries) };
    Some((object(Span { end, ..span }, first), object(Span { start, ..span }, rest)))
}

#[cfg(test)]
mod tests {
    use super::apart;
    use crate::source::findings::Findings;
    use crate::values::json::{Json, Kind};
    use crate::values::yaml::parse;
    use cuegate_flow::diagnostics::FileId;

    /// The keys of the items, in brackets each.
    fn keys(text: &str) -> String {
        let of = |item: &Json| match &item.kind {
            Kind::Object(entries) => entries.iter().map(|entry| &*entry.key).collect::<Vec<_>>().join(" "),
            _ => String::new(),
        };
        let items = apart(parse(text, FileId(0), &Findings::default()).unwrap());
        items.iter().map(|item| format!("[{}]", of(item))).collect()
    }

    #[test]
    fn another_item_begins_with_what_stands_there_already() {
        assert_eq!(keys("a: 1\nb: 2\na: 3\nb: 4\n"), "[a b][a b]");
        assert_eq!(keys("a: 1\nb: 2\nc: 3\nb: 4\nc: 5\na: 6\nb: 7\nc: 8"), "[a b c][b c a][b c]");
        assert_eq!(keys("a: 1\nb: 2\na: 3\nb: 4\nc: 5\nd: 6\n"), "[a b][a b c d]");
    }

    #[test]
    fn a_key_may_stand_twice_in_one_item() {
        assert_eq!(keys("a: 1\nb: 2\na: 3\n"), "[a b a]");
        assert_eq!(keys("a: 1\nb: 2\na: 3\nb: 4\nc: 5\nd: 6\ne: 7\nf: 8\ng: 9\n"), "[a b a b c d e f g]");
        assert_eq!(keys("a: 1\nb: 2\n"), "[a b]");
    }
}
