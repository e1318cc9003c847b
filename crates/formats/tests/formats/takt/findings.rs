//! Findings about pieces. Each case changes the sound piece, which has no findings.

use crate::support::{Project, findings_of};
use crate::takt::takt_support::{FILE, broken, changed, load, sound};

#[test]
fn the_sound_piece_has_no_findings() {
    assert_eq!(broken(&[]), "");
    assert_eq!(findings_of(load(&sound(), |options| options.interactive = true)), "");
}

#[test]
fn no_members_and_no_rules() {
    let members = |files: Project| {
        let text = String::from_utf8(files[FILE].clone()).unwrap();
        let (before, rest) = text.split_once("    parallel:\n").unwrap();
        let after = &rest[rest.find("    rules:\n      - condition: all").unwrap()..];
        let text = format!("{before}    parallel: []\n{after}");
        findings_of(load(
            &Project::from_iter(files.into_iter().chain([(FILE.to_owned(), text.into_bytes())])),
            |_| {},
        ))
    };
    insta::assert_snapshot!(members(sound()), @"sound.yaml:67:15 error[invalid-value]: `parallel` has no members");
}

#[test]
fn files() {
    let text = String::from_utf8(sound()[FILE].clone()).unwrap();
    let with = |bytes: Vec<u8>| {
        let mut files = sound();
        files.insert(FILE.to_owned(), bytes);
        findings_of(load(&files, |_| {}))
    };
    assert_eq!(
        with(format!("\u{feff}{}", text.replace('\n', "\r\n")).into_bytes()),
        "",
        "marks and line ends"
    );
    let cases = [
        ("a tab", text.replace("  - name: plan", "\t- name: plan")),
        ("two documents", format!("{text}---\na: 1\n")),
        ("no mapping", "- a\n".to_owned()),
        ("nothing", String::new()),
        ("deep", format!("a: {}{}\n", "[".repeat(70), "]".repeat(70))),
    ];
    let mut found = String::new();
    for (name, text) in cases {
        found.push_str(&format!("# {name}\n{}", with(text.into_bytes())));
    }
    found.push_str(&format!("# not UTF-8\n{}", with(b"name: \xff\n".to_vec())));
    found.push_str(&format!("# too large\n{}", with(vec![b'#'; (16 << 20) + 1])));
    found.push_str(&format!("# not there\n{}", findings_of(load(&Project::new(), |_| {}))));
    insta::assert_snapshot!(found, @"
    # a tab
    sound.yaml:18:1 error[invalid-yaml]: a tab indents this line
    # two documents
    sound.yaml:101:1 error[invalid-yaml]: there is another document after `---`
    # no mapping
    sound.yaml:1:1 error[wrong-type]: the workflow must be an object, not a list
    # nothing
    sound.yaml:1:1 error[invalid-yaml]: the file is empty
    # deep
    sound.yaml:1:67 error[too-deep]: the nesting is deeper than 64 levels
    # not UTF-8
    sound.yaml:1:7 error[unreadable-file]: `.takt/pieces/sound.yaml` is not UTF-8 from here on
    # too large
    sound.yaml:1:1 error[unreadable-file]: `.takt/pieces/sound.yaml` is larger than 16 MiB
    # not there
    sound.yaml:1:1 error[unreadable-file]: there is no `.takt/pieces/sound.yaml`
    ");
}

#[test]
fn aliases_are_expanded() {
    let edits = [
        (
            "        rules:\n          - condition: approved\n          - condition: needs_fix\n      - name",
            "        rules: &verdicts\n          - condition: approved\n          - condition: needs_fix\n      - name",
        ),
        (
            "        rules:\n          - condition: approved\n          - condition: needs_fix\n    rules",
            "        rules: *verdicts\n    rules",
        ),
    ];
    assert_eq!(broken(&edits), "");
    let draft = load(&changed(&edits), |_| {}).draft;
    assert_eq!(
        crate::takt::takt_support::structure(&draft).lines().count(),
        crate::takt::takt_support::structure(&load(&sound(), |_| {}).draft).lines().count()
    );
}
