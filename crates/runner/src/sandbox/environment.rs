//! The environment variables of this process that a sandbox passes on. All others are removed, because a name does not
//! tell reliably which variables hold keys.

use std::{env, ffi::OsString};

use crate::worktree::settings::matches_name_pattern;

/// Names, or beginnings of names with `*`, that are passed on.
const PASSED: [&str; 116] = [
    // The user and the terminal.
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "CUEGATE_*",
    "DEBIAN_FRONTEND",
    "EDITOR",
    "FORCE_COLOR",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LINES",
    "LOGNAME",
    "NO_COLOR",
    "PAGER",
    "PATH",
    "PWD",
    "SHELL",
    "SHLVL",
    "SOURCE_DATE_EPOCH",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "TZDIR",
    "USER",
    "VISUAL",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    // Certificates.
    "CURL_CA_BUNDLE",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    // Git.
    "GIT_AUTHOR_*",
    "GIT_COMMITTER_*",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXEC_PATH",
    // C and linkers.
    "AR",
    "CC",
    "CFLAGS",
    "CMAKE_*",
    "CPATH",
    "CPPFLAGS",
    "CXX",
    "CXXFLAGS",
    "LDFLAGS",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "MAKEFLAGS",
    "PKG_CONFIG_*",
    // Rust.
    "CARGO_BUILD_*",
    "CARGO_HOME",
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "CARGO_PROFILE_*",
    "CARGO_TARGET_*",
    "CARGO_TERM_*",
    "NEXTEST",
    "RUSTC",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUST_BACKTRACE",
    "RUST_LOG",
    // Go, Java, .NET.
    "CGO_*",
    "DOTNET_ROOT",
    "GOARCH",
    "GOBIN",
    "GOCACHE",
    "GOFLAGS",
    "GOMODCACHE",
    "GOOS",
    "GOPATH",
    "GOPROXY",
    "GOROOT",
    "GOSUMDB",
    "GOTOOLCHAIN",
    "GRADLE_USER_HOME",
    "JAVA_HOME",
    // JavaScript.
    "BUN_INSTALL",
    "COREPACK_*",
    "DENO_DIR",
    "FNM_*",
    "NODE_ENV",
    "NODE_PATH",
    "NVM_*",
    "PNPM_HOME",
    "VOLTA_HOME",
    "npm_config_cache",
    "npm_config_offline",
    "npm_config_prefix",
    "npm_config_userconfig",
    // Python, Ruby, Nix.
    "CONDA_*",
    "GEM_HOME",
    "GEM_PATH",
    "NIX_PATH",
    "PIP_CACHE_DIR",
    "PIP_NO_INDEX",
    "PRE_COMMIT_HOME",
    "PYENV_*",
    "PYTHON*",
    "PYTEST_ADDOPTS",
    "RBENV_ROOT",
    "UV_CACHE_DIR",
    "UV_OFFLINE",
    "VIRTUAL_ENV",
];

/// The variables of this process that are removed: those that neither [`PASSED`] nor `more` names.
pub(super) fn list_removed_variables<'p>(more: impl Iterator<Item = &'p str> + Clone) -> Vec<OsString> {
    let names = env::vars_os().map(|(name, _)| name);
    let passes = |name: &OsString| {
        let name = name.to_str().unwrap_or_default();
        PASSED.iter().any(|pattern| matches_passed_pattern(pattern, name))
            // The user and the agent may want keys.
            || more.clone().any(|pattern| matches_name_pattern(pattern, name))
    };
    names.filter(|name| !passes(name)).collect()
}

/// Whether a pattern of [`PASSED`] covers a name. A beginning says nothing about keys, so it covers none.
fn matches_passed_pattern(pattern: &str, name: &str) -> bool {
    matches_name_pattern(pattern, name) && !(pattern.ends_with('*') && cuegate_provider::is_secret_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_passed_on() {
        let passes = |name: &str| PASSED.iter().any(|pattern| matches_passed_pattern(pattern, name));
        for name in ["PATH", "LC_ALL", "GOPATH", "CARGO_TARGET_DIR", "PYTHONPATH", "RUST_BACKTRACE"] {
            assert!(passes(name), "{name}");
        }
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "ANTHROPIC_API_KEY",
            "CARGO_REGISTRY_TOKEN",
            "CARGO_REGISTRIES_OWN_TOKEN",
            "COREPACK_NPM_TOKEN",
            "CUEGATE_FOO_TOKEN",
            "NVM_AUTH_HEADER",
            "DATABASE_URL",
            "GITHUB_TOKEN",
            "GH_TOKEN",
            "NODE_AUTH_TOKEN",
            "NPM_TOKEN",
            "SSH_AUTH_SOCK",
            "DBUS_SESSION_BUS_ADDRESS",
            "GOOGLE_API_KEY",
        ] {
            assert!(!passes(name), "{name}");
        }
    }
}
