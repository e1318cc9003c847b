//! `cuegate/run/v1`.

use std::collections::BTreeMap;

use cuegate_engine::{AgentChoice, AgentPlan, ReportFile, SuspensionCause, ToolResult, Usage};
use cuegate_flow::Str;
use serde_json::{Map, Value, json};

use super::view::{CheckOutcome, FaultRow, QuestionRow, RunState, RunView, VisitRow, waits_for};
use crate::{
    budget::{limits_json, spent_json},
    format::format_rfc3339,
    stamped::Texts,
};

impl RunView {
    /// The run as a JSON object of `cuegate/run/v1`.
    ///
    /// `texts` looks up the questions and answers.
    pub fn to_json(&self, texts: Texts<'_>) -> Value {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("schema", json!("cuegate/run/v1"));
        put("run", json!(self.run));
        put("flow", json!(self.flow));
        put("dialect", json!(self.dialect));
        put("task", json!(self.task));
        if let Some((number, title)) = &self.issue {
            put("issue", json!({ "number": number, "title": title }));
        }
        if !self.hidden.is_empty() {
            put("hidden_text_removed", json!(self.hidden));
        }
        put("state", json!(self.state.as_str()));
        put("standing", json!(self.standing()));
        put("proof", json!(crate::glance::describe_last_validators(self)));
        put("proved", json!(self.is_proved()));
        put("reviewed", json!(self.is_reviewed));
        if let Some(missing) = self.describe_missing_proof() {
            put("unproved", json!(missing));
        }
        put("summary", json!(self.summary_text(texts)));
        if let Some(request) = self.pull_request() {
            put("pull_request", json!({ "number": request.number, "url": request.url }));
        }
        let denied = self.list_denied();
        if !denied.is_empty() {
            put(
                "denied",
                denied.iter().map(|(what, times)| json!({ "what": what, "times": times })).collect(),
            );
        }
        put("reason", json!(self.reason));
        put("exit_code", json!(self.exit_code()));
        put("waiting", self.waiting());
        put("next", json!(self.suggest_next_commands()));
        if self.died() {
            put("live", json!(false));
        }
        put("provider", json!(self.provider));
        if !self.agents.is_usual() {
            put("agents", json_of_agent_plan(&self.agents));
        }
        put("model", json!(self.model));
        put("place", json!({ "work": self.place.work, "branch": self.place.branch }));
        if let Some(machine) = &self.machine {
            put("machine", json!({ "host": machine.host, "root": machine.root }));
        }
        put("iterations", json!(self.iterations));
        put("iterations_max", json!(self.iterations_max));
        put("final_step", json!(self.final_step));
        if let Some((last, first)) = &self.circle {
            let visit = |(step, visit): &(Str, u32)| json!({ "step": step, "visit": visit });
            put("circle", json!({ "last": visit(last), "as_after": visit(first) }));
        }
        if let Some((step, times)) = &self.repeats {
            put("repeats", json!({ "step": step, "times": times }));
        }
        put("completion_reason", json!(self.reason.as_ref().filter(|_| self.ended_ms.is_some())));
        put("validated", json!(self.validated));
        put("steps", self.rows.iter().map(|row| self.row(row)).collect());
        put("reports", self.reports.files().iter().map(|file| self.report(file)).collect());
        put("asks", self.asks.kinds().into_iter().map(|(kind, n)| (kind.to_owned(), json!(n))).collect());
        if let Some(asks_max) = crate::status::most_calls(self) {
            put("asks_max", json!(asks_max));
        }
        put("tokens", json_of_tokens(&self.usage));
        put("cost_usd", json_of_cost(self.usage.cost_usd));
        if self.unpriced > 0 {
            put("unpriced_asks", json!(self.unpriced));
        }
        if let Some(fork) = &self.fork {
            put("fork", crate::fork::fork_json(fork));
        }
        if self.notional {
            put("notional", json!(true));
        }
        if self.cut > 0 {
            put("cut_asks", json!(self.cut));
        }
        if self.unknown > 0 {
            put("unknown_asks", json!(self.unknown));
        }
        put("budget", limits_json(&self.ledger.budget));
        if self.ledger.limits() {
            put("spent", spent_json(&self.ledger.spent));
        }
        put("changed_files", json!(self.agent_changes()));
        put("changed_by_commands", json!(self.command_changes()));
        if !self.gate_files.is_empty() {
            let files = self.gate_files.iter();
            put(
                "gate_files",
                files.map(|file| json!({"path": file.path, "command": file.command})).collect(),
            );
        }
        let marked = self.self_running();
        if !marked.is_empty() {
            put(
                "self_running_files",
                marked.iter().map(|(path, tool)| json!({"path": path, "by": tool})).collect(),
            );
        }
        if !self.committed_otherwise.is_empty() {
            let entries = self.committed_otherwise.iter();
            put(
                "committed_otherwise",
                entries.map(|(path, what)| json!({"path": path, "how": what})).collect(),
            );
        }
        if !self.hidden_files.is_empty() {
            put("hidden_files", json!(self.hidden_files));
        }
        if !self.meanwhile.is_empty() {
            put("changed_meanwhile", json!(self.meanwhile));
        }
        put("tools", self.tools_json());
        if !self.main_checkout.is_empty() {
            put("main_checkout_changed", json!(self.main_checkout));
        }
        if !self.left_in_git.is_empty() {
            put("left_in_git", json!(self.left_in_git));
        }
        if !self.snapshot_gaps.is_empty() {
            put("snapshot_gaps", json!(self.snapshot_gaps));
        }
        if !self.questions.is_empty() {
            // An answer may wait for the run to go on.
            let last = self.questions.len() - 1;
            let is_answered = |index: usize| index == last && self.is_answered;
            let all = self.questions.iter().enumerate();
            put(
                "questions",
                all.map(|(index, row)| json_of_question(row, is_answered(index), texts)).collect(),
            );
        }
        put("faults", self.faults.iter().map(json_of_fault).collect());
        put("effects", self.acts.effects_json(&self.run));
        if !self.acts.inspections.is_empty() {
            put("inspections", self.acts.inspections_json());
        }
        put(
            "worked_ms",
            json!(self.seen_ms.map_or_else(|| self.elapsed_ms(), |seen| self.elapsed_until(seen))),
        );
        put("started_at", json!(self.started_ms.map(format_rfc3339)));
        put("ended_at", json!(self.ended_ms.map(format_rfc3339)));
        Value::Object(object)
    }

