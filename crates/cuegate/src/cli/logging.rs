//! The log of the program itself, for its developers and for bug reports. A run's own log is in the journal.

use std::io;

use tracing_subscriber::EnvFilter;

use super::print;
use crate::Failure;

/// The variable that chooses what is printed, as `RUST_LOG` does elsewhere.
const VARIABLE: &str = "CUEGATE_LOG";

/// Prints events of the program from now on: those that `CUEGATE_LOG` chooses, else by how often `-v` was given.
///
/// # Errors
/// When `CUEGATE_LOG` is not a filter.
pub(super) fn init_logging(verbose: u8) -> Result<(), Failure> {
    let chosen = std::env::var(VARIABLE).unwrap_or_default();
    let filter = match (chosen.trim(), verbose) {
        ("", 0) => return Ok(()),
        ("", 1) => EnvFilter::new("cuegate=debug"),
        ("", _) => EnvFilter::new("cuegate=trace"),
        (text, _) => parse_filter(text).map_err(|why| {
            Failure::usage(
                format!("invalid filter in {VARIABLE}: {why}"),
                "write a level such as `debug`, or places with levels: `cuegate_runner=trace,info`",
            )
        })?,
    };
    let printed =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(|| LogWriter);
    // A program that uses the library may have set its own.
    let _ = printed.try_init();
    Ok(())
}

/// A word without a level is a place, also where it is a misspelt level, which would then print nothing.
fn parse_filter(text: &str) -> Result<EnvFilter, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let is_known =
        |word: &&str| LEVELS.contains(&word.to_ascii_lowercase().as_str()) || word.starts_with("cuegate");
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty() && !word.contains(['=', '[']));
    if let Some(word) = words.into_iter().find(|word| !is_known(word)) {
        return Err(format!("`{word}` is not a level"));
    }
    EnvFilter::try_new(text).map_err(|error| error.to_string())
}

/// Takes one event at a time, as the subscriber writes them.
struct LogWriter;

impl io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        print::print_log_line(String::from_utf8_lossy(bytes).trim_end());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
