//! Step fragments: `uses`, `with`, `params`, and trees of rules.

use std::collections::BTreeMap;

use cuegate_flow::diagnostics::Diagnostic;

use super::layers::split_package;
use super::tree::{build_text, get_mut, overlay_object, set_entry, set_key, take_key};
use super::{Composer, DEPTH_MAX, INSTALL, Layers};
use crate::codes;
use crate::suggest;
use crate::values::json::{Entry, Json, Kind};

impl Composer<'_, '_, '_> {
    /// A step with the fragment that it uses, and its members with theirs. Returns `None` after reporting why there is
    /// none.
    pub(super) fn with_fragments(&mut self, step: Json, layers: &Layers, depth: usize) -> Option<Json> {
        let (mut step, tree) = self.with_fragment(step, layers, depth)?;
        self.add_member_fragments(&mut step, layers, depth)?;
        // The tree names the members as they are called in the end.
        if let Some(tree) = tree {
            self.apply_rule_tree(&mut step, tree);
        }
        Some(step)
    }

    /// A step with the fragment that it uses, and the tree of its rules.
    fn with_fragment(
        &mut self,
        mut step: Json,
        layers: &Layers,
        depth: usize,
    ) -> Option<(Json, Option<Entry>)> {
        let Some(uses) = take_key(&mut step, "uses") else { return Some((step, None)) };
        let with = take_key(&mut step, "with");
        let Some(name) = uses.value.as_text().map(str::trim) else {
            self.refuse(
                Diagnostic::error(codes::WRONG_TYPE, uses.value.span, "`uses` must be text")
                    .hint("name a fragment"),
            );
            return None;
        };
        let found = layers.find(self.files.loader, &["steps"], name, &[".yaml", ".yml"]);
        let own_name = split_package(name).map_or(name, |(_, own)| own);
        let Some(path) = found.filter(|_| !own_name.contains('/')) else {
            let message = format!("the step fragment `{name}` is not found");
            let hint = format!("it is looked for in {}; {INSTALL}", layers.places("steps", name));
            self.refuse(Diagnostic::error(codes::UNKNOWN_NAME, uses.value.span, message).hint(hint));
            return None;
        };
        if depth >= DEPTH_MAX {
            let message = format!("step fragments use each other in a cycle, among them `{name}`");
            self.refuse(
                Diagnostic::error(codes::INVALID_VALUE, uses.value.span, message)
                    .hint("remove one of the `uses`"),
            );
            return None;
        }
        let mut fragment = (*self.parse_used_file(&path)?).clone();
        let declared = take_key(&mut fragment, "params");
        let declared = declared.as_ref().map(|params| params.value.pairs()).unwrap_or_default();
        let given = with.as_ref().map(|with| with.value.pairs()).unwrap_or_default();
        let mut bound = BTreeMap::new();
        for param in declared {
            match given.iter().find(|given| given.key == param.key) {
                Some(given) => _ = bound.insert(param.key.to_string(), given.value.clone()),
                None => {
                    // What reads it has no finding of its own.
                    let none = Json { span: uses.value.span, kind: Kind::Null };
                    bound.insert(param.key.to_string(), none);
                    let message = format!("the fragment `{name}` needs the parameter `{}`", param.key);
                    self.refuse(
                        Diagnostic::error(codes::MISSING_KEY, uses.value.span, message)
                            .hint("give it in `with`"),
                    );
                }
            }
        }
        for given in given.iter().filter(|given| !declared.iter().any(|param| param.key == given.key)) {
            let message = format!("the fragment `{name}` has no parameter `{}`", given.key);
            let finding = Diagnostic::error(codes::UNKNOWN_NAME, given.key_span, message);
            let known: Vec<&str> = declared.iter().map(|param| &*param.key).collect();
            self.files.loader.found.push(match &known[..] {
                [] => finding.hint("remove it"),
                known => suggest::add_suggestion(finding, &given.key, known),
            });
        }
        self.fill_params(&mut fragment, &bound);
        let (mut whole, _) = self.with_fragment(fragment, &layers.starting_at(&path), depth + 1)?;
        let tree = match step.get("rules").map(|rules| &rules.kind) {
            Some(Kind::Object(_)) => take_key(&mut step, "rules"),
            _ => None,
        };
        overlay_object(&mut whole, step);
        if whole.get("name").is_none() {
            set_key(&mut whole, "name", build_text(own_name, uses.value.span));
        }
        Some((whole, tree))
    }

    /// Gives a parallel step and its members the rules of the caller.
    fn apply_rule_tree(&mut self, step: &mut Json, tree: Entry) {
        let own = tree.value.get("self").cloned();
        let children =
            tree.value.get("parallel").map(|children| children.pairs().to_vec()).unwrap_or_default();
        if let Some(own) = own {
            set_entry(step, Entry { value: own, ..tree });
        }
        let mut missing: Vec<&Entry> = children.iter().collect();
        let mut give = |member: &mut Json| {
            let name = member.get("name").or_else(|| member.get("uses")).and_then(Json::as_text);
            let name = name.unwrap_or_default().trim();
            let name = split_package(name).map_or(name, |(_, own)| own).to_owned();
            if let Some(child) = children.iter().find(|child| *child.key == *name) {
                set_entry(member, Entry { key: "rules".into(), ..child.clone() });
                missing.retain(|other| other.key != child.key);
            }
        };
        if let Some(parallel) = get_mut(step, "parallel") {
            for list in member_lists(parallel) {
                list.iter_mut().for_each(&mut give);
            }
        }
        for child in missing {
            let message = format!("no member of the parallel step is called `{}`", child.key);
            let finding = Diagnostic::error(codes::UNKNOWN_NAME, child.key_span, message);
            self.files.loader.found.push(finding.hint("correct the name, or remove the rules"));
        }
    }

    /// Expands the members of a parallel step.
    fn add_member_fragments(&mut self, step: &mut Json, layers: &Layers, depth: usize) -> Option<()> {
        let Some(parallel) = get_mut(step, "parallel") else { return Some(()) };
        for list in member_lists(parallel) {
            for member in list.iter_mut().filter(|member| matches!(member.kind, Kind::Object(_))) {
                (*member, _) = self.with_fragment(member.clone(), layers, depth)?;
            }
        }
        Some(())
    }
}

/// The lists of members: the members themselves, or those that are fixed and those of a pool.
fn member_lists(parallel: &mut Json) -> Vec<&mut Vec<Json>> {
    match &mut parallel.kind {
        Kind::List(members) => vec![members],
        Kind::Object(entries) => entries
            .iter_mut()
            .filter(|entry| matches!(&*entry.key, "fixed" | "pool"))
            .filter_map(|entry| match &mut entry.value.kind {
                Kind::List(members) => Some(members),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}
