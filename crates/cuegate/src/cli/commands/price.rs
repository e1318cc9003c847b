//! `price`.

use cuegate_engine::Load;
use cuegate_flow::Certificate;

use super::{Place, check, disk, how};
use crate::{
    Failure,
    cli::{args, given, print},
    config,
    definition::{each_way, look},
    exit,
    terms::{Asked, terms},
};

/// Says the most that a run of a definition can do and cost.
pub(super) fn price(place: &Place, args: &args::Price) -> Result<u8, Failure> {
    let location = place.locate(&args.path)?;
    let how = how::how(place, &args.path, &location, args.phases)?;
    let names = given::names(&args.set)?;
    let config = config::load(place.home.root())?;
    let asked = Asked {
        provider: args.provider.as_deref().or(config.run.provider.as_deref()),
        model: args.model.as_deref(),
    };
    let budget = config.budget.budget().with(args.limits.budget());
    let files = disk(&location)?;
    let (base, file) = (&location.base, location.file.as_deref());
    let (alone, there) = each_way(&files, base, file, |interactive| {
        let mut definition = look(&files, base, file, &names, &Load { interactive, ..how.clone() });
        location.show_in(&mut definition.sources);
        let found = definition.flow.as_ref().map(|flow| {
            let terms = terms(flow, asked, &budget, args.max_iterations, args.repairs, &config);
            cuegate_flow::price(flow, &terms)
        });
        (definition, found)
    });
    given::look_at(&alone.0, &args.set, &names)?;
    let (definition, Some(found)) = alone else {
        check::tell(&alone.0.diagnostics, &alone.0.sources, false);
        return Err(Failure::usage(
            format!("`{}` is not sound", args.path),
            format!("mend what is found above, then `cuegate check {}`", args.path),
        ));
    };
    // Rules for persons exist only where somebody is there, and what a run costs at most holds for both.
    let there = there.and_then(|(definition, found)| Some((definition, found?)));
    let (dearest, other) = match there {
        Some((there, dearer)) if cost(&dearer) > cost(&found) => ((there, dearer), Some((definition, found))),
        there => ((definition, found), there),
    };
    if args.json {
        print::json(&cuegate_view::price_json(&dearest.1, &dearest.0.sources));
    } else {
        print::data(&cuegate_view::price(&dearest.1, &dearest.0.sources));
    }
    // The program ends: taking a large definition apart first would be time for nothing.
    std::mem::forget((dearest, other));
    Ok(exit::DONE)
}

/// What is compared. What is not bounded is more than all that is.
fn cost(most: &Certificate) -> (u64, u64, u64, u64) {
    (most.asks, most.usd_micro.unwrap_or(u64::MAX), most.tokens.unwrap_or(u64::MAX), most.visits)
}
