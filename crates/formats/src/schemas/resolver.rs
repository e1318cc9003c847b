//! Flattens a schema: every `$ref` replaced by what it refers to, every `allOf` merged, every object closed.
//!
//! Agents are sent one self-contained schema, and many providers accept neither references nor open objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use cuegate_flow::diagnostics::Span;
use serde_json::{Map, Value};

use super::beside_ref::{check_refs, counts_beside_ref, is_beside_ref};
use super::close_objects::close_object_schemas;
use super::merge::{PropertyMergeMode, merge_schemas};
use super::reference::split_reference;
use super::unknown_keywords::check_words;
use crate::Files;
use crate::findings::Findings;
use crate::source::files::{join_path, lies_in};
use crate::source::loader::SourceLoader;
use crate::values::json::{Entry, Json, Kind};

/// Why a schema cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaFault {
    /// The name of the schema follows no notation.
    #[error("malformed schema identifier `{id}`: {why}")]
    Malformed {
        /// The identifier as written.
        id: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The file has nothing there.
    #[error("no schema `{id}` in `{file}`")]
    NotFound {
        /// The identifier as written.
        id: String,
        /// The file it was looked for in.
        file: String,
    },
    /// There is no such file.
    #[error("no schema file `{0}`")]
    NoFile(String),
    /// The file is no JSON, or cannot be read.
    #[error("schema file `{0}` cannot be read")]
    Unreadable(String),
    /// A file lies outside the schema base.
    #[error("schema file `{0}` lies outside the schema base")]
    Escapes(String),
    /// A reference leads out of the project's files.
    #[error("`$ref` to `{0}`: schemas are never fetched")]
    External(String),
    /// References lead back to where they began.
    #[error("`$ref` to `{0}` leads back to itself")]
    Circular(String),
    /// What came out is too large, too deep, or refers too far.
    #[error("the resolved schema is too {0}")]
    TooMuch(&'static str),
}

/// A schema that cannot be resolved: why, and where the reference stands that it is about; nowhere where it is about the
/// schema itself.
pub(crate) struct UnresolvedSchema {
    pub(crate) fault: SchemaFault,
    pub(crate) at: Option<Span>,
}

/// The drafts of JSON Schema, by the paths of their names.
const DRAFTS: [&str; 5] =
    ["draft-04/schema", "draft-06/schema", "draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema"];

/// The longest chain of references (as in the original program).
const REFERENCES_MAX: usize = 50;

/// The deepest resolved schema. What compiles and walks schemas recurses; real ones have 12 levels.
const DEPTH_MAX: usize = 128;

/// The most values in a resolved schema: references that double each other grow without bound otherwise. Real ones
/// have a few hundred.
const VALUES_MAX: usize = 50_000;

/// Resolves the schema of a name in a file below `base`, and closes every object in it that does not say whether
/// it is open. The name is a JSON pointer with `#/` before it, or a bare name looked up in `definitions`, `$defs`
/// and the top level.
///
/// # Errors
/// Why it cannot be resolved.
pub fn resolve_schema(files: &dyn Files, base: &str, file: &str, id: &str) -> Result<Value, SchemaFault> {
    let loader = SourceLoader::new(files);
    let mut schema = resolve_open(&loader, base, file, id)?;
    close_object_schemas(&mut schema);
    Ok(schema)
}

/// Resolves a schema without closing its objects.
pub(crate) fn resolve_open(
    loader: &SourceLoader<'_>,
    base: &str,
    file: &str,
    id: &str,
) -> Result<Value, SchemaFault> {
    resolve_with_draft(loader, base, file, id).map(|(schema, _)| schema).map_err(|broken| broken.fault)
}

/// The same, with the draft of JSON Schema that its file is written in: what is taken out of a file is still to be read
/// as that file is.
pub(crate) fn resolve_in_draft(
    loader: &SourceLoader<'_>,
    base: &str,
    file: &str,
    id: &str,
) -> Result<Value, UnresolvedSchema> {
    let (mut schema, draft) = resolve_with_draft(loader, base, file, id)?;
    if let (Value::Object(schema), Some(draft)) = (&mut schema, draft) {
        schema.entry("$schema").or_insert(draft);
    }
    Ok(schema)
}

fn resolve_with_draft(
    loader: &SourceLoader<'_>,
    base: &str,
    file: &str,
    id: &str,
) -> Result<(Value, Option<Value>), UnresolvedSchema> {
    let mut resolver =
        Resolver { loader, base, chain: Vec::new(), documents: BTreeMap::new(), values: 0, at: None };
    resolver.named(file, id).map_err(|fault| UnresolvedSchema { fault, at: resolver.at })
}

/// Whether a `$schema` names a draft that answers are validated by. Another one changes nothing.
fn is_draft(written: &str) -> bool {
    let name = written.split_once("://json-schema.org/");
    let path = name.map(|(_, path)| path.trim_end_matches('#').trim_end_matches('/'));
    path.is_some_and(|path| DRAFTS.contains(&path))
}

/// What an identifier names in a document.
fn look_up<'j>(document: &'j Json, id: &str, file: &str) -> Result<&'j Json, SchemaFault> {
    let malformed = |why| Err(SchemaFault::Malformed { id: id.to_owned(), why });
    if id.starts_with("##") {
        return malformed("a double `##` is no JSON pointer");
    }
    if id.contains("//") {
        return malformed("an empty segment `//` is no JSON pointer");
    }
    let found = match id.strip_prefix('#') {
        Some(pointer) => document.pointer(pointer),
        None => ["definitions", "$defs"]
            .iter()
            .find_map(|key| document.get(key).and_then(|names| names.get(id)))
            .or_else(|| document.get(id)),
    };
    found.ok_or_else(|| SchemaFault::NotFound { id: id.to_owned(), file: file.to_owned() })
}

