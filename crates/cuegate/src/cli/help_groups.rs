//! The help of the program: its commands in groups, and advice for mistakes that the parser only names.

use clap::{Command, CommandFactory as _, error::ContextKind, error::ContextValue, error::ErrorKind};

use super::args::Cli;

/// The commands by what a user wants to do.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["run", "work", "init", "list"]),
    ("Follow", &["runs", "status", "why", "watch", "attach", "log", "serve", "replay", "export"]),
    ("Go on", &["resume", "retry", "fork", "answer", "instruct", "cancel"]),
    ("Take", &["diff", "report", "apply", "undo", "restore", "effect", "clean", "gc"]),
    (
        "Write workflows",
        &["check", "explain", "show", "prompt", "price", "compare", "graph", "simulate", "schema"],
    ),
    ("Tools", &["doctor", "agents", "setup", "mcp", "config", "completions", "man", "help"]),
];

/// The command line, with its commands in groups.
pub(super) fn grouped_command() -> Command {
    let command = Cli::command();
    let mut groups = String::new();
    for (title, names) in GROUPS {
        groups.push_str(&format!("{title}:\n"));
        for name in names {
            let about =
                command.find_subcommand(name).and_then(|one| one.get_about()).map(ToString::to_string);
            let about = about.unwrap_or_else(|| "Print the help of a command".to_owned());
            groups.push_str(&format!("  {name:<12} {about}\n"));
        }
        groups.push('\n');
    }
    command
        .help_template(format!("{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}"))
}

/// What to do about a mistake, where the parser's own words do not say it.
pub(super) fn advise_on(error: &clap::Error, args: &[String]) -> Option<String> {
    let command = args.get(1).map(String::as_str).unwrap_or_default();
    let is_resumed = args.iter().any(|word| word.starts_with("--resume"));
    match (error.kind(), command) {
        (ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand, _) => {}
        (ErrorKind::MissingRequiredArgument, "explain") => {
            return Some("`cuegate check` prints the code beside each finding".to_owned());
        }
        (ErrorKind::ArgumentConflict, "work") if is_resumed => {
            return Some(
                "a batch goes on as it was started: `cuegate work --resume`, or `--resume=BATCH`".to_owned(),
            );
        }
        _ => return None,
    }
    let word = match error.get(ContextKind::InvalidArg).or_else(|| error.get(ContextKind::InvalidSubcommand))
    {
        Some(ContextValue::String(word)) => word,
        _ => return None,
    };
    if error.kind() == ErrorKind::InvalidSubcommand && word == command {
        // A task without a command, or a command of an earlier version.
        return match (word.as_str(), args.len()) {
            ("open", _) => Some("`cuegate serve --open=RUN` opens a run on the page".to_owned()),
            (_, 3..) => {
                Some(format!("a task needs a workflow: cuegate run minimal \"{}\"", args[1..].join(" ")))
            }
            _ => None,
        };
    }
    let takes_text = matches!(command, "run" | "instruct" | "answer");
    // `-x of the map is wrong`: the parser names its first letters as an option.
    let is_text = |arg: &&String| arg.starts_with(word.as_str()) && arg.contains(char::is_whitespace);
    let text_with_dash = args.iter().skip(2).find(is_text).filter(|_| takes_text && word.starts_with('-'));
    if let Some(text) = text_with_dash {
        let text = text.replace('"', "\\\"");
        return Some(format!("a text that begins with `-` comes after `--`: -- \"{text}\""));
    }
    if takes_text
        && !word.starts_with("--")
        && (!word.starts_with('-') || word.len() == 1 || word.starts_with("- "))
    {
        // The words that are no options: the name, and a task without quotes.
        let skip = if command == "run" { 3 } else { 2 };
        let words: Vec<&str> =
            args.iter().skip(skip).map(String::as_str).take_while(|word| !word.starts_with("--")).collect();
        let text = words.join(" ").replace('"', "\\\"");
        return Some(match words.first() {
            Some(first) if first.starts_with('-') => {
                format!("a text that begins with `-` comes after `--`: -- \"{text}\"")
            }
            _ => format!("put the text in quotes: \"{text}\""),
        });
    }
    // A number below 0 is read as an option.
    let number = word.strip_prefix('-').is_some_and(|rest| rest.parse::<f64>().is_ok());
    number.then(|| format!("`{word}` is not a valid amount: it must be greater than 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_fits_the_screen() {
        let command = Cli::command();
        let mut known: Vec<&str> =
            command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name).collect();
        known.push("help");
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        known.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, known);
        let help = grouped_command().render_help().to_string();
        let groups = help.lines().take_while(|line| !line.starts_with("Options:"));
        let long: Vec<&str> = groups.filter(|line| line.chars().count() > 80).collect();
        assert_eq!(long, [""; 0]);
    }

    #[test]
    fn a_task_without_quotes_is_advised_to_have_them() {
        let advice = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            advise_on(&grouped_command().try_get_matches_from(&words).unwrap_err(), &words)
        };
        let quoted = advice(&["cuegate", "run", "minimal", "fix", "the", "bug"]);
        assert_eq!(quoted.as_deref(), Some("put the text in quotes: \"fix the bug\""));
        let bullet = advice(&["cuegate", "run", "minimal", "- fix the list"]);
        assert_eq!(
            bullet.as_deref(),
            Some("a text that begins with `-` comes after `--`: -- \"- fix the list\"")
        );
        assert_eq!(advice(&["cuegate", "run", "minimal", "--nope"]), None);
        let bare = advice(&["cuegate", "fix", "the", "bug"]);
        assert_eq!(bare.as_deref(), Some("a task needs a workflow: cuegate run minimal \"fix the bug\""));
        let open = advice(&["cuegate", "open"]);
        assert_eq!(open.as_deref(), Some("`cuegate serve --open=RUN` opens a run on the page"));
    }
}
