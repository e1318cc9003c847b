//! Findings about pieces. Each case changes the sound piece, which has no findings.

use crate::piece::piece_support::{FILE, broken, changed, load, sound, table};
use crate::support::{Project, findings_of};

#[test]
fn the_sound_piece_has_no_findings() {
    assert_eq!(broken(&[]), "");
    assert_eq!(findings_of(load(&sound(), |options| options.interactive = true)), "");
}

#[test]
fn keys_of_the_piece() {
    insta::assert_snapshot!(table(&[
        ("no name", &[("name: sound\n", "")]),
        ("no limit", &[("max_iterations: 12\n", "")]),
        ("no limit that is one", &[("max_iterations: 12", "max_iterations: 0")]),
        ("without end", &[("max_iterations: 12", "max_steps: infinite")]),
        ("no entry", &[("initial_movement: plan\n", "")]),
        ("an entry that is none", &[("initial_movement: plan", "initial_movement: plam")]),
        ("an entry that is an end", &[("initial_movement: plan", "initial_movement: COMPLETE")]),
        ("an entry that is a member", &[("initial_movement: plan", "initial_movement: qa-review")]),
        ("no movements", &[("\nmovements:\n", "\nmovement:\n")]),
        ("an unknown key", &[("max_iterations: 12", "max_iterations: 12\nmax_iteration: 3")]),
        ("a key of nobody", &[("max_iterations: 12", "max_iterations: 12\nanswer_agent: coder")]),
        ("both spellings", &[("max_iterations: 12", "max_iterations: 12\nmax_steps: 12")]),
        ("a later key", &[("max_iterations: 12", "max_iterations: 12\nschemas: {}")]),
        ("a key twice", &[("max_iterations: 12", "max_iterations: 12\nname: again")]),
    ]), @"
    # no name
    sound.yaml:1:1 error[missing-key]: `name` is missing in the workflow
    # no limit
    sound.yaml:1:1 error[missing-key]: `max_iterations` is missing in the workflow
    # no limit that is one
    sound.yaml:3:17 error[invalid-value]: `max_iterations` must be a whole number of at least 1, not 0
    # without end
    sound.yaml:3:12 error[unsupported-yet]: `max_steps: infinite` belongs to a later version of the format, and is not supported
    # no entry
    sound.yaml:1:1 warning[missing-key]: `initial_movement` is missing; a run starts with the first step, `plan`
    # an entry that is none
    sound.yaml:16:19 error[unknown-target]: `initial_movement` leads to the undefined step `plam`
    # an entry that is an end
    sound.yaml:16:19 error[unknown-target]: `COMPLETE` is an end; a run cannot begin there
    # an entry that is a member
    sound.yaml:16:19 error[unknown-target]: `initial_movement` leads to `qa-review`, which is a member of a parallel step
    # no movements
    sound.yaml:1:1 error[missing-key]: `movements` is missing in the workflow
    sound.yaml:17:1 error[unknown-key]: unknown key `movement` in the workflow
    # an unknown key
    sound.yaml:4:1 error[unknown-key]: unknown key `max_iteration` in the workflow
    # a key of nobody
    sound.yaml:4:1 warning[unused-key]: `answer_agent` has no effect in the workflow
    # both spellings
    sound.yaml:4:1 error[conflicting-keys]: `max_steps` and `max_iterations` mean the same
    # a later key
    nothing
    # a key twice
    sound.yaml:4:1 error[duplicate-key]: duplicate key `name`
    ");
}

#[test]
fn maps_and_references() {
    insta::assert_snapshot!(table(&[
        ("a missing file", &[("../policies/coding.md", "../policies/codng.md")]),
        ("a path out of the project", &[("../policies/coding.md", "../../../etc/passwd")]),
        ("an absolute path", &[("../policies/coding.md", "/etc/passwd")]),
        ("a path at home", &[("../policies/coding.md", "~/coding.md")]),
        ("an empty file", &[("Money is counted in cents.", "")]),
        ("an empty entry", &[("../policies/coding.md", "\"\"")]),
        ("no text", &[("../policies/coding.md", "[a]")]),
        ("nothing", &[("../policies/coding.md", "")]),
        ("an unknown policy", &[("[coding, careful]", "[codng, careful]")]),
        ("a policy twice", &[("[coding, careful]", "[coding, coding]")]),
        ("an unknown persona", &[("    persona: coder\n", "    persona: codr\n")]),
        ("an unknown instruction", &[("instruction: implement", "instruction: plann")]),
        ("an unknown format", &[("format: plan", "format: plam")]),
        ("a section that is not there", &[("knowledge:\n  domain: ../knowledge/domain.md\n", "")]),
        ("a path for a key", &[("instruction: implement", "instruction: ../instructions/implement.md")]),
        ("an unused entry", &[("knowledge: domain\n", "knowledge: Cents.  Always.\n")]),
        ("an unknown section", &[("\nknowledge:\n", "\nknowlege:\n")]),
    ]), @"
    # a missing file
    sound.yaml:5:11 error[unreadable-file]: there is no file `.takt/policies/codng.md`
    # a path out of the project
    sound.yaml:5:11 error[escapes-root]: `../../../etc/passwd` leads out of the folder above the workflow's
    # an absolute path
    sound.yaml:5:11 error[escapes-root]: `/etc/passwd` leads out of the folder above the workflow's
    # a path at home
    sound.yaml:5:11 error[escapes-root]: `~/coding.md` leads out of the folder above the workflow's
    # an empty file
    domain.md:1:1 error[missing-prompt]: `.takt/knowledge/domain.md` is empty
    # an empty entry
    sound.yaml:5:11 error[invalid-value]: an entry of `policies` is empty
    # no text
    sound.yaml:5:11 error[wrong-type]: `coding` must be the path of a file, not a list
    # nothing
    sound.yaml:5:9 error[wrong-type]: `coding` must be the path of a file, not `null`
    # an unknown policy
    sound.yaml:46:14 error[unknown-name]: `policy` names `codng`, which is not found
    # a policy twice
    sound.yaml:6:3 warning[unused-definition]: nothing refers to `careful` of `policies`
    sound.yaml:46:22 warning[duplicate-item]: `coding` is listed twice in `policy`
    # an unknown persona
    sound.yaml:45:14 error[unknown-name]: `persona` names `codr`, which is not found
    # an unknown instruction
    sound.yaml:52:18 error[unknown-name]: `instruction` names `plann`, which is not found
    # an unknown format
    sound.yaml:31:19 error[unknown-name]: `format` names `plam`, which is not found
    # a section that is not there
    nothing
    # a path for a key
    sound.yaml:11:3 warning[unused-definition]: nothing refers to `implement` of `instructions`
    # an unused entry
    sound.yaml:15:3 warning[unused-definition]: nothing refers to `domain` of `knowledge`
    # an unknown section
    sound.yaml:14:1 error[unknown-key]: unknown key `knowlege` in the workflow
    ");
}

#[test]
fn movements() {
    insta::assert_snapshot!(table(&[
        ("no name", &[("  - name: plan\n    description", "  - description")]),
        ("a name twice", &[("  - name: implement\n", "  - name: plan\n")]),
        ("a member's name twice", &[("      - name: qa-review\n", "      - name: arch-review\n")]),
        ("a reserved name", &[("      - name: qa-review\n", "      - name: COMPLETE\n")]),
        ("a name with an at sign", &[("      - name: qa-review\n", "      - name: plan@ai\n")]),
        ("an unknown key", &[("permission_mode: edit", "permision_mode: edit")]),
        ("a later key", &[("permission_mode: edit", "required_permission_mode: edit")]),
        ("no edit", &[("    edit: true\n", "")]),
        ("no edit and full mode", &[("    edit: true\n    permission_mode: edit\n", "    permission_mode: full\n")]),
        ("no edit and no mode", &[("    edit: true\n    permission_mode: edit\n", "")]),
        ("edit that is no truth value", &[("    edit: true\n", "    edit: yes\n")]),
        ("permissions that disagree", &[("    edit: true\n", "    edit: false\n")]),
        ("a mode that takes back", &[("permission_mode: edit", "permission_mode: readonly")]),
        ("tools that write where nothing may be written", &[("[Read, Grep]", "[Read, Write, \"Edit(src/**)\", Bash]")]),
        ("an unknown mode", &[("permission_mode: edit", "permission_mode: write")]),
        ("an unknown session", &[("session: refresh", "session: compact")]),
        ("two instructions", &[("    instruction: implement\n", "    instruction: implement\n    instruction_template: Do it.\n")]),
        ("no instruction", &[("        instruction_template: Review the tests.\n", "")]),
        ("a provider", &[("    model: opus\n", "    provider: codex\n")]),
        ("a parallel movement that asks", &[("  - name: reviewers\n", "  - name: reviewers\n    persona: coder\n    edit: true\n")]),
        ("a parallel member", &[("      - name: qa-review\n", "      - name: qa-review\n        parallel: []\n")]),
        ("gates that are none", &[("      - All tests pass\n", "      - 7\n      - \" \"\n      - { comand: x }\n")]),
    ]), @"
    # no name
    sound.yaml:18:5 error[missing-key]: `name` is missing in a step
    # a name twice
    sound.yaml:44:11 error[step-name]: there is another step `plan`
    # a member's name twice
    sound.yaml:75:15 error[step-name]: there is another step `arch-review`
    # a reserved name
    sound.yaml:75:15 error[step-name]: `COMPLETE` is an end, and cannot be the name of a step
    # a name with an at sign
    sound.yaml:75:15 error[step-name]: `plan@ai` cannot be the name of a step
    # an unknown key
    sound.yaml:49:5 error[unknown-key]: unknown key `permision_mode` in the step `implement`
    # a later key
    nothing
    # no edit
    sound.yaml:44:5 warning[missing-edit]: `edit` is missing; `permission_mode: edit` alone lets `implement` change files
    # no edit and full mode
    sound.yaml:44:5 warning[missing-edit]: `edit` is missing; `permission_mode: full` alone lets `implement` change everything
    # no edit and no mode
    sound.yaml:44:5 warning[missing-edit]: `edit` is missing, so that `implement` may change nothing
    # edit that is no truth value
    sound.yaml:48:11 error[wrong-type]: `edit` must be `true` or `false`, not a text
    # permissions that disagree
    sound.yaml:49:22 error[conflicting-keys]: `permission_mode: edit` contradicts `edit: false`
    # a mode that takes back
    sound.yaml:49:22 warning[unused-key]: `edit: true` has no effect beside `permission_mode: readonly`
    # tools that write where nothing may be written
    sound.yaml:23:27 warning[weak-permission]: `Write`, `Edit(src/**)` of `allowed_tools` may write nothing, as `plan` may change nothing
    # an unknown mode
    sound.yaml:49:22 error[invalid-value]: `write` is no `permission_mode`
    # an unknown session
    sound.yaml:50:5 note[unused-key]: `session` has no effect here
    # two instructions
    sound.yaml:53:27 warning[conflicting-keys]: both `instruction` and `instruction_template` are given; the template holds
    # no instruction
    sound.yaml:75:15 warning[missing-key]: `qa-review` has no `instruction`; its agent gets the task alone
    # a provider
    sound.yaml:24:15 warning[unsupported-yet]: the step `plan` names the provider `codex`; a run asks one provider for everything
    # a parallel movement that asks
    sound.yaml:67:5 warning[unused-key]: `persona`, `edit` have no effect in the step `reviewers`
    # a parallel member
    sound.yaml:76:9 error[invalid-value]: a member of a parallel step cannot be parallel itself
    # gates that are none
    sound.yaml:54:9 error[wrong-type]: `quality_gates` must be a list of texts and of `{ command, timeout_ms }`, not a number
    sound.yaml:55:9 error[invalid-value]: a quality gate is empty
    sound.yaml:56:9 error[missing-key]: `command` is missing in a quality gate
    sound.yaml:56:11 error[unknown-key]: unknown key `comand` in a quality gate
    ");
}

#[test]
fn read_only_members_beside_writing_members() {
    const ARCH: &str = "        edit: false\n        instruction_template: Review the architecture.";
    const QA: &str = "        edit: false\n        pass_previous_response: false";
    let (arch, qa) = (ARCH.replace("false\n", "true\n"), QA.replacen("false", "true", 1));
    let readonly = arch.replace("edit: true\n", "edit: true\n        permission_mode: readonly\n");
    let unsaid = ARCH.replace("        edit: false\n", "");
    insta::assert_snapshot!(table(&[
        ("one may", &[(ARCH, &arch)]),
        ("the other one by its mode", &[(ARCH, &readonly), (QA, &qa)]),
        ("the other one says nothing", &[(ARCH, &unsaid), (QA, &qa)]),
        ("both may", &[(ARCH, &arch), (QA, &qa)]),
    ]), @"
    # one may
    sound.yaml:66:11 warning[mixed-permissions]: `reviewers` runs `qa-review` (read-only) in parallel with `arch-review` (may write): changes cannot be attributed
    # the other one by its mode
    sound.yaml:66:11 warning[mixed-permissions]: `reviewers` runs `arch-review` (read-only) in parallel with `qa-review` (may write): changes cannot be attributed
    sound.yaml:71:26 warning[unused-key]: `edit: true` has no effect beside `permission_mode: readonly`
    # the other one says nothing
    sound.yaml:66:11 warning[mixed-permissions]: `reviewers` runs `arch-review` (read-only) in parallel with `qa-review` (may write): changes cannot be attributed
    sound.yaml:68:9 warning[missing-edit]: `edit` is missing, so that `arch-review` may change nothing
    # both may
    nothing
    ");
}

#[test]
fn no_members_and_no_rules() {
    let members = |files: Project| {
        let text = String::from_utf8(files[FILE].clone()).unwrap();
        let (before, rest) = text.split_once("    parallel:\n").unwrap();
        let after = &rest[rest.find("    rules:\n      - condition: all").unwrap()..];
        let text = format!("{before}    parallel: []\n{after}");
        findings_of(load(
            &Project::from_iter(files.into_iter().chain([(FILE.to_owned(), text.into_bytes())])),
            |_| {},
        ))
    };
    insta::assert_snapshot!(members(sound()), @"sound.yaml:67:15 error[invalid-value]: `parallel` has no members");
}

#[test]
fn rules() {
    insta::assert_snapshot!(table(&[
        ("no rules", &[("    rules:\n      - condition: Done\n        next: reviewers\n      - condition: Cannot proceed\n        next: ABORT\n", "")]),
        ("empty rules", &[("    rules:\n      - condition: Done\n        next: reviewers\n      - condition: Cannot proceed\n        next: ABORT\n", "    rules: []\n")]),
        ("only for persons", &[("      - condition: Done\n        next: reviewers\n      - condition: Cannot proceed\n        next: ABORT\n", "      - condition: Done\n        next: reviewers\n        interactive_only: true\n")]),
        ("only for persons, in a monitor", &[("        - condition: Healthy\n          next: implement\n        - condition: Unproductive\n          next: ABORT\n", "        - condition: Healthy\n          next: implement\n          interactive_only: true\n")]),
        ("a member's only for persons", &[("          - condition: approved\n          - condition: needs_fix\n    rules:", "          - condition: approved\n            interactive_only: true\n          - condition: needs_fix\n    rules:")]),
        ("all of a member's only for persons", &[("          - condition: approved\n          - condition: needs_fix\n    rules:", "          - condition: approved\n            interactive_only: true\n    rules:")]),
        ("no condition", &[("      - condition: Done\n        next: reviewers", "      - next: reviewers")]),
        ("no next", &[("      - condition: Done\n        next: reviewers", "      - condition: Done")]),
        ("a next that is none", &[("        next: reviewers", "        next: reviewer")]),
        ("an end in small letters", &[("        next: COMPLETE", "        next: complete")]),
        ("a next that is a member", &[("        next: reviewers", "        next: qa-review")]),
        ("a next of a member", &[("          - condition: approved\n          - condition: needs_fix\n    rules:", "          - condition: approved\n            next: plan\n            requires_user_input: true\n          - condition: needs_fix\n    rules:")]),
        ("a condition in other letters", &[("        next: reviewers\n      - condition: Cannot proceed\n        next: ABORT", "        next: reviewers\n      - condition: done\n        next: ABORT")]),
        ("a condition in other letters that leads to the same", &[("        next: reviewers\n      - condition: Cannot proceed\n        next: ABORT", "        next: reviewers\n      - condition: done\n        next: reviewers")]),
        ("a rule of a member twice", &[("          - condition: approved\n          - condition: needs_fix\n    rules:", "          - condition: approved\n          - condition: approved\n          - condition: needs_fix\n    rules:")]),
        ("an unknown key", &[("        interactive_only: true", "        interactive: true")]),
        ("a predicate", &[("condition: Done", "condition: when(context.x == 1)")]),
        ("an aggregate without members", &[("condition: Done", "condition: all(\"Done\")")]),
        ("an aggregate without quotes", &[("all(\"approved\")", "all(approved)")]),
        ("an aggregate of nothing", &[("all(\"approved\")", "all(\"\")")]),
        ("a judge of nothing", &[("ai(\"the task is impossible\")", "ai()")]),
        ("an outcome of nobody", &[("all(\"approved\")", "all(\"aproved\")")]),
        ("one outcome too many", &[("all(\"approved\")", "all(\"approved\", \"approved\", \"approved\")")]),
        ("outcomes in the wrong order", &[("          - condition: approved\n          - condition: needs_fix\n    rules:", "          - condition: passed\n          - condition: needs_fix\n    rules:"), ("all(\"approved\")", "all(\"passed\", \"approved\")")]),
        ("what never holds", &[("          - condition: approved\n          - condition: needs_fix\n    rules:", "          - condition: passed\n          - condition: needs_fix\n    rules:")]),
    ]), @r#"
    # no rules
    sound.yaml:44:5 error[missing-key]: `rules` is missing in the step `implement`
    # empty rules
    sound.yaml:44:5 error[invalid-value]: `rules` has no rule
    # only for persons
    sound.yaml:62:9 error[missing-transition]: all rules are `interactive_only`, so that none applies in an unattended run
    # only for persons, in a monitor
    sound.yaml:97:11 error[missing-transition]: all rules are `interactive_only`, so that none applies in an unattended run
    # a member's only for persons
    sound.yaml:84:9 warning[join-never-fires]: `all("approved")` of `reviewers` never counts: not every member can have that outcome
    # all of a member's only for persons
    sound.yaml:80:13 error[missing-transition]: all rules are `interactive_only`, so that none applies in an unattended run
    # no condition
    sound.yaml:62:9 error[missing-key]: `condition` is missing in a rule
    # no next
    sound.yaml:62:9 error[missing-key]: `next` is missing in a rule
    # a next that is none
    sound.yaml:63:15 error[unknown-target]: `implement` on `Done` leads to the undefined step `reviewer`
    # an end in small letters
    sound.yaml:84:15 error[unknown-target]: `reviewers` on `all("approved")` leads to the undefined step `complete`
    # a next that is a member
    sound.yaml:63:15 error[unknown-target]: `implement` on `Done` leads to `qa-review`, which is a member of a parallel step
    # a next of a member
    sound.yaml:81:19 warning[unused-key]: `next` has no effect in a rule of a member
    sound.yaml:82:34 warning[unused-key]: `requires_user_input` has no effect in a rule of a member
    # a condition in other letters
    sound.yaml:64:20 warning[duplicate-item]: the conditions `Done` and `done` differ only in case and have different targets
    # a condition in other letters that leads to the same
    nothing
    # a rule of a member twice
    sound.yaml:81:24 warning[duplicate-item]: duplicate condition `approved`
    # an unknown key
    sound.yaml:38:9 error[unknown-key]: unknown key `interactive` in a rule
    # a predicate
    sound.yaml:62:20 error[unsupported-yet]: `context.x` in `when(…)` is not supported yet
    # an aggregate without members
    sound.yaml:62:20 error[invalid-condition]: `all("Done")` is about members, and there are none
    # an aggregate without quotes
    sound.yaml:83:20 error[invalid-condition]: `all(approved)` does not quote its arguments
    # an aggregate of nothing
    sound.yaml:83:20 error[invalid-condition]: `all("")` has an empty argument
    # a judge of nothing
    sound.yaml:42:20 error[invalid-condition]: `ai()` does not quote what is judged
    # an outcome of nobody
    sound.yaml:83:20 error[unknown-name]: `aproved` is no rule of any member
    # one outcome too many
    sound.yaml:83:20 error[invalid-condition]: `all("approved", "approved", "approved")` names 3 outcomes for 2 members
    # outcomes in the wrong order
    sound.yaml:83:20 error[unknown-name]: `approved` is no rule of `qa-review`
    sound.yaml:83:20 error[unknown-name]: `passed` is no rule of `arch-review`
    # what never holds
    sound.yaml:83:9 warning[join-never-fires]: `all("approved")` of `reviewers` never counts: not every member can have that outcome
    "#);
}

#[test]
fn reports_placeholders_and_monitors() {
    insta::assert_snapshot!(table(&[
        ("an unsafe name", &[("name: 00-plan.md", "name: ../../plan.md")]),
        ("an absolute name", &[("Scope: 01-scope.md", "Scope: /etc/passwd")]),
        ("a name twice", &[("Decisions: 02-decisions.md", "Decisions: 01-scope.md")]),
        ("a file and a folder", &[("Decisions: 02-decisions.md", "Decisions: 01-scope.md/more")]),
        ("a file and a folder of two movements", &[("Decisions: 02-decisions.md", "Decisions: 00-plan.md/more")]),
        ("names that differ in case only", &[("Decisions: 02-decisions.md", "Decisions: 01-Scope.md"), ("name: 00-plan.md", "name: 01-SCOPE.md/plan.md"), ("{report:00-plan.md}", "it")]),
        ("members that write the same", &[
            ("        instruction_template: Review the architecture.\n", "        instruction_template: Review the architecture.\n        output_contracts: { report: [{ name: r.md }] }\n"),
            ("        instruction_template: Review the tests.\n", "        instruction_template: Review the tests.\n        output_contracts: { report: [{ name: r.md }] }\n"),
        ]),
        ("an unknown key", &[("order: Be short.", "ordre: Be short.")]),
        ("a text", &[("        - Scope: 01-scope.md\n", "        - 01-scope.md\n")]),
        ("nothing", &[("        - Scope: 01-scope.md\n", "        - {}\n")]),
        ("a report of nobody", &[("Follow {report:00-plan.md}.", "Follow {report:plan.md} and {report:zzz}.")]),
        ("almost a placeholder", &[("Plan {task}.", "Plan {tasks}. {Task} {previous_reponse} {item} {} {report:} {report.scope} {report_dir} {report.x}")]),
        ("a monitor's placeholder", &[("Plan {task}.", "Plan {task}. {cycle_count}")]),
        ("a monitor of nothing", &[("cycle: [implement, reviewers]", "cycle: [implement]")]),
        ("a monitor of what is not there", &[("cycle: [implement, reviewers]", "cycle: [implement, reviewer]")]),
        ("a monitor of an end", &[("cycle: [implement, reviewers]", "cycle: [implement, COMPLETE]")]),
        ("a monitor without a judge", &[("    judge:\n      persona", "    juge:\n      persona")]),
        ("a judge's next", &[("          next: implement\n", "          next: implment\n")]),
        ("a judge without a next", &[("          next: implement\n", "")]),
        ("a threshold of nothing", &[("threshold: 2", "threshold: 0")]),
        ("a monitor twice", &[("loop_monitors:\n", "loop_monitors:\n  - cycle: [implement, reviewers]\n    judge: { rules: [{ condition: x, next: ABORT }] }\n")]),
        ("a later key", &[("    threshold: 2\n", "    ignore_steps: [plan]\n")]),
    ]), @"
    # an unsafe name
    sound.yaml:29:17 error[report-name]: `../../plan.md` cannot be the name of a report: a part of it is empty, `.`, `..`, or begins or ends with a space
    # an absolute name
    sound.yaml:59:18 error[report-name]: `/etc/passwd` cannot be the name of a report: it is no relative path
    # a name twice
    sound.yaml:60:22 error[report-name]: duplicate report `01-scope.md`
    # a file and a folder
    sound.yaml:60:22 error[report-name]: `01-scope.md` and `01-scope.md/more` cannot both be files
    # a file and a folder of two movements
    sound.yaml:60:22 error[report-name]: `00-plan.md` and `00-plan.md/more` cannot both be files
    # names that differ in case only
    sound.yaml:59:18 warning[report-name]: `01-SCOPE.md/plan.md` and `01-scope.md` are one file where case does not count
    sound.yaml:60:22 warning[report-name]: `01-SCOPE.md/plan.md` and `01-Scope.md` are one file where case does not count
    # members that write the same
    sound.yaml:80:46 warning[report-name]: `arch-review` and `qa-review` write `r.md` at the same time
    # an unknown key
    sound.yaml:30:11 error[unknown-key]: unknown key `ordre` in a report
    # a text
    sound.yaml:59:11 error[wrong-type]: `report` must be a list of `{ name, format }` or `Label: path`, not a text
    # nothing
    sound.yaml:59:11 error[invalid-value]: this report has no name
    # a report of nobody
    implement.md:1:8 warning[unwritten-report]: no step writes the report `plan.md`
    implement.md:1:29 warning[unwritten-report]: no step writes the report `zzz`
    # almost a placeholder
    sound.yaml:26:12 warning[unknown-placeholder]: `{tasks}` stays text
    sound.yaml:26:21 warning[unknown-placeholder]: `{Task}` stays text
    sound.yaml:26:28 warning[unknown-placeholder]: `{previous_reponse}` stays text
    sound.yaml:26:57 warning[unknown-placeholder]: `{report:}` stays text: it names no report
    sound.yaml:26:67 warning[unknown-placeholder]: `{report.scope}` stays text
    # a monitor's placeholder
    sound.yaml:26:20 warning[unused-key]: `{cycle_count}` stays text here
    # a monitor of nothing
    sound.yaml:90:12 error[monitor-never-acts]: a cycle goes through at least two steps
    # a monitor of what is not there
    sound.yaml:90:24 error[unknown-target]: the cycle of `monitor:implement+reviewer` leads to the undefined step `reviewer`
    # a monitor of an end
    sound.yaml:90:24 error[monitor-never-acts]: `COMPLETE` is an end, which no cycle can contain
    # a monitor without a judge
    sound.yaml:90:5 error[missing-key]: `judge` is missing in a loop monitor
    sound.yaml:92:5 error[unknown-key]: unknown key `juge` in a loop monitor
    # a judge's next
    sound.yaml:98:17 error[unknown-target]: `monitor:implement+reviewers` on `Healthy` leads to the undefined step `implment`
    # a judge without a next
    sound.yaml:97:11 error[missing-key]: `next` is missing in a rule
    # a threshold of nothing
    sound.yaml:91:16 error[invalid-value]: `threshold` must be a whole number of at least 1, not 0
    # a monitor twice
    sound.yaml:90:5 warning[monitor-never-acts]: another monitor of `implement+reviewers` always acts first
    # a later key
    nothing
    ");
}

#[test]
fn graphs() {
    let never = [
        ("        next: COMPLETE", "        next: plan"),
        ("      - condition: ai(\"the task is impossible\")\n        next: ABORT\n", ""),
        ("      - condition: Cannot proceed\n        next: ABORT\n", ""),
        ("        - condition: Unproductive\n          next: ABORT\n", ""),
    ];
    insta::assert_snapshot!(table(&[
        ("no way to an end", &never),
        ("nobody comes there", &[("        next: reviewers", "        next: COMPLETE")]),
    ]), @"
    # no way to an end
    sound.yaml:18:11 error[no-way-to-end]: from `plan`, `implement`, `reviewers`, `arch-review`, `qa-review` no path leads to an end
    # nobody comes there
    sound.yaml:66:11 warning[unreachable-step]: `reviewers` is unreachable
    sound.yaml:68:15 warning[unreachable-step]: `arch-review` is unreachable
    sound.yaml:75:15 warning[unreachable-step]: `qa-review` is unreachable
    sound.yaml:90:5 warning[monitor-never-acts]: `monitor:implement+reviewers` never acts: `implement` does not lead to `reviewers`
    ");
}

#[test]
fn files() {
    let text = String::from_utf8(sound()[FILE].clone()).unwrap();
    let with = |bytes: Vec<u8>| {
        let mut files = sound();
        files.insert(FILE.to_owned(), bytes);
        findings_of(load(&files, |_| {}))
    };
    assert_eq!(
        with(format!("\u{feff}{}", text.replace('\n', "\r\n")).into_bytes()),
        "",
        "marks and line ends"
    );
    let cases = [
        ("a tab", text.replace("  - name: plan", "\t- name: plan")),
        ("two documents", format!("{text}---\na: 1\n")),
        ("no mapping", "- a\n".to_owned()),
        ("nothing", String::new()),
        ("deep", format!("a: {}{}\n", "[".repeat(70), "]".repeat(70))),
    ];
    let mut found = String::new();
    for (name, text) in cases {
        found.push_str(&format!("# {name}\n{}", with(text.into_bytes())));
    }
    found.push_str(&format!("# not UTF-8\n{}", with(b"name: \xff\n".to_vec())));
    found.push_str(&format!("# too large\n{}", with(vec![b'#'; (16 << 20) + 1])));
    found.push_str(&format!("# not there\n{}", findings_of(load(&Project::new(), |_| {}))));
    insta::assert_snapshot!(found, @"
    # a tab
    sound.yaml:18:1 error[invalid-yaml]: a tab indents this line
    # two documents
    sound.yaml:101:1 error[invalid-yaml]: there is another document after `---`
    # no mapping
    sound.yaml:1:1 error[wrong-type]: the workflow must be an object, not a list
    # nothing
    sound.yaml:1:1 error[invalid-yaml]: the file is empty
    # deep
    sound.yaml:1:67 error[too-deep]: the nesting is deeper than 64 levels
    # not UTF-8
    sound.yaml:1:7 error[unreadable-file]: `.takt/pieces/sound.yaml` is not UTF-8 from here on
    # too large
    sound.yaml:1:1 error[unreadable-file]: `.takt/pieces/sound.yaml` is larger than 16 MiB
    # not there
    sound.yaml:1:1 error[unreadable-file]: there is no `.takt/pieces/sound.yaml`
    ");
}

#[test]
fn aliases_are_expanded() {
    let edits = [
        (
            "        rules:\n          - condition: approved\n          - condition: needs_fix\n      - name",
            "        rules: &verdicts\n          - condition: approved\n          - condition: needs_fix\n      - name",
        ),
        (
            "        rules:\n          - condition: approved\n          - condition: needs_fix\n    rules",
            "        rules: *verdicts\n    rules",
        ),
    ];
    assert_eq!(broken(&edits), "");
    let draft = load(&changed(&edits), |_| {}).draft;
    assert_eq!(
        crate::piece::piece_support::structure(&draft).lines().count(),
        crate::piece::piece_support::structure(&load(&sound(), |_| {}).draft).lines().count()
    );
}
