//! Real pieces load without errors.

use cuegate_dialect::{PieceOptions, load_piece};

use crate::disk;
use crate::support::{Project, findings_of};

fn corpus() -> Option<Project> {
    Some(disk::files_below(&disk::shared("corpora/takt")?))
}

fn options(name: &str) -> PieceOptions {
    PieceOptions { file: format!("en/pieces/{name}.yaml"), ..PieceOptions::default() }
}

#[test]
fn all_of_them() {
    let Some(files) = corpus() else { return };
    let mut text = String::new();
    for name in ["default", "magi", "minimal", "review-only"] {
        text.push_str(&format!("# {name}\n{}", findings_of(load_piece(&files, &options(name)))));
    }
    insta::assert_snapshot!(text, @"");
}
