//! Measures `check` and `price`, and how their time grows with the size of a definition.

mod growth;
mod process;

use std::{fs, path::Path};

use cuegate_testkit::large::{Flaw, Large, piece, registry};

use super::Figure;
use process::Taken;

/// The sizes of the measured definitions, in steps or movements.
const SIZES: [usize; 4] = [100, 1_000, 3_000, 10_000];
/// How often each is measured; the median is reported.
const ROUNDS: usize = 7;

/// A format, and the size that has bounds.
struct Format {
    name: &'static str,
    make: fn(usize, Flaw) -> Large,
    bounded: usize,
}

const FORMATS: [Format; 2] = [
    Format { name: "registry", make: registry, bounded: 1_000 },
    Format { name: "piece", make: piece, bounded: 1_000 },
];

/// The bounds in milliseconds and MiB for a definition of the bounded size.
const CHECK_MS_MAX: f64 = 150.0;
const PRICE_MS_MAX: f64 = 600.0;
const MIB_MAX: f64 = 200.0;
/// The bound for the growth exponent of `check`: time ∝ size to this power.
const POWER_MAX: f64 = 1.25;

/// Measures `check` and `price` of large definitions, and prints tables.
pub(super) fn check(cuegate: &Path, place: &Path, figures: &mut Vec<Figure>) -> Result<(), String> {
    for format in &FORMATS {
        let mut rows = Vec::new();
        for size in SIZES {
            let made = (format.make)(size, Flaw::None);
            let project = place.join(format!("{}-{size}", format.name));
            let path =
                made.write(&project).map_err(|error| format!("failed to write a definition: {error}"))?;
            let bytes: usize = made.files.values().map(String::len).sum();
            let check = process::measured(cuegate, &["check", &text(&path)], &project, ROUNDS, 0)?;
            let price = process::measured(cuegate, &["price", &text(&path)], &project, ROUNDS, 0)?;
            rows.push(growth::Row { steps: made.steps, files: made.files.len(), bytes, check, price });
            if size == format.bounded {
                bounded(format, &rows[rows.len() - 1], figures);
                flawed(format, cuegate, place, figures)?;
            }
            fs::remove_dir_all(&project).map_err(|error| format!("failed to remove the project: {error}"))?;
        }
        growth::print(format.name, &rows);
        for (what, power) in growth::powers(&rows) {
            let what = format!("{what} of a {}, growth: time ∝ size to the power of", format.name);
            let most = what.starts_with("check").then_some(POWER_MAX);
            figures.push(Figure { what, got: power, unit: "", most });
        }
    }
    Ok(())
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn bounded(format: &Format, row: &growth::Row, figures: &mut Vec<Figure>) {
    for (what, Taken { ms, mib }, most) in
        [("check", &row.check, CHECK_MS_MAX), ("price", &row.price, PRICE_MS_MAX)]
    {
        let what = format!("{what} of a {} of {}", format.name, row.steps);
        figures.push(Figure { what: what.clone(), got: *ms, unit: "ms", most: Some(most) });
        figures.push(Figure { what: format!("{what}, memory"), got: *mib, unit: "MiB", most: Some(MIB_MAX) });
    }
}

/// Measures the same definitions with findings: one in the last stage, or one in each stage.
fn flawed(format: &Format, cuegate: &Path, place: &Path, figures: &mut Vec<Figure>) -> Result<(), String> {
    for (flaw, what) in
        [(Flaw::Far, "one finding at the far end"), (Flaw::Everywhere, "a finding in each stage")]
    {
        let made = (format.make)(format.bounded, flaw);
        let project = place.join(format!("{}-flawed", format.name));
        let path = made.write(&project).map_err(|error| format!("failed to write a definition: {error}"))?;
        let args = ["check", "--strict", "--format", "json", &text(&path)];
        let taken = process::measured(cuegate, &args, &project, ROUNDS, 2)?;
        let most = match flaw {
            // Most of the time is output: each of 500 findings prints a path through all earlier steps.
            Flaw::Everywhere => None,
            _ => Some(CHECK_MS_MAX),
        };
        let what = format!("check of a {} of {}, {what}", format.name, made.steps);
        figures.push(Figure { what, got: taken.ms, unit: "ms", most });
        fs::remove_dir_all(&project).map_err(|error| format!("failed to remove the project: {error}"))?;
    }
    Ok(())
}
