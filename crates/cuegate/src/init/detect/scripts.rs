//! The `test` script of JSON manifests.

use serde_json::Value;

use super::{DetectedCommand, root::DetectionFolder};

/// `package.json`, run by the project's package manager.
pub(super) fn package_json(root: &DetectionFolder) -> Option<DetectedCommand> {
    let manifest: Value = serde_json::from_str(&root.text("package.json")?).ok()?;
    let script = manifest["scripts"]["test"].as_str()?;
    // The default script of `npm init` only fails.
    if script.trim().is_empty() || script.contains("no test specified") {
        return None;
    }
    let mut command = match package_manager(root, &manifest) {
        "bun" => "bun run test".to_owned(),
        other => format!("{other} test"),
    };
    // Without `CI=true`, react-scripts watches for changes and never exits.
    if script.contains("react-scripts test") && !script.contains("CI=") {
        command = format!("CI=true {command}");
    }
    Some(DetectedCommand::new(command, "script `test` of package.json"))
}

/// The package manager that the manifest declares, or that has a lock file here or above.
pub(super) fn package_manager(root: &DetectionFolder, manifest: &Value) -> &'static str {
    const KNOWN: [&str; 4] = ["pnpm", "yarn", "bun", "npm"];
    let declared = manifest["packageManager"].as_str().and_then(|text| text.split('@').next());
    if let Some(known) = KNOWN.into_iter().find(|known| declared == Some(known)) {
        return known;
    }
    let locks =
        [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun")];
    locks.into_iter().find(|(lock, _)| root.lock(lock)).map_or("npm", |(_, manager)| manager)
}

/// `deno.json` with a task.
pub(super) fn deno_task(root: &DetectionFolder) -> Option<DetectedCommand> {
    let file = root.first(&["deno.json", "deno.jsonc"])?;
    let manifest: Value = serde_json::from_str(&without_comments(&root.text(file)?)).ok()?;
    let task = &manifest["tasks"]["test"];
    (task.is_string() || task["command"].is_string())
        .then(|| DetectedCommand::new("deno task test", format!("task `test` of {file}")))
}

/// `composer.json` with a script, which may be one command or several.
pub(super) fn composer_script(root: &DetectionFolder) -> Option<DetectedCommand> {
    let manifest: Value = serde_json::from_str(&root.text("composer.json")?).ok()?;
    let script = &manifest["scripts"]["test"];
    (script.is_string() || script.is_array())
        .then(|| DetectedCommand::new("composer test", "script `test` of composer.json"))
}

/// JSON without comments and without commas before a closing bracket.
pub(super) fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => string_length(rest),
            '/' if rest.starts_with("//") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '/' if rest.starts_with("/*") => {
                rest = rest[2..].find("*/").map_or("", |end| &rest[end + 4..]);
                continue;
            }
            '}' | ']' => {
                let kept = plain.trim_end().trim_end_matches(',').len();
                plain.truncate(kept);
                1
            }
            other => other.len_utf8(),
        };
        plain.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    plain
}

/// The length in bytes of the JSON string at the start of `text`, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
