//! Reads the sandbox that an agent requests: the runner reference's table of `boundaries.sandbox`.

use cuegate_flow::{
    Str,
    model::sandbox::{Host, Network, SandboxPolicy, SandboxRule},
};

use crate::values::json::{Fields, Text};

/// Reads the sandbox that the run requires, or that it is disabled.
///
/// Errors in a disabled sandbox are still reported, because it may be enabled later.
pub(crate) fn read_sandbox(sandbox: Fields<'_, '_>) -> SandboxRule {
    let written = sandbox.boolean("enabled");
    let enabled = written.is_none_or(|(enabled, _)| enabled);
    let network = match sandbox.object("network") {
        Some(network) => read_network(network),
        None => Network::Trusted(Vec::new()),
    };
    let mut writable = Vec::new();
    if let Some(filesystem) = sandbox.object("filesystem") {
        writable = read_paths(&filesystem);
        filesystem.finish();
    }
    read_holes(&sandbox);
    sandbox.switched_off(written);
    sandbox.finish();
    if enabled { SandboxRule::Required(SandboxPolicy { network, writable }) } else { SandboxRule::Off }
}

fn read_network(network: Fields<'_, '_>) -> Network {
    let mode = network.one_of("mode", &["trusted", "none", "custom"]).map(|(mode, _)| mode);
    let domains = network.texts("trustedDomains");
    let hosts = domains.iter().flatten().filter_map(|domain| read_host(domain, &network)).collect();
    let read = match mode {
        Some("none") => {
            network.stray("trustedDomains", "`none` reaches no host; remove them, or say `custom`");
            Network::None
        }
        Some("custom") => {
            if domains.is_none() {
                let hint = "list them, or say `none`";
                network.inert(network.opening(), "`custom` without `trustedDomains` reaches no host", hint);
            }
            Network::Custom(hosts)
        }
        // An unknown mode is an error anyway.
        _ => Network::Trusted(hosts),
    };
    network.finish();
    read
}

fn read_host(domain: &Text<'_>, network: &Fields<'_, '_>) -> Option<Host> {
    match Host::parse(domain.text) {
        Ok(host) => Some(host),
        Err(why) => {
            let message = format!("`{}` is not a host of `trustedDomains`: {why}", domain.text);
            network.invalid(
                domain.span,
                message,
                "write it like `example.com`, `*.example.com` or `example.com:8443`",
            );
            None
        }
    }
}

fn read_paths(filesystem: &Fields<'_, '_>) -> Vec<Str> {
    let paths = filesystem.texts("allowedPaths").unwrap_or_default();
    let named = paths.into_iter().filter_map(|path| {
        let wrong = if path.text.trim().is_empty() {
            "an empty path names nothing"
        } else if path.text.contains('\0') {
            "no path has a zero byte in it"
        } else if path.text.contains(['*', '?']) {
            "a path of `allowedPaths` is a file or a folder with all that is in it, and no pattern"
        } else if path.text.starts_with('~') && path.text != "~" && !path.text.starts_with("~/") {
            "only your own home can be named by `~`"
        } else {
            return Some(path.text.into());
        };
        filesystem.invalid(path.span, wrong, "write a path such as `out`, `../cache` or `~/.cargo/registry`");
        None
    });
    named.collect()
}

/// Reports settings that would open the sandbox. Cuegate ignores them: commands that rely on them fail, and the sandbox
/// stays closed.
fn read_holes(sandbox: &Fields<'_, '_>) {
    if sandbox.texts("excludedCommands").is_some_and(|commands| !commands.is_empty()) {
        sandbox.stray(
            "excludedCommands",
            "every command stays behind the sandbox; allow the hosts and paths that it needs",
        );
    }
    if let Some((true, span)) = sandbox.boolean("allowUnsandboxedCommands") {
        let message = "`allowUnsandboxedCommands` has no effect: every command stays behind the sandbox";
        sandbox.inert(span, message, "remove it, and allow the hosts and paths that are needed");
    }
}
