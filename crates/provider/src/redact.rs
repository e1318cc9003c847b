//! Removes keys from text before it is stored, in case a service or a program repeats them.

use std::{
    collections::BTreeSet,
    sync::{Mutex, OnceLock, PoisonError},
};

use serde_json::Value;

/// The replacement of a key.
pub(crate) const MARK: &str = "[redacted]";
/// The minimum length in bytes of a key that is redacted in streamed text. Local servers take keys such as `none` or
/// `test`, which are words that an answer may contain.
const SECRET_MIN: usize = 16;
/// The minimum length in bytes at which the value of an environment variable counts as a secret.
const VALUE_MIN: usize = 8;

/// Parts of the names of environment variables that hold secrets.
const SECRET_NAMES: [&str; 9] =
    ["APIKEY", "AUTH", "CREDENTIAL", "KEY", "PASSPHRASE", "PASSWD", "PASSWORD", "SECRET", "TOKEN"];

/// The redactor of the secrets in the environment of this process, by the names of the variables: a command that is
/// misled may print them.
pub fn environment_secrets() -> &'static Redactor {
    static SECRETS: OnceLock<Redactor> = OnceLock::new();
    SECRETS.get_or_init(|| {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?.to_uppercase(), value.into_string().ok()?))
        });
        let named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        let is_kept =
            |name: &str, value: &str| is_secret(name, value) || named.contains(name) && is_key(value);
        Redactor::of_values(variables.filter(|(name, value)| is_kept(name, value)).map(|(_, value)| value))
    })
}

/// Whether the name of an environment variable says that it holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_uppercase();
    name.split('_').any(|word| SECRET_NAMES.iter().any(|part| word.ends_with(part)))
}

/// Redacts these variables as well, whatever their names. For those that settings give to a server: to be called before
/// the first command of a run.
pub fn redact_variables(names: impl IntoIterator<Item = String>) {
    let names = names.into_iter().map(|name| name.to_uppercase());
    NAMED.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
}

/// The variables of [`redact_variables`].
static NAMED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Whether a value can be a key: neither a path of a file or socket with keys, nor a number.
fn is_key(value: &str) -> bool {
    !value.starts_with('/') && !value.chars().all(|c| c.is_ascii_digit())
}

/// Whether a variable holds a secret. A path of a file or socket with keys is none.
pub fn is_secret(name: &str, value: &str) -> bool {
    let is_named = is_secret_name(name);
    let has_login = value.split_once("://").is_some_and(|(_, rest)| {
        rest.split_once('@').is_some_and(|(login, _)| login.contains(':') && !login.contains('/'))
    });
    has_login || is_named && is_key(value)
}

/// Removes keys from text.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// Longest first, because one key may be a prefix of another.
    keys: Vec<String>,
    /// The end of the last piece, if it may be the beginning of a key.
    held: String,
}

impl Redactor {
    /// Redacts one key of any length.
    pub(crate) fn new(key: Option<String>) -> Redactor {
        Redactor::with_keys(key.into_iter().collect())
    }

    /// Redacts the values of environment variables. Short values are words, not secrets.
    pub(crate) fn of_values(values: impl Iterator<Item = String>) -> Redactor {
        Redactor::with_keys(values.filter(|value| value.len() >= VALUE_MIN).collect())
    }

    fn with_keys(mut keys: Vec<String>) -> Redactor {
        keys.retain(|key| !key.is_empty());
        keys.sort_by_key(|key| std::cmp::Reverse(key.len()));
        Redactor { keys, held: String::new() }
    }

    /// Whether there are no keys to redact.
    pub(crate) fn is_idle(&self) -> bool {
        self.keys.is_empty()
    }

    /// Redacts a complete text, such as an error message.
    pub fn clean(&self, text: &str) -> String {
        self.keys.iter().fold(text.to_owned(), |text, key| text.replace(key, MARK))
    }

