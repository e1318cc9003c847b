//! The events of one record as lines; events that belong together share a line.

use cuegate_engine::{
    AskKind, AskRequest, CommandId, Delay, EffectDelayed, EffectFinished, EffectKind, EffectState, EndState,
    Event, RowEnd, RunResumed, RunStarted, SchemaEnforcement, SuspensionCause, ToolCall, ToolResult, Usage,
    WaitKind,
};
use jiff::tz::TimeZone;

use super::line::{LineKind, TimelineLine};
use crate::{
    budget::format_budget_limits,
    format::{format_date, format_duration, format_money, plural, time_of},
    report::tool_result,
    summary::{RunFold, tokens_of},
    text::{clean_to_one_line, command_name},
};

/// The subject of a line about the run as a whole.
const RUN: &str = "run";
/// Follows the name of an agent that cannot be called.
const OUT: &str = " is out";
/// Precedes the names of the reports that an ask wrote.
const WROTE: &str = ", wrote ";

pub(super) struct LineBuilder<'t> {
    zone: &'t TimeZone,
    at_ms: i64,
    lines: Vec<TimelineLine>,
    /// Whether a member ended in this record.
    members: bool,
    /// Whether all uses of tools are shown, not only denied ones.
    tools: bool,
}

impl<'t> LineBuilder<'t> {
    pub(super) fn new(zone: &'t TimeZone, at_ms: i64, tools: bool) -> LineBuilder<'t> {
        LineBuilder { zone, at_ms, lines: Vec::new(), members: false, tools }
    }

    pub(super) fn into_lines(self) -> Vec<TimelineLine> {
        self.lines
    }

    /// Adds a line about something that no event says by itself.
    pub(super) fn remark(&mut self, who: &str, what: &str) {
        self.lines.push(TimelineLine::new(LineKind::Aside, who, what.to_owned()));
    }

    /// Adds the lines of an event. `fold` holds the state before that event.
    pub(super) fn event(&mut self, fold: &RunFold, event: &Event) {
        match event {
            Event::RunStarted(started) => self.started(started),
            Event::Forked(fork) => {
                let what = format!("forked from run {}, {}", fork.run, fork.moment);
                self.lines.push(TimelineLine::new(LineKind::Other, RUN, what));
            }
            Event::StepEntered { step, remedy, .. } => {
                if let Some(line) = self.last() {
                    match remedy {
                        Some(_) => line.target = format!("retry: {step}"),
                        None if line.kind == LineKind::Other && line.who == RUN => {
                            line.target = match step.split_once('@') {
                                Some((guarded, _)) => format!("validators of {guarded}"),
                                None => step.to_string(),
                            }
                        }
                        None => {}
                    }
                }
            }
            Event::AskRequested(request) => self.asked(fold, request),
            Event::Answered { ask, step, kind, usage, duration_ms, put, .. } => {
                let (line_kind, who) = subject_of_ask(fold, *ask, step);
                let kind = match kind {
                    AskKind::Work => "answered",
                    kind => crate::status::kind_word(kind.as_str()),
                };
                let by_prompt = put.as_ref().is_some_and(|put| put.schema == Some(SchemaEnforcement::Prompt));
                let schema = if by_prompt { ", schema in the prompt" } else { "" };
                let what = format!(
                    "{kind} in {}{}{schema}",
                    format_duration(*duration_ms),
                    format_usage_suffix(usage)
                );
                self.lines.push(TimelineLine::new(line_kind, &who, what));
            }
            Event::ToolsUsed { ask, step, calls, .. } => {
                let (_, who) = subject_of_ask(fold, *ask, step);
                let shown = |call: &&ToolCall| self.tools || call.result == ToolResult::Denied;
                for call in calls.iter().filter(shown) {
                    let took = call.duration_ms.filter(|_| call.result != ToolResult::Denied);
                    let took = took.map(|ms| format!(" ({})", format_duration(ms))).unwrap_or_default();
                    let what =
                        format!("{}: {}{took}", clean_to_one_line(&call.tool), tool_result(call.result));
                    self.lines.push(TimelineLine::new(LineKind::Aside, &who, what).detail(&call.target));
                }
            }
            Event::AgentOut { choice, until_ms, .. } => {
                let until = until_ms.map_or(String::new(), |until| {
                    let out_ms = u64::try_from(until.saturating_sub(self.at_ms)).unwrap_or(0);
                    format!(" for {}", format_duration(out_ms))
                });
                let what = format!("{choice}{OUT}{until}");
                self.lines.push(TimelineLine::new(LineKind::Aside, RUN, what));
            }
            Event::AskCut { ask, step, usage, .. } => {
                let (kind, who) = subject_of_ask(fold, *ask, step);
                self.lines.push(TimelineLine::new(
                    kind,
                    &who,
                    format!("cut off{}", format_usage_suffix(usage)),
                ));
            }
            Event::Overspent { what, .. } => {
                self.lines
                    .push(TimelineLine::new(LineKind::Aside, RUN, "over its limit".to_owned()).detail(what));
            }
            Event::AnsweredLate { usage, .. } => {
                let what = format!("late answer counted{}", format_usage_suffix(usage));
                self.lines.push(TimelineLine::new(LineKind::Other, RUN, what));
            }
            Event::AnswerRejected { step, why, .. } => self.about(fold, step, "answer rejected", why),
            Event::BoundaryViolated { step, paths, .. } => {
                self.about(fold, step, "wrote to forbidden paths", &paths.join(", "));
            }
            Event::MainCheckoutChanged { step, paths, more } => {
                let n = plural(paths.len() as u64 + more, "file");
                let what = format!("{n} changed in the main checkout, by the agent or someone else");
                self.lines.push(
                    TimelineLine::new(LineKind::Aside, &describe_open_visit(fold, step), what)
                        .detail(&paths.join(", ")),
                );
            }
            Event::LeftInGit { what } => {
                let text = "not taken over from the agent's git".to_owned();
                self.lines.push(TimelineLine::new(LineKind::Aside, RUN, text).detail(&what.join(", ")));
            }
            Event::SnapshotGaps { what } => {
                let text = "not in the snapshots of the working tree".to_owned();
                self.lines.push(TimelineLine::new(LineKind::Aside, RUN, text).detail(&what.join("; ")));
            }
            Event::ChangedByOthers { step, paths, .. } => {
                self.about(fold, step, "files changed by someone else meanwhile", &paths.join(", "));
            }
            Event::Faulted { ask, step, class, message, spoilt, .. } => {
                let (kind, who) = subject_of_ask(fold, *ask, step);
                let mut line = TimelineLine::new(kind, &who, class.words().to_owned());
                if spoilt.is_some() {
                    line.target = "a new conversation".to_owned();
                }
                // The message of a repeated fault is printed once; then only the repetitions are counted.
                let times = 1 + fold.times_in_a_row(step, *class, message);
                self.lines.push(match times {
                    1 => line.detail(message),
                    _ => line.detail(&format!("as before ({times} times in a row)")),
                });
            }
            Event::CommandFinished {
                step, member, validator, command, passed, ended, duration_ms, ..
            } => {
                let (took, command) = (format_duration(*duration_ms), command_name(command, validator));
                let what = match passed {
                    true => format!("`{command}`: passed ({took})"),
                    false => format!("`{command}`: failed, {ended} ({took})"),
                };
                // A member's commands name the member, other commands the open visit.
                let who = match (member, fold.visiting()) {
                    (Some(_), Some((_, visit))) => format!("{step} #{visit}"),
                    _ => describe_open_visit(fold, step),
                };
                self.lines.push(TimelineLine::new(LineKind::Validator, &who, what));
            }
            Event::ReportWritten { step, name, .. } => {
                let what = &mut self.line(fold, step).what;
                let wrote = if what.contains(WROTE) { ", " } else { WROTE };
                what.push_str(&format!("{wrote}{}", clean_to_one_line(name)));
            }
            Event::Decided { step, outcome, reason, fallback, .. } => {
                self.checked(reason.as_deref());
                self.decided(fold, step, outcome, *fallback);
            }
            Event::MemberEnded { step, outcome: Some(outcome), .. } => {
                self.members = true;
                self.line(fold, step).way.push_str(&format!(" → {outcome}"));
            }
            Event::MemberEnded { step, why, .. } => {
                self.members = true;
                // An error has a detail already; an agent that reports itself blocked has none.
                if let (Some(why), Some("")) = (why, self.last().map(|line| line.detail.as_str())) {
                    self.about(fold, step, "cannot proceed", why);
                }
                self.line(fold, step).way.push_str(" → no outcome");
            }
            Event::MemberSkipped { step, .. } => {
                self.lines.push(TimelineLine::new(LineKind::Aside, step, "skipped".to_owned()));
            }
            Event::MonitorFired { monitor, rounds } => {
                let what = format!("fired after {}", plural(u64::from(*rounds), "round"));
                self.lines.push(TimelineLine::new(LineKind::Other, monitor, what));
            }
            Event::ConditionMet { why, .. } => {
                self.lines.push(TimelineLine::new(LineKind::Aside, RUN, format!("condition met: {why}")));
            }
            Event::Probed { holds, failed, said, duration_ms, last, .. } => {
                let result = match (failed, holds) {
                    (true, _) => "completion check failed",
                    (false, true) => "completion check: done",
                    (false, false) => "completion check: not done",
                };
                let last = if *last { ", last check" } else { "" };
                let what = format!("{result} ({}){last}", format_duration(*duration_ms));
                self.lines.push(TimelineLine::new(LineKind::Other, RUN, what).detail(said));
            }
            Event::ActionFound { step, action, handler, allowed, .. } => {
                let what = match (handler, allowed) {
                    (Some(EffectKind::Log), _) => format!("requests {action}: logged"),
                    (Some(_), _) => format!("requests {action}"),
                    (None, true) => format!("requests {action}: no handler"),
                    (None, false) => format!("requests {action}: not allowed"),
                };
                self.lines.push(TimelineLine::new(LineKind::Aside, &describe_open_visit(fold, step), what));
            }
            Event::EffectFinished(EffectFinished { step, action, state, said, url, duration_ms, .. }) => {
                let took = format_duration(*duration_ms);
                let (who, what) = match step.is_empty() {
                    true => (RUN.to_owned(), action.to_string()),
                    false => (describe_open_visit(fold, step), format!("action {action}")),
                };
                let what = match (state, step.is_empty()) {
                    (EffectState::Done, false) => format!("{what} done ({took})"),
                    (EffectState::Done, true) => format!("{what}: {said} ({took})"),
                    (EffectState::Failed, _) => format!("{what} failed: {said} ({took})"),
                    (EffectState::Unknown, _) => format!("{what} unknown: {said}"),
                };
                let line = TimelineLine::new(LineKind::Other, &who, what);
                self.lines.push(match url {
                    Some(url) => line.detail(url),
                    None => line,
                });
            }
            Event::EffectDelayed(EffectDelayed { action, delay, why, .. }) => {
                let what = match delay {
                    Delay::Fault => format!("{action} failed, is tried again"),
                    Delay::Limit => format!("{action} waits for a rate limit"),
                    Delay::Look => format!("{action} may be done, is looked for again"),
                };
                self.lines.push(TimelineLine::new(LineKind::Aside, RUN, what).detail(why));
            }
            Event::EffectResent { action, .. } => {
                let what = format!("{action} is tried again, on request");
                self.lines.push(TimelineLine::new(LineKind::Other, RUN, what));
            }
            Event::ClosureNarrowed { step, closure } => {
                let what = format!("asks for the closure action {}", closure.as_str());
                self.lines.push(TimelineLine::new(LineKind::Aside, &describe_open_visit(fold, step), what));
            }
            Event::EffectsRequested(_) | Event::StepEffectsRequested(_) => {}
            Event::ReadsRequested(request) => {
                if let Some(why) = &request.why {
                    let who = describe_open_visit(fold, &request.step);
                    let what = "could not read, and tries again".to_owned();
                    self.lines.push(TimelineLine::new(LineKind::Aside, &who, what).detail(why));
                }
            }
            Event::ReadsDone(done) => {
                let what = format!("read in {}", format_duration(done.duration_ms));
                let who = describe_open_visit(fold, &done.step);
                self.lines.push(TimelineLine::new(LineKind::Aside, &who, what));
            }
            Event::Inspected { step, found, problems, .. } => {
                if !found || !problems.is_empty() {
                    let why = if *found { problems.join("; ") } else { "no JSON object".to_owned() };
                    let what = "answer does not match its schema".to_owned();
                    self.lines.push(
                        TimelineLine::new(LineKind::Aside, &describe_open_visit(fold, step), what)
                            .detail(&why),
                    );
                }
            }
            Event::QuestionAnswered { step, .. } => {
                let what = "question answered by the definition".to_owned();
                self.lines.push(TimelineLine::new(LineKind::Aside, &describe_open_visit(fold, step), what));
            }
            Event::Ending(ending) => {
                let what = format!("ending as {}", end_word(ending.state));
                self.lines.push(TimelineLine::new(LineKind::Aside, RUN, what).detail(&ending.reason));
            }
            Event::StepLeft { end, .. } | Event::VisitEnded { end, .. } => self.left(end),
            Event::PersonAnswered { .. } => {
                let who = fold.visiting().map_or(RUN.to_owned(), |(step, visit)| format!("{step} #{visit}"));
                self.lines.push(TimelineLine::new(LineKind::Ask, &who, "a person answered".to_owned()));
            }
            Event::SandboxDenied { step, to, why, .. } => {
                let what = format!("sandbox denied access to {to}");
                self.lines.push(
                    TimelineLine::new(LineKind::Aside, &describe_open_visit(fold, step), what).detail(why),
                );
            }
            Event::ValidationSkipped { step, failed } => {
                let what = if *failed { "failed validators skipped" } else { "validators did not run" };
                self.lines.push(TimelineLine::new(
                    LineKind::Other,
                    &describe_open_visit(fold, step),
                    what.to_owned(),
                ));
            }
            Event::Suspended { waiting } => self.suspended(waiting),
            Event::Resumed(resumed) => {
                let RunResumed { iterations_max, provider, budget, unsandboxed, retry, note, .. } = resumed;
                let mut what = match retry {
                    Some(_) if note.is_some() => "retried with a text for the agent".to_owned(),
                    Some(_) => "retried".to_owned(),
                    None => "resumed".to_owned(),
                };
                if let Some(max) = iterations_max {
                    what.push_str(&format!(", at most {}", plural(u64::from(*max), "iteration")));
                }
                if let Some(provider) = provider {
                    what.push_str(&format!(", with {provider}"));
                }
                if let Some(limits) = budget.as_ref().and_then(format_budget_limits) {
                    what.push_str(&format!(", at most {limits}"));
                }
                if *unsandboxed {
                    what.push_str(", without the sandbox");
                }
                if let Some(moved) = &resumed.moved {
                    what.push_str(&format!(" on {}, in {}", moved.to.host, moved.to.root));
                }
                if resumed.settings.is_some() {
                    what.push_str(", with the changed settings");
                }
                if let Some(definition) = &resumed.definition {
                    what.push_str(&format!(", with the edited workflow `{}`", definition.path));
                }
                self.lines.push(TimelineLine::new(LineKind::Other, RUN, what));
            }
            Event::Ended { state, reason, .. } => {
                let line = TimelineLine::new(LineKind::Other, RUN, end_word(*state).to_owned());
                self.lines.push(if *state == EndState::Cancelled { line } else { line.detail(reason) });
            }
            Event::OriginSet { .. }
            | Event::Responded { .. }
            | Event::Reserved { .. }
            | Event::ProbesRequested { .. }
            | Event::TimePassed { .. }
            | Event::CommandRequested { .. }
            | Event::HandedOff { .. }
            | Event::Summarised { .. }
            | Event::CounterSet { .. }
            | Event::TreeSeen { .. }
            | Event::PersonAsked { .. } => {}
        }
    }

    fn started(&mut self, started: &RunStarted) {
        let day = format_date(self.at_ms, self.zone);
        let what = format!("started {} with {} on {day}", started.flow, started.provider);
        self.lines.push(TimelineLine::new(LineKind::Other, RUN, what));
    }

    /// Marks the line before an ask as unfinished: a retry, a judge or a missing report follows.
    fn asked(&mut self, fold: &RunFold, request: &AskRequest) {
        let AskRequest { kind, not_before_ms, context, agent, .. } = request;
        let Some(line) = self.lines.last_mut() else { return };
        if line.kind == LineKind::Aside && line.what.contains(OUT) && not_before_ms.is_none() {
            let next = agent.as_ref().map_or_else(|| fold.provider().to_owned(), ToString::to_string);
            line.way.push_str(&format!(" → {next} steps in"));
            return;
        }
        if !matches!(line.kind, LineKind::Ask | LineKind::Member) || !line.target.is_empty() {
            return;
        }
        if let Some(not_before) = *not_before_ms {
            let pause = u64::try_from(not_before.saturating_sub(self.at_ms)).unwrap_or(0);
            line.way.push_str(&format!(" → retry in {}", format_duration(pause)));
        } else if *kind == AskKind::Repair {
            line.way.push_str(" → retry");
        } else if context.judging().is_some() && *kind == AskKind::Judge {
            line.way.push_str(" → a judge decides");
        } else if context.owing().is_some() && *kind == AskKind::Report {
            line.way.push_str(" → report missing");
        }
    }

    /// Adds the reason of a check to its line: it explains the next transition.
    fn checked(&mut self, reason: Option<&str>) {
        let check = AskKind::Check.as_str();
        if let (Some(reason), Some(line)) = (reason, self.lines.last_mut())
            && line.kind == LineKind::Ask
            && line.what.starts_with(check)
        {
            *line = std::mem::take(line).detail(reason);
        }
    }

    fn decided(&mut self, fold: &RunFold, step: &str, outcome: &str, fallback: bool) {
        let kind = self.last().map(|line| line.kind);
        // A validator's line already has its result.
        if kind == Some(LineKind::Validator) {
            return;
        }
        // The last line is about one member, the decision about all of them.
        if self.members || kind == Some(LineKind::Member) {
            self.lines.push(TimelineLine::new(
                LineKind::Ask,
                &describe_open_visit(fold, step),
                "all members done".to_owned(),
            ));
        } else if kind != Some(LineKind::Ask) {
            self.lines.push(TimelineLine::new(
                LineKind::Ask,
                &describe_open_visit(fold, step),
                "decided".to_owned(),
            ));
        }
        let line = self.line(fold, step);
        line.way.push_str(&format!(" → {outcome}"));
        if fallback {
            line.way.push_str(" (fallback)");
        }
    }

    fn left(&mut self, end: &RowEnd) {
        let (Some(line), Some(target)) = (self.last(), &end.target) else { return };
        // The end of the run has its own line.
        if target.starts_with('@') || !line.target.is_empty() {
            return;
        }
        line.target = target.to_string();
        if let Some(by) = end.overridden_by.as_ref().filter(|by| ***by != *line.who) {
            line.by = format!(" (by {by})");
        }
    }

    fn suspended(&mut self, waiting: &SuspensionCause) {
        let what = match waiting.kind {
            WaitKind::Person => "asks you".to_owned(),
            WaitKind::Quota => match waiting.until_ms {
                Some(until) => format!("paused until {}", time_of(until, Some(self.at_ms), self.zone)),
                None => "paused".to_owned(),
            },
            WaitKind::Environment => "needs fixing".to_owned(),
            WaitKind::Interrupted => "interrupted".to_owned(),
        };
        let line = TimelineLine::new(LineKind::Other, RUN, what);
        self.lines.push(match waiting.kind {
            WaitKind::Interrupted => line,
            _ => line.detail(&waiting.detail),
        });
    }

    /// Adds another line about the same ask.
    fn about(&mut self, fold: &RunFold, step: &str, what: &str, detail: &str) {
        let last = self.line(fold, step);
        let line = TimelineLine::new(last.kind, &last.who.clone(), what.to_owned()).detail(detail);
        self.lines.push(line);
    }

    /// The line that later events extend; a new one when there is none yet.
    fn line(&mut self, fold: &RunFold, step: &str) -> &mut TimelineLine {
        let index = self.lines.iter().rposition(|line| line.kind != LineKind::Aside).unwrap_or_else(|| {
            self.lines.push(TimelineLine::new(
                LineKind::Other,
                &describe_open_visit(fold, step),
                "decided".to_owned(),
            ));
            self.lines.len() - 1
        });
        &mut self.lines[index]
    }

    /// The last line that is not an aside.
    fn last(&mut self) -> Option<&mut TimelineLine> {
        self.lines.iter_mut().rev().find(|line| line.kind != LineKind::Aside)
    }
}

/// The subject of an ask: a member, a monitor, else the open visit.
fn subject_of_ask(fold: &RunFold, ask: CommandId, asked: &str) -> (LineKind, String) {
    let request = fold.request(ask);
    let step = request.map_or(asked, |request| &*request.step);
    match (request.and_then(|request| request.member), fold.visiting()) {
        (Some(_), Some((_, visit))) => (LineKind::Member, format!("{step} #{visit}")),
        _ => (LineKind::Ask, describe_open_visit(fold, step)),
    }
}

/// The open visit, or the name of a monitor.
fn describe_open_visit(fold: &RunFold, step: &str) -> String {
    match fold.visiting() {
        Some((visited, visit)) if !step.starts_with("monitor:") => format!("{visited} #{visit}"),
        // A retry enters the validators of a step without a visit.
        _ => step.split_once('@').map_or(step, |(guarded, _)| guarded).to_owned(),
    }
}

fn format_usage_suffix(usage: &Usage) -> String {
    let tokens = plural(tokens_of(usage), "token");
    match usage.cost_usd {
        Some(_) => format!(", {tokens}, {}", format_money(usage.cost_usd)),
        None => format!(", {tokens}"),
    }
}

fn end_word(state: EndState) -> &'static str {
    match state {
        EndState::Completed => "completed",
        EndState::Aborted => "aborted",
        EndState::Failed => "failed",
        EndState::Exhausted => "stopped at a limit",
        EndState::Cancelled => "cancelled",
    }
}
