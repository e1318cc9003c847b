//! Real pieces load without errors.

use cuegate_formats::{TaktOptions, load_takt_workflow};

use crate::disk;
use crate::support::{Project, findings_of};

fn corpus() -> Option<Project> {
    Some(disk::files_below(&disk::shared("corpora/takt")?))
}

fn options(name: &str) -> TaktOptions {
    TaktOptions { file: format!("en/pieces/{name}.yaml"), ..TaktOptions::default() }
}

#[test]
fn all_real_pieces_load_without_errors() {
    let Some(files) = corpus() else { return };
    let mut text = String::new();
    for name in ["default", "magi", "minimal", "review-only"] {
        text.push_str(&format!("# {name}\n{}", findings_of(load_takt_workflow(&files, &options(name)))));
    }
    insta::assert_snapshot!(text, @r#"
    # default
    arbitrate.md:9:22 warning[unwritten-report]: no step writes the report `ai-review.md`
    architect.md:1:23 warning[unwritten-report]: no step writes the report `plan.md`
    default.yaml:306:3 warning[unused-definition]: nothing refers to `validation` of `report_formats`
    default.yaml:307:3 warning[unused-definition]: nothing refers to `summary` of `report_formats`
    # magi
    magi.yaml:10:5 warning[missing-edit]: `edit` is missing, so `melchior` may change nothing
    magi.yaml:46:5 warning[missing-edit]: `edit` is missing, so `balthasar` may change nothing
    magi.yaml:86:5 warning[missing-edit]: `edit` is missing, so `casper` may change nothing
    # minimal
    # review-only
    review-only.yaml:237:3 warning[unused-definition]: nothing refers to `review-summary` of `report_formats`
    "#);
}
