//! Findings about pieces.

super::pages::pages! {
MISSING_FACET = "missing-facet": "\
a file that a piece names is not there

Entries of `personas`, `policies`, `knowledge`, `instructions` and `report_formats` are paths, relative to
the folder of the piece. This file does not exist; its path would have become the text that an agent is
told.

Write the file, or correct the path. A text may stand in place of a path: it has more than one word.
"
UNKNOWN_FACET = "unknown-facet": "\
a movement names a text that the piece does not have

`persona`, `policy`, `knowledge`, `instruction` and `format` are keys of `personas`, `policies`,
`knowledge`, `instructions` and `report_formats`. There is no such key, and the word alone would tell an
agent nothing.

Correct the key; the hint names the nearest one. Or add it with the path of its file.
"
UNUSED_FACET = "unused-facet": "\
a text that no movement uses

An entry of `personas`, `policies`, `knowledge`, `instructions` or `report_formats` is named by no
movement, no report and no judge. (A report in the form `Label: path` names no format.)

Name it where it was meant, or remove it.
"
PATH_FOR_KEY = "path-for-key": "\
a path where a key belongs

Movements name texts by their keys. A path works, and is relative to the folder of the piece, but the same
file named in several places has to be changed in all of them.

Add the file to the map that the finding names, and write its key here.
"
TWO_INSTRUCTIONS = "two-instructions": "\
a movement has two instructions

`instruction` is a key of `instructions`, `instruction_template` is the instruction itself. Only one of
them can be what the agent is told.

Keep one.
"
MISSING_EDIT = "missing-edit": "\
a movement does not say whether it may change files

`edit` is required. Without it, and without `permission_mode`, a movement only reads: a file that it
changes is a violation. Where `permission_mode` is `edit` or `full`, the mode alone lets the movement change
files.

Add `edit: true` or `edit: false`.
"
CONTRADICTING_PERMISSION = "contradicting-permission": "\
two keys disagree about what a movement may do

`edit: false` says that files stay as they are, `permission_mode` `edit` or `full` that they may change.

Make them agree.
"
MIXED_PERMISSIONS = "mixed-permissions": "\
members that may not write work beside members that may

The members of a parallel movement work at the same time in one tree. Which of them wrote a file cannot be
told, so that what is written counts for the movement as a whole: it is allowed where one member may write,
and what a member writes that may change nothing is not found, even if it commits it.

Put the members that may change files into a movement of their own, or let all members only read.
"
INVALID_CONDITION = "invalid-condition": "\
a condition that can never be decided

A condition is a text, `ai(\"…\")`, or, in the rules of a parallel movement, `all(\"…\")` or `any(\"…\")` with
quoted outcomes of its members. `all` with several outcomes has one for each member, in their order.

Correct the condition.
"
UNKNOWN_OUTCOME = "unknown-outcome": "\
a condition names an outcome that no member has

`all(…)` and `any(…)` are compared with the conditions of the members' rules as they are written, and with
what stands in their `ai(\"…\")`. No member has a rule with this one. A double quote in it is written with a
backslash before it.

Correct the text; the hint names the nearest one. Or add the rule to the member.
"
NO_RULE_LEFT = "no-rule-left": "\
a movement that leads nowhere when nobody is there

Rules that are `interactive_only` exist only when somebody is there to answer. All rules of this movement,
member or judge are, so that a run without a person could not go on from here.

Add a rule without `interactive_only`.
"
INVALID_MONITOR = "invalid-monitor": "\
a loop monitor that can never act

A monitor watches a cycle of at least two movements that come after each other again and again. Of two
monitors of the same cycle only the first could ever act.

Correct `cycle`, or remove the monitor.
"
REPORT_NAME = "report-name": "\
the name of a report cannot be used

A report is a file in the run's folder of reports. Its name is a relative path without `..`, below no
other report, and each report of a movement has a name of its own. As a warning: members of one parallel
movement write the same report, so that only the newest of them is read later; or two names differ in case
only, and are one file on the file systems of macOS and Windows.

Rename the report.
"
UNWRITTEN_REPORT = "unwritten-report": "\
an instruction reads a report that nobody writes

`{report:file}` stands for the newest content of a report. No movement owes one of this name, so that the
agent reads \"(no report yet: file)\" each time.

Correct the name; the hint names the nearest one. Or add the report to `output_contracts` of a movement.
"
UNKNOWN_PLACEHOLDER = "unknown-placeholder": "\
a word in braces that is almost a placeholder

Instructions know `{task}`, `{previous_response}`, `{iteration}`, `{max_iterations}`,
`{movement_iteration}`, `{report_dir}`, `{report:file}`, `{user_inputs}` and, for the judges of monitors,
`{cycle_count}`. Every other word in braces is text and stays as it is; this one looks like a typing
error.

Correct it, or write another word.
"
LATER_SPELLING = "later-spelling": "\
a key in the spelling of a later version of the format

`steps`, `initial_step` and `max_steps` are what later versions call `movements`, `initial_movement` and
`max_iterations`. They are read as that.

Nothing has to be done.
"
}

/// A name that cannot be a step's. The check of the flow has this code and its page.
pub(crate) const STEP_NAME: &str = "step-name";
