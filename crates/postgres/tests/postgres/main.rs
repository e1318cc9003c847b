//! Tests against a real server: the suite of all journals, and what only a database far away does.

#[cfg(test)]
#[path = "../../../journal/tests/stores/conformance.rs"]
mod conformance;
#[cfg(test)]
mod far_away;
#[cfg(test)]
mod fleet;
#[cfg(test)]
mod server;

#[cfg(test)]
mod suite {
    crate::conformance::conformance!(crate::server::Lender::new());
}
