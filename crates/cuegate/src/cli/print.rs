//! Prints data to standard output and everything else to standard error.

use std::collections::HashMap;

use std::{
    borrow::Cow,
    io::{ErrorKind, IsTerminal, Write},
    path::{Path, PathBuf},
    sync::{
        LazyLock, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use cuegate_flow::diagnostics::{Diagnostic, Severity, Sources};
use cuegate_view::{FindingGroup, clean_lines, group_findings, is_unsafe, safe_json};

use crate::Failure;

/// Whether the reader of standard output has closed it.
static UNREAD: AtomicBool = AtomicBool::new(false);

/// Whether output was lost while it may still be wanted, for example because the disk is full.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether the whole screen is in use.
static FULL_SCREEN: AtomicBool = AtomicBool::new(false);

/// What the user wants to see.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PrintOptions {
    /// Whether to use colours; `None`: as the terminal and `NO_COLOR` say.
    pub(crate) colours: Option<bool>,
    /// Only results, questions and errors.
    pub(crate) quiet: bool,
    /// No status line.
    pub(crate) no_progress: bool,
}

static WANTED: OnceLock<PrintOptions> = OnceLock::new();

/// Sets what the user wants to see, once.
pub(crate) fn set_output_options(wanted: PrintOptions) {
    let _ = WANTED.set(wanted);
    if let (true, Ok(folder)) = (has_links(), std::env::current_dir()) {
        let _ = LINKS.set(folder);
    }
}

/// Whether the terminal makes links; not where colours are unwanted, as escape sequences are then, too.
fn has_links() -> bool {
    uses_colours() && is_terminal() && supports_hyperlinks::on(supports_hyperlinks::Stream::Stderr)
}

fn read_output_options() -> PrintOptions {
    WANTED.get().copied().unwrap_or_default()
}

/// Whether a status line is shown: on a terminal, unless the user wants none.
pub(crate) fn has_progress() -> bool {
    is_terminal() && !read_output_options().quiet && !read_output_options().no_progress
}

/// Whether standard output may still have a reader.
pub(crate) fn is_read() -> bool {
    !UNREAD.load(Ordering::Relaxed)
}

/// Whether output was lost.
pub(crate) fn is_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Prints a line of readable text, without anything that could control the terminal. Nothing with `--quiet`.
pub(crate) fn print_line(text: &str) {
    if !read_output_options().quiet {
        print_important(text);
    }
}

/// As [`print_line`], also with `--quiet`: a question or an error.
pub(crate) fn print_important(text: &str) {
    let mut text = clean_lines(text);
    if is_terminal() {
        text = wrap_lines(&text, stderr_width());
    }
    if uses_colours() {
        text = text.lines().map(colour_line).collect::<Vec<_>>().join("\n");
    }
    match LINKS.get() {
        Some(folder) => write_styled_line(&link_paths(&text, folder)),
        None => write_styled_line(&text),
    }
}

/// Breaks lines between words. What follows stands under the text of the line, not under its time or label.
fn wrap_lines(text: &str, width: usize) -> String {
    let wrapped = text.lines().map(|line| {
        if cuegate_view::count_columns(line) <= width {
            return line.to_owned();
        }
        let indent = " ".repeat(hanging_indent(line).min(width / 2));
        let options = textwrap::Options::new(width)
            .subsequent_indent(&indent)
            .word_splitter(textwrap::WordSplitter::NoHyphenation)
            .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit)
            // A path or an address stays whole, so that it can be copied.
            .break_words(false);
        textwrap::wrap(line, options).join("\n")
    });
    wrapped.collect::<Vec<_>>().join("\n")
}

/// Whether a line tells an event of a run: it begins with the time.
pub(crate) fn is_event_line(line: &str) -> bool {
    line.len() > 8 && line.as_bytes()[..8].iter().all(|byte| byte.is_ascii_digit() || *byte == b':')
}

