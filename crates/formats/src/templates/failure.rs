//! The syntax of failure prompts: `{{name}}`, `{{#each name}}…{{/each}}`, `{{#if name}}…{{else}}…{{/if}}`, `{{this}}`
//! and `{{this.field}}`.

/// A part of a failure prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FailureNode<'t> {
    /// Verbatim text, which may contain placeholders of the prompt syntax.
    Text {
        text: &'t str,
        /// The byte offset.
        at: usize,
    },
    /// A value of the failing validator.
    Value {
        name: &'t str,
        /// The byte offset.
        at: usize,
    },
    /// The current item, or a field of it.
    Item {
        field: Option<&'t str>,
        /// The byte offset.
        at: usize,
    },
    /// One of two bodies.
    If {
        /// The value that decides.
        name: &'t str,
        /// The byte offset.
        at: usize,
        /// Used if the value is not empty.
        then: Vec<FailureNode<'t>>,
        /// Used otherwise.
        otherwise: Vec<FailureNode<'t>>,
    },
    /// A body that repeats for each item.
    Each {
        /// The list value.
        name: &'t str,
        /// The byte offset.
        at: usize,
        body: Vec<FailureNode<'t>>,
    },
}

/// A syntax error in a failure prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailureSyntaxError {
    /// The byte offset.
    pub(crate) at: usize,
    /// The message.
    pub(crate) what: String,
}

/// The nesting limit of blocks, because template walks recurse.
const NESTING_MAX: usize = 64;

/// Parses a failure prompt and returns all syntax errors.
pub(crate) fn parse_failure_prompt(text: &str) -> (Vec<FailureNode<'_>>, Vec<FailureSyntaxError>) {
    let mut parser = Parser { open: Vec::new(), done: Vec::new(), faults: Vec::new(), too_deep: false };
    let mut from = 0;
    while let Some(first) = text[from..].find("{{").map(|at| at + from) {
        let Some(end) = text[first + 2..].find("}}").map(|at| at + first + 2) else {
            parser.text(text, from, text.len());
            from = text.len();
            break;
        };
        // The innermost braces belong to the tag: in `{{{name}}}` the outer ones are text.
        let start = text[..end].rfind("{{").unwrap_or(first);
        match start == first {
            true => parser.plain(text, from, start),
            false => parser.text(text, from, start),
        }
        from = end + 2;
        parser.tag(text, text[start + 2..end].trim(), start, from);
    }
    parser.plain(text, from, text.len());
    while let Some(block) = parser.open.pop() {
        if !block.misread {
            parser.fault(block.at, format!("`{{{{#{}}}}}` is never closed", block.written()));
        }
        parser.finish(block);
    }
    (parser.done, parser.faults)
}

struct Parser<'t> {
    open: Vec<Block<'t>>,
    done: Vec<FailureNode<'t>>,
    faults: Vec<FailureSyntaxError>,
    /// Whether excessive nesting has been reported.
    too_deep: bool,
}

struct Block<'t> {
    each: bool,
    name: &'t str,
    at: usize,
    /// The opening tag was malformed and reported, so any closing tag closes it.
    misread: bool,
    then: Vec<FailureNode<'t>>,
    otherwise: Option<Vec<FailureNode<'t>>>,
}

impl Block<'_> {
    fn written(&self) -> String {
        format!("{} {}", if self.each { "each" } else { "if" }, self.name)
    }
}

impl<'t> Parser<'t> {
    fn push(&mut self, node: FailureNode<'t>) {
        match self.open.last_mut() {
            None => self.done.push(node),
            Some(Block { otherwise: Some(otherwise), .. }) => otherwise.push(node),
            Some(block) => block.then.push(node),
        }
    }

    /// Adds text, and reports opening braces in it that look like incomplete block tags.
    fn text(&mut self, text: &'t str, from: usize, to: usize) {
        let mut from = from;
        while let Some((start, inner)) = half_closed(&text[from..to]).map(|(at, inner)| (from + at, inner)) {
            self.fault(start, format!("`{{{{{inner}}}` lacks a brace: write `{{{{{inner}}}}}`"));
            self.plain(text, from, start);
            from = start + inner.len() + 3;
            self.tag(text, inner, start, from);
        }
        self.plain(text, from, to);
    }

