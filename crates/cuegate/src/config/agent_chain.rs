//! Chains of agents as users write them: `claude`, `openai:qwen3:8b`, `claude,codex`.

use cuegate_engine::AgentChoice;

/// Parses `AGENT[:MODEL]`, several separated by commas: the next ones step in while those before them are out.
///
/// # Errors
/// With what is wrong, in words.
pub(crate) fn parse_chain(text: &str) -> Result<Vec<AgentChoice>, String> {
    text.split(',').map(parse_choice).collect()
}

/// Parses `AGENT[:MODEL][#EFFORT]`. A model may contain colons.
///
/// # Errors
/// With what is wrong, in words.
pub(crate) fn parse_choice(text: &str) -> Result<AgentChoice, String> {
    let (named, effort) = match text.trim().rsplit_once('#') {
        Some((named, effort)) => (named.trim(), Some(effort)),
        None => (text.trim(), None),
    };
    let (agent, model) = match named.split_once(':') {
        Some((agent, model)) => (agent.trim(), Some(model.trim())),
        None => (named, None),
    };
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric());
    if agent.is_empty() || model.is_some_and(str::is_empty) || !effort.is_none_or(is_word) {
        return Err(format!(
            "`{}` is not an agent: write `AGENT`, `AGENT:MODEL` or `AGENT:MODEL#EFFORT`",
            text.trim()
        ));
    }
    Ok(AgentChoice {
        agent: agent.to_owned(),
        model: model.map(str::to_owned),
        effort: effort.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::parse_chain;

    #[test]
    fn a_chain_is_read_as_it_is_written() {
        let written = |text: &str| {
            let chain = parse_chain(text)?;
            Ok::<_, String>(chain.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(written("claude").unwrap(), ["claude"]);
        assert_eq!(written(" claude:opus , openai:qwen3:8b").unwrap(), ["claude:opus", "openai:qwen3:8b"]);
        assert_eq!(written("codex#low,codex:gpt-5#high").unwrap(), ["codex#low", "codex:gpt-5#high"]);
        for bad in ["", "claude,", ":opus", "claude:", "claude#", "#high", "codex#very high"] {
            assert!(written(bad).unwrap_err().contains("is not an agent"), "{bad}");
        }
    }
}