/// The column under which the rest of a line stands: that of the text after its time and subject, or after its label.
fn hanging_indent(line: &str) -> usize {
    const LABEL: usize = 12;
    const EVENT: usize = 33;
    let is_time = is_event_line(line);
    let label = line.get(..LABEL).filter(|label| label.ends_with(' ') && !label.trim_end().contains(' '));
    match label {
        _ if is_time => EVENT,
        Some(_) => LABEL,
        None => line.len() - line.trim_start().len() + 2,
    }
}

/// A line with the colours of its kind: what went wrong is red, what waits is yellow, what worked is green.
fn colour_line(line: &str) -> String {
    const BY_START: [(&str, &str); 14] = [
        ("error: ", RED),
        ("hint: ", CYAN),
        ("warning", YELLOW),
        ("note: ", DIM),
        ("done", GREEN),
        ("failed: ", RED),
        ("failed  ", RED),
        ("aborted", RED),
        ("stopped at a limit", YELLOW),
        ("paused", YELLOW),
        ("asks you", YELLOW),
        ("needs fixing", YELLOW),
        ("interrupted", YELLOW),
        ("cancelled", YELLOW),
    ];
    let paint = |colour: &str, text: &str| format!("{colour}{text}\x1b[0m");
    if let Some((start, colour)) = BY_START.iter().find(|(start, _)| line.starts_with(start)) {
        let end = line.find(": ").map_or(start.len(), |at| (at + 1).max(start.trim_end().len()));
        let end = if start.ends_with("  ") { start.trim_end().len() } else { end };
        return format!("{}{}", paint(colour, &line[..end]), &line[end..]);
    }
    let is_event = hanging_indent(line) == 33 && line.is_char_boundary(8);
    if is_event {
        let (time, rest) = line.split_at(8);
        let rest = match () {
            () if rest.contains("`: failed, ") || rest.contains("agent crashed: ") => paint(RED, rest),
            () if rest.contains("`: passed (") => paint(GREEN, rest),
            () => rest.to_owned(),
        };
        return format!("{}{rest}", paint(DIM, time));
    }
    line.to_owned()
}

const RED: &str = "\x1b[1;31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const CYAN: &str = "\x1b[36m";
const DIM: &str = "\x1b[2m";

/// The folder that paths on standard error are relative to, if the terminal makes links of them.
static LINKS: OnceLock<PathBuf> = OnceLock::new();

/// Makes links of the paths of existing files and folders in a text.
fn link_paths(text: &str, folder: &Path) -> String {
    let mut linked = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            linked.push('\n');
        }
        for word in line.split_inclusive(' ') {
            let path = word
                .trim_matches(|c: char| c.is_whitespace() || "`'\",;:()".contains(c))
                .trim_end_matches('.');
            let target = folder.join(path);
            match path.contains(['/', '.']) && path.len() > 2 && target.exists() {
                true => linked.push_str(&word.replacen(path, &render_hyperlink(&target, path), 1)),
                false => linked.push_str(word),
            }
        }
    }
    linked
}

/// A text with a link to a file (OSC 8).
fn render_hyperlink(target: &Path, text: &str) -> String {
    let mut address = String::from("file://");
    for byte in target.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            byte => address.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\")
}

/// Prints a line that may have styles of our own.
fn write_styled_line(text: &str) {
    // Standard error has no buffer: a line and its end would be two writes, between which another process can write.
    if std::io::stderr().lock().write_all(format!("{text}\n").as_bytes()).is_err() {
        UNREAD.store(true, Ordering::Relaxed);
    }
}

/// Prints a line of the log of the program itself.
pub(crate) fn print_log_line(text: &str) {
    if FULL_SCREEN.load(Ordering::Relaxed) {
        return;
    }
    // The status line has no line break.
    let clear = if is_terminal() { "\r\x1b[K" } else { "" };
    write_styled_line(&format!("{clear}{}", clean_lines(text)));
}

