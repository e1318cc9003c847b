//! What happened in a run since a client last asked, in few words.

use std::time::{Duration, Instant};

use cuegate_engine::EndState;
use cuegate_journal::{Journal, RunId};
use cuegate_view::{Liveness, RunFold, RunState, RunView, StampedRecord, TimeZone, Timeline};
use serde_json::{Value, json};

use crate::cli::commands::start::prompt_user::question_of_run;
use crate::cli::commands::{texts_of_run, view_of};
use crate::{Failure, project};

/// How often the journal is looked at.
const EVERY: Duration = Duration::from_millis(200);
/// The longest text of a reply, in bytes. Clients cut longer ones, or put them into a file.
pub(super) const TEXT_MAX: usize = 2_000;
/// The longest question, and the longest of the other texts, in bytes.
const QUESTION_MAX: usize = 700;
const OTHER_MAX: usize = 240;
/// How many files are named.
const FILES_MAX: usize = 12;

/// Waits until a run ends or stops, at most for `patience`, and tells what happened after the record `after`.
pub(super) fn wait_for_news(
    journal: &dyn Journal,
    run: &RunId,
    after: Option<u64>,
    patience: Duration,
) -> Result<Value, Failure> {
    let until = Instant::now() + patience;
    let mut timeline = Timeline::new(TimeZone::system());
    let mut fold = RunFold::new(run.as_str());
    let (mut next, mut lines) = (0, Vec::new());
    loop {
        // Read before the records: a process that ends meanwhile has written its last one.
        let live = project::liveness_of_run(journal, run)?;
        cuegate_runner::read_each_record(journal, run, next, |entry| {
            let record = StampedRecord { seq: entry.seq, at_ms: entry.at_ms, events: entry.events };
            next = record.seq + 1;
            let told = timeline.line(&record);
            fold.apply(&record);
            if after.is_none_or(|after| record.seq > after) {
                lines.push((record.seq, told));
            }
        })?;
        let goes_on = *fold.state() == RunState::Running && live == Liveness::Alive;
        if !goes_on || Instant::now() >= until {
            let mut news = describe_run(journal, run, live)?;
            // Beyond what there is, later news would be missed.
            add_lines(&mut news, lines, after.map(|after| after.min(next.max(1) - 1)));
            return Ok(news);
        }
        std::thread::sleep(EVERY.min(until.saturating_duration_since(Instant::now())));
    }
}

/// Adds as many lines as fit, and the record up to which they tell.
fn add_lines(news: &mut Value, lines: Vec<(u64, Vec<String>)>, after: Option<u64>) {
    let mut cursor = after;
    let mut left = TEXT_MAX.saturating_sub(news.to_string().len() + 60);
    let mut shown: Vec<String> = Vec::new();
    let mut has_more = false;
    for (seq, told) in lines {
        let told: Vec<String> = told.iter().map(|line| shorten_text(line, OTHER_MAX)).collect();
        // Quotes and the comma, and what is escaped.
        let size: usize = told.iter().map(|line| json!(line).to_string().len() + 1).sum();
        if size > left && !shown.is_empty() {
            has_more = true;
            break;
        }
        left = left.saturating_sub(size);
        shown.extend(told);
        cursor = Some(seq);
    }
    news["cursor"] = json!(cursor);
    news["news"] = shown.into();
    if has_more {
        news["more"] = true.into();
    }
}

