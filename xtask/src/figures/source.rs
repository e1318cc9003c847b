//! One source file: its items without those of tests.

use proc_macro2::Span;
use syn::{
    Attribute, Expr, Item, Lit, Meta, UseTree, Visibility,
    spanned::Spanned as _,
    visit::{self, Visit},
};

/// Whether a path is of the product: its source, without files of tests.
pub(super) fn is_product(path: &str) -> bool {
    let mut parts: Vec<&str> = path.split('/').collect();
    let file = parts.pop().unwrap_or_default();
    path.contains("/src/")
        && !parts.iter().any(|part| matches!(*part, "tests" | "benches" | "testing"))
        && !matches!(file, "tests.rs" | "testing.rs")
        && !file.ends_with("_tests.rs")
}

/// What a file holds, without the items of tests.
#[derive(Debug, Default)]
pub(super) struct SourceFile {
    pub(super) lines: usize,
    /// Names of functions outside of `impl` and `trait`.
    pub(super) functions: Vec<String>,
    /// Names of structs, enums and traits.
    pub(super) types: Vec<String>,
    /// Paths that begin with `crate`, `self` or `super`.
    pub(super) paths: Vec<Vec<String>>,
    /// The lines of doc comments that only repeat the name of their item.
    pub(super) empty_docs: Vec<usize>,
    /// The number of public items without a doc comment.
    pub(super) undocumented: usize,
}

impl SourceFile {
    /// Reads a file.
    ///
    /// # Errors
    /// When it is no Rust.
    pub(super) fn parse(text: &str) -> Result<SourceFile, String> {
        let parsed = syn::parse_file(text).map_err(|error| error.to_string())?;
        let mut file = SourceFile { lines: text.lines().count(), ..SourceFile::default() };
        file.visit_file(&parsed);
        Ok(file)
    }

    fn note_item(
        &mut self,
        attributes: &[Attribute],
        name: Option<&syn::Ident>,
        visibility: Option<&Visibility>,
    ) {
        let docs = attributes.iter().filter_map(doc_of);
        let docs: Vec<(usize, String)> = docs.collect();
        if let (Some(name), [(line, doc)]) = (name, docs.as_slice())
            && repeats(doc, &name.to_string())
        {
            self.empty_docs.push(*line);
        }
        if docs.is_empty() && matches!(visibility, Some(Visibility::Public(_))) {
            self.undocumented += 1;
        }
    }
}

