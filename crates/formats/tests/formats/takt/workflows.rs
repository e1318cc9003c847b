//! Workflows of TAKT's current vocabulary: names of files, fragments, parameters and called workflows.

use std::collections::BTreeMap;

use cuegate_flow::model::{Act, Gate, OutcomeReader, Piece, SessionRule, Source, Target, Tools};
use cuegate_formats::{LoadOptions, LoadedDefinition, Phases, TaktOptions, format_of, load_takt_workflow};

use serde_json::json;

use super::takt_support::{ask, prompt, step};
use crate::{
    disk,
    support::{Project, findings_of},
};

pub(super) const FILE: &str = ".takt/workflows/main.yaml";

/// The files, by their paths.
fn files(texts: &[(&str, &str)]) -> Project {
    texts
        .iter()
        .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
        .collect::<BTreeMap<_, _>>()
}

pub(super) fn load(texts: &[(&str, &str)]) -> LoadedDefinition {
    load_takt_workflow(&files(texts), &TaktOptions { file: FILE.to_owned(), ..TaktOptions::default() })
}

fn found(texts: &[(&str, &str)]) -> String {
    findings_of(load(texts))
}

/// A workflow with one step.
pub(super) fn one(step: &str) -> String {
    format!(
        "name: main\nmax_steps: 5\nsteps:\n  - name: work\n    edit: false\n{step}    rules:\n      - condition: done\n        next: COMPLETE\n"
    )
}

