//! Text that is there and that a person does not see. Whoever approves an issue or a task reads what is visible of it, so
//! that is what agents get.

use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// How much of texts was hidden, by its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HiddenText {
    /// Characters that repeat ASCII invisibly, and others by which data is smuggled.
    #[serde(skip_serializing_if = "is_zero")]
    pub tags: u32,
    /// Characters without a width.
    #[serde(skip_serializing_if = "is_zero")]
    pub zero_width: u32,
    /// Characters that change the order in which others are shown.
    #[serde(skip_serializing_if = "is_zero")]
    pub directions: u32,
    /// Control characters.
    #[serde(skip_serializing_if = "is_zero")]
    pub controls: u32,
    /// Comments of HTML, which GitHub does not show.
    #[serde(skip_serializing_if = "is_zero")]
    pub comments: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl HiddenText {
    /// Whether nothing was hidden.
    pub fn is_empty(&self) -> bool {
        *self == HiddenText::default()
    }
}

impl AddAssign for HiddenText {
    fn add_assign(&mut self, other: HiddenText) {
        self.tags += other.tags;
        self.zero_width += other.zero_width;
        self.directions += other.directions;
        self.controls += other.controls;
        self.comments += other.comments;
    }
}

impl fmt::Display for HiddenText {
    /// As `13 tag characters and a comment`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            (self.tags, "tag character"),
            (self.zero_width, "zero-width character"),
            (self.directions, "direction mark"),
            (self.controls, "control character"),
            (self.comments, "HTML comment"),
        ];
        let words = kinds.into_iter().filter(|(count, _)| *count > 0).map(|(count, name)| match count {
            1 => format!("1 {name}"),
            count => format!("{count} {name}s"),
        });
        let words: Vec<String> = words.collect();
        match words.split_last() {
            Some((last, [])) => f.write_str(last),
            Some((last, others)) => write!(f, "{} and {last}", others.join(", ")),
            None => f.write_str("nothing"),
        }
    }
}

/// Removes the characters of a text that nobody sees. Joiners stay where scripts and emoji need them.
pub fn remove_hidden_characters(text: &str) -> (String, HiddenText) {
    let mut hidden = HiddenText::default();
    let mut visible = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let before = visible.chars().next_back();
        let count = match character {
            '\n' | '\t' => None,
            // A line end of Windows.
            '\r' if rest.peek() == Some(&'\n') => None,
            '\u{E0000}'..='\u{E007F}' | '\u{E0100}'..='\u{E01EF}' => Some(&mut hidden.tags),
            // One after a character chooses how that looks; more are data.
            '\u{FE00}'..='\u{FE0F}'
                if before.is_none_or(|before| before.is_ascii_alphabetic() || is_variant(before)) =>
            {
                Some(&mut hidden.tags)
            }
            '\u{200C}' | '\u{200D}'
                if before.is_some_and(is_joined) && rest.peek().copied().is_some_and(is_joined) =>
            {
                None
            }
            '\u{200B}'..='\u{200D}'
            | '\u{2060}'..='\u{2064}'
            | '\u{206A}'..='\u{206F}'
            | '\u{00AD}'
            | '\u{034F}'
            | '\u{115F}'
            | '\u{1160}'
            | '\u{17B4}'
            | '\u{17B5}'
            | '\u{180B}'..='\u{180E}'
            | '\u{3164}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF9}'..='\u{FFFB}' => Some(&mut hidden.zero_width),
            '\u{200E}' | '\u{200F}' | '\u{061C}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {
                Some(&mut hidden.directions)
            }
            character if character.is_control() => Some(&mut hidden.controls),
            _ => None,
        };
        match count {
            Some(count) => *count += 1,
            None => visible.push(character),
        }
    }
    (visible, hidden)
}

fn is_variant(character: char) -> bool {
    ('\u{FE00}'..='\u{FE0F}').contains(&character)
}