/// What is said of a schema file as a whole.
fn look_at(file: &Json, found: &Findings) {
    check_refs(file, found);
    check_words(file, found);
}

struct Resolver<'d, 'f> {
    loader: &'d SourceLoader<'f>,
    base: &'d str,
    /// The references being followed: file and pointer.
    chain: Vec<(String, String)>,
    documents: BTreeMap<String, Arc<Json>>,
    values: usize,
    /// The reference that could not be followed.
    at: Option<Span>,
}

impl Resolver<'_, '_> {
    /// The schema of a name in a file, and the draft that the file is written in.
    fn named(&mut self, file: &str, id: &str) -> Result<(Value, Option<Value>), SchemaFault> {
        let path = join_path(self.base, file)
            .filter(|path| lies_in(path, self.base))
            .ok_or_else(|| SchemaFault::Escapes(file.to_owned()))?;
        let document = self.document(&path)?;
        let found = look_up(&document, id, file)?;
        self.chain.push((path.clone(), id.to_owned()));
        let draft = document.get("$schema").and_then(Json::as_text).filter(|draft| is_draft(draft));
        let draft = draft.map(Value::from);
        Ok((self.schema(found, &path, 0)?, draft))
    }

    fn document(&mut self, path: &str) -> Result<Arc<Json>, SchemaFault> {
        if let Some(document) = self.documents.get(path) {
            return Ok(document.clone());
        }
        match self.loader.looked_at(path, look_at) {
            Ok(Some(document)) => {
                self.documents.insert(path.to_owned(), document.clone());
                Ok(document)
            }
            Ok(None) => Err(SchemaFault::NoFile(path.to_owned())),
            Err(_) => Err(SchemaFault::Unreadable(path.to_owned())),
        }
    }

    /// A value where a schema stands.
    fn schema(&mut self, json: &Json, path: &str, depth: usize) -> Result<Value, SchemaFault> {
        self.count(depth)?;
        let entries = match &json.kind {
            Kind::Object(entries) => entries,
            Kind::List(items) => {
                let items = items.iter().map(|item| self.schema(item, path, depth + 1));
                return items.collect::<Result<Vec<_>, _>>().map(Value::Array);
            }
            _ => return Ok(json.to_value()),
        };
        let Some(reference) = json.get("$ref").filter(|reference| reference.as_text().is_some()) else {
            return self.parts(entries, None, path, depth);
        };
        let followed = self.reference(reference.as_text().unwrap_or_default(), path, depth);
        // The innermost one is to blame, unless what it leads to is too much altogether.
        if followed.as_ref().is_err_and(|fault| !matches!(fault, SchemaFault::TooMuch(_))) {
            self.at = self.at.or(Some(reference.span));
        }
        let followed = followed?;
        let document = self.documents.get(path);
        match document.is_some_and(|file| counts_beside_ref(file)) && entries.iter().any(is_beside_ref) {
            true => self.parts(entries, Some(followed), path, depth),
            false => Ok(followed),
        }
    }

