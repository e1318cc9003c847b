//! The table of behaviours and providers. Each cell is a test, named after its row and column.

use crate::{
    lack,
    scene::Who,
    show::{answers, ends, faults, sessions, tools, usage},
    table::{
        self, Behaviour,
        Cell::{No, So, Yes},
    },
};

macro_rules! behaviours {
    ($(section $section:literal $($title:literal $name:ident $show:path { $($who:ident $cell:expr),* $(,)? })*)*) => {
        /// All behaviours by section, in the order of the page.
        pub const SECTIONS: &[(&str, &[Behaviour])] = &[
            $(($section, &[$(Behaviour { title: $title, cells: &[$((Who::$who, $cell)),*] }),*])),*
        ];

        $($(mod $name {
            use super::*;

            $(#[test]
            fn $who() {
                table::run(Who::$who, $show, $cell);
            })*
        })*)*
    };
}

behaviours! {
    section "Calls"
    "answers in text" answers_in_words answers::text { claude Yes, codex Yes, openai Yes, scripted Yes }
    "answers with a schema" answers_by_a_schema answers::structured { claude Yes, codex Yes, openai Yes, scripted Yes }
    "returns an answer that ignores the schema, so it can be repaired" answers_nevertheless answers::unstructured {
        claude Yes, codex Yes, openai Yes,
    }
    "sends the persona separately from the prompt" persona_apart answers::system_prompt {
        claude Yes, codex Yes, openai Yes,
    }
    "uses the named model" named_model answers::model { claude Yes, codex Yes, openai Yes }
    "sends a prompt as text: commands and `@file` in it have no effect" prompt_is_text answers::prompt_is_text {
        claude Yes, codex Yes, openai Yes,
    }
    "accepts a long prompt" long_prompt answers::long_prompt { claude Yes, codex Yes, openai Yes }
    "loads the project's settings and not the user's" project_settings answers::settings_of_the_project_only {
        claude Yes,
        codex No("it always reads the user's `AGENTS.md`; it ignores the user's `config.toml` and rules", lack::project_only),
    }
    "checks whether it works on this machine, without network access" inspection answers::inspection {
        claude Yes, codex Yes, openai Yes,
    }

    section "Tools and files"
    "edits files and reports the edits" edits tools::edits {
        claude Yes, codex Yes, openai No("its model has no tools", lack::tools), scripted Yes,
    }
    "commits if it may edit" commits tools::commits {
        claude So("only with a list of tools that contains `Bash`; otherwise a command needs an approval"),
        codex So("unless `commits = false`"),
    }
    "`plan` writes nothing" plan_writes_nothing tools::plan_writes_nothing { claude Yes, codex So("by its sandbox") }
    "`default` writes nothing" default_writes_nothing tools::default_writes_nothing {
        claude Yes, codex So("by its sandbox"),
    }
    "reports denied tools" denials tools::a_denial_is_seen {
        claude Yes,
        codex No("a command that its sandbox denies just fails, and a rejected edit is not reported", lack::denials),
    }
    "`acceptEdits` writes nothing outside of the working folder" nothing_outside tools::nothing_outside {
        claude Yes, codex So("the temporary folder is writable too"), scripted So("a write outside of it ends the run"),
    }
    "`acceptEdits` with a list of editing tools writes nothing outside of the working folder" listed_outside tools::a_list_writes_nothing_outside {
        claude Yes,
    }
    "`plan` and `default` run the commands of a list of tools" reader_commands tools::a_reader_runs_listed_commands {
        claude Yes,
    }
    "`bypassPermissions` permits everything" everything tools::everything {
        claude So("as root only if the user has set `IS_SANDBOX=1`"), codex Yes,
    }
    "a list of tools restricts the agent to them" list_restricts tools::a_list_restricts {
        claude Yes,
        codex No("it has no such option; with a list of tools that only read, its sandbox is read-only", lack::tool_lists),
    }
    "a list of tools approves them" list_approves tools::a_list_approves {
        claude Yes, codex No("nothing needs an approval: its sandbox decides", lack::approvals),
    }

    section "Sessions"
    "continues a session" continued sessions::continued {
        claude Yes, codex Yes, openai No("its service stores none", lack::sessions), scripted Yes,
    }
    "forks a session" branched sessions::branched {
        claude Yes, codex Yes, openai No("its service stores none", lack::sessions), scripted Yes,
    }
    "an interrupted fork leaves its session unchanged" cut_branch sessions::a_cut_branch_leaves_no_trace {
        claude Yes, codex Yes,
    }
    "continues a session with another persona" another_persona sessions::another_persona {
        claude Yes, codex So("in the prompt, because it reads instructions only at the start of a session"),
    }
    "reports a missing session" gone_conversation sessions::a_missing_one_is_reported { claude Yes, codex Yes }

    section "Usage"
    "reports tokens and cost" tokens_and_cost usage::reported {
        claude Yes,
        codex So("the cost only if prices are configured"),
        openai So("the cost only if prices are configured"),
        scripted Yes,
    }
    "reports a call's own usage in a continued session" usage_of_a_conversation usage::of_a_conversation {
        claude Yes, codex Yes,
    }
    "reports usage while it works" usage_while_it_works usage::while_it_works {
        claude Yes, codex No("it reports usage only at the end", lack::progress), openai Yes,
    }
    "reports usage of a call that is stopped" usage_of_a_stopped_call usage::of_a_stopped_call {
        claude Yes, codex So("by the file of its session, after each response"), openai So("estimated by its length"),
    }
    "a call that the service never answered used nothing" nothing_used usage::of_an_unanswered_call {
        claude Yes, codex Yes, openai Yes,
    }
    "stops by itself at a cost limit" cap usage::kept_to_a_cap {
        claude So("after the turn that reaches it"),
        codex No("it has no such option and reports usage only at the end", lack::caps),
        openai Yes,
    }

    section "Faults, distinguished by class"
    "a refused request (400)" bad_request faults::bad_request { claude Yes, codex Yes, openai Yes }
    "a rejected login (401, 403)" login faults::login { claude Yes, codex Yes, openai Yes, scripted Yes }
    "an unknown model (404)" unknown_model faults::unknown_model { claude Yes, codex Yes, openai Yes }
    "a rate limit (429)" limit faults::limit { claude Yes, codex Yes, openai Yes, scripted Yes }
    "a rate limit with its reset time" limit_with_its_end faults::limit_with_its_end {
        claude So("only for a subscription; for a key it reports no time"),
        codex So("for a subscription, to the minute; for a key only inside an answer"),
        openai Yes, scripted Yes,
    }
    "an unreachable service" unreachable faults::unreachable {
        claude Yes, codex Yes, openai So("on this machine, a service that is not running counts as a missing program"),
    }
    "a failing service (500, 529)" failing faults::failing { claude Yes, codex Yes, openai Yes, scripted Yes }
    "a failing service with a structured answer" failing_structured faults::failing_structured {
        claude Yes, codex Yes, openai Yes,
    }
    "does not retry by itself" one_try faults::one_try {
        claude Yes,
        codex So("for a configured `service`; with OpenAI's own service it retries for about half a minute"),
        openai Yes,
    }
    "a refusal" refusal faults::refusal {
        claude Yes, codex No("it returns an empty answer", lack::refusals), openai Yes, scripted Yes,
    }
    "a context overflow" overflow faults::overflow { claude Yes, codex Yes, openai Yes, scripted Yes }
    "an interrupted answer" half_a_stream faults::half_a_stream { claude Yes, codex Yes, openai Yes, scripted Yes }
    "an invalid answer" garbage faults::garbage { claude Yes, codex Yes, openai Yes, scripted Yes }
    "a service error inside an answer" failure_in_the_middle faults::failure_in_the_middle {
        claude Yes, codex Yes, openai Yes,
    }

    section "Process exits"
    "a timeout" timeout ends::timeout { claude Yes, codex Yes, openai Yes, scripted Yes }
    "a killed program" crash ends::crash { claude Yes, codex Yes, openai Yes, scripted Yes }
    "stopping it inside a command leaves no processes" cut_in_a_command ends::cancel_in_a_command {
        claude Yes, codex Yes,
    }
}
