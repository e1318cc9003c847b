//! Values of the run in the commands of validators: `${issue}`, `${context.NAME}`, `${handoff.KEY}`.
//!
//! A value becomes a variable of the shell, so that it is one word whatever it contains, and none of it is a command.

use cuegate_flow::{Str, model::Source};

/// The names of the variables, before their number.
const VARIABLE: &str = "CUEGATE_VALUE_";

/// What the shell is inside of.
#[derive(Clone, Copy, PartialEq)]
enum Quotes {
    No,
    Single,
    Double,
}

/// A command whose values are variables, and those with their sources. A name without a source stays as it is: it is a
/// variable of the shell itself.
pub(super) fn with_values(
    command: &str,
    source_of: &dyn Fn(&str) -> Option<Source>,
) -> (String, Vec<(Str, Source)>) {
    let (mut text, mut values) = (String::with_capacity(command.len()), Vec::<(Str, Source)>::new());
    let (mut quotes, mut rest) = (Quotes::No, command);
    while let Some(char) = rest.chars().next() {
        if let Some((name, after)) = rest.strip_prefix("${").and_then(|inner| inner.split_once('}'))
            && let Some(source) = source_of(name.trim())
        {
            let known = values.iter().position(|(_, known)| *known == source);
            let number = known.unwrap_or_else(|| {
                values.push((format!("{VARIABLE}{}", values.len() + 1).into(), source));
                values.len() - 1
            });
            let variable = format!("${{{VARIABLE}{}}}", number + 1);
            text.push_str(&match quotes {
                Quotes::No => format!("\"{variable}\""),
                Quotes::Double => variable,
                Quotes::Single => format!("'\"{variable}\"'"),
            });
            rest = after;
            continue;
        }
        let mut length = char.len_utf8();
        quotes = match (quotes, char) {
            (Quotes::No, '\'') => Quotes::Single,
            (Quotes::Single, '\'') => Quotes::No,
            (Quotes::No, '"') => Quotes::Double,
            (Quotes::Double, '"') => Quotes::No,
            (Quotes::No | Quotes::Double, '\\') => {
                length += rest[length..].chars().next().map_or(0, char::len_utf8);
                quotes
            }
            (quotes, _) => quotes,
        };
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
            ("echo 'a ${context.pr}' ${issue}", "echo 'a '\"${CUEGATE_VALUE_1}\"'' \"${CUEGATE_VALUE_2}\""),
            (r#"echo \"${issue}${issue}"#, r#"echo \""${CUEGATE_VALUE_1}""${CUEGATE_VALUE_1}""#),
            ("echo ${other} ${issue", "echo ${other} ${issue"),
            ("echo 'あ' ${issue}\\", "echo 'あ' \"${CUEGATE_VALUE_1}\"\\"),
        ] {
            assert_eq!(with_values(command, &param).0, expected);
        }
    }
}
