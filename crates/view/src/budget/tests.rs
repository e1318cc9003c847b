use cuegate_engine::{AskLimit, Budget, CommandId, Excess, Ledger, Share, SpentBudget};

use super::{capped_elsewhere, format_budget_limits, suggest_budget_flags};

fn ledger(budget: Budget, spent: SpentBudget) -> Ledger {
    Ledger { budget, spent, ..Ledger::default() }
}

/// Parses a flag as the command line does: it truncates to whole units.
fn read(flag: &str, per: f64) -> u64 {
    let number: f64 = flag.split(' ').nth(1).unwrap().parse().unwrap();
    (number * per).floor() as u64
}

#[test]
fn small_limits_do_not_round_to_zero() {
    for (ms, words) in [(1, "0.000017 min"), (300, "0.005 min"), (1_200, "0.02 min"), (5_400_000, "90 min")] {
        let budget = Budget { driven_ms: Some(ms), ..Budget::default() };
        assert_eq!(format_budget_limits(&budget).as_deref(), Some(words));
        for spent in [ms, ms * 7 + 1] {
            let ledger = ledger(budget, SpentBudget { driven_ms: spent, ..SpentBudget::default() });
            let flags = suggest_budget_flags(&ledger, 1);
            let raised = read(&flags[0], 60_000.0);
            assert!(raised >= spent * 2, "{flags:?} of {spent}");
            assert_eq!(ledger.lacks(Budget { driven_ms: Some(raised), ..Budget::default() }), None);
        }
    }
}

#[test]
fn a_money_flag_never_parses_to_less() {
    for micro in (1..5_000).chain([1_234_567, 5_000_000, 999_999_999]) {
        let budget = Budget { usd_micro: Some(micro), ..Budget::default() };
        let ledger = ledger(budget, SpentBudget { usd_micro: micro, ..SpentBudget::default() });
        let flags = suggest_budget_flags(&ledger, 1);
        assert!(read(&flags[0], 1e6) >= micro * 2, "{flags:?} of {micro}");
    }
}

#[test]
fn a_limit_with_less_than_one_unit_per_ask_is_used_up() {
    let budget = Budget { usd_micro: Some(10), tokens: Some(1_000), ..Budget::default() };
    let ledger = ledger(budget, SpentBudget { usd_micro: 8, tokens: 998, ..SpentBudget::default() });
    assert_eq!(suggest_budget_flags(&ledger, 2), Vec::<String>::new());
    assert_eq!(suggest_budget_flags(&ledger, 3), ["--budget-usd 0.00002", "--budget-tokens 2000"]);
    // Doubling is not enough for 30 asks.
    assert_eq!(suggest_budget_flags(&ledger, 30)[0], "--budget-usd 0.000038");
    let raised = Budget { usd_micro: Some(38), tokens: Some(2_000), ..Budget::default() };
    assert!(Ledger { budget: raised, ..ledger }.share(30).is_ok());
}

#[test]
fn maximal_numbers_do_not_overflow() {
    let all = Some(u64::MAX);
    let budget = Budget { usd_micro: all, tokens: all, asks: all, driven_ms: all, ..Budget::default() };
    let most = u64::MAX;
    let spent = SpentBudget { usd_micro: most, tokens: most, asks: most, driven_ms: most };
    let mut ledger = ledger(budget, spent);
    for seq in 0..2 {
        let share = Share { usd_micro: all, tokens: all };
        ledger.reserved.insert(CommandId::Step { seq }, share);
    }
    assert_eq!(
        suggest_budget_flags(&ledger, most),
        [
            "--budget-usd 1000000000",
            "--budget-tokens 18446744073709551615",
            "--budget-calls 18446744073709551615",
            "--budget-minutes 16666666666.67",
        ]
    );
    let budget = Budget { ask_usd_micro: all, ask_tokens: all, ..Budget::default() };
    let ledger = Ledger { budget, overspent: Some(excess(AskLimit::Usd, all, all)), ..Ledger::default() };
    assert_eq!(suggest_budget_flags(&ledger, 1), Vec::<String>::new());
}

fn excess(of: AskLimit, usd_micro: Option<u64>, tokens: Option<u64>) -> Excess {
    Excess { what: "too much".to_owned(), of, share: Share { usd_micro, tokens } }
}

/// Each hint, taken, lets the next call use more than the one that was stopped.
#[test]
fn a_call_over_its_limit_raises_that_limit() {
    let budget = Budget { usd_micro: Some(1_000_000), tokens: Some(10_000), ..Budget::default() };
    let spent = SpentBudget { usd_micro: 500_000, tokens: 100, ..SpentBudget::default() };
    let over = |budget, spent, excess| Ledger { overspent: Some(excess), ..ledger(budget, spent) };
    let usd = excess(AskLimit::Usd, Some(500_000), Some(5_000));
    assert_eq!(suggest_budget_flags(&over(budget, spent, usd), 1), ["--call-usd 1", "--budget-usd 1.5"]);
    let tokens = excess(AskLimit::Tokens, Some(500_000), Some(4_000));
    assert_eq!(suggest_budget_flags(&over(budget, spent, tokens), 1), ["--call-tokens 8000"]);
    // Three calls shared what was left of the budget, so the budget was the limit.
    let third = excess(AskLimit::Tokens, Some(100_000), Some(1_000));
    let spent = SpentBudget { tokens: 9_000, ..spent };
    assert_eq!(suggest_budget_flags(&over(budget, spent, third), 1), ["--budget-tokens 11000"]);
    let turns = over(budget, spent, excess(AskLimit::Other, Some(100_000), Some(1_000)));
    assert_eq!(suggest_budget_flags(&turns, 1), Vec::<String>::new());
    assert!(capped_elsewhere(&turns));
}