    /// The keywords of a schema, with what its `$ref` leads to, which holds besides.
    fn parts(
        &mut self,
        entries: &[Entry],
        followed: Option<Value>,
        path: &str,
        depth: usize,
    ) -> Result<Value, SchemaFault> {
        let (mut own, mut all_of) = (Map::with_capacity(entries.len() + 1), None);
        for entry in entries.iter().filter(|entry| followed.is_none() || is_beside_ref(entry)) {
            match &entry.value.kind {
                Kind::List(parts) if &*entry.key == "allOf" => all_of = Some(parts),
                _ => {
                    let value = self.keyword(&entry.key, &entry.value, path, depth)?;
                    own.insert(entry.key.to_string(), value);
                }
            }
        }
        if let Some(parts) = all_of {
            let bases = parts.iter().map(|part| self.schema(part, path, depth + 1));
            own = merge_schemas(bases.collect::<Result<_, _>>()?, own, PropertyMergeMode::Anew);
        }
        Ok(Value::Object(match followed {
            Some(followed) => merge_schemas(vec![followed], own, PropertyMergeMode::Together),
            None => own,
        }))
    }

    fn keyword(&mut self, key: &str, json: &Json, path: &str, depth: usize) -> Result<Value, SchemaFault> {
        match (key, &json.kind) {
            // Values of answers, not schemas: what looks like a reference in them is none.
            ("enum" | "const" | "default" | "examples" | "required" | "allOf", _) => Ok(json.to_value()),
            (
                "properties" | "patternProperties" | "definitions" | "$defs" | "dependentSchemas"
                | "dependencies",
                Kind::Object(named),
            ) => {
                self.count(depth + 1)?;
                let mut resolved = Map::with_capacity(named.len());
                for entry in named {
                    resolved.insert(entry.key.to_string(), self.schema(&entry.value, path, depth + 2)?);
                }
                Ok(Value::Object(resolved))
            }
            _ => self.schema(json, path, depth + 1),
        }
    }

    fn reference(&mut self, reference: &str, path: &str, depth: usize) -> Result<Value, SchemaFault> {
        let (file, pointer) =
            split_reference(reference, self.documents.get(path).map(|document| &**document));
        if file.contains("://") {
            return Err(SchemaFault::External(reference.to_owned()));
        }
        let target = if file.is_empty() {
            path.to_owned()
        } else {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            join_path(folder, file)
                .filter(|target| lies_in(target, self.base))
                .ok_or_else(|| SchemaFault::Escapes(file.to_owned()))?
        };
        let id = format!("#{pointer}");
        let step = (target.clone(), id.clone());
        if self.chain.contains(&step) {
            return Err(SchemaFault::Circular(reference.to_owned()));
        }
        if self.chain.len() >= REFERENCES_MAX {
            return Err(SchemaFault::TooMuch("long in its chain of references"));
        }
        let document = self.document(&target)?;
        let found = look_up(&document, &id, &target)?;
        self.chain.push(step);
        let resolved = self.schema(found, &target, depth);
        self.chain.pop();
        resolved
    }

