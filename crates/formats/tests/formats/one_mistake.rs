//! One mistake is one finding: each case changes one place of a sound definition, and one finding names that place.

use crate::check_flow;
use crate::support::{self, Project, broken, edit};

/// Replaces the first place in the first file that has it.
pub fn first(mut files: Project, from: &str, to: &str) -> Project {
    let fits = |(_, bytes): &(&String, &mut Vec<u8>)| String::from_utf8_lossy(bytes).contains(from);
    let (_, bytes) = files.iter_mut().find(fits).unwrap_or_else(|| panic!("nothing has {from}"));
    *bytes = String::from_utf8(bytes.clone()).unwrap().replacen(from, to, 1).into_bytes();
    files
}

/// What is not found as one finding of its code.
pub fn not_one(
    cases: &[(&str, &str, &str)],
    files: Project,
    found: impl Fn(&Project) -> String,
) -> Vec<String> {
    let check = |(from, to, code): &(&str, &str, &str)| {
        let found = found(&first(files.clone(), from, to));
        let is_one = found.lines().count() == 1 && found.contains(&format!("error[{code}]"));
        (!is_one).then(|| format!("{from} → {to}:\n{found}"))
    };
    cases.iter().filter_map(check).collect()
}

/// Line and column of a finding.
pub fn place(line: &str) -> &str {
    let at = line.split(' ').next().unwrap_or_default();
    at.split_once(':').map_or(at, |(_, at)| at)
}

/// What is changed in a registry, into what, and the code of what is found.
pub const IN_A_REGISTRY: &[(&str, &str, &str)] = &[
    ("\"next\": { \"target\"", "\"next\": { \"targt\"", "unknown-key"),
    ("\"transitions\"", "\"transition\"", "unknown-key"),
    ("\"structuredGate\"", "\"structureGate\"", "unknown-key"),
    ("\"steps\": {", "\"stpes\": {", "unknown-key"),
    ("[\"next\", \"repeat\"],", "[\"nxt\", \"repeat\"],", "invalid-value"),
    ("[\"next\", \"repeat\"],", "[\"zork\", \"repeat\"],", "invalid-value"),
    ("[\"next\", \"repeat\"],", "7,", "wrong-type"),
    ("\"next\": { \"target\"", "\"nxt\": { \"target\"", "invalid-value"),
    ("\"next\": { \"target\"", "\"zork\": { \"target\"", "invalid-value"),
    (WHOLE, "{ \"condition\": \"approach\", \"targets\": {} }", "invalid-value"),
    (WHOLE, "{ \"target\": \"closure.fix\" }", "wrong-direction"),
    ("\"stepKind\": \"work\"", "\"stepKind\": \"wrok\"", "invalid-value"),
    ("\"entryStep\": \"initial.fix\"", "\"entryStep\": 5", "wrong-type"),
    ("\"c1\": \"steps\"", "\"c1\": \"stesp\"", "missing-prompt"),
    ("{ \"approach\": { \"from\": \"initial.fix.approach\" } }", "[\"approach\"]", "wrong-type"),
    (
        "{ \"next\": { \"target\": \"continuation.fix\" }, \"repeat\": { \"target\": \"initial.fix\" } }",
        "{}",
        "intent-without-transition",
    ),
    ("\"handoffFields\": [\"plan.approach\"]", "\"handoffFields\": \"plan.approach\"", "wrong-type"),
    ("\"default\": \"main\"", "\"default\": 5, \"validation\": { \"enum\": [\"main\"] }", "wrong-type"),
    ("\"schemasBase\": \".agent/fixer/schemas\"", "\"schemasBase\": \"schema\"", "unresolved-schema"),
    ("#/$defs/closure.fix", "#/$defs/closure.fx", "unresolved-schema"),
    ("\"userPromptsBase\": \"", "\"userPromptsBase\": \"../../../../", "escapes-root"),
    (REMEDY, "Commit {uv-changedFiles} for #{uv-issue}.", "unknown-variable"),
    ("\"maxAttempts\": 2", "\"maxAttempts\": 1e400", "invalid-json"),
    ("{uv-approach}", "{uv-aproach}", "unknown-variable"),
    ("\"reason\": { \"type\": \"string\" }", "\"reason\": { \"$ref\": \"#/$defs/x\" }", "unresolved-schema"),
    (C1, "\"c1\": \"steps\", \"pathTemplateNoAdaptation\": \"{c1}/{c2}/f_{edition}.md\",", "missing-prompt"),
    (C1, "\"c1\": \"steps\", \"pathTemplate\": \"{c1}/{c2}/{c3}/{edition}.md\",", "missing-prompt"),
    (ISSUE, "", "unknown-variable"),
    ("\"issue\": {", "\"isue\": {", "unknown-variable"),
    ("\"required\": true, \"cli\"", "\"required\": 7, \"cli\"", "wrong-type"),
    ("\"default\": \"main\"", "\"default\": null", "wrong-type"),
    ("\"c2\": \"continuation\"", "\"c2\": null", "wrong-type"),
    ("\"c2\": \"continuation\"", "\"c2\": \"contination\"", "missing-prompt"),
    (
        "\"outputSchemaRef\": { \"file\": \"fix.json\", \"schema\": \"initial.fix\" }",
        "\"outputSchemaRef\": null",
        "wrong-type",
    ),
    ("\"onFailure\": { \"action\": \"retry\"", "\"onFailure\": { \"action\": null", "wrong-type"),
    ("\"stepKind\": \"closure\"", "\"stepKind\": \"work\"", "intent-not-of-kind"),
    ("[\"closing\", \"repeat\"],", "[\"repeat\"],", "transition-without-intent"),
    ("{ \"validator\": \"git-clean\" }", "{}", "missing-key"),
    ("\"verdict\": { \"type\": \"detect:graph\" }", "\"verdict\": 7", "wrong-type"),
    ("\"failurePattern\": \"git-dirty\",", "\"failurePattern\": null,", "wrong-type"),
    ("\"failFast\": false", "\"failFast\": []", "wrong-type"),
    ("#/properties/next_action/properties/action", "#/properties/next_action", "intent-mismatch"),
];

