//! Tries one agent, as far as that is free.

use cuegate_provider::{
    Provider as _,
    driven::{AgentProbe, AnswerTransport, DrivenSettings},
};
use serde_json::{Value, json};

use super::{CheckStatus, DoctorFinding, check_agent, inspect_agent};
use crate::config::Config;
use crate::run::start_run::Program;
use crate::{Failure, providers};

/// The result of trying one agent.
#[derive(Debug, Clone)]
pub(crate) struct AgentTrial {
    pub(crate) finding: DoctorFinding,
    /// What it said before any prompt, if it speaks the Agent Client Protocol.
    pub(crate) probe: Option<AgentProbe>,
    /// The lines of `[agents.NAME]` that fit what it said, where the settings say otherwise.
    pub(crate) advice: Vec<String>,
}

/// Looks at an agent's program and login. One that speaks the Agent Client Protocol is started in an empty folder, outside
/// of the sandbox, and opens a session; it gets no prompt.
///
/// # Errors
/// When there is no agent of this name.
pub(crate) fn try_agent(name: &str, program: &Program, config: &Config) -> Result<AgentTrial, Failure> {
    providers::check_name(name, config)?;
    let finding = check_agent(&inspect_agent(name, program, config));
    let mut trial = AgentTrial { finding, probe: None, advice: Vec::new() };
    let driven = providers::create_driven(name, program, config)
        .filter(|_| trial.finding.standing != CheckStatus::Bad);
    let Some((agent, settings)) = driven else { return Ok(trial) };
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::environment(format!("failed to create a folder: {error}")))?;
    match agent.probe(folder.path()) {
        None => {}
        Some(Ok(probe)) => {
            let is_own = config.agents.programs.contains_key(agent.name());
            trial.advice = if is_own { advise_settings(&settings, &probe) } else { Vec::new() };
            trial.probe = Some(probe);
        }
        Some(Err(why)) => {
            trial.finding.standing = CheckStatus::Bad;
            trial.finding.found = why;
            trial.finding.hint = Some("start its program by hand, log in there, and try again".to_owned());
        }
    }
    Ok(trial)
}

/// The settings that fit an agent, where those of the user say otherwise.
fn advise_settings(settings: &DrivenSettings, probe: &AgentProbe) -> Vec<String> {
    let mut lines = Vec::new();
    // Whether a server over HTTP is seen is known only if that was tried.
    let answer = match (settings.answer, probe.sees_answer_server, probe.takes_http_servers) {
        (AnswerTransport::None, true, _) => Some("stdio"),
        (AnswerTransport::Stdio, false, true) => Some("http"),
        (AnswerTransport::Stdio | AnswerTransport::Http, false, _) => Some("none"),
        _ => None,
    };
    lines.extend(answer.map(|answer| format!("answer = \"{answer}\"")));
    if settings.sessions != probe.continues {
        lines.push(format!("sessions = {}", probe.continues));
    }
    if settings.modes.is_empty() && !probe.modes.is_empty() {
        let names = [
            ("plan", &["plan", "ask", "architect"][..]),
            ("acceptEdits", &["acceptEdits", "auto-edit", "autoEdit", "code", "build"][..]),
        ];
        let modes = names.into_iter().filter_map(|(permission, likely)| {
            let mode = likely.iter().find(|mode| probe.modes.iter().any(|known| known == *mode))?;
            Some(format!("{permission} = \"{mode}\""))
        });
        let modes: Vec<String> = modes.collect();
        if !modes.is_empty() {
            lines.push(format!("modes = {{ {} }}", modes.join(", ")));
        }
    }
    lines
}

impl AgentTrial {
    /// What it can do, line by line.
    pub(crate) fn describe(&self) -> Vec<String> {
        let Some(probe) = &self.probe else { return Vec::new() };
        let list = |names: &[String]| {
            const SHOWN: usize = 12;
            let more = names.len().saturating_sub(SHOWN);
            let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
            if more > 0 { format!("{shown} and {more} more") } else { shown }
        };
        let mut lines = vec![
            probe.about.clone(),
            match probe.sees_answer_server {
                true => "it sees the tool `submit_answer`".to_owned(),
                false => "it did not ask for the tool `submit_answer` before a prompt: without it answers are asked for in words".to_owned(),
            },
        ];
        if !probe.modes.is_empty() {
            lines.push(format!("modes: {}", list(&probe.modes)));
        }
        if !probe.models.is_empty() {
            lines.push(format!("models: {}", list(&probe.models)));
        }
        lines
    }

    /// `cuegate/agent-trial/v1`.
    pub(crate) fn to_json(&self) -> Value {
        let probe = self.probe.as_ref().map(|probe| {
            json!({
                "about": probe.about, "sees_answer_server": probe.sees_answer_server,
                "takes_http_servers": probe.takes_http_servers, "continues": probe.continues,
                "modes": probe.modes, "models": probe.models,
            })
        });
        json!({
            "schema": "cuegate/agent-trial/v1", "ok": self.finding.standing != CheckStatus::Bad,
            "name": self.finding.name, "found": self.finding.found, "hint": self.finding.hint,
            "probe": probe, "settings": self.advice,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_proposed_where_they_differ() {
        let probe = AgentProbe {
            about: String::new(),
            sees_answer_server: true,
            takes_http_servers: true,
            continues: true,
            modes: vec!["ask".to_owned(), "code".to_owned()],
            models: Vec::new(),
        };
        let cautious = DrivenSettings::default();
        assert_eq!(
            advise_settings(&cautious, &probe),
            ["sessions = true", "modes = { plan = \"ask\", acceptEdits = \"code\" }"]
        );
        let deaf = AgentProbe { sees_answer_server: false, continues: false, modes: Vec::new(), ..probe };
        assert_eq!(advise_settings(&cautious, &deaf), ["answer = \"http\""]);
        let http = DrivenSettings { answer: AnswerTransport::Http, ..cautious };
        assert_eq!(advise_settings(&http, &deaf), ["answer = \"none\""]);
    }
}
