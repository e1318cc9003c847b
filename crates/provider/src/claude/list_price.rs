//! What Anthropic charges for its models, to estimate the cost of calls that were stopped before their result.
//!
//! The program reports tokens while it works, and a cost only in its result. Prices of the configuration come first.

use crate::Price;

/// The price of a model by its family, as the program 2.1.33x computes it for a result. An unknown model has the price of
/// the largest one, as in the program.
pub(super) fn list_price(model: &str) -> Price {
    // `claude-sonnet-4-5`, `us.anthropic.claude-opus-4-1`.
    let is_fourth = model.contains("-4-") || model.ends_with("-4");
    let (input, output) = match () {
        () if model.contains("haiku") && is_fourth => (1.0, 5.0),
        () if model.contains("haiku") => (0.5, 2.5),
        () if model.contains("sonnet") && is_fourth => (3.0, 15.0),
        () if model.contains("sonnet") => (2.0, 10.0),
        () if is_fourth => (5.0, 25.0),
        () => (4.0, 20.0),
    };
    Price { input, cached_input: Some(input / 10.0), output, as_of: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_have_the_price_of_their_family() {
        let input = |model| list_price(model).input;
        for (model, price) in [
            ("claude-opus-4-5", 5.0),
            ("claude-opus-5-5", 4.0),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 3.0),
            ("claude-sonnet-5", 2.0),
            ("claude-haiku-4-5", 1.0),
            ("haiku", 0.5),
            ("another", 4.0),
        ] {
            assert!((input(model) - price).abs() < 1e-9, "{model}");
        }
    }
}
