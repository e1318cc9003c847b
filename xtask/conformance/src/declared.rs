//! Reads the declared deviations.

use std::collections::BTreeMap;

/// The heading of the deviation for each case id.
pub(super) type Declared = BTreeMap<String, String>;

/// Reads the declarations: lines `- cases: NAME, NAME` under each heading.
pub(super) fn read(document: &str) -> Result<Declared, String> {
    let mut declared = Declared::new();
    let mut heading = "";
    for line in document.lines() {
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim();
        }
        let Some(names) = line.strip_prefix("- cases:") else { continue };
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let name = name.trim_matches('`').to_owned();
            if let Some(earlier) = declared.insert(name.clone(), heading.to_owned()) {
                return Err(format!("`{name}` is declared under “{earlier}” and again under “{heading}”"));
            }
        }
    }
    Ok(declared)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn cases_belong_to_the_heading_above() {
        let declared = read("# All\ntext\n## One\n- cases: a#1, b#2\n\n## Two\n- cases: `a#3`\n").unwrap();
        let pairs: Vec<_> = declared.iter().map(|(case, under)| (case.as_str(), under.as_str())).collect();
        assert_eq!(pairs, [("a#1", "One"), ("a#3", "Two"), ("b#2", "One")]);
    }

    #[test]
    fn a_case_is_declared_once() {
        let problem = read("## One\n- cases: a#1\n## Two\n- cases: a#1\n").unwrap_err();
        assert_eq!(problem, "`a#1` is declared under “One” and again under “Two”");
    }

    /// Every deviation cites its decision: a section of a document, or a rule that the page lists.
    #[test]
    fn every_deviation_cites_its_authority() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/internals/deviations.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (_, after) = page.split_once("## Decisions of this project").unwrap();
        let rules: Vec<&str> = after
            .lines()
            .take_while(|line| !line.starts_with("## "))
            .filter_map(|line| {
                Some(line.strip_prefix("- **")?.split_once("**")?.0.trim_end_matches(['.', ',']))
            })
            .collect();
        assert!(rules.len() > 5, "{rules:?}");
        let documents = ["14.", "runner reference", "Step Flow Design"];
        for section in page.split("\n## ").filter(|section| section.contains("\n- cases:")) {
            let heading = section.lines().next().unwrap();
            let (_, decision) =
                section.split_once("\nDecision: ").unwrap_or_else(|| panic!("{heading}: no decision"));
            let decision = decision.split("\n\n").next().unwrap().replace('\n', " ");
            let cites = documents.iter().chain(&rules).any(|authority| decision.contains(authority));
            assert!(cites, "{heading}: {decision}");
        }
    }
}
