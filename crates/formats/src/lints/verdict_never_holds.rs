use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "verdict-never-holds",
    page: "\
verdict-never-holds: a verdict can never hold

What it means: The verdict, or a part of a composite one, waits for something that cannot happen: answers
of verification or closure steps where there are none, more iterations than the run may take, or an end of
the flow, after which the run is over anyway.

Why it matters: The run is completed by something else, or it goes on until its limit stops it.

Example:
    \"type\": \"meta:composite\", \"config\": { \"operator\": \"and\", \"conditions\": [
      { \"type\": \"count:iteration\", \"config\": { \"maxIterations\": 30 } },
      { \"type\": \"detect:keyword\", \"config\": { \"verdictKeyword\": \"DONE\" } }] }

Fix: Correct the verdict, or remove the part; here lower `maxIterations` to what the run may take.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::twins_of_unguarded(
    &[(
        r#"{ "type": "detect:graph" }"#,
        r#"{ "type": "meta:composite", "config": { "operator": "and", "conditions": [
        { "type": "count:iteration", "config": { "maxIterations": 30 } },
        { "type": "detect:keyword", "config": { "verdictKeyword": "DONE" } }] } }"#,
    )],
    &[(r#""maxIterations": 30"#, r#""maxIterations": 10"#)],
)];
