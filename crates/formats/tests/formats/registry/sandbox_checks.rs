//! What is checked in `boundaries.sandbox`, and the sandbox that it becomes.

use crate::support::{DIR, Project, edit, load, sound, table};
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

#[test]
fn what_is_wrong_in_a_sandbox_is_told() {
    let cases: [(&str, String); 13] = [
        ("wrong type", "true"),
        ("unknown key", "{\"newtork\": {}}"),
        ("unknown mode", "{\"network\": {\"mode\": \"nine\"}}"),
        ("page", "{\"network\": {\"trustedDomains\": [\"https://github.com\"]}}"),
        ("star in the middle", "{\"network\": {\"trustedDomains\": [\"api.*.com\", \"*\"]}}"),
        ("twice", "{\"network\": {\"trustedDomains\": [\"a.com\", \"a.com\"]}}"),
        ("none with domains", "{\"network\": {\"mode\": \"none\", \"trustedDomains\": [\"a.com\"]}}"),
        ("custom without", "{\"network\": {\"mode\": \"custom\"}}"),
        ("paths", "{\"filesystem\": {\"allowedPaths\": [\"\", \"*.txt\", \"~you/x\"]}}"),
        ("excluded commands", "{\"excludedCommands\": [\"git push\"]}"),
        ("no excluded commands", "{\"excludedCommands\": []}"),
        ("commands outside", "{\"allowUnsandboxedCommands\": true}"),
        ("no commands outside", "{\"allowUnsandboxedCommands\": false}"),
    ]
    .map(|(name, sandbox)| (name, format!("{PERMISSION}, \"sandbox\": {sandbox}")));
    let edits: Vec<(&str, [(&str, &str); 1])> =
        cases.iter().map(|(name, to)| (*name, [(PERMISSION, to.as_str())])).collect();
    let rows: Vec<(&str, &[(&str, &str)])> = edits.iter().map(|(name, edit)| (*name, &edit[..])).collect();
    insta::assert_snapshot!(table(&rows), @"
    # wrong type
    agent.json:17:88 error[wrong-type]: `runner.boundaries.sandbox` must be an object, not `true` or `false`
    # unknown key
    agent.json:17:89 error[unknown-key]: unknown key `newtork` in `runner.boundaries.sandbox`
    # unknown mode
    agent.json:17:109 error[invalid-value]: `nine` is no `mode`
    # page
    agent.json:17:120 error[invalid-value]: `https://github.com` is no host of `trustedDomains`: it is an address of a page: a host has no `https://` and no path
    # star in the middle
    agent.json:17:120 error[invalid-value]: `api.*.com` is no host of `trustedDomains`: a `*` stands for whole names at the beginning only, as in `*.example.com`
    agent.json:17:133 error[invalid-value]: `*` is no host of `trustedDomains`: a `*` stands for whole names at the beginning only, as in `*.example.com`
    # twice
    agent.json:17:129 warning[duplicate-item]: `a.com` is listed twice in `trustedDomains`
    # none with domains
    agent.json:17:117 warning[unused-key]: `trustedDomains` has no effect in `runner.boundaries.sandbox.network`
    # custom without
    agent.json:17:100 warning[unused-key]: `custom` without `trustedDomains` reaches no host
    # paths
    agent.json:17:121 error[invalid-value]: an empty path names nothing
    agent.json:17:125 error[invalid-value]: a path of `allowedPaths` is a file or a folder with all that is in it, and no pattern
    agent.json:17:134 error[invalid-value]: only your own home can be named by `~`
    # excluded commands
    agent.json:17:89 warning[unused-key]: `excludedCommands` has no effect in `runner.boundaries.sandbox`
    # no excluded commands
    nothing
    # commands outside
    agent.json:17:117 warning[unused-key]: `allowUnsandboxedCommands` has no effect: every command stays behind the sandbox
    # no commands outside
    nothing
    ");
}
