//! Reads `runner.logging`: a log file for each run.

use cuegate_flow::diagnostics::Diagnostic;

use crate::codes;
use crate::source::files::join_path;
use crate::source::loaded::{LogFormat, LogRule};
use crate::values::json::{Fields, Kind};

/// The default log folder (the runner reference).
const DIRECTORY: &str = "logs";

pub(crate) fn read_logging(logging: Fields<'_, '_>) -> LogRule {
    let directory = match logging.filled("directory") {
        None => Some(DIRECTORY.to_owned()),
        Some(written) => {
            let joined = join_path("", written.text);
            if joined.is_none() {
                let message = format!("`{}` leads out of the project", written.text);
                logging.push(
                    Diagnostic::error(codes::ESCAPES_ROOT, written.span, message)
                        .hint("name a folder of the project; log files are written there"),
                );
            } else if joined.as_deref() == Some("") {
                let message = "`directory` is the project itself".to_owned();
                logging.invalid(written.span, message, "name a folder of its own, such as `logs`");
            }
            let kept = joined.as_deref().and_then(|path| {
                let parts = |name: &&&str| path.split('/').any(|part| part.eq_ignore_ascii_case(name));
                [".git", ".cuegate"].iter().find(parts)
            });
            if let Some(kept) = kept {
                let message = format!("`{}` lies in `{kept}`, which is not for log files", written.text);
                logging.invalid(written.span, message, "name a folder of its own, such as `logs`");
            }
            joined.filter(|path| !path.is_empty())
        }
    };
    let format = match logging.one_of("format", &["jsonl", "text"]) {
        Some(("text", _)) => LogFormat::Text,
        _ => LogFormat::Jsonl,
    };
    let files_max = logging.entry("maxFiles").and_then(|entry| match entry.value.kind {
        Kind::Number(_) => logging.count("maxFiles", 1).map(|(count, _)| count),
        _ => {
            logging.wrong_type("maxFiles", &entry.value, "a number");
            None
        }
    });
    logging.finish();
    LogRule { directory: directory.unwrap_or_else(|| DIRECTORY.to_owned()), format, files_max }
}
