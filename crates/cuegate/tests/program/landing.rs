//! What is merged, pushed and proposed is what the run shows; nothing else of the user's is published; and what cannot be
//! done at the end is refused at the start.

use std::{fs, os::unix::fs::symlink};

use cuegate_testkit::github::{Fault, GithubStandin};
use serde_json::{Value, json};

use crate::{
    agent::registry::{begin, says, says_with, small},
    support::{Project, Ran},
};

/// A project whose agent runs these commands, with some committed files.
fn doing(runs: &[&str]) -> Project {
    let project = small().project(answers(runs));
    project.write("a.txt", "one\n");
    project.write("in/m", "in\n");
    project.write("out/m", "out\n");
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--allow-empty", "--message", "files"]);
    project
}

fn answers(runs: &[&str]) -> Value {
    json!([says_with("work", "handoff", json!({"runs": runs})), says("close", "closing")])
}

fn go(project: &Project, more: &[&str]) -> Ran {
    project.run(&[&begin(&["--worktree"])[..], more].concat())
}

/// A bare repository that is the remote `origin`, with what is committed.
fn remote(project: &Project) -> tempfile::TempDir {
    let bare = tempfile::tempdir().unwrap();
    let path = bare.path().to_str().unwrap();
    project.git(&["init", "--quiet", "--bare", "--initial-branch", "main", path]);
    project.git(&["remote", "add", "origin", path]);
    project.git(&["push", "--quiet", "origin", "main"]);
    bare
}

fn files(project: &Project, commit: &str) -> Vec<String> {
    let listed = project.git(&["ls-tree", "-r", "--name-only", commit]);
    listed.lines().filter(|path| !path.starts_with(".agent")).map(str::to_owned).collect()
}

