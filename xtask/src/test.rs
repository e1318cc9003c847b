//! Everything that has to pass.

use crate::{
    agents,
    shell::{cargo, has, root, run},
    tidy,
};

/// Sees to it that the tests of the sandbox can run: installs bubblewrap where that is ours to do, else says that they will
/// be skipped.
fn sandbox() {
    if has("bwrap", &["--version"]) {
        return;
    }
    let root_of_debian = has("sh", &["-c", "test $(id -u) = 0 && command -v apt-get"]);
    let install = ["install", "--yes", "--no-install-recommends", "bubblewrap"];
    if root_of_debian && run(&root(), "apt-get", &install, &[]).is_ok() {
        return;
    }
    eprintln!(
        "note: without bubblewrap the tests of the sandbox are skipped; `apt-get install bubblewrap` installs it"
    );
}

/// Formats, lints, tests, documents, and checks the layers. Needs cargo, git and npm, for the sandbox bubblewrap; uses `cargo nextest`
/// where it is installed.
pub(crate) fn test() -> Result<(), String> {
    let (root, cargo) = (root(), cargo());
    if !has("git", &["--version"]) {
        return Err("the tests need git: install it with your system's package manager".to_owned());
    }
    sandbox();
    tidy::tidy()?;
    agents::agents()?;
    run(&root, &cargo, &["fmt", "--all", "--check"], &[])?;
    run(&root, &cargo, &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])?;
    // Examples are the helper programs of some tests.
    run(&root, &cargo, &["build", "--quiet", "--workspace", "--bins", "--examples"], &[])?;
    let no_updates = [("INSTA_UPDATE", "no")];
    if has(&cargo, &["nextest", "--version"]) {
        run(&root, &cargo, &["nextest", "run", "--workspace", "--no-fail-fast"], &no_updates)?;
        run(&root, &cargo, &["test", "--quiet", "--workspace", "--doc"], &no_updates)?;
    } else {
        run(&root, &cargo, &["test", "--workspace", "--no-fail-fast"], &no_updates)?;
    }
    run(&root, &cargo, &["doc", "--quiet", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])?;
    eprintln!("everything passed");
    Ok(())
}