    fn plain(&mut self, text: &'t str, from: usize, to: usize) {
        if from < to {
            self.push(FailureNode::Text { text: &text[from..to], at: from });
        }
    }

    fn fault(&mut self, at: usize, what: impl Into<String>) {
        self.faults.push(FailureSyntaxError { at, what: what.into() });
    }

    fn tag(&mut self, text: &'t str, inner: &'t str, at: usize, end: usize) {
        if let Some(head) = inner.strip_prefix('#') {
            self.open_block(head.trim(), at);
        } else if let Some(name) = inner.strip_prefix('/') {
            self.close_block(name.trim(), at);
        } else if inner == "else" {
            match self.open.last_mut() {
                Some(block) if !block.each && block.otherwise.is_none() => block.otherwise = Some(Vec::new()),
                _ => self.fault(at, "`{{else}}` belongs into an `{{#if}}`, once"),
            }
        } else if inner == "this" || inner.strip_prefix("this.").is_some_and(is_name) {
            if !self.open.iter().any(|block| block.each) {
                self.fault(at, format!("`{{{{{inner}}}}}` belongs into an `{{{{#each}}}}`"));
            }
            self.push(FailureNode::Item { field: inner.strip_prefix("this."), at });
        } else if is_name(inner) {
            self.push(FailureNode::Value { name: inner, at });
        } else {
            // Not a tag of this syntax, so text: a prompt may contain other templates.
            self.text(text, at, end);
        }
    }

    fn open_block(&mut self, head: &'t str, at: usize) {
        let (word, name) = head.split_once(char::is_whitespace).unwrap_or((head, ""));
        let name = name.trim();
        let mut misread = true;
        if !matches!(word, "each" | "if") {
            self.fault(at, format!("`{{{{#{word}}}}}` is not a block: there are `each` and `if`"));
        } else if !is_name(name) || name == "this" || name.starts_with("this.") {
            self.fault(at, format!("`{{{{#{word}}}}}` needs the name of a failure value"));
        } else if self.open.len() == NESTING_MAX && !std::mem::replace(&mut self.too_deep, true) {
            self.fault(at, "blocks are nested deeper than 64 levels");
        } else {
            misread = false;
        }
        // Opened despite the error, so that its end is no second error; both are ignored beyond the limit.
        if self.open.len() < NESTING_MAX {
            let each = word == "each";
            self.open.push(Block { each, name, at, misread, then: Vec::new(), otherwise: None });
        }
    }

    fn close_block(&mut self, word: &str, at: usize) {
        let is_end = |block: &Block<'_>| block.misread || word == if block.each { "each" } else { "if" };
        let Some(block) = self.open.last() else {
            return self.fault(at, format!("`{{{{/{word}}}}}` closes nothing"));
        };
        let mut left = self.open.len() - 1;
        if !is_end(block) {
            let what = format!("`{{{{/{word}}}}}` does not close `{{{{#{}}}}}`", block.written());
            self.fault(at, what);
            // If an outer block matches, close it together with the unclosed blocks inside. An unknown word closes
            // the innermost block.
            match self.open.iter().rposition(is_end) {
                Some(outer) => left = outer,
                None if matches!(word, "each" | "if") => return,
                None => {}
            }
        }
        while self.open.len() > left {
            self.open.pop().into_iter().for_each(|block| self.finish(block));
        }
    }

    fn finish(&mut self, block: Block<'t>) {
        let Block { each, name, at, misread, then, otherwise } = block;
        let otherwise = otherwise.unwrap_or_default();
        match (misread, each) {
            (true, _) => then.into_iter().chain(otherwise).for_each(|node| self.push(node)),
            (false, true) => self.push(FailureNode::Each { name, at, body: then }),
            (false, false) => self.push(FailureNode::If { name, at, then, otherwise }),
        }
    }
}

