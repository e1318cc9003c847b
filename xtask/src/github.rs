//! A stand-in for GitHub, to try runs on issues by hand.

use cuegate_testkit::github::GithubStandin;

/// The port, so that a `cuegate.toml` stays valid.
const PORT: u16 = 7878;

/// Serves until it is interrupted, and prints each request.
pub(crate) fn github() -> Result<(), String> {
    let github = GithubStandin::start_at("owner/name", PORT, |seen| {
        let body = if seen.body.is_null() { String::new() } else { seen.body.to_string() };
        println!("{} {} {} {body}", seen.method, seen.path, seen.status);
    });
    github.issue(1, "The greeting has no name", "`greet` should say who is greeted.", &["ready"]);
    github.issue(2, "The greeting is rude", "It should say please.", &["ready"]);
    github.issue(3, "Rewrite everything", "In another language.", &[]);
    println!("the repository owner/name with three issues; in the project of a run:");
    println!();
    println!(
        "  printf '[github]\\napi = \"{}\"\\nrepository = \"owner/name\"\\n' >> cuegate.toml",
        github.url()
    );
    println!("  GITHUB_TOKEN=any cuegate run DEFINITION --issue 1");
    println!();
    loop {
        std::thread::park();
    }
}
