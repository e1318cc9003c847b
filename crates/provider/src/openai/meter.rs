//! Measures the usage of a running ask, so that the caller can stop it at its cap.

use super::wire::ReportedUsage;
use crate::{Activity, Prices, Usage, program::estimate_tokens};

/// The increase of estimated tokens after which usage is reported.
const STEP: u64 = 16;
/// The bytes per output token in the estimate of a running answer. Most texts have fewer bytes per token, so a limit
/// that the service enforces comes first; the estimate is for services that enforce none.
const BYTES_MAX: u64 = 5;

/// The reported usage, or an estimate until the service reports it.
#[derive(Debug)]
pub(super) struct Meter {
    prices: Prices,
    /// The names of the model, starting with the requested one.
    models: Vec<String>,
    /// Estimated tokens of the request.
    input: u64,
    began: bool,
    /// The number of output bytes, reasoning included.
    written: u64,
    used: Option<ReportedUsage>,
    /// The bytes that had been written when the service last reported.
    reported_at: u64,
    told: Usage,
}

impl Meter {
    pub fn new(prices: Prices, model: String, input: u64) -> Meter {
        Meter {
            prices,
            models: vec![model],
            input,
            began: false,
            written: 0,
            used: None,
            reported_at: 0,
            told: Usage::default(),
        }
    }

    /// Adds the service's name of the model. A price of the requested name has priority.
    pub fn called(&mut self, model: &str) {
        self.models.push(model.to_owned());
    }

    /// The service has started, so the input counts even if the ask is stopped now.
    ///
    /// Reported estimates are never reduced: if they were too high, their sum stays above the final usage.
    pub fn began(&mut self) -> Option<Activity> {
        self.began = true;
        self.estimated()
    }

    /// Output arrived. Reports usage in steps.
    pub fn wrote(&mut self, bytes: u64) -> Option<Activity> {
        let first = !std::mem::replace(&mut self.began, true);
        self.written = self.written.saturating_add(bytes);
        let enough = first || self.written / BYTES_MAX >= self.told.output_tokens.saturating_add(STEP);
        enough.then(|| self.estimated()).flatten()
    }

    fn estimated(&mut self) -> Option<Activity> {
        if self.used.is_some() {
            return None;
        }
        let output_tokens = self.written / BYTES_MAX;
        self.tell(Usage { input_tokens: self.input, output_tokens, ..Usage::default() })
    }

    /// The service reports the usage so far.
    pub fn used(&mut self, used: ReportedUsage) -> Option<Activity> {
        self.used = Some(used);
        self.reported_at = self.written;
        self.tell(convert_reported_usage(used))
    }

    /// The usage with its cost at the model's price: as reported by the service; without a report an estimate by the length
    /// of the request and the answer, once the service has started.
    pub fn total(&self) -> Usage {
        match self.used {
            Some(used) => {
                let reported = convert_reported_usage(used);
                let since = estimate_tokens(self.written - self.reported_at);
                let output_tokens = reported.output_tokens.saturating_add(since);
                self.priced(Usage { output_tokens, is_estimated: since > 0, ..reported })
            }
            None if !self.began => Usage::default(),
            None => self.priced(Usage {
                input_tokens: self.input,
                output_tokens: estimate_tokens(self.written),
                is_estimated: true,
                ..Usage::default()
            }),
        }
    }

    /// The number of output tokens, if the service reports it.
    pub fn written(&self) -> Option<u64> {
        self.used.map(|used| used.output)
    }

    fn tell(&mut self, total: Usage) -> Option<Activity> {
        let (total, told) = (self.priced(total), self.told);
        let more = Usage {
            input_tokens: total.input_tokens.saturating_sub(told.input_tokens),
            cached_input_tokens: total.cached_input_tokens.saturating_sub(told.cached_input_tokens),
            output_tokens: total.output_tokens.saturating_sub(told.output_tokens),
            cost_usd: total.cost_usd.map(|cost| (cost - told.cost_usd.unwrap_or(0.0)).max(0.0)),
            is_estimated: false,
        };
        self.told = Usage {
            input_tokens: told.input_tokens.saturating_add(more.input_tokens),
            cached_input_tokens: told.cached_input_tokens.saturating_add(more.cached_input_tokens),
            output_tokens: told.output_tokens.saturating_add(more.output_tokens),
            cost_usd: more.cost_usd.map(|cost| told.cost_usd.unwrap_or(0.0) + cost),
            is_estimated: false,
        };
        let nothing =
            more.input_tokens == 0 && more.output_tokens == 0 && more.cost_usd.unwrap_or(0.0) == 0.0;
        (!nothing).then_some(Activity::Usage(more))
    }