    /// How often agents used each tool, and the denied uses.
    fn tools_json(&self) -> Value {
        let mut used: BTreeMap<&str, u64> = BTreeMap::new();
        for row in &self.tools {
            *used.entry(&row.call.tool).or_default() += 1;
        }
        let denied = self.denied_tools().map(|row| {
            json!({ "step": row.step, "visit": row.visit, "tool": row.call.tool, "target": row.call.target })
        });
        let failed = self.tools.iter().filter(|row| row.call.result == ToolResult::Failed).count();
        json!({ "calls": self.tools.len() as u64 + self.tools_more, "failed": failed, "used": used,
            "denied": denied.collect::<Vec<_>>() })
    }

    /// A report version; its path is relative to the project root.
    fn report(&self, file: &ReportFile<'_>) -> Value {
        json!({
            "name": file.name,
            "step": file.version.step,
            "visit": file.version.visit,
            "path": format!(".cuegate/runs/{}/{}", self.run, file.path),
        })
    }

    /// The transition of a row in a check flow; `None` where the row was not checked or a limit stopped the run.
    pub fn transition<'r>(&self, row: &'r VisitRow) -> Option<&'r str> {
        row.check.as_ref().and_then(|check| transition_of_check(row, check))
    }

    fn waiting(&self) -> Value {
        match &self.state {
            RunState::Suspended(wait) => json_of_waiting(wait),
            RunState::Running | RunState::Ended(_) => Value::Null,
        }
    }

    fn row(&self, row: &VisitRow) -> Value {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("seq", json!(row.seq));
        put("step", json!(row.step));
        put("visit", json!(row.visit));
        put("attempt", json!(row.attempt));
        if let Some(parent) = &row.parent {
            put("parent", json!(parent));
        }
        if row.remedy.is_some() {
            put("remedy", json!(true));
        }
        put("outcome", json!(row.outcome));
        put("target", json!(row.target));
        if let Some(by) = &row.overridden_by {
            put("overridden_by", json!(by));
        }
        if let Some(why) = &row.why {
            put("why", json!(why));
        }
        if let Some(check) = &row.check {
            put("check", json!({ "result": check.result, "message": check.message }));
        }
        if let Some(transition) = self.transition(row) {
            put("transition", json!(transition));
        }
        put("session", json!(row.session));
        put("agent", json!(row.agent));
        put("model", json!(row.model));
        put("asks", json!(row.asks));
        put("tokens", json_of_tokens(&row.usage));
        put("cost_usd", json_of_cost(row.usage.cost_usd));
        put("changed_files", json!(row.changed_files));
        put("violations", json!(row.violations));
        put("duration_ms", json!(row.duration_ms()));
        Value::Object(object)
    }
}

