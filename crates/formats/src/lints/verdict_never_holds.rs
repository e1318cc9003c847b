use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "verdict-never-holds",
    page: "\
verdict-never-holds: a verdict never holds

The verdict, or a part of a composite one, waits for something that cannot happen: checks where no step
checks, more iterations than the run may take, or an end of the flow, where the run is over anyway.

Correct it, or leave it out.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::unguarded(
    &[(
        r#"{ "type": "detect:graph" }"#,
        r#"{ "type": "meta:composite", "config": { "operator": "and", "conditions": [
        { "type": "count:iteration", "config": { "maxIterations": 30 } },
        { "type": "detect:keyword", "config": { "verdictKeyword": "DONE" } }] } }"#,
    )],
    &[(r#""maxIterations": 30"#, r#""maxIterations": 10"#)],
)];