#[test]
fn names_mean_files_of_the_project_of_the_user_and_of_takt() {
    let main = one(
        "    persona: coder\n    policy: [own, shared]\n    knowledge: takts\n    instruction: implement\n",
    );
    let mut texts = vec![
        (FILE, main.as_str()),
        (".takt/facets/personas/coder.md", "You code."),
        ("~/.takt/facets/personas/coder.md", "You are not read."),
        (".takt/facets/policies/own.md", "Own policy."),
        ("~/.takt/facets/policies/shared.md", "Shared policy."),
        ("<takt>/en/facets/knowledge/takts.md", "English knowledge."),
        ("<takt>/ja/facets/knowledge/takts.md", "日本語の知識。"),
        (".takt/facets/instructions/implement.md", "Do {task}.\n{{include:instructions/check}}\n"),
        ("<takt>/en/facets/partials/instructions/check.md", "Check {previous_response}.\n"),
    ];
    let loaded = load(&texts);
    let work = ask(&loaded.draft, "work");
    assert_eq!((work.persona.as_deref(), &*work.persona_names), (Some("coder"), &["coder".into()][..]));
    assert!(format!("{:?}", work.system).contains("You code."));
    let text = prompt(&work.prompt);
    for part in ["Own policy.", "Shared policy.", "English knowledge.", "Check "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(findings_of(loaded), "");
    texts.push((".takt/config.yaml", "language: ja\nprovider: claude\n"));
    let missing = found(&texts);
    assert!(missing.contains("the text `instructions/check` to include is not found"), "{missing}");
    texts.push(("<takt>/ja/facets/partials/instructions/check.md", "確認する。\n"));
    assert!(prompt(&ask(&load(&texts).draft, "work").prompt).contains("日本語の知識。"));
}

#[test]
fn a_missing_file_says_where_it_was_looked_for() {
    let main = one("    persona: nobody\n    instruction: Do it.\n");
    let loaded = load(&[(FILE, &main)]);
    let hint = loaded.diagnostics[0].hint.clone().unwrap();
    assert_eq!(loaded.diagnostics[0].message, "`persona` names `nobody`, which is not found");
    for part in [
        "`.takt/facets/personas`",
        "`~/.takt/facets/personas`",
        "installed TAKT",
        "npm install -g takt",
        "--builtins",
    ] {
        assert!(hint.contains(part), "{hint}");
    }
}

/// Japanese has no blanks between words.
#[test]
fn a_text_without_blanks_is_a_text() {
    for text in ["依頼された変更を実装してください。", "\"{task}\"", "|\n      implement"] {
        let main = one(&format!("    persona: あなたはプログラマーです。\n    instruction: {text}\n"));
        let loaded = load(&[(FILE, &main)]);
        assert!(format!("{:?}", ask(&loaded.draft, "work").system).contains("あなたは"));
        assert_eq!(findings_of(loaded), "", "{text}");
    }
    let main = one("    instruction: [first, 二番目の指示。, ./手順.md]\n");
    let texts = [
        (FILE, &*main),
        (".takt/facets/instructions/first.md", "One."),
        (".takt/workflows/手順.md", "Three."),
    ];
    let text = prompt(&ask(&load(&texts).draft, "work").prompt);
    assert!(text.contains("One.\n\n---\n\n二番目の指示。\n\n---\n\nThree."), "{text}");
}

#[test]
fn texts_and_presets_extend_others() {
    let main = one("    instruction: fix\n    policy: short\n    capabilities: mine\n");
    let own = (".takt/facets/instructions/fix.md", "{extends:fix}\n\nAnd ours.\n");
    let texts = [
        (FILE, &*main),
        own,
        ("~/.takt/facets/instructions/fix.md", "Of the user.\n\n{extends: base}\n"),
        ("~/.takt/facets/instructions/base.md", "Of the base."),
        (".takt/facets/policies/short.md", "Be short."),
        (".takt/provider-options/mine.yaml", "extends: [none, readers]\n"),
        (".takt/provider-options/readers.yaml", "claude: { allowed_tools: [Read, Grep] }\n"),
    ];
    let loaded = load(&texts);
    let text = prompt(&ask(&loaded.draft, "work").prompt);
    assert!(text.contains("Of the user.\n\nOf the base.\n\nAnd ours."), "{text}");
    let tools = format!("{:?}", step(&loaded.draft, "work").boundary.tools);
    assert!(tools.contains("Grep") && !tools.contains("Edit"), "{tools}");
    for (file, written, says) in [
        (own.0, "{extends:nothing}", "the text `nothing` to extend is not found"),
        (own.0, "{extends:../other/fix}", "the text `../other/fix` to extend is not found"),
        ("~/.takt/facets/instructions/base.md", "{extends:fix}", "`fix` extends itself"),
        (".takt/provider-options/mine.yaml", "extends: mine", "`extends` names no preset that is there"),
    ] {
        let mut texts = texts.to_vec();
        texts.iter_mut().filter(|(path, _)| *path == file).for_each(|(_, text)| *text = written);
        let found = findings_of(load(&texts));
        assert!(found.contains(says), "{found}");
    }
}

#[test]
fn an_agent_is_told_to_make_no_commits() {
    let told = |key: &str| {
        let loaded = load(&[(
            FILE,
            &one(&format!("    instruction: Do it.\n{key}")).replace("edit: false", "edit: true"),
        )]);
        let text = prompt(&ask(&loaded.draft, "work").prompt);
        assert_eq!(findings_of(loaded), "");
        text.contains("Make no commits")
    };
    assert!(told("    allow_git_commit: false\n"));
    assert!(!told("    allow_git_commit: true\n") && !told(""));
}

#[test]
fn keys_without_effect_are_one_note() {
    let main =
        one("    tags: [review]\n    promotion: [{at: 2}]\n    session: compact\n    instruction: Do it.\n")
            .replace(
                "max_steps: 5\n",
                "max_steps: 5\ninteractive_mode: quiet\nworkflow_config: {provider_options: {}}\n",
            );
    let notes = found(&[(FILE, &main)]);
    assert_eq!(
        notes,
        "main.yaml:3:1 note[unused-key]: `interactive_mode`, `session`, `workflow_config` have no \
         effect here\n"
            .replace("main.yaml", &notes[..notes.find(':').unwrap_or_default()])
    );
}

#[test]
fn capabilities_are_tools_and_the_minimum_is_the_permission() {
    let main = one("    capabilities: [readonly, mine]\n    instruction: Do it.\n");
    let mine = "claude:\n  allowed_tools: [Read]\n";
    let loaded = load(&[(FILE, &main), (".takt/provider-options/mine.yaml", mine)]);
    assert!(
        matches!(&step(&loaded.draft, "work").boundary.tools, Tools::Only(tools) if tools[..] == ["Read".into()])
    );
    let main = one("    required_permission_mode: full\n    instruction: Do it.\n")
        .replace("edit: false", "edit: true");
    let loaded = load(&[(FILE, &main)]);
    assert_eq!(step(&loaded.draft, "work").boundary.permission.as_str(), "bypassPermissions");
}

const FRAGMENT: &str = "params:\n  texts: { type: 'facet_ref[]', facet_kind: policy }\nname: review\nedit: false\npersona: x\npolicy: [first, { $param: texts }]\ninstruction: Review it.\n";

#[test]
fn fragments_are_merged_with_their_callers() {
    let main = "name: main\nmax_steps: 5\npolicies: { first: First policy, a: Policy A, b: Policy B }\npersonas: { x: You are X., y: You are Y. }\n\
        steps:\n  - name: check\n    uses: review\n    with: { texts: [a, b] }\n    persona: y\n    rules: [{ condition: ok, next: all }]\n\
        \x20 - uses: all\n    with: { text: a }\n    rules:\n      self: [{ condition: all(\"good\"), next: COMPLETE }, { condition: any(\"bad\"), next: check }]\n\
        \x20     parallel: { one: [{ condition: good }, { condition: bad }], review: [{ condition: good }, { condition: bad }] }\n";
    let all = "params: { text: { type: facet_ref, facet_kind: policy } }\nname: all\nparallel:\n  - { name: one, edit: false, instruction: Look at it }\n  - { uses: review, with: { texts: { $param: text } } }\n";
    let texts = [(FILE, main), (".takt/steps/review.yaml", FRAGMENT), ("~/.takt/steps/all.yml", all)];
    let loaded = load(&texts);
    let check = ask(&loaded.draft, "check");
    assert_eq!(check.persona.as_deref(), Some("y"));
    let text = prompt(&check.prompt);
    let at: Vec<usize> =
        ["First policy", "Policy A", "Policy B"].iter().map(|part| text.find(part).unwrap()).collect();
    assert!(at.is_sorted(), "{text}");
    let Act::All { members, .. } = &step(&loaded.draft, "all").act else { panic!("it has members") };
    assert_eq!(members.iter().map(|member| &*member.text).collect::<Vec<_>>(), ["one", "review"]);
    assert!(prompt(&ask(&loaded.draft, "review").prompt).contains("Policy A"));
    assert_eq!(findings_of(loaded), "");
    let wrong = |from: &str, to: &str, why: &str| {
        let main = main.replace(from, to);
        let texts = [(FILE, &*main), texts[1], texts[2]];
        let found = found(&texts);
        assert!(found.contains(why) && found.lines().count() <= 2, "{to}: {found}");
    };
    wrong("uses: review", "uses: reviw", "the step fragment `reviw` is not found");
    wrong("with: { texts: [a, b] }", "with: { text: [a, b] }", "has no parameter `text`");
    wrong("with: { text: a }", "with: {}", "the fragment `all` needs the parameter `text`");
    wrong(
        "review: [{ condition: good }",
        "reviewer: [{ condition: good }",
        "no member of the parallel step is called `reviewer`",
    );
}

const CALLER: &str = "name: main\nmax_steps: 9\ninitial_step: build\nsteps:\n\
    \x20 - name: build\n    kind: workflow_call\n    call: build\n    args: { policy: strict }\n    vars: { mode: follow_up }\n    rules:\n      - { condition: COMPLETE, next: check }\n      - { condition: need_plan, next: plan }\n\
    \x20 - name: plan\n    edit: false\n    instruction: Plan it\n    output_contracts: { report: [{ name: plan.md, format: 'Plan it' }] }\n    rules: [{ condition: planned, next: build }]\n\
    \x20 - name: check\n    edit: false\n    instruction: 'Check {report:build/work.md}.'\n    rules: [{ condition: ok, next: COMPLETE }, { condition: no, next: build }]\n";
const CALLED: &str = "name: build\nsubworkflow:\n  callable: true\n  returns: [need_plan]\n  params:\n    policy: { type: facet_ref, facet_kind: policy }\n    next: { type: workflow_ref, default: inner }\n\
    policies: { strict: Be strict. }\nsteps:\n\
    \x20 - name: work\n    edit: true\n    policy: { $param: policy }\n    instruction: 'Mode {var:mode}, other {var:none}. Plan: {report:plan.md}.'\n    output_contracts: { report: [{ name: work.md, format: 'Say it' }] }\n    rules: [{ condition: done, next: deeper }, { condition: unclear, return: need_plan }]\n\
    \x20 - name: deeper\n    kind: workflow_call\n    call: { $param: next }\n    rules: [{ condition: COMPLETE, next: COMPLETE }, { condition: again, next: work }]\n";
const INNER: &str = "name: inner\nsubworkflow: { returns: [again] }\nsteps:\n  - name: look\n    edit: false\n    instruction: 'Mode {var:mode}. Read {report:work.md}.'\n    rules: [{ condition: good, next: COMPLETE }, { condition: bad, return: again }, { condition: stop, next: ABORT }]\n";

fn called() -> Vec<(&'static str, &'static str)> {
    vec![(FILE, CALLER), (".takt/workflows/build.yaml", CALLED), ("<takt>/en/workflows/inner.yaml", INNER)]
}

#[test]
fn called_workflows_are_steps_with_names_of_their_own() {
    let loaded = load(&called());
    let names = loaded.draft.steps.iter().map(|step| &*step.name).filter(|name| !name.contains('@'));
    let names: Vec<&str> = names.collect();
    assert_eq!(names, ["build/work", "build/deeper/look", "plan", "check"]);
    assert_eq!(loaded.draft.entry.as_ref().map(|entry| &*entry.text), Some("build/work"));
    let targets = |name: &str| -> Vec<String> {
        let edges = &step(&loaded.draft, name).edges;
        edges
            .iter()
            .map(|edge| match &edge.to {
                Target::Step(name) => name.text.to_string(),
                Target::End(end) => format!("{end:?}"),
                other => format!("{other:?}"),
            })
            .collect()
    };
    assert_eq!(targets("build/work"), ["build/deeper/look", "plan"]);
    assert_eq!(targets("build/deeper/look"), ["check", "build/work", "Aborted"]);
    assert_eq!(targets("plan"), ["build/work"]);
    let work = prompt(&ask(&loaded.draft, "build/work").prompt);
    assert!(work.contains("Mode follow_up, other unspecified."), "{work}");
    assert!(work.contains("Be strict."), "{work}");
    assert_eq!(ask(&loaded.draft, "build/work").reports[0].name, "build/work.md".into());
    let read = |name: &str| format!("{:?}", ask(&loaded.draft, name).prompt);
    // A name means a report of the same call, else one of a call around it.
    assert!(read("build/deeper/look").contains(r#"Report("build/work.md")"#));
    assert!(read("build/work").contains(r#"Report("plan.md")"#));
    assert_eq!(findings_of(loaded), "");
}

#[test]
fn what_is_wrong_with_a_call_is_one_finding() {
    let wrong = |at: usize, from: &str, to: &str, why: &str| {
        let mut texts = called();
        let changed = texts[at].1.replacen(from, to, 1);
        assert_ne!(changed, texts[at].1, "{from}");
        texts[at].1 = &changed;
        let found = found(&texts);
        let errors = found.lines().filter(|line| line.contains(" error[")).count();
        assert!(found.contains(why) && errors == 1, "{to}: {found}");
    };
    wrong(0, "call: build", "call: biuld", "`build` calls the workflow `biuld`, which is not found");
    wrong(0, "condition: need_plan", "condition: need_plans", "has no rule for the result `need_plan`");
    wrong(0, "args: { policy: strict }", "args: {}", "the called workflow needs the parameter `policy`");
    wrong(
        0,
        "args: { policy: strict }",
        "args: { policy: strict, x: 1 }",
        "the called workflow has no parameter `x`",
    );
    wrong(1, "{ $param: policy }", "{ $param: polcy }", "undefined parameter `polcy`");
    wrong(
        1,
        "default: inner",
        "default: build",
        "workflows call each other in a cycle: main → build → build",
    );
    let mut texts = called();
    let changed = texts[1].1.replace("policies:", "polices:");
    texts[1].1 = &changed;
    let found = found(&texts);
    assert!(found.contains("unknown key `polices` in the workflow") && found.lines().count() == 2, "{found}");
}

#[test]
fn a_called_workflow_of_parallel_agents_can_be_a_member() {
    let main = "name: main\nmax_steps: 5\nsteps:\n  - name: reviews\n    parallel:\n\
        \x20     - { name: base, kind: workflow_call, call: suite, rules: [{ condition: COMPLETE }, { condition: needs_fix }] }\n\
        \x20     - { name: own, edit: false, instruction: Look at it, rules: [{ condition: approved }, { condition: needs_fix }] }\n\
        \x20   rules: [{ condition: any(\"error\"), next: reviews }, { condition: 'all(\"COMPLETE\", \"approved\")', next: COMPLETE }, { condition: any(\"needs_fix\"), next: ABORT }]\n";
    let suite = "name: suite\nsubworkflow: { returns: [needs_fix] }\nsteps:\n  - name: all\n    parallel:\n\
        \x20     fixed: [{ name: a, edit: false, instruction: Do A, rules: [{ condition: approved }, { condition: needs_fix }] }]\n\
        \x20     pool: [{ name: b, description: B., edit: false, instruction: Do B, rules: [{ condition: approved }, { condition: needs_fix }] }]\n\
        \x20   rules: [{ condition: any(\"error\"), next: all }, { condition: all(\"approved\"), next: COMPLETE }, { condition: any(\"needs_fix\"), return: needs_fix }]\n";
    let loaded = load(&[(FILE, main), (".takt/workflows/suite.yaml", suite)]);
    let Act::All { members, .. } = &step(&loaded.draft, "reviews").act else { panic!("it has members") };
    assert_eq!(members.iter().map(|member| &*member.text).collect::<Vec<_>>(), ["base/a", "base/b", "own"]);
    let gate = format!("{:?}", step(&loaded.draft, "reviews").gate);
    assert!(gate.contains("Each([Named(\"approved\"), Named(\"approved\"), Named(\"approved\")])"), "{gate}");
    // The selector of the called workflow is asked before the parallel step of its caller.
    let selects = |name: &str| -> Vec<String> {
        step(&loaded.draft, name).selectors.iter().map(|selector| selector.text.to_string()).collect()
    };
    assert_eq!(selects("reviews"), ["base/all@select"]);
    let selected = Source::Handoff { step: "base/all@select".into(), key: "b".into() };
    assert_eq!(step(&loaded.draft, "base/b").when, Some(selected));
    assert_eq!(step(&loaded.draft, "base/a").when, None);
    assert_eq!(findings_of(loaded), "");
}

const POOLS: &str = "name: main\nmax_steps: 5\nall_steps: { rules: [careful, { ref: first, position: before_instruction }] }\n\
    facet_pools:\n  own: { candidates: [{ id: a, description: For A, policy: 'Policy A' }, { id: b, description: For B, knowledge: ['Knowledge B'] }] }\n  far: { uses: far }\n\
    steps:\n  - name: work\n    edit: true\n    policy: 'Policy A'\n    instruction: Do it.\n    dynamic_facets: { pool: own, max_selected: 1 }\n    rules: [{ condition: done, next: look }]\n\
    \x20 - name: look\n    parallel:\n      fixed: [{ name: x, edit: false, instruction: Do X, rules: [{ condition: good }] }]\n\
    \x20     pool:\n        - { name: y, description: For Y, edit: false, instruction: Do Y, dynamic_facets: { pool: far }, rules: [{ condition: good }] }\n\
    \x20       - { name: z, description: For Z, edit: false, instruction: Do Z, rules: [{ condition: good }] }\n\
    \x20     selection: { mode: cumulative, reports: [work.md], selector: { persona: 'You select.', instruction: Select well. } }\n\
    \x20   rules: [{ condition: all(\"good\"), next: COMPLETE }, { condition: any(\"error\"), next: look }]\n";

fn with_pools(main: &str) -> LoadedDefinition {
    load(&[
        (FILE, main),
        (
            ".takt/facet-pools/far.yaml",
            "policies: { c: ../texts/c.md }\ncandidates: [{ id: c, description: C, policy: c }]\n",
        ),
        (".takt/texts/c.md", "Policy C"),
        (".takt/workflows/rules/careful.md", "Be careful."),
        (".takt/workflows/rules/first.md", "Look first."),
    ])
}

#[test]
fn a_selector_is_asked_which_texts_a_prompt_has() {
    let loaded = with_pools(POOLS);
    let work = ask(&loaded.draft, "work");
    let text = prompt(&work.prompt);
    for part in ["Policy A", "Knowledge B", "# Rules of the workflow\n\nBe careful.", "Look first."] {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
    let is_selected = |piece: &&Piece| matches!(piece, Piece::Filled { source: Source::Handoff { step, key }, .. } if **step == *"work@select" && **key == *"b");
    assert_eq!(
        work.prompt.pieces.iter().filter(is_selected).count(),
        1,
        "the text is there if it is selected"
    );
    assert_eq!(work.session, SessionRule::Renew("work".into()), "with other texts an agent begins anew");
    assert_eq!(step(&loaded.draft, "work").selectors[0].text, "work@select".into());
    let selector = step(&loaded.draft, "work@select");
    assert!(!selector.counts && !selector.boundary.permission.may_write());
    let keys: Vec<_> =
        selector.handoff.iter().map(|handoff| (&*handoff.key, handoff.item.as_deref())).collect();
    assert_eq!(keys, [("a", Some("a")), ("b", Some("b"))]);
    let asked = prompt(&ask(&loaded.draft, "work@select").prompt);
    for part in ["- `a`: For A\n- `b`: For B\n", "Do it.", "At most 1."] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    let schema = loaded.draft.schemas[ask(&loaded.draft, "work@select").schema.unwrap().0 as usize].value();
    let selected = &schema["properties"]["selected_ids"];
    assert_eq!((&selected["items"]["enum"], &selected["maxItems"]), (&json!(["a", "b"]), &json!(1)));
    assert_eq!(findings_of(loaded), "");
}

#[test]
fn a_selector_is_asked_which_members_work() {
    let loaded = with_pools(POOLS);
    let look = step(&loaded.draft, "look");
    assert_eq!(look.selectors[0].text, "look@select".into());
    let of = |name: &str| step(&loaded.draft, name).when.as_ref().map(|source| format!("{source:?}"));
    assert_eq!(of("x"), None);
    assert_eq!(of("y").unwrap(), r#"Handoff { step: "look@select", key: "y" }"#);
    assert_eq!(step(&loaded.draft, "y").selectors[0].text, "y@select".into(), "it has texts to select too");
    let selector = step(&loaded.draft, "look@select");
    assert!(selector.handoff.iter().all(|handoff| handoff.stays), "the selection is cumulative");
    let asking = ask(&loaded.draft, "look@select");
    assert!(format!("{:?}", asking.system).contains("You select."));
    let text = prompt(&asking.prompt);
    for part in ["Select well.", "- work.md\n", "- `y`: For Y\n", "- `z`: For Z\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let Gate::Join { rules, .. } = &look.gate else { panic!("its members are joined") };
    assert_eq!(format!("{:?}", rules[1].pattern), "Any([None])", "a member that failed");
    // Without fixed members the selector has to name at least one member.
    let alone = POOLS
        .replace(
            "fixed: [{ name: x, edit: false, instruction: Do X, rules: [{ condition: good }] }]",
            "fixed: []",
        )
        .replace("mode: cumulative", "mode: replace");
    let loaded = with_pools(&alone);
    let schema = loaded.draft.schemas[ask(&loaded.draft, "look@select").schema.unwrap().0 as usize].value();
    assert_eq!(schema["properties"]["selected_ids"]["minItems"], 1);
    let wrong = POOLS.replace("mode: cumulative", "mode: some, also: 1");
    let found = findings_of(with_pools(&wrong));
    assert!(found.contains("unknown key `also` in the selection") && found.contains("`some`"), "{found}");
    assert_eq!(found.lines().count(), 2, "{found}");
}

#[test]
fn completion_is_judged_a_bounded_number_of_times() {
    let main = one(
        "    persona: 'You work.'\n    instruction: Do it all.\n    review_completion: { retry_instruction: 'Do the rest.', max_retry: 2 }\n    promotion: [{ at: 3, provider: x, model: big }, { at: 2, model: middle }, { at: 5 }]\n",
    );
    let loaded = load(&[(FILE, &main)]);
    let work = step(&loaded.draft, "work");
    assert!(matches!(&work.edges[0].to, Target::Step(to) if *to.text == *"work@complete:1"));
    let judge = step(&loaded.draft, "work@complete:1");
    let edges: Vec<_> = judge
        .edges
        .iter()
        .map(|edge| (edge.on.to_string(), edge.bound.map(|bound| bound.max), edge.remedy.is_some()))
        .collect();
    let edge = |on: &str, max, again| (on.to_owned(), max, again);
    assert_eq!(
        edges,
        [edge("complete", None, false), edge("incomplete", Some(2), true), edge("incomplete", None, false)]
    );
    assert!(prompt(judge.edges[1].remedy.as_ref().unwrap()).contains("Do the rest."));
    assert!(prompt(&ask(&loaded.draft, "work@complete:1").prompt).contains("Do it all."));
    let asking = ask(&loaded.draft, "work");
    let models: Vec<_> = (1..=4).map(|visit| asking.model_of(visit).map(|model| &**model)).collect();
    assert_eq!(models, [None, Some("middle"), Some("big"), Some("big")]);
    // Without a model it is a stage of a ladder in `runtime.yaml`.
    assert_eq!(asking.agent_keys.promoted_at, [5]);
    assert_eq!(asking.agent_keys.written_as, Some(("main".into(), "work".into())));
    assert_eq!(findings_of(loaded), "");
    let wrong = main.replace("max_retry: 2", "max_retrys: 2").replace("at: 2,", "");
    let found = found(&[(FILE, &wrong)]);
    assert!(found.contains("unknown key `max_retrys`") && found.contains("`at` is missing"), "{found}");
}

const TEAM: &str = "name: main\nmax_steps: 5\nsteps:\n  - name: lead\n    persona: 'You lead.'\n    edit: true\n\
    \x20   team_leader: { max_concurrency: 2, initial_max_parts: 1, part_persona: 'You do parts.', part_permission_mode: edit, part_allowed_tools: [Read, Edit], part_tags: [x] }\n\
    \x20   policy: 'Policy A'\n    instruction: Split it.\n    output_contracts: { report: [{ name: lead.md, format: Say it }] }\n\
    \x20   rules: [{ condition: All is done, next: COMPLETE }, { condition: Something is missing, next: ABORT }]\n";

#[test]
fn a_leader_splits_its_work_at_run_time() {
    let loaded = load(&[(FILE, TEAM)]);
    let names: Vec<&str> = loaded.draft.steps.iter().map(|step| &*step.name).collect();
    assert_eq!(names, ["lead", "lead@leader", "lead@part:1", "lead@part:2", "lead@judge", "lead@closing"]);
    let lead = step(&loaded.draft, "lead");
    let Act::All { members, .. } = &lead.act else { panic!("it has parts") };
    assert_eq!(members.len(), 2);
    assert_eq!(lead.selectors[0].text, "lead@leader".into());
    let bounds: Vec<_> = lead
        .edges
        .iter()
        .map(|edge| (edge.on.to_string(), edge.bound.map(|bound| bound.max), edge.again))
        .collect();
    assert_eq!(
        bounds,
        [("work".into(), Some(4), true), ("work".into(), None, false), ("done".into(), None, false)]
    );
    let leader = ask(&loaded.draft, "lead@leader");
    assert!(format!("{:?}", leader.system).contains("You lead."));
    let text = prompt(&leader.prompt);
    for part in ["Split it.", "Policy A", "at most 2 parts", "The first batch has at most 1."] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let part = ask(&loaded.draft, "lead@part:2");
    assert!(format!("{:?}", part.system).contains("You do parts."));
    assert!(
        part.prompt
            .sources()
            .contains(&&Source::Handoff { step: "lead@leader".into(), key: "part_2".into() })
    );
    assert!(prompt(&part.prompt).contains("Policy A") && !prompt(&part.prompt).contains("Split it."));
    let boundary = &step(&loaded.draft, "lead@part:1").boundary;
    assert!(boundary.permission.may_write());
    assert_eq!(boundary.tools, Tools::Only(vec!["Read".into(), "Edit".into()]));
    // The leader only reads. Its last answer has the reports and the outcome.
    assert!(!step(&loaded.draft, "lead@closing").boundary.permission.may_write());
    assert_eq!(ask(&loaded.draft, "lead@closing").reports.len(), 1);
    assert_eq!(part.agent_keys.tags, ["x".into()]);
    let notes = findings_of(loaded);
    assert_eq!(notes, "");
    for (from, to, why) in [
        ("max_concurrency: 2", "max_concurrency: 4", "at most 3 parts at a time"),
        ("part_tags: [x]", "part_tag: [x]", "unknown key `part_tag` in `team_leader`"),
        (
            "    policy:",
            "    quality_gates: [{ type: command, command: test }]\n    policy:",
            "not supported yet",
        ),
    ] {
        let changed = TEAM.replace(from, to);
        let found = found(&[(FILE, &changed)]);
        assert!(found.contains(why) && found.matches(" error[").count() == 1, "{to}: {found}");
    }
}

#[test]
fn monitors_watch_called_workflows_and_ignore_steps() {
    let main = CALLER.replace(
        "steps:\n",
        "loop_monitors: [{ cycle: [build, plan], ignore_steps: [check], threshold: 2, judge: { rules: [{ condition: stuck, next: ABORT }] } }]\nsteps:\n",
    );
    let mut texts = called();
    texts[0].1 = &main;
    let loaded = load(&texts);
    let monitor = &loaded.draft.monitors[0];
    let names = |stage: &[cuegate_flow::model::Name]| -> Vec<String> {
        stage.iter().map(|name| name.text.to_string()).collect()
    };
    assert_eq!(names(&monitor.cycle[0]), ["build/work", "build/deeper/look"]);
    assert_eq!(names(&monitor.cycle[1]), ["plan"]);
    assert_eq!(names(&monitor.ignored), ["check"]);
    assert_eq!(&*monitor.name, "monitor:build+plan");
    assert_eq!(findings_of(loaded), "");
}

#[test]
fn no_key_beside_a_step_is_passed_over() {
    let called =
        CALLER.replace("kind: workflow_call\n", "kind: workflow_call\n    agrs: {}\n    '@scope': 7\n");
    assert_ne!(called, CALLER);
    let mut texts = self::called();
    texts[0].1 = &called;
    let found_in_call = found(&texts);
    for key in ["agrs", "@scope"] {
        assert!(found_in_call.contains(&format!("unknown key `{key}` in the step `")), "{found_in_call}");
    }
    let of_a_step = |keys: &str, why: &str| {
        let found = found(&[(FILE, &one(keys))]);
        assert!(found.contains(why), "{keys}: {found}");
        assert_eq!(found.matches(" error[").count(), 1, "{keys}: {found}");
    };
    let step = "    instruction: Do it.\n";
    for key in ["@scope", "@team", "@selections", "@candidate", "@texts"] {
        of_a_step(&format!("{step}    '{key}': 0\n"), &format!("unknown key `{key}`"));
    }
    of_a_step("    call: other\n", "unknown key `call` in a step that calls no workflow");
    for tools in ["3", "Read", "[Read, 3]"] {
        let keys = format!("{step}    provider_options: {{ claude: {{ allowed_tools: {tools} }} }}\n");
        of_a_step(&keys, "`allowed_tools` must be a list of texts");
    }
    let both = "name: main\nmax_steps: 5\nsteps:\n  - name: work\n    edit: true\n    instruction: Do it.\n    rules:\n      \
        - { condition: done, next: COMPLETE, quality_gates: false, command_gates: skip }\n";
    assert_eq!(found(&[(FILE, both)]), "");
}

#[test]
fn a_system_step_has_no_answer_to_decide_by() {
    let with = |step: &str| {
        let text = format!(
            "name: main\nmax_steps: 5\nsteps:\n  - name: look\n    mode: system\n    system_inputs: [{{ type: task_context, source: \
             current_task, as: task }}]\n{step}  - {{ name: end, mode: system, rules: [{{ condition: when(true), next: COMPLETE }}] }}\n"
        );
        found(&[(FILE, &text)])
    };
    let otherwise = "      - { condition: when(true), next: end }\n";
    for rule in ["broken", "ai(\"it is Monday\")", "approved && when(context.look.task.exists)"] {
        let found = with(&format!("    rules:\n      - {{ condition: '{rule}', next: ABORT }}\n{otherwise}"));
        let expected =
            format!("error[invalid-condition]: `{rule}` needs an answer, and a system step asks nobody");
        assert!(found.contains(&expected), "{found}");
    }
    let rules = format!("    rules:\n{otherwise}");
    assert_eq!(with(&rules), "");
    assert_eq!(
        with(
            "    rules: [{ condition: when(context.look.task.exists), next: end }, { when: true, next: ABORT }]\n"
        ),
        ""
    );
    for (field, said) in
        [("task.body.length > 3", "`body` has no `length`"), ("task.bdy == null", "`task` has no `bdy`")]
    {
        let found = with(&format!(
            "    rules: [{{ condition: 'when(context.look.{field})', next: end }}, {{ when: true, next: ABORT }}]\n"
        ));
        assert!(found.contains(said), "{found}");
    }
    // A mistyped `mode` does not make it a step that asks an agent.
    let mistyped =
        one("    instruction: Do it.\n").replace("    edit: false\n", "    edit: false\n    mode: sytem\n");
    let said = found(&[(FILE, &mistyped)]);
    assert!(said.contains("error[invalid-value]: `sytem` is no `mode` of a step"), "{said}");
    let member = "name: main\nmax_steps: 5\nsteps:\n  - name: all\n    parallel:\n      - { name: a, mode: system, rules: [{ condition: x }] }\n      \
                  - { name: b, edit: false, instruction: Do it., rules: [{ condition: x }] }\n    rules: [{ condition: all(\"x\"), next: \
                  COMPLETE }, { condition: any(\"x\"), next: ABORT }]\n";
    let said = found(&[(FILE, member)]);
    assert!(said.contains("a member of a parallel step cannot be a system step"), "{said}");
}

#[test]
fn a_step_for_each_row_is_refused() {
    let main = "name: main\nmax_steps: 5\nsteps:\n\
        \x20 - name: rows\n    arpeggio: { source: csv }\n    rules: [{ condition: done, next: COMPLETE }]\n";
    let found = found(&[(FILE, main)]);
    assert_eq!(found.lines().count(), 1, "{found}");
    assert!(found.contains("`arpeggio`, a step for each row of a file, is not supported yet"), "{found}");
}

const SCHEMA: &str = r##"{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
    "properties": {"action": {"$ref": "#/$defs/action"}, "urgent": {"type": "boolean"}, "note": {"type": "string"}},
    "required": ["action", "note"], "additionalProperties": false,
    "$defs": {"action": {"type": "string", "enum": ["enqueue", "retry", "wait", "reject"]}}}"##;

/// A workflow that routes by data, with these rules.
fn routed(rules: &str) -> String {
    format!(
        "name: main\nmax_steps: 5\nschemas: {{ next: next-task }}\nsteps:\n  - name: plan\n    edit: false\n    instruction: Plan it.\n    \
         structured_output: {{ schema_ref: next }}\n    rules:\n{rules}\
         \x20 - name: work\n    edit: true\n    instruction: Do {{structured:plan.note}}\n    rules: [{{ condition: done, next: COMPLETE }}]\n"
    )
}

#[test]
fn data_of_an_answer_decide_and_are_handed_on() {
    let main = routed(
        "      - { condition: 'when(structured.plan.action == \"enqueue\" || structured.plan.action == \"retry\")', next: work }\n\
        \x20     - { condition: 'when(structured.plan.urgent == true)', next: work }\n\
        \x20     - { condition: when(true), next: COMPLETE }\n",
    );
    for phases in [Phases::Fused, Phases::Separate] {
        let texts = files(&[(FILE, &main), (".takt/schemas/next-task.json", SCHEMA)]);
        let options = TaktOptions { file: FILE.to_owned(), phases, ..TaktOptions::default() };
        let loaded = load_takt_workflow(&texts, &options);
        let plan = step(&loaded.draft, "plan");
        let Gate::Readers(readers) = &plan.gate else { panic!("{:?}", plan.gate) };
        let words: Vec<String> = readers
            .iter()
            .map(|reader| match reader {
                OutcomeReader::Field { path, words, .. } => {
                    let words: Vec<String> = words.iter().map(|(word, to)| format!("{word}→{to}")).collect();
                    format!("{path}: {}", words.join(", "))
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            words,
            [
                "structured.action: enqueue→action = enqueue or retry, retry→action = enqueue or retry, wait→none, \
                 reject→none",
                "structured.urgent: true→urgent = true, false→otherwise",
            ]
        );
        assert_eq!((&*plan.handoff[0].key, &*plan.handoff[0].path.to_string()), ("note", "structured.note"));
        let schema = loaded.draft.schemas[ask(&loaded.draft, "plan").schema.unwrap().0 as usize].clone();
        let fits = |data: serde_json::Value| {
            schema.problems(&serde_json::json!({"response": "r", "structured": data})).is_empty()
        };
        assert!(fits(serde_json::json!({"action": "wait", "urgent": false, "note": "n"})));
        assert!(!fits(serde_json::json!({"action": "wait", "note": "n"})), "a rule reads `urgent`");
        assert!(!fits(serde_json::json!({"action": "other", "urgent": false, "note": "n"})));
        let found = findings_of(loaded);
        assert!(!found.contains("error["), "{found}");
    }
}

#[test]
fn data_that_cannot_decide_are_found() {
    let rule = |condition: &str| routed(&format!("      - {{ condition: '{condition}', next: work }}\n"));
    for (condition, message) in [
        ("when(context.plan.x == true)", "`plan` is no step with `system_inputs`"),
        ("when(structured.work.x == true)", "`work` is no step with `structured_output`"),
        ("when(structured.plan.nite != \"a\")", "its `structured_output` has no `nite`"),
        ("when(structured.plan.note.x != 1)", "`note` has no `x`"),
        ("when(structured.plan.nite == \"a\")", "`nite`"),
        ("when(structured.plan.note != a)", "`a` is neither a quoted text"),
        ("when(effect.plan.x.success)", "`plan` is no step with `effects`"),
    ] {
        let found = found(&[(FILE, &rule(condition)), (".takt/schemas/next-task.json", SCHEMA)]);
        assert!(found.contains(message) && found.matches(" error[").count() == 1, "{condition}: {found}");
    }
    let decided = rule("when(structured.plan.action == \"wait\")");
    let missing = found(&[(FILE, &decided)]);
    assert!(missing.contains("the schema file `next-task.json` is not found"), "{missing}");
    for (schema, message) in [
        ("[]", "holds no JSON Schema"),
        (r##"{"type": 7}"##, "is not a valid JSON Schema"),
        (r##"{"properties": {"action": {"$ref": "#/$defs/x"}}}"##, "cannot be resolved"),
    ] {
        let found = found(&[(FILE, &decided), (".takt/schemas/next-task.json", schema)]);
        assert!(found.contains(message), "{schema}: {found}");
    }
    let without = decided.replace("    structured_output: { schema_ref: next }\n", "");
    let unread = found(&[(FILE, &without)]);
    assert!(unread.contains("`plan` is no step with `structured_output`"), "{unread}");
    // The rule that holds otherwise needs no finding of its own.
    let of_state = routed(
        "      - { condition: 'when(context.a.b == true)', next: work }\n      - { condition: when(true), next: COMPLETE }\n",
    );
    let of_state = of_state
        .replace("    structured_output: { schema_ref: next }\n", "")
        .replace("{structured:plan.note}", "it");
    let one = found(&[(FILE, &of_state)]);
    assert_eq!(one.matches(" error[").count(), 1, "{one}");
}

#[test]
fn other_programs_are_named() {
    for (text, program) in [
        ("name: a\nnodes:\n  - { id: a, prompt: Do it, depends_on: [] }\n", "Archon"),
        ("workflow: { name: a, entry_point: a }\nagents:\n  - { name: a, prompt: Do it }\n", "Conductor"),
        ("kind: WavePipeline\nmetadata: { name: a }\nsteps:\n  - { id: a, persona: b }\n", "Wave"),
        (
            "schema_version: '1.0'\nworkflow: { id: a }\nsteps:\n  - { id: a, command: speckit.plan }\n",
            "Spec Kit",
        ),
    ] {
        let found = found(&[(FILE, text)]);
        assert_eq!(found.lines().count(), 1, "{found}");
        assert!(found.contains(&format!("this is a workflow of {program}, whose format")), "{found}");
    }
    let dot = files(&[("a.dot", "digraph A { a -> b; }")]);
    let options = LoadOptions { file: Some("a.dot".to_owned()), ..LoadOptions::default() };
    let found = findings_of(format_of(Some("a.dot")).load(&dot, &options));
    assert!(
        found.contains("this is a workflow of Attractor or Fabro") && found.lines().count() == 1,
        "{found}"
    );
}

/// TAKT's own workflows, where they are at hand.
#[test]
fn takts_own_workflows_load() {
    for (corpus, kind, least) in [("takt-current", "workflows", 52), ("takt-march", "pieces", 38)] {
        let Some(root) = disk::shared(&format!("corpora/{corpus}/builtins/en")) else { continue };
        let files = disk::files_below(&root);
        let names = files.keys().filter(|path| {
            let inside = path.strip_prefix(kind).and_then(|rest| rest.strip_prefix('/'));
            inside.is_some_and(|name| name.ends_with(".yaml") && !name.contains('/'))
        });
        // Those that only others call cannot be started.
        let is_internal =
            |path: &String| String::from_utf8_lossy(&files[path]).contains("visibility: internal");
        let (mut loaded, mut refused) = (0, Vec::new());
        for path in names.filter(|path| !is_internal(path)) {
            let options = TaktOptions { file: path.clone(), ..TaktOptions::default() };
            let found = findings_of(load_takt_workflow(&files, &options));
            match found.contains(" error[") {
                true => refused.push(path.clone()),
                false => loaded += 1,
            }
        }
        assert!(loaded >= least, "{corpus}: {loaded}");
        // It consists of steps that TAKT itself executes.
        assert!(
            refused.is_empty() || refused == ["workflows/auto-improvement-loop.yaml"],
            "{corpus}: {refused:?}"
        );
    }
}

#[test]
fn a_bounded_number_of_parts_bounds_the_batches() {
    let batches = |total: u32| {
        let main = TEAM.replace("initial_max_parts: 1", &format!("max_total_parts: {total}"));
        let loaded = load(&[(FILE, &main)]);
        let lead = step(&loaded.draft, "lead").clone();
        let again = lead.edges.iter().find(|edge| edge.again).and_then(|edge| edge.bound);
        let Act::All { members, .. } = lead.act else { panic!("it has parts") };
        (members.len(), again.map(|bound| bound.max))
    };
    assert_eq!((batches(1), batches(2), batches(5)), ((1, None), (2, None), (2, Some(1))));
    let found = found(&[(
        FILE,
        &TEAM
            .replace("instruction: Split it.", "instruction: Split it.\n    dynamic_facets: { pool: own }")
            .replace(
                "\nsteps:",
                "\nfacet_pools: { own: { candidates: [{ id: a, description: A, policy: Be it }] } }\nsteps:",
            ),
    )]);
    assert!(found.contains("`dynamic_facets` of a `team_leader` is not supported yet"), "{found}");
}

#[test]
fn pools_are_checked() {
    for (old, new, expected) in [
        ("selection:", "selektion:", "unknown key `selektion` in `parallel`"),
        ("candidates: [", "candidates: [], x: [", "the pool `own` has no candidates"),
    ] {
        let main = POOLS.replace(old, new);
        assert_ne!(main, POOLS);
        let found = findings_of(with_pools(&main));
        assert!(found.contains(expected), "{found}");
    }
    let both = "name: main\nmax_steps: 9\nloop_monitors: [{ cycle: [a, b], ignore_steps: [b], judge: { instruction: Stuck, policy: x, rules: [{ condition: stuck, next: ABORT }] } }]\nsteps:\n\
        \x20 - { name: a, edit: false, instruction: A., rules: [{ condition: on, next: b }] }\n\
        \x20 - { name: b, edit: false, instruction: B., rules: [{ condition: again, next: a }, { condition: done, next: COMPLETE }] }\n";
    let found = found(&[(FILE, both)]);
    assert!(found.contains("`ignore_steps` names `b`, a step of the cycle"), "{found}");
    assert!(found.contains("`policy` has no effect"), "{found}");
}

#[test]
fn the_agent_of_a_step_is_its_own_or_that_of_the_workflow() {
    let main = one("    tags: [review, ' deep ', '']\n    provider: codex\n    instruction: Do it.\n");
    let read = |main: &str| {
        let loaded = load(&[(FILE, main)]);
        let ask = ask(&loaded.draft, "work");
        (ask.agent_keys.agent.clone(), ask.agent_keys.tags.clone(), ask.model.clone())
    };
    let tags = vec!["review".into(), "deep".into()];
    assert_eq!(read(&main), (Some("codex".into()), tags.clone(), None));
    let of_workflow = "max_steps: 5\nprovider: claude\nmodel: opus\n";
    let both = main.replace("max_steps: 5\n", of_workflow);
    assert_eq!(read(&both), (Some("codex".into()), tags.clone(), Some("opus".into())));
    let whole = both.replace("    provider: codex\n", "");
    assert_eq!(read(&whole), (Some("claude".into()), tags, Some("opus".into())));
    let wrong = found(&[(FILE, &main.replace("[review, ' deep ', '']", "review"))]);
    assert!(wrong.contains("`tags` must be a list of texts"), "{wrong}");
}
