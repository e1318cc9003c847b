//! Path templates of prompts: `{c1}/{c2}/{c3}/f_{edition}_{adaptation}.md`.

use std::collections::BTreeSet;

use cuegate_flow::diagnostics::Diagnostic;

use super::files::PromptKey;
use crate::climpt::registry::definition::RegistryDefinition;
use crate::codes;
use crate::findings::Findings;
use crate::suggest::quote_names;
use crate::values::json::Text;

/// The default template of prompts with an adaptation.
const ADAPTED: &str = "{c1}/{c2}/{c3}/f_{edition}_{adaptation}.md";

/// The default template of prompts without an adaptation.
const PLAIN: &str = "{c1}/{c2}/{c3}/f_{edition}.md";

/// All placeholders of a template.
const PARTS: [&str; 5] = ["c1", "c2", "c3", "edition", "adaptation"];

/// The path templates of a registry.
#[derive(Debug)]
pub(crate) struct PathTemplates<'p> {
    adapted: &'p str,
    plain: &'p str,
}

impl<'p> PathTemplates<'p> {
    /// Reads them; one that cannot be used counts as not written, which a finding says.
    pub(crate) fn read(registry: &RegistryDefinition<'p>, found: &Findings) -> PathTemplates<'p> {
        let of = |written: Option<Text<'p>>, default, adapted| match written {
            Some(written) if has_known_placeholders(written, found) => {
                check_parts(written, adapted, registry, found);
                written.text
            }
            _ => default,
        };
        PathTemplates {
            adapted: of(registry.path_template, ADAPTED, true),
            plain: of(registry.path_template_plain, PLAIN, false),
        }
    }

    /// The path of a prompt, relative to a base.
    pub(crate) fn fill(&self, c1: &str, key: &PromptKey<'_>) -> String {
        let template = if key.adaptation.is_some() { self.adapted } else { self.plain };
        let mut path = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            path.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                path.push('{');
                rest = after;
                continue;
            };
            path.push_str(match name {
                "c1" => c1,
                "c2" => key.c2,
                "c3" => key.c3,
                "edition" => key.edition,
                "adaptation" => key.adaptation.unwrap_or_default(),
                _ => "",
            });
            rest = after;
        }
        path.push_str(rest);
        path
    }
}

/// Whether every placeholder of a template is known.
fn has_known_placeholders(written: Text<'_>, found: &Findings) -> bool {
    let pieces: Vec<&str> = written.text.split('{').skip(1).collect();
    let open = pieces.iter().any(|piece| !piece.contains('}'));
    let unknown: Vec<&str> = pieces
        .iter()
        .filter_map(|piece| piece.split_once('}').map(|(name, _)| name))
        .filter(|name| !PARTS.contains(name))
        .collect();
    let message = match (open, unknown.is_empty()) {
        (true, _) => "a `{` in a path template is never closed".to_owned(),
        (false, false) => format!("a path template has no {}", quote_names(&unknown)),
        (false, true) => return true,
    };
    found.push(
        Diagnostic::error(codes::INVALID_VALUE, written.span, message)
            .hint("use `{c1}`, `{c2}`, `{c3}`, `{edition}` and `{adaptation}`"),
    );
    false
}

/// Reports parts that distinguish prompts with or without an adaptation, but are missing from their path template.
fn check_parts(written: Text<'_>, adapted: bool, registry: &RegistryDefinition<'_>, found: &Findings) {
    let key = if adapted { "pathTemplate" } else { "pathTemplateNoAdaptation" };
    let has = |part: &str| written.text.contains(&format!("{{{part}}}"));
    let report = |message: String, hint: &str| {
        found.push(Diagnostic::warning(codes::UNUSED_KEY, written.span, message).hint(hint));
    };
    for (part, values) in collect_part_values(registry, adapted) {
        // A single adaptation is lost as well: it distinguishes this prompt from others.
        let least = if part == "adaptation" { 1 } else { 2 };
        if values.len() >= least && !has(part) {
            let values: Vec<&str> = values.into_iter().collect();
            let message =
                format!("`{key}` has no `{{{part}}}`, so writing {} has no effect", quote_names(&values));
            report(message, &format!("add `{{{part}}}`, or write the same `{part}` everywhere"));
        }
    }
    if !adapted && has("adaptation") {
        let message = format!("`{{adaptation}}` in `{key}` is always empty");
        report(message, "remove it: prompts with an adaptation have `pathTemplate`");
    }
}

/// The values of each part, for prompts with or without an adaptation.
fn collect_part_values<'j>(
    registry: &RegistryDefinition<'j>,
    adapted: bool,
) -> [(&'static str, BTreeSet<&'j str>); 4] {
    let (mut c2, mut c3, mut editions, mut adaptations) =
        <(BTreeSet<_>, BTreeSet<_>, BTreeSet<_>, BTreeSet<_>)>::default();
    for step in registry.steps.iter().filter(|step| step.adaptation.is_some() == adapted) {
        c2.extend(step.c2.map(|c2| c2.text));
        c3.extend(step.c3.map(|c3| c3.text));
        editions.insert(step.edition());
        adaptations.extend(step.adaptation.map(|adaptation| adaptation.text));
    }
    for pattern in registry.patterns.iter().filter(|pattern| pattern.adaptation.is_some() == adapted) {
        editions.extend(pattern.edition.map(|edition| edition.text));
        adaptations.extend(pattern.adaptation.map(|adaptation| adaptation.text));
    }
    [("c2", c2), ("c3", c3), ("edition", editions), ("adaptation", adaptations)]
}
