//! What failure prompts show of a validator's output, held against what its extractors yield: where each is written.

use cuegate_flow::{
    analysis::ExtractorShape,
    diagnostics::{Diagnostic, Span},
    model::Extractor,
};

use crate::climpt::prompts::body::Prose;
use crate::climpt::prompts::files::PromptFile;
use crate::climpt::registry::validation_definition::ValidatorDefinition;
use crate::codes;
use crate::findings::Findings;
use crate::suggest::{or_hint, quote_names};
use crate::templates::{FailureNode, parse_failure_prompt, split_front_matter};

/// How tags begin that others of this family of notations know, and this one does not.
const FOREIGN_TAGS: [&str; 6] = ["@", "^", ">", "!", "&", "../"];

/// Reports what of a failure prompt shows nothing, or stays text, though a value of the validator was meant.
pub(crate) fn check_failure_text(
    file: &PromptFile,
    validator: &ValidatorDefinition<'_>,
    step: &str,
    found: &Findings,
) {
    let matter = split_front_matter(&file.text);
    let reader = FailureTextChecker { file, validator, step, found, prose: Prose::of(&matter) };
    reader.nodes(&parse_failure_prompt(matter.body).0, None);
}

struct FailureTextChecker<'r, 'j> {
    file: &'r PromptFile,
    validator: &'r ValidatorDefinition<'j>,
    step: &'r str,
    found: &'r Findings,
    prose: Prose<'r>,
}

impl FailureTextChecker<'_, '_> {
    fn nodes(&self, nodes: &[FailureNode<'_>], items: Option<(&str, ExtractorShape)>) {
        for node in nodes {
            match node {
                FailureNode::Text { text, at } => self.text(text, *at),
                FailureNode::Value { .. } | FailureNode::Item { field: None, .. } => {}
                FailureNode::If { then, otherwise, .. } => {
                    self.nodes(then, items);
                    self.nodes(otherwise, items);
                }
                FailureNode::Each { name, at, body } => self.each(name, *at, body),
                FailureNode::Item { field: Some(field), at } => self.field(field, *at, items),
            }
        }
    }

    fn each(&self, name: &str, at: usize, body: &[FailureNode<'_>]) {
        // What is not taken out at all is said of the prompt.
        let Some(extractor) = self.extractor(name) else { return };
        let what = match extractor.yields() {
            ExtractorShape::Text => "text",
            ExtractorShape::Number => "a number",
            yields => return self.nodes(body, Some((name, yields))),
        };
        let message = format!(
            "`{name}` of validator `{}` is {what}, and has no items: nothing is shown",
            self.validator.name
        );
        let finding = Diagnostic::warning(
            codes::TYPE_MISMATCH,
            self.span(at, "{{#each ".len() + name.len() + 2),
            message,
        );
        self.push(finding.hint(format!(
            "show it as it is with `{{{{{name}}}}}`, or take out a list with another extractor"
        )));
    }

    fn field(&self, field: &str, at: usize, items: Option<(&str, ExtractorShape)>) {
        let (message, known) = match items {
            Some((name, ExtractorShape::Texts)) => {
                (format!("the items of `{name}` are texts, and have no `{field}`"), &[][..])
            }
            Some((name, ExtractorShape::Objects(fields))) if !fields.contains(&field) => (
                format!("the items of `{name}` have no `{field}`; they have {}", quote_names(fields)),
                fields,
            ),
            _ => return,
        };
        let span = self.span(at, "{{this.".len() + field.len() + 2);
        let finding = Diagnostic::warning(codes::TYPE_MISMATCH, span, message);
        let otherwise = || match known {
            [] => "write `{{this}}`".to_owned(),
            _ => "write `{{this.name}}` with the name of a field, or `{{this}}` for all of it".to_owned(),
        };
        self.push(or_hint(finding, field, known.iter().copied(), otherwise));
    }

    /// Text that was meant to be a tag: a value in the wrong number of braces, or a tag of a related notation.
    fn text(&self, text: &str, text_at: usize) {
        let mut from = 0;
        while let Some(open) = text[from..].find('{').map(|at| at + from) {
            let inner = text[open..].trim_start_matches('{');
            let inner_at = text.len() - inner.len();
            let braces = inner_at - open;
            from = inner_at;
            let length = inner.find(['{', '}', '\n', ' ', '"']).unwrap_or(inner.len());
            let (name, closes) = (&inner[..length], inner[length..].starts_with('}'));
            let whole = inner_at + length + inner[length..].bytes().take_while(|byte| *byte == b'}').count();
            let at = text_at + open;
            let written = &text[open..whole];
            let is_value = closes && self.extractor(name).is_some();
            let is_foreign = braces == 2
                && FOREIGN_TAGS.iter().any(|begins| name.starts_with(begins))
                && inner.split(['{', '\n']).next().is_some_and(|line| line.contains("}}"));
            let hint = match (is_value, is_foreign) {
                (true, _) => format!("did you mean `{{{{{name}}}}}`?"),
                (_, true) => {
                    "there are `{{name}}`, `{{#if name}}`, `{{#each name}}`, `{{this}}` and `{{this.field}}`"
                        .to_owned()
                }
                _ => continue,
            };
            if self.prose.is_foreign(self.prose.at + at) {
                continue;
            }
            let finding = Diagnostic::warning(
                codes::UNKNOWN_PLACEHOLDER,
                self.span(at, written.len()),
                format!("`{written}` is not replaced"),
            );
            self.push(finding.hint(hint));
        }
    }

    fn extractor(&self, name: &str) -> Option<Extractor> {
        self.validator.extract.iter().find(|(known, _)| known.text == name).map(|(_, extractor)| *extractor)
    }

    fn span(&self, at: usize, length: usize) -> Span {
        let start = self.prose.at + at;
        Span { file: self.file.file, start: start as u32, end: (start + length) as u32 }
    }

    fn push(&self, finding: Diagnostic) {
        self.found.push(finding.step(self.step));
    }
}

#[cfg(test)]
mod tests {
    use cuegate_flow::{
        diagnostics::{FileId, Span},
        model::Extractor,
    };

    use super::check_failure_text;
    use crate::climpt::prompts::files::PromptFile;
    use crate::climpt::registry::validation_definition::ValidatorDefinition;
    use crate::findings::Findings;
    use crate::templates::READ;
    use crate::values::json::Text;

    /// What of a prompt with these lines is read to find quotations, and how much is found.
    fn read(line: &str) -> (usize, usize) {
        let name = Text { text: "output", span: Span::default() };
        let validator = ValidatorDefinition {
            name: "tests",
            span: Span::default(),
            command: None,
            success: None,
            pattern: None,
            extract: vec![(name, Extractor::Stdout)],
            misread: false,
        };
        let text = line.repeat(20_000).into();
        let file = PromptFile { path: "f.md".to_owned(), file: FileId(0), text, by: 0 };
        let (found, before) = (Findings::default(), READ.get());
        check_failure_text(&file, &validator, "task", &found);
        (READ.get() - before, found.into_parts().0.len())
    }

    /// Braces of others need no quotation, and all that mean a value need one look at the text.
    #[test]
    fn a_large_prompt_is_looked_at_once() {
        assert_eq!(read("Say {\"a\": 1}.\n"), (0, 0));
        let line = "Say {output} and `{output}`.\n";
        assert_eq!(read(line), (line.len() * 20_000, 20_000));
    }
}
