//! The state of a run on one screen.

use std::collections::BTreeMap;

use cuegate_engine::{AgentChoice, AgentPlan, EndState, WaitKind};
use jiff::tz::TimeZone;

use crate::{
    EffectState, budget,
    fork::{describe_fork, list_unrepeated_effects},
    format::{
        date_time, format_count, format_duration, format_money, format_time_ago, format_time_of_day, plural,
    },
    glance::{describe_changed_files, describe_last_validators, summary_label, summary_lines},
    review::{describe_denied, find_empty_tests, suggest_review},
    run_end::{describe_continue_condition, suggest_continue_commands},
    stamped::Texts,
    summary::{AskCounts, Liveness, PendingCommand, RunState, RunView, VisitRow, tokens_of},
    text::{clean_lines, clean_to_one_line, format_labelled_line, pad_right, shorten_end},
    why::describe_repetition,
};

/// The width of the task in columns; `report` prints all of it.
const TASK_COLUMNS: usize = 100;
/// How many of the last rows are shown.
const LAST: usize = 5;

/// The state of a run: what it does or waits for, the command that continues it, its usage and its last visits.
/// `now_ms` is in milliseconds since 1970.
pub fn render_status(view: &RunView, texts: Texts<'_>, now_ms: i64, zone: &TimeZone) -> String {
    let mut lines = vec![format!("{}  run {}", view.flow, view.run)];
    let mut put = |label: &str, text: String| lines.push(format_labelled_line(label, &text));
    if let Some(subject) = view.subject() {
        put("task", shorten_end(&clean_to_one_line(&subject), TASK_COLUMNS));
    }
    put("state", view.standing());
    if let Some((row, until)) = view.awaited_retry() {
        let agent = clean_to_one_line(&row.agent);
        put("until", format!("{agent} is tried again {}", crate::format_future_time(until, now_ms, zone)));
    }
    if let Some((row, until)) = view.awaited_effect() {
        let why = clean_to_one_line(row.said.as_deref().unwrap_or_default());
        let when = crate::format_future_time(until, now_ms, zone);
        put("until", format!("{} is tried again {when}: {why}", row.kind.word()));
    }
    if let Some(reason) = &view.reason {
        // A question keeps its lines; any other reason becomes one line.
        let is_question =
            matches!(&view.state, RunState::Suspended(waiting) if waiting.kind == WaitKind::Person);
        let reason = if is_question { clean_lines(reason) } else { clean_to_one_line(reason) };
        for (index, line) in reason.lines().enumerate() {
            put(if index == 0 { "reason" } else { "" }, line.to_owned());
        }
    }
    if let Some(repetition) = describe_repetition(view) {
        put("repeats", repetition);
    }
    if let RunState::Suspended(waiting) = &view.state
        && let Some(until) = waiting.until_ms
    {
        put("until", date_time(until, zone));
    }
    if let Some(proof) = describe_last_validators(view) {
        let is_done = view.state == RunState::Ended(EndState::Completed);
        put(if is_done { "proof" } else { "commands" }, proof);
    }
    if let Some(missing) = view.describe_missing_proof().or_else(|| find_empty_tests(view, texts)) {
        put("unproved", missing);
    }
    for (index, line) in summary_lines(view, texts).into_iter().enumerate() {
        put(if index == 0 { summary_label(view) } else { "" }, line);
    }
    if let Some(denied) = describe_denied(view) {
        put("denied", denied);
    }
    if view.git && view.difference.is_some() {
        put("changed", describe_changed_files(view));
    }
    for (path, what) in &view.committed_otherwise {
        put("committed", format!("{}: {what}", clean_to_one_line(path)));
    }
    for hint in suggest_continue_commands(view) {
        put("continue", format!("{hint}{}", describe_continue_condition(view, zone)));
    }
    if let Some((label, what)) = suggest_review(view) {
        put(label, what);
    }
    if let Some(at) = open_visit(view) {
        put("step", at);
    }
    for pending in &view.pending {
        match view.live {
            Liveness::Alive => put("now", describe_pending_command(pending, now_ms)),
            Liveness::Dead | Liveness::None => put("next", describe_next_command(pending)),
        }
    }
    put("iterations", format!("{} of at most {}", view.iterations, view.iterations_max));
    put("calls", describe_calls(view));
    put("tokens", format_token_usage(view));
    put("cost", describe_cost(view));
    if let Some(standing) = budget::format_limit_usage(&view.ledger) {
        put("budget", standing);
    }
    put("time", describe_run_time(view, now_ms, zone));
    put("folder", describe_work_folder(view));
    if let Some(fork) = &view.fork {
        put("fork of", describe_fork(fork));
        let unrepeated = list_unrepeated_effects(fork);
        if !unrepeated.is_empty() {
            put("", format!("not repeated: {}", unrepeated.join(", ")));
        }
    }
    put("agent", describe_agent(view));
    if let Some(modes) = view.ways.describe() {
        put("method", modes);
    }
    if !view.faults.is_empty() {
        put("errors", format_count(view.faults.len() as u64));
    }
    if let Some(effects) = count_effects_by_state(view) {
        put("effects", effects);
    }
    let first = view.rows.len().saturating_sub(LAST);
    for (index, row) in view.rows[first..].iter().enumerate() {
        put(if index == 0 { "last" } else { "" }, format_row_line(row, zone));
    }
    lines.join("\n")
}

