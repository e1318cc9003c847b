//! What GitHub answers, as far as it is used.

use serde::Deserialize;
use serde_json::Value;

/// An issue or a pull request.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Issue {
    pub number: u64,
    #[serde(default)]
    pub title: String,
    /// Its text.
    #[serde(default)]
    pub body: Option<String>,
    /// `open` or `closed`.
    #[serde(default)]
    pub state: String,
    #[serde(default)]
    pub labels: Vec<Label>,
    /// Its author.
    #[serde(default)]
    pub user: Option<User>,
    /// The users that it is assigned to.
    #[serde(default)]
    pub assignees: Vec<User>,
    /// When it was created, as RFC 3339.
    #[serde(default)]
    pub created_at: String,
    /// When it was changed last, as RFC 3339.
    #[serde(default)]
    pub updated_at: String,
    /// Its page.
    #[serde(default)]
    pub html_url: String,
    /// Present if it is a pull request.
    #[serde(default)]
    pub pull_request: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Label {
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct User {
    /// The name.
    pub login: String,
    /// `User`, `Bot`, `Organization`.
    #[serde(default, rename = "type")]
    pub kind: String,
}

/// A comment on an issue, on a pull request or on a line of one, or a review.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Comment {
    pub id: u64,
    /// Its text.
    #[serde(default)]
    pub body: Option<String>,
    /// Its author.
    #[serde(default)]
    pub user: Option<User>,
    /// Its page.
    #[serde(default)]
    pub html_url: String,
    /// The file, for a comment on a line.
    #[serde(default)]
    pub path: Option<String>,
    /// The line, for a comment on a line.
    #[serde(default)]
    pub line: Option<u64>,
    /// The verdict of a review: `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`.
    #[serde(default)]
    pub state: Option<String>,
    /// How its author belongs to the repository: `OWNER`, `MEMBER`, `COLLABORATOR`, `CONTRIBUTOR`, `NONE`, …
    #[serde(default)]
    pub author_association: Option<String>,
    /// When it was created, as RFC 3339.
    #[serde(default)]
    pub created_at: String,
    /// When it was changed last, as RFC 3339.
    #[serde(default)]
    pub updated_at: String,
}

/// Something that happened to an issue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct IssueEvent {
    /// What happened: `labeled`.
    #[serde(default)]
    pub(super) event: String,
    /// The label, if it is about one.
    #[serde(default)]
    pub(super) label: Option<Label>,
    /// When, as RFC 3339.
    #[serde(default)]
    pub(super) created_at: String,
}

impl Comment {
    /// Whether its author may not write to the repository. A server that does not say it is of a version without that.
    pub fn is_by_stranger(&self) -> bool {
        const MEMBERS: [&str; 3] = ["OWNER", "MEMBER", "COLLABORATOR"];
        self.author_association.as_deref().is_some_and(|association| !MEMBERS.contains(&association))
    }

    /// When it got its present text, as RFC 3339.
    pub fn written_at(&self) -> &str {
        (&*self.updated_at).max(&*self.created_at)
    }

    /// The name of its author.
    pub fn author(&self) -> &str {
        self.user.as_ref().map_or("unknown", |user| &user.login)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PullRequest {
    pub number: u64,
    /// Its page.
    #[serde(default)]
    pub html_url: String,
    /// `open` or `closed`.
    #[serde(default)]
    pub state: String,
    /// When it was merged, as RFC 3339.
    #[serde(default)]
    pub merged_at: Option<String>,
    #[serde(default)]
    pub title: String,
    /// Its text.
    #[serde(default)]
    pub body: Option<String>,
    /// Its author.
    #[serde(default)]
    pub user: Option<User>,
    #[serde(default)]
    pub labels: Vec<Label>,
    #[serde(default)]
    pub draft: bool,
    /// The branch that it proposes.
    #[serde(default)]
    pub head: PullBranch,
    /// The branch that it changes.
    #[serde(default)]
    pub base: PullBranch,
    /// When it was changed last, as RFC 3339.
    #[serde(default)]
    pub updated_at: String,
}

impl PullRequest {
    /// The name of its author.
    pub fn author(&self) -> &str {
        self.user.as_ref().map_or("unknown", |user| &user.login)
    }

    /// Whether its branch is in the repository that it changes.
    pub fn is_own(&self) -> bool {
        let name = |branch: &PullBranch| branch.repo.as_ref().map(|repo| repo.full_name.to_lowercase());
        name(&self.head).is_some() && name(&self.head) == name(&self.base)
    }
}

/// A branch of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct PullBranch {
    #[serde(default, rename = "ref")]
    pub name: String,
    /// Its repository, unless that was deleted.
    #[serde(default)]
    pub repo: Option<RepositoryName>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RepositoryName {
    pub full_name: String,
}
