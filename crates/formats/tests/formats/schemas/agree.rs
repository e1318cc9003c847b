//! A schema and its loader agree: a definition in which any one value is another one, is gone or has another key beside
//! it is refused by both or by neither.

use std::collections::BTreeSet;

use cuegate_flow::{diagnostics::Severity, model::sandbox::Host};
use cuegate_formats::{LoadedDefinition, load_agent};
use serde_json::{Value, json};

use crate::schemas::fit::{read, schema};
use crate::schemas::keys;
use crate::support::{self, Project, project};
use crate::{older::check_flow, older::complete, takt::takt_support};

/// What one value of a file can be wrong in by itself. All other errors are about how values, files and steps fit each
/// other, which a schema of one file cannot say.
const FORM: [&str; 5] = ["missing-key", "wrong-type", "unknown-key", "invalid-value", "missing-transition"];

/// What a schema does not say though the loader calls one value wrong, by what its message has, and why.
const UNSAID: [(&str, &str); 5] = [
    ("no transition says where", "a schema does not compare the intents with the transitions"),
    ("lacks `outputSchemaRef`", "a completion step is complete only with its step"),
    ("which is more than `max`", "a schema does not compare numbers"),
    ("`fallbackIntent` is ", "a schema does not compare lists"),
    ("`complete` of ", "whether it ends the run depends on what the step is called"),
];

/// The values that stand in for each value.
fn others() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(3),
        json!(1.5),
        json!(""),
        json!("zzz"),
        json!(" "),
        json!("\t\u{1}"),
        json!("-zzz"),
        json!("--zzz y"),
        json!("/"),
        json!("/zzz"),
        json!("."),
        json!(".\\"),
        json!("zzz/.Git/zzz"),
        json!("zzz{c1"),
        json!("{c1}{zzz}"),
        json!("~zzz"),
        json!("zzz\u{0}"),
        json!([]),
        json!(["zzz"]),
        json!([""]),
        json!([" "]),
        json!(["\u{1}"]),
        json!(["-zzz"]),
        json!(["--zzz y"]),
        json!(["/"]),
        json!({}),
        json!({"zzz": 1}),
    ]
}

/// All places of a value, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                places(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// Each definition that differs from one in one place, with what differs.
fn mutants(sound: &Value) -> Vec<(String, Value)> {
    let mut at = Vec::new();
    places(sound, "", &mut at);
    let mut found = Vec::new();
    for place in at.iter().filter(|place| !place.is_empty()) {
        for other in others() {
            let mut mutant = sound.clone();
            *mutant.pointer_mut(place).unwrap() = other.clone();
            found.push((format!("{place} = {other}"), mutant));
        }
        let (parent, key) = place.rsplit_once('/').unwrap();
        let mut mutant = sound.clone();
        match mutant.pointer_mut(parent).unwrap() {
            Value::Object(map) => map.remove(&key.replace("~1", "/").replace("~0", "~")),
            Value::Array(items) => Some(items.remove(key.parse().unwrap())),
            _ => None,
        };
        found.push((format!("without {place}"), mutant));
        if let Some(Value::Object(_)) = sound.pointer(place) {
            let mut mutant = sound.clone();
            mutant.pointer_mut(place).unwrap()["nobodysKey"] = json!("zzz");
            found.push((format!("{place} with a key"), mutant));
        }
    }
    found
}

/// A format: its schema, and sound files with where the one that the schema is of lies.
struct Format {
    schema: &'static str,
    files: Project,
    path: String,
    load: fn(&Project) -> LoadedDefinition,
}

fn load_in(files: &Project, dir: &str) -> LoadedDefinition {
    load_agent(files, &cuegate_formats::AgentOptions { agent_dir: dir.to_owned(), ..Default::default() })
}

/// The sound agent behind a sandbox with a host and a path through it, with a folder for its log files and paths for its
/// prompts.
fn sandboxed() -> Project {
    let (mut files, path) = (support::sound(), format!("{}/agent.json", support::DIR));
    let mut agent = read(&files, &path);
    agent["runner"]["boundaries"]["sandbox"] = json!({
        "network": {"mode": "custom", "trustedDomains": ["example.com"]}, "filesystem": {"allowedPaths": ["out"]},
    });
    agent["runner"]["logging"] = json!({"directory": "out/logs"});
    files.insert(path, agent.to_string().into_bytes());
    let path = format!("{}/steps_registry.json", support::DIR);
    let mut registry = read(&files, &path);
    registry["pathTemplate"] = json!("{c1}/{c2}/{c3}/f_{edition}_{adaptation}.md");
    files.insert(path, registry.to_string().into_bytes());
    files
}

fn formats() -> Vec<Format> {
    let closing: fn(&Project) -> LoadedDefinition = |files| load_in(files, support::DIR);
    let complete: fn(&Project) -> LoadedDefinition = |files| load_in(files, complete::DIR);
    let check: fn(&Project) -> LoadedDefinition = |files| load_in(files, check_flow::DIR);
    let mut list = Vec::new();
    for (name, files, dir, load) in [
        ("registry-closing", sandboxed(), support::DIR, closing),
        ("registry-complete", project(complete::COMPLETE), complete::DIR, complete),
        ("registry-check", check_flow::sound(), check_flow::DIR, check),
    ] {
        for (schema, file) in [(name, "steps_registry.json"), ("agent", "agent.json")] {
            list.push(Format { schema, files: files.clone(), path: format!("{dir}/{file}"), load });
        }
    }
    list.push(Format {
        schema: "takt",
        files: keys::with_piece(&keys::piece()),
        path: takt_support::FILE.to_owned(),
        load: |files| takt_support::load(files, |_| {}),
    });
    list
}

