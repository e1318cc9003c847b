//! Generates texts that match a regular expression.

use regex_syntax::hir::{Class, Hir, HirKind};
use regex_syntax::parse;

/// The length limit of a generated text.
const LENGTH_MAX: usize = 1_000_000;

/// The length limit if the caller requests no length.
const SHORT_MAX: usize = 4_000;

/// A short text that matches a pattern; `variant` selects other letters and alternatives. `None` if the pattern
/// cannot be parsed, as with look-around.
///
/// Assertions such as word boundaries are ignored: the caller checks the result against the pattern.
pub fn text_for(pattern: &str, variant: usize) -> Option<String> {
    let mut made = GeneratedText { text: String::new(), length_max: SHORT_MAX };
    write_matching_text(&parse(pattern).ok()?, variant, 0, &mut made)?;
    Some(made.text)
}

/// As [`text_for`], with `more` additional repetitions.
pub fn text_of(pattern: &str, variant: usize, more: usize) -> Option<String> {
    let mut made = GeneratedText { text: String::new(), length_max: LENGTH_MAX };
    write_matching_text(&parse(pattern).ok()?, variant, u32::try_from(more).ok()?, &mut made)?;
    Some(made.text)
}

/// The text generated so far.
struct GeneratedText {
    text: String,
    length_max: usize,
}

/// `more` is the number of additional repetitions.
fn write_matching_text(hir: &Hir, variant: usize, more: u32, made: &mut GeneratedText) -> Option<()> {
    if made.text.len() > made.length_max {
        return None;
    }
    let text = &mut made.text;
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => text.push(pick_letter(class, variant)?),
        HirKind::Repetition(repeated) => {
            // Include an optional part in every other variant.
            let one = u32::from(repeated.min == 0 && variant % 2 == 1);
            let room = repeated.max.map_or(u32::MAX, |max| max - repeated.min);
            for _ in 0..repeated.min.saturating_add(one.max(more).min(room)) {
                // Nested repetitions use the minimum, otherwise the length would multiply.
                write_matching_text(&repeated.sub, variant, 0, made)?;
            }
        }
        HirKind::Capture(capture) => write_matching_text(&capture.sub, variant, more, made)?,
        HirKind::Concat(parts) => {
            parts.iter().try_for_each(|part| write_matching_text(part, variant, more, made))?
        }
        HirKind::Alternation(parts) => {
            write_matching_text(parts.get(variant % parts.len())?, variant, more, made)?
        }
    }
    Some(())
}

/// A letter of a class, preferably a readable one.
fn pick_letter(class: &Class, variant: usize) -> Option<char> {
    let has = |letter: char| match class {
        Class::Unicode(class) => class.iter().any(|range| (range.start()..=range.end()).contains(&letter)),
        Class::Bytes(class) => {
            class.iter().any(|range| (range.start()..=range.end()).any(|byte| char::from(byte) == letter))
        }
    };
    let plain = ('a'..='z').chain('0'..='9').chain('A'..='Z').chain(' '..='~');
    let readable: Vec<char> = plain.filter(|letter| has(*letter)).collect();
    match (readable.as_slice(), class) {
        ([], Class::Unicode(class)) => class.iter().next().map(|range| range.start()),
        ([], Class::Bytes(_)) => None,
        (readable, _) => readable.get(variant % readable.len()).copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::text_for;
    use cuegate_flow::model::Schema;
    use serde_json::{Value, json};

    #[test]
    fn what_is_made_matches() {
        for pattern in [
            "^PROJ-[0-9]{3}$",
            r"^\d{4}-\d{2}$",
            "^(feat|fix)(\\([a-z]+\\))?: .+$",
            "^v[0-9]+(\\.[0-9]+){2}$",
            "[A-Z][a-z]*",
            "^[^a-z]{2,}$",
            "^\\p{Greek}+$",
        ] {
            let rule = Schema::new(json!({"pattern": pattern})).unwrap();
            for variant in 0..5 {
                let text = text_for(pattern, variant).unwrap();
                assert!(rule.problems(&Value::from(&*text)).is_empty(), "{pattern}: {text}");
            }
        }
        assert_eq!(text_for("^(?=a)b", 0), None);
        assert_eq!(text_for("^a{4000}{4000}$", 0), None, "too long");
        assert_ne!(text_for("^[a-z]$", 0), text_for("^[a-z]$", 1));
    }
}
