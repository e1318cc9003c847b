//! What agents select while a run goes on: members, texts of prompts, and the parts of a leader's work.

use serde_json::{Value, json};

use crate::support::{Project, visits};

const POOLS: &str = "name: main\nmax_steps: 9\nfacet_pools: { own: { candidates: [{ id: web, description: Browsers, policy: Beware of the web }, { id: cli, description: Terminals, knowledge: Terminals beep }] } }\nsteps:\n\
    \x20 - { name: work, edit: false, instruction: Work., dynamic_facets: { pool: own }, rules: [{ condition: done, next: look }] }\n\
    \x20 - name: look\n    parallel:\n      fixed: [{ name: x, edit: false, instruction: Look as X., rules: [{ condition: good }, { condition: bad }] }]\n\
    \x20     pool: [{ name: y, description: Colours, edit: false, instruction: Look as Y., rules: [{ condition: good }, { condition: bad }] }, { name: z, description: Shapes, edit: false, instruction: Look as Z., rules: [{ condition: good }, { condition: bad }] }]\n\
    \x20     selection: { mode: cumulative }\n\
    \x20   rules: [{ condition: any(\"error\"), next: look }, { condition: all(\"good\"), next: COMPLETE }, { condition: any(\"bad\"), next: work }]\n";

fn project(main: &str) -> Project {
    let project = Project::empty();
    project.write(".takt/workflows/main.yaml", main);
    project.write(".gitignore", "/script*\n");
    project.init();
    project
}

fn says(step: &str, outcome: &str) -> Value {
    json!({"step": step, "output": {"outcome": outcome, "response": format!("{step} said it.")}})
}

fn selects(step: &str, ids: &[&str]) -> Value {
    json!({"step": step, "output": {"selected_ids": ids, "rationale": "So it is."}})
}

fn ran(project: &Project, answers: &[Value], more: &[&str]) -> (i32, Value) {
    project.script("script.json", &Value::Array(answers.to_vec()));
    let args = [&["run", "main", "Paint it", "--script", "script.json", "--json"], more].concat();
    let ran = project.run(&args);
    assert_ne!(ran.code, 2, "{}", ran.stderr);
    (ran.code, project.status())
}

