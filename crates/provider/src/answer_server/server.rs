//! The server as a process that an agent program starts: messages on standard input and output, a line each.

use std::{
    ffi::OsString,
    fs,
    io::{self, BufRead, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::Value;

use super::{protocol::AnswerProtocol, record::append_record};

/// The schema in the folder that the server is started with.
pub(crate) const SCHEMA_FILE: &str = "schema.json";
/// The records in that folder.
pub(crate) const RECORDS_FILE: &str = "answers.jsonl";

/// The body of the hidden subcommand for agent programs: `FOLDER`, which has the schema and gets the records. The
/// folder is an argument, not a variable, because agent programs filter the environment of the servers that they start.
///
/// Ends when standard input does. Exits with 2 if it cannot read the schema.
pub fn answer_server_main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let folder = PathBuf::from(args.next().unwrap_or_default());
    let protocol = match read_schema(&folder) {
        Ok(schema) => AnswerProtocol::new(schema),
        Err(error) => {
            writeln!(io::stderr(), "failed to read the schema in `{}`: {error}", folder.display()).ok();
            return ExitCode::from(2);
        }
    };
    match serve_lines(&protocol, &folder.join(RECORDS_FILE), io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "failed to serve: {error}").ok();
            ExitCode::FAILURE
        }
    }
}

pub(super) fn read_schema(folder: &Path) -> io::Result<Value> {
    Ok(serde_json::from_slice(&fs::read(folder.join(SCHEMA_FILE))?)?)
}

fn serve_lines(
    protocol: &AnswerProtocol,
    records: &Path,
    mut input: impl BufRead,
    mut output: impl Write,
) -> io::Result<()> {
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if !line.trim_ascii().is_empty() {
            let reaction = protocol.receive(&line);
            // Recorded first: who gets the reply may end the turn at once.
            reaction.records.iter().try_for_each(|record| append_record(records, record))?;
            if let Some(reply) = reaction.reply {
                writeln!(output, "{reply}")?;
                output.flush()?;
            }
        }
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::answer_server::record::{AnswerRecord, AnswerRecords};

    #[test]
    fn lines_are_answered_and_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(RECORDS_FILE);
        let protocol = AnswerProtocol::new(json!({ "type": "object" }));
        let input = b"{\"id\":1,\"method\":\"tools/list\"}\n\n{\"id\":2,\"method\":\"tools/call\",\"params\":\
            {\"name\":\"submit_answer\",\"arguments\":{\"a\":1}}}\n{\"method\":\"notifications/cancelled\"}\nnonsense";
        let mut output = Vec::new();
        serve_lines(&protocol, &file, &input[..], &mut output).unwrap();
        assert_eq!(String::from_utf8(output).unwrap().lines().count(), 3);
        let mut records = AnswerRecords::new(file.clone());
        assert_eq!(records.read_new(), [AnswerRecord::Listed, AnswerRecord::Answer(json!({ "a": 1 }))]);
        fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(b"{\"refused\":\"x\"}").unwrap();
        assert_eq!(records.read_new(), [], "its line has no end yet");
        append_record(&file, &AnswerRecord::Listed).unwrap();
        assert_eq!(records.read_new(), [], "a garbled line is none of ours");
    }
}