    fn count(&mut self, depth: usize) -> Result<(), SchemaFault> {
        self.values += 1;
        match (depth > DEPTH_MAX, self.values > VALUES_MAX) {
            (true, _) => Err(SchemaFault::TooMuch("deep")),
            (_, true) => Err(SchemaFault::TooMuch("large")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SchemaFault, SourceLoader, resolve_in_draft, resolve_schema};
    use cuegate_flow::model::Schema;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn resolve(files: &[(&str, Value)], file: &str, id: &str) -> Result<Value, SchemaFault> {
        let files: BTreeMap<String, Vec<u8>> =
            files.iter().map(|(path, value)| (format!("s/{path}"), value.to_string().into_bytes())).collect();
        resolve_schema(&files, "s", file, id)
    }

    fn one(document: Value, id: &str) -> Result<Value, SchemaFault> {
        resolve(&[("a.json", document)], "a.json", id)
    }

    #[test]
    fn finds_by_pointer_and_by_bare_name() {
        let document = json!({
            "definitions": {"x": {"const": 1}}, "$defs": {"x": {"const": 2}, "y": {"const": 3}},
            "x": {"const": 4}, "z": {"const": 5}, "a/b~c": {"const": 6}
        });
        for (id, value) in [("x", 1), ("#/$defs/x", 2), ("y", 3), ("#/x", 4), ("z", 5), ("#/a~1b~0c", 6)] {
            assert_eq!(one(document.clone(), id), Ok(json!({"const": value})), "{id}");
        }
    }

    #[test]
    fn schemas_for_names_are_followed_and_the_names_are_no_keywords() {
        let document = json!({"x": {"dependencies": {"$ref": {"$ref": "#/y"}, "enum": {"$ref": "#/y"}, "b": ["a"]}},
            "y": {"const": 1}});
        let found = json!({"dependencies": {"$ref": {"const": 1}, "enum": {"const": 1}, "b": ["a"]}});
        assert_eq!(one(document, "x"), Ok(found));
    }

    #[test]
    fn what_stands_beside_a_reference_counts_where_the_draft_says_so() {
        let draft = |name: &str| {
            json!({"$schema": name, "base": {"type": "object", "required": ["a"], "properties": {"a": {}}},
                "x": {"$ref": "#/base", "required": ["b"], "properties": {"b": {"$ref": "#/base"}},
                    "allOf": [{"minProperties": 2}], "$defs": {"y": {"$ref": "#/x"}}}})
        };
        let base = json!({"type": "object", "required": ["a"], "properties": {"a": {}}, "additionalProperties": false});
        let both = json!({"type": "object", "required": ["a", "b"], "properties": {"a": {}, "b": base},
            "minProperties": 2, "additionalProperties": false});
        let older = ["http://json-schema.org/draft-07/schema#", "https://example.com/draft/2020-12/schema"];
        for name in older {
            assert_eq!(one(draft(name), "x"), Ok(base.clone()), "{name}");
        }
        for name in
            ["https://json-schema.org/draft/2019-09/schema", "http://json-schema.org/draft/2020-12/schema#"]
        {
            assert_eq!(one(draft(name), "x"), Ok(both.clone()), "{name}");
        }
    }

    #[test]
    fn a_property_is_what_a_base_says_and_anew_what_the_step_says() {
        let newest = "https://json-schema.org/draft/2020-12/schema";
        let base = json!({"properties": {"plan": {"enum": ["a", "b"]}, "size": {"type": "integer"}}});
        let text = json!({"plan": {"type": "string"}});
        let document = json!({"$schema": newest, "base": base,
            "beside": {"$ref": "#/base", "properties": text},
            "above": {"allOf": [{"$ref": "#/base"}], "properties": text}});
        let properties = |id: &str| one(document.clone(), id).unwrap()["properties"].clone();
        let size = json!({"type": "integer"});
        let both = json!({"plan": {"enum": ["a", "b"], "type": "string"}, "size": size});
        assert_eq!(properties("beside"), both);
        assert_eq!(properties("above"), json!({"plan": {"type": "string"}, "size": size}));
    }

    #[test]
    fn every_way_to_fail_has_its_own_fault() {
        let far = |n: usize| {
            let mut document = json!({"d0": {"const": 1}});
            for level in 1..=n {
                document[format!("d{level}")] = json!({"$ref": format!("#/d{}", level - 1)});
            }
            document
        };
        let doubling = {
            let mut document = json!({"d0": {"const": 1}});
            for level in 1..=30 {
                let inner = json!({"$ref": format!("#/d{}", level - 1)});
                document[format!("d{level}")] = json!({"anyOf": [inner, inner]});
            }
            document
        };
        let cases = [
            (json!({}), "##/a", "malformed schema identifier `##/a`: a double `##` is no JSON pointer"),
            (
                json!({}),
                "#/a//b",
                "malformed schema identifier `#/a//b`: an empty segment `//` is no JSON pointer",
            ),
            (json!({}), "nope", "no schema `nope` in `a.json`"),
            (json!({"x": {"$ref": "#/x"}}), "#/x", "`$ref` to `#/x` leads back to itself"),
            (
                json!({"x": {"properties": {"a": {"$ref": "#/y"}}}, "y": {"items": {"$ref": "#/x"}}}),
                "#/x",
                "`$ref` to `#/x` leads back to itself",
            ),
            (
                json!({"x": {"$ref": "http://x/y.json"}}),
                "x",
                "`$ref` to `http://x/y.json`: schemas are never fetched",
            ),
            (
                json!({"x": {"$ref": "../b.json#/y"}}),
                "x",
                "schema file `../b.json` lies outside the schema base",
            ),
            (json!({"x": {"$ref": "b.json#/y"}}), "x", "no schema file `s/b.json`"),
            (json!({"x": {"$ref": "#/y"}}), "x", "no schema `#/y` in `s/a.json`"),
            (far(60), "d60", "the resolved schema is too long in its chain of references"),
            (doubling, "d30", "the resolved schema is too large"),
        ];
        for (document, id, expected) in cases {
            assert_eq!(one(document, id).unwrap_err().to_string(), expected, "{id}");
        }
        assert!(one(far(40), "d40").is_ok());
        assert_eq!(resolve(&[], "../a.json", "x"), Err(SchemaFault::Escapes("../a.json".to_owned())));
    }

    #[test]
    fn a_reference_may_be_written_with_numbers_and_the_documents_own_name() {
        let document = |reference: &str| json!({"$id": "https://x.y/s.json", "$defs": {"a b": {"const": 1}}, "x": {"$ref": reference}});
        for reference in
            ["#/%24defs/a%20b", "https://x.y/s.json#/$defs/a b", "https://x.y/s.json#/$defs/a%20b"]
        {
            assert_eq!(one(document(reference), "#/x").unwrap(), json!({"const": 1}), "{reference}");
        }
        assert!(matches!(
            one(document("https://x.y/t.json#/$defs/a b"), "#/x"),
            Err(SchemaFault::External(_))
        ));
    }

    #[test]
    fn references_go_across_files_relative_to_the_file() {
        let files = [
            ("a.json", json!({"x": {"$ref": "sub/b.json#/y", "description": "dropped"}})),
            ("sub/b.json", json!({"y": {"items": {"$ref": "c.json#/$defs/z"}}})),
            ("sub/c.json", json!({"$defs": {"z": {"type": "string"}}})),
        ];
        assert_eq!(resolve(&files, "a.json", "x"), Ok(json!({"items": {"type": "string"}})));
    }

    #[test]
    fn objects_are_closed_and_parts_merged() {
        let document = json!({
            "base": {"type": "object", "description": "base", "required": ["a"], "minProperties": 1,
                "properties": {"a": {"type": "object"}, "b": {"type": "object"}}},
            "x": {"type": "object", "description": "own", "required": ["b", "a"], "minProperties": 2,
                "allOf": [{"$ref": "#/base"}], "properties": {"a": {"enum": [{"type": "object"}]}}},
            "open": {"type": "object", "additionalProperties": true, "allOf": [{"type": "object"}]}
        });
        assert_eq!(
            one(document.clone(), "x"),
            Ok(json!({
                "type": "object", "description": "base", "required": ["a", "b"], "minProperties": 2,
                "properties": {"a": {"enum": [{"type": "object"}]},
                    "b": {"type": "object"}}, "additionalProperties": false
            }))
        );
        assert_eq!(one(document, "open"), Ok(json!({"type": "object", "additionalProperties": true})));
    }

    /// A part of a file is read by the draft of the file: later ones write lists of schemas in another way.
    #[test]
    fn a_schema_keeps_the_draft_of_its_file() {
        let in_draft = |draft: &str| {
            let tuple = json!({"type": "array", "items": [{"const": 1}]});
            let document = json!({"$schema": draft, "definitions": {"x": {"properties": {"plan": tuple}}}});
            let files = BTreeMap::from([("s/a.json".to_owned(), document.to_string().into_bytes())]);
            resolve_in_draft(&SourceLoader::new(&files), "s", "a.json", "x").ok().unwrap()
        };
        for draft in
            ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"]
        {
            let schema = Schema::new(in_draft(draft)).unwrap();
            assert!(schema.problems(&json!({"plan": [1]})).is_empty());
            assert!(!schema.problems(&json!({"plan": [2]})).is_empty());
        }
        assert_eq!(in_draft("./editor.schema.json").get("$schema"), None, "it names no draft");
        assert!(Schema::new(in_draft("https://json-schema.org/draft/2020-12/schema")).is_err());
    }

    #[test]
    fn an_object_that_names_nothing_stays_open() {
        let document = json!({
            "x": {"type": "object", "properties": {"data": {"type": "object"}, "none": {"type": "object", "properties": {}}}}
        });
        let Ok(schema) = one(document, "x") else { panic!("it resolves") };
        assert_eq!(schema["properties"]["data"], json!({"type": "object"}));
        assert_eq!(schema["properties"]["none"]["additionalProperties"], json!(false));
        assert_eq!(schema["additionalProperties"], json!(false));
    }
}
