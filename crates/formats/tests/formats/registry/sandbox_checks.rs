//! What is checked in `boundaries.sandbox`, and the sandbox that it becomes.

use crate::support::{DIR, Project, edit, load, sound};
use cuegate_flow::model::sandbox::{Network, SandboxPolicy, SandboxRule};

const PERMISSION: &str = "\"permissionMode\": \"acceptEdits\"";

fn with(sandbox: &str) -> Project {
    edit(&sound(), PERMISSION, &format!("{PERMISSION}, \"sandbox\": {sandbox}"))
}

fn sandbox(sandbox: &str) -> Option<SandboxPolicy> {
    load(&with(sandbox), DIR).draft.conduct.sandbox.required().cloned()
}

#[test]
fn a_sandbox_is_read() {
    assert_eq!(load(&sound(), DIR).draft.conduct.sandbox, SandboxRule::Unstated);
    let off = with("{\"enabled\": false, \"network\": {\"mode\": \"none\"}}");
    assert_eq!(load(&off, DIR).draft.conduct.sandbox, SandboxRule::Off);
    let usual = sandbox("{}").unwrap();
    assert_eq!(usual, SandboxPolicy { network: Network::Trusted(Vec::new()), writable: Vec::new() });
    assert_eq!(
        sandbox("{\"enabled\": true}").unwrap(),
        usual,
        "what is not said is as the runner reference has it"
    );
    let none = sandbox(
        "{\"network\": {\"mode\": \"none\"}, \"filesystem\": {\"allowedPaths\": [\"../x\", \"~/.cache\"]}}",
    );
    assert_eq!(
        none.unwrap(),
        SandboxPolicy { network: Network::None, writable: vec!["../x".into(), "~/.cache".into()] }
    );
    let names = "\"trustedDomains\": [\"*.GitHub.com\", \"localhost:8080\"]";
    let listed = |mode: &str| sandbox(&format!("{{\"network\": {{{mode} {names}}}}}")).unwrap().network;
    let named = |network: Network| match network {
        Network::Trusted(hosts) => ("trusted", hosts.iter().map(ToString::to_string).collect::<Vec<_>>()),
        Network::Custom(hosts) => ("custom", hosts.iter().map(ToString::to_string).collect()),
        Network::None => ("none", Vec::new()),
    };
    let hosts = ["*.github.com".to_owned(), "localhost:8080".to_owned()].to_vec();
    assert_eq!(named(listed("")), ("trusted", hosts.clone()));
    assert_eq!(named(listed("\"mode\": \"custom\",")), ("custom", hosts));
}
