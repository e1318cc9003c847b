//! `price`.

use super::{Place, check, load};
use crate::{
    Failure,
    cli::{args, print},
    config, exit,
    terms::{Asked, terms},
};

/// Says the most that a run of a definition can do and cost.
pub(super) fn price(place: &Place, args: &args::Price) -> Result<u8, Failure> {
    let location = place.locate(&args.path)?;
    let definition = load(&location, &args.set)?;
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
    let found = cuegate_flow::price(flow, &terms);
    if args.json {
        print::json(&cuegate_view::price_json(&found));
    } else {
        print::data(&cuegate_view::price(&found));
    }
    Ok(exit::DONE)
}
