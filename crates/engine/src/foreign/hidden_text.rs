//! Text that is there and that a person does not see. Whoever approves an issue or a task reads what is visible of it, so
//! that is what agents get.

use std::fmt;
use std::ops::AddAssign;

use pulldown_cmark::{Event, Parser, TagEnd};
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
            '\u{E0000}'..='\u{E0FFF}' => Some(&mut hidden.tags),
            // One after a character chooses how that looks; more are data.
            '\u{FE00}'..='\u{FE0F}' if may_vary(before, rest.peek().copied()) => None,
            '\u{FE00}'..='\u{FE0F}' => Some(&mut hidden.tags),
            '\u{200C}' | '\u{200D}'
                if before.is_some_and(is_joined) && rest.peek().copied().is_some_and(is_joined) =>
            {
                None
            }
            '\u{200B}'..='\u{200D}'
            | '\u{2060}'..='\u{2065}'
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
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{1D173}'..='\u{1D17A}' => Some(&mut hidden.zero_width),
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

/// Whether joiners beside a character are part of how it is written: in emoji, and in letters of other scripts than the
/// Latin one.
fn is_joined(character: char) -> bool {
    is_variant(character)
        || is_emoji(character)
        || (character.is_alphanumeric() && !matches!(character, '\0'..='\u{024F}'))
        // Marks that a letter carries, such as the virama of Indian scripts.
        || matches!(character, '\u{0900}'..='\u{0DFF}')
}

fn is_emoji(character: char) -> bool {
    matches!(character, '\u{2190}'..='\u{27FF}' | '\u{2900}'..='\u{2BFF}' | '\u{3030}'..='\u{303D}' | '\u{3297}'..='\u{3299}'
        | '\u{1F000}'..='\u{1FAFF}' | '\u{203C}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{A9}' | '\u{AE}')
}

/// Whether one variation selector may follow a character: in emoji, in Chinese and Japanese, and in keycaps, whose next
/// character is `after`.
fn may_vary(before: Option<char>, after: Option<char>) -> bool {
    before.is_some_and(|before| {
        let is_key = before.is_ascii_digit() || matches!(before, '#' | '*');
        is_emoji(before) || matches!(before, '\u{2E80}'..='\u{9FFF}') || is_key && after == Some('\u{20E3}')
    })
}

/// Removes what GitHub does not show of a text in Markdown: comments of HTML outside of code, and hidden characters.
pub fn remove_hidden_markdown(text: &str) -> (String, HiddenText) {
    let (text, mut hidden) = remove_hidden_characters(text);
    let mut visible = String::with_capacity(text.len());
    let (mut done, mut is_comment) = (0, false);
    for (event, range) in Parser::new(&text).into_offset_iter() {
        match event {
            // Whether something is a comment or code is decided by CommonMark's rules.
            Event::InlineHtml(html) if html.starts_with("<!--") => {
                visible.push_str(&text[done..range.start]);
                hidden.comments += 1;
                done = range.end;
            }
            Event::Html(_) => {
                visible.push_str(&text[done..range.start]);
                done = range.end;
                let mut rest = &text[range];
                loop {
                    match is_comment {
                        true => match rest.split_once("-->") {
                            Some((_, after)) => (is_comment, rest) = (false, after),
                            None => break,
                        },
                        false => match rest.split_once("<!--") {
                            Some((before, after)) => {
                                visible.push_str(before);
                                hidden.comments += 1;
                                (is_comment, rest) = (true, after);
                            }
                            None => {
                                visible.push_str(rest);
                                break;
                            }
                        },
                    }
                }
            }
            Event::End(TagEnd::HtmlBlock) => is_comment = false,
            _ => {}
        }
    }
    visible.push_str(&text[done..]);
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
            "<!-- template\nof two lines -->\n\nBroken: `<!-- x -->` <!-- run curl --> here\n\n```html\n<!-- kept -->\n```\n\n\
             don`t <!-- y --> and\n\n    <!-- shown -->\n\n````md\n```\n<!-- kept too -->\n```\n````\n\nend <!-- z -->\n",
        );
        assert_eq!(
            text,
            "\n\nBroken: `<!-- x -->`  here\n\n```html\n<!-- kept -->\n```\n\ndon`t  and\n\n    <!-- shown -->\n\n\
             ````md\n```\n<!-- kept too -->\n```\n````\n\nend \n"
        );
        assert_eq!(hidden.comments, 4);
        // GitHub shows one that does not end as text.
        let open = "The parser fails on <!-- in templates.\n\nMore.\n";
        assert_eq!(remove_hidden_markdown(open), (open.to_owned(), HiddenText::default()));
        assert_eq!(remove_hidden_markdown("a\n\nb\n").0, "a\n\nb\n");
    }

    #[test]
    fn joiners_and_selectors_carry_no_data() {
        let joiners = format!("\u{2014}{}\u{2014}", "\u{200C}\u{200D}".repeat(20));
        assert_eq!(remove_hidden_characters(&joiners).0, "\u{2014}\u{2014}");
        assert_eq!(remove_hidden_characters("1\u{FE01}.\u{FE02}").0, "1.");
    }
}
