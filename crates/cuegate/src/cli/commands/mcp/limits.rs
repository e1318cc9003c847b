//! The limits of a run that an agent starts: it needs one, and none above those of `cuegate.toml`.

use cuegate_engine::Budget;
use serde::Deserialize;
use serde_json::Value;

/// The limits that a caller names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskedLimits {
    pub(super) usd: Option<f64>,
    pub(super) tokens: Option<u64>,
    pub(super) calls: Option<u64>,
    pub(super) minutes: Option<f64>,
    pub(super) call_usd: Option<f64>,
}

impl AskedLimits {
    pub(super) fn schema() -> Value {
        serde_json::json!({
            "type": "object",
            "description": "At least one of usd, tokens, calls and minutes, unless cuegate.toml sets one. Ask the user for it.",
            "properties": {
                "usd": { "type": "number", "description": "US dollars for the whole run" },
                "tokens": { "type": "integer", "description": "Tokens for the whole run" },
                "calls": { "type": "integer", "description": "Calls of agents" },
                "minutes": { "type": "number" },
                "call_usd": { "type": "number", "description": "US dollars for one call" },
            },
            "additionalProperties": false,
        })
    }

    /// Checks them against the settings, which are the ceiling.
    ///
    /// # Errors
    /// When nothing limits the run, or a limit is above that of the settings; in words.
    pub(super) fn check(&self, ceiling: &Budget) -> Result<(), String> {
        let count = |number: u64| number as f64;
        let usd = |micro: u64| micro as f64 / 1e6;
        let rows = [
            ("usd", self.usd, ceiling.usd_micro.map(usd)),
            ("tokens", self.tokens.map(count), ceiling.tokens.map(count)),
            ("calls", self.calls.map(count), ceiling.asks.map(count)),
            ("minutes", self.minutes, ceiling.driven_ms.map(|ms| ms as f64 / 60_000.0)),
            ("call_usd", self.call_usd, ceiling.ask_usd_micro.map(usd)),
        ];
        for (name, asked, most) in rows {
            if let (Some(asked), Some(most)) = (asked, most)
                && asked > most
            {
                return Err(format!(
                    "`limits.{name}` is {asked}, and `[budget]` of cuegate.toml allows {most}: ask for no more, or let the \
                     user change it"
                ));
            }
        }
        let limits_run = |(name, asked, most): &(&str, Option<f64>, Option<f64>)| {
            *name != "call_usd" && (asked.is_some() || most.is_some())
        };
        if !rows.iter().any(limits_run) {
            return Err(
                "nothing limits what the run may spend: ask the user for a limit, and pass it as `limits`, such as {\"usd\": \
                 5} or {\"calls\": 20}"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// The options of `price` for them.
    pub(super) fn options(&self) -> Vec<String> {
        let with = |name: &str, value: Option<String>| value.map(|value| format!("--{name}={value}"));
        let options = [
            with("budget-usd", self.usd.map(|usd| usd.to_string())),
            with("budget-tokens", self.tokens.map(|tokens| tokens.to_string())),
            with("budget-calls", self.calls.map(|calls| calls.to_string())),
            with("budget-minutes", self.minutes.map(|minutes| minutes.to_string())),
            with("call-usd", self.call_usd.map(|usd| usd.to_string())),
        ];
        options.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_needs_a_limit_and_the_settings_are_the_ceiling() {
        let (none, free) = (AskedLimits::default(), Budget::default());
        assert!(none.check(&free).unwrap_err().contains("ask the user"));
        let only_calls = AskedLimits { call_usd: Some(1.0), ..none };
        assert!(only_calls.check(&free).is_err(), "a limit of each call bounds no run");
        let five = Budget { usd_micro: Some(5_000_000), ..free };
        assert_eq!(none.check(&five), Ok(()));
        assert_eq!(AskedLimits { usd: Some(5.0), ..none }.check(&five), Ok(()));
        assert!(AskedLimits { usd: Some(5.5), ..none }.check(&five).unwrap_err().contains("allows 5"));
        assert_eq!(AskedLimits { minutes: Some(10.0), ..none }.options(), ["--budget-minutes=10"]);
    }
}
