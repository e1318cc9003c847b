//! Builds the program so that it starts on old machines too, and checks that it does.

use std::{
    env,
    path::{Path, PathBuf},
};

use super::{Commit, GLIBC, Platform, VERSION};
use crate::shell::{cargo, has, output, root, run};

/// The programs of the Python registry that link with an old C library, and their versions.
const ZIG: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

/// Builds the program with all symbols. Returns its path.
pub(super) fn build_binary(platform: Platform, commit: &Commit) -> Result<PathBuf, String> {
    let root = root();
    let tools = root.join("target/zig");
    let bin = tools.join("bin");
    if !bin.join("cargo-zigbuild").exists() {
        run(&root, "python3", &["-m", "venv", &tools.display().to_string()], &[])?;
        let pip = bin.join("pip").display().to_string();
        run(&root, &pip, &[&["install", "--quiet", "--disable-pip-version-check"][..], &ZIG].concat(), &[])?;
    }
    let target = platform.target;
    let floor = match platform.is_gnu {
        true => format!("{target}.{}.{}", GLIBC.0, GLIBC.1),
        false => target.to_owned(),
    };
    let folder = root.join("target/package").display().to_string();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(std::iter::once(bin).chain(env::split_paths(&path)))
        .map_err(|error| error.to_string())?;
    // Messages of panics and asserts name source files: not those of this machine.
    let home = env::var("CARGO_HOME").or_else(|_| env::var("HOME").map(|home| format!("{home}/.cargo")));
    let home = home.unwrap_or_default();
    let here = root.display().to_string();
    let remap = |flag: &str| format!("{flag}={here}=cuegate {flag}={home}=cargo");
    // One of the C libraries says when it was built.
    let no_clock = r#"-Wno-builtin-macro-redefined -D__DATE__="" -D__TIME__="""#;
    let version = format!("{VERSION} ({} {}, {target})", commit.id, commit.day);
    let arguments = ["zigbuild", "--release", "--locked", "--package", "cuegate", "--target", &floor];
    run(
        &root,
        &cargo(),
        &arguments,
        &[
            ("PATH", &path.to_string_lossy()),
            ("CARGO_TARGET_DIR", &folder),
            ("CARGO_INCREMENTAL", "0"),
            ("CARGO_PROFILE_RELEASE_STRIP", "none"),
            ("RUSTFLAGS", &remap("--remap-path-prefix")),
            ("CFLAGS", &format!("{} {no_clock}", remap("-ffile-prefix-map"))),
            ("CUEGATE_VERSION", &version),
        ],
    )?;
    Ok(Path::new(&folder).join(target).join("release/cuegate"))
}

/// Writes the program without symbols, and its symbols, which a debugger finds by their name.
pub(super) fn split_symbols(built: &Path, stripped: &Path, symbols: &Path) -> Result<(), String> {
    let root = root();
    // That of Rust knows every processor, that of the system only its own.
    let sysroot = output(&root, "rustc", &["--print", "sysroot"])?;
    let host = output(&root, "rustc", &["-vV"])?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    let own = Path::new(sysroot.trim()).join("lib/rustlib").join(host).join("bin/rust-objcopy");
    let own = own.display().to_string();
    let objcopy = if has(&own, &["--version"]) { &own } else { "objcopy" };
    let (built, stripped) = (built.display().to_string(), stripped.display().to_string());
    let symbols = symbols.display().to_string();
    // What the linker's own C library brings names the folder that it was built in.
    output(&root, objcopy, &["--strip-debug", &built, &symbols])?;
    output(&root, objcopy, &["--only-keep-debug", &symbols])?;
    let link = format!("--add-gnu-debuglink={symbols}");
    output(&root, objcopy, &["--strip-all", &link, &built, &stripped])?;
    Ok(())
}

/// Checks that a program starts where it has to: with the oldest C library, or with none.
///
/// # Errors
/// When it needs a newer one, or is linked in the wrong way. A static glibc is one: it aborts at the first name that it
/// looks up where the machine has modules of its own for names.
pub(super) fn check_portable(binary: &[u8], platform: Platform) -> Result<(), String> {
    let is_dynamic = has_bytes(binary, b"/ld-linux");
    if platform.is_gnu != is_dynamic {
        let (is, has_to) =
            if is_dynamic { ("dynamically", "statically") } else { ("statically", "dynamically") };
        return Err(format!("the program for {} is {is} linked and has to be {has_to}", platform.target));
    }
    let newest = find_newest_glibc(binary);
    match newest {
        Some((major, minor)) if (major, minor) > GLIBC => Err(format!(
            "the program needs glibc {major}.{minor}, and has to start with {}.{}: build it without `--binary`",
            GLIBC.0, GLIBC.1
        )),
        _ => Ok(()),
    }
}

/// The newest version of glibc of which a program needs a symbol.
fn find_newest_glibc(binary: &[u8]) -> Option<(u32, u32)> {
    const NAME: &[u8] = b"GLIBC_";
    let mut newest = None;
    for at in memchr::memmem::find_iter(binary, NAME) {
        let rest = &binary[at + NAME.len()..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.').unwrap_or(rest.len());
        // Names of versions end with a zero byte; a message that speaks of one does not.
        if rest.get(end) != Some(&0) {
            continue;
        }
        let text = String::from_utf8_lossy(&rest[..end]).into_owned();
        let mut numbers = text.split('.').map(|number| number.parse().unwrap_or(0));
        newest = newest.max(Some((numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))));
    }
    newest
}

fn has_bytes(binary: &[u8], wanted: &[u8]) -> bool {
    memchr::memmem::find(binary, wanted).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::PLATFORMS;

    #[test]
    fn a_program_for_new_machines_only_is_refused() {
        let [gnu, _, musl, _] = PLATFORMS;
        let program =
            |version: &str| [b"/lib64/ld-linux-x86-64.so.2\0GLIBC_", version.as_bytes(), b"\0"].concat();
        assert_eq!(check_portable(&program("2.28"), gnu), Ok(()));
        assert!(check_portable(&program("2.35"), gnu).unwrap_err().contains("needs glibc 2.35"));
        assert!(check_portable(b"GLIBC_2.2.5\0", gnu).unwrap_err().contains("is statically linked"));
        assert!(check_portable(&program("2.28"), musl).unwrap_err().contains("has to be statically"));
        assert_eq!(check_portable(b"needs GLIBC_2.99 or so", musl), Ok(()));
    }
}
