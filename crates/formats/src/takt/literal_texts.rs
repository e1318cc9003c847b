//! Texts that were probably meant as something else: a path, or keys of a map.

use cuegate_flow::diagnostics::Diagnostic;

use super::sections::Section;
use crate::lints;
use crate::values::json::{Fields, Text};

/// How files of text end.
const ENDINGS: [&str; 6] = [".md", ".txt", ".yaml", ".yml", ".json", ".markdown"];
/// How paths begin that begin nothing else.
const BEGINNINGS: [&str; 4] = ["./", "../", "~/", "/"];

/// Reports a path that is taken for the text itself: of texts that stand where they are used, only files of Markdown
/// are read, and in some places none.
pub(super) fn path(text: Text<'_>, key: &str, fields: &Fields<'_, '_>) {
    let path = text.text.trim();
    let ends = ENDINGS.iter().any(|ending| path.ends_with(ending));
    let leads = BEGINNINGS.iter().any(|start| path.starts_with(start));
    if (ends || leads) && !path.contains(char::is_whitespace) {
        let hint = match key {
            "judge.instruction_template" => "write the text: no file is read here",
            _ => "name the file in `instructions` with the ending `.md`, or write the text",
        };
        fields.push(literal_path(text, &format!("`{key}`")).hint(hint));
    } else if is_path_with_blanks(path) {
        fields.push(path_with_blanks(text, &format!("`{key}`")));
    }
}

/// Reports the value of a map that is taken for the text itself though it looks like a path.
pub(super) fn path_of_entry(text: Text<'_>, section: Section) -> Option<Diagnostic> {
    let what = format!("the entry of `{}`", section.key());
    is_path_with_blanks(text.text.trim()).then(|| path_with_blanks(text, &what))
}

fn path_with_blanks(text: Text<'_>, what: &str) -> Diagnostic {
    literal_path(text, what)
        .hint("give the file a name without blanks, or one that ends with `.md`; or write the text")
}

fn literal_path(text: Text<'_>, what: &str) -> Diagnostic {
    let message =
        format!("`{}` is no file here: {what} is what an agent is told, word for word", text.text.trim());
    Diagnostic::warning(lints::LITERAL_PATH, text.span, message)
}

/// Whether one line begins like a path and ends like a file of text, with blanks between. A sentence has more words.
fn is_path_with_blanks(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [first, _, ..] = words[..] else { return false };
    let leads = BEGINNINGS.iter().any(|start| first.starts_with(start));
    !text.contains('\n')
        && ENDINGS.iter().any(|ending| text.ends_with(ending))
        && (leads || (first.contains('/') && words.len() <= 4))
}

/// Reports a text that is nothing but keys of a map, written in another form than that of a list.
///
/// Where commas or semicolons part single words, one of them has to be a key; else each.
pub(super) fn keys(
    text: Text<'_>,
    section: Section,
    has: impl Fn(&str) -> bool,
) -> Option<(Vec<&str>, Diagnostic)> {
    let is_apart = |c: char| matches!(c, ',' | ';');
    let listed: Vec<&str> =
        text.text.split(is_apart).map(str::trim).filter(|item| !item.is_empty()).collect();
    let words = text.text.split(|c: char| is_apart(c) || c.is_whitespace());
    let words: Vec<&str> = words.filter(|word| !word.is_empty() && *word != "-").collect();
    let is_list = text.text.contains(is_apart) && listed == words;
    let meant = match is_list {
        true => words.iter().any(|word| has(word)),
        false => words.len() > 1 && words.iter().all(|word| has(word)),
    };
    if !meant {
        return None;
    }
    let message = format!(
        "`{}` is taken for the text itself, though it looks like keys of `{}`",
        words.join(", "),
        section.key()
    );
    let hint = match section {
        Section::Policies | Section::Knowledge => {
            format!("write them as a list: `{}: [{}]`", section.user(), words.join(", "))
        }
        _ => format!("name one of them as `{}`, or write the text", section.user()),
    };
    Some((words, Diagnostic::warning(lints::LITERAL_KEYS, text.span, message).hint(hint)))
}

#[cfg(test)]
mod tests {
    use cuegate_flow::diagnostics::Span;

    use super::*;

    #[test]
    fn keys_are_told_from_words() {
        let meant = |text: &str| {
            let text = Text { text, span: Span::default() };
            keys(text, Section::Policies, |word| ["coding", "testing"].contains(&word)).is_some()
        };
        let lists = [
            "coding testing",
            "coding - testing",
            "coding, testing",
            "coding; testng",
            "coding,",
            "- coding\n- testing",
        ];
        assert!(lists.into_iter().all(meant));
        let texts =
            ["coding", "coding and testing", "coding is done, testing is not", "clean, short", "Write it"];
        assert!(!texts.into_iter().any(meant));
    }

    #[test]
    fn paths_are_told_from_sentences() {
        for path in ["../instructions/code review.txt", "/srv/all of our own rules here.json", "docs/a b.txt"]
        {
            assert!(is_path_with_blanks(path), "{path}");
        }
        for text in [
            "Fix src/a.json",
            "a/b",
            "docs/a.txt",
            "src/a.json has to agree with b.json",
            "../a b",
            "../a\nb.txt",
        ] {
            assert!(!is_path_with_blanks(text), "{text}");
        }
    }
}