/// The journaled transition of a check flow, else one inferred from target and result.
fn transition_of_check<'r>(row: &VisitRow, check: &'r CheckOutcome) -> Option<&'r str> {
    if check.way.is_some() && row.target.as_deref() != Some("@exhausted") {
        return check.way.as_deref();
    }
    let passed = matches!(&*check.result, "ok" | "pass");
    match row.target.as_deref() {
        Some("@completed") => Some("complete"),
        Some("@failed") => Some("fail"),
        Some(target) if target.starts_with('@') => None,
        Some(_) if passed => Some("next"),
        Some(target) if target == &*row.step => Some("retry"),
        Some(_) => Some("fallback"),
        None => None,
    }
}

/// `{kind, detail, until}`.
pub(crate) fn json_of_waiting(waiting: &SuspensionCause) -> Value {
    json!({
        "kind": waits_for(waiting.kind),
        "detail": waiting.detail,
        "until": waiting.until_ms.map(format_rfc3339),
    })
}

fn json_of_question(row: &QuestionRow, is_answered: bool, texts: Texts<'_>) -> Value {
    json!({
        "question": texts(&row.question),
        "answer": row.answer.as_ref().and_then(texts),
        "answered": is_answered || row.answer.is_some(),
        "by": if row.by_definition { "definition" } else { "person" },
    })
}

/// The agents that a run would call:
/// `{usual stand_ins[] steps{STEP[]} reports{STEP[]} later{STEP[{from agents[]}]}}`.
pub fn json_of_agents(usual: Option<&AgentChoice>, plan: &AgentPlan) -> Value {
    let mut json = json_of_agent_plan(plan);
    json["usual"] = json!(usual.map(ToString::to_string));
    json
}

/// `{stand_ins[], steps{STEP[]}, reports{STEP[]}, later{STEP[{from, agents[]}]}}`, agents as `AGENT` or `AGENT:MODEL`;
/// `from` is a visit of the step, from 1.
pub(crate) fn json_of_agent_plan(plan: &AgentPlan) -> Value {
    let list = |chain: &[AgentChoice]| -> Value { chain.iter().map(ToString::to_string).collect() };
    let map = |chains: &BTreeMap<Str, Vec<AgentChoice>>| -> Value {
        chains.iter().map(|(step, chain)| (step.to_string(), list(chain))).collect::<Map<_, _>>().into()
    };
    let stage = |(from, chain): &(u32, Vec<AgentChoice>)| json!({ "from": from, "agents": list(chain) });
    let later: Map<String, Value> = plan
        .later
        .iter()
        .map(|(step, stages)| (step.to_string(), stages.iter().map(stage).collect()))
        .collect();
    json!({
        "stand_ins": list(&plan.stand_ins), "steps": map(&plan.steps), "reports": map(&plan.reports), "later": later,
    })
}

fn json_of_fault(fault: &FaultRow) -> Value {
    json!({
        "step": fault.step,
        "visit": fault.visit,
        "class": fault.class.as_str(),
        "agent": fault.agent,
        "message": fault.message,
        "at": format_rfc3339(fault.at_ms),
    })
}

fn json_of_tokens(usage: &Usage) -> Value {
    let mut json = json!({ "input": usage.input_tokens, "output": usage.output_tokens });
    if usage.is_estimated {
        json["estimated"] = true.into();
    }
    json
}

/// Dollars without the noise of binary fractions: `0.036`, not `0.036000000000000004`.
pub(crate) fn json_of_cost(usd: Option<f64>) -> Value {
    match usd {
        Some(usd) => json!(round_cost(usd)),
        None => Value::Null,
    }
}

/// A cost without the errors of adding numbers that are not decimal.
pub(crate) fn round_cost(usd: f64) -> f64 {
    (usd * 1e9).round() / 1e9
}
