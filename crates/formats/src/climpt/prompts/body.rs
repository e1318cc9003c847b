//! The text of a prompt file behind its front matter, and what of it is not this program's.

use std::cell::OnceCell;

use crate::templates::{FrontMatter, Quoted};

/// The text of a prompt file.
pub(crate) struct Prose<'t> {
    /// The text.
    pub(crate) body: &'t str,
    /// Where it begins in the file, in bytes.
    pub(crate) at: usize,
    /// What of it is quoted: found once, and only where something would be said of it.
    quoted: OnceCell<Quoted>,
}

impl<'t> Prose<'t> {
    /// The text behind a front matter.
    pub(crate) fn of(matter: &FrontMatter<'t>) -> Prose<'t> {
        Prose { body: matter.body, at: matter.body_at, quoted: OnceCell::new() }
    }

    /// Whether braces at a byte of the file are somebody else's: behind a `$`, as in the files of code hosts, and in
    /// quotations.
    pub(crate) fn is_foreign(&self, at: usize) -> bool {
        self.follows(at, '$') || self.quoted.get_or_init(|| Quoted::of(self.body)).has(at - self.at)
    }

    /// Whether a byte of the file stands right behind a sign.
    pub(crate) fn follows(&self, at: usize, sign: char) -> bool {
        self.body[..at - self.at].ends_with(sign)
    }
}

#[cfg(test)]
mod tests {
    use super::Prose;
    use crate::templates::{READ, split};

    /// However much is asked of a prompt, it is read once, and not at all when nothing is.
    #[test]
    fn a_large_prompt_is_read_once() {
        let text = format!("---\nname: x\n---\n{}", "Say {a} and `{a}`.\n".repeat(20_000));
        let prose = Prose::of(&split(&text));
        assert_eq!(READ.get(), 0);
        let asked: Vec<usize> = text.match_indices("{a}").map(|(at, _)| at).collect();
        let foreign = asked.iter().filter(|at| prose.is_foreign(**at)).count();
        assert_eq!((asked.len(), foreign), (40_000, 20_000));
        assert_eq!(READ.get(), prose.body.len());
    }
}
