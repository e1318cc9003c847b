//! Findings about files, and about JSON and YAML as such.

super::pages::pages! {
UNREADABLE_FILE = "unreadable-file": "\
a file that the definition needs cannot be read

The file is not there, or the system refuses to read it.

Write the file, correct the path that names it, or correct its permissions.
"
ESCAPES_ROOT = "escapes-root": "\
a path leads out of the project

The files of an agent lie in its folder or elsewhere in the project, those of a piece in the project or in the
folder above the piece's own. This path is absolute, climbs out with
`..`, or leads out through a symbolic link. It is not read: a definition from somebody else must not be able
to put your files into a prompt.

Move the file into the project, or correct the path.
"
TOO_LARGE = "too-large": "\
a file is larger than 16 MiB

No definition needs such a file, and what is read becomes part of prompts or of the journal.

Check that the path names the right file, or split it.
"
TOO_DEEP = "too-deep": "\
the nesting is deeper than 64 levels

Objects and lists stand inside each other more than 64 levels deep. Definitions need a dozen.

Look for a missing closing bracket.
"
NOT_UTF8 = "not-utf8": "\
a file is not UTF-8

The finding shows the first byte that is no UTF-8.

Save the file as UTF-8. A byte order mark and Windows line ends are fine.
"
INVALID_JSON = "invalid-json": "\
a file is not JSON

Definitions are strict JSON: names and texts in double quotes, a comma between entries and none after the
last, no comments.

Correct the place that the finding shows.
"
INVALID_YAML = "invalid-yaml": "\
a file is not YAML

Definitions are one document of YAML 1.2 that could be written as JSON too: mappings whose keys are names,
lists, texts, numbers, `true`, `false`. Lines are indented with spaces, never with tabs. Anchors and aliases
are read; tags of one's own and merge keys (`<<`) are not.

Correct the place that the finding shows.
"
WRONG_TYPE = "wrong-type": "\
a value has the wrong type

The key is known, but its value is of another type than the format says, for example a number where a text
belongs.

Correct the value.
"
INVALID_VALUE = "invalid-value": "\
a value is not allowed

The value has the right type, but is none of those that the format allows: an unknown word, a number out of
range, an empty text, a path that is none.

Correct the value. The hint names the nearest one there is.
"
MISSING_KEY = "missing-key": "\
a required key is missing

The format requires this key.

Add it.
"
UNKNOWN_KEY = "unknown-key": "\
a key is unknown

Nothing reads this key. Most often it is a typing error, and what was meant has no effect.

Correct the key; the hint names the nearest known one. Notes belong into `description`.
"
DUPLICATE_KEY = "duplicate-key": "\
a key stands twice

An object holds the same key twice, or two parameters are the same variable (`iterateMax` is `iterate-max`).
Only one can hold, and which one is nowhere said.

Remove one of them.
"
DUPLICATE_ITEM = "duplicate-item": "\
a list names the same thing twice

The order of this list means nothing and each name counts once, so that the repetition has no effect. Often
another name was meant.

Correct the repetition, or remove it.
"
STRAY_KEY = "stray-key": "\
a key or a value has no effect here

It is known from other places or from older definitions, but nothing reads it here, or something beside it
decides alone. The hint says why.

Remove it, or what stands in its way.
"
UNSUPPORTED_YET = "unsupported-yet": "\
the definition asks for something that this version does not do yet

As a warning: a run is sound without it, and says at its start what it will not do. As an error: leaving it
out would be unsafe or change what the definition means, so that nothing is started.

Follow the hint, or wait for a version that supports it.
"
MIXED_GENERATIONS = "mixed-generations": "\
a registry mixes the words of several generations

There are three generations of step registries: “closing” (kinds of steps, `handoff`, `closing`), “complete”
(`complete`, `completionSteps`) and the check flow (`check`, `onPass`, `onFail`). Each has its own rules, so
that a mixture means nothing. The finding names which part belongs to which of them. Names of steps count
only where nothing else tells a generation.

Write the whole registry in one of them.
"
}
