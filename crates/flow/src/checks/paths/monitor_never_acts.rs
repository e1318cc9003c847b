use crate::analysis::reachability::{Followers, Reachability};
use crate::checks::Code;
use crate::{diagnostics::Diagnostic, model::Flow};

pub(in crate::checks) const CODE: Code = code!("monitor-never-acts");

pub(in crate::checks) fn check_idle_monitors(flow: &Flow, live: &Reachability, found: &mut Vec<Diagnostic>) {
    let mut followers = Followers::default();
    for (monitor, acts) in flow.monitors.iter().zip(&live.monitors) {
        if *acts {
            continue;
        }
        let Some((from, to)) = followers.unfollowed(flow, live, monitor) else { continue };
        let (from, to) = (&flow.step(from).name, &flow.step(to).name);
        let message = format!("`{}` never acts: `{from}` does not lead to `{to}`", monitor.name);
        found.push(
            Diagnostic::warning(CODE.name, monitor.span, message)
                .step(&flow.step(monitor.judge).name)
                .hint("name the steps of the cycle in the order in which runs pass them"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{codes_of, draft, findings_of, name};
    use crate::{
        diagnostics::Span,
        model::{Draft, Monitor},
    };

    fn watched(cycle: &[&str]) -> Draft {
        let mut draft = draft("a: next → b\nb: back → a, on → c\nc: done → end\nw: stop → end");
        draft.steps[3].counts = false;
        draft.monitors.push(Monitor {
            name: "watch".into(),
            cycle: cycle.iter().map(|step| vec![name(step)]).collect(),
            ignored: Vec::new(),
            threshold: 2,
            judge: name("w"),
            span: Span::default(),
        });
        draft
    }

    #[test]
    fn reported_and_fixed() {
        assert_eq!(codes_of(watched(&["a", "c"])), ["monitor-never-acts"]);
        assert_eq!(findings_of(watched(&["a", "c"]))[0].step.as_deref(), Some("w"), "it is about its judge");
        assert!(codes_of(watched(&["a", "b"])).is_empty());
        assert!(codes_of(watched(&["b", "a"])).is_empty());
    }
}
