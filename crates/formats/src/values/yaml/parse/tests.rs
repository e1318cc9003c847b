use super::parse;
use crate::findings::Findings;
use crate::values::json::Json;
use cuegate_flow::diagnostics::FileId;
use serde_json::json;

fn read(text: &str) -> Json {
    let found = Findings::default();
    let value = parse(text, FileId(0), &found).unwrap();
    assert!(!found.has_errors(), "{:?}", found.into_parts().0);
    value
}

fn findings(text: &str) -> Vec<(&'static str, u32, String)> {
    let found = Findings::default();
    parse(text, FileId(0), &found);
    found.into_parts().0.into_iter().map(|d| (d.code, d.span.start, d.message)).collect()
}

/// The source text of a span.
fn slice(text: &str, span: cuegate_flow::diagnostics::Span) -> &str {
    &text[span.start as usize..span.end as usize]
}

#[test]
fn keeps_values_and_places() {
    let text =
        "# a comment\nname: é\nlist: [1, \"two\", {a: ~}]\nrules:\n  - condition: x  # why\n    next: y\n";
    let value = read(text);
    assert_eq!(
        value.to_value(),
        json!({"name": "é", "list": [1, "two", {"a": null}], "rules": [{"condition": "x", "next": "y"}]})
    );
    assert_eq!(slice(text, value.entry("name").unwrap().key_span), "name");
    assert_eq!(slice(text, value.get("name").unwrap().span), "é");
    assert_eq!(slice(text, value.get("list").unwrap().span), "[1, \"two\", {a: ~}]");
    assert_eq!(slice(text, value.get("rules").unwrap().span), "- condition: x  # why\n    next: y");
}

#[test]
fn block_scalars_anchors_and_unicode() {
    let text =
        "計画: |\n  a\n    b: {c}\n\n  d\n次: >-\n  one\n  two\nx: &x [p, q]\ny: *x\n'q k': \"\\u00e9\"\n";
    let value = read(text);
    assert_eq!(
        value.to_value(),
        json!({"計画": "a\n  b: {c}\n\nd\n", "次": "one two", "x": ["p", "q"], "y": ["p", "q"], "q k": "é"})
    );
    assert_eq!(read("a: 1\r\nb: |\r\n  x\r\n  y\r\n").to_value(), json!({"a": 1, "b": "x\ny\n"}));
    assert_eq!(read("---\na: 1\n...\n").to_value(), json!({"a": 1}));
}

#[test]
fn what_is_no_yaml_is_said_where() {
    let cases = [
        ("", "invalid-yaml", 0, "the file is empty"),
        ("# nothing\n", "invalid-yaml", 0, "the file is empty"),
        ("a: 1\na: 2\n", "duplicate-key", 5, "duplicate key `a`"),
        ("a: 1\n---\nb: 2\n", "invalid-yaml", 5, "there is another document after `---`"),
        ("a:\n\tb: 1\n", "invalid-yaml", 3, "a tab indents this line"),
        ("name: p\n\tmax: 5\n", "invalid-yaml", 8, "a tab indents this line"),
        ("m:\n  - name: a\n\n\tedit: false\n", "invalid-yaml", 16, "a tab indents this line"),
        ("a: &a [*a]\n", "invalid-yaml", 7, "an alias stands inside what it stands for"),
        ("a: !mine x\n", "invalid-yaml", 3, "the tag `!mine` means nothing here"),
        ("? [a]\n: 1\n", "invalid-yaml", 2, "a key has to be a plain text"),
        ("a: &a {b: 1}\nc:\n  <<: *a\n", "invalid-yaml", 18, "`<<` merges mappings in YAML 1.1 only"),
    ];
    for (text, code, at, message) in cases {
        let found = findings(text);
        let found: Vec<_> = found.iter().map(|(code, at, message)| (*code, *at, message.as_str())).collect();
        assert_eq!(found, [(code, at, message)], "{text}");
    }
    for text in ["a: [1", "a: *b", "a: 'x", "a: b: c", "- a\nb: 1", "a: @x", "%YAML 3.0\n---\na"] {
        assert_eq!(findings(text)[0].0, "invalid-yaml", "{text}");
    }
}

#[test]
fn deep_nesting_and_many_aliases_are_refused() {
    let flow = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(findings(&flow(64)).is_empty());
    assert_eq!(findings(&flow(65))[0].0, "too-deep");
    assert_eq!(findings(&"[".repeat(1 << 20))[0].0, "too-deep");
    let block: String = (0..70).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert_eq!(findings(&block)[0].0, "too-deep");
    let bomb: String = (1..30).map(|n| format!("a{n}: &a{n} [*a{}, *a{}]\n", n - 1, n - 1)).collect();
    let found = findings(&format!("a0: &a0 [x]\n{bomb}"));
    assert!(found[0].2.contains("more than 100000 values"), "{found:?}");
    let nested: String = (1..40).map(|n| format!("b{n}: &b{n} [[*b{}]]\n", n - 1)).collect();
    assert_eq!(findings(&format!("b0: &b0 [x]\n{nested}"))[0].0, "too-deep");
}