/// Says whether the whole screen is in use, where lines would destroy it.
pub(crate) fn set_full_screen(is_shown: bool) {
    FULL_SCREEN.store(is_shown, Ordering::Relaxed);
}

/// Replaces the current line of the terminal.
pub(crate) fn overwrite_line(text: &str) {
    let _ = write!(std::io::stderr().lock(), "\r{}\x1b[K", clean_lines(text));
}

/// Prints text to standard output, without anything that could control the terminal: a pager may show it too.
pub(crate) fn print_data(text: &str) {
    print_exact(&clean_lines(text));
}

/// Prints lines of a log: on a terminal broken between words, as those of a run are.
pub(crate) fn data_lines(text: &str) {
    match data_width() {
        Some(width) => print_data(&wrap_lines(&clean_lines(text), width)),
        None => print_data(text),
    }
}

/// Prints a text as it is, such as a report; on a terminal as [`print_data`].
pub(crate) fn print_exact(text: &str) {
    let mut whole = Cow::Borrowed(text);
    if !text.ends_with('\n') && !text.is_empty() {
        whole.to_mut().push('\n');
    }
    print_bytes(whole.as_bytes());
}

/// As [`print_exact`], for data that may not be text.
pub(crate) fn print_bytes(bytes: &[u8]) {
    let bytes = clean_for_terminal(bytes, std::io::stdout().is_terminal());
    // Write everything at once, so that an interrupt does not leave half an object.
    let mut out = std::io::stdout().lock();
    let Err(error) = out.write_all(&bytes).and_then(|()| out.flush()) else { return };
    UNREAD.store(true, Ordering::Relaxed);
    // A reader that stops early (`| head`) is no error. Any other error is reported once.
    if error.kind() != ErrorKind::BrokenPipe && !LOST.swap(true, Ordering::Relaxed) {
        print_important(&format!("error: failed to write to standard output: {error}"));
    }
}

/// What is written of data: a pipe or a file gets it as it is.
fn clean_for_terminal(bytes: &[u8], is_terminal: bool) -> Cow<'_, [u8]> {
    match is_terminal {
        true => clean_lines(&String::from_utf8_lossy(bytes)).into_bytes().into(),
        false => bytes.into(),
    }
}

/// Prints JSON for programs.
pub(crate) fn print_json(value: &serde_json::Value) {
    print_data(&safe_json(&serde_json::to_string_pretty(value).unwrap_or_default()));
}

/// Prints JSON for programs, as one line.
pub(crate) fn json_line(value: &serde_json::Value) {
    print_data(&safe_json(&value.to_string()));
}

/// Prints why a command failed.
pub(crate) fn print_failure(failure: &Failure) {
    print_important(&format!("error: {}", failure.message));
    if let Some(hint) = &failure.hint {
        print_important(&format!("hint: {hint}"));
    }
}

/// Whether standard error is a terminal.
pub(crate) fn is_terminal() -> bool {
    // Asked once: it does not change, and each line would ask twice.
    static IS_TERMINAL: LazyLock<bool> = LazyLock::new(|| {
        std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    });
    *IS_TERMINAL
}

/// Whether a person can be asked: standard error and standard input are terminals.
pub(crate) fn is_interactive() -> bool {
    std::io::stderr().is_terminal() && std::io::stdin().is_terminal()
}

/// Prints a question that is answered on the same line.
pub(crate) fn print_prompt(text: &str) {
    let _ = write!(std::io::stderr().lock(), "{}", clean_lines(text));
    let _ = std::io::stderr().flush();
}

/// The width of a line on standard error.
pub(crate) fn stderr_width() -> usize {
    const UNKNOWN: usize = 80;
    let columns = rustix::termios::tcgetwinsize(std::io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { UNKNOWN } else { columns }.saturating_sub(1)
}

/// The width of a line on standard output; `None` if it is not a terminal.
pub(crate) fn data_width() -> Option<usize> {
    let stdout = std::io::stdout();
    let columns = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| usize::from(size.ws_col));
    (stdout.is_terminal() && columns > 0).then_some(columns)
}

