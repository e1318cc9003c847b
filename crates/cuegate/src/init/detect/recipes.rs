//! Test targets of makefiles and recipes of justfiles.

use super::{DetectedCommand, root::DetectionFolder};

pub(super) fn make_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    detect_make_target(root, "test")
}

pub(super) fn make_check(root: &DetectionFolder) -> Option<DetectedCommand> {
    detect_make_target(root, "check")
}

fn detect_make_target(root: &DetectionFolder, target: &str) -> Option<DetectedCommand> {
    let (file, text) = read_makefile(root)?;
    has_target(&text, target)
        .then(|| DetectedCommand::new(format!("make {target}"), format!("target `{target}` of {file}")))
}

/// The name and text of the makefile.
pub(super) fn read_makefile(root: &DetectionFolder) -> Option<(&'static str, String)> {
    // Make reads the first of these that exists.
    let file = root.first(&["GNUmakefile", "makefile", "Makefile"])?;
    Some((file, root.text(file)?))
}

/// Whether a makefile has a rule for a target. Included files and computed names are ignored.
pub(super) fn has_target(text: &str, target: &str) -> bool {
    let mut defining = false;
    let mut continued = false;
    text.lines().any(|line| {
        let begins = !std::mem::replace(&mut continued, line.ends_with('\\'));
        let first = line.split_whitespace().next().unwrap_or_default();
        // A line in a `define` is not a rule.
        if defining || first == "define" {
            defining = first != "endef";
            return false;
        }
        // Recipes begin with a tab.
        if !begins || line.starts_with('\t') {
            return false;
        }
        let line = line.split('#').next().unwrap_or_default();
        let Some((targets, rest)) = line.split_once(':') else { return false };
        // `test ?= a:b` defines a variable.
        if targets.contains('=') || !targets.split_whitespace().any(|word| word == target) {
            return false;
        }
        // So does `test := x`; and `test: x = y` sets a variable of a rule defined elsewhere.
        let rest = rest.trim_start_matches(':');
        let prerequisites = rest.split(';').next().unwrap_or_default();
        !prerequisites.contains('=')
    })
}

pub(super) fn just_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    let (file, text) = read_justfile(root)?;
    has_recipe(&text, "test").then(|| DetectedCommand::new("just test", format!("recipe `test` of {file}")))
}

/// The name and text of the justfile.
pub(super) fn read_justfile(root: &DetectionFolder) -> Option<(&str, String)> {
    let is_justfile = |name: &&String| {
        let name = name.to_ascii_lowercase();
        name == "justfile" || name == ".justfile"
    };
    let file = root.names().iter().find(is_justfile)?;
    Some((file, root.text(file)?))
}

/// Whether a justfile has this recipe or alias, without required arguments.
pub(super) fn has_recipe(text: &str, recipe: &str) -> bool {
    text.lines().any(|line| {
        if let Some(alias) = line.strip_prefix("alias ") {
            return alias.split_once(":=").is_some_and(|(name, _)| name.trim() == recipe);
        }
        let Some(rest) = line.trim_start_matches('@').strip_prefix(recipe) else { return false };
        // `test-all:` is another recipe.
        if !rest.starts_with([' ', '\t', ':']) {
            return false;
        }
        for word in rest.split_whitespace() {
            match word.split_once(':') {
                // `test := x` defines a variable.
                Some((last, after)) => return !after.starts_with('=') && is_optional_parameter(last),
                None if is_optional_parameter(word) => {}
                None => return false,
            }
        }
        false
    })
}

/// Whether a parameter is optional: it has a default, or is variadic.
fn is_optional_parameter(parameter: &str) -> bool {
    parameter.is_empty() || parameter.starts_with('*') || parameter.contains('=')
}