/// Where a run stands: its state, what it waits for, what it proved, changed and spent.
pub(super) fn describe_run(journal: &dyn Journal, run: &RunId, live: Liveness) -> Result<Value, Failure> {
    let view: RunView = view_of(journal, run)?;
    let whole = view.to_json(&texts_of_run(journal, run));
    let is_stopped = view.state == RunState::Running && live != Liveness::Alive;
    let mut news = json!({
        "run": run.as_str(),
        "state": if is_stopped { "stopped" } else { view.state.as_str() },
        "ended": matches!(view.state, RunState::Ended(_)),
    });
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            news[key] = value;
        }
    };
    if is_stopped {
        put("what_to_do", "nothing drives it: `act` with `resume` goes on with what was paid for".into());
    }
    let mut has_question = false;
    let text = |key: &str| whole[key].as_str().map(|text| shorten_text(text, OTHER_MAX));
    if matches!(view.state, RunState::Suspended(_)) {
        let question = question_of_run(journal, run)?.filter(|question| !question.trim().is_empty());
        match question {
            Some(question) => {
                has_question = true;
                put("question", shorten_middle(&question, QUESTION_MAX).into());
                put("what_to_do", "ask the user, then `act` with `answer` and the text".into());
            }
            None => put(
                "waiting",
                whole["waiting"]["detail"].as_str().map(|text| shorten_text(text, OTHER_MAX)).into(),
            ),
        }
    }
    put("proof", text("proof").into());
    // The text of a question is its reason too.
    if !has_question {
        put("reason", text("reason").into());
        put("summary", text("summary").into());
    }
    if let RunState::Ended(end) = &view.state {
        // A workflow without commands completes too, and proves nothing.
        put("verified", (*end == EndState::Completed && whole["proof"].is_string()).into());
    }
    let files: Vec<&str> =
        whole["changed_files"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !files.is_empty() {
        put("changed_files", files.iter().take(FILES_MAX).map(|file| shorten_text(file, 80)).collect());
        put("changed_count", files.len().into());
    }
    let calls: u64 =
        whole["asks"].as_object().into_iter().flat_map(|asks| asks.values()).filter_map(Value::as_u64).sum();
    put("calls", calls.into());
    put("cost_usd", whole["cost_usd"].clone());
    put("tokens", whole["tokens"].clone());
    Ok(news)
}

/// The beginning of a text, without breaks of lines. `max` is in bytes.
pub(super) fn shorten_text(text: &str, max: usize) -> String {
    let line = cuegate_view::clean_to_one_line(text);
    match line.len() > max {
        true => format!("{}…", &line[..line.floor_char_boundary(max)]),
        false => line,
    }
}

/// Keeps the beginning and the end of a text: agents put their question at the end. `max` is in bytes.
fn shorten_middle(text: &str, max: usize) -> String {
    let line = cuegate_view::clean_to_one_line(text);
    if line.len() <= max {
        return line;
    }
    let (begin, end) = (line.floor_char_boundary(max / 3), line.ceil_char_boundary(line.len() - max * 2 / 3));
    format!("{} … {}", &line[..begin], &line[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_limit_are_left_for_the_next_call() {
        let lines: Vec<(u64, Vec<String>)> = (0..60).map(|seq| (seq, vec!["x".repeat(90)])).collect();
        let mut news = json!({ "run": "abcdefgh" });
        add_lines(&mut news, lines.clone(), None);
        let cursor = news["cursor"].as_u64().unwrap();
        assert!(news.to_string().len() <= TEXT_MAX && news["more"] == true && cursor > 10, "{cursor}");
        let rest: Vec<_> = lines.into_iter().filter(|(seq, _)| *seq > cursor).collect();
        let mut news = json!({});
        add_lines(&mut news, rest, Some(cursor));
        assert!(news["cursor"].as_u64().unwrap() > cursor);
        let mut nothing = json!({});
        add_lines(&mut nothing, Vec::new(), Some(7));
        assert_eq!(nothing, json!({ "cursor": 7, "news": [] }));
        // One record that is too long on its own is told all the same, or the cursor would not move.
        let mut long = json!({ "pad": "y".repeat(3_000) });
        add_lines(&mut long, vec![(1, vec!["z".to_owned()]), (2, vec!["z".to_owned()])], None);
        assert_eq!((&long["cursor"], &long["more"]), (&json!(1), &json!(true)));
    }
}
