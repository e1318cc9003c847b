//! Performs effects on GitHub. Each try looks first where a repetition could do something twice.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{fs, io::Write, path::Path};

use cuegate_engine::{Delay, EffectResult};
use cuegate_provider::redact_secret_forms;

use super::{Comment, Github, GithubError, Issue};

/// The longest text of a comment or pull request that GitHub accepts, in characters.
const TEXT_CHARS_MAX: usize = 65_000;

/// Changes the labels of an issue.
pub(crate) fn change_labels(github: &Github, issue: u64, add: &[&str], remove: &[&str]) -> EffectResult {
    let change = || -> Result<(), GithubError> {
        if !add.is_empty() {
            github.add_labels(issue, add)?;
        }
        for label in remove {
            github.remove_label(issue, label)?;
        }
        Ok(())
    };
    let names =
        |labels: &[&str]| labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
    let mut said = Vec::new();
    if !add.is_empty() {
        said.push(format!("added {}", names(add)));
    }
    if !remove.is_empty() {
        said.push(format!("removed {}", names(remove)));
    }
    match change() {
        Ok(()) => EffectResult::Done { said: format!("{} on #{issue}", said.join(", ")), url: None },
        Err(error) => effect_result_of_error(&error),
    }
}

pub(crate) fn close_issue(github: &Github, issue: u64) -> EffectResult {
    match github.close(issue) {
        Ok(found) => EffectResult::Done { said: format!("closed #{issue}"), url: Some(found.html_url) },
        Err(error) => effect_result_of_error(&error),
    }
}

pub(crate) struct RunComment<'c> {
    /// The run, whose id marks the comment.
    pub(crate) run: &'c str,
    pub(crate) issue: u64,
    /// The texts, in order.
    pub(crate) texts: &'c [String],
    /// The address of the comment, if it exists.
    pub(crate) url: Option<&'c str>,
    /// Whether nobody knows if an earlier effect created it.
    pub(crate) unknown: bool,
    /// How often a look did not find it after it may have been created.
    pub(crate) looks: u32,
    /// The file that notes that the request to create it is sent.
    pub(crate) sent: &'c Path,
}

impl RunComment<'_> {
    fn marker(&self) -> String {
        format!("<!-- cuegate run {} -->", self.run)
    }

    fn body(&self) -> String {
        truncate_body(&format!("{}\n{}", self.marker(), self.texts.join("\n\n---\n\n")))
    }

    /// Creates the comment, or replaces its text if it exists.
    pub(crate) fn write(&self, github: &Github) -> EffectResult {
        match self.try_write(github) {
            Ok(result) => result,
            Err(error) => effect_result_of_error(&error),
        }
    }

    fn try_write(&self, github: &Github) -> Result<EffectResult, GithubError> {
        let known = self.url.and_then(|url| url.rsplit_once("#issuecomment-")?.1.parse::<u64>().ok());
        let existing = match known {
            Some(id) => Some(id),
            None => self.find(github)?.map(|comment| comment.id),
        };
        if let Some(id) = existing {
            match github.edit_comment(id, &self.body()) {
                Ok(comment) => return Ok(self.done("edited", comment)),
                // Somebody deleted it.
                Err(GithubError::Refused { status: 404, .. }) if known.is_some() => {}
                Err(error) => return Err(error),
            }
        }
        if self.unknown {
            let said = format!(
                "whether an earlier comment on #{} exists is unknown: `cuegate effect {}` settles it",
                self.issue, self.run
            );
            return Ok(EffectResult::Failed { said });
        }
        let unseen =
            format!("the comment on #{} may have been sent, and GitHub does not list it", self.issue);
        if self.looks > 0 || self.sent.exists() {
            return Ok(EffectResult::Later { delay: Delay::Look, why: unseen, after_ms: None });
        }
        if let Err(why) = write_request_note(self.sent) {
            return Ok(EffectResult::Failed { said: format!("cannot write {}: {why}", self.sent.display()) });
        }
        match github.create_comment(self.issue, &self.body()) {
            Ok(comment) => Ok(self.done("commented", comment)),
            Err(error) if error.is_ambiguous() => {
                let why = format!("{error}; {unseen}");
                Ok(EffectResult::Later { delay: Delay::Look, why, after_ms: None })
            }
            Err(error) => {
                let _ = fs::remove_file(self.sent);
                Err(error)
            }
        }
    }

    /// The comment with the marker of the run, by the user of the token.
    fn find(&self, github: &Github) -> Result<Option<Comment>, GithubError> {
        let marker = self.marker();
        let marked = |comment: &Comment| comment.body.as_deref().unwrap_or_default().starts_with(&marker);
        let mut found: Vec<Comment> = github.comments(self.issue)?.into_iter().filter(marked).collect();
        if found.is_empty() {
            return Ok(None);
        }
        if let Some(login) = github.login()? {
            found.retain(|comment| comment.author() == login);
        }
        Ok(found.into_iter().next())
    }

    fn done(&self, how: &str, comment: Comment) -> EffectResult {
        EffectResult::Done { said: format!("{how} on #{}", self.issue), url: Some(comment.html_url) }
    }
}

