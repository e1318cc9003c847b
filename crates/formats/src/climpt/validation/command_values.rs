//! Values of the run in the commands of validators: `${issue}`, `${context.NAME}`, `${handoff.KEY}`.
//!
//! A value becomes a variable of the shell, in quotes where the command has none, so that it is one word whatever it
//! contains, and none of it is a command. In single quotes the shell replaces nothing; there a program that the command
//! starts, such as `sh -c '…'`, finds the variable in its environment.

use cuegate_flow::{Str, model::Source};

/// The names of the variables, before their number.
const VARIABLE: &str = "CUEGATE_VALUE_";

/// What the shell is inside of.
#[derive(Clone, Copy, PartialEq)]
enum ShellState {
    /// A command: the whole one, or one in `$(…)`, with the number of other parentheses that are open.
    Command(u32),
    Single,
    Double,
    Comment,
}

/// A command whose values are variables, and those with their sources. A name without a source stays as it is: it is a
/// variable of the shell itself.
pub(super) fn with_values(
    command: &str,
    source_of: &dyn Fn(&str) -> Option<Source>,
) -> (String, Vec<(Str, Source)>) {
    let (mut text, mut values) = (String::with_capacity(command.len()), Vec::<(Str, Source)>::new());
    let (mut within, mut rest) = (vec![ShellState::Command(0)], command);
    // Quotes in a here-document or in `…` are not followed: a value there gets no quotes of its own.
    let mut is_plain = true;
    while let Some(char) = rest.chars().next() {
        let now = within.last().copied().unwrap_or(ShellState::Command(0));
        if let Some((name, after)) = rest.strip_prefix("${").and_then(|inner| inner.split_once('}'))
            && let Some(source) = source_of(name.trim())
        {
            let known = values.iter().position(|(_, known)| *known == source);
            let number = known.unwrap_or_else(|| {
                values.push((format!("{VARIABLE}{}", values.len() + 1).into(), source));
                values.len() - 1
            });
            let variable = format!("${{{VARIABLE}{}}}", number + 1);
            let is_bare = matches!(now, ShellState::Command(_)) && is_plain;
            text.push_str(&if is_bare { format!("\"{variable}\"") } else { variable });
            rest = after;
            continue;
        }
        let begins_word =
            text.chars().next_back().is_none_or(|last| last.is_whitespace() || ";&|(".contains(last));
        let mut length = char.len_utf8();
        match (now, char) {
            (ShellState::Single, '\'') | (ShellState::Double, '"') | (ShellState::Comment, '\n') => {
                _ = within.pop()
            }
            (ShellState::Single | ShellState::Comment, _) => {}
            (_, '\\') => length += rest[length..].chars().next().map_or(0, char::len_utf8),
            (_, '$') if rest[length..].starts_with('(') => {
                length += 1;
                within.push(ShellState::Command(0));
            }
            (ShellState::Double, _) => is_plain &= char != '`',
            (ShellState::Command(_), '\'') => within.push(ShellState::Single),
            (ShellState::Command(_), '"') => within.push(ShellState::Double),
            (ShellState::Command(_), '#') if begins_word => within.push(ShellState::Comment),
            (ShellState::Command(open), '(') => {
                _ = within.last_mut().map(|last| *last = ShellState::Command(open + 1))
            }
            (ShellState::Command(0), ')') if within.len() > 1 => _ = within.pop(),
            (ShellState::Command(open), ')') => {
                let open = open.saturating_sub(1);
                within.last_mut().map(|last| *last = ShellState::Command(open)).unwrap_or_default();
            }
            (ShellState::Command(_), '<') => is_plain &= !rest[length..].starts_with('<'),
            (ShellState::Command(_), _) => is_plain &= char != '`',
        }
        text.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    (text, values)
}

#[cfg(test)]
mod tests {
    use super::with_values;
    use cuegate_flow::model::Source;

    fn param(name: &str) -> Option<Source> {
        matches!(name, "issue" | "context.pr").then(|| Source::Param(name.into()))
    }

    #[test]
    fn values_are_one_word_in_any_quotation() {
        for (command, expected) in [
            ("gh pr view ${issue}", "gh pr view \"${CUEGATE_VALUE_1}\""),
            ("echo \"a ${issue} ${HOME}\"", "echo \"a ${CUEGATE_VALUE_1} ${HOME}\""),
            ("echo 'a ${context.pr}' ${issue}", "echo 'a ${CUEGATE_VALUE_1}' \"${CUEGATE_VALUE_2}\""),
            (
                r#"a="$(gh "${issue}" (b) ${issue})${issue}""#,
                r#"a="$(gh "${CUEGATE_VALUE_1}" (b) "${CUEGATE_VALUE_1}")${CUEGATE_VALUE_1}""#,
            ),
            ("a # it's\nb ${issue}", "a # it's\nb \"${CUEGATE_VALUE_1}\""),
            ("cat <<E ${issue}\nit's ${issue}\nE", "cat <<E ${CUEGATE_VALUE_1}\nit's ${CUEGATE_VALUE_1}\nE"),
            (r#"echo \"${issue}${issue}"#, r#"echo \""${CUEGATE_VALUE_1}""${CUEGATE_VALUE_1}""#),
            ("echo ${other} ${issue", "echo ${other} ${issue"),
            ("echo 'あ' ${issue}\\", "echo 'あ' \"${CUEGATE_VALUE_1}\"\\"),
        ] {
            assert_eq!(with_values(command, &param).0, expected);
        }
    }
}