/// The spending on one line, against the budget and the cost bound: `$0.45 of $1.00 (+ $0.20 reserved), 5 of at most 20
/// calls, 12,000 tokens`.
pub fn describe_spending(view: &RunView) -> String {
    let ledger = &view.ledger;
    let mut parts = Vec::new();
    if view.usage.cost_usd.is_some() || ledger.budget.usd_micro.is_some() {
        let mut text = format_money(view.usage.cost_usd.or(Some(0.0)));
        if let Some(micro) = ledger.budget.usd_micro {
            text.push_str(&format!(" of {}", format_money(Some(micro as f64 / 1e6))));
        }
        let reserved: u64 = ledger.reserved.values().filter_map(|share| share.usd_micro).sum();
        if reserved > 0 {
            text.push_str(&format!(" (+ {} reserved)", format_money(Some(reserved as f64 / 1e6))));
        }
        parts.push(text);
    }
    let calls = view.asks.total();
    parts.push(match most_calls(view) {
        Some(most) => format!("{} of at most {} calls", format_count(calls), format_count(most)),
        None => plural(calls, "call"),
    });
    parts.push(format!("{} tokens", format_count(tokens_of(&view.usage))));
    parts.join(", ")
}

/// The most calls of a run: by its bound, or by its budget if that is less.
pub(crate) fn most_calls(view: &RunView) -> Option<u64> {
    view.ledger.asks_max.into_iter().chain(view.ledger.budget.asks).min()
}

/// What a run has spent, of its budget: money if it is known or limited, else tokens.
pub(crate) fn format_spent_amount(view: &RunView) -> String {
    let budget = &view.ledger.budget;
    if view.usage.cost_usd.is_some() || budget.usd_micro.is_some() {
        let of = budget.usd_micro.map(|micro| format!(" of {}", format_money(Some(micro as f64 / 1e6))));
        return format!("{}{}", format_money(view.usage.cost_usd.or(Some(0.0))), of.unwrap_or_default());
    }
    match budget.tokens {
        Some(most) => format!("{} of {}", format_count(tokens_of(&view.usage)), plural(most, "token")),
        None => plural(tokens_of(&view.usage), "token"),
    }
}

/// How many effects are in each state, with the command that lists them.
fn count_effects_by_state(view: &RunView) -> Option<String> {
    use EffectState::{Done, Failed, Pending, Unknown};
    let all = &view.acts.effects;
    let counts = [Done, Pending, Failed, Unknown].into_iter().filter_map(|state| {
        let count = all.iter().filter(|row| row.state == state).count();
        (count > 0).then(|| format!("{count} {}", state.as_str()))
    });
    let counts: Vec<String> = counts.collect();
    (!counts.is_empty()).then(|| format!("{} (`cuegate effect {}`)", counts.join(", "), view.run))
}

fn open_visit(view: &RunView) -> Option<String> {
    let open = view.open.as_ref()?;
    let mut text = format!("{}, visit {}", open.step, open.visit);
    if open.attempt > 1 {
        text.push_str(&format!(", attempt {}", open.attempt));
    }
    if let Some(validator) = &open.remedy {
        text.push_str(&format!(", retry after {validator} failed"));
    }
    Some(text)
}

