//! Real definitions load without errors.

use std::collections::BTreeMap;

use crate::disk;
use crate::support::{Project, edit, findings};

const ITERATOR: &str = "closing/iterator";

fn corpus() -> Option<Project> {
    Some(disk::files_below(&disk::shared("corpora/climpt")?))
}

/// How often each code was found, errors first.
fn counts(files: &Project, agent_dir: &str) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in findings(files, agent_dir).lines() {
        let (head, _) = line.split_once("]: ").unwrap();
        *counts.entry(head.split_once(' ').unwrap().1.to_owned() + "]").or_default() += 1;
    }
    counts.iter().map(|(code, count)| format!("{count} {code}\n")).collect()
}

#[test]
fn the_iterator_as_it_is() {
    let Some(files) = corpus() else { return };
    insta::assert_snapshot!(counts(&files, ITERATOR), @"
    14 warning[empty-custom-variable]
    2 warning[handoff-not-in-schema]
    4 warning[handoff-to-work]
    20 warning[inert-fallback]
    6 warning[self-next]
    9 warning[stray-key]
    16 warning[unknown-fallback-key]
    27 warning[unknown-variable]
    14 warning[unreachable-step]
    3 warning[unsupported-yet]
    1 warning[unused-failure-pattern]
    4 warning[unused-parameter]
    1 warning[unused-section]
    5 warning[unused-validator]
    1 warning[unused-variable]
    ");
}

#[test]
fn the_iterator_counting_its_iterations() {
    let Some(files) = corpus() else { return };
    let agent = format!("{ITERATOR}/agent.json");
    let registry = format!("{ITERATOR}/steps_registry.json");
    let only = |path: &str| Project::from([(path.to_owned(), files[path].clone())]);
    let mut files = files.clone();
    files.extend(edit(
        &edit(&only(&agent), "\"poll:state\"", "\"count:iteration\""),
        "\"maxIterations\": 500",
        "\"maxIterations\": 20",
    ));
    files.extend(edit(
        &only(&registry),
        "\"count:iteration\": \"initial.iteration\"",
        "\"count:iteration\": \"initial.issue\"",
    ));
    insta::assert_snapshot!(counts(&files, ITERATOR), @"
    14 warning[empty-custom-variable]
    2 warning[handoff-not-in-schema]
    4 warning[handoff-to-work]
    20 warning[inert-fallback]
    6 warning[self-next]
    9 warning[stray-key]
    16 warning[unknown-fallback-key]
    27 warning[unknown-variable]
    14 warning[unreachable-step]
    2 warning[unsupported-yet]
    1 warning[unused-failure-pattern]
    4 warning[unused-parameter]
    1 warning[unused-section]
    5 warning[unused-validator]
    1 warning[unused-variable]
    1 warning[verdict-past-validators]
    ");
}

#[test]
fn the_other_generation_is_one_finding() {
    let Some(files) = corpus() else { return };
    insta::assert_snapshot!(findings(&files, "complete/iterator"), @"
    agent.json:9:23 warning[unsupported-yet]: the verdict `poll:state` is not evaluated yet: the run ends by `closing`, or at its limit of 500 iterations
    agent.json:16:18 warning[unsupported-yet]: `preCloseValidation` has no effect: nothing but the registry guards the end of a run
    agent.json:28:5 warning[unused-parameter]: no prompt reads the parameter `iterateMax`, so that giving it changes nothing
    agent.json:35:5 warning[unused-parameter]: no prompt reads the parameter `resume`, so that giving it changes nothing
    agent.json:42:5 warning[unused-parameter]: no prompt reads the parameter `branch`, so that giving it changes nothing
    agent.json:48:5 warning[unused-parameter]: no prompt reads the parameter `baseBranch`, so that giving it changes nothing
    agent.json:60:16 warning[unsupported-yet]: `actions` are not supported yet: action blocks in answers are not handled
    agent.json:65:16 warning[unsupported-yet]: `github` is not supported yet: issues and labels stay as they are
    agent.json:73:16 warning[unsupported-yet]: `execution.finalize` is not supported yet: what the run changed is not merged, pushed or proposed
    agent.json:76:14 warning[unsupported-yet]: `logging` is not supported yet: no log files are written
    f_default.md:13:1 warning[empty-custom-variable]: nothing fills `summary_section` of `complete/iterator/prompts/steps/complete/externalState/f_default.md`
    f_default.md:2:1 warning[stray-key]: `params` in the front matter of `complete/iterator/prompts/steps/complete/issue/f_default.md` have no effect
    f_default.md:4:1 warning[stray-key]: `input_text` in the front matter of `complete/iterator/prompts/steps/complete/issue/f_default.md` has no effect
    f_default.md:15:1 warning[empty-custom-variable]: nothing fills `summary_section` of `complete/iterator/prompts/steps/continuation/externalState/f_default.md`
    f_default.md:14:1 warning[empty-custom-variable]: nothing fills `project_header`, `cross_repo_note`, `summary_section` of `complete/iterator/prompts/steps/continuation/issue/f_default.md`
    f_default.md:14:60 warning[empty-custom-variable]: nothing fills `remaining_text`, `summary_section` of `complete/iterator/prompts/steps/continuation/iterate/f_default.md`
    f_default.md:13:1 warning[empty-custom-variable]: nothing fills `issue_content` of `complete/iterator/prompts/steps/initial/externalState/f_default.md`
    f_default.md:13:1 warning[empty-custom-variable]: nothing fills `project_context_section`, `issue_content`, `cross_repo_note` of `complete/iterator/prompts/steps/initial/issue/f_default.md`
    f_again.md:21:1 warning[empty-custom-variable]: nothing fills `review_summary`, `review_findings` of `complete/iterator/prompts/steps/initial/project/f_again.md`
    f_preparation.md:18:68 warning[empty-custom-variable]: nothing fills `desc_section`, `readme_section`, `issue_list` of `complete/iterator/prompts/steps/initial/project/f_preparation.md`
    f_preparation_empty.md:21:68 warning[empty-custom-variable]: nothing fills `desc_section`, `readme_section` of `complete/iterator/prompts/steps/initial/project/f_preparation_empty.md`
    f_processing_empty.md:22:23 warning[empty-custom-variable]: nothing fills `desc_section`, `readme_section` of `complete/iterator/prompts/steps/initial/project/f_processing_empty.md`
    f_review.md:22:1 warning[empty-custom-variable]: nothing fills `completed_list` of `complete/iterator/prompts/steps/initial/project/f_review.md`
    f_context.md:24:1 warning[empty-custom-variable]: nothing fills `desc_section`, `readme_section`, `remaining_list`, `more_text` of `complete/iterator/prompts/steps/section/project/f_context.md`
    steps_registry.json:11:5 warning[unknown-verdict-type]: `issue` in `entryStepMapping` is no completion type, so that no run begins by it
    steps_registry.json:13:5 warning[unknown-verdict-type]: `iterate` in `entryStepMapping` is no completion type, so that no run begins by it
    steps_registry.json:47:5 warning[unused-failure-pattern]: no validator names the failure pattern `file-not-exists`
    steps_registry.json:78:5 warning[unused-validator]: no validation names the validator `tests-pass`, so that nothing runs it
    steps_registry.json:98:5 warning[unused-validator]: no validation names the validator `lint-check`, so that nothing runs it
    steps_registry.json:108:5 warning[unused-validator]: no validation names the validator `format-check`, so that nothing runs it
    steps_registry.json:118:5 warning[unused-validator]: no validation names the validator `branch-pushed`, so that nothing runs it
    steps_registry.json:128:5 warning[unused-validator]: no validation names the validator `branch-merged`, so that nothing runs it
    steps_registry.json:142:5 warning[unused-word]: the schema of `complete.issue` lists `continue`, `retry`, `wait` at `next_action.action`, which its gate does not allow
    steps_registry.json:157:19 warning[unbound-step-id]: the schema of `complete.issue` takes any text as `stepId`
    steps_registry.json:174:7 warning[stray-key]: `outputSchemaRef` has no effect in `completionSteps.complete.externalState`
    steps_registry.json:183:5 warning[unknown-variable]: the prompt of `initial.issue` reads `issue_number`, which nobody gives
    steps_registry.json:186:7 warning[stray-key]: `type` has no effect in a step
    steps_registry.json:190:22 warning[unknown-fallback-key]: `issue_initial_default` is no built-in prompt
    steps_registry.json:195:19 warning[unbound-step-id]: the schema of `initial.issue` takes any text as `stepId`
    steps_registry.json:200:9 warning[stray-key]: `targetField` has no effect in `structuredGate`
    steps_registry.json:211:5 warning[unknown-variable]: the prompt of `continuation.issue` reads `issue_number`, which nobody gives
    steps_registry.json:217:22 warning[unknown-fallback-key]: `issue_continuation_default` is no built-in prompt
    steps_registry.json:222:19 warning[unbound-step-id]: the schema of `continuation.issue` takes any text as `stepId`
    steps_registry.json:228:27 warning[handoff-not-in-schema]: `continuation.issue` is to leave `progress.completed_files`, which its schema does not provide
    steps_registry.json:228:55 warning[handoff-not-in-schema]: `continuation.issue` is to leave `progress.pending_tasks`, which its schema does not provide
    steps_registry.json:237:5 warning[unused-section]: no prompt includes `section.projectcontext`
    steps_registry.json:243:22 warning[unknown-fallback-key]: `section_project_context_default` is no built-in prompt
    steps_registry.json:248:5 warning[incomplete-domain]: the domain `project` has no `complete.project`
    steps_registry.json:248:5 warning[unknown-variable]: the prompt of `initial.project.preparation` reads `label_info`, which nobody gives
    steps_registry.json:248:5 warning[unknown-variable]: the prompt of `initial.project.preparation` reads `project_number`, which nobody gives
    steps_registry.json:248:5 warning[unknown-variable]: the prompt of `initial.project.preparation` reads `project_title`, which nobody gives
    steps_registry.json:248:5 warning[unknown-variable]: the prompt of `initial.project.preparation` reads `total_issues`, which nobody gives
    steps_registry.json:248:5 warning[unreachable-step]: no run can come to `initial.project.preparation`
    steps_registry.json:254:22 warning[unknown-fallback-key]: `project_preparation_default` is no built-in prompt
    steps_registry.json:259:19 warning[unbound-step-id]: the schema of `initial.project.preparation` takes any text as `stepId`
    steps_registry.json:270:33 error[complete-elsewhere]: `complete` of `initial.project.preparation` leads to `initial.project.review`, which is no `complete.*` step
    steps_registry.json:274:5 warning[unknown-variable]: the prompt of `initial.project.preparationempty` reads `label_filter`, which nobody gives
    steps_registry.json:274:5 warning[unknown-variable]: the prompt of `initial.project.preparationempty` reads `label_info`, which nobody gives
    steps_registry.json:274:5 warning[unknown-variable]: the prompt of `initial.project.preparationempty` reads `project_number`, which nobody gives
    steps_registry.json:274:5 warning[unknown-variable]: the prompt of `initial.project.preparationempty` reads `project_title`, which nobody gives
    steps_registry.json:274:5 warning[unreachable-step]: no run can come to `initial.project.preparationempty`
    steps_registry.json:281:22 warning[unknown-fallback-key]: `project_preparation_no_issues_default` is no built-in prompt
    steps_registry.json:286:19 warning[unbound-step-id]: the schema of `initial.project.preparationempty` takes any text as `stepId`
    steps_registry.json:290:24 warning[unused-word]: the schema of `initial.project.preparationempty` lists `retry`, `wait` at `next_action.action`, which its gate does not allow
    steps_registry.json:296:33 error[complete-elsewhere]: `complete` of `initial.project.preparationempty` leads to `initial.project.complete`, which is no `complete.*` step
    steps_registry.json:297:30 warning[stray-key]: `abort` gives the run up, so that it never comes to `initial.project.complete`
    steps_registry.json:301:5 warning[unknown-variable]: the prompt of `initial.project.processingempty` reads `label_filter`, which nobody gives
    steps_registry.json:301:5 warning[unknown-variable]: the prompt of `initial.project.processingempty` reads `label_info`, which nobody gives
    steps_registry.json:301:5 warning[unknown-variable]: the prompt of `initial.project.processingempty` reads `project_number`, which nobody gives
    steps_registry.json:301:5 warning[unknown-variable]: the prompt of `initial.project.processingempty` reads `project_title`, which nobody gives
    steps_registry.json:301:5 warning[unreachable-step]: no run can come to `initial.project.processingempty`
    steps_registry.json:308:22 warning[unknown-fallback-key]: `project_processing_empty_default` is no built-in prompt
    steps_registry.json:313:19 warning[unbound-step-id]: the schema of `initial.project.processingempty` takes any text as `stepId`
    steps_registry.json:317:24 warning[unused-word]: the schema of `initial.project.processingempty` lists `retry`, `wait` at `next_action.action`, which its gate does not allow
    steps_registry.json:323:33 error[complete-elsewhere]: `complete` of `initial.project.processingempty` leads to `initial.project.complete`, which is no `complete.*` step
    steps_registry.json:327:5 warning[unknown-variable]: the prompt of `initial.project.review` reads `issues_completed`, which nobody gives
    steps_registry.json:327:5 warning[unknown-variable]: the prompt of `initial.project.review` reads `label_filter`, which nobody gives
    steps_registry.json:327:5 warning[unknown-variable]: the prompt of `initial.project.review` reads `label_info`, which nobody gives
    steps_registry.json:327:5 warning[unknown-variable]: the prompt of `initial.project.review` reads `project_number`, which nobody gives
    steps_registry.json:327:5 warning[unknown-variable]: the prompt of `initial.project.review` reads `project_title`, which nobody gives
    steps_registry.json:327:5 warning[unreachable-step]: no run can come to `initial.project.review`
    steps_registry.json:333:22 warning[unknown-fallback-key]: `project_review_default` is no built-in prompt
    steps_registry.json:338:19 warning[unbound-step-id]: the schema of `initial.project.review` takes any text as `stepId`
    steps_registry.json:349:33 error[complete-elsewhere]: `complete` of `initial.project.review` leads to `initial.project.complete`, which is no `complete.*` step
    steps_registry.json:353:5 warning[unknown-variable]: the prompt of `initial.project.again` reads `label_info`, which nobody gives
    steps_registry.json:353:5 warning[unknown-variable]: the prompt of `initial.project.again` reads `project_number`, which nobody gives
    steps_registry.json:353:5 warning[unknown-variable]: the prompt of `initial.project.again` reads `project_title`, which nobody gives
    steps_registry.json:353:5 warning[unreachable-step]: no run can come to `initial.project.again`
    steps_registry.json:359:22 warning[unknown-fallback-key]: `project_again_default` is no built-in prompt
    steps_registry.json:364:19 warning[unbound-step-id]: the schema of `initial.project.again` takes any text as `stepId`
    steps_registry.json:375:33 error[complete-elsewhere]: `complete` of `initial.project.again` leads to `initial.project.review`, which is no `complete.*` step
    steps_registry.json:379:5 warning[unknown-variable]: the prompt of `initial.project.complete` reads `issues_completed`, which nobody gives
    steps_registry.json:379:5 warning[unknown-variable]: the prompt of `initial.project.complete` reads `label_info`, which nobody gives
    steps_registry.json:379:5 warning[unknown-variable]: the prompt of `initial.project.complete` reads `project_number`, which nobody gives
    steps_registry.json:379:5 warning[unreachable-step]: no run can come to `initial.project.complete`
    steps_registry.json:385:22 warning[unknown-fallback-key]: `project_complete_default` is no built-in prompt
    steps_registry.json:390:19 warning[unbound-step-id]: the schema of `initial.project.complete` takes any text as `stepId`
    steps_registry.json:394:24 warning[unused-word]: the schema of `initial.project.complete` lists `continue`, `retry`, `wait` at `next_action.action`, which its gate does not allow
    steps_registry.json:399:33 error[complete-elsewhere]: `complete` of `initial.project.complete` leads to `initial.project.complete`, which is no `complete.*` step
    steps_registry.json:403:5 warning[unreachable-step]: no run can come to `continuation.project.preparation`
    steps_registry.json:409:22 warning[unknown-fallback-key]: `project_continuation_preparation_default` is no built-in prompt
    steps_registry.json:414:19 warning[unbound-step-id]: the schema of `continuation.project.preparation` takes any text as `stepId`
    steps_registry.json:425:33 error[complete-elsewhere]: `complete` of `continuation.project.preparation` leads to `initial.project.review`, which is no `complete.*` step
    steps_registry.json:429:5 warning[unknown-variable]: the prompt of `continuation.project.processingdone` reads `issues_completed`, which nobody gives
    steps_registry.json:429:5 warning[unknown-variable]: the prompt of `continuation.project.processingdone` reads `project_number`, which nobody gives
    steps_registry.json:429:5 warning[unreachable-step]: no run can come to `continuation.project.processingdone`
    steps_registry.json:436:22 warning[unknown-fallback-key]: `project_continuation_processing_done_default` is no built-in prompt
    steps_registry.json:441:19 warning[unbound-step-id]: the schema of `continuation.project.processingdone` takes any text as `stepId`
    steps_registry.json:445:24 warning[unused-word]: the schema of `continuation.project.processingdone` lists `retry`, `wait` at `next_action.action`, which its gate does not allow
    steps_registry.json:451:33 error[complete-elsewhere]: `complete` of `continuation.project.processingdone` leads to `initial.project.complete`, which is no `complete.*` step
    steps_registry.json:455:5 warning[unreachable-step]: no run can come to `continuation.project.review`
    steps_registry.json:461:22 warning[unknown-fallback-key]: `project_continuation_review_default` is no built-in prompt
    steps_registry.json:466:19 warning[unbound-step-id]: the schema of `continuation.project.review` takes any text as `stepId`
    steps_registry.json:477:33 error[complete-elsewhere]: `complete` of `continuation.project.review` leads to `initial.project.complete`, which is no `complete.*` step
    steps_registry.json:481:5 warning[unreachable-step]: no run can come to `continuation.project.again`
    steps_registry.json:487:22 warning[unknown-fallback-key]: `project_continuation_again_default` is no built-in prompt
    steps_registry.json:492:19 warning[unbound-step-id]: the schema of `continuation.project.again` takes any text as `stepId`
    steps_registry.json:503:33 error[complete-elsewhere]: `complete` of `continuation.project.again` leads to `initial.project.review`, which is no `complete.*` step
    steps_registry.json:507:5 warning[unknown-variable]: the prompt of `continuation.project.complete` reads `project_number`, which nobody gives
    steps_registry.json:507:5 warning[unreachable-step]: no run can come to `continuation.project.complete`
    steps_registry.json:513:22 warning[unknown-fallback-key]: `project_continuation_complete_default` is no built-in prompt
    steps_registry.json:518:19 warning[unbound-step-id]: the schema of `continuation.project.complete` takes any text as `stepId`
    steps_registry.json:522:24 warning[unused-word]: the schema of `continuation.project.complete` lists `continue`, `retry`, `wait` at `next_action.action`, which its gate does not allow
    steps_registry.json:527:33 error[complete-elsewhere]: `complete` of `continuation.project.complete` leads to `continuation.project.complete`, which is no `complete.*` step
    steps_registry.json:531:5 warning[incomplete-domain]: the domain `iterate` has no `complete.iterate`
    steps_registry.json:531:5 warning[unknown-variable]: the prompt of `initial.iterate` reads `iterations`, which nobody gives
    steps_registry.json:537:22 warning[unknown-fallback-key]: `iterate_initial_default` is no built-in prompt
    steps_registry.json:542:19 warning[unbound-step-id]: the schema of `initial.iterate` takes any text as `stepId`
    steps_registry.json:553:33 error[complete-elsewhere]: `complete` of `initial.iterate` leads to `initial.iterate`, which is no `complete.*` step
    steps_registry.json:563:22 warning[unknown-fallback-key]: `iterate_continuation_default` is no built-in prompt
    steps_registry.json:564:47 warning[unused-variable]: `uvVariables` list `remaining`, which the prompt of `continuation.iterate` does not read
    steps_registry.json:568:19 warning[unbound-step-id]: the schema of `continuation.iterate` takes any text as `stepId`
    steps_registry.json:579:33 error[complete-elsewhere]: `complete` of `continuation.iterate` leads to `continuation.iterate`, which is no `complete.*` step
    steps_registry.json:583:5 error[unknown-variable]: the prompt of `initial.externalState` reads `issue_number`, which nobody gives
    steps_registry.json:586:7 warning[stray-key]: `type` has no effect in a step
    steps_registry.json:590:22 warning[unknown-fallback-key]: `externalState_initial_default` is no built-in prompt
    steps_registry.json:610:5 error[unknown-variable]: the prompt of `continuation.externalState` reads `issue_number`, which nobody gives
    steps_registry.json:613:7 warning[stray-key]: `type` has no effect in a step
    steps_registry.json:617:22 warning[unknown-fallback-key]: `externalState_continuation_default` is no built-in prompt
    steps_registry.json:637:5 error[unknown-variable]: the prompt of `complete.externalState` reads `issue_number`, which nobody gives
    steps_registry.json:640:7 warning[stray-key]: `type` has no effect in a step
    steps_registry.json:644:22 warning[unknown-fallback-key]: `externalState_complete_default` is no built-in prompt
    steps_registry.json:653:24 warning[unused-word]: the schema of `complete.externalState` lists `continue`, `retry`, `wait` at `next_action.action`, which its gate does not allow
    ");
}