#[test]
fn files_outside_a_sparse_checkout_land_and_are_applied() {
    let project = doing(&["echo new > in/m; mkdir -p out/deep; echo new > out/m; echo n > out/deep/n"]);
    project.git(&["sparse-checkout", "set", "--cone", "in", ".agent"]);
    let ran = go(&project, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("note: the checkout is sparse"), "{}", ran.stderr);
    let applied = project.run(&["apply"]);
    assert_eq!(applied.code, 0, "{}", applied.stderr);
    assert_eq!(
        (project.read("in/m"), project.read("out/m"), project.read("out/deep/n")),
        ("new\n".into(), "new\n".into(), "n\n".into())
    );
    fs::remove_dir_all(project.path().join("out/deep")).unwrap();
    project.git(&["reset", "--quiet", "--hard"]);
    let ran = go(&project, &["--merge"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.git(&["show", "main:out/m"]), "new\n", "{}", ran.stderr);
    assert_eq!(project.git(&["show", "main:out/deep/n"]), "n\n");
}

#[test]
fn a_repository_of_the_agent_is_named_and_lands_once_it_is_none() {
    for commits in [true, false] {
        let commit =
            if commits { "git add .; git -c user.name=a -c user.email=b commit -qm in" } else { "true" };
        let project =
            doing(&["echo two > a.txt", &format!("git init -q tool; cd tool; echo x > main.c; {commit}")]);
        let ran = go(&project, &["--merge"]);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(
            ran.stderr.contains("a commit cannot hold the files of a repository inside the worktree: `tool`"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("\nhidden      git does not show 1 file: tool/\n"), "{}", ran.stderr);
        assert_eq!(project.git(&["show", "main:a.txt"]), "one\n");
        if commits {
            let applied = project.run(&["apply"]);
            assert!(
                applied.code == 2 && applied.stderr.contains("repositories inside the working tree: `tool`"),
                "{}",
                applied.stderr
            );
            assert!(!project.path().join("tool").exists());
        }
        let work = project.status()["place"]["work"].as_str().unwrap().to_owned();
        fs::remove_dir_all(format!("{work}/tool/.git")).unwrap();
        let ran = project.run(&["retry"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!((project.read("tool/main.c"), project.read("a.txt")), ("x\n".into(), "two\n".into()));
    }
}

#[test]
fn what_the_setup_made_and_hid_is_no_part_of_the_commit() {
    let project = doing(&["git update-index --skip-worktree a.txt; echo two > a.txt; echo b > b.txt"]);
    project.write(
        "cuegate.toml",
        "[worktree]\nsetup = \"ln -s /an/absolute/path node_modules; echo s > made\"\n",
    );
    let ran = go(&project, &["--merge"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(files(&project, "main"), [".gitignore", "a.txt", "b.txt", "in/m", "out/m"]);
    assert_eq!(project.git(&["show", "main:a.txt"]), "two\n");
}

#[test]
fn nothing_of_the_user_is_pushed() {
    let project = doing(&["true"]);
    let bare = remote(&project);
    let at = |args: &[&str]| project.git(&[&["-C", bare.path().to_str().unwrap()], args].concat());
    let standin = GithubStandin::start("owner/name");
    project.write(
        "cuegate.toml",
        &format!("[github]\napi = \"{}\"\nrepository = \"owner/name\"\n", standin.url()),
    );
    let published = at(&["rev-parse", "main"]);
    project.write("secret.txt", "not for others\n");
    project.git(&["add", "secret.txt"]);
    project.git(&["commit", "--quiet", "--message", "WIP"]);
    for flags in [&["--push"][..], &["--pull-request"], &["--merge", "--push"]] {
        let ran = go(&project, flags);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains("nothing to push: the run changed nothing"), "{flags:?} {}", ran.stderr);
        assert_eq!(
            (at(&["rev-parse", "main"]), at(&["branch", "--list"])),
            (published.clone(), "* main\n".into()),
            "{flags:?}"
        );
    }
    assert!(standin.pulls().is_empty());
    // Work is proposed without the commit that nobody else has.
    project.script("script.json", &answers(&["echo b > b.txt"]));
    let ran = go(&project, &["--pull-request"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("note: `main` has 1 commit that `origin` does not have"), "{}", ran.stderr);
    let branch = project.status()["place"]["branch"].as_str().unwrap().to_owned();
    assert_eq!(at(&["log", "--format=%s", &format!("main..{branch}")]).lines().count(), 1);
    assert_eq!(at(&["diff", "--name-only", "main", &branch]), "b.txt\n");
    // A change of a file that only the user has cannot be separated from it.
    project.script("script.json", &answers(&["echo more >> secret.txt"]));
    let ran = go(&project, &["--push"]);
    assert!(ran.code == 1 && ran.stderr.contains("the work builds on 1 commit of `main`"), "{}", ran.stderr);
    assert_eq!(at(&["rev-parse", "main"]), published);
}

#[test]
fn what_the_end_needs_is_checked_before_the_first_call() {
    let refused = |project: &Project, args: &[&str], message: &str| {
        let ran = go(project, args);
        assert_eq!(ran.code, 2, "{args:?} {message} {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{args:?} {}", ran.stderr);
        assert_eq!(project.runs(), 0, "{args:?}");
    };
    let project = doing(&["true"]);
    refused(&project, &["--push"], "there is no remote `origin` to push to");
    let _bare = remote(&project);
    let toml = "[github]\nrepository = \"owner/name\"\n";
    project.write("cuegate.toml", toml);
    refused(
        &project,
        &["--pull-request=mian"],
        "`origin` has no branch `mian` for the pull request\nhint: did you mean `main`?",
    );
    refused(
        &project,
        &["--pull-request", "--no-github"],
        "a pull request cannot be opened with `--no-github`",
    );
    refused(
        &project,
        &["--push=orgin"],
        "there is no remote `orgin` to push to\nhint: did you mean `origin`?",
    );
    project.git(&["checkout", "--quiet", "--detach"]);
    refused(&project, &["--merge"], "the work cannot be merged: HEAD is at no branch");
    refused(
        &project,
        &["--pull-request"],
        "a pull request needs a branch that it changes, and HEAD is at no branch",
    );
    project.git(&["switch", "--quiet", "main"]);
    project.git(&["remote", "add", "gone", "/no/where"]);
    refused(&project, &["--push=gone"], "the remote `gone` cannot be read: ");
    project.git(&["branch", "cuegate"]);
    refused(&project, &[], "a branch named `cuegate` is in the way");
    project.git(&["branch", "--delete", "cuegate"]);
    for path in [".husky", project.path().join(".husky").to_str().unwrap()] {
        project.write(".husky/pre-commit", "#!/bin/sh\nexit 1\n");
        project.git(&["config", "core.hooksPath", path]);
        project.write("cuegate.toml", "[worktree]\nhooks = true\n");
        refused(&project, &["--merge"], "the hooks are in the working tree, where agents write: `.husky`");
    }
    project.git(&["config", "--unset", "core.hooksPath"]);
    // Git LFS that is set up and not installed.
    project.write("cuegate.toml", "");
    project.git(&["config", "filter.lfs.clean", "git-lfs clean -- %f"]);
    let without_lfs = crate::attacks::without_program("git-lfs");
    project.write(".gitattributes", "*.bin filter=lfs\n");
    project.git(&["-c", "filter.lfs.clean=cat", "add", ".gitattributes"]);
    project.git(&["commit", "--quiet", "--message", "lfs"]);
    let mut command = project.command(&begin(&["--worktree"]));
    let ran = Ran::of(command.env("PATH", without_lfs.path()).output().unwrap());
    let why = "the repository uses Git LFS, and `git-lfs` is not installed";
    assert!(ran.code == 2 && ran.stderr.contains(why), "{}", ran.stderr);
    project.git(&["config", "--remove-section", "filter.lfs"]);
    fs::rename(project.path().join(".git"), project.path().join("moved")).unwrap();
    symlink("moved", project.path().join(".git")).unwrap();
    refused(&project, &[], "`.git` is a symbolic link");
    fs::remove_file(project.path().join(".git")).unwrap();
    fs::rename(project.path().join("moved"), project.path().join(".git")).unwrap();
    // What a filter would change is not committed as it is.
    project.script("script.json", &answers(&["echo new > some.bin; echo two > a.txt"]));
    let ran = go(&project, &["--merge"]);
    assert!(
        ran.stderr.contains("filters of git are not applied (`lfs` in `.gitattributes`)"),
        "{}",
        ran.stderr
    );
    assert!(ran.code == 1 && ran.stderr.contains("files go through one: `some.bin`"), "{}", ran.stderr);
}

#[test]
fn an_empty_submodule_is_pointed_out_before_the_first_call() {
    let project = doing(&["true"]);
    let library = tempfile::tempdir().unwrap();
    let path = library.path().to_str().unwrap();
    project.git(&["clone", "--quiet", "--bare", ".", path]);
    project.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", path, "lib"]);
    project.git(&["commit", "--quiet", "--message", "lib"]);
    let ran = go(&project, &[]);
    let note =
        "note: submodules are empty in a worktree: lib; `[worktree] setup = \"git submodule update --init\"`";
    assert!(ran.code == 0 && ran.stderr.contains(note), "{}", ran.stderr);
}

#[test]
fn secrets_large_files_and_packages_are_held_back_until_they_are_allowed() {
    let project = doing(&[
        "echo KEY=1 > .env; mkdir -p node_modules/x deploy; echo 1 > node_modules/x/i.js; head -c 11000000 /dev/zero > big.log",
        "printf -- '-----BEGIN OPENSSH PRIVATE KEY-----\\nx\\n' > deploy/key.txt; echo A=1 > .env.example; echo two > a.txt",
    ]);
    let bare = remote(&project);
    for flags in [&["--merge"][..], &["--push"]] {
        let ran = go(&project, flags);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let held = "held back: `.env` (it is named like a file with secrets), `big.log` (it has more than 10 MB), \
                    `deploy/key.txt` (it holds a key, a token or a login), `node_modules/` (installed or built, and nothing ignores it)";
        assert!(ran.stderr.contains(held), "{}", ran.stderr);
    }
    assert_eq!(project.git(&["show", "main:a.txt"]), "one\n");
    assert_eq!(project.git(&["-C", bare.path().to_str().unwrap(), "branch", "--list"]), "* main\n");
    project
        .write("cuegate.toml", "[worktree]\nallow = [\".env\", \"*.log\", \"deploy\", \"node_modules\"]\n");
    let ran = project.run(&["retry", "--reload-config"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let branch = project.status()["place"]["branch"].as_str().unwrap().to_owned();
    assert!(files(&project, &branch).contains(&"node_modules/x/i.js".to_owned()));
}

/// What an agent committed and removed again is published by no commit either.
#[test]
fn no_commit_of_the_agent_publishes_what_is_held_back() {
    let commit = "git add --all --force && git commit --quiet --message";
    let gone = format!("echo K=1 > .env; echo n > n; {commit} one; rm .env; {commit} two");
    let state = format!("mkdir -p .cuegate; echo 1 > .cuegate/x; echo n > n; {commit} one");
    // What no snapshot holds does not even reach the branch.
    for (runs, words) in
        [(gone, "the agent's commits were joined into one"), (state, "the working tree does not show")]
    {
        let project = doing(&[&runs]);
        let bare = remote(&project);
        let ran = go(&project, &["--merge", "--push"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        let at = ["-C", bare.path().to_str().unwrap(), "log", "--format=", "--name-only", "main"];
        let published = project.git(&at);
        assert!(published.contains("n\n"), "{published}");
        assert!(!published.contains(".env") && !published.contains(".cuegate"), "{published}");
    }
}

/// Commits whose sum is not what reviews and gates saw: in one call they do not land, and over two calls they are shown.
#[test]
fn what_is_committed_and_not_in_the_tree_is_told() {
    let commit = "git add --all && git -c user.name=a -c user.email=a@b commit --quiet --message own";
    for place in [&[][..], &["--worktree"]] {
        let one = [format!("echo x > evil.sh; {commit}; rm evil.sh")];
        let project = small()
            .project(json!([says_with("work", "handoff", json!({ "runs": one })), says("close", "closing")]));
        let ran = project.run(&begin(place));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let words = "the working tree does not show what they change: `evil.sh`";
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        let named = project.git(&["log", "--all", "--format=", "--name-only"]);
        assert!(!named.contains("evil.sh"), "{named}");

        let workflow = format!("mkdir -p .github/workflows; echo x > .github/workflows/e.yml; {commit}");
        let project = small().project(json!([
            says_with("work", "repeat", json!({ "runs": [format!("echo x > evil.sh; {commit}"), workflow] })),
            says_with("work", "handoff", json!({ "runs": [format!("rm -r .github; {commit}; rm evil.sh")] })),
            says("close", "closing")
        ]));
        let ran = project.run(&begin(place));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let lines = [
            "evil.sh: committed, and not in the working tree",
            ".github/workflows/e.yml: changed by a commit, and changed back by a later one",
        ];
        for line in lines {
            assert!(ran.stderr.contains(&format!("\ncommitted   {line}\n")), "{line}: {}", ran.stderr);
            let status = project.run(&["status"]).stdout;
            assert!(status.contains(line), "{line}: {status}");
            let of_report = format!("- `{}", line.replacen(':', "`:", 1));
            assert!(project.run(&["report"]).stdout.contains(&of_report), "{of_report}");
            let of_diff = format!("note: `{}", line.replacen(':', "`:", 1));
            let diff = project.run(&["diff"]);
            assert!(diff.stderr.contains(&of_diff), "{of_diff}: {}", diff.stderr);
        }
        assert_eq!(project.status()["committed_otherwise"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_changed_gate_and_hidden_files_are_pointed_out_to_a_reviewer() {
    let run =
        "echo true > test.sh; mkdir lib; echo '*' > lib/.gitignore; echo x > lib/x.c; echo log > build.log";
    let project = small().validator("sh test.sh", json!({})).project(answers(&[run]));
    project.write("test.sh", "true\n# all tests\n");
    project.write(".gitignore", "script*\n*.log\n");
    project.git(&["add", "test.sh", ".gitignore"]);
    project.git(&["commit", "--quiet", "--message", "test"]);
    let ran = project.run(&begin(&[]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let gate = "the agent changed `test.sh`, which decides what `sh test.sh` runs";
    assert!(ran.stderr.contains(&format!("\ngate        {gate}\n")), "{}", ran.stderr);
    assert!(ran.stderr.contains("\nhidden      git does not show 1 file: lib/\n"), "{}", ran.stderr);
    let report = project.run(&["report"]).stdout;
    assert!(
        report.contains(&format!("## To be looked at\n\n- {gate}\n- git does not show `lib/`\n")),
        "{report}"
    );
    let status = project.status();
    assert_eq!(status["gate_files"], json!([{"path": "test.sh", "command": "sh test.sh"}]));
    assert_eq!(status["hidden_files"], json!(["lib/"]));
}

#[test]
fn a_pull_request_is_a_report_of_the_finished_work_without_paths_of_this_machine() {
    let project = doing(&["echo b > b.txt"]);
    let _bare = remote(&project);
    let standin = GithubStandin::start("owner/name");
    project.write(
        "cuegate.toml",
        &format!("[github]\napi = \"{}\"\nrepository = \"owner/name\"\n", standin.url()),
    );
    standin.fault(Fault::Moved, "GET", "/pulls", 1);
    let ran = go(&project, &["--pull-request"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let body = standin.pulls()[0]["body"].as_str().unwrap().to_owned();
    for word in ["running", "pending", "cuegate diff", project.path().to_str().unwrap(), "Folder"] {
        assert!(!body.contains(word), "{word}: {body}");
    }
    assert!(body.contains("## Changed files\n\n- b.txt") && body.contains("## Visits"), "{body}");
}

/// Git inside of each kind of sandbox behaves as outside: nothing of ours is seen, staged or stashed.
#[test]
fn git_of_an_agent_sees_nothing_of_ours() {
    let runs = [
        "echo b > b.txt; git status --porcelain --untracked-files=all > before.log",
        "echo two > a.txt; git stash --quiet --include-untracked && git stash pop --quiet",
        "git add --all && git commit --quiet --message 'by the agent'",
        "git status --porcelain > after.log",
    ];
    let bin = crate::attacks::without_bwrap();
    for (how, path) in [("full", None), ("partial", Some(bin.path())), ("none", None)] {
        for worktree in [false, true] {
            let project = doing(&runs);
            project.write(".gitignore", "script*\n*.log\n");
            project.git(&["add", ".gitignore"]);
            project.git(&["commit", "--quiet", "--message", "ignore"]);
            let more: &[&str] = match (how, worktree) {
                ("none", true) => &["--no-sandbox", "--worktree"],
                ("none", false) => &["--no-sandbox"],
                (_, true) => &["--worktree"],
                (_, false) => &[],
            };
            let mut command = project.command(&begin(more));
            path.into_iter().for_each(|path| _ = command.env("PATH", path));
            let ran = Ran::of(command.output().unwrap());
            assert_eq!(ran.code, 0, "{how} {worktree} {}", ran.stderr);
            let work = project.status()["place"]["work"].as_str().unwrap().to_owned();
            let at = |args: &[&str]| project.git(&[&["-C", work.as_str()], args].concat());
            assert_eq!(at(&["log", "-1", "--format=%s"]), "by the agent\n", "{how} {worktree}");
            assert_eq!(
                at(&["show", "--format=", "--name-only", "HEAD"]),
                "a.txt\nb.txt\n",
                "{how} {worktree}"
            );
            assert_eq!(at(&["status", "--porcelain"]), "", "{how} {worktree}");
            assert_eq!(fs::read_to_string(format!("{work}/after.log")).unwrap(), "", "{how} {worktree}");
            assert_eq!(
                fs::read_to_string(format!("{work}/before.log")).unwrap(),
                "?? b.txt\n",
                "{how} {worktree}"
            );
            assert_eq!(at(&["stash", "list"]), "", "{how} {worktree}");
        }
    }
}

#[test]
fn a_subfolder_is_the_place_of_work() {
    let inner =
        json!([says_with("work", "handoff", json!({"runs": ["pwd > where.txt"]})), says("close", "closing")]);
    let project = small().project(inner.clone());
    project.write("packages/api/m", "m\n");
    fs::create_dir_all(project.path().join("packages/api/.agent")).unwrap();
    fs::rename(project.path().join(".agent/agent"), project.path().join("packages/api/.agent/inner"))
        .unwrap();
    project.write(".gitignore", "script*\n");
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "all"]);
    let script = project.path().join("script.json");
    let args = |more: &[&'static str]| -> Vec<String> {
        let own = ["run", "inner", "--cd", "packages/api", "--script", script.to_str().unwrap()];
        own.iter().chain(more).map(ToString::to_string).collect()
    };
    let run = |more: &[&'static str]| {
        let args = args(more);
        project.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let ran = run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let here = project.path().join("packages/api");
    assert_eq!(project.read("packages/api/where.txt").trim(), here.to_str().unwrap());
    assert!(ran.stderr.contains(&format!("folder      {}, in place", here.display())), "{}", ran.stderr);
    fs::remove_file(here.join("where.txt")).unwrap();
    let ran = run(&["--worktree", "--merge"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(project.git(&["show", "main:packages/api/where.txt"]).trim().ends_with("/packages/api"));
    // In the folder the definition has its name without the flag, and `list` shows it.
    let mut list = project.command(&["list", "--json"]);
    let listed = Ran::of(list.current_dir(&here).output().unwrap());
    assert!(listed.stdout.contains("\"inner\""), "{}", listed.stdout);
    // The boundary can be that folder.
    project.write("cuegate.toml", "[boundary]\noutside_folder = \"violation\"\n");
    project.script(
        "script.json",
        &json!([
            says_with("work", "handoff", json!({"runs": ["echo x > ../../top.txt"]})),
            says("close", "closing")
        ]),
    );
    let ran = run(&[]);
    assert!(ran.code == 1 && ran.stderr.contains("top.txt"), "{}", ran.stderr);
    for (folder, why) in [
        ("no/where", "cannot be opened"),
        ("..", "is not in the project"),
        ("script.json", "is not a folder"),
    ] {
        let ran = project.run(&["run", "inner", "--cd", folder, "--script", "script.json"]);
        assert!(ran.code == 2 && ran.stderr.contains(why), "{folder} {}", ran.stderr);
    }
    let tasks = project.path().join("tasks.txt");
    fs::write(&tasks, "one\n").unwrap();
    project.script("script.json", &inner);
    project.write("cuegate.toml", "");
    let ran = project.run(&[
        "work",
        "inner",
        "--cd",
        "packages/api",
        "--from",
        "tasks.txt",
        "--script",
        "script.json",
        "--run-calls",
        "5",
    ]);
    assert!(ran.code == 0 && ran.stderr.contains("1 completed"), "{}", ran.stderr);
}
