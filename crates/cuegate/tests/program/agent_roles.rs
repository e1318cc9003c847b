//! Several agents in one run: who is called for what, and who steps in for an agent that is out.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{Project, kills};

const WORKFLOW: &str = "\
name: it
max_steps: 8
initial_step: plan
personas: { planner: You plan., coder: You write., reviewer: You review., tester: You test. }
steps:
  - name: plan
    persona: planner
    tags: [think]
    edit: false
    instruction: Plan it.
    rules:
      - { condition: Done, next: work }
  - name: work
    persona: coder
    edit: true
    instruction: Work.
    rules:
      - { condition: Done, next: review }
  - name: review
    parallel:
      - name: style
        persona: reviewer
        tags: [review]
        edit: false
        instruction: Look at the style.
        rules:
          - { condition: Done }
      - name: tests
        persona: tester
        tags: [review, careful]
        edit: false
        instruction: Look at the tests.
        rules:
          - { condition: Done }
    rules:
      - { condition: all(\"Done\"), next: again }
  - name: again
    persona: coder
    edit: true
    instruction: Polish.
    rules:
      - { condition: Done, next: COMPLETE }
";

/// An agent that logs its calls. A file `NAME.out` makes it fail: its text is the class, and how long it takes to reset.
const AGENT: &str = r#"#!/bin/sh
name=$1
read -r ask
step=$(printf '%s' "$ask" | sed 's/.*"step":"\([^"]*\)".*/\1/')
session=$(printf '%s' "$ask" | sed -n 's/.*"session":{"id":"\([^"]*\)".*/\1/p')
model=$(printf '%s' "$ask" | sed -n 's/.*"model":"\([^"]*\)".*/\1/p')
printf '%s %s %s %s\n' "$name" "$step" "${session:--}" "${model:--}" >> "$CALLS"
# The place of this call among those of the agent: members of a parallel step come at once.
own=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
echo "$own" >> "$CALLS.$name.order"
place=$(grep -n "$own" "$CALLS.$name.order" | cut -d: -f1)
if [ -f "$CALLS.$name.after" ] && [ "$place" -gt "$(cat "$CALLS.$name.after")" ]; then
  printf '{"event":"error","class":"rate_limited","message":"%s is out","retry_after_ms":600000}\n' "$name"
  exit 0
fi
if [ -f "$CALLS.$name" ]; then
  read -r class reset < "$CALLS.$name"
  printf '{"event":"error","class":"%s","message":"%s is out","retry_after_ms":%s}\n' "$class" "$name" "${reset:-null}"
  exit 0
fi
[ "$step" = work ] && echo "by $name" > WORK.txt
[ -f "$CALLS.slow" ] && sleep 0.1
printf '{"event":"usage","input_tokens":100,"output_tokens":10}\n'
printf '{"event":"answer","output":{"outcome":"Done","response":"ok by %s"},"session":"%s-%s"}\n' "$name" "$name" "$$"
"#;

struct Team {
    project: Project,
}

impl Team {
    /// A project with the agents `a`, `b` and `c`, and these settings of roles.
    fn new(provider: &str, roles: &str) -> Team {
        let project = Project::empty();
        project.write(".takt/workflows/it.yaml", WORKFLOW);
        let outside = project.path().with_extension("calls");
        fs::create_dir_all(&outside).unwrap();
        let agent = outside.join("agent.sh");
        fs::write(&agent, AGENT).unwrap();
        let mut settings = format!(
            "[run]\nprovider = {provider}\nbaseline = \"off\"\n[budget]\nunlimited = true\n[agents]\n{roles}"
        );
        for name in ["a", "b", "c"] {
            settings.push_str(&format!(
                "\n[agents.{name}]\nexec = [\"sh\", {:?}, {name:?}]\nedits = true\nschema = true\nsessions = true\n\
                 state = [{:?}]\nenv = {{ CALLS = {:?} }}\n",
                agent.display().to_string(),
                outside.display().to_string(),
                outside.join("calls").display().to_string()
            ));
        }
        project.write("cuegate.toml", &settings);
        project.init();
        Team { project }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.project.path().with_extension("calls").join(name)
    }

    /// `AGENT STEP SESSION MODEL` of each call so far, without the process in the session.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// `AGENT STEP` of each call so far; members in order of name.
    fn who(&self) -> Vec<String> {
        let mut who: Vec<String> =
            self.calls().iter().map(|call| call.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
        if let Some(first) = who.iter().position(|call| call.ends_with(" style") || call.ends_with(" tests"))
        {
            let last =
                who.iter().rposition(|call| call.ends_with(" style") || call.ends_with(" tests")).unwrap();
            who[first..=last].sort_by_key(|call| call.split(' ').nth(1).map(str::to_owned));
        }
        who
    }

    fn is_out(&self, agent: &str, class: &str) {
        fs::write(self.file(&format!("calls.{agent}")), format!("{class}\n")).unwrap();
    }

    fn is_back(&self, agent: &str) {
        fs::remove_file(self.file(&format!("calls.{agent}"))).unwrap();
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.project.path().with_extension("calls"));
    }
}

#[test]
fn roles_choose_the_agents_of_steps() {
    let team = Team::new("\"a\"", "review = \"b\"\ncareful = \"c:big\"\nplan = [\"c\", \"b\"]\n");
    let ran = team.project.run(&["run", "it", "Do it"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(team.who(), ["c plan", "a work", "b style", "c tests", "a again"]);
    assert!(
        team.calls().iter().any(|call| call.starts_with("c tests") && call.ends_with(" big")),
        "{:?}",
        team.calls()
    );
    for line in ["`plan`: c", "`style`: b", "`tests`: c:big"] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
    let status = team.project.status();
    assert_eq!(status["provider"], "a");
    assert_eq!(
        status["agents"],
        json!({ "stand_ins": [], "steps": { "plan": ["c", "b"], "style": ["b"], "tests": ["c:big"] }, "reports": {}, "later": {} })
    );
    let agents: Vec<(&str, &str)> = status["steps"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| std::iter::once(row).chain(row["members"].as_array().into_iter().flatten()))
        .filter_map(|row| Some((row["step"].as_str()?, row["agent"].as_str()?)))
        .collect();
    for wanted in [("plan", "c"), ("work", "a"), ("style", "b"), ("tests", "c"), ("again", "a")] {
        assert!(agents.contains(&wanted), "{wanted:?} in {agents:?}");
    }
    // The second call of the coder continues its conversation.
    let again = team.calls().into_iter().find(|call| call.starts_with("a again")).unwrap();
    assert!(again.split(' ').nth(2).unwrap().starts_with("a-"), "{again}");
}

#[test]
fn show_names_the_agents_of_steps() {
    let team = Team::new("[\"a\", \"b\"]", "review = \"b\"\nplan = [\"c\", \"b\"]\n");
    let shown = team.project.run(&["show", "it"]).stdout;
    let agents = shown.split("agents:\n").nth(1).unwrap();
    assert_eq!(
        agents,
        "  a, unless another is named below\n  if a is out: b\n  `plan`: c; then b\n  `style`, `tests`: b\n"
    );
    let json = team.project.run(&["show", "it", "--json", "--agent", "work=c"]).json();
    assert_eq!(json["agents"]["usual"], "a");
    assert_eq!(json["agents"]["steps"]["work"], json!(["c"]));
    assert_eq!(team.project.run(&["show", "it", "--agent", "nobody=c"]).code, 2);
}

/// What is charged for calls of which the agent reports no usage says that it is an estimate.
#[test]
fn a_call_without_a_report_of_its_usage_is_estimated() {
    let team = Team::new("\"a\"", "");
    let agent = fs::read_to_string(team.file("agent.sh")).unwrap();
    let silent: Vec<&str> = agent.lines().filter(|line| !line.contains("\"usage\"")).collect();
    fs::write(team.file("agent.sh"), silent.join("\n")).unwrap();
    let ran = team.project.run(&["run", "it", "Do it"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("tokens (partly estimated)"), "{}", ran.stderr);
    let tokens = &team.project.status()["tokens"];
    assert!(tokens["estimated"] == true && tokens["input"].as_u64() > Some(100), "{tokens}");
    assert_eq!(team.project.events("answered")[0]["usage"]["estimated"], true);
}

#[test]
fn flags_precede_settings_and_name_what_fits() {
    let team = Team::new("\"a\"", "review = \"b\"\n");
    let ran =
        team.project.run(&["run", "it", "Do it", "--agent", "read-only=c", "--agent", "persona:tester=a"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(team.who(), ["c plan", "a work", "c style", "a tests", "a again"]);
    let ran = team.project.run(&["run", "it", "Do it", "--agent", "revue=c"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("`--agent revue=…` fits no call"), "{}", ran.stderr);
    assert!(ran.stderr.contains("careful") && ran.stderr.contains("planner"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("@judge"), "a name of ours: {}", ran.stderr);
    let ran = team.project.run(&["run", "it", "Do it", "--agent", "plan=b", "--agent", "plan=c"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("`--agent plan=…` is given twice"), "{}", ran.stderr);
    let ran = team.project.run(&["run", "it", "Do it", "--agent", "review=nobody"]);
    assert!(ran.stderr.contains("unknown agent `nobody`"), "{}", ran.stderr);
    let ran = team.project.run(&["run", "it", "Do it", "--agent", "review"]);
    assert!(ran.stderr.contains("review=codex"), "{}", ran.stderr);
}

#[test]
fn the_agents_of_a_workflow_count_without_a_flag() {
    let team = Team::new("\"a\"", "tests = \"c\"\n");
    let workflow = WORKFLOW.replace("    tags: [review]\n", "    tags: [review]\n        provider: b\n");
    let workflow = workflow.replace("    persona: planner\n", "    persona: planner\n    provider: cursor\n");
    team.project.write(".takt/workflows/it.yaml", &workflow);
    let ran = team.project.run(&["run", "it", "Do it"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(team.who(), ["a plan", "a work", "b style", "c tests", "a again"]);
    let note = "unknown agent `cursor` of `plan` in the workflow: a is called";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    fs::remove_file(team.file("calls")).unwrap();
    let ran = team.project.run(&["run", "it", "Do it", "--provider", "b"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(team.who(), ["b plan", "b work", "b style", "c tests", "b again"]);
}

/// A called workflow whose step is promoted, a step with a chosen member, and a monitor.
#[test]
fn ladders_called_steps_and_internal_agents_of_takt_count() {
    let team = Team::new("\"c\"", "");
    let inner = "name: inner\nsubworkflow: { callable: true }\nsteps:\n  - name: work\n    edit: true\n    instruction: Work.\n    \
                 promotion: [{ at: 2 }, { at: 3 }]\n    rules: [{ condition: Done, next: work }, { condition: over, next: COMPLETE }]\n";
    team.project.write(".takt/workflows/inner.yaml", inner);
    let main = "name: main\nmax_steps: 5\nsteps:\n  - name: look\n    parallel:\n      pool: [{ name: one, description: It, edit: false, \
                instruction: Look., rules: [{ condition: Done }] }]\n      selection: { max_selected: 1 }\n    rules: \
                [{ condition: all(\"Done\"), next: go }]\n  - { name: go, kind: workflow_call, call: inner, rules: [{ condition: \
                COMPLETE, next: COMPLETE }] }\n";
    team.project.write(".takt/workflows/main.yaml", main);
    let runtime = "version: 1\nloop_analysis: {}\nprovider:\n  defaults: { profile: c }\n  profiles:\n    a: { provider: a }\n    b: { provider: b, \
                   model: m, options: { effort: high, network_access: true } }\n    c: { provider: c }\n  targets:\n    steps: { inner/work: { ladder: [a, b, c] }, \
                   main/work: { profile: b } }\n    internal_agents: { selector: { profile: b } }\n";
    team.project.write(".takt/runtime.yaml", runtime);
    let priced = team.project.run(&["price", "main", "--json"]).json();
    assert_eq!(priced["agents"]["steps"]["go/work"], json!(["a"]), "{priced:#}");
    let later = json!([{ "from": 2, "agents": ["b:m#high"] }, { "from": 3, "agents": ["c"] }]);
    assert_eq!(priced["agents"]["later"]["go/work"], later, "{priced:#}");
    // Our agents answer no selection: the run waits after its first call.
    let ran = team.project.run(&["run", "main", "Do it"]);
    assert_eq!(
        team.calls()[0].split(' ').take(2).collect::<Vec<_>>(),
        ["b", "look@select"],
        "{}",
        ran.stderr
    );
    for note in [
        "`loop_analysis` of runtime.yaml is not followed",
        "`options.network_access` of the profile `b` in runtime.yaml: not passed on",
    ] {
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
    }
    assert!(ran.stderr.contains("`go/work` from visit 2 on: b"), "{}", ran.stderr);
    fs::remove_file(team.file("calls")).unwrap();
    team.project.write(".takt/workflows/main.yaml", &main.replace("    parallel:\n      pool: [{ name: one, description: It, edit: false, \
                instruction: Look., rules: [{ condition: Done }] }]\n      selection: { max_selected: 1 }\n    rules: \
                [{ condition: all(\"Done\"), next: go }]", "    edit: false\n    instruction: Look.\n    rules: [{ condition: Done, next: go }]"));
    let ran = team.project.run(&["run", "main", "Do it"]);
    assert_eq!(team.who(), ["c look", "a go/work", "b go/work", "c go/work", "c go/work"], "{}", ran.stderr);
    // Without a ladder a promotion does nothing, which is said.
    team.project.write(".takt/runtime.yaml", &runtime.replace("ladder: [a, b, c]", "profile: a"));
    let ran = team.project.run(&["run", "main", "Do it"]);
    let note = "`promotion` of `go/work` has no effect: no `ladder` in runtime.yaml is for it";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
}

#[test]
fn the_runtime_profiles_of_takt_count() {
    let team = Team::new("\"a\"", "");
    let runtime = "version: 1\nprovider:\n  defaults: { profile: x }\n  profiles:\n    x: { provider: c }\n    y: { provider: b, model: m }\n  \
                   targets:\n    tags: { review: { profile: y } }\n    steps: { it/plan: { profile: x } }\n";
    team.project.write(".takt/runtime.yaml", runtime);
    let ran = team.project.run(&["run", "it", "Do it"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(team.who(), ["c plan", "a work", "b style", "b tests", "a again"]);
    team.project.write(".takt/runtime.yaml", &runtime.replace("provider: b", "provide: [b"));
    let ran = team.project.run(&["run", "it", "Do it"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("runtime.yaml"), "{}", ran.stderr);
}

#[test]
fn another_agent_steps_in_and_the_first_comes_back() {
    let team = Team::new("[\"a\", \"b\"]", "review = [\"b\", \"c\"]\n");
    team.is_out("a", "rate_limited 400");
    let ran = team.project.run(&["run", "it", "Do it"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let who = team.who();
    assert_eq!(&who[..2], ["a plan", "b plan"], "{who:?}");
    let out = team.project.events("agent_out");
    assert_eq!((&out[0]["agent"], &out[0]["class"]), (&json!("a"), &json!("rate_limited")));
    let log = team.project.run(&["log"]).stdout;
    assert!(log.contains("a is out") && log.contains("b steps in"), "{log}");
    assert_eq!(team.project.status()["faults"][0]["agent"], "a");

    // It is called again after its reset, at the next call.
    let team = Team::new("[\"a\", \"b\"]", "");
    team.is_out("a", "rate_limited 100");
    fs::write(team.file("calls.slow"), "").unwrap();
    let job = team.project.job(&["run", "it", "Do it"]);
    crate::support::until("b stepped in", || team.calls().iter().any(|call| call.starts_with("b plan")));
    team.is_back("a");
    assert_eq!(job.end().code, 0);
    let who = team.who();
    assert_eq!(who.last().unwrap(), "a again", "{who:?}");
    // The conversation of the coder was held by whoever worked: it never crosses agents.
    for call in team.calls() {
        let words: Vec<&str> = call.split(' ').collect();
        assert!(words[2] == "-" || words[2].starts_with(words[0]), "{call}");
    }
}

#[test]
fn each_class_of_outage_lets_the_next_agent_go_on() {
    for (class, steps_in) in [
        ("rate_limited", true),
        ("overloaded", true),
        ("auth", true),
        ("network", true),
        ("unknown_model", true),
        ("refused", false),
        ("context_overflow", false),
    ] {
        let team = Team::new("[\"a\", \"b\"]", "");
        team.is_out("a", class);
        let ran = team.project.run(&["run", "it", "Do it"]);
        let who = team.who();
        match steps_in {
            true => {
                assert_eq!(ran.code, 0, "{class}: {}", ran.stderr);
                assert_eq!(who[..3], ["a plan", "b plan", "b work"], "{class}");
                assert_eq!(who.iter().filter(|call| call.starts_with("a ")).count(), 1, "{class}: {who:?}");
            }
            false => {
                assert_ne!(ran.code, 0, "{class}: {}", ran.stderr);
                assert!(who.iter().all(|call| call.starts_with("a ")), "{class}: {who:?}");
            }
        }
    }
}

#[test]
fn a_run_whose_agents_are_all_out_waits_for_the_first_that_is_back() {
    let team = Team::new("[\"a\", \"b\"]", "");
    team.is_out("a", "rate_limited 3600000");
    team.is_out("b", "rate_limited 1800000");
    let ran = team.project.run(&["run", "it", "Do it"]);
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    let waiting = team.project.status()["waiting"].clone();
    assert_eq!(waiting["kind"], "quota", "{waiting}");
    let detail = waiting["detail"].as_str().unwrap();
    assert!(detail.contains("all agents of `plan` are out"), "{detail}");
    team.is_back("b");
    let ran = team.project.run(&["resume"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(&team.who()[..4], ["a plan", "b plan", "a plan", "b plan"]);
    // Nobody knows when a login works again.
    let team = Team::new("[\"a\", \"b\"]", "");
    team.is_out("a", "auth");
    team.is_out("b", "auth");
    team.project.run(&["run", "it", "Do it"]);
    assert_eq!(team.project.status()["waiting"]["kind"], "environment");
}

#[test]
fn a_resumed_run_may_have_other_agents() {
    let team = Team::new("\"a\"", "review = \"b\"\n");
    team.is_out("b", "auth");
    let ran = team.project.run(&["run", "it", "Do it"]);
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    let ran = team.project.run(&["resume", "--agent", "review=c", "--provider", "c"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let who = team.who();
    assert_eq!(who.last().unwrap(), "c again", "{who:?}");
    assert!(who.contains(&"c style".to_owned()) && who.contains(&"c tests".to_owned()), "{who:?}");
    assert_eq!(team.project.status()["provider"], "c");
}

#[test]
fn a_broken_agent_is_noted_if_another_steps_in() {
    let team = Team::new("[\"gone\", \"a\"]", "");
    let settings =
        team.project.read("cuegate.toml") + "\n[agents.gone]\nexec = [\"/nowhere/agent\"]\nedits = true\n";
    team.project.write("cuegate.toml", &settings);
    let ran = team.project.run(&["run", "it", "Do it"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("gone does not work here, another agent steps in"), "{}", ran.stderr);
    assert_eq!(team.who()[0], "a plan");
    team.project.write("cuegate.toml", &settings.replace("[\"gone\", \"a\"]", "\"gone\""));
    let ran = team.project.run(&["run", "it", "Do it"]);
    assert_eq!((ran.code, team.project.runs()), (4, 1), "{}", ran.stderr);
}

#[test]
fn the_price_is_the_maximum_over_a_chain() {
    let team = Team::new("\"a\"", "review = [\"b:cheap\", \"c:dear\"]\n");
    let prices = "\n[prices]\nusual = { input = 1.0, output = 1.0 }\ncheap = { input = 1.0, output = 1.0 }\ndear = { input = 10.0, output = 10.0 }\n";
    let settings =
        team.project.read("cuegate.toml").replace("[agents.a]\n", "[agents.a]\nmodel = \"usual\"\n");
    team.project.write("cuegate.toml", &(settings.clone() + prices));
    let price = |more: &[&str]| -> Value {
        let args = [&["price", "it", "--json", "--call-tokens", "1000"], more].concat();
        team.project.run(&args).json()
    };
    let chain = price(&[]);
    assert_eq!(chain["agents"]["steps"]["style"], json!(["b:cheap", "c:dear"]));
    let cost = |json: &Value| json["max"]["cost_usd"].as_f64().unwrap_or_else(|| panic!("{json}"));
    let dear = price(&["--agent", "review=c:dear"]);
    let cheap = price(&["--agent", "review=b:cheap"]);
    assert_eq!(cost(&chain), cost(&dear));
    assert!(cost(&cheap) < cost(&dear), "{} {}", cost(&cheap), cost(&dear));
    let shown = team.project.run(&["price", "it"]).stdout;
    assert!(shown.contains("`style`, `tests`: b:cheap; then c:dear"), "{shown}");
    // A budget in dollars needs the price of every agent that may be called.
    team.project.write("cuegate.toml", &(settings + &prices.replace("dear =", "other =")));
    let ran = team.project.run(&["run", "it", "Do it", "--budget-usd", "1"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("c reports no costs, and the price of `dear` is unknown"), "{}", ran.stderr);
}

/// A quota is used up at each call boundary: whoever steps in does the rest, and no call that was answered is made again.
#[test]
fn a_quota_may_end_at_each_call_boundary() {
    let steps = ["plan", "work", "style", "tests", "again"];
    for answered in 0..=steps.len() {
        let team = Team::new("[\"a\", \"b\"]", "");
        fs::write(team.file("calls.a.after"), answered.to_string()).unwrap();
        // Members of a parallel step would share the boundary; one after the other each has its own.
        let ran = team.project.run(&["run", "it", "Do it", "--budget-calls", "12"]);
        assert_eq!(ran.code, 0, "after {answered} calls: {}", ran.stderr);
        let answers: Vec<String> = team
            .project
            .events("answered")
            .iter()
            .map(|event| {
                format!("{} {}", event["provider"].as_str().unwrap(), event["step"].as_str().unwrap())
            })
            .collect();
        let of = |agent: &str| answers.iter().filter(|answer| answer.starts_with(agent)).count();
        assert_eq!((of("a "), of("b ")), (answered, steps.len() - answered), "{answers:?}");
        let mut answered_steps: Vec<&str> =
            answers.iter().filter_map(|answer| answer.split(' ').nth(1)).collect();
        answered_steps.sort_unstable();
        assert_eq!(answered_steps, ["again", "plan", "style", "tests", "work"]);
        assert_eq!(team.project.run(&["replay"]).code, 0);
    }
}

/// A run with three agents ends the same, wherever it is killed and however its agents fail meanwhile.
#[test]
fn a_killed_run_goes_on_with_its_agents() {
    let mut left = kills(6);
    let mut seed = 1;
    while left > 0 {
        let team = Team::new("[\"a\", \"b\"]", "review = [\"b\", \"c\"]\n");
        fs::write(team.file("calls.slow"), "").unwrap();
        team.is_out("b", "rate_limited 300");
        let mut job = team.project.job(&["run", "it", "Do it"]);
        let mut killed = 0;
        loop {
            seed = (seed * 7 + 3) % 101;
            std::thread::sleep(std::time::Duration::from_millis(30 + seed * 6));
            if killed == 3 {
                break;
            }
            job.signal_if_there(rustix::process::Signal::KILL);
            let _ = job.end();
            killed += 1;
            left = left.saturating_sub(1);
            if team.project.runs() == 0 {
                job = team.project.job(&["run", "it", "Do it"]);
                continue;
            }
            job = team.project.job(&["resume"]);
        }
        let _ = job.end();
        team.project.all_gone();
        let status = team.project.status();
        assert_eq!(status["state"], "completed", "{status}");
        for call in team.calls() {
            let words: Vec<&str> = call.split(' ').collect();
            assert!(words[2] == "-" || words[2].starts_with(words[0]), "{call}");
        }
        let replay = team.project.run(&["replay"]);
        assert_eq!(replay.code, 0, "{}{}", replay.stdout, replay.stderr);
    }
}

#[test]
fn wrong_roles_are_errors_with_their_place() {
    let project = Project::empty();
    let refused = |settings: &str| {
        project.write("cuegate.toml", settings);
        project.run(&["config", "show"]).stderr
    };
    for (settings, wanted) in [
        (
            "[agents]\nreview = \"\"\n",
            "is not an agent: write `AGENT`, `AGENT:MODEL` or `AGENT:MODEL#EFFORT`",
        ),
        ("[agents]\nreview = []\n", "the list names no agent"),
        ("[agents]\nreview = 3\n", "an agent such as"),
        ("[agents]\nclaude = \"codex\"\n", "`claude` is an agent, not a role"),
        ("[agents]\n\"kind:x\" = \"codex\"\n", "`kind:` is not a kind of role"),
        ("[agents]\n\"step:\" = \"codex\"\n", "has no name"),
        ("[run]\nprovider = { a = 1 }\n", "an agent such as"),
    ] {
        let said = refused(settings);
        assert!(said.contains(wanted) && said.contains("cuegate.toml:2"), "{settings}: {said}");
    }
    assert!(Path::new(&project.path().join("cuegate.toml")).is_file());
}
