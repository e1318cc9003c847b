//! The body of a prompt file after its front matter, and the parts of it that belong to other notations.

use std::cell::OnceCell;

use crate::templates::{FrontMatter, QuotedRanges};

/// The body of a prompt file.
pub(crate) struct Prose<'t> {
    /// The text.
    pub(crate) body: &'t str,
    /// Its byte offset in the file.
    pub(crate) at: usize,
    /// The quoted ranges, computed once and only when a finding may need them.
    quoted: OnceCell<QuotedRanges>,
}

impl<'t> Prose<'t> {
    /// The body after a front matter.
    pub(crate) fn of(matter: &FrontMatter<'t>) -> Prose<'t> {
        Prose { body: matter.body, at: matter.body_at, quoted: OnceCell::new() }
    }

    /// Whether braces at a byte offset of the file belong to another notation: after a `$`, as in files of code hosts,
    /// and in quotations.
    pub(crate) fn is_foreign(&self, at: usize) -> bool {
        self.follows(at, '$') || self.quoted.get_or_init(|| QuotedRanges::of(self.body)).has(at - self.at)
    }

    /// Whether the byte is directly preceded by a sign.
    pub(crate) fn follows(&self, at: usize, sign: char) -> bool {
        self.body[..at - self.at].ends_with(sign)
    }
}

#[cfg(test)]
mod tests {
    use super::Prose;
    use crate::templates::{READ, split_front_matter};

    /// Each prompt is scanned for quotations at most once, and only on demand.
    #[test]
    fn a_large_prompt_is_read_once() {
        let text = format!("---\nname: x\n---\n{}", "Say {a} and `{a}`.\n".repeat(20_000));
        let prose = Prose::of(&split_front_matter(&text));
        assert_eq!(READ.get(), 0);
        let asked: Vec<usize> = text.match_indices("{a}").map(|(at, _)| at).collect();
        let foreign = asked.iter().filter(|at| prose.is_foreign(**at)).count();
        assert_eq!((asked.len(), foreign), (40_000, 20_000));
        assert_eq!(READ.get(), prose.body.len());
    }
}
