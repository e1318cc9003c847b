//! `cargo xtask package`: everything that people install, made of one binary.
//!
//! What is made depends on the commit alone: times are those of the commit, entries are sorted, and paths of this machine
//! are in nothing, so that two machines make the same bytes.

mod archives;
mod binary;
mod deb;
mod index;
mod npm;
#[cfg(test)]
mod tests;
mod wheel;

use std::{
    fs,
    path::{Path, PathBuf},
};

use archives::{PackedFile, pack_tar_gz};
use binary::{build_binary, check_portable, split_symbols};
pub(crate) use index::write_index;

use crate::shell::{output, root};

/// The version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Where the project lives.
const REPOSITORY: &str = "https://github.com/cuegate/cuegate";
const SUMMARY: &str = "Check, price, run and replay declarative workflows of coding agents";
const LICENSE: &str = "MIT OR Apache-2.0";

/// A platform that is packaged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Platform {
    /// Rust's name.
    target: &'static str,
    /// The name of the npm package after `@cuegate/`.
    npm: &'static str,
    /// Node's name of the processor.
    node_cpu: &'static str,
    /// The tag of wheels.
    wheel: &'static str,
    /// Debian's name of the processor.
    deb: &'static str,
    /// Whether it is linked with the C library of the machine.
    is_gnu: bool,
}

/// The oldest C library that programs for `gnu` start with: that of RHEL 8 and Debian 10.
const GLIBC: (u32, u32) = (2, 28);

const PLATFORMS: [Platform; 4] = [
    Platform {
        target: "x86_64-unknown-linux-gnu",
        npm: "linux-x64",
        node_cpu: "x64",
        wheel: "manylinux_2_28_x86_64",
        deb: "amd64",
        is_gnu: true,
    },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        npm: "linux-arm64",
        node_cpu: "arm64",
        wheel: "manylinux_2_28_aarch64",
        deb: "arm64",
        is_gnu: true,
    },
    Platform {
        target: "x86_64-unknown-linux-musl",
        npm: "linux-x64-musl",
        node_cpu: "x64",
        wheel: "musllinux_1_2_x86_64",
        deb: "amd64",
        is_gnu: false,
    },
    Platform {
        target: "aarch64-unknown-linux-musl",
        npm: "linux-arm64-musl",
        node_cpu: "arm64",
        wheel: "musllinux_1_2_aarch64",
        deb: "arm64",
        is_gnu: false,
    },
];

/// What is packaged.
struct Release {
    platform: Platform,
    /// Seconds since 1970: the time of the commit.
    time: u64,
    /// The program, without symbols.
    binary: Vec<u8>,
    /// Its symbols.
    symbols: Vec<u8>,
    /// The completions of bash, zsh and fish.
    completions: [Vec<u8>; 3],
    /// The pages of the manual, by name.
    manual: Vec<(String, Vec<u8>)>,
}

/// Builds the program for a platform and makes its packages in `folder`, unless `binary` is one that is built already.
///
/// # Errors
/// When the platform is unknown or not that of this processor, a tool is missing, or the program would not start where it
/// has to.
pub(crate) fn package(target: &str, binary: Option<&Path>, folder: &Path) -> Result<(), String> {
    let Some(platform) = PLATFORMS.into_iter().find(|platform| platform.target == target) else {
        let names: Vec<&str> = PLATFORMS.iter().map(|platform| platform.target).collect();
        return Err(format!("unknown target `{target}`: it is one of {}", names.join(", ")));
    };
    if !target.starts_with(std::env::consts::ARCH) {
        return Err(format!(
            "the manual and the completions are made by the program, so `{target}` is packaged on a machine of its own"
        ));
    }
    let root = root();
    let commit = Commit::read(&root)?;
    let built = match binary {
        Some(path) => path.to_owned(),
        None => build_binary(platform, &commit)?,
    };
    fs::create_dir_all(folder).map_err(|error| format!("`{}`: {error}", folder.display()))?;
    let stage = tempfile::tempdir_in(folder).map_err(|error| format!("`{}`: {error}", folder.display()))?;
    let (stripped, symbols) = (stage.path().join("cuegate"), stage.path().join("cuegate.debug"));
    split_symbols(&built, &stripped, &symbols)?;
    let bytes = read(&stripped)?;
    check_portable(&bytes, platform)?;
    let words = |args: &[&str]| output(&root, &stripped.display().to_string(), args).map(String::into_bytes);
    let release = Release {
        platform,
        time: commit.time,
        completions: [
            words(&["completions", "bash"])?,
            words(&["completions", "zsh"])?,
            words(&["completions", "fish"])?,
        ],
        manual: read_manual(&stripped, &stage.path().join("man"))?,
        symbols: read(&symbols)?,
        binary: bytes,
    };
    drop(stage);
    make_packages(&root, &release, folder)?;
    write_index(folder)
}