    fn priced(&self, usage: Usage) -> Usage {
        let cost_usd = self.models.iter().find_map(|model| self.prices.cost(Some(model), &usage));
        Usage { cost_usd, ..usage }
    }
}

fn convert_reported_usage(used: ReportedUsage) -> Usage {
    Usage {
        input_tokens: used.input,
        cached_input_tokens: used.cached,
        output_tokens: used.output,
        cost_usd: None,
        is_estimated: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Price;

    fn meter(prices: &[&str]) -> Meter {
        let price = Price { input: 1.0, cached_input: Some(0.5), output: 10.0, as_of: None };
        let prices = Prices(prices.iter().map(|model| ((*model).to_owned(), price)).collect());
        Meter::new(prices, "m".to_owned(), 50)
    }

    /// The sum of all reported usage.
    fn sum(told: Vec<Option<Activity>>) -> Usage {
        let mut sum = Usage { cost_usd: Some(0.0), ..Usage::default() };
        for activity in told.into_iter().flatten() {
            let Activity::Usage(usage) = activity else { panic!("{activity:?}") };
            sum.input_tokens += usage.input_tokens;
            sum.cached_input_tokens += usage.cached_input_tokens;
            sum.output_tokens += usage.output_tokens;
            sum.cost_usd = sum.cost_usd.zip(usage.cost_usd).map(|(sum, more)| sum + more);
        }
        sum
    }

    const USED: ReportedUsage = ReportedUsage { input: 1000, cached: 200, output: 300 };

    #[test]
    fn reported_usage_sums_up_to_the_total() {
        let mut meter = meter(&["m"]);
        let told = vec![meter.began(), meter.wrote(3), meter.wrote(600), meter.used(USED), meter.used(USED)];
        assert_eq!((&told[1], &told[4]), (&None, &None));
        let Some(Activity::Usage(written)) = told[2] else { panic!("{told:?}") };
        assert_eq!((written.input_tokens, written.output_tokens), (0, 120));
        assert!((written.cost_usd.unwrap() - 0.0012).abs() < 1e-12);
        let (sum, total) = (sum(told), meter.total());
        assert_eq!(Usage { cost_usd: None, ..sum }, Usage { cost_usd: None, ..total });
        assert_eq!((total.input_tokens, total.cached_input_tokens, total.output_tokens), (1000, 200, 300));
        let cost = (800.0 + 100.0 + 3000.0) / 1e6;
        assert!(
            (sum.cost_usd.unwrap() - cost).abs() < 1e-12 && (total.cost_usd.unwrap() - cost).abs() < 1e-12
        );
    }

    #[test]
    fn an_estimate_that_was_too_high_is_not_reduced() {
        let mut meter = meter(&[]);
        let told = vec![meter.wrote(5000), meter.used(USED)];
        let sum = sum(told);
        assert_eq!((sum.input_tokens, sum.output_tokens, sum.cost_usd), (1000, 1000, None));
        assert_eq!(meter.total().output_tokens, 300);
    }

    #[test]
    fn an_ask_stopped_at_once_has_its_input_tokens() {
        let mut meter = meter(&["m"]);
        let told = vec![meter.began()];
        assert_eq!(sum(told).input_tokens, 50);
        assert_eq!(meter.total().input_tokens, 50);
    }

    #[test]
    fn usage_without_a_report_is_estimated() {
        let mut meter = meter(&["m"]);
        assert_eq!(meter.total(), Usage::default());
        assert!(meter.wrote(9).is_some());
        let total = meter.total();
        assert_eq!((total.input_tokens, total.output_tokens), (50, 3));
        assert!((total.cost_usd.unwrap() - 80e-6).abs() < 1e-12, "at the price of the model");
    }

    #[test]
    fn a_price_is_found_under_either_name() {
        let mut meter = meter(&["m-2026"]);
        meter.used(USED);
        assert_eq!(meter.total().cost_usd, None);
        meter.called("m-2026");
        assert!(meter.total().cost_usd.is_some());
    }
}
