//! `doctor`.

use super::Place;
use crate::{
    Failure,
    cli::{args::Doctor, print},
    config, doctor, exit,
    start_run::Program,
};

pub(super) fn doctor(place: &Place, args: &Doctor) -> Result<u8, Failure> {
    let config = config::load(place.home.root())?;
    let findings = doctor::look(place.home.root(), &Program::current()?, &config);
    let ok = doctor::can_run(&findings);
    if args.json {
        print::json(&doctor::to_json(&findings));
    } else {
        let width = findings.iter().map(|finding| finding.name.len()).max().unwrap_or(0);
        for finding in &findings {
            print::data(&format!(
                "{:4}  {:width$}  {}",
                finding.standing.as_str(),
                finding.name,
                finding.found
            ));
            if let Some(hint) = &finding.hint {
                print::data(&format!("      {:width$}  → {hint}", ""));
            }
        }
        let verdict = match ok {
            true => "runs work here with each provider marked ok",
            false => "runs do not work here: fix the lines marked no",
        };
        print::data(&format!("\n{verdict}"));
    }
    Ok(if ok { exit::DONE } else { exit::ENVIRONMENT })
}
