//! A flow as text and as JSON: everything that a run follows, and nothing else.

pub(crate) mod completion_rule;
mod json;
mod page;
mod prompt;
pub(crate) mod wording;

pub use json::show_json;
pub(crate) use page::list_implied_edges;
pub use page::render_flow;
pub use prompt::{KnownValues, prompt_preview};

#[cfg(test)]
mod tests {
    use super::{render_flow, show_json};
    use crate::testing::{piece, registry};
    use cuegate_flow::model::{
        Actions, Conduct, IssueClosure, IssueRule, Reaction,
        sandbox::{Host, Network, SandboxPolicy, SandboxRule},
    };

    #[test]
    fn registry_as_text() {
        insta::assert_snapshot!(render_flow(&registry()), @"
        iterator (registry-closing), 4 steps
          entry     initial.fix
          limit     at most 8 iterations
          run       completed when the flow ends
          all steps abort → @aborted

        parameters
          --issue  number  required     The issue to work on
          --label  text    default bug  Which issues

        initial.fix  [work]  Understand the issue
          prompt    2 lines, reads issue
          answer    by schema; outcome from action
          allowed   acceptEdits, all tools
          session   continues main
          handoff   approach
          routes    next   → continuation.fix
                    repeat → initial.fix

        continuation.fix  [work]  Fix it
          prompt    1 line, reads approach
          answer    any text; outcome from action
          allowed   acceptEdits, all tools
          session   continues main
          input     approach ← initial.fix.approach (default none yet)
          routes    next    → by next: again → initial.fix, else → continuation.fix
                    handoff → closure.fix

        closure.fix  [work]  Close
          prompt    1 line
          answer    any text; outcome from action
          allowed   plan, tools Read, Grep
          session   continues main
          routes    closing → closure.fix/validators

        closure.fix/validators  [commands] [no iteration]
          runs      tests  cargo test              passes: exit 0          10 min
                    clean  git status --porcelain  passes: prints nothing  10 min
          routes    all pass                 → @completed
                    tests fails, clean fails → the step that handed off (continuation.fix, closure.fix)  (at
                    most 2 times; retry prompt of 2 lines)
                    then                     → @failed (validators of `closure.fix` failed)
        ");
    }

    #[test]
    fn settings_for_every_answer() {
        let mut flow = registry();
        let types = Some(vec!["note".into(), "drop".into()]);
        let handlers = vec![("note".into(), Reaction::Log)];
        flow.conduct = Conduct {
            auto_response: Some("Choose the\nsimplest.".into()),
            actions: Some(Actions { marker: "json".into(), types, handlers }),
            inspects: true,
            sandbox: SandboxRule::Required(SandboxPolicy {
                network: Network::Custom(vec![Host::parse("*.example.com").unwrap()]),
                writable: vec!["~/.cache".into()],
            }),
            issue: Some(IssueRule {
                in_progress: Some("in-progress".into()),
                blocked: None,
                add: vec!["done".into()],
                remove: vec!["in-progress".into()],
                closure: IssueClosure { labels: true, closes: true },
            }),
        };
        let shown = render_flow(&flow);
        let header = shown.split("\n\n").next().unwrap();
        let lines: Vec<&str> = header.lines().skip(5).map(str::trim_start).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        questions up to 5 per visit are answered with: Choose the simplest.
        actions   note → log, drop → ignored
        issue     at the start: add the label `in-progress` (settable)
        issue     when completed: labels: add `done`, remove `in-progress` (settable)
        issue     when completed: close the issue (settable)
        checks    each answer against its schema
        sandbox   can write to the working tree, ~/.cache; can connect to *.example.com
        ");
        insta::assert_snapshot!(show_json(&flow)["conduct"], @r#"{"auto_response":"Choose the\nsimplest.","actions":{"marker":"json","types":["note","drop"],"handlers":{"note":"log"}},"inspects":true,"issue":{"in_progress":"in-progress","blocked":null,"add":["done"],"remove":["in-progress"],"closure":"label-and-close"},"sandbox":{"network":"custom","hosts":["*.example.com"],"writable":["~/.cache"]}}"#);
    }

    #[test]
    fn piece_as_text() {
        insta::assert_snapshot!(render_flow(&piece()), @r#"
        review (takt), 8 steps
          entry     plan
          limit     at most 12 iterations
          run       completed when the flow ends

        monitors
          monitor:reviewers+fix decides after 2 rounds of reviewers → fix

        plan  [work]
          prompt    1 line
          answer    any text; outcome from action
          allowed   acceptEdits, all tools
          session   continues main
          routes    ready   → reviewers
                    unclear → ask_user

        reviewers  [parallel]
          members   security, style (2 at a time)
          joins     all "approved" → all("approved")
                    any "needs_fix" → any("needs_fix")
          routes    all("approved")  → @completed
                    any("needs_fix") → fix

        security  [work]
          prompt    1 line
          answer    any text; outcome from action
          allowed   plan, all tools
          session   its own, persona reviewer

        style  [work]
          prompt    1 line
          answer    any text; outcome from action
          allowed   plan, all tools
          session   its own, persona reviewer

        fix  [work]
          prompt    1 line
          answer    any text; outcome from action, then judge fix/judge
          allowed   acceptEdits, all tools
          session   continues main
          routes    done → reviewers

        fix/judge  [judge] [no iteration]
          prompt    1 line
          answer    any text; outcome from action
          allowed   acceptEdits, all tools
          session   its own

        monitor:reviewers+fix  [judge] [no iteration]
          prompt    1 line
          answer    any text; outcome from action
          allowed   acceptEdits, all tools
          session   its own
          routes    healthy → reviewers
                    stuck   → plan

        ask_user  [person] [no iteration]
          question  to a person, 2 lines
          routes    answered → plan
        "#);
    }

    #[test]
    fn flows_as_json() {
        let flow = show_json(&registry());
        assert_eq!((&flow["schema"], &flow["entry"]), (&"cuegate/flow/v1".into(), &"initial.fix".into()));
        insta::assert_snapshot!(serde_json::to_string_pretty(&flow["steps"][1]).unwrap(), @r#"
        {
          "name": "continuation.fix",
          "title": "Fix it",
          "kind": "work",
          "counts": true,
          "prompt": {
            "lines": 1,
            "reads": [
              "approach"
            ]
          },
          "system": null,
          "schema": false,
          "persona": null,
          "reports": [],
          "model": null,
          "later_models": [],
          "session": "continues main",
          "permission": "acceptEdits",
          "tools": "*",
          "gate": {
            "readers": [
              {
                "field": "action",
                "words": {
                  "next": "next",
                  "handoff": "handoff",
                  "abort": "abort"
                }
              }
            ]
          },
          "inputs": [
            {
              "name": "approach",
              "step": "initial.fix",
              "key": "approach",
              "required": false,
              "default": "none yet"
            }
          ],
          "handoff": [],
          "selectors": [],
          "when": null,
          "edges": [
            {
              "on": "next",
              "to": {
                "select": "next",
                "cases": {
                  "again": "initial.fix"
                },
                "default": "continuation.fix"
              },
              "bound": null,
              "resets": [],
              "remedy": null,
              "hands_off": false,
              "again": false,
              "implied": false,
              "label": null
            },
            {
              "on": "handoff",
              "to": {
                "step": "closure.fix"
              },
              "bound": null,
              "resets": [],
              "remedy": null,
              "hands_off": true,
              "again": false,
              "implied": false,
              "label": null
            },
            {
              "on": "abort",
              "to": {
                "end": "@aborted"
              },
              "bound": null,
              "resets": [],
              "remedy": null,
              "hands_off": false,
              "again": false,
              "implied": true,
              "label": null
            }
          ]
        }
        "#);
        insta::assert_snapshot!(flow["steps"][3].to_string(), @r#"{"name":"closure.fix/validators","title":"closure.fix/validators","kind":"commands","counts":false,"commands":[{"name":"tests","command":"cargo test","passes":"exit 0","timeout_ms":600000},{"name":"clean","command":"git status --porcelain","passes":"prints nothing","timeout_ms":600000}],"gate":{"exit":true},"inputs":[],"handoff":[],"selectors":[],"when":null,"edges":[{"on":"pass","to":{"end":"@completed"},"bound":null,"resets":[],"remedy":null,"hands_off":false,"again":false,"implied":false,"label":null},{"on":"fail(0)","to":{"origin":["continuation.fix","closure.fix"]},"bound":{"counter":"remedies:closure.fix","max":2},"resets":[],"remedy":{"lines":2,"reads":[]},"hands_off":false,"again":false,"implied":false,"label":null},{"on":"fail(0)","to":{"end":"@failed (validators of `closure.fix` failed)"},"bound":null,"resets":[],"remedy":null,"hands_off":false,"again":false,"implied":false,"label":null},{"on":"fail(1)","to":{"origin":["continuation.fix","closure.fix"]},"bound":{"counter":"remedies:closure.fix","max":2},"resets":[],"remedy":{"lines":2,"reads":[]},"hands_off":false,"again":false,"implied":false,"label":null},{"on":"fail(1)","to":{"end":"@failed (validators of `closure.fix` failed)"},"bound":null,"resets":[],"remedy":null,"hands_off":false,"again":false,"implied":false,"label":null}]}"#);
        let piece = show_json(&piece());
        insta::assert_snapshot!(piece["steps"][1].to_string(), @r#"{"name":"reviewers","title":"reviewers","kind":"parallel","counts":true,"members":["security","style"],"width":2,"gate":{"join":[{"when":"all \"approved\"","outcome":"all(\"approved\")"},{"when":"any \"needs_fix\"","outcome":"any(\"needs_fix\")"}]},"inputs":[],"handoff":[],"selectors":[],"when":null,"edges":[{"on":"all(\"approved\")","to":{"end":"@completed"},"bound":null,"resets":[],"remedy":null,"hands_off":false,"again":false,"implied":false,"label":null},{"on":"any(\"needs_fix\")","to":{"step":"fix"},"bound":null,"resets":[],"remedy":null,"hands_off":false,"again":false,"implied":false,"label":null}]}"#);
        insta::assert_snapshot!(piece["monitors"].to_string(), @r#"[{"name":"monitor:reviewers+fix","cycle":["reviewers","fix"],"ignored":[],"threshold":2,"judge":"monitor:reviewers+fix"}]"#);
    }
}
