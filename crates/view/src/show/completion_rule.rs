//! The rule that completes a run, as text and as JSON.

use cuegate_flow::model::{Field, Poll, PollState, Resource, Verdict};
use serde_json::{Map, Value, json};

/// A completion rule as text.
pub(crate) fn describe_completion_rule(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Flow => "completed when the flow ends".to_owned(),
        other => format!("completed when the flow ends, or {}", describe_completion_condition(other)),
    }
}

pub(crate) fn describe_completion_condition(verdict: &Verdict) -> String {
    let joined = |parts: &[Verdict], word: &str| {
        let parts: Vec<String> = parts.iter().map(describe_rule_part).collect();
        parts.join(word)
    };
    match verdict {
        Verdict::Flow => "when the flow ends".to_owned(),
        Verdict::Iterations(max) => format!("after {}", crate::format::plural(u64::from(*max), "iteration")),
        Verdict::Checks { max, of } => {
            let answers = crate::format::plural(u64::from(*max), "answer");
            let of: Vec<&str> = of.iter().map(|step| &**step).collect();
            format!("after {answers} of {}", if of.is_empty() { "no step".to_owned() } else { of.join(", ") })
        }
        Verdict::Keyword(keyword) => format!("when the last answer says `{keyword}`"),
        Verdict::Signal(signal) => {
            let with = format_wanted_fields(&signal.required);
            let with = if with.is_empty() { with } else { format!(" with {with}") };
            format!("when the last answer gives the signal `{}`{with}", signal.kind)
        }
        Verdict::Poll(poll) => format!("when {}", describe_polled_resource(poll)),
        Verdict::Handler(handler) => format!("when `{}` says so", handler.program.path),
        Verdict::Every(parts) => joined(parts, " and "),
        Verdict::Any(parts) => joined(parts, " or "),
        Verdict::First(parts) => format!("at the first of: {}", joined(parts, "; ")),
    }
}

/// A part of a composite rule, in parentheses when it is composite itself.
fn describe_rule_part(verdict: &Verdict) -> String {
    match verdict.parts().is_empty() {
        true => describe_completion_condition(verdict),
        false => format!("({})", describe_completion_condition(verdict)),
    }
}

fn describe_polled_resource(poll: &Poll) -> String {
    let param = &poll.param;
    match poll.resource {
        Resource::File => {
            format!("the file in `{param}` {}", describe_poll_state(&poll.state, "exists", "is"))
        }
        Resource::Api => {
            format!(
                "the service at `{param}` {}",
                describe_poll_state(&poll.state, "answers with success", "answers")
            )
        }
        Resource::Issue => {
            format!("the issue in `{param}` {}", describe_poll_state(&poll.state, "exists", "is"))
        }
        Resource::Project => {
            format!("the project in `{param}` {}", describe_poll_state(&poll.state, "exists", "is"))
        }
    }
}

fn describe_poll_state(state: &PollState, exists: &str, is: &str) -> String {
    match state {
        PollState::Exists => exists.to_owned(),
        PollState::Absent => "is absent".to_owned(),
        PollState::Contains(text) => format!("contains `{text}`"),
        PollState::Equals(text) => format!("{is} `{text}`"),
        PollState::Fields(wanted) => format!("{is} {}", format_wanted_fields(wanted)),
    }
}

fn format_wanted_fields(wanted: &[Field]) -> String {
    let fields: Vec<String> = wanted
        .iter()
        .map(|field| match &field.value {
            Some(value) => format!("`{}` = {value}", field.name),
            None => format!("`{}`", field.name),
        })
        .collect();
    fields.join(", ")
}

/// A completion rule as JSON: `iterations` for an iteration count, `when` for other conditions.
pub(super) fn json_of_completion_rule(verdict: &Verdict) -> Value {
    let iterations = match verdict {
        Verdict::Iterations(max) => Some(max),
        _ => None,
    };
    let mut object = Map::from_iter([("iterations".to_owned(), json!(iterations))]);
    if !matches!(verdict, Verdict::Flow | Verdict::Iterations(_)) {
        object.insert("when".to_owned(), json_of_condition(verdict));
    }
    Value::Object(object)
}