fn asked(project: &Project) -> Vec<String> {
    project.events("answered").iter().map(|event| event["step"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn only_selected_members_work_and_only_selected_texts_are_read() {
    let project = project(POOLS);
    let (code, status) = ran(
        &project,
        &[
            selects("work@select", &["web", "unknown"]),
            selects("work@select", &["web"]),
            says("work", "done"),
            selects("look@select", &["z"]),
            says("x", "bad"),
            says("z", "good"),
            selects("work@select", &[]),
            says("work", "done"),
            // What was selected once stays, though this answer leaves it out.
            selects("look@select", &[]),
            says("x", "good"),
            says("z", "good"),
        ],
        &[],
    );
    assert_eq!(code, 0, "{status:#}");
    let rows: Vec<String> = visits(&status)
        .iter()
        .map(|row| format!("{} {}", row["step"].as_str().unwrap(), row["visit"]))
        .collect();
    assert_eq!(rows, ["work 1", "x 1", "z 1", "look 1", "work 2", "x 2", "z 2", "look 2"], "{status:#}");
    assert_eq!(
        asked(&project),
        [
            "work@select",
            "work@select",
            "work",
            "look@select",
            "x",
            "z",
            "work@select",
            "work",
            "look@select",
            "x",
            "z"
        ]
    );
    let prompts = project.prompts();
    assert!(prompts[0].contains("- `web`: Browsers\n- `cli`: Terminals\n"), "{}", prompts[0]);
    assert!(prompts[0].contains("Work."), "the selector knows what the agent is told");
    assert!(
        prompts[1].contains("\"unknown\" is not one of"),
        "an unknown candidate is asked for again: {}",
        prompts[1]
    );
    assert!(
        prompts[2].contains("Beware of the web") && !prompts[2].contains("Terminals beep"),
        "{}",
        prompts[2]
    );
    assert!(!prompts[7].contains("Beware of the web"), "a selection of texts replaces the one before");
    assert!(
        prompts[8].contains("- `z`: Shapes\n  It was selected before, and stays selected."),
        "{}",
        prompts[8]
    );
    let skipped: Vec<Value> =
        project.events("member_skipped").iter().map(|event| event["step"].clone()).collect();
    assert_eq!(skipped, [json!("y"), json!("y")]);
    let log = project.run(&["log"]).stdout;
    assert!(log.contains(" y ") && log.contains("skipped"), "{log}");
    let priced = project.run(&["price", "main", "--json"]).json();
    // At most one visit of `work` and eight of `look` with all members, each with its selector, and a judge for each answer.
    let kinds = &priced["max"]["asks_by_kind"];
    assert_eq!((&kinds["work"], &kinds["judge"]), (&json!(1 + 8 * 3), &json!(1 + 8 + 25)), "{priced:#}");
}

#[test]
fn a_member_that_fails_is_an_outcome() {
    let project = project(POOLS);
    let broken = json!({"step": "x", "output": {"outcome": "maybe", "response": "Hm."}});
    let answers = [
        selects("work@select", &[]),
        says("work", "done"),
        selects("look@select", &["y"]),
        broken,
        says("y", "good"),
        selects("look@select", &["y"]),
        says("x", "good"),
        says("y", "good"),
    ];
    let (code, status) = ran(&project, &answers, &["--repairs", "0"]);
    assert_eq!(code, 0, "{status:#}");
    let decided: Vec<Value> =
        project.events("decided").iter().map(|event| event["outcome"].clone()).collect();
    assert_eq!(decided, [json!("done"), json!("any(\"error\")"), json!("all(\"good\")")]);
}

#[test]
fn nobody_may_be_left_to_work() {
    let main = POOLS.replace("fixed: [{ name: x, edit: false, instruction: Look as X., rules: [{ condition: good }, { condition: bad }] }]", "fixed: []");
    let project = project(&main);
    let answers = [
        selects("work@select", &[]),
        says("work", "done"),
        selects("look@select", &[]),
        selects("look@select", &["y"]),
        says("y", "good"),
    ];
    let (code, status) = ran(&project, &answers, &[]);
    assert_eq!(code, 0, "{status:#}");
    let repair = &project.prompts()[3];
    assert!(repair.contains("could not be used"), "{repair}");
}

const TEAM: &str = "name: main\nmax_steps: 9\nsteps:\n\
    \x20 - name: lead\n    team_leader: { max_concurrency: 2, part_edit: true }\n    instruction: Split it.\n    output_contracts: { report: [{ name: lead.md, format: Say it }] }\n\
    \x20   rules: [{ condition: all done, next: COMPLETE }, { condition: stuck, next: ABORT }]\n";

fn leads(decision: &str, parts: &[&str]) -> Value {
    json!({"step": "lead@leader", "output": {"decision": decision, "parts": parts}})
}

fn part(number: u32) -> Value {
    json!({"step": format!("lead@part:{number}"), "output": {"response": format!("Part {number} is done.")}})
}

fn closing() -> Value {
    let output = json!({"outcome": "all done", "response": "It is whole.", "reports": {"lead.md": "# All"}});
    json!({"step": "lead@closing", "output": output})
}

#[test]
fn a_leader_splits_its_work_into_batches() {
    let project = project(TEAM);
    let answers = [
        leads("work", &["Paint the door", "Paint {task}"]),
        part(1),
        part(2),
        leads("work", &["Paint the wall"]),
        part(1),
        leads("done", &[]),
        closing(),
    ];
    let (code, status) = ran(&project, &answers, &[]);
    assert_eq!(code, 0, "{status:#}");
    let expected = [
        "lead@leader",
        "lead@part:1",
        "lead@part:2",
        "lead@leader",
        "lead@part:1",
        "lead@leader",
        "lead@closing",
    ];
    assert_eq!(asked(&project), expected);
    let prompts = project.prompts();
    assert!(
        prompts[2].contains(">Paint {task}<") && !prompts[2].contains("Paint the door"),
        "{}",
        prompts[2]
    );
    assert!(
        prompts[3].contains("Part 1 is done.") && prompts[3].contains("Part 2 is done."),
        "{}",
        prompts[3]
    );
    assert!(prompts[4].contains(">Paint the wall<"), "{}", prompts[4]);
    let closing = &prompts[6];
    assert!(
        closing.contains("Do none of that work yourself") && closing.contains("Part 1 is done."),
        "{closing}"
    );
    assert!(!closing.contains("Part 2 is done."), "{closing}");
    assert_eq!(status["reports"][0]["name"], "lead.md");
    assert_eq!(status["state"], "completed");
}

#[test]
fn a_leader_that_never_ends_has_a_bounded_number_of_batches() {
    let project = project(TEAM);
    let mut answers = Vec::new();
    for _ in 0..6 {
        answers.push(leads("work", &["More"]));
        answers.push(part(1));
    }
    answers.truncate(10);
    answers.extend([leads("work", &["Still more"]), closing()]);
    let (code, status) = ran(&project, &answers, &[]);
    assert_eq!(code, 0, "{status:#}");
    let batches = asked(&project).iter().filter(|step| *step == "lead@part:1").count();
    assert_eq!(batches, 5);
}

#[test]
fn a_selection_outlives_an_interruption() {
    let project = project(TEAM);
    let answers = [leads("work", &["One", "Two"]), part(1)];
    let (code, status) = ran(&project, &answers, &[]);
    assert_eq!(code, 4, "{status:#}");
    project.script("more.json", &json!([part(2), leads("done", &[]), closing()]));
    let resumed = project.run(&["resume", "--script", "more.json", "--json"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let count = |name: &str| asked(&project).iter().filter(|step| *step == name).count();
    assert_eq!((count("lead@leader"), count("lead@part:1"), count("lead@part:2")), (2, 1, 1));
}

#[test]
fn a_monitor_watches_called_workflows_and_ignores_steps() {
    let main = "name: main\nmax_steps: 20\nloop_monitors: [{ cycle: [build, look], ignore_steps: [think], threshold: 2, judge: { instruction: Is it stuck, rules: [{ condition: stuck, next: ABORT }, { condition: fine, next: build }] } }]\nsteps:\n\
        \x20 - { name: build, kind: workflow_call, call: build, rules: [{ condition: COMPLETE, next: think }] }\n\
        \x20 - { name: think, edit: false, instruction: Think., rules: [{ condition: thought, next: look }] }\n\
        \x20 - { name: look, edit: false, instruction: Look., rules: [{ condition: bad, next: build }, { condition: good, next: COMPLETE }] }\n";
    let build = "name: build\nsubworkflow: { callable: true }\nsteps:\n\
        \x20 - { name: a, edit: false, instruction: A., rules: [{ condition: on, next: b }] }\n\
        \x20 - { name: b, edit: false, instruction: B., rules: [{ condition: again, next: a }, { condition: done, next: COMPLETE }] }\n";
    let project = Project::empty();
    project.write(".takt/workflows/main.yaml", main);
    project.write(".takt/workflows/build.yaml", build);
    project.write(".gitignore", "/script*\n");
    project.init();
    let round = [says("build/b", "done"), says("think", "thought"), says("look", "bad")];
    let mut answers = vec![says("build/a", "on"), says("build/b", "again"), says("build/a", "on")];
    answers.extend(round.clone());
    answers.push(says("build/a", "on"));
    answers.extend(round);
    answers.push(json!({"step": "monitor:build+look", "output": {"outcome": "stuck", "reason": "It is."}}));
    let (code, status) = ran(&project, &answers, &[]);
    assert_eq!((code, &status["state"]), (1, &json!("aborted")), "{status:#}");
    assert_eq!(project.events("monitor_fired").len(), 1);
}

#[test]
fn what_a_judge_finds_missing_is_done_a_bounded_number_of_times() {
    let main = "name: main\nmax_steps: 9\nsteps:\n\
        \x20 - { name: work, edit: false, instruction: Do it all., completion_retry: { retry_instruction: Do the rest., max_retry: 1 }, promotion: [{ at: 2, model: big }], rules: [{ condition: done, next: look }] }\n\
        \x20 - { name: look, edit: false, instruction: Look., rules: [{ condition: good, next: COMPLETE }] }\n";
    let project = project(main);
    let judged = |result: &str, missing: &str| json!({"step": "work@complete:1", "output": {"result": result, "missing": missing}});
    let answers = [
        says("work", "done"),
        judged("incomplete", "the back of it"),
        says("work", "done"),
        judged("incomplete", "still the back"),
        says("look", "good"),
    ];
    let (code, status) = ran(&project, &answers, &[]);
    assert_eq!(code, 0, "{status:#}");
    assert_eq!(asked(&project), ["work", "work@complete:1", "work", "work@complete:1", "look"]);
    let prompts = project.prompts();
    assert!(prompts[1].contains("Do it all.") && prompts[1].contains("work said it."), "{}", prompts[1]);
    let retry = &prompts[2];
    assert!(
        retry.contains(">the back of it<") && retry.contains("Do the rest.") && retry.contains("Do it all."),
        "{retry}"
    );
    // The judge of the second round is asked what it is there for, not what the agent was told to mend.
    let again = &prompts[3];
    assert!(
        again.contains("Decide whether the work below is complete") && !again.contains("Do the rest."),
        "{again}"
    );
    let complete = [says("work", "done"), judged("complete", ""), says("look", "good")];
    let (code, _) = ran(&project, &complete, &[]);
    assert_eq!((code, asked(&project).len()), (0, 3));
}

#[test]
fn simulated_agents_select_all_that_can_be_covered() {
    for main in [POOLS, TEAM] {
        let simulated = project(main).run(&["simulate", "main", "--min-coverage", "100", "--time", "60"]);
        assert_eq!(simulated.code, 0, "{}{}", simulated.stdout, simulated.stderr);
    }
}

#[test]
fn a_selector_that_cannot_proceed_is_told_the_answer() {
    let project = project(POOLS);
    let blocked = json!({"step": "work@select", "blocked": "Which client is it for?"});
    let answers = [
        blocked,
        selects("work@select", &["web"]),
        says("work", "done"),
        selects("look@select", &["y"]),
        says("x", "good"),
        says("y", "good"),
    ];
    let (code, status) = ran(&project, &answers, &[]);
    assert_eq!(code, 3, "{status:#}");
    let question = status["waiting"]["detail"].as_str().unwrap();
    assert!(question.contains("`work@select` cannot proceed: Which client"), "{question}");
    let answered = project.run(&["answer", "last", "The browser.", "--json"]);
    assert_eq!(answered.code, 0, "{}", answered.stderr);
    let prompts = project.prompts();
    assert!(prompts[1].contains("The browser."), "the selector is told: {}", prompts[1]);
    assert!(prompts[2].contains("Beware of the web"), "{}", prompts[2]);
}

#[test]
fn a_leader_may_find_nothing_to_do() {
    let project = project(TEAM);
    // Work without parts is asked for again, at first and after a batch.
    let answers = [
        leads("work", &[]),
        leads("work", &["One"]),
        json!({"step": "lead@part:1", "blocked": "There is no door."}),
        leads("work", &[]),
        leads("done", &[]),
        closing(),
    ];
    let (code, status) = ran(&project, &answers, &[]);
    assert_eq!(code, 0, "{status:#}");
    let prompts = project.prompts();
    assert!(prompts[1].contains("selects nobody"), "{}", prompts[1]);
    assert!(prompts[3].contains("There is no door."), "the leader is told why: {}", prompts[3]);

    let (code, status) = ran(&project, &[leads("done", &[]), closing()], &[]);
    assert_eq!(code, 0, "{status:#}");
    assert_eq!(asked(&project)[..], ["lead@leader", "lead@closing"]);
}
