//! Findings that only registries of the "complete" generation have.

super::pages::pages! {
COMPLETE_ELSEWHERE = "complete-elsewhere": "\
`complete` does not lead to a step that completes the run

An agent that decides `complete` says that the work is done. That always leads to a step called `complete.*`,
whose own `complete` ends the run; otherwise a run could be complete and go on with the same work. Such a step
stands in `steps`, or in `completionSteps` alone.

Lead `complete` to a `complete.*` step, or use `next` where the work goes on.
"
INCOMPLETE_DOMAIN = "incomplete-domain": "\
a domain lacks one of its three stages

What a registry works on is a domain: the word behind the stage in `initial.issue`, `continuation.issue`,
`complete.issue`. Every domain has all three stages, so that every flow has the same simple shape. A run is
possible without.

Add the step that is missing, or remove the domain.
"
UNBOUND_STEP_ID = "unbound-step-id": "\
the schema does not hold an answer to its step

The schema of a step lists in `stepId` (`const`, or `enum`) which step it belongs to, so that an answer for
another step is refused at once. This one has no such property, or one that takes any text (a warning), or
one that does not list the step (an error: no answer of this step could be right).

Add `\"stepId\": { \"const\": … }` with the name of the step to the `properties` of its schema.
"
UNUSED_WORD = "unused-word": "\
schema and gate do not agree about what an agent can decide

The schema is sent to the agent and tells it what it can decide, in the words of intents or of their aliases.
Either it lists a word that the gate does not allow: an answer with it is a bad answer. Or it lists no word
for an intent that the gate allows: no agent can decide it.

Make the schema's `enum` and `allowedIntents` agree.
"
BUILT_IN_PROMPT = "built-in-prompt": "\
a step is asked with a built-in prompt instead of its own

The step has no prompt file, and `fallbackKey` names a built-in prompt. That one is a safety net for a
definition that is not finished: it knows nothing of this registry, so that the flow would run on words that
nobody wrote for it. In a finished one every step has a file.

Write the file that the hint names.
"
BREAKDOWN_CONFIG = "breakdown-config": "\
the configuration of another tool does not know a step

Prompts were found by a tool whose configuration lists every `c2` (`directiveType`) and `c3` (`layerType`).
Here they are found without it, so that this changes nothing in a run. But a configuration that is there and
lacks a step is out of date.

Add the words to it, or remove it.
"
}
