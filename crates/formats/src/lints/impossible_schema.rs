use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "impossible-schema",
    page: "\
impossible-schema: no answer fits the schema

An answer that does not fit its schema is asked again, and then the run has failed. This schema refuses
every answer: it requires a property that it does not allow, lists no value, lists values that the rest
of it refuses, asks for types that exclude each other, for texts that are shorter or longer than those
its pattern matches or for more items than there can be, or has bounds that contradict each other or
leave nothing between them. The finding names the part, as a pointer into the schema.

Correct that part. Parts that no answer needs to have may be impossible.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""enum": ["next", "repeat"]"#, r#""enum": ["next", "repeat"], "minLength": 20"#)],
        &[(r#", "minLength": 20"#, "")],
    ),
    super::complete(
        &[(r#""enum": ["next", "wait", "complete"]"#, r#""enum": []"#)],
        &[(r#""enum": []"#, r#""enum": ["next", "wait", "complete"]"#)],
    ),
];
