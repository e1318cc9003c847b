//! The result of a parallel step does not depend on the order in which its members end.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cuegate_engine::{
    Answer, AskCommand, AskKind, Command, Completion, Event, Fault, FaultClass, PromptPart, Start, State,
    Usage,
};
use cuegate_flow::{
    diagnostics::Span,
    model::{Fact, Flow, JoinPattern, JoinRule, Name, Outcome, OutcomeReader, Role, SessionRule, Source},
};
use cuegate_testkit::{
    Builder,
    world::{Case, answers_of, started},
};
use serde_json::{Value, json};

/// `a` is unclear and judged, `b` is blocked, `c` crashes permanently, `d` reports and names its outcome at once.
const MEMBERS: [&str; 4] = ["a", "b", "c", "d"];

/// The result of the join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lead {
    /// A rule over them.
    Rule,
    /// A judge over their answers.
    Judge,
    /// A person, because no rule matches and a member is blocked; then all members start again.
    Person,
}

fn flow(width: u16) -> Arc<Flow> {
    let named = |name: &str| Outcome::Named(name.into());
    let judge = |step: &str| OutcomeReader::Judge { step: Name::new(step, Span::default()) };
    let member = |builder: Builder, id: &str, reports: &[&str]| {
        builder
            .ask(id, Role::Work, &["approved", "needs_fix", "odd"])
            .fused(reports)
            .session(SessionRule::Continue(id.into()))
            .reads("seen", Source::Report("review.md".into()))
            .reader(judge(&format!("{id}@judge")))
    };
    let rules = vec![
        JoinRule { pattern: JoinPattern::All(named("approved")), outcome: named("all") },
        JoinRule { pattern: JoinPattern::Any(vec![named("odd")]), outcome: named("odd") },
    ];
    let mut builder = Builder::new("group", "piece", "group")
        .all("group", &MEMBERS, width, rules)
        .or_judge("group@judge")
        .to("all", "@completed")
        .to("odd", "fix")
        .to("mixed", "fix")
        .ask("group@judge", Role::Judge, &["mixed", "none"])
        .ask("fix", Role::Work, &["done"])
        .reads("said", Source::Fact(Fact::PreviousResponse))
        .reads("review", Source::Report("review.md".into()))
        .reads("people", Source::Fact(Fact::UserInputs))
        .to("done", "@completed");
    for (id, reports) in
        [("a", &["review.md"][..]), ("b", &[]), ("c", &[]), ("d", &["review.md", "scope.md"])]
    {
        builder = member(builder, id, reports);
    }
    for id in MEMBERS {
        builder = builder
            .ask(&format!("{id}@judge"), Role::Judge, &["needs_fix", "none"])
            .session(SessionRule::Branch(id.into()));
    }
    builder.flow()
}

fn answered(ask: &AskCommand, output: Option<Value>, text: &str) -> Completion {
    let answer = Answer {
        output,
        text: text.to_owned(),
        usage: Usage { input_tokens: 10, output_tokens: 1, cost_usd: Some(0.25), ..Usage::default() },
        provider: "scripted".to_owned(),
        session: Some(format!("of {}", ask.step)),
        ..Answer::default()
    };
    Completion::Answered { ask: ask.id, answer: Box::new(answer), seen: None }
}

fn crashed(ask: &AskCommand) -> Completion {
    let fault = Fault {
        class: FaultClass::Crashed,
        message: "gone".to_owned(),
        resets_in_ms: None,
        usage: Usage { input_tokens: 5, ..Usage::default() },
        usage_unknown: false,
        continued: false,
        receipt: None,
        tools: Default::default(),
        limit: None,
    };
    Completion::Faulted { ask: ask.id, fault, seen: None }
}

/// The answer to an ask, by its step and its count, independent of the order.
fn respond(case: &Case<'_>, lead: Lead, ask: &AskCommand) -> Completion {
    let say = |outcome: &str| {
        let reports = json!({"review.md": format!("{} of {}", outcome, ask.step), "scope.md": "all"});
        answered(
            ask,
            Some(json!({"action": outcome, "response": format!("{outcome} it is"), "reports": reports})),
            "",
        )
    };
    let group = case.run.progress.visits.get("group").copied().unwrap_or_default();
    assert_eq!(group, 1, "the group is visited once");
    let again = !case.run.context.user_inputs.is_empty();
    match &*ask.step {
        "fix" => answered(ask, Some(json!({"action": "done"})), ""),
        "group@judge" => {
            let word = if lead == Lead::Judge { "mixed" } else { "none" };
            answered(ask, Some(json!({"action": word})), "")
        }
        _ if again => say("approved"),
        "a@judge" => answered(ask, Some(json!({"action": "needs_fix"})), ""),
        "a" if ask.kind == AskKind::Report => answered(ask, None, "# Of a"),
        "a" => answered(ask, None, "That is hard to say."),
        "b" => answered(ask, Some(json!({"blocked": "no network"})), ""),
        "c" => crashed(ask),
        "d" => say(if lead == Lead::Rule { "odd" } else { "needs_fix" }),
        other => panic!("nobody asks {other}"),
    }
}

