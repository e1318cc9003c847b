//! Folders beside each other that import each other: neither can be read, tested or moved without the other.

use std::collections::BTreeSet;

use super::source::SourceFile;

/// The pairs of folders in one folder of a crate that import each other.
pub(super) fn find_two_way(files: &[(String, SourceFile)]) -> Vec<String> {
    let folders: BTreeSet<Vec<String>> = files.iter().flat_map(|(path, _)| folders_of(path)).collect();
    let mut edges: BTreeSet<(Vec<String>, Vec<String>)> = BTreeSet::new();
    for (path, file) in files {
        let module = module_of(path);
        for target in file.paths.iter().filter_map(|names| resolve(&module, names)) {
            let shared = module.iter().zip(&target).take_while(|(one, other)| one == other).count();
            let (from, to) = (module.get(..=shared), target.get(..=shared));
            if let (Some(from), Some(to)) = (from, to)
                && from != to
                && folders.contains(from)
                && folders.contains(to)
            {
                edges.insert((from.to_vec(), to.to_vec()));
            }
        }
    }
    let both = edges.iter().filter(|(from, to)| from < to && edges.contains(&(to.clone(), from.clone())));
    both.map(|(from, to)| format!("{} and {}", from.join("/"), to.join("/"))).collect()
}

/// The folders that a file is in, from the outermost one.
fn folders_of(path: &str) -> Vec<Vec<String>> {
    let parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    (1..parts.len()).map(|length| parts[..length].to_vec()).collect()
}

/// The names of the module that a file is.
fn module_of(path: &str) -> Vec<String> {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut names: Vec<String> = path.split('/').map(str::to_owned).collect();
    if names.last().is_some_and(|name| matches!(name.as_str(), "mod" | "lib" | "main")) {
        names.pop();
    }
    names
}

/// The names from the top of the crate of a path in a module.
fn resolve(module: &[String], names: &[String]) -> Option<Vec<String>> {
    let mut base = module.to_vec();
    let mut rest = names;
    while let Some((first, more)) = rest.split_first() {
        match first.as_str() {
            "crate" => base.clear(),
            "super" => drop(base.pop()?),
            "self" => {}
            _ => break,
        }
        rest = more;
    }
    base.extend(rest.iter().cloned());
    Some(base)
}

#[cfg(test)]
mod tests {
    use super::find_two_way;
    use crate::figures::source::SourceFile;

    #[test]
    fn folders_that_import_each_other_are_found() {
        let files = [
            ("a/mod.rs", "use super::b::c::X;"),
            ("b/c.rs", "fn f() { crate::a::d::g(); }"),
            ("e/mod.rs", "use crate::a::Y;"),
            ("a/d.rs", "use super::mod_of_a; use super::super::b;"),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), SourceFile::parse(text).unwrap()));
        assert_eq!(find_two_way(&files), ["a and b"]);
    }
}
