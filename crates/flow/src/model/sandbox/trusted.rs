/// The trusted hosts, each with its reason. They distribute packages and toolchains to everyone.
///
/// Code hosts such as GitHub are not trusted: with the user's login, a process could push, publish and act on issues
/// there. `crates.io` is not trusted either: it accepts uploads, and builds need only its index and its files.
pub const TRUSTED: &[(&str, &str)] = &[
    ("index.crates.io", "the index of Rust's packages"),
    ("static.crates.io", "the files of Rust's packages"),
    ("static.rust-lang.org", "Rust's toolchains"),
    ("registry.npmjs.org", "packages of Node.js"),
    ("nodejs.org", "headers that packages of Node.js are built with"),
    ("npm.jsr.io", "packages of JSR, for npm"),
    ("jsr.io", "packages of JSR"),
    ("deno.land", "modules of Deno"),
    ("pypi.org", "the index of Python's packages"),
    ("files.pythonhosted.org", "the files of Python's packages"),
    ("proxy.golang.org", "modules of Go"),
    ("sum.golang.org", "checksums of Go's modules"),
    ("repo.maven.apache.org", "packages of Java"),
    ("repo1.maven.org", "packages of Java"),
    ("plugins.gradle.org", "plugins of Gradle"),
    ("services.gradle.org", "Gradle itself, for its wrapper"),
    ("index.rubygems.org", "the index of Ruby's packages"),
    ("rubygems.org", "the files of Ruby's packages"),
    ("api.nuget.org", "packages of .NET"),
    ("repo.hex.pm", "packages of Erlang and Elixir"),
];