/// Creates an issue with a mark, or finds the one that has it. `issue`: its title, text and labels.
///
/// # Errors
/// The result of the effect, if it is not there.
pub(crate) fn create_marked_issue(
    github: &Github,
    key: &str,
    (title, text, labels): (&str, &str, &[&str]),
    looks: u32,
    sent: &Path,
) -> Result<Issue, EffectResult> {
    let marker = format!("<!-- cuegate task {key} -->");
    let found = github.all_open_issues().map_err(|error| effect_result_of_error(&error))?;
    let is_marked = |issue: &Issue| issue.body.as_deref().unwrap_or_default().contains(&marker);
    if let Some(issue) = found.into_iter().find(is_marked) {
        return Ok(issue);
    }
    let later = |why: String| EffectResult::Later { delay: Delay::Look, why, after_ms: None };
    let unseen = "the issue may have been created, and GitHub does not list it";
    if looks > 0 || sent.exists() {
        return Err(later(unseen.to_owned()));
    }
    if let Err(why) = write_request_note(sent) {
        return Err(EffectResult::Failed { said: format!("cannot write {}: {why}", sent.display()) });
    }
    let body = truncate_body(&format!("{text}\n\n{marker}"));
    github.create_issue(title, &body, labels).map_err(|error| match error.is_ambiguous() {
        true => later(format!("{error}; {unseen}")),
        false => {
            let _ = fs::remove_file(sent);
            effect_result_of_error(&error)
        }
    })
}

/// Opens a pull request from `head` into `base`, or replaces the text of the one that is open.
pub(crate) fn upsert_pull_request(
    github: &Github,
    head: &str,
    base: &str,
    title: &str,
    body: &str,
) -> EffectResult {
    let body = truncate_body(body);
    let existing = |how: &str| -> Result<Option<EffectResult>, GithubError> {
        let Some(pull) = github.open_pull(head, base)? else { return Ok(None) };
        let pull = github.edit_pull(pull.number, &body)?;
        let said = format!("{how} #{} into `{base}`", pull.number);
        Ok(Some(EffectResult::Done { said, url: Some(pull.html_url) }))
    };
    let propose = || -> Result<EffectResult, GithubError> {
        if let Some(done) = existing("updated")? {
            return Ok(done);
        }
        let title: String = title.chars().take(200).collect();
        match github.create_pull(head, base, &title, &body) {
            Ok(pull) => {
                let said = format!("opened #{} into `{base}`", pull.number);
                Ok(EffectResult::Done { said, url: Some(pull.html_url) })
            }
            Err(error) if error.refused() == Some(422) => match existing("adopted")? {
                Some(done) => Ok(done),
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    };
    propose().unwrap_or_else(|error| effect_result_of_error(&error))
}

/// The result of an effect whose request failed and may be repeated.
pub(crate) fn effect_result_of_error(error: &GithubError) -> EffectResult {
    let why = error.to_string();
    match error {
        GithubError::Limited { after_ms, .. } => {
            EffectResult::Later { delay: Delay::Limit, why, after_ms: *after_ms }
        }
        GithubError::Refused { .. } => EffectResult::Failed { said: why },
        GithubError::Unreachable { .. }
        | GithubError::Broken { .. }
        | GithubError::Server { .. }
        | GithubError::Fenced(_)
        | GithubError::Unreadable(_) => EffectResult::Later { delay: Delay::Fault, why, after_ms: None },
    }
}

/// Writes the note that a request is sent, so that it survives a power failure.
fn write_request_note(path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::File::create(path)?;
    file.write_all(b"sent\n")?;
    file.sync_all()
}

pub(super) fn truncate_body(text: &str) -> String {
    // Before it is cut: half of a key has no form.
    let text = redact_secret_forms(text);
    if text.chars().count() <= TEXT_CHARS_MAX {
        return text.into_owned();
    }
    let kept: String = text.chars().take(TEXT_CHARS_MAX).collect();
    format!("{kept}\n\n(cut off; the run has the whole text)")
}
