//! Packages of npm: one for each platform with the program, and one that starts the one of this machine. Nothing runs
//! when they are installed.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    LICENSE, Made, PLATFORMS, REPOSITORY, Release, SUMMARY, VERSION,
    archives::{PackedFile, pack_tar_gz},
    licences, read,
};

/// The program of the package that starts the one of this machine.
const LAUNCHER: &str = include_str!("launcher.js");

/// The package with the program. Its own `bin` starts without Node.js.
pub(super) fn pack_platform(root: &Path, release: &Release) -> Result<Made, String> {
    let platform = release.platform;
    let package = json!({
        "name": format!("@cuegate/{}", platform.npm), "version": VERSION,
        "description": format!("{SUMMARY}: the program for {}", platform.target),
        "license": LICENSE, "repository": repository(),
        "os": ["linux"], "cpu": [platform.node_cpu], "libc": [if platform.is_gnu { "glibc" } else { "musl" }],
        "bin": { "cuegate": "bin/cuegate" }, "files": ["bin/cuegate", "LICENSES"],
    });
    let mut files = vec![json_file(&package), PackedFile::program("bin/cuegate", release.binary.clone())];
    files.extend(licences(root)?);
    let name = format!("cuegate-{}-{VERSION}.tgz", platform.npm);
    Ok((name, pack_tar_gz("package/", files, release.time)?))
}

/// The package `cuegate`.
pub(super) fn pack_wrapper(root: &Path, time: u64) -> Result<Made, String> {
    let platforms =
        PLATFORMS.iter().map(|platform| (format!("@cuegate/{}", platform.npm), Value::from(VERSION)));
    let package = json!({
        "name": "cuegate", "version": VERSION, "description": SUMMARY, "license": LICENSE, "repository": repository(),
        "bin": { "cuegate": "bin/cuegate.js" }, "files": ["bin/cuegate.js", "LICENSES"],
        "engines": { "node": ">=18" },
        "optionalDependencies": platforms.collect::<serde_json::Map<_, _>>(),
    });
    let mut files = vec![
        json_file(&package),
        PackedFile::program("bin/cuegate.js", LAUNCHER.as_bytes().to_vec()),
        PackedFile::text("README.md", read(&root.join("README.md"))?),
    ];
    files.extend(licences(root)?);
    Ok((format!("cuegate-{VERSION}.tgz"), pack_tar_gz("package/", files, time)?))
}

fn repository() -> Value {
    json!({ "type": "git", "url": format!("git+{REPOSITORY}.git") })
}

fn json_file(package: &Value) -> PackedFile {
    PackedFile::text("package.json", format!("{package:#}\n").into_bytes())
}