/// The first part of the paths of all prompts.
/// A failure prompt.
const REMEDY: &str = "{{#if changedFiles}}Commit:{{#each changedFiles}} {{this}}{{/each}}{{else}}Commit for #{uv-issue}.{{/if}}";

const C1: &str = "\"c1\": \"steps\",";

/// A parameter that most prompts read.
const ISSUE: &str = "    \"issue\": { \"type\": \"number\", \"description\": \"The issue\", \"required\": true, \"cli\": \"--issue\" },\n";

/// A transition.
const WHOLE: &str = "{ \"target\": \"continuation.fix\" }";

#[test]
fn in_a_registry() {
    let found = not_one(IN_A_REGISTRY, support::sound(), |files| support::findings(files, support::DIR));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The same of a registry with completions.
pub const IN_A_REGISTRY_THAT_COMPLETES: &[(&str, &str, &str)] = &[
    ("\"next\": { \"target\"", "\"next\": { \"targt\"", "unknown-key"),
    ("\"transitions\"", "\"transition\"", "unknown-key"),
    ("\"structuredGate\"", "\"structureGate\"", "unknown-key"),
    ("\"steps\": {", "\"stpes\": {", "unknown-key"),
    ("\"completionSteps\"", "\"completonSteps\"", "unknown-key"),
    ("\"completionPatterns\"", "\"completionPattern\"", "unknown-key"),
    ("\"validators\": {", "\"validatrs\": {", "unknown-key"),
    ("\"validator\": \"clean\"", "\"validator\": \"claen\"", "unknown-validator"),
    ("\"clean\": {", "\"claen\": {", "unknown-validator"),
    ("\"dirty\": {", "\"drity\": {", "validator-without-pattern"),
    ("\"failurePattern\": \"dirty\"", "\"failurePattern\": \"dity\"", "validator-without-pattern"),
    ("\"adaptation\": \"dirty\"", "\"adaptation\": \"ditry\"", "missing-prompt"),
    ("[\"next\", \"repeat\", \"complete\"]", "[\"nxt\", \"repeat\", \"complete\"]", "invalid-value"),
    ("[\"next\", \"repeat\", \"complete\"]", "[\"next\", \"repeat\"]", "transition-without-intent"),
    ("[\"next\", \"repeat\", \"complete\"]", "[\"repeat\", \"complete\"]", "transition-without-intent"),
    ("[\"next\", \"repeat\", \"complete\"]", "[\"next\", \"complete\"]", "transition-without-intent"),
    ("\"repeat\": { \"target\": \"initial.fix\" },", "", "intent-without-transition"),
    (
        "\"complete\": { \"target\": \"complete.fix\" }",
        "\"complete\": { \"target\": \"complet.fix\" }",
        "unknown-target",
    ),
    ("\"complete.fix\": {\n      \"stepId\"", "\"complete.fx\": {\n      \"stepId\"", "step-id-mismatch"),
    ("\"initial.fix\": {\n      \"stepId\"", "\"initial.fx\": {\n      \"stepId\"", "step-id-mismatch"),
    ("\"entryStep\": \"initial.fix\"", "\"entryStep\": \"intial.fix\"", "unknown-target"),
    ("\"fallbackIntent\": \"next\"", "\"fallbackIntent\": \"nxt\"", "invalid-value"),
    ("\"handoffFields\": [\"approach\"]", "\"handoffFields\": [\"aproach\"]", "handoff-not-in-schema"),
    ("{uv-initial_fix_approach}", "{uv-initial_fix_aproach}", "unknown-variable"),
    ("{uv-issue}", "{uv-isue}", "unknown-variable"),
    ("\"const\": \"complete\"", "\"const\": \"next\"", "intent-mismatch"),
    ("\"intentField\": \"next_action.action\"", "\"intentField\": \"next_action.acton\"", "intent-mismatch"),
    ("\"c2\": \"continuation\"", "\"c2\": \"continuaton\"", "missing-prompt"),
    ("\"c3\": \"fix\"", "\"c3\": \"fx\"", "missing-prompt"),
    ("\"edition\": \"default\"", "\"edition\": \"defalt\"", "missing-prompt"),
    ("\"maxAttempts\": 2", "\"maxAttempts\": \"two\"", "wrong-type"),
    ("\"action\": \"retry\"", "\"action\": \"rety\"", "invalid-value"),
    ("\"successWhen\": \"empty\"", "\"successWhen\": \"emty\"", "invalid-value"),
    ("\"detect:graph\"", "\"detect:grph\"", "invalid-value"),
    ("\"permissionMode\": \"acceptEdits\"", "\"permissionMode\": \"acceptEdit\"", "invalid-value"),
    ("prompts/system.md\"", "prompts/systm.md\"", "missing-prompt"),
    ("\"file\": \"fix.json\"", "\"file\": \"fx.json\"", "unresolved-schema"),
    ("#/definitions/initial.fix", "#/definitions/initial.fx", "unresolved-schema"),
    ("\"initial.fix\": { \"type\"", "\"initial.fx\": { \"type\"", "unresolved-schema"),
    (
        "\"required\": [\"stepId\", \"next_action\", \"approach\"]",
        "\"required\": [\"stepId\", \"next_action\", \"aproach\"]",
        "impossible-schema",
    ),
    ("\"approach\": { \"type\": \"string\" }", "\"aproach\": { \"type\": \"string\" }", "impossible-schema"),
];

#[test]
fn in_a_registry_that_completes() {
    const DIR: &str = ".agent/solver";
    let files = support::project(cuegate_testkit::definitions::COMPLETE);
    let found = not_one(IN_A_REGISTRY_THAT_COMPLETES, files.clone(), |files| support::findings(files, DIR));
    assert!(found.is_empty(), "{}", found.join("\n"));
    let words = [
        ("\"continue\", \"retry\"", "\"contine\", \"retry\"", "lists `contine` at"),
        ("\"continue\", \"retry\"", "\"retry\"", "lists no word for `next`"),
        ("\"next\", \"wait\"", "\"wait\"", "lists no word for `next`"),
    ];
    assert_eq!(not_said(&words, &files, |files| support::findings(files, DIR)), "");
}

/// The same where what is found is one line that says something, of whatever severity.
pub fn not_said(cases: &[(&str, &str, &str)], files: &Project, found: impl Fn(&Project) -> String) -> String {
    let check = |(from, to, says): &(&str, &str, &str)| {
        let found = found(&first(files.clone(), from, to));
        (found.lines().count() != 1 || !found.contains(says)).then(|| format!("{from} → {to}:\n{found}"))
    };
    cases.iter().filter_map(check).collect::<Vec<_>>().join("\n")
}

fn of_registry(cases: &[(&str, &str, &str)]) -> String {
    not_said(cases, &support::sound(), |files| support::findings(files, support::DIR))
}

/// All others call the step as it calls itself.
#[test]
fn the_key_of_a_step() {
    let cases = [
        (
            "    \"continuation.fix\": {\n      \"step",
            "    \"continuation.fx\": {\n      \"step",
            "the step of key `continuation.fx` calls itself",
        ),
        (
            "    \"continuation.fix\": {\n      \"step",
            "    \"zork.zork\": {\n      \"step",
            "the step of key `zork.zork` calls itself",
        ),
        (
            "    \"initial.fix\": {\n      \"step",
            "    \"initial.fx\": {\n      \"step",
            "the step of key `initial.fx` calls itself",
        ),
        (
            "    \"closure.fix\": {\n      \"stepId\": \"closure.fix\", \"name\": \"Close\"",
            "    \"closure.fx\": {\n      \"stepId\": \"closure.fix\", \"name\": \"Close\"",
            "the step of key `closure.fx` calls itself",
        ),
        (
            "    \"closure.fix\": {\n      \"stepId\": \"closure.fix\", \"name\": \"Clean",
            "    \"closure.fx\": {\n      \"stepId\": \"closure.fix\", \"name\": \"Clean",
            "the step of key `closure.fx` calls itself",
        ),
        ("\"stepId\": \"continuation.fix\"", "\"stepId\": \"zork\"", "make"),
    ];
    let cases: Vec<_> = cases
        .map(|(from, to, says)| (from, to, if says == "make" { "calls itself `zork`" } else { says }))
        .into();
    assert_eq!(of_registry(&cases), "");
}

/// A validator takes no notice of keywords that there are not.
#[test]
fn a_keyword_of_a_schema() {
    let cases = [
        ("\"required\": [\"next_action\", \"plan\"]", "\"requred\": [\"next_action\", \"plan\"]", "did you"),
        ("\"approach\": { \"type\"", "\"approach\": { \"tye\"", "did you"),
        ("\"enum\": [\"next\"", "\"enm\": [\"next\"", "did you"),
        (
            "\"properties\": {\n        \"next_action\"",
            "\"propertis\": {\n        \"next_action\"",
            "did you",
        ),
    ];
    let cases: Vec<_> = cases.map(|(from, to, _)| (from, to, "is no keyword of JSON Schema")).into();
    assert_eq!(of_registry(&cases), "");
    // What is like a keyword and has another shape, and names of properties and of schemas, are the author's own.
    for (from, to) in [
        ("\"approach\": { \"type\"", "\"approach\": { \"types\": 7, \"type\""),
        ("\"approach\": { \"type\"", "\"approach\": { \"x-type\": \"string\", \"typ\": \"any\", \"type\""),
        (
            "\"properties\": { \"approach\"",
            "\"properties\": { \"requred\": { \"type\": \"string\" }, \"approach\"",
        ),
        ("\"$defs\": {", "\"item\": { \"type\": \"string\" }, \"$defs\": {"),
        // Whole keywords with further words.
        ("\"approach\": {", "\"approach\": { \"requiredIf\": [\"a\"],"),
        ("\"approach\": {", "\"approach\": { \"requiredWhen\": [\"a\"],"),
        ("\"approach\": {", "\"approach\": { \"isRequired\": [\"a\"],"),
        ("\"approach\": {", "\"approach\": { \"minLengthOf\": 3,"),
    ] {
        let found = support::findings(&first(support::sound(), from, to), support::DIR);
        assert_eq!(found, "", "{to}");
    }
}

/// What would be read instead may be wrong in itself: that is no second finding.
#[test]
fn a_keyword_that_no_value_of_fits() {
    for values in [r#"[{ "type": "string" }]"#, "[1, 2]"] {
        let edited = format!("\"approach\": {{ \"enums\": {values},");
        let found = support::findings(&first(support::sound(), "\"approach\": {", &edited), support::DIR);
        support::says(&found, &["error[unknown-key]: `enums` is no keyword of JSON Schema"]);
    }
}

#[test]
fn what_cannot_be_read() {
    let number = "not a number";
    let cases = [
        ("\"stepKind\": \"work\"", "\"stepKind\": 17", number),
        ("\"stepKind\": \"closure\"", "\"stepKind\": 17", number),
        ("[\"next\", \"repeat\"],", "[17],", number),
        ("\"uvVariables\": [\"issue\", \"baseBranch\"]", "\"uvVariables\": [17]", number),
        ("\"uvVariables\": [\"issue\", \"baseBranch\"]", "\"uvVariables\": [17, \"baseBranch\"]", number),
        ("\"adaptation\": \"git-dirty\"", "\"adaptation\": 17", number),
        ("{ \"validator\": \"git-clean\" }", "{ \"validator\": 17 }", number),
        ("\"changedFiles\": \"parseChangedFiles\"", "\"changedFiles\": 17", number),
    ];
    assert_eq!(of_registry(&cases), "");
}

/// The last name in quotes.
fn last(text: &str) -> &str {
    text.rsplit('"').nth(1).unwrap_or_default()
}

/// What is missing was probably meant by the key that there is not.
#[test]
fn keys_past_recognition() {
    let missing = |key: &'static str| (format!("\"{key}\":"), format!("`{key}` is missing"));
    let said: Vec<(String, String)> = ["allowedIntents", "intentField", "target", "validator", "file"]
        .into_iter()
        .map(missing)
        .chain([
            ("\"stepKind\": \"work\", \"c2\":".to_owned(), "`c2` is missing in a step".to_owned()),
            ("\"onFailure\": { \"action\":".to_owned(), "`action` is missing".to_owned()),
            ("\"transitions\":".to_owned(), "lacks `transitions`".to_owned()),
            ("\"outputSchemaRef\":".to_owned(), "lacks `outputSchemaRef`".to_owned()),
            ("\"failurePattern\":".to_owned(), "names no `failurePattern`".to_owned()),
            ("\"validationConditions\":".to_owned(), "has no conditions".to_owned()),
        ])
        .collect();
    let both: Vec<_> = said
        .iter()
        .map(|(key, says)| (key.as_str(), key.replace(last(key), "xyzzy"), says.as_str()))
        .collect();
    let both: Vec<_> = both.iter().map(|(key, to, says)| (*key, to.as_str(), *says)).collect();
    assert_eq!(of_registry(&both), "");
    // What need not be there may be meant as well.
    let alone = ["inputs", "validators", "validationSteps", "failurePatterns", "entryStep", "extractParams"];
    let keys = alone.map(|key| format!("\"{key}\":"));
    let cases: Vec<_> = keys.iter().map(|key| (key.as_str(), "\"xyzzy\":", "`xyzzy` is no key of")).collect();
    assert_eq!(of_registry(&cases), "");
}

/// What was meant is said of whatever is one of a few words, and of fields that a schema names.
#[test]
fn what_was_meant_is_said() {
    let cases = [
        (
            WHOLE,
            "{ \"condition\": \"initial.fix.approach\", \"targets\": { \"a\": \"continuation.fix\" } }",
            "did you mean `approach`?",
        ),
        ("\"successWhen\": \"empty\"", "\"successWhen\": \"emtpy\"", "did you mean `empty`?"),
        ("\"successWhen\": \"empty\"", "\"successWhen\": \"exit code 1\"", "did you mean `exitCode:1`?"),
        (
            "\"successWhen\": \"empty\"",
            "\"successWhen\": \"exit code 256\"",
            "write `empty`, or `exitCode:0` with the code from 0 to 255 that means success",
        ),
        ("\"c2\": \"continuation\"", "\"c2\": \"contination\"", "did you mean `continuation`?"),
        ("#/$defs/closure.fix", "#/$defs/closure.fx", "did you mean `#/$defs/closure.fix`?"),
        (
            "\"intentField\": \"next_action.action\"",
            "\"intentField\": \"next_action.acton\"",
            "did you mean `next_action.action`?",
        ),
        ("plan.approach", "plan.aproach", "did you mean `plan.approach`? Else add the field to the schema"),
        (
            "\"uvVariables\": [\"approach\"",
            "\"uvVariables\": [\"approch\", \"approach\"",
            "did you mean `approach`?",
        ),
        (
            "\"boundaries\": {",
            "\"permissionMode\": \"plan\", \"boundaries\": {",
            "move it into `runner.boundaries`",
        ),
        ("\"runner\": {", "\"verdict\": {}, \"runner\": {", "move it into `runner`"),
        ("\"adaptation\": \"git-dirty\"", "\"adaptation\": \"git-drity\"", "did you mean `git-dirty`?"),
        ("\"c2\": \"retry\"", "\"c2\": \"rtery\"", "did you mean `retry`?"),
        ("\"c3\": \"context\"", "\"c3\": \"contxet\"", "did you mean `context`?"),
        ("[\"*\"]", "[\"Read \", \"Edit\"]", "did you mean `Read`?"),
        ("{input_text}", "{input_text} {{input_text}}", "did you mean `{input_text}`?"),
    ];
    for (from, to, hint) in cases {
        let loaded = support::load(&first(support::sound(), from, to), support::DIR);
        let hints: Vec<&str> = loaded.diagnostics.iter().filter_map(|found| found.hint.as_deref()).collect();
        assert_eq!(hints, [hint], "{to}");
    }
}

#[test]
fn what_follows_is_not_said() {
    let cases = [
        ("{uv-approach}", "{uv_approach}", "did you mean `{uv-approach}`?"),
        ("{input_text}", "{input-text}", "`{input-text}` stays text"),
        ("[\"repeat\", \"handoff\"],", "[\"repeat\"],", "has a transition for `handoff`"),
        ("\"maxAttempts\": 2", "\"maxAttempts\": 0", "reads its `changedFiles`"),
    ];
    let cases: Vec<_> = cases
        .map(|(from, to, says)| {
            (from, to, if says.starts_with("did") { "`{uv_approach}` stays text" } else { says })
        })
        .into();
    assert_eq!(of_registry(&cases), "");
    let several = edit(
        &support::sound(),
        "\"parseChangedFiles\" }",
        "\"parseChangedFiles\", \"output\": \"stdout\", \"errors\": \"stderr\" }",
    );
    let cases =
        [("\"maxAttempts\": 2", "\"maxAttempts\": 0", "reads its `changedFiles`, `output`, `errors`")];
    assert_eq!(not_said(&cases, &several, |files| support::findings(files, support::DIR)), "");
}

#[test]
fn in_a_check_flow() {
    let next = "{ \"next\": \"s_b2c1de\" }";
    let cases = [
        ("\"onPass\"", "\"onPas\"", "unknown-key"),
        (next, "{ \"complete\": false }", "empty-transition"),
        (next, "{ \"nxt\": \"s_b2c1de\" }", "unknown-key"),
        (next, "{ \"next\": \"s_b2c1ed\" }", "unknown-target"),
        ("\"entryStep\"", "\"entrStep\"", "unknown-key"),
        ("\"check\": {", "\"chek\": {", "unknown-key"),
        ("{ \"result\": \"pass|fail\"", "{ \"reslt\": \"pass|fail\"", "unknown-key"),
    ];
    let found = not_one(&cases, check_flow::sound(), |files| support::findings(files, check_flow::DIR));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// An agent that may write nothing, where several things ask for it.
#[test]
fn an_agent_that_may_write_nothing() {
    let tools = edit(&support::sound(), "[\"*\"]", "[\"Read\", \"Edit\"]");
    let tools = edit(&tools, "\"permissionMode\": \"plan\", \"uvVariables\"", "\"uvVariables\"");
    let cases = [(
        "\"permissionMode\": \"acceptEdits\"",
        "\"permissionMode\": \"plan\"",
        "`permissionMode` is `plan`, so that no step may write; 2 things ask for it",
    )];
    assert_eq!(not_said(&cases, &tools, |files| support::findings(files, support::DIR)), "");
}

#[test]
fn an_empty_prompt_reads_nothing_yet() {
    let files = first(
        support::sound(),
        "Approach: {uv-approach} / {uv-initial_fix_approach}. Last: {uv-previous_summary}",
        "",
    );
    let found = support::findings(&files, support::DIR);
    assert!(found.lines().count() == 1 && found.contains("empty-prompt"), "{found}");
}

#[test]
fn what_is_listed_and_what_is_not_there() {
    let cases = [
        ("[\"issue\", \"baseBranch\"]", "[\"isue\", \"baseBranch\"]", "does not read, and not its `issue`"),
        ("[\"next\", \"repeat\"],", "[],", "allows no intent"),
        ("[\"closing\", \"repeat\"],", "[\"zork\", \"repeat\"],", "`zork` is no intent"),
        ("{ \"validator\": \"git-clean\" }", "{ \"validator\": \"zork\" }", "`zork` is no validator"),
    ];
    assert_eq!(of_registry(&cases), "");
}

/// Schemas that are not there for one reason.
#[test]
fn where_schemas_are() {
    let cases = [("\"$defs\": {", "\"zork\": {", "nor is any of 2 more that are looked for there")];
    assert_eq!(of_registry(&cases), "");
}

/// Where nothing is written, all of it is missing for one reason.
#[test]
fn what_is_empty_lacks_everything_at_once() {
    let whole = |from: &str| {
        let files = support::sound();
        let (_, text) = files.iter().find(|(path, _)| path.ends_with("steps_registry.json")).unwrap();
        let text = String::from_utf8(text.clone()).unwrap();
        let start = text.find(from).unwrap() + from.len();
        let (mut depth, mut end) = (0, start);
        for (at, letter) in text[start..].char_indices() {
            depth += i32::from(letter == '{') - i32::from(letter == '}');
            if depth == 0 {
                end = start + at + 1;
                break;
            }
        }
        text[start..end].to_owned()
    };
    for (key, says) in [
        (
            "\"continuation.fix\": ",
            "lacks `structuredGate`, `transitions`, `outputSchemaRef`; `stepId`, `c2`, `c3` are missing",
        ),
        (
            "\"structuredGate\": ",
            "`allowedIntents`, `intentSchemaRef`, `intentField` are missing in `structuredGate`",
        ),
    ] {
        let value = whole(key);
        let found = support::findings(&first(support::sound(), &value, "{}"), support::DIR);
        assert!(found.lines().count() == 1 && found.contains(says), "{key}\n{found}");
    }
}

/// After a misspelt word everything else is found that is wrong, as if it were not.
#[test]
fn what_else_is_wrong_is_found_beside_it() {
    let found = broken(&[
        ("\"next\": { \"target\": \"continuation.fix\" }", "\"next\": { \"targt\": \"continuation.fx\" }"),
        ("\"stepKind\": \"work\"", "\"stepKind\": \"wrok\""),
    ]);
    for part in ["`targt` is no key", "`continuation.fx`, which is no step", "`wrok` is no `stepKind`"] {
        assert!(found.contains(part), "{part}: {found}");
    }
    assert_eq!(found.lines().count(), 3, "{found}");
}

/// A word is not corrected into one that is there already.
#[test]
fn a_key_beside_the_one_that_was_meant() {
    let found = broken(&[(
        "\"next\": { \"target\": \"continuation.fix\" }",
        "\"next\": { \"target\": \"continuation.fix\", \"targt\": 7 }",
    )]);
    assert_eq!(found.lines().count(), 1, "{found}");
    assert!(found.contains("`targt` is no key of `transitions.next`"), "{found}");
}