/// A pending command and how long it takes so far.
pub(crate) fn describe_pending_command(pending: &PendingCommand, now_ms: i64) -> String {
    let passed = |since_ms: i64| format_duration(u64::try_from(now_ms.saturating_sub(since_ms)).unwrap_or(0));
    match pending {
        PendingCommand::Ask { step, kind, not_before_ms: Some(at), .. } if *at > now_ms => {
            let pause = format_duration(u64::try_from(at.saturating_sub(now_ms)).unwrap_or(0));
            format!("retrying {step} ({}) in {pause}", kind_word(kind.as_str()))
        }
        PendingCommand::Ask { step, kind, since_ms, not_before_ms, agent } => {
            let since_ms = not_before_ms.unwrap_or(*since_ms).max(*since_ms);
            let who = agent.as_deref().unwrap_or("the agent");
            format!("waiting for {who}: {step} ({}), {}", kind_word(kind.as_str()), passed(since_ms))
        }
        PendingCommand::Effect { action, since_ms } => {
            format!("running action {action}, {}", passed(*since_ms))
        }
        PendingCommand::Command { command, since_ms } => {
            format!("running `{command}`, {}", passed(*since_ms))
        }
        PendingCommand::Look { since_ms, .. } => {
            format!("checking whether the run is done, {}", passed(*since_ms))
        }
    }
}

/// A pending command of a run that no process drives.
fn describe_next_command(pending: &PendingCommand) -> String {
    match pending {
        PendingCommand::Ask { step, kind, .. } => {
            format!("the answer of the agent: {step} ({})", kind_word(kind.as_str()))
        }
        PendingCommand::Effect { action, .. } => format!("run action {action}"),
        PendingCommand::Command { command, .. } => format!("run `{command}`"),
        PendingCommand::Look { .. } => "check whether the run is done".to_owned(),
    }
}

/// The cost: `nothing` without asks, `unknown` where no cost is reported.
pub(crate) fn describe_cost(view: &RunView) -> String {
    let failed =
        (view.unknown > 0).then(|| format!("{} cut off or failed", format_calls_with_verb(view.unknown)));
    match (view.usage.cost_usd, failed) {
        (Some(_), _) => match not_known(view) {
            None => format_known_cost(view),
            Some(asks) => format!("{}, plus an unknown amount for {asks}", format_known_cost(view)),
        },
        (None, failed) if view.asks.total() + view.unpriced > 0 => {
            let failed = failed.map(|failed| format!("; {failed}")).unwrap_or_default();
            format!("unknown: the agent reports no cost and no price is configured{failed}")
        }
        (None, Some(failed)) => format!("unknown: {failed}"),
        (None, None) => "nothing".to_owned(),
    }
}

/// The known part of the cost.
pub(crate) fn format_known_cost(view: &RunView) -> String {
    let text = format_money(view.usage.cost_usd);
    if view.notional { format!("{text} (notional: covered by a subscription)") } else { text }
}

/// The asks whose cost is missing from the sum: `1 ask and 2 asks that were cut off or failed`.
pub(crate) fn not_known(view: &RunView) -> Option<String> {
    let answered = (view.unpriced > 0).then(|| plural(view.unpriced, "call"));
    let failed = (view.unknown > 0).then(|| {
        let were = if view.unknown == 1 { "was" } else { "were" };
        format!("{} that {were} cut off or failed", plural(view.unknown, "call"))
    });
    let asks: Vec<String> = [answered, failed].into_iter().flatten().collect();
    (!asks.is_empty()).then(|| asks.join(" and "))
}

/// `1 ask was`, `2 asks were`.
fn format_calls_with_verb(asks: u64) -> String {
    format!("{} {}", plural(asks, "call"), if asks == 1 { "was" } else { "were" })
}

/// `6: 3 work, 1 repair`.
pub(crate) fn describe_calls(view: &RunView) -> String {
    let answered = format_calls_by_kind(&view.asks);
    match (view.cut, view.asks.total()) {
        (0, _) => answered,
        (cut, 0) => format!("{}, cut off", format_count(cut)),
        (cut, _) => format!("{answered}; {} cut off", format_count(cut)),
    }
}

pub(crate) fn format_calls_by_kind(asks: &AskCounts) -> String {
    let kinds: Vec<String> = asks
        .kinds()
        .into_iter()
        .filter(|(_, n)| *n > 0)
        .map(|(kind, n)| format!("{} {}", format_count(n), kind_word(kind)))
        .collect();
    match kinds.is_empty() {
        true => "none".to_owned(),
        false => format!("{}: {}", format_count(asks.total()), kinds.join(", ")),
    }
}

