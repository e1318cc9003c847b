//! The sandbox that a definition requires for its agents. The operating system enforces it.

mod host;
mod trusted;

pub use host::{Host, InvalidHost};
pub use trusted::TRUSTED;

use crate::Str;

/// What a definition says about the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SandboxRule {
    /// Nothing: runs use a sandbox if this machine can create one.
    #[default]
    Unstated,
    /// Runs use none.
    Off,
    /// Runs must use this one.
    Required(SandboxPolicy),
}

impl SandboxRule {
    /// The required sandbox.
    pub fn required(&self) -> Option<&SandboxPolicy> {
        match self {
            SandboxRule::Required(policy) => Some(policy),
            SandboxRule::Unstated | SandboxRule::Off => None,
        }
    }

    /// The sandbox of runs, if they use one: without a rule, the working tree is writable and the package registries
    /// are reachable.
    pub fn policy(&self) -> Option<SandboxPolicy> {
        match self {
            SandboxRule::Unstated => {
                Some(SandboxPolicy { network: Network::Trusted(Vec::new()), writable: Vec::new() })
            }
            SandboxRule::Off => None,
            SandboxRule::Required(policy) => Some(policy.clone()),
        }
    }
}

/// What a sandboxed process may access, besides reading files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// The allowed hosts, besides the service of the agent itself.
    pub network: Network,
    /// The writable paths besides the working tree, as the definition writes them.
    pub writable: Vec<Str>,
}

/// The hosts that a sandboxed process may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    None,
    /// The hosts of [`TRUSTED`] and these.
    Trusted(Vec<Host>),
    /// These only.
    Custom(Vec<Host>),
}

impl Network {
    /// All allowed hosts.
    pub fn hosts(&self) -> Vec<Host> {
        match self {
            Network::None => Vec::new(),
            Network::Custom(hosts) => hosts.clone(),
            Network::Trusted(hosts) => {
                let built_in = TRUSTED.iter().filter_map(|(host, _)| Host::parse(host).ok());
                built_in.chain(hosts.iter().cloned()).collect()
            }
        }
    }

    /// A description for the start of a run.
    pub fn describe(&self) -> String {
        let named = |hosts: &[Host]| hosts.iter().map(Host::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Network::None => "nothing".to_owned(),
            Network::Custom(hosts) if hosts.is_empty() => "nothing".to_owned(),
            Network::Custom(hosts) => named(hosts),
            Network::Trusted(hosts) if hosts.is_empty() => "package registries".to_owned(),
            Network::Trusted(hosts) => format!("package registries, {}", named(hosts)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trusted_host_is_valid_and_listed_once() {
        let hosts = Network::Trusted(Vec::new()).hosts();
        assert_eq!(hosts.len(), TRUSTED.len());
        for (index, host) in hosts.iter().enumerate() {
            assert!(!hosts[..index].contains(host), "{host} stands twice");
        }
    }

    /// Users decide by the list in the manual, so it must match.
    #[test]
    fn the_manual_has_the_same_list() {
        let manual = include_str!("../../../../../docs/sandbox.md");
        let list = manual.split("### The hosts that are trusted").nth(1).unwrap();
        let list = list.split("\n## ").next().unwrap();
        let rows = list.lines().filter(|line| line.starts_with("| `"));
        let told: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
        let built_in: Vec<&str> = TRUSTED.iter().map(|(host, _)| *host).collect();
        assert_eq!(told, built_in);
    }

    #[test]
    fn custom_hosts_extend_or_replace_the_trusted_hosts() {
        let named = vec![Host::parse("example.com").unwrap()];
        let reaches = |network: Network, name| network.hosts().iter().any(|host| host.covers(name, 443));
        let trusted = || Network::Trusted(named.clone());
        let custom = || Network::Custom(named.clone());
        assert!(reaches(trusted(), "example.com") && reaches(trusted(), "static.crates.io"));
        assert!(reaches(custom(), "example.com") && !reaches(custom(), "static.crates.io"));
        assert!(!reaches(Network::None, "example.com"));
        assert_eq!(trusted().describe(), "package registries, example.com");
    }
}