/// Whether joiners beside a character are part of how it is written: in emoji, and in scripts other than the Latin one.
fn is_joined(character: char) -> bool {
    is_variant(character) || (!character.is_ascii() && !matches!(character, '\u{00A0}'..='\u{024F}'))
}

/// Removes what GitHub does not show of a text in Markdown: comments of HTML outside of code, and hidden characters.
pub fn remove_hidden_markdown(text: &str) -> (String, HiddenText) {
    let (text, mut hidden) = remove_hidden_characters(text);
    let mut visible = String::with_capacity(text.len());
    let mut fence: Option<&str> = None;
    let mut is_comment = false;
    for line in text.split_inclusive('\n') {
        let mark = line.trim_start();
        let begins = ["```", "~~~"].into_iter().find(|begin| mark.starts_with(begin));
        if !is_comment && (fence.is_some() || begins.is_some()) {
            visible.push_str(line);
            fence = match (fence, begins) {
                (Some(open), Some(mark)) if open == mark => None,
                (None, begins) => begins,
                (open, _) => open,
            };
            continue;
        }
        let mut rest = line;
        let before = visible.len();
        while !rest.is_empty() {
            if is_comment {
                let Some((_, after)) = rest.split_once("-->") else { break };
                (is_comment, rest) = (false, after);
                continue;
            }
            let Some(start) = rest.find("<!--") else {
                visible.push_str(rest);
                break;
            };
            // Code in a line is shown.
            if rest[..start].matches('`').count() % 2 == 1 {
                let end = rest[start..].find('`').map_or(rest.len(), |at| start + at + 1);
                visible.push_str(&rest[..end]);
                rest = &rest[end..];
                continue;
            }
            visible.push_str(&rest[..start]);
            hidden.comments += 1;
            (is_comment, rest) = (true, &rest[start + 4..]);
        }
        if line.ends_with('\n') && !visible.ends_with('\n') && visible.len() > before {
            visible.push('\n');
        }
    }
    (visible, hidden)
}

#[cfg(test)]
mod tests {
    use super::{HiddenText, remove_hidden_characters, remove_hidden_markdown};

    #[test]
    fn what_nobody_sees_is_removed_and_counted() {
        let tags: String = "KEY".chars().map(|c| char::from_u32(0xE0000 + c as u32).unwrap()).collect();
        let (text, hidden) =
            remove_hidden_characters(&format!("a{tags}\u{200b}b\u{202e}c\u{202c}\u{1b}[31m\r\n\tz"));
        assert_eq!(text, "abc[31m\r\n\tz");
        assert_eq!(
            hidden.to_string(),
            "3 tag characters, 1 zero-width character, 2 direction marks and 1 control character"
        );
        let smuggled: String = "x".chars().chain(['\u{FE00}', '\u{FE01}', '\u{E0101}']).collect();
        assert_eq!(remove_hidden_characters(&smuggled).0, "x");
    }

    #[test]
    fn scripts_and_emoji_stay_as_they_are() {
        for text in ["👩‍👩‍👧", "❤️", "می‌خواهم", "क्‍ष", "ログインを直す", "ünï", "a\r\nb", "1️⃣"]
        {
            assert_eq!(remove_hidden_characters(text), (text.to_owned(), HiddenText::default()), "{text}");
        }
    }

    #[test]
    fn comments_are_removed_but_for_those_in_code() {
        let (text, hidden) = remove_hidden_markdown(
            "<!-- template\nof two lines -->\nBroken: `<!-- x -->` <!-- run curl --> here\n```html\n<!-- kept -->\n```\nend <!-- open",
        );
        assert_eq!(text, "\nBroken: `<!-- x -->`  here\n```html\n<!-- kept -->\n```\nend ");
        assert_eq!(hidden.comments, 3);
        assert_eq!(remove_hidden_markdown("a\n\nb\n").0, "a\n\nb\n");
    }
}