/// What must not depend on the order.
#[derive(Debug, PartialEq)]
struct Tale {
    end: String,
    rows: Vec<String>,
    /// How members ended, by round and place.
    members: BTreeMap<(usize, u16), String>,
    /// The first prompt of each step, and all prompts of `fix`.
    prompts: BTreeMap<String, String>,
    asks: BTreeMap<(String, &'static str), usize>,
    state: String,
}

fn plain(parts: &[PromptPart]) -> String {
    parts
        .iter()
        .map(|part| match part {
            PromptPart::Text(text) => text.to_string(),
            PromptPart::Blob { blob, fence } => {
                format!("<{}:{}>", fence.as_deref().unwrap_or("plain"), blob.digest)
            }
        })
        .collect()
}

/// Runs and answers the pending asks of members in the order that `choose` picks.
fn tale(flow: &Flow, lead: Lead, cut: bool, mut choose: impl FnMut(&[AskCommand]) -> usize) -> Tale {
    let mut case = Case::new(flow);
    let mut started = started(flow);
    started.report_dir = Some("/reports".into());
    case.complete(Completion::Start(Box::new(Start { started })));
    let mut prompts = BTreeMap::new();
    while !case.ended() {
        if case.unblock() {
            continue;
        }
        let asks: Vec<AskCommand> = case
            .pending()
            .into_iter()
            .map(|command| match command {
                Command::Ask(ask) => *ask,
                other => panic!("nothing else is wanted: {other:?}"),
            })
            .collect();
        for ask in &asks {
            let known = format!("{} {}", ask.step, ask.kind.as_str());
            prompts.entry(known).or_insert_with(|| plain(&ask.prompt));
        }
        assert!(answers_of(&case, &asks[0].step) < 20, "no end");
        let ask = &asks[if asks.len() > 1 { choose(&asks) } else { 0 }];
        let completion = respond(&case, lead, ask);
        assert!(case.complete(completion));
        if cut {
            case.crash();
        }
    }
    told(&case, prompts)
}

fn told(case: &Case<'_>, prompts: BTreeMap<String, String>) -> Tale {
    let (mut rows, mut members, mut asks) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    let mut round = 0;
    for event in case.events.iter().flatten() {
        match event {
            Event::StepEntered { step, .. } if &**step == "group" => round += 1,
            Event::MemberEnded { index, outcome, why, blocked, answer, .. } => {
                let end = format!("{outcome:?} {why:?} {blocked} {answer:?}");
                let before = members.insert((round, *index), end);
                assert_eq!(before, None, "a member ends once");
            }
            Event::VisitEnded { step, visit, attempt, end, .. } => {
                rows.push(format!("{step} {visit}.{attempt}: {:?} → {:?}", end.outcome, end.target));
            }
            Event::Answered { step, kind, .. } => {
                *asks.entry((step.to_string(), kind.as_str())).or_default() += 1
            }
            Event::Faulted { step, .. } => *asks.entry((step.to_string(), "fault")).or_default() += 1,
            _ => {}
        }
    }
    let run = &case.run;
    let reports: Vec<String> = run
        .context
        .reports
        .files()
        .iter()
        .map(|file| {
            let version = file.version;
            format!("{} {} {} {}", file.path, version.step, version.visit, version.content.digest)
        })
        .collect();
    let heads: Vec<(&str, &str)> =
        run.context.sessions.iter().map(|(key, head)| (&**key, &*head.id)).collect();
    let State::Ended { state, reason, .. } = &run.state else { unreachable!("it ended") };
    Tale {
        end: format!("{state:?}: {reason}"),
        rows,
        members,
        prompts,
        asks,
        state: format!(
            "{:?} {:?} {heads:?} {reports:?} {:?} {:?} {:?} {} {}",
            run.context.previous,
            run.context.user_inputs,
            run.progress.visits,
            run.spending.usage,
            run.progress.history,
            run.progress.iterations,
            run.progress.finished
        ),
    }
}

/// All permutations.
fn orders<T: Clone>(things: &[T]) -> Vec<Vec<T>> {
    if things.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for at in 0..things.len() {
        let mut rest = things.to_vec();
        let first = rest.remove(at);
        all.extend(orders(&rest).into_iter().map(|mut order| {
            order.insert(0, first.clone());
            order
        }));
    }
    all
}

fn rank(ask: &AskCommand, order: &[u16]) -> usize {
    order.iter().position(|member| Some(*member) == ask.id.member()).unwrap()
}

const LEADS: [Lead; 3] = [Lead::Rule, Lead::Judge, Lead::Person];

#[test]
fn the_members_end_as_intended() {
    let flow = flow(4);
    for (lead, end, rows) in [
        (Lead::Rule, "Completed", &["group 1.1: Some(\"odd\") → Some(\"fix\")"][..]),
        (Lead::Judge, "Completed", &["group 1.1: Some(\"mixed\") → Some(\"fix\")"]),
        (Lead::Person, "Completed", &["group 1.2: Some(\"all\") → Some(\"@completed\")"]),
    ] {
        let tale = tale(&flow, lead, false, |_| 0);
        assert!(tale.end.starts_with(end), "{lead:?}: {tale:#?}");
        for row in rows {
            assert!(tale.rows.contains(&(*row).to_owned()), "{lead:?}: {tale:#?}");
        }
        let ended = |index: u16| &tale.members[&(1, index)];
        assert!(ended(0).starts_with("Some(\"needs_fix\") None false Some"), "judged: {tale:#?}");
        assert!(ended(1).starts_with("None") && ended(1).contains(" true "), "blocked: {tale:#?}");
        assert!(ended(2).starts_with("None") && ended(2).contains(" false "), "failed: {tale:#?}");
        assert_eq!(tale.asks[&("a@judge".to_owned(), "judge")], 1);
        assert_eq!(tale.asks[&("a".to_owned(), "report")], 1);
        assert_eq!(tale.asks[&("c".to_owned(), "fault")], 3);
        let newest = if lead == Lead::Person { "report-versions/3" } else { "reports" };
        assert!(tale.state.contains(&format!("\"{newest}/review.md")), "{tale:#?}");
    }
}

#[test]
fn all_orders_of_four_members_end_the_same() {
    for width in 1..=4 {
        let flow = flow(width);
        for lead in LEADS {
            let mut tales: Vec<Tale> = Vec::new();
            let mut seen = BTreeSet::new();
            for order in orders(&[0, 1, 2, 3]) {
                for cut in [false, true] {
                    let mut ended = Vec::new();
                    let tale = tale(&flow, lead, cut, |asks| {
                        let at = (0..asks.len()).min_by_key(|at| rank(&asks[*at], &order)).unwrap();
                        ended.extend(asks[at].id.member());
                        at
                    });
                    ended.dedup();
                    seen.insert(ended);
                    if let Some(first) = tales.first() {
                        assert_eq!(&tale, first, "{lead:?}, {width} at a time, in the order {order:?}");
                    } else {
                        tales.push(tale);
                    }
                }
            }
            if width == 4 {
                assert_eq!(seen.len(), 24, "each order was another run");
            }
        }
    }
}

/// All interleavings of the members' single answers, not only whole members in turn.
#[test]
fn all_interleavings_of_answers_end_the_same() {
    let flow = flow(4);
    // The number of answers of each: work, report and judge; one; three crashes; one.
    let mut ways: Vec<Vec<u16>> = Vec::new();
    shuffles(&mut [3, 1, 3, 1], &mut Vec::new(), &mut ways);
    assert_eq!(ways.len(), 1_120);
    let mut first: Option<Tale> = None;
    for way in ways {
        let mut left = way.iter();
        let tale = tale(&flow, Lead::Judge, false, |asks| {
            let member = left.next().unwrap();
            asks.iter().position(|ask| ask.id.member() == Some(*member)).unwrap()
        });
        match &first {
            Some(first) => assert_eq!(&tale, first, "{way:?}"),
            None => first = Some(tale),
        }
    }
}

fn shuffles(left: &mut [u32; 4], way: &mut Vec<u16>, ways: &mut Vec<Vec<u16>>) {
    if left.iter().sum::<u32>() == 0 {
        ways.push(way.clone());
    }
    for member in 0..4 {
        if left[member] > 0 {
            left[member] -= 1;
            way.push(member as u16);
            shuffles(left, way, ways);
            way.pop();
            left[member] += 1;
        }
    }
}
