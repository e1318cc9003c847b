//! `price`.

use cuegate_engine::Load;
use cuegate_flow::Certificate;

use super::{Place, check, how, load_as};
use crate::{
    Failure,
    cli::{args, given, print},
    config, exit,
    terms::{Asked, terms},
};

/// Says the most that a run of a definition can do and cost.
pub(super) fn price(place: &Place, args: &args::Price) -> Result<u8, Failure> {
    let location = place.locate(&args.path)?;
    let how = how::how(place, &args.path, &location, args.phases)?;
    let names = given::names(&args.set)?;
    let definition = load_as(&location, &names, &how)?;
    given::look_at(&definition, &args.set, &names)?;
    let Some(flow) = &definition.flow else {
        check::tell(&definition.diagnostics, &definition.sources, false);
        return Err(Failure::usage(
            format!("`{}` is not sound", args.path),
            format!("mend what is found above, then `cuegate check {}`", args.path),
        ));
    };
    let config = config::load(place.home.root())?;
    let asked = Asked {
        provider: args.provider.as_deref().or(config.run.provider.as_deref()),
        model: args.model.as_deref(),
    };
    let budget = config.budget.budget().with(args.limits.budget());
    let terms = terms(flow, asked, &budget, args.max_iterations, args.repairs, &config);
    let mut found = cuegate_flow::price(flow, &terms);
    if how::of_piece(&location) {
        let there = load_as(&location, &names, &Load { interactive: true, ..how })?;
        let there = there.flow.map(|flow| cuegate_flow::price(&flow, &terms));
        found = dearer(found, there);
    }
    if args.json {
        print::json(&cuegate_view::price_json(&found, &definition.sources));
    } else {
        print::data(&cuegate_view::price(&found, &definition.sources));
    }
    Ok(exit::DONE)
}

/// The dearer one: rules for persons exist only where somebody is there, and what a run costs at most holds for both.
fn dearer(alone: Certificate, there: Option<Certificate>) -> Certificate {
    // What is not bounded is more than all that is.
    let cost = |most: &Certificate| {
        (most.asks, most.usd_micro.unwrap_or(u64::MAX), most.tokens.unwrap_or(u64::MAX), most.visits)
    };
    match there {
        Some(there) if cost(&there) > cost(&alone) => there,
        _ => alone,
    }
}
