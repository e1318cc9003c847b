//! Findings about `agent.json` and about a registry as a whole.

super::pages::pages! {
AGENT_ID_MISMATCH = "agent-id-mismatch": "\
agent and registry have different names

`agentId` of the registry is not the `name` of the agent. The registry may be the wrong one.

Make both equal, or correct `runner.flow.prompts.registry`.
"
MIXED_AGENT = "mixed-agent": "\
an agent is written in the words of two generations

Agents keep their settings either under `runner`, or under `behavior` and beside it (`prompts`, `logging`,
`github`, `worktree`, `actions`). This one has both, so that nobody can tell which of them holds.

Keep one of them, with everything in its place there.
"
DEFAULT_PERMISSION = "default-permission": "\
writing will be denied

The permission mode `default` asks a person before each action. In a run nobody is there, so that every
write is denied.

Use `acceptEdits` for an agent that writes, `plan` for one that only reads.
"
DUPLICATE_FLAG = "duplicate-flag": "\
two parameters have the same flag

Both are given with the same flag on the command line, so that neither can be told from the other.

Give one of them another `cli`.
"
RESERVED_FLAG = "reserved-flag": "\
a parameter has a flag of Cuegate itself

`cuegate run` has a flag of that name, which means something else. The flag stays Cuegate's.

Give the value with `--set NAME=VALUE`, or give the parameter another `cli`.
"
REQUIRED_WITH_DEFAULT = "required-with-default": "\
something is required and has a default

A required parameter has to be given, so that its default is never used. An input of a step with a default is
never missing, so that requiring it has no effect.

Remove `required`, or the default.
"
UNUSED_PARAMETER = "unused-parameter": "\
a parameter that no prompt reads

The parameter can be given at the start of a run, but neither the prompt of a step, nor a failure prompt, nor
the system prompt reads it, so that giving it changes nothing. (Commands of validators are not given any.)

Write `{uv-name}` in the prompt that needs it, or remove the parameter.
"
COMMA_IN_LIST = "comma-in-list": "\
an item of a default holds a comma

A parameter of type `array` is one text in prompts and on the command line, its items separated by commas. An
item that holds a comma itself cannot be told from two items.

Write the item without a comma, or give the parameter the type `string`.
"
UNKNOWN_MODEL = "unknown-model": "\
a model is none of those that the format names

The format knows `sonnet`, `opus` and `haiku`. Any other name goes to the provider as it is written: one that
knows it takes that model, one that does not refuses the ask.

Correct the name, or say in cuegate.toml what the provider you run with calls it, as
`NAME = 'MODEL'` below `[models.PROVIDER]`.
"
INERT_PERMISSION = "inert-permission": "\
a step asks for more than its agent may do

What a step may do is the more restrictive of its own `permissionMode` and the agent's, in the order `plan`,
`default`, `acceptEdits`, `bypassPermissions`. This step names a wider one than the agent, so that it changes
nothing.

Widen `runner.boundaries.permissionMode`, or remove the step's.
"
UNUSED_BASE = "unused-base": "\
a folder of prompts holds none of them

`userPromptsBase` is where prompts are looked for first. None was found below it: all lie in
`runner.flow.prompts.fallbackDir`. Most often the path is wrong.

Correct the path, or remove the key.
"
UNKNOWN_VERDICT_TYPE = "unknown-verdict-type": "\
an entry is mapped to no verdict type

A key of `entryStepMapping` is none of the eight verdict types, so that its entry is never taken.

Correct the key. The hint names the nearest type, or the new name of an older one.
"
SHADOWED_VARIABLE = "shadowed-variable": "\
a parameter has the name of a built-in variable

Prompts read `iteration`, `completed_iterations`, `max_iterations`, `remaining`, `previous_summary`, `task`
and `check_count` without any parameter. A parameter of such a name wins: `{uv-NAME}` is the value that the
run was given at its start, and what the run knows itself cannot be read any more.

Give the parameter another name, or remove it where the built-in variable is meant.
"
VERDICT_PAST_VALIDATORS = "verdict-past-validators": "\
the verdict can complete the run past its validators

The registry has validators, which guard `closing`. Every verdict but `detect:graph` completes the run as soon
as it holds after a finished visit, whether a closure step was reached or not. Only where a validator has just
failed, its remedy comes first. Such a run is marked as not validated.

Use `detect:graph`, where only `closing` completes the run.
"
VERDICT_NEVER_HOLDS = "verdict-never-holds": "\
a verdict never holds

The verdict, or a part of a composite one, waits for something that cannot happen: checks where no step
checks, more iterations than the run may take, or an end of the flow, where the run is over anyway.

Correct it, or leave it out.
"
POLL_WITHOUT_RESOURCE = "poll-without-resource": "\
the verdict looks at something, and nothing says at what

`poll:state` looks at the file that the parameter `file` names, or at the address in the parameter `url`.
There is no such parameter, or a run can begin without it.

Declare the parameter, as required or with a default, or give it with `--set`.
"
HANDLER_UNSTARTABLE = "handler-unstartable": "\
nobody knows how a handler is started

A handler is a program in one file. It reads JSON from standard input and answers with JSON on standard
output. It is started by the program that its first line names (`#!/usr/bin/env python3`), else by its ending:
`.sh` by `sh`, `.bash` by `bash`, `.py` by `python3`, `.js`, `.mjs` and `.cjs` by `node`. A module that
exports a handler for another runner is no such program; TypeScript needs a first line such as `#!/usr/bin/env
-S deno run`.

Write the first line, or give the file one of these endings.
"
}

/// No step to begin with. The check of the flow has this code and its page; here more is known about the cause.
pub(crate) const NO_ENTRY: &str = "no-entry";