    /// Redacts every string in a value, including field names; returns whether it changed anything. String fields for
    /// which `keep` returns true stay unchanged.
    pub(crate) fn clean_value(&self, value: &mut Value, keep: fn(&str) -> bool) -> bool {
        match value {
            Value::String(text) => self.clean_in_place(text),
            Value::Array(items) => {
                items.iter_mut().map(|item| self.clean_value(item, keep)).filter(|found| *found).count() > 0
            }
            Value::Object(fields) => {
                let mut any = false;
                for (name, field) in fields.iter_mut() {
                    any |= !(field.is_string() && keep(name)) && self.clean_value(field, keep);
                }
                if fields.keys().any(|name| self.finds(name)) {
                    let old = std::mem::take(fields);
                    fields.extend(old.into_iter().map(|(name, field)| (self.clean(&name), field)));
                    any = true;
                }
                any
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Like [`Redactor::clean`], in place; returns whether it changed anything.
    pub(crate) fn clean_in_place(&self, text: &mut String) -> bool {
        let found = self.finds(text);
        if found {
            *text = self.clean(text);
        }
        found
    }

    fn finds(&self, text: &str) -> bool {
        self.keys.iter().any(|key| text.contains(key.as_str()))
    }

    /// Redacts the next piece of a stream. Holds back a suffix that may be the beginning of a key.
    pub(crate) fn next(&mut self, piece: &str) -> String {
        let keys = || self.keys.iter().filter(|key| key.len() >= SECRET_MIN);
        if keys().next().is_none() {
            return piece.to_owned();
        }
        let text = std::mem::take(&mut self.held) + piece;
        let mut text = keys().fold(text, |text, key| text.replace(key, MARK));
        let begins = |end: &str| keys().any(|key| end.len() < key.len() && key.starts_with(end));
        let starts = |length: &usize| {
            text.is_char_boundary(text.len() - length) && begins(&text[text.len() - length..])
        };
        let longest = keys().map(String::len).max().unwrap_or(0);
        let length = (1..longest.min(text.len() + 1)).rev().find(starts).unwrap_or(0);
        self.held = text.split_off(text.len() - length);
        text
    }

    /// Returns the text still held back.
    pub(crate) fn rest(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: &str = "sk-0123456789abcdef";

    #[test]
    fn secrets_are_known_by_the_names_of_variables() {
        for (name, value, secret) in [
            ("GITHUB_TOKEN", "ghp_x", true),
            ("ANTHROPIC_API_KEY", "sk", true),
            ("PGPASSWORD", "p", true),
            ("DATABASE_URL", "postgres://me:pass@host/db", true),
            ("NPM_CONFIG_//HOST/:_AUTHTOKEN", "t", true),
            ("SSH_AUTH_SOCK", "/run/user/1/agent", false),
            ("KEYBOARD", "de", false),
            ("HOME_URL", "https://example.com/a@b", false),
            ("MAX_TOKENS", "4096", false),
            ("TOKEN_COUNT_KEY", "12345678", false),
        ] {
            assert_eq!(is_secret(name, value), secret, "{name}");
        }
    }

    fn through(pieces: &[&str]) -> Vec<String> {
        let mut redactor = Redactor::new(Some(KEY.to_owned()));
        let mut out: Vec<String> = pieces.iter().map(|piece| redactor.next(piece)).collect();
        out.push(redactor.rest());
        out
    }

    #[test]
    fn a_key_split_over_pieces_is_redacted() {
        assert_eq!(through(&[&format!("a {KEY} b")]), ["a [redacted] b", ""]);
        assert_eq!(through(&["a s", "k-01234567", "89abcdef!"]), ["a ", "", "[redacted]!", ""]);
        assert_eq!(through(&["sk-0123456789abcde"]), ["", "sk-0123456789abcde"]);
        assert_eq!(through(&["sk-", "sk-", "x"]), ["", "sk-", "sk-x", ""]);
    }

    #[test]
    fn text_that_cannot_begin_a_key_is_not_held_back() {
        assert_eq!(through(&["für", "…", "s", "o"]), ["für", "…", "", "so", ""]);
    }

    #[test]
    fn short_keys_are_redacted_in_errors_but_not_in_streams() {
        let mut redactor = Redactor::new(Some("test".to_owned()));
        assert_eq!(redactor.next("the test passes"), "the test passes");
        assert_eq!(redactor.clean("bad key test"), "bad key [redacted]");
    }

    #[test]
    fn an_empty_key_redacts_nothing() {
        assert_eq!(Redactor::new(Some(String::new())).clean("abc"), "abc");
    }

    #[test]
    fn every_string_in_a_value_is_redacted() {
        let redactor =
            Redactor::of_values(["12345678", "12345678-long", "short"].map(str::to_owned).into_iter());
        let mut value = json!({ "12345678": [{ "a": "x 12345678-long y" }, 12345678, "short", "12345678"], "id": "12345678" });
        assert!(redactor.clean_value(&mut value, |_| false));
        let clean = json!({ "[redacted]": [{ "a": "x [redacted] y" }, 12345678, "short", "[redacted]"], "id": "[redacted]" });
        assert_eq!(value, clean);
        assert!(!redactor.clean_value(&mut value, |_| false));
        let mut kept = json!({ "type": "12345678", "in": { "type": ["12345678"] } });
        redactor.clean_value(&mut kept, |name| name == "type");
        assert_eq!(kept, json!({ "type": "12345678", "in": { "type": ["[redacted]"] } }));
    }
}
