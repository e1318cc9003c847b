//! Detects report names that collide as files.

use std::collections::HashMap;

/// An index of file names, to find names that cannot coexist.
#[derive(Default)]
pub(crate) struct FileNames {
    /// The number of the first use of each name.
    files: HashMap<String, usize>,
    /// The number of the first file below each folder.
    folders: HashMap<String, usize>,
}

impl FileNames {
    /// Adds a name; numbers must ascend.
    pub(crate) fn add(&mut self, name: &str, number: usize) {
        self.files.entry(name.to_owned()).or_insert(number);
        for folder in parent_folders_of_file(name) {
            self.folders.entry(folder.to_owned()).or_insert(number);
        }
    }

    /// The first name that cannot coexist with this one: the same name, a folder above it, or a file below it.
    pub(crate) fn clash(&self, name: &str) -> Option<usize> {
        let above = parent_folders_of_file(name).filter_map(|folder| self.files.get(folder));
        above.chain(self.files.get(name)).chain(self.folders.get(name)).min().copied()
    }

    /// As [`Self::clash`], but ignores the same name.
    pub(crate) fn clash_of_others(&self, name: &str) -> Option<usize> {
        let above = parent_folders_of_file(name).filter_map(|folder| self.files.get(folder));
        above.chain(self.folders.get(name)).min().copied()
    }
}

/// The folders above a file.
fn parent_folders_of_file(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').map(|(at, _)| &name[..at])
}

/// As [`FileNames`] on a case-insensitive file system, such as those of macOS and Windows: finds names that collide
/// only there.
#[derive(Default)]
pub(crate) struct CaselessNames {
    /// Keyed in lower case: each spelling with the number of its first use.
    files: HashMap<String, Vec<(String, usize)>>,
    /// The same for the folders above them.
    folders: HashMap<String, Vec<(String, usize)>>,
}

impl CaselessNames {
    /// Adds a name; numbers must ascend.
    pub(crate) fn add(&mut self, name: &str, number: usize) {
        record_spelling(&mut self.files, name, number);
        parent_folders_of_file(name).for_each(|folder| record_spelling(&mut self.folders, folder, number));
    }

    /// The first name that collides with this one only on a case-insensitive file system.
    pub(crate) fn clash_but_for_case(&self, name: &str) -> Option<usize> {
        let above =
            parent_folders_of_file(name).filter_map(|folder| find_other_spelling(&self.files, folder));
        let rest = [find_other_spelling(&self.files, name), find_other_spelling(&self.folders, name)];
        above.chain(rest.into_iter().flatten()).min()
    }
}

fn record_spelling(known: &mut HashMap<String, Vec<(String, usize)>>, name: &str, number: usize) {
    let spelled = known.entry(name.to_lowercase()).or_default();
    if !spelled.iter().any(|(known, _)| known == name) {
        spelled.push((name.to_owned(), number));
    }
}

/// The first use with another spelling.
fn find_other_spelling(known: &HashMap<String, Vec<(String, usize)>>, name: &str) -> Option<usize> {
    let others = known.get(&name.to_lowercase())?.iter().filter(|(known, _)| known != name);
    others.map(|(_, number)| *number).min()
}

#[cfg(test)]
mod tests {
    use super::{CaselessNames, FileNames};

    /// Whether two names cannot coexist as files of one folder.
    fn clash(a: &str, b: &str) -> bool {
        let below = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
        a == b || below(a, b) || below(b, a)
    }

    fn clash_but_for_case(a: &str, b: &str) -> bool {
        !clash(a, b) && clash(&a.to_lowercase(), &b.to_lowercase())
    }

    #[test]
    fn the_first_that_clashes_is_found() {
        assert!(clash("a", "a") && clash("a", "a/b") && clash("a/b/c", "a/b"));
        assert!(!clash("a", "ab") && !clash("a/b", "a/c"));
        assert!(clash_but_for_case("a.md", "A.md") && clash_but_for_case("Ä", "ä/b"));
        assert!(!clash_but_for_case("a.md", "a.md") && !clash_but_for_case("A/b", "a/c"));
        let names =
            ["a/b", "A/b", "a", "x/y/z", "X", "x/Y", "ab", "Ä", "ä/b", "a/B/c", "a//b", "A", "a/b/c", "x"];
        for length in 0..=names.len() {
            let (mut files, mut caseless) = (FileNames::default(), CaselessNames::default());
            for (at, name) in names[..length].iter().enumerate() {
                files.add(name, at);
                caseless.add(name, at);
            }
            let first = |is: &dyn Fn(&str) -> bool| names[..length].iter().position(|known| is(known));
            for name in names {
                assert_eq!(files.clash(name), first(&|known| clash(known, name)), "{name}");
                let others = first(&|known| known != name && clash(known, name));
                assert_eq!(files.clash_of_others(name), others, "{name}");
                let but_for_case = first(&|known| clash_but_for_case(known, name));
                assert_eq!(caseless.clash_but_for_case(name), but_for_case, "{name}");
            }
        }
    }

    #[test]
    fn many_names_are_compared_at_once() {
        // An exhaustive comparison of pairs would take billions of steps.
        let (mut files, mut caseless) = (FileNames::default(), CaselessNames::default());
        for at in 0..60_000 {
            let name = format!("reports/{at}.md");
            assert!(files.clash(&name).or(caseless.clash_but_for_case(&name)).is_none());
            files.add(&name, at);
            caseless.add(&name, at);
        }
        assert_eq!((files.clash("reports/7.md"), files.clash("reports")), (Some(7), Some(0)));
        assert_eq!(caseless.clash_but_for_case("REPORTS/7.md"), Some(7));
    }
}