fn json_of_condition(verdict: &Verdict) -> Value {
    let parts = || -> Vec<Value> { verdict.parts().iter().map(json_of_condition).collect() };
    match verdict {
        Verdict::Flow => json!("end"),
        Verdict::Iterations(max) => json!({ "iterations": max }),
        Verdict::Checks { max, of } => json!({ "checks": max, "of": of }),
        Verdict::Keyword(keyword) => json!({ "keyword": keyword }),
        Verdict::Signal(signal) => {
            json!({ "signal": signal.kind, "required": json_of_fields(&signal.required) })
        }
        Verdict::Poll(poll) => {
            let resource = match poll.resource {
                Resource::File => "file",
                Resource::Api => "api",
                Resource::Issue => "github-issue",
                Resource::Project => "github-project",
            };
            let state = match &poll.state {
                PollState::Exists => json!("exists"),
                PollState::Absent => json!("absent"),
                PollState::Contains(text) => json!({ "contains": text }),
                PollState::Equals(text) => json!({ "equals": text }),
                PollState::Fields(fields) => json!({ "fields": json_of_fields(fields) }),
            };
            json!({ "poll": resource, "param": poll.param, "state": state })
        }
        Verdict::Handler(handler) => json!({ "handler": handler.program.path }),
        Verdict::Every(_) => json!({ "every": parts() }),
        Verdict::Any(_) => json!({ "any": parts() }),
        Verdict::First(_) => json!({ "first": parts() }),
    }
}

/// Names alone, or names with values.
fn json_of_fields(fields: &[Field]) -> Value {
    match fields.iter().any(|field| field.value.is_some()) {
        true => fields.iter().map(|field| (field.name.to_string(), json!(field.value))).collect(),
        false => fields.iter().map(|field| json!(field.name)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_completion_rule_as_text() {
        let field = |name: &str, value| Field { name: name.into(), value };
        let poll = |resource, state| Verdict::Poll(Poll { resource, param: "file".into(), state });
        let signal = |required| {
            Verdict::Signal(cuegate_flow::model::Signal {
                kind: "ready".into(),
                marker: "json".into(),
                required,
            })
        };
        let text: Vec<String> = [
            Verdict::Flow,
            Verdict::Iterations(1),
            Verdict::Checks { max: 2, of: vec!["review".into(), "close".into()] },
            Verdict::Keyword("DONE".into()),
            signal(vec![field("a", None), field("b", None)]),
            signal(vec![field("a", Some(json!("x")))]),
            poll(Resource::File, PollState::Exists),
            poll(Resource::File, PollState::Absent),
            poll(Resource::File, PollState::Contains("ok".into())),
            poll(Resource::Api, PollState::Exists),
            poll(Resource::Api, PollState::Equals("open".into())),
            poll(Resource::Api, PollState::Fields(vec![field("n", Some(json!(1)))])),
            Verdict::Every(vec![
                Verdict::First(vec![Verdict::Iterations(3), Verdict::Keyword("A".into())]),
                Verdict::Any(vec![Verdict::Flow, Verdict::Keyword("B".into())]),
            ]),
        ]
        .iter()
        .map(|verdict| {
            format!("{}\n  {}", describe_completion_rule(verdict), json_of_completion_rule(verdict))
        })
        .collect();
        insta::assert_snapshot!(text.join("\n"), @r#"
        completed when the flow ends
          {"iterations":null}
        completed when the flow ends, or after 1 iteration
          {"iterations":1}
        completed when the flow ends, or after 2 answers of review, close
          {"iterations":null,"when":{"checks":2,"of":["review","close"]}}
        completed when the flow ends, or when the last answer says `DONE`
          {"iterations":null,"when":{"keyword":"DONE"}}
        completed when the flow ends, or when the last answer gives the signal `ready` with `a`, `b`
          {"iterations":null,"when":{"signal":"ready","required":["a","b"]}}
        completed when the flow ends, or when the last answer gives the signal `ready` with `a` = "x"
          {"iterations":null,"when":{"signal":"ready","required":{"a":"x"}}}
        completed when the flow ends, or when the file in `file` exists
          {"iterations":null,"when":{"poll":"file","param":"file","state":"exists"}}
        completed when the flow ends, or when the file in `file` is absent
          {"iterations":null,"when":{"poll":"file","param":"file","state":"absent"}}
        completed when the flow ends, or when the file in `file` contains `ok`
          {"iterations":null,"when":{"poll":"file","param":"file","state":{"contains":"ok"}}}
        completed when the flow ends, or when the service at `file` answers with success
          {"iterations":null,"when":{"poll":"api","param":"file","state":"exists"}}
        completed when the flow ends, or when the service at `file` answers `open`
          {"iterations":null,"when":{"poll":"api","param":"file","state":{"equals":"open"}}}
        completed when the flow ends, or when the service at `file` answers `n` = 1
          {"iterations":null,"when":{"poll":"api","param":"file","state":{"fields":{"n":1}}}}
        completed when the flow ends, or (at the first of: after 3 iterations; when the last answer says `A`) and (when the flow ends or when the last answer says `B`)
          {"iterations":null,"when":{"every":[{"first":[{"iterations":3},{"keyword":"A"}]},{"any":["end",{"keyword":"B"}]}]}}
        "#);
    }
}
