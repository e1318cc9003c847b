//! A stand-in for GitHub: issues, labels, comments, reviews, pull requests and projects, with the faults that clients
//! have to bear.
//!
//! ```
//! use cuegate_testkit::github::{Fault, GithubStandin};
//!
//! let github = GithubStandin::start("owner/name");
//! github.issue(7, "It is broken", "Mend it.", &["ready"]);
//! github.fault(Fault::AfterEffect, "POST", "/comments", 1);
//! // run something with `GITHUB_API_URL` = `github.url()`, then
//! assert_eq!(github.labels(7), ["ready"]);
//! ```

mod routes;
mod server;
mod state;

pub use server::GithubStandin;
pub use state::{Fault, Seen};