/// The first block tag that ends with only one brace: its offset and its inner text.
fn half_closed(text: &str) -> Option<(usize, &str)> {
    text.match_indices("{{").find_map(|(at, _)| {
        // A tag contains no brace, so the next one decides.
        let inner = &text[at + 2..];
        let inner = &inner[..inner.find(['{', '}'])?];
        if !text[at + 2 + inner.len()..].starts_with('}') {
            return None;
        }
        let is_block = match inner.strip_prefix('#') {
            Some(head) => head
                .split_once(' ')
                .is_some_and(|(word, name)| matches!(word, "each" | "if") && is_name(name.trim())),
            None => matches!(inner, "else" | "/each" | "/if"),
        };
        is_block.then_some((at, inner))
    })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::{FailureNode, parse_failure_prompt};

    fn dump(nodes: &[FailureNode<'_>]) -> String {
        let show = |node: &FailureNode<'_>| match node {
            FailureNode::Text { text, .. } => format!("'{text}'"),
            FailureNode::Value { name, .. } => format!("value({name})"),
            FailureNode::Item { field: None, .. } => "this".to_owned(),
            FailureNode::Item { field: Some(field), .. } => format!("this.{field}"),
            FailureNode::If { name, then, otherwise, .. } => {
                format!("if {name} [{}] [{}]", dump(then), dump(otherwise))
            }
            FailureNode::Each { name, body, .. } => format!("each {name} [{}]", dump(body)),
        };
        nodes.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn reads_the_notation() {
        let cases = [
            ("a {{ x }} b", "'a ' value(x) ' b'"),
            ("{{#if e}}yes{{else}}no{{/if}}", "if e ['yes'] ['no']"),
            ("{{#each f}}- {{this.file}}:{{this}}\n{{/each}}", "each f ['- ' this.file ':' this '\n']"),
            ("{{#if a}}{{#each b}}{{this}}{{/each}}{{/if}}", "if a [each b [this]] []"),
            ("{{{x}}}", "'{' value(x) '}'"),
            ("{{ a b }} {x} {{", "'{{ a b }}' ' {x} {{'"),
            ("{{ {{x}}", "'{{ ' value(x)"),
        ];
        for (text, expected) in cases {
            let (nodes, faults) = parse_failure_prompt(text);
            assert_eq!(dump(&nodes), expected, "{text}");
            assert!(faults.is_empty(), "{text}: {faults:?}");
        }
    }

    #[test]
    fn says_what_is_malformed_and_where() {
        let cases = [
            ("ab{{#if x}}", vec![(2, "`{{#if x}}` is never closed")]),
            ("{{/each}}", vec![(0, "`{{/each}}` closes nothing")]),
            ("{{#if x}}{{/each}}{{/if}}", vec![(9, "`{{/each}}` does not close `{{#if x}}`")]),
            ("{{else}}", vec![(0, "`{{else}}` belongs into an `{{#if}}`, once")]),
            ("{{this}}", vec![(0, "`{{this}}` belongs into an `{{#each}}`")]),
            ("{{#unless x}}", vec![(0, "`{{#unless}}` is not a block: there are `each` and `if`")]),
            ("{{#each}}{{/each}}", vec![(0, "`{{#each}}` needs the name of a failure value")]),
            ("{{#fi x}}a{{else}}b{{/if}}", vec![(0, "`{{#fi}}` is not a block: there are `each` and `if`")]),
            ("{{#if x}}a{{/fi}}b", vec![(10, "`{{/fi}}` does not close `{{#if x}}`")]),
            (
                "{{#if x}}{{#each y}}{{this}}{{/if}}{{#if z}}{{/if}}",
                vec![(28, "`{{/if}}` does not close `{{#each y}}`")],
            ),
            ("{{#if x}a{{else}}b{{/if}}", vec![(0, "`{{#if x}` lacks a brace: write `{{#if x}}`")]),
            ("{{#if x}}a{{/if} {{y}}", vec![(10, "`{{/if}` lacks a brace: write `{{/if}}`")]),
            ("{{#if x}}a{{else}b{{/if}}", vec![(10, "`{{else}` lacks a brace: write `{{else}}`")]),
        ];
        for (text, expected) in cases {
            let faults = parse_failure_prompt(text).1;
            let faults: Vec<_> = faults.iter().map(|fault| (fault.at, fault.what.as_str())).collect();
            assert_eq!(faults, expected, "{text}");
        }
        let deep = "{{#if a}}".repeat(100_000);
        assert!(parse_failure_prompt(&deep).1.iter().any(|fault| fault.what.contains("64 levels")));
    }
}
