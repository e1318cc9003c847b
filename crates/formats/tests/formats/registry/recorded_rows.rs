//! Rows of the documents whose effect is what is found.

use crate::older::check_flow;
use crate::older::complete::{self, COMPLETE};
use crate::support::{edit, findings, project};

#[test]
fn descriptions_are_texts() {
    // In the other generations as well.
    let older = edit(&project(COMPLETE), "\"name\": \"Plan\"", "\"name\": \"Plan\", \"description\": 7");
    let checked =
        edit(&check_flow::sound(), "\"name\": \"Analyze\"", "\"name\": \"Analyze\", \"description\": 7");
    for found in [findings(&older, complete::DIR), findings(&checked, check_flow::DIR)] {
        assert!(found.contains("error[wrong-type]: `description` must be text, not a number"), "{found}");
    }
}
