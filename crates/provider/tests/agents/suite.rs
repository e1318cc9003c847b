//! The list: each behaviour, and which provider shows it. A cell is a test of its own, named after both.

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
        /// All of them by section, in the order of the page.
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
    section "Asking"
    "answers in words" answers_in_words answers::text { claude Yes, codex Yes, openai Yes, scripted Yes }
    "answers by a schema" answers_by_a_schema answers::structured { claude Yes, codex Yes, openai Yes, scripted Yes }
    "an answer that ignores the schema is an answer still, for a repair" answers_nevertheless answers::unstructured {
        claude Yes, codex Yes, openai Yes,
    }
    "a persona stands apart from the prompt" persona_apart answers::system_prompt { claude Yes, codex Yes, openai Yes }
    "asks the model that is named" named_model answers::model { claude Yes, codex Yes, openai Yes }
    "a prompt is text: no command and no `@file` in it is acted upon" prompt_is_text answers::prompt_is_text {
        claude Yes, codex Yes, openai Yes,
    }
    "a prompt may be long" long_prompt answers::long_prompt { claude Yes, codex Yes, openai Yes }
    "loads the project's own settings and not the user's" project_settings answers::settings_of_the_project_only {
        claude Yes,
        codex No("it reads the user's `AGENTS.md` whatever it is told; the user's `config.toml` and rules are left out", lack::project_only),
    }
    "says whether it can work here, and asks nobody" inspection answers::inspection { claude Yes, codex Yes, openai Yes }

    section "Doing"
    "edits files, and is seen to" edits tools::edits {
        claude Yes, codex Yes, openai No("its model has no tools", lack::tools), scripted Yes,
    }
    "commits where it may edit" commits tools::commits {
        claude So("where its tools are listed, `Bash` among them; else a command needs an approval"),
        codex So("unless `commits = false`"),
    }
    "`plan` writes nothing" plan_writes_nothing tools::plan_writes_nothing { claude Yes, codex So("by its sandbox") }
    "`default` writes nothing" default_writes_nothing tools::default_writes_nothing { claude Yes, codex So("by its sandbox") }
    "what is denied is seen" denials tools::a_denial_is_seen {
        claude Yes, codex No("a command that its sandbox stops just fails, and of an edit that it rejects nothing is told", lack::denials),
    }
    "`acceptEdits` writes nothing outside of the working folder" nothing_outside tools::nothing_outside {
        claude Yes, codex So("the folder for temporary files is open too"), scripted So("a write that leads out ends the run"),
    }
    "`bypassPermissions` does everything" everything tools::everything {
        claude So("as root only where the user has set `IS_SANDBOX=1`"), codex Yes,
    }
    "a list of tools restricts them" list_restricts tools::a_list_restricts {
        claude Yes,
        codex No("it has no such switch; a list without a tool that writes puts it into a sandbox that writes nothing", lack::tool_lists),
    }
    "a list of tools approves them" list_approves tools::a_list_approves {
        claude Yes, codex No("nothing needs an approval: its sandbox decides", lack::approvals),
    }

    section "Conversations"
    "continues a conversation" continued sessions::continued {
        claude Yes, codex Yes, openai No("its service keeps none", lack::sessions), scripted Yes,
    }
    "branches off a conversation" branched sessions::branched {
        claude Yes, codex Yes, openai No("its service keeps none", lack::sessions), scripted Yes,
    }
    "an ask that is cut off leaves no trace where it branched off" cut_branch sessions::a_cut_branch_leaves_no_trace {
        claude Yes, codex Yes,
    }
    "a conversation goes on with another persona" another_persona sessions::another_persona {
        claude Yes, codex So("it stands in the prompt then: instructions are read at the beginning only"),
    }
    "a conversation that is gone is told" gone_conversation sessions::an_unknown_one_is_told { claude Yes, codex Yes }

    section "Usage"
    "tells tokens and cost" tokens_and_cost usage::told {
        claude Yes, codex So("the cost where prices are configured"), openai So("the cost where prices are configured"), scripted Yes,
    }
    "tells an ask's own share of a conversation" usage_of_a_conversation usage::of_a_conversation { claude Yes, codex Yes }
    "tells usage while it works" usage_while_it_works usage::while_it_works {
        claude Yes, codex No("it tells usage at its end only", lack::progress), openai Yes,
    }
    "ends by itself at a cap of money" cap usage::kept_to_a_cap {
        claude So("after the turn that reaches it"), codex No("it has no such switch, and tells usage at its end only", lack::caps), openai Yes,
    }

    section "Faults, each told apart"
    "a request that is refused (400)" bad_request faults::bad_request { claude Yes, codex Yes, openai Yes }
    "a login that is not accepted (401, 403)" login faults::login { claude Yes, codex Yes, openai Yes, scripted Yes }
    "a model that is unknown (404)" unknown_model faults::unknown_model { claude Yes, codex Yes, openai Yes }
    "a limit (429)" limit faults::limit { claude Yes, codex Yes, openai Yes, scripted Yes }
    "a limit, and when it ends" limit_with_its_end faults::limit_with_its_end {
        claude So("a subscription's; of a key's limit it says no time"),
        codex So("a subscription's, to the minute; of a key's limit it says a time only in the middle of an answer"),
        openai Yes, scripted Yes,
    }
    "a service that fails (500, 529)" failing faults::failing { claude Yes, codex Yes, openai Yes, scripted Yes }
    "fails as well when a structured answer is due" failing_structured faults::failing_structured {
        claude Yes, codex Yes, openai Yes,
    }
    "does not try again by itself" one_try faults::one_try {
        claude Yes, codex So("for a `service` that is configured; OpenAI's own it tries for about half a minute"), openai Yes,
    }
    "a refusal" refusal faults::refusal {
        claude Yes, codex No("it passes on an empty answer", lack::refusals), openai Yes, scripted Yes,
    }
    "a conversation that does not fit" overflow faults::overflow { claude Yes, codex Yes, openai Yes, scripted Yes }
    "an answer that breaks off" half_a_stream faults::half_a_stream { claude Yes, codex Yes, openai Yes, scripted Yes }
    "an answer that cannot be read" garbage faults::garbage { claude Yes, codex Yes, openai Yes, scripted Yes }
    "a failure in the middle of an answer" failure_in_the_middle faults::failure_in_the_middle {
        claude Yes, codex Yes, openai Yes,
    }

    section "Ends"
    "no answer in time" timeout ends::timeout { claude Yes, codex Yes, openai Yes, scripted Yes }
    "its program is killed" crash ends::crash { claude Yes, codex Yes, openai Yes, scripted Yes }
    "cut off in a command, it leaves nothing running" cut_in_a_command ends::cancel_in_a_command { claude Yes, codex Yes }
}
