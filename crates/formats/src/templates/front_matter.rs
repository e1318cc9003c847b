//! The front matter of a prompt file: YAML between two lines of `---`.

mod plain;

use serde_json::Value;

/// A prompt file, split into front matter and body.
#[derive(Debug)]
pub(crate) struct FrontMatter<'t> {
    /// The parsed front matter; `None` if there is none.
    pub(crate) matter: Option<serde_json::Map<String, Value>>,
    /// The syntax error, with its byte offset in the file.
    pub(crate) fault: Option<(usize, String)>,
    /// The prompt.
    pub(crate) body: &'t str,
    /// The byte offset of the prompt.
    pub(crate) body_at: usize,
    /// The front matter as written, with its byte offset.
    yaml: (&'t str, usize),
}

impl FrontMatter<'_> {
    /// The strings listed under a key; empty if the key is absent or no list.
    pub(crate) fn names(&self, key: &str) -> Vec<String> {
        let items = self.matter.as_ref().and_then(|matter| matter.get(key)).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// The byte offset of a key in the file; that of the front matter if the key cannot be located.
    pub(crate) fn at(&self, key: &str) -> usize {
        let (yaml, yaml_at) = self.yaml;
        let is_key = |line: &str| {
            let line = line.trim_start_matches(['"', '\'']);
            let rest = line.strip_prefix(key).map(|rest| rest.trim_start_matches(['"', '\'', ' ']));
            rest.is_some_and(|rest| rest.starts_with(':'))
        };
        let mut at = yaml_at;
        for line in yaml.split_inclusive('\n') {
            if is_key(line) {
                return at;
            }
            at += line.len();
        }
        yaml_at
    }
}

/// Splits a prompt file. A file that begins with a `---` line has a front matter if a second such line follows and
/// the text between is a YAML mapping, or no valid YAML (an error). Two horizontal rules around a paragraph are no
/// front matter.
pub(crate) fn split_front_matter(text: &str) -> FrontMatter<'_> {
    let no_matter = FrontMatter { matter: None, fault: None, body: text, body_at: 0, yaml: ("", 0) };
    let Some((matter_at, matter_end, body_at)) = find_matter_borders(text) else { return no_matter };
    let body = text[body_at..].trim_start_matches(['\r', '\n']);
    let body_at = text.len() - body.len();
    let yaml = &text[matter_at..matter_end];
    let with = |matter, fault| FrontMatter { matter, fault, body, body_at, yaml: (yaml, matter_at) };
    if yaml.trim().is_empty() {
        return with(Some(serde_json::Map::new()), None);
    }
    if let Some(matter) = plain::read_plain_yaml(yaml) {
        return with(Some(matter), None);
    }
    match serde_saphyr::from_str::<Value>(yaml) {
        Ok(Value::Object(matter)) => with(Some(matter), None),
        Ok(_) => no_matter,
        Err(error) => {
            let at = error.location().map_or(0, |location| line_start(yaml, location.line()));
            let reason = error.without_snippet().to_string();
            // The message repeats the position relative to the front matter; ours is relative to the file.
            let reason = reason.lines().next().unwrap_or_default();
            let reason = reason.rsplit_once(" at line ").map_or(reason, |(reason, _)| reason).to_owned();
            with(None, Some((matter_at + at, reason)))
        }
    }
}

/// The offsets of the YAML's start and end, and of the body.
fn find_matter_borders(text: &str) -> Option<(usize, usize, usize)> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| line.trim_end() == "---" && line.ends_with('\n'))?;
    let mut at = first.len();
    for line in lines {
        if line.trim_end() == "---" {
            return Some((first.len(), at, at + line.len()));
        }
        at += line.len();
    }
    None
}

/// The byte offset of a one-based line.
fn line_start(text: &str, line: u64) -> usize {
    let before = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    text.split_inclusive('\n').take(before).map(str::len).sum()
}

#[cfg(test)]
mod tests {
    use super::split_front_matter;

    #[test]
    fn takes_the_front_matter_off() {
        let split = split_front_matter("---\nstepId: a\nuvVariables:\n  - issue\n---\n\nHello\n---\n");
        assert_eq!(split.matter.unwrap()["uvVariables"][0], "issue");
        assert_eq!((split.body, split.body_at), ("Hello\n---\n", 42));
    }

    #[test]
    fn keys_have_places() {
        let split = split_front_matter("---\nstepId: a\nlist:\n  - c2: x\n\"c2\" : y\n---\nHello");
        let places: Vec<usize> = ["stepId", "list", "c2", "c3"].iter().map(|key| split.at(key)).collect();
        assert_eq!(places, [4, 14, 30, 4]);
    }

    #[test]
    fn what_is_none_stays_text() {
        for text in ["Hello", "---", "---\nno end", "---\na paragraph\n---\nmore", "----\na: 1\n---\n", ""] {
            let split = split_front_matter(text);
            assert!(split.matter.is_none() && split.fault.is_none(), "{text}");
            assert_eq!(split.body, text);
        }
        assert_eq!(split_front_matter("---\r\na: 1\r\n---\r\n\r\nHi").body, "Hi");
        assert_eq!(split_front_matter("---\n---\nHi").body, "Hi");
    }

    #[test]
    fn bad_yaml_is_a_fault_with_its_line() {
        let split = split_front_matter("---\na: 1\nb: [\n---\nHi");
        let (at, reason) = split.fault.unwrap();
        assert!(at >= 4 && !reason.is_empty(), "{at} {reason}");
        assert_eq!(split.body, "Hi");
    }
}