/// Keys that may be left out decide nothing by being left out.
#[test]
fn a_verdict_without_a_type_fits() {
    for verdict in
        [json!({}), json!({"config": {"maxIterations": 5}}), json!({"config": {"maxIterations": "x"}})]
    {
        let mut files = support::sound();
        let path = format!("{}/agent.json", support::DIR);
        let mut agent = read(&files, &path);
        agent["runner"]["verdict"] = verdict.clone();
        files.insert(path.clone(), agent.to_string().into_bytes());
        let errors = load_in(&files, support::DIR).has_errors();
        assert_eq!(schema("agent").problems(&agent).is_empty(), !errors, "{verdict}");
    }
}

/// Hosts are described by a pattern: what it says is what is read.
#[test]
fn hosts_are_those_that_are_read() {
    let (schema, agent) = (schema("agent"), read(&sandboxed(), &format!("{}/agent.json", support::DIR)));
    let fits = |host: &str| {
        let mut agent = agent.clone();
        agent["runner"]["boundaries"]["sandbox"]["network"]["trustedDomains"] = json!([host]);
        schema.problems(&agent).is_empty()
    };
    const NAMED: [&str; 60] = [
        "example.com",
        "*.example.com",
        "example.com:8443",
        "EXAMPLE.com.",
        "localhost",
        "a_b.c-d",
        "xn--bcher-kva.example",
        "10.0.0.7",
        "10.0.0.7:80",
        "10.0.0.07",
        "10.0.0.256",
        "1.2",
        "a.1",
        "x.0xff",
        "*.10.0.0.7",
        "[::1]",
        "::1",
        "[::1]:80",
        "fe80::1:2",
        "[::1",
        "::1]",
        "::::",
        "1:2:3",
        "::",
        "::1.",
        "1::2::3",
        "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7::",
        "1:2:3:4:5:6:7::8",
        "::2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7::.",
        "1:2:3:4:5:6::1.",
        "::ffff:10.0.0.7",
        "1:2:3:4:5:6:10.0.0.7",
        "1:2:3:4:5:6::10.0.0.7",
        "1:2:3:4:5::10.0.0.7",
        "10.0.0.7::",
        "::10.0.0.07",
        "::12345",
        "[::1.]",
        "[1::2]:8443",
        "",
        " ",
        "\t",
        "/",
        "--x y",
        "*",
        "*.com",
        "a:0",
        "a:65535",
        "a:65536",
        "a:",
        "-a",
        "a-",
        "a..b",
        "a@b",
        "https://a",
        "bücher.example",
    ];
    let long = [
        "a".repeat(63),
        "a".repeat(64),
        ["a".repeat(60).as_str(); 4].join("."),
        ["a".repeat(63).as_str(); 4].join("."),
    ];
    let mut seed = 5_u64;
    let mut random = || {
        const LETTERS: &[u8] = b"aZ09.-_:*[]@/ x";
        let mut below = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % bound
        };
        let length = 1 + below(7);
        (0..length).map(|_| char::from(LETTERS[below(LETTERS.len() as u64) as usize])).collect::<String>()
    };
    let mut random: Vec<String> = (0..4_000).map(|_| random()).collect();
    let colons = |groups: usize, at: usize| {
        let mut groups: Vec<String> = (1..=groups).map(|group| group.to_string()).collect();
        groups.insert(at.min(groups.len()), String::new());
        groups.join(":")
    };
    random.extend((1..10).flat_map(|groups| (0..10).map(move |at| colons(groups, at))));
    let (mut read, mut refused) = (0, 0);
    for host in NAMED.iter().copied().chain(long.iter().chain(&random).map(String::as_str)) {
        let is_host = Host::parse(host).is_ok();
        assert_eq!(fits(host), is_host, "{host:?}");
        *(if is_host { &mut read } else { &mut refused }) += 1;
    }
    assert!(read > 200 && refused > 2_000, "{read} {refused}");
}

#[test]
fn a_schema_takes_what_its_loader_takes() {
    let mut problems = BTreeSet::new();
    let mut used = BTreeSet::new();
    for format in formats() {
        let (sound, schema) = (read(&format.files, &format.path), schema(format.schema));
        for (what, mutant) in mutants(&sound) {
            let mut files = format.files.clone();
            files.insert(format.path.clone(), mutant.to_string().into_bytes());
            let loaded = (format.load)(&files);
            let errors: Vec<_> =
                loaded.diagnostics.iter().filter(|found| found.severity == Severity::Error).collect();
            let refused = schema.problems(&mutant);
            if errors.is_empty() && !refused.is_empty() {
                problems.insert(format!("{} {what}: only the schema: {}", format.schema, refused[0]));
            }
            let mut form = errors.iter().filter(|found| FORM.contains(&found.code));
            let mut said = |message: &str| {
                let unsaid = UNSAID.iter().find(|(part, _)| message.contains(part));
                used.extend(unsaid.map(|(part, _)| *part));
                unsaid.is_none()
            };
            if let Some(found) = form.find(|found| said(&found.message)).filter(|_| refused.is_empty()) {
                let place = loaded.sources.get(found.span.file).map_or("", |file| &file.path);
                // What another file is wrong in because of this one is its own schema's.
                if place == format.path {
                    problems.insert(format!(
                        "{} {what}: only the loader: {}: {}",
                        format.schema, found.code, found.message
                    ));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{} disagree: {problems:#?}", problems.len());
    assert_eq!(used.len(), UNSAID.len(), "what is left to the loader alone: {used:?}");
}
