//! `check`, `explain` and `show`.

use cuegate_flow::Severity;
use serde_json::{Value, json};

use super::{Place, load};
use crate::{
    Failure,
    cli::{
        args::{Check, Explain, Show},
        print,
    },
    definition::Definition,
    exit,
};

/// Finds what is wrong with definitions.
pub(super) fn check(place: &Place, args: &Check) -> Result<u8, Failure> {
    let mut results: Vec<Value> = Vec::new();
    let (mut errors, mut warnings) = (0, 0);
    for path in &args.paths {
        let definition = match place.locate(path).and_then(|location| load(&location, &args.set)) {
            Ok(definition) => definition,
            // The others are checked all the same.
            Err(failure) => {
                errors += 1;
                if args.json {
                    results.push(json!({"diagnostics": [{"code": "unreadable-file", "severity": "error",
                        "message": failure.message, "file": path, "line": 1, "column": 1, "step": null,
                        "hint": failure.hint, "trace": []}]}));
                } else {
                    print::failure(&failure);
                }
                continue;
            }
        };
        let (bad, odd) = count(&definition, args.strict);
        errors += bad;
        warnings += odd;
        if args.json {
            results.push(cuegate_view::check_json(&definition.diagnostics, &definition.sources, args.strict));
        } else {
            tell(&definition, args.strict);
        }
    }
    if args.json {
        print::json(&merged(results, errors, warnings));
    } else {
        print::line(&format!(
            "{}: {errors} error{}, {warnings} warning{}",
            if errors == 0 { "sound" } else { "not sound" },
            plural(errors),
            plural(warnings)
        ));
    }
    Ok(if errors == 0 { exit::DONE } else { exit::USAGE })
}

/// Draws all findings.
pub(super) fn tell(definition: &Definition, strict: bool) {
    for finding in &definition.diagnostics {
        print::finding(finding, &definition.sources, strict);
        print::line("");
    }
}

/// Errors and warnings.
pub(super) fn count(definition: &Definition, strict: bool) -> (usize, usize) {
    let of = |severity| definition.diagnostics.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (of(Severity::Error), of(Severity::Warning));
    if strict { (errors + warnings, 0) } else { (errors, warnings) }
}

pub(super) fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// One object, however many definitions were checked.
fn merged(results: Vec<Value>, errors: usize, warnings: usize) -> Value {
    let diagnostics: Vec<Value> = results
        .into_iter()
        .flat_map(|mut result| match result["diagnostics"].take() {
            Value::Array(found) => found,
            _ => Vec::new(),
        })
        .collect();
    json!({"schema": "cuegate/check/v1", "ok": errors == 0, "errors": errors, "warnings": warnings,
        "diagnostics": diagnostics})
}

/// Prints the manual page of a finding.
pub(super) fn explain(args: &Explain) -> Result<u8, Failure> {
    let mut known = cuegate_flow::codes().to_vec();
    known.extend(cuegate_dialect::codes());
    if let Some(code) = known.iter().find(|code| code.name == args.code) {
        print::data(code.page);
        return Ok(exit::DONE);
    }
    let names: Vec<&str> = known.iter().map(|code| code.name).collect();
    Err(Failure::usage(
        format!("there is no finding `{}`", args.code),
        format!("there are {}", names.join(", ")),
    ))
}

/// Prints a definition as the flow that will run.
pub(super) fn show(place: &Place, args: &Show) -> Result<u8, Failure> {
    let location = place.locate(&args.path)?;
    let definition = load(&location, &args.set)?;
    let Some(flow) = &definition.flow else {
        tell(&definition, false);
        return Err(Failure::usage(
            format!("`{}` is not sound", args.path),
            format!("mend what is found above, then `cuegate check {}`", args.path),
        ));
    };
    if args.json {
        print::json(&cuegate_view::show_json(flow));
    } else {
        print::data(&cuegate_view::show(flow));
        let (_, warnings) = count(&definition, false);
        if warnings > 0 {
            print::line(&format!(
                "{warnings} warning{}: see `cuegate check {}`",
                plural(warnings),
                args.path
            ));
        }
    }
    Ok(exit::DONE)
}
