//! From definition text to the representation.

use crate::support::{DIR, dump, findings, load, sound};

#[test]
fn a_sound_agent_has_nothing_to_find() {
    assert_eq!(findings(&sound(), DIR), "");
}

#[test]
fn a_sound_agent_lowered() {
    let loaded = load(&sound(), DIR);
    assert!(loaded.run.needs_task);
    insta::assert_snapshot!(dump(&loaded.draft), @r#"
    fixer (registry-closing) enters initial.fix []
    Flow, at most 20 iterations
    param issue --issue Number required
    param baseBranch --base-branch Text = main
    counter 0: closure.fix attempts

    initial.fix “Plan”
      AcceptEdits All
      ask Work, continues run, model sonnet, schema Some(SchemaId(0))
      system “You fix issue <param issue> of {unknown}.⏎”
      prompt “Be kind. ⏎Plan #<param issue> against <param baseBranch>: <task>⏎”
      reads next_action.action: next continue=next pass=next repeat retry=repeat wait=repeat fail=repeat abort
      leaves approach = plan.approach
      next → continuation.fix
      repeat → initial.fix
      abort → Aborted, implied

    continuation.fix “Fix”
      AcceptEdits All
      ask Work, continues run, model haiku, schema Some(SchemaId(1))
      system “You fix issue <param issue> of {unknown}.⏎”
      prompt “Approach: <input approach> / <input approach>. Last: <PreviousSummary>⏎”
      needs approach = initial.fix . approach
      reads next_action.action: repeat retry=repeat wait=repeat fail=repeat handoff abort
      leaves status = status
      repeat → continuation.fix
      handoff → closure.fix, hands off
      abort → Aborted, implied

    closure.fix “Close”
      Plan All
      ask Work, continues run, model sonnet, schema Some(SchemaId(2))
      system “You fix issue <param issue> of {unknown}.⏎”
      prompt “Close #<param issue>, <Remaining> left.⏎”
      reads next_action.action: closing done=closing finished=closing repeat retry=repeat wait=repeat fail=repeat abort
      else repeat
      closing → closure.fix@validators
      repeat → closure.fix
      abort → Aborted, implied

    closure.fix@validators “Clean tree” (not counted)
      Plan All
      exec git-clean `git status --porcelain` Empty ["changedFiles: ChangedFiles"]
      gate Exit
      pass → Completed
      fail(0) → origin among continuation.fix, at most 2 on counter 0, with “<if changedFiles>Commit:<each changedFiles> <this><end><else>Commit for #<param issue>.<end>⏎”
      fail(0) → Failed("validator `git-clean` still fails after 2 retries")
    "#);
}
