use std::process::Command;

use super::*;
use crate::worktree::git::Git;

#[test]
fn settings_keep_their_values() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let git = Git::new(root);
    git.run(&["init", "--quiet"]).unwrap();
    let config = ["config", "--file", ".git/config"];
    for (name, value) in [
        ("user.name", "A \"B\" \\ C\n# D ; E"),
        ("remote.o.1.url", "https://example.com/x.git"),
        ("core.fsmonitor", "touch caught"),
    ] {
        git.run(&[&config[..], &[name, value]].concat()).unwrap();
    }
    let seen =
        |name: &str| git.run(&["config", "--get", name]).map(|value| String::from_utf8(value).unwrap());
    assert_eq!(seen("user.name").unwrap(), "A \"B\" \\ C\n# D ; E\n");
    assert_eq!(seen("remote.o.1.url").unwrap(), "https://example.com/x.git\n");
    assert_eq!(seen("core.fsmonitor").unwrap(), "false\n");
    assert!(!root.join("caught").exists());
}

/// Whatever an agent writes into a repository, its files are read or refused, and no program is started.
#[test]
fn any_metadata_is_read_or_refused() {
    use crate::worktree::Trees;
    use cuegate_testkit::fuzz::{Mutator, executions};
    let dir = tempfile::tempdir().unwrap();
    let (root, state) = (dir.path().join("tree"), dir.path().join("state"));
    let caught = dir.path().join("caught");
    let touch = format!("touch {}", caught.display());
    let embedded = root.join("embedded");
    for folder in
        [root.join("linked"), embedded.clone(), root.join(".git/info"), root.join(".git/objects/info")]
    {
        fs::create_dir_all(&folder).unwrap();
    }
    for folder in [&root, &embedded] {
        let made = Command::new("git").args(["init", "--quiet"]).current_dir(folder).status().unwrap();
        assert!(made.success());
        fs::write(folder.join("a.txt"), "a").unwrap();
    }
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {touch}\n[filter \"x\"]\n\tclean = {touch}\n\trequired\n\
         [include]\n\tpath = ../other\n[extensions]\n\tworktreeConfig = true\n"
    );
    let id = "8b137891791fe96927ad78e64b0aad7bded08bdc";
    let packed = format!("# pack-refs with: peeled fully-peeled sorted \n{id} refs/heads/main\n");
    let seeds: [&[u8]; 7] = [
        config.as_bytes(),
        packed.as_bytes(),
        id.as_bytes(),
        b"ref: refs/heads/main\n",
        b"gitdir: ../.git/worktrees/linked\n",
        b"../..\n",
        b"* filter=x text=auto working-tree-encoding=UTF-16\n",
    ];
    let words: [&[u8]; 12] =
        [b"..", b"/", b"/etc", b"ref: ", b"gitdir: ", b"\n", b"\0", b"\xff", b"[", b"]", b"\"", b"HEAD"];
    let mut mutator = Mutator::new(&seeds, &words);
    let places = [
        "linked/.git",
        "embedded/.git/HEAD",
        "embedded/.git/config",
        "embedded/.git/packed-refs",
        "embedded/.git/commondir",
        "embedded/.gitattributes",
        ".git/config",
        ".git/config.worktree",
        ".git/info/attributes",
        ".git/objects/info/alternates",
        ".gitattributes",
    ];
    let kept = fs::read(root.join(".git/config")).unwrap();
    for count in 0..executions(4_000) {
        let place = root.join(places[mutator.below(places.len())]);
        fs::write(&place, mutator.input()).unwrap();
        let _ = Repository::find(&root.join("linked"));
        let _ = Repository::find(&embedded);
        let _ = head_commit(&embedded);
        if count % 40 == 0 {
            if let Ok(Some(trees)) = Trees::open(&root, &state) {
                let _ = trees.snapshot();
            }
            // A repository without its settings is of no use to anybody.
            fs::write(root.join(".git/config"), &kept).unwrap();
            let trees = Trees::open(&root, &state).unwrap().unwrap();
            let _ = trees.snapshot();
        }
        assert!(!caught.exists(), "{} started a program", place.display());
    }
}

/// The file of a worktree that names the shared folder is the agent's to write without a sandbox.
#[test]
fn a_worktree_of_another_repository_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (main, linked, evil) = (dir.path().join("main"), dir.path().join("linked"), dir.path().join("evil"));
    for folder in [&main, &evil] {
        fs::create_dir(folder).unwrap();
    }
    let git = |dir: &Path, args: &[&str]| {
        let identity = ["-c", "user.name=A", "-c", "user.email=a@localhost"];
        assert!(Command::new("git").args(identity).args(args).current_dir(dir).status().unwrap().success());
    };
    git(&main, &["init", "--quiet"]);
    git(&main, &["commit", "--quiet", "--allow-empty", "--message", "begin"]);
    git(&main, &["worktree", "add", "--quiet", "../linked"]);
    assert!(Repository::find(&linked).unwrap().is_some());
    git(&evil, &["init", "--quiet", "--bare"]);
    // Also if it links to the folder of the worktree.
    symlink(main.join(".git/worktrees"), evil.join("worktrees")).unwrap();
    fs::write(main.join(".git/worktrees/linked/commondir"), evil.as_os_str().as_bytes()).unwrap();
    let refused = Repository::find(&linked).unwrap_err();
    assert!(refused.to_string().contains("names another repository"), "{refused}");
}
