//! Marks changed files that other tools run or obey without being asked.

/// The tools and their files: a name anywhere, or a path from a folder on with `/`. A `*` at the end covers all that
/// begins so.
const TOOLS: [(&str, &[&str]); 20] = [
    ("VS Code", &[".vscode/tasks.json", ".vscode/settings.json", ".vscode/launch.json", ".code-workspace"]),
    ("JetBrains IDEs", &[".idea/*", ".run/*"]),
    ("Claude Code", &[".claude/*", "CLAUDE.md", ".mcp.json"]),
    ("Codex", &[".codex/*", "AGENTS.md"]),
    ("Gemini CLI", &[".gemini/*", "GEMINI.md"]),
    ("Cursor", &[".cursor/*", ".cursorrules"]),
    ("GitHub Copilot", &[".github/copilot-instructions.md", ".github/hooks/*"]),
    ("Cuegate", &["cuegate.toml", ".agent/*", ".takt/*"]),
    ("direnv", &[".envrc"]),
    ("a version manager", &[".tool-versions", "mise.toml", ".mise.toml", ".mise/*", "rust-toolchain.toml"]),
    (
        "hooks of git",
        &[".husky/*", ".githooks/*", "lefthook.yml", ".lefthook.yml", ".pre-commit-config.yaml"],
    ),
    ("git", &[".gitmodules", ".gitattributes", ".lfsconfig"]),
    ("dev containers", &[".devcontainer/*", ".devcontainer.json"]),
    ("GitHub Actions", &[".github/workflows/*", ".github/actions/*", "action.yml", "action.yaml"]),
    ("GitLab CI", &[".gitlab-ci.yml", ".gitlab/ci/*"]),
    ("CircleCI", &[".circleci/*"]),
    (
        "a CI service",
        &[
            "Jenkinsfile",
            "azure-pipelines.yml",
            "bitbucket-pipelines.yml",
            ".travis.yml",
            ".drone.yml",
            ".woodpecker.yml",
            ".woodpecker/*",
            ".buildkite/*",
        ],
    ),
    ("Cargo", &[".cargo/config.toml", ".cargo/config"]),
    ("a package manager", &[".npmrc", ".yarnrc.yml", ".yarnrc", ".pnpmfile.cjs", "pip.conf"]),
    ("Vim", &[".exrc", ".nvimrc", ".nvim.lua", ".vimrc"]),
];

/// The tool that runs or obeys a changed file by itself. `path` is relative to the top of the working tree.
pub fn obeyed_by(path: &str) -> Option<&'static str> {
    let is_covered = |pattern: &str| {
        let starts = path.match_indices('/').map(|(at, _)| at + 1).chain([0]);
        starts.into_iter().any(|start| match pattern.strip_suffix('*') {
            Some(folder) => path[start..].starts_with(folder),
            None => &path[start..] == pattern || pattern.starts_with('.') && is_ending(path, pattern),
        })
    };
    TOOLS
        .iter()
        .find(|(_, patterns)| patterns.iter().any(|pattern| is_covered(pattern)))
        .map(|(tool, _)| *tool)
}

/// Whether a pattern is the ending of names, such as that of a workspace file.
fn is_ending(path: &str, pattern: &str) -> bool {
    pattern == ".code-workspace" && path.ends_with(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_tools_are_marked_wherever_they_are() {
        for (path, by) in [
            (".vscode/tasks.json", "VS Code"),
            ("sub/.vscode/settings.json", "VS Code"),
            ("my.code-workspace", "VS Code"),
            (".claude/settings.json", "Claude Code"),
            (".claude/hooks/x.sh", "Claude Code"),
            (".mcp.json", "Claude Code"),
            (".envrc", "direnv"),
            ("a/b/.envrc", "direnv"),
            (".husky/pre-commit", "hooks of git"),
            (".devcontainer/devcontainer.json", "dev containers"),
            (".github/workflows/ci.yml", "GitHub Actions"),
            ("cuegate.toml", "Cuegate"),
        ] {
            assert_eq!(obeyed_by(path), Some(by), "{path}");
        }
        for path in [
            "src/main.rs",
            ".vscode/snippets.json",
            "docs/envrc",
            "my.envrc",
            "husky/x",
            ".github/CODEOWNERS",
        ] {
            assert_eq!(obeyed_by(path), None, "{path}");
        }
    }
}