fn make_packages(root: &Path, release: &Release, folder: &Path) -> Result<(), String> {
    let mut made = vec![
        pack_archive(root, release)?,
        pack_symbols(release)?,
        wheel::pack_wheel(root, release)?,
        npm::pack_platform(root, release)?,
        npm::pack_wrapper(root, release.time)?,
    ];
    if release.platform.is_gnu {
        made.push(deb::pack_deb(root, release)?);
    }
    for (name, bytes) in made {
        let path = folder.join(&name);
        fs::write(&path, &bytes).map_err(|error| format!("`{}`: {error}", path.display()))?;
        println!("{:>9} kB  {}", bytes.len() / 1000, path.display());
    }
    Ok(())
}

/// A name and what is in it.
type Made = (String, Vec<u8>);

/// The commit that is packaged.
struct Commit {
    /// Short.
    id: String,
    /// `2026-11-28`.
    day: String,
    time: u64,
}

impl Commit {
    fn read(root: &Path) -> Result<Commit, String> {
        let text = output(root, "git", &["log", "-1", "--format=%h %cs %ct", "--abbrev=10"])?;
        let mut words = text.split_whitespace().map(str::to_owned);
        let (id, day, time) = (words.next(), words.next(), words.next());
        let commit = || Some(Commit { id: id?, day: day?, time: time?.parse().ok()? });
        let mut commit = commit().ok_or("the folder has no commit to package")?;
        if !output(root, "git", &["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
            commit.id.push_str("-changed");
        }
        Ok(commit)
    }
}

/// What lies beside the program in an archive: texts, completions and the manual.
fn files_beside(root: &Path, release: &Release) -> Result<Vec<PackedFile>, String> {
    let mut files = Vec::new();
    for name in ["README.md", "CHANGELOG.md"] {
        files.push(PackedFile::text(name, read(&root.join(name))?));
    }
    files.extend(licences(root)?);
    for (name, text) in ["cuegate.bash", "_cuegate", "cuegate.fish"].into_iter().zip(&release.completions) {
        files.push(PackedFile::text(&format!("completions/{name}"), text.clone()));
    }
    for (name, text) in &release.manual {
        files.push(PackedFile::text(&format!("man/man1/{name}"), text.clone()));
    }
    Ok(files)
}

fn licences(root: &Path) -> Result<Vec<PackedFile>, String> {
    let texts = ["Apache-2.0.txt", "MIT.txt"].into_iter();
    texts
        .map(|name| {
            Ok(PackedFile::text(&format!("LICENSES/{name}"), read(&root.join("LICENSES").join(name))?))
        })
        .collect()
}

fn pack_archive(root: &Path, release: &Release) -> Result<Made, String> {
    let folder = format!("cuegate-{VERSION}-{}", release.platform.target);
    let mut files = vec![PackedFile::program("cuegate", release.binary.clone())];
    files.extend(files_beside(root, release)?);
    Ok((format!("{folder}.tar.gz"), pack_tar_gz(&format!("{folder}/"), files, release.time)?))
}

fn pack_symbols(release: &Release) -> Result<Made, String> {
    let name = format!("cuegate-{VERSION}-{}-symbols.tar.gz", release.platform.target);
    let files = vec![PackedFile::text("cuegate.debug", release.symbols.clone())];
    Ok((name, pack_tar_gz("", files, release.time)?))
}

fn read_manual(program: &Path, folder: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let dir = folder.display().to_string();
    output(Path::new("/"), &program.display().to_string(), &["man", "--dir", &dir])?;
    let failed = |error: std::io::Error| format!("`{dir}`: {error}");
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        pages.push((entry.file_name().to_string_lossy().into_owned(), read(&entry.path())?));
    }
    pages.sort();
    Ok(pages)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("`{}`: {error}", path.display()))
}

/// The folder of packages that is used if none is named.
pub(crate) fn default_folder() -> PathBuf {
    root().join("target/packages")
}
