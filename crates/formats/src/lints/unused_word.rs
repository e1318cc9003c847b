//! Found in `climpt::older::answer_words`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unused-word",
    page: "\
unused-word: schema and gate do not agree about what an agent can decide

The schema is sent to the agent and tells it what it can decide, in the words of intents or of their aliases.
Either it lists a word that the gate does not allow: an answer with it is a bad answer. Or it lists no word
for an intent that the gate allows: no agent can decide it.

Make the schema's `enum` and `allowedIntents` agree.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::complete(
    &[(r#"["next", "wait", "complete"]"#, r#"["next", "wait", "complete", "done"]"#)],
    &[(r#", "done"]"#, "]")],
)];