/// The word for a kind of calls on screen.
pub(crate) fn kind_word(kind: &str) -> &str {
    match kind {
        "remedy" => "retry",
        other => other,
    }
}

/// `3,600 in, 900 out`.
pub(crate) fn format_token_usage(view: &RunView) -> String {
    let estimated = if view.usage.is_estimated { ", partly estimated" } else { "" };
    let (input, output) = (format_count(view.usage.input_tokens), format_count(view.usage.output_tokens));
    format!("{input} in, {output} out{estimated}")
}

fn describe_run_time(view: &RunView, now_ms: i64, zone: &TimeZone) -> String {
    let Some(started) = view.started_ms else { return "not started".to_owned() };
    format!(
        "{}, started {} ({})",
        format_duration(view.elapsed_until(now_ms)),
        date_time(started, zone),
        format_time_ago(now_ms, started)
    )
}

/// The folder that a run works in.
pub(crate) fn describe_work_folder(view: &RunView) -> String {
    let (place, mut at) = (&view.place, view.place.start_folder());
    if let Some(machine) = &view.machine {
        at = format!("{at} on {}", machine.host);
    }
    match (&place.branch, place.owned, place.dirty) {
        (Some(branch), ..) => format!("{at}, a git worktree on branch {branch}"),
        (None, true, _) => format!("{at}, a git worktree"),
        (None, false, true) => format!("{at}, in place, with uncommitted changes at the start"),
        (None, false, false) => format!("{at}, in place"),
    }
}

/// The usual agent and its model, and the other agents with their steps.
pub(crate) fn describe_agent(view: &RunView) -> String {
    let mut text = match &view.model {
        Some(model) => format!("{}, model {model}", view.provider),
        None => view.provider.clone(),
    };
    for part in describe_agent_plan(&view.agents) {
        text.push_str("; ");
        text.push_str(&part);
    }
    text
}

/// Who is called for which steps, and who steps in.
fn describe_agent_plan(plan: &AgentPlan) -> Vec<String> {
    let words =
        |chain: &[AgentChoice]| chain.iter().map(ToString::to_string).collect::<Vec<_>>().join(", then ");
    let mut parts = Vec::new();
    if !plan.stand_ins.is_empty() {
        parts.push(format!("if it is out: {}", words(&plan.stand_ins)));
    }
    for (which, chains) in [("", &plan.steps), ("reports of ", &plan.reports)] {
        let mut by_chain: BTreeMap<&Vec<AgentChoice>, Vec<String>> = BTreeMap::new();
        for (step, chain) in chains {
            by_chain.entry(chain).or_default().push(format!("`{step}`"));
        }
        let lines = by_chain.iter();
        parts.extend(lines.map(|(chain, steps)| format!("{which}{}: {}", steps.join(", "), words(chain))));
    }
    for (step, stages) in &plan.later {
        let stages = stages.iter();
        parts.extend(stages.map(|(from, chain)| format!("`{step}` from visit {from} on: {}", words(chain))));
    }
    parts
}

fn format_row_line(row: &VisitRow, zone: &TimeZone) -> String {
    let name = format!("{} #{}", row.step, row.visit);
    format!(
        "{}  {}  {}",
        format_time_of_day(row.ended_ms, zone),
        pad_right(&shorten_end(&name, 28), 28),
        describe_row_outcome(row)
    )
}

/// The outcome and target of a row: `next → continuation.fix`.
pub(crate) fn describe_row_outcome(row: &VisitRow) -> String {
    // The result of a check says more than the outcome of the work.
    let checked = row.check.as_ref().map(|check| &*check.result);
    let outcome = checked.or(row.outcome.as_deref()).unwrap_or("no outcome");
    let target = row.target.as_ref().map(|target| format!(" → {}", target_word(target))).unwrap_or_default();
    let by = row.overridden_by.as_ref().map(|by| format!(" (by {by})")).unwrap_or_default();
    let message = row.check.as_ref().and_then(|check| check.message.as_deref());
    let why = row
        .why
        .as_deref()
        .or(message)
        .map(|why| format!(": {}", shorten_end(&clean_to_one_line(why), 60)))
        .unwrap_or_default();
    format!("{outcome}{target}{by}{why}")
}

