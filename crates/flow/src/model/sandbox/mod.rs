//! The sandbox that a definition wants around what its agents start. The operating system holds it.

mod host;
mod trusted;

pub use host::{Host, NoHost};
pub use trusted::TRUSTED;

use crate::Str;

/// What can be reached from behind a sandbox, besides reading files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// Whom they may reach, besides the service of the agent itself.
    pub network: Network,
    /// What may be written, besides the working tree: paths as the definition has them.
    pub writable: Vec<Str>,
}

/// Whom those behind a sandbox may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// Nobody.
    None,
    /// The hosts of [`TRUSTED`] and these.
    Trusted(Vec<Host>),
    /// These only.
    Custom(Vec<Host>),
}

impl Network {
    /// All hosts.
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

    /// In words, for the start of a run.
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
    fn every_built_in_host_is_one_and_stands_once() {
        let hosts = Network::Trusted(Vec::new()).hosts();
        assert_eq!(hosts.len(), TRUSTED.len());
        for (index, host) in hosts.iter().enumerate() {
            assert!(!hosts[..index].contains(host), "{host} stands twice");
        }
    }

    /// The list is one that people decide by.
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
    fn what_is_named_comes_on_top_of_what_is_built_in_or_in_its_place() {
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
