//! Keys that are known by their form, whoever holds them: those of an agent's own making, of a file that it read, or of a
//! command's output are in no variable of this process.
//!
//! The forms are those of gitleaks' rules (MIT) that need no word beside the key, without the one for JSON Web Tokens in what
//! commits are searched for: tests are full of them.

use std::{borrow::Cow, collections::BTreeSet, sync::LazyLock};

use regex::Regex;

use crate::redact::MARK;

/// The forms of keys.
const FORMS: [&str; 24] = [
    // Private keys, also of PGP.
    r"-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----[\s\S-]{64,}?KEY(?: BLOCK)?-----",
    // Anthropic and OpenAI.
    r"\bsk-ant-[a-z0-9]{3,12}-[a-zA-Z0-9_-]{80,}",
    r"\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}",
    r"\bsk-[a-zA-Z0-9]{20}T3BlbkFJ[a-zA-Z0-9]{20}\b",
    // GitHub and GitLab.
    r"\bgh[pousr]_[0-9a-zA-Z]{36}\b",
    r"\bgithub_pat_[0-9a-zA-Z_]{82}\b",
    r"\bglpat-[0-9a-zA-Z_-]{20,}",
    r"\bgl(?:rt|ptt|dt|soat|ft|agent)-[0-9a-zA-Z_-]{20,}",
    // Clouds.
    r"\b(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
    r"\bAIza[0-9A-Za-z_-]{35}\b",
    r"\bdo[por]_v1_[a-f0-9]{64}\b",
    r"\bdapi[a-f0-9]{32}\b",
    // Registries.
    r"\bnpm_[a-zA-Z0-9]{36}\b",
    r"\bpypi-AgEIcHlwaS5vcmc[0-9A-Za-z_-]{50,}",
    r"\bdckr_pat_[a-zA-Z0-9_-]{27}\b",
    r"\bcio[a-zA-Z0-9]{32}\b",
    // Services.
    r"\bxox[bpe]-[0-9]{10,13}-[0-9a-zA-Z-]{20,}",
    r"\bxapp-\d-[A-Z0-9]+-\d+-[a-z0-9]{20,}",
    r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{43,56}",
    r"\b(?:sk|rk)_(?:test|live|prod)_[a-zA-Z0-9]{10,99}\b",
    r"\bSG\.[a-zA-Z0-9=_.-]{66}",
    r"\bhf_[a-zA-Z]{34}\b",
    r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b",
    r"\bhvs\.[a-zA-Z0-9_-]{90,120}",
];
/// A JSON Web Token.
const WEB_TOKEN: &str = r"\bey[a-zA-Z0-9]{17,}\.ey[a-zA-Z0-9/_-]{17,}\.[a-zA-Z0-9/_-]{10,}={0,2}";
/// How the keys in the manual of AWS end, which many files repeat.
const EXAMPLE: &str = "EXAMPLE";

static ANY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&FORMS.join("|")).ok());
static ANY_OR_TOKEN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!("{}|{WEB_TOKEN}", FORMS.join("|"))).ok());

/// A text without the keys of known forms in it.
pub fn redact_secret_forms(text: &str) -> Cow<'_, str> {
    match &*ANY_OR_TOKEN {
        Some(any) => any.replace_all(text, |found: &regex::Captures<'_>| {
            let key = &found[0];
            if key.ends_with(EXAMPLE) { key.to_owned() } else { MARK.to_owned() }
        }),
        None => Cow::Borrowed(text),
    }
}

/// The keys of known forms in a text, but for web tokens.
pub fn find_secret_forms(text: &str) -> BTreeSet<&str> {
    let found = ANY.iter().flat_map(|any| any.find_iter(text));
    found.map(|found| found.as_str()).filter(|key| !key.ends_with(EXAMPLE)).collect()
}

#[cfg(test)]
mod tests {
    use super::{ANY, ANY_OR_TOKEN, find_secret_forms, redact_secret_forms};

    /// Written in parts, or scanners would find them here.
    fn keys() -> Vec<String> {
        let long = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3kL5mN7pQ9rS1tU3vW5xY7zA9bC1dE3fG5hJ7kL9mN1pQ3rS5t";
        vec![
            format!("ghp_{}", &long[..36]),
            format!("github_pat_{}", &long[..82]),
            format!("sk-ant-api03-{}AA", &long[..93]),
            format!("sk-proj-{}", &long[..60]),
            format!("AKIA{}", "IOSFODNN7ABCDEFG".replace(['0', '1', '8', '9'], "A")),
            format!("npm_{}", &long[..36]),
            format!("xoxb-1234567890-{}", &long[..30]),
            format!("-----BEGIN RSA PRIVATE KEY-----\n{long}\n-----END RSA PRIVATE KEY-----"),
        ]
    }

    #[test]
    fn keys_are_known_by_their_form() {
        assert!(ANY.is_some() && ANY_OR_TOKEN.is_some());
        for key in keys() {
            let text = format!("token: {key} and more");
            assert_eq!(redact_secret_forms(&text), "token: [redacted] and more", "{key}");
            assert_eq!(find_secret_forms(&text).len(), 1, "{key}");
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            "AKIAIOSFODNN7EXAMPLE",
            "ghp_short, sk-ant-, npm_config_cache, hf_hub, sk-learn-extra-package-for-everybody",
            "commit 0123456789abcdef0123456789abcdef01234567",
            "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----",
        ] {
            assert_eq!(redact_secret_forms(text), text);
            assert!(find_secret_forms(text).is_empty(), "{text}");
        }
    }
}