/// Where a visit led: a step, or the end of the run in a word.
pub fn target_word(target: &str) -> &str {
    match target {
        "@completed" => "done",
        "@failed" => "failed",
        "@aborted" => "aborted",
        "@exhausted" => "stopped at a limit",
        step => step,
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use serde_json::json;

    use super::render_status;
    use crate::{
        summary::Liveness,
        testing::{Scene, piece, registry},
    };

    #[test]
    fn running() {
        let mut scene = Scene::start(piece());
        scene.says(json!({"action": "ready"})).member_says(1, json!({"action": "needs_fix"}));
        insta::assert_snapshot!(render_status(&scene.view(), &|blob| scene.text(blob), scene.now_ms + 4_000, &TimeZone::UTC), @"
        review  run r1
        state       running
        step        reviewers, visit 1
        now         waiting for the agent: security (work), 4.9 s
        iterations  2 of at most 12
        calls       2: 2 work
        tokens      2,400 in, 600 out
        cost        $0.02
        time        6.1 s, started 2026-11-21 12:00:00 (6 s ago)
        folder      /work/project, in place, with uncommitted changes at the start
        agent       scripted, model stand-in-1
        last        12:00:01  plan #1                       ready → reviewers
                    12:00:02  style #1                      needs_fix
        ");
    }

    #[test]
    fn waiting_for_a_person() {
        let mut scene = Scene::start(piece());
        scene.says(json!({"action": "unclear"}));
        let view = scene.view_as(Liveness::None);
        insta::assert_snapshot!(render_status(&view, &|blob| scene.text(blob), scene.now_ms + 90_000, &TimeZone::UTC), @r#"
        review  run r1
        state       asks you
        reason      `plan` said:
                    > {"action":"unclear"}

                    What is meant?
                    Say more.
        continue    cuegate answer r1 "…"
        step        plan, visit 1
        iterations  1 of at most 12
        calls       1: 1 work
        tokens      1,200 in, 300 out
        cost        $0.01
        time        1.2 s, started 2026-11-21 12:00:00 (1 min ago)
        folder      /work/project, in place, with uncommitted changes at the start
        agent       scripted, model stand-in-1
        "#);
    }

    #[test]
    fn process_died_during_a_remedy() {
        let mut scene = Scene::start(registry());
        scene
            .says(json!({"action": "next"}))
            .says(json!({"action": "handoff"}))
            .says(json!({"action": "closing"}))
            .exits(1, "");
        let view = scene.view_as(Liveness::Dead);
        insta::assert_snapshot!(render_status(&view, &|blob| scene.text(blob), scene.now_ms, &TimeZone::UTC), @"
        iterator  run r1
        state       running, but its process died
        commands    `cargo test` failed, exit 1
        continue    cuegate resume r1
        step        continuation.fix, visit 2, retry after tests failed
        next        the answer of the agent: continuation.fix (retry)
        iterations  4 of at most 8
        calls       3: 3 work
        tokens      3,600 in, 900 out
        cost        $0.04, plus an unknown amount for 1 call that was cut off or failed
        time        3.8 s, started 2026-11-21 12:00:00 (3 s ago)
        folder      /work/project, in place, with uncommitted changes at the start
        agent       scripted, model stand-in-1
        last        12:00:01  initial.fix #1                next → continuation.fix
                    12:00:02  continuation.fix #1           handoff → closure.fix
                    12:00:03  closure.fix #1                closing → continuation.fix
        ");
    }

    #[test]
    fn done() {
        let scene = Scene::remedied();
        insta::assert_snapshot!(render_status(&scene.view(), &|blob| scene.text(blob), scene.now_ms, &TimeZone::UTC), @"
        iterator  run r1
        state       completed
        reason      `closure.fix` completed the workflow
        proof       `cargo test` passes (2nd try), `git status --porcelain` passes
        summary     All is
                    well.
        iterations  5 of at most 8
        calls       6: 4 work, 1 repair, 1 retry
        tokens      7,210 in, 1,800 out
        cost        $0.07, plus an unknown amount for 1 call that was cut off or failed
        time        7.9 s, started 2026-11-21 12:00:00 (7 s ago)
        folder      /work/project, in place, with uncommitted changes at the start
        agent       scripted, model stand-in-1
        errors      1
        last        12:00:01  initial.fix #1                next → continuation.fix
                    12:00:03  continuation.fix #1           handoff → closure.fix
                    12:00:05  closure.fix #1                closing → continuation.fix
                    12:00:06  continuation.fix #2           handoff → closure.fix
                    12:00:07  closure.fix #2                closing → done
        ");
    }
}
