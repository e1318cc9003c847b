//! Growth of time with size.

use super::process::Taken;

/// The result of one size.
pub(super) struct Row {
    pub(super) steps: usize,
    pub(super) files: usize,
    pub(super) bytes: usize,
    pub(super) check: Taken,
    pub(super) price: Taken,
}

/// Prints a Markdown table of sizes.
pub(super) fn print(format: &str, rows: &[Row]) {
    println!("\n| {format} | files | MiB | check ms | check MiB | price ms | price MiB |");
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    for row in rows {
        println!(
            "| {} | {} | {:.1} | {:.1} | {:.0} | {:.1} | {:.0} |",
            row.steps,
            row.files,
            row.bytes as f64 / f64::from(1 << 20),
            row.check.ms,
            row.check.mib,
            row.price.ms,
            row.price.mib
        );
    }
    println!();
}

/// The growth exponent of the time between the third smallest and the largest size: 1 is linear. Smaller sizes are
/// mostly start-up time, which would hide the growth.
pub(super) fn powers(rows: &[Row]) -> Vec<(&'static str, f64)> {
    let (Some(small), Some(large)) = (rows.get(2), rows.last()) else { return Vec::new() };
    let sizes = (large.steps as f64 / small.steps as f64).ln();
    let power = |time: fn(&Row) -> f64| (time(large) / time(small)).ln() / sizes;
    vec![("check", power(|row| row.check.ms)), ("price", power(|row| row.price.ms))]
}