impl<'a> Visit<'a> for SourceFile {
    fn visit_item(&mut self, item: &'a Item) {
        let (attributes, name, visibility): (&[Attribute], _, _) = match item {
            Item::Fn(item) => (&item.attrs, Some(&item.sig.ident), Some(&item.vis)),
            Item::Struct(item) => (&item.attrs, Some(&item.ident), Some(&item.vis)),
            Item::Enum(item) => (&item.attrs, Some(&item.ident), Some(&item.vis)),
            Item::Trait(item) => (&item.attrs, Some(&item.ident), Some(&item.vis)),
            Item::Const(item) => (&item.attrs, Some(&item.ident), Some(&item.vis)),
            Item::Static(item) => (&item.attrs, Some(&item.ident), Some(&item.vis)),
            Item::Type(item) => (&item.attrs, Some(&item.ident), Some(&item.vis)),
            Item::Mod(item) => (&item.attrs, None, None),
            Item::Impl(item) => (&item.attrs, None, None),
            Item::Use(item) => (&item.attrs, None, None),
            _ => (&[], None, None),
        };
        if attributes.iter().any(is_test_only) {
            let span = item.span();
            self.lines -= lines_of(span);
            return;
        }
        self.note_item(attributes, name, visibility);
        match (item, name) {
            (Item::Fn(_), Some(name)) => self.functions.push(name.to_string()),
            (Item::Struct(_) | Item::Enum(_) | Item::Trait(_), Some(name)) => {
                self.types.push(name.to_string())
            }
            (Item::Use(item), _) => collect_paths(&item.tree, &mut Vec::new(), &mut self.paths),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_block(&mut self, block: &'a syn::Block) {
        // A function inside of another one has a reader who sees its use.
        let functions = self.functions.len();
        visit::visit_block(self, block);
        self.functions.truncate(functions);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.note_item(&item.attrs, Some(&item.sig.ident), Some(&item.vis));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_field(&mut self, field: &'a syn::Field) {
        self.note_item(&field.attrs, field.ident.as_ref(), None);
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'a syn::Variant) {
        self.note_item(&variant.attrs, Some(&variant.ident), None);
        visit::visit_variant(self, variant);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if matches!(names.first().map(String::as_str), Some("crate" | "self" | "super")) {
            self.paths.push(names);
        }
        visit::visit_path(self, path);
    }
}

fn collect_paths(tree: &UseTree, before: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            collect_paths(&path.tree, before, paths);
            before.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| collect_paths(tree, before, paths)),
        UseTree::Name(name) => paths.push([&before[..], &[name.ident.to_string()]].concat()),
        UseTree::Rename(name) => paths.push([&before[..], &[name.ident.to_string()]].concat()),
        UseTree::Glob(_) => paths.push(before.clone()),
    }
}

fn lines_of(span: Span) -> usize {
    span.end().line - span.start().line + 1
}

fn is_test_only(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && matches!(&attribute.meta, Meta::List(list) if list.tokens.to_string() == "test")
}

/// The line and the text of a doc comment.
fn doc_of(attribute: &Attribute) -> Option<(usize, String)> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(literal) = &pair.value else { return None };
    match &literal.lit {
        Lit::Str(text) if pair.path.is_ident("doc") => Some((attribute.span().start().line, text.value())),
        _ => None,
    }
}

/// Whether a comment says no more than the name: all its words are in it.
fn repeats(doc: &str, name: &str) -> bool {
    const FILLERS: [&str; 12] =
        ["a", "all", "an", "and", "for", "in", "is", "its", "of", "that", "the", "to"];
    let mut spaced = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() || letter == '_' {
            spaced.push(' ');
        }
        spaced.extend(letter.to_lowercase());
    }
    let known: Vec<&str> = spaced.split([' ', '_']).map(|word| word.trim_end_matches('s')).collect();
    let doc = doc.to_lowercase();
    let words = doc.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut words = words.filter(|word| !FILLERS.contains(word)).peekable();
    words.peek().is_some() && words.all(|word| known.contains(&word.trim_end_matches('s')))
}

#[cfg(test)]
mod tests {
    use super::{SourceFile, is_product, repeats};

    #[test]
    fn items_are_counted_without_those_of_tests() {
        let text = "\
use crate::{a::{b, c}, d};

/// The thing.
pub struct Thing {
    /// How much of it there is.
    size: u32,
}

pub fn told() { fn inner() {} super::e::f(); }

impl Thing { fn grow(&self) {} }

#[cfg(test)]
mod tests {
    fn helper() {}
}
";
        let file = SourceFile::parse(text).unwrap();
        assert_eq!(file.lines, 12);
        assert_eq!(file.functions, ["told"]);
        assert_eq!(file.types, ["Thing"]);
        assert_eq!((file.empty_docs, file.undocumented), (vec![3], 1));
        let paths: Vec<String> = file.paths.iter().map(|path| path.join("::")).collect();
        assert_eq!(paths, ["crate::a::b", "crate::a::c", "crate::d", "super::e::f"]);
    }

    #[test]
    fn tests_are_no_product() {
        assert!(is_product("crates/flow/src/a/b.rs"));
        for path in ["crates/flow/tests/a.rs", "crates/flow/src/a/tests.rs", "crates/flow/src/tests/a.rs"] {
            assert!(!is_product(path), "{path}");
        }
    }

    #[test]
    fn a_comment_that_repeats_the_name_is_known() {
        assert!(repeats("The names of steps.", "step_names"));
        assert!(repeats("Permission.", "Permission"));
        assert!(!repeats("The name of the step, as typed.", "step_name"));
        assert!(!repeats("", "x"));
    }
}