/// Whether standard error gets colours.
pub(crate) fn has_colours() -> bool {
    uses_colours()
}

fn uses_colours() -> bool {
    read_output_options().colours.unwrap_or_else(colours_of_terminal)
}

fn colours_of_terminal() -> bool {
    is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Overwrites the status line, without a line end. The new text is written first and the rest of the old one cleared
/// afterwards, which avoids flicker. `rows`: the rows that the old text occupies, more than one if the terminal became
/// narrower.
pub(crate) fn rewrite_status_line(text: &str, rows: usize) {
    let up = match rows {
        0 | 1 => String::new(),
        rows => format!("\x1b[{}A", rows - 1),
    };
    let _ = write!(std::io::stderr().lock(), "{up}\r{}\x1b[J", clean_lines(text));
    let _ = std::io::stderr().flush();
}

/// Prints findings with their source lines. Equal codes in one file are grouped, with the other places listed below.
pub(crate) fn print_findings(findings: &[Diagnostic], sources: &Sources, strict: bool) {
    let renderer = if uses_colours() { Renderer::styled() } else { Renderer::plain() };
    let rendered: Vec<String> = group_findings(findings)
        .iter()
        .map(|group| render_finding(group.first, &more_places(group, sources), sources, strict, &renderer))
        .collect();
    if !rendered.is_empty() {
        // The renderer shows control characters of a source line as pictures, but not those of ISO 6429.
        let is_safe = |c: &char| matches!(c, '\u{1b}' | '\n' | '\t') || !is_unsafe(*c);
        write_styled_line(&rendered.join("\n").chars().filter(is_safe).collect::<String>());
    }
}

/// How many different messages of a group are listed.
const MESSAGES_MAX: usize = 8;

/// The other places of a group: a line for each different message, with the line numbers, and with its own proposal if that
/// is not the one of the first finding.
fn more_places(group: &FindingGroup<'_>, sources: &Sources) -> Vec<String> {
    let mut messages: Vec<(String, Vec<String>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for other in &group.others {
        let own_hint = other.hint.as_ref().filter(|_| other.hint != group.first.hint);
        let message = match own_hint {
            Some(hint) => format!("{}: {hint}", other.message),
            None => other.message.clone(),
        };
        let index = *known.entry(message.clone()).or_insert(messages.len());
        if index == messages.len() {
            messages.push((message, Vec::new()));
        }
        messages[index].1.push(sources.locate(other.span).line.to_string());
    }
    let more = messages.len().saturating_sub(MESSAGES_MAX);
    let listed = messages.iter().take(MESSAGES_MAX);
    let mut places: Vec<String> =
        listed.map(|(message, lines)| format!("also line {}: {message}", lines.join(", "))).collect();
    if more > 0 {
        places.push(format!("and {more} more (`--json` lists all)"));
    }
    places
}

/// A longer line, in bytes, is shown only around the finding.
const LINE_MAX: usize = 2000;
/// The number of bytes shown before and after the start of the finding.
const AROUND: usize = 200;

/// Prints a finding with its source line, followed by an empty line.
fn render_finding(
    finding: &Diagnostic,
    also: &[String],
    sources: &Sources,
    strict: bool,
    renderer: &Renderer,
) -> String {
    let severity = match finding.severity {
        Severity::Warning if strict => Severity::Error,
        severity => severity,
    };
    let level = match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let plain = |text: &str| clean_lines(text);
    let title = level.primary_title(plain(&finding.message)).id(finding.code);
    let mut group = Group::with_title(title);
    // The number of characters cut off before the excerpt.
    let mut before = 0;
    if let Some(file) = sources.get(finding.span.file) {
        // A file with invalid UTF-8 was read with replacements, so an offset may be inside a character.
        let start = file.text.floor_char_boundary(finding.span.start as usize);
        let end = file.text.ceil_char_boundary((finding.span.end as usize).max(start));
        // A finding of several lines points at the first one.
        let end = file.text[start..end].find('\n').map_or(end, |line| start + line);
        // Pass only the shown line to the renderer: files can be long, and findings many.
        let first = file.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let last = file.text[end..].find('\n').map_or(file.text.len(), |at| end + at + 1);
        // The renderer scans all its input, and a long line may have many findings.
        let (from, to) = match last - first > LINE_MAX {
            true => (first.max(start.saturating_sub(AROUND)), last.min(start + AROUND)),
            false => (first, last),
        };
        let (from, to) = (file.text.floor_char_boundary(from), file.text.ceil_char_boundary(to));
        let snippet = Snippet::source(&file.text[from..to])
            .line_start(sources.locate(finding.span).line as usize)
            .path(plain(file.display_path()))
            .annotation(AnnotationKind::Primary.span(start - from..end.min(to) - from));
        group = group.element(snippet);
        before = file.text[first..from].chars().count();
    }
    if !finding.trace.is_empty() {
        group =
            group.element(Level::NOTE.message(plain(&format!("shortest path: {}", finding.trace.join(" ")))));
    }
    if let Some(hint) = &finding.hint {
        group = group.element(Level::HELP.message(plain(hint)));
    }
    for place in also {
        group = group.element(Level::NOTE.message(plain(place)));
    }
    let mut rendered = renderer.render(&[group]) + "\n";
    if before > 0
        && let Some(file) = sources.get(finding.span.file)
    {
        let at = sources.locate(finding.span);
        let place = format!("{}:{}:", file.display_path(), at.line);
        rendered = rendered.replacen(
            &format!("{place}{}", at.column as usize - before),
            &format!("{place}{}", at.column),
            1,
        );
    }
    rendered
}

/// The message after a panic.
pub(crate) fn print_bug_notice() {
    print_important(
        "this is a bug of cuegate; the run, if one was going, stands at its last record: `cuegate resume last`",
    );
}

#[cfg(test)]
mod tests {
    use super::{Renderer, clean_for_terminal, render_finding};
    use cuegate_flow::diagnostics::{Diagnostic, Sources, Span};

    #[test]
    fn only_a_terminal_gets_data_without_what_controls_it() {
        let data = "a\u{1b}]0;x\u{7}b\u{9b}31m\u{202e}c\r\n\td".as_bytes();
        assert_eq!(&*clean_for_terminal(data, true), "ab31mc\n\td".as_bytes());
        assert_eq!(&*clean_for_terminal(data, false), data);
    }

    #[test]
    fn existing_paths_become_links() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ä b.md"), "").unwrap();
        std::fs::write(dir.path().join("a.md"), "").unwrap();
        let at = dir.path().display();
        let text = super::link_paths("see `a.md`, b.md and ../x\nab a.md.", dir.path());
        let link = format!("\x1b]8;;file://{at}/a.md\x1b\\a.md\x1b]8;;\x1b\\");
        assert_eq!(text, format!("see `{link}`, b.md and ../x\nab {link}."));
        let escaped = super::render_hyperlink(&dir.path().join("ä b.md"), "x");
        assert!(escaped.contains("/%C3%A4%20b.md"), "{escaped}");
    }

    /// A long line is cut around the finding, and the reported position is the one in the file.
    #[test]
    fn a_long_line_is_cut_and_its_place_is_not() {
        let line = format!("first\n{}here{}\n", "é".repeat(3000), "ß".repeat(3000));
        let mut sources = Sources::default();
        let file = sources.add("a.md", line.as_str());
        let start = line.find("here").unwrap() as u32;
        let said = Diagnostic::error("some-code", Span { file, start, end: start + 4 }, "it is here");
        let shown = render_finding(&said, &[], &sources, false, &Renderer::plain());
        assert!(shown.contains("a.md:2:3001\n"), "{shown}");
        assert!(shown.contains("here") && shown.contains("^^^^") && shown.len() < 2000, "{shown}");
    }
}
