//! What people wrote on an issue or a pull request, and when it got a label.

use super::{
    client::{Answer, Github},
    objects::{Comment, IssueEvent},
};

impl Github {
    /// The comments on an issue or pull request, oldest first.
    ///
    /// # Errors
    /// As for every request.
    pub fn comments(&self, number: u64) -> Answer<Vec<Comment>> {
        self.list(&self.path(&format!("issues/{number}/comments")), &[])
    }

    /// When an issue got a label last, as RFC 3339; `None` if it never did.
    ///
    /// # Errors
    /// As for every request.
    pub fn labeled_at(&self, number: u64, label: &str) -> Answer<Option<String>> {
        let events: Vec<IssueEvent> = self.list(&self.path(&format!("issues/{number}/events")), &[])?;
        let is_it = |event: &IssueEvent| {
            let of_label = event.label.as_ref().is_some_and(|known| known.name.eq_ignore_ascii_case(label));
            event.event == "labeled" && of_label
        };
        Ok(events.into_iter().filter(is_it).map(|event| event.created_at).max())
    }

    /// The comments on lines of a pull request, oldest first.
    ///
    /// # Errors
    /// As for every request.
    pub fn line_comments(&self, number: u64) -> Answer<Vec<Comment>> {
        self.list(&self.path(&format!("pulls/{number}/comments")), &[])
    }

    /// The reviews of a pull request, oldest first.
    ///
    /// # Errors
    /// As for every request.
    pub fn reviews(&self, number: u64) -> Answer<Vec<Comment>> {
        self.list(&self.path(&format!("pulls/{number}/reviews")), &[])
    }
}
