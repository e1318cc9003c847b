//! Agents that attack whoever reads what they left.

use std::{fs, os::unix::fs::symlink, path::Path};

use super::{
    tests::{Scene, run_call, run_command},
    *,
};

/// Makes a repository that starts a program in whoever enters it: it creates the returned file.
fn make_trap(scene: &Scene, path: &Path) -> PathBuf {
    let sprung = scene.dir.path().join("sprung");
    let mut git = scene.command(&["init", "--quiet", "--bare"]);
    git.arg(path);
    run_command(git);
    for (name, value) in
        [("core.bare", "false".to_owned()), ("core.fsmonitor", format!("touch '{}'; true", sprung.display()))]
    {
        let mut git = scene.command(&["config", "--file"]);
        git.arg(path.join("config")).args([name, &value]);
        run_command(git);
    }
    sprung
}

/// Commits a submodule at a path, as an agent does.
fn commit_link(scene: &Scene, path: &str) {
    let head = scene.agent(&["rev-parse", "HEAD"]);
    fs::create_dir_all(scene.top().join(path)).unwrap();
    let entry = format!("160000,{},{path}", head.trim());
    scene.agent(&["update-index", "--add", "--cacheinfo", &entry]);
    scene.agent(&["commit", "--quiet", "--message", "link"]);
}

fn make_fifo(path: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
}

#[test]
fn no_repository_of_an_agent_is_entered_by_git_of_the_user() {
    type Plant = fn(&Path, &Path);
    let plants: [(&str, Plant); 7] = [
        ("a folder", |trap, sub| fs::rename(trap, sub.join(".git")).unwrap()),
        ("a link", |trap, sub| symlink(trap, sub.join(".git")).unwrap()),
        ("a file", |trap, sub| {
            fs::write(sub.join(".git"), format!("gitdir: {}\n", trap.display())).unwrap();
        }),
        // Git strips line ends only, so this is another folder than the one without the space.
        ("a file with a space", |trap, sub| {
            let name = format!("{} ", trap.file_name().unwrap().display());
            fs::rename(trap, trap.with_file_name(&name)).unwrap();
            symlink(sub.join("../.git"), trap).unwrap();
            fs::write(sub.join(".git"), format!("gitdir: ../{name}\n")).unwrap();
        }),
        ("a file that names the user's repository", |_, sub| {
            fs::write(sub.join(".git"), "gitdir: ../.git\n").unwrap();
        }),
        ("a fifo", |_, sub| make_fifo(&sub.join(".git"))),
        ("a huge file", |_, sub| {
            fs::File::create(sub.join(".git")).unwrap().set_len(1 << 40).unwrap();
        }),
    ];
    for (name, plant) in plants {
        let scene = Scene::new();
        let sub = scene.top().join("sub");
        let mut git = scene.git();
        let sprung = make_trap(&scene, &scene.top().join("trap"));
        let taken = run_call(&mut git, || {
            fs::create_dir(&sub).unwrap();
            plant(&scene.top().join("trap"), &sub);
            commit_link(&scene, "sub");
        });
        assert_eq!(scene.user(&["log", "-1", "--format=%s"]), "link\n", "{name}");
        assert!(taken.left[0].contains(".git.by-agent-1"), "{name}: {taken:?}");
        assert!(sub.join(".git").symlink_metadata().is_err(), "{name}");
        scene.user(&["status"]);
        // In a later call, which also damages the folder of the agents.
        let trap = scene.top().join("trap2");
        make_trap(&scene, &trap);
        run_call(&mut git, || {
            plant(&trap, &sub);
            fs::remove_dir_all(scene.dir.path().join("run/git/objects")).unwrap();
            symlink("/etc", scene.dir.path().join("run/git/x")).unwrap();
        });
        assert!(sub.join(".git").symlink_metadata().is_err(), "{name}");
        scene.user(&["status"]);
        assert!(!sprung.exists(), "{name}");
    }
}

#[test]
fn repositories_inside_of_repositories_are_protected_too() {
    let scene = Scene::new();
    let head = scene.user(&["rev-parse", "HEAD"]);
    let link = format!("160000,{},nested", head.trim());
    // A repository of the user inside of the tree, with a submodule that is not checked out.
    let inner = |args: &[&str]| {
        let mut git = scene.command(args);
        git.current_dir(scene.top().join("sub"));
        run_command(git);
    };
    fs::create_dir_all(scene.top().join("sub/nested")).unwrap();
    inner(&["init", "--quiet"]);
    inner(&["update-index", "--add", "--cacheinfo", &link]);
    inner(&["commit", "--quiet", "--message", "inner"]);
    scene.user(&["-c", "advice.addEmbeddedRepo=false", "add", "sub"]);
    scene.user(&["commit", "--quiet", "--message", "with sub"]);
    let mut git = scene.git();
    let sprung = make_trap(&scene, &scene.top().join("trap"));
    let taken = run_call(&mut git, || {
        fs::rename(scene.top().join("trap"), scene.top().join("sub/nested/.git")).unwrap();
    });
    assert_eq!(taken.left, ["the repository in `sub/nested`, whose `.git` is now `.git.by-agent-1`"]);
    scene.user(&["status"]);
    assert!(!sprung.exists());
    assert!(scene.top().join("sub/.git").is_dir(), "that of the user stays");
}

#[test]
fn a_fifo_with_rules_of_git_holds_nothing_up() {
    let scene = Scene::new();
    let mut git = scene.git();
    let taken = run_call(&mut git, || {
        scene.write("b.txt", "x\n");
        scene.agent(&["add", "b.txt"]);
        scene.agent(&["commit", "--quiet", "--message", "own"]);
        make_fifo(&scene.top().join(".gitattributes"));
    });
    assert!(taken.left.iter().any(|left| left.contains("`.gitattributes`")), "{taken:?}");
    fs::remove_file(scene.top().join(".gitattributes")).unwrap();
    run_call(&mut git, || ());
    assert_eq!(scene.user(&["log", "-1", "--format=%s"]), "own\n");
}

#[test]
fn submodules_land_when_no_command_works_any_more() {
    let scene = Scene::new();
    let mut git = scene.git();
    fs::create_dir_all(git.folder.parent().unwrap()).unwrap();
    git.begin().unwrap();
    git.begin().unwrap();
    commit_link(&scene, "sub");
    git.end().unwrap();
    git.take_over(&StopFlag::default()).unwrap();
    assert_eq!(scene.user(&["log", "-1", "--format=%s"]), "base\n");
    git.end().unwrap();
    git.take_over(&StopFlag::default()).unwrap();
    assert_eq!(scene.user(&["log", "-1", "--format=%s"]), "link\n");
}

#[test]
fn a_folder_of_a_submodule_is_not_missing_while_commands_work() {
    let scene = Scene::new();
    let head = scene.user(&["rev-parse", "HEAD"]);
    let entry = format!("160000,{},lib/sub", head.trim());
    scene.user(&["update-index", "--add", "--cacheinfo", &entry]);
    let mut git = scene.git();
    run_call(&mut git, || assert!(scene.top().join("lib/sub").is_dir(), "it can be sealed"));
    assert!(!scene.top().join("lib/sub").exists());
}

#[test]
fn a_stop_ends_the_wait_for_a_fifo() {
    let scene = Scene::new();
    let mut git = scene.git();
    fs::create_dir_all(git.folder.parent().unwrap()).unwrap();
    git.begin().unwrap();
    scene.agent(&["commit", "--quiet", "--allow-empty", "--message", "own"]);
    let commit = scene.agent(&["rev-parse", "HEAD"]);
    let object = scene.dir.path().join("run/git/objects").join(&commit[..2]).join(commit[2..].trim());
    let bytes = fs::read(&object).unwrap();
    fs::remove_file(&object).unwrap();
    make_fifo(&object);
    git.end().unwrap();
    let stop = StopFlag::default();
    let taken = std::thread::scope(|scope| {
        let taking = scope.spawn(|| git.take_over(&stop).unwrap());
        stop.stop();
        taking.join().unwrap()
    });
    assert_eq!(taken, TakeOverReport::default());
    assert_eq!(scene.user(&["log", "-1", "--format=%s"]), "base\n");
    // What was not taken over then is taken over later.
    fs::remove_file(&object).unwrap();
    fs::write(&object, bytes).unwrap();
    git.take_over(&StopFlag::default()).unwrap();
    assert_eq!(scene.user(&["log", "-1", "--format=%s"]), "own\n");
}

#[test]
fn what_git_refuses_is_named_and_stays() {
    let scene = Scene::new();
    let mut git = scene.git();
    let write_tree = |listed: &[u8]| {
        let mut git = scene.command(&["hash-object", "-t", "tree", "-w", "--stdin", "--literally"]);
        git.env("GIT_DIR", scene.dir.path().join("run/git"));
        let file = scene.dir.path().join("tree-object");
        fs::write(&file, listed).unwrap();
        git.stdin(fs::File::open(&file).unwrap());
        run_command(git)
    };
    let taken = run_call(&mut git, || {
        // A file in `.git` of whoever checks it out.
        let blob = scene.agent(&["rev-parse", "HEAD:a.txt"]);
        let id = (0..20).map(|n| u8::from_str_radix(&blob[2 * n..2 * n + 2], 16).unwrap());
        let inner = write_tree(&[b"100644 config\0".to_vec(), id.collect()].concat());
        let id = (0..20).map(|n| u8::from_str_radix(&inner[2 * n..2 * n + 2], 16).unwrap());
        let tree = write_tree(&[b"40000 .git\0".to_vec(), id.collect()].concat());
        let commit = scene.agent(&["commit-tree", tree.trim(), "-p", "HEAD", "-m", "evil"]);
        scene.agent(&["update-ref", "refs/heads/main", commit.trim()]);
    });
    assert!(taken.left.iter().any(|left| left.contains("git refuses them")), "{taken:?}");
    assert_eq!(scene.user(&["log", "-1", "--format=%s"]), "base\n");
    // Nothing of it is in the user's repository, and the agent may go on.
    assert!(scene.user(&["count-objects"]).starts_with("3 objects"), "{}", scene.user(&["count-objects"]));
    run_call(&mut git, || {
        scene.agent(&["reset", "--quiet", "--soft", "HEAD~1"]);
        scene.agent(&["commit", "--quiet", "--allow-empty", "--message", "own"]);
    });
    assert_eq!(scene.user(&["log", "-1", "--format=%s"]), "own\n");
}

#[test]
fn large_files_are_read_through_no_link() {
    let scene = Scene::new();
    let digest = "a948904f2f0f479b8f8197694b30184b0d2ed1c1cd2a1ec0fb85d299a192a447";
    let other = scene.dir.path().join("other");
    fs::create_dir_all(other.join("objects/a9/48")).unwrap();
    fs::write(other.join("objects/a9/48").join(digest), "hello world\n").unwrap();
    let folder = scene.dir.path().join("run/git");
    let links: [(&str, &str); 4] = [
        ("lfs", ""),
        ("lfs/objects", "objects"),
        ("lfs/objects/a9", "objects/a9"),
        ("lfs/objects/a9/48", "objects/a9/48"),
    ];
    for (link, target) in links {
        let mut git = scene.git();
        run_call(&mut git, || {
            let _ = fs::remove_dir_all(folder.join("lfs"));
            fs::create_dir_all(folder.join(link).parent().unwrap()).unwrap();
            symlink(other.join(target), folder.join(link)).unwrap();
        });
        assert!(!scene.top().join(".git/lfs").exists(), "{link}");
        fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn shallow_and_partial_repositories_and_other_digests_work() {
    for clone in [&["--depth", "1"][..], &["--filter", "blob:none"], &["--filter", "tree:0"], &[]] {
        let scene = Scene::new();
        for n in 0..3 {
            scene.write(&format!("dir/{n}.txt"), "x\n");
            scene.user(&["add", "--all"]);
            scene.user(&["commit", "--quiet", "--message", "more"]);
        }
        scene.user(&["config", "uploadpack.allowFilter", "true"]);
        scene.user(&["branch", "side", "HEAD~1"]);
        let origin = scene.dir.path().join("origin");
        fs::rename(scene.top(), &origin).unwrap();
        let mut git = scene.command(&["clone", "--quiet", "--no-local"]);
        git.args(clone).arg(format!("file://{}", origin.display())).arg(scene.top());
        git.current_dir(scene.dir.path());
        run_command(git);
        let mut git = scene.git();
        let taken = run_call(&mut git, || {
            scene.write("dir/1.txt", "changed\n");
            scene.agent(&["commit", "--quiet", "--all", "--message", "own"]);
        });
        assert_eq!(taken.left, [""; 0], "{clone:?}");
        assert_eq!(scene.user(&["log", "-1", "--format=%s"]), "own\n", "{clone:?}");
        assert_eq!(scene.user(&["status", "--porcelain"]), "", "{clone:?}");
    }
    let scene = Scene { dir: tempfile::tempdir().unwrap() };
    fs::create_dir(scene.top()).unwrap();
    scene.user(&["init", "--quiet", "--initial-branch", "main", "--object-format", "sha256"]);
    scene.user(&["commit", "--quiet", "--allow-empty", "--message", "base"]);
    let mut git = scene.git();
    let taken = run_call(&mut git, || {
        scene.agent(&["commit", "--quiet", "--allow-empty", "--message", "own"]);
    });
    assert_eq!((taken.left, scene.user(&["log", "-1", "--format=%s"])), (Vec::new(), "own\n".to_owned()));
}

#[test]
fn commits_that_the_working_tree_does_not_show_stay() {
    type Work = fn(&Scene);
    let commit = |scene: &Scene| {
        scene.agent(&["add", "--all"]);
        scene.agent(&["commit", "--quiet", "--message", "own"]);
    };
    let hidden: [(&str, Work, Work); 5] = [
        (
            "evil.sh",
            |scene| scene.write("evil.sh", "x\n"),
            |scene| {
                fs::remove_file(scene.top().join("evil.sh")).unwrap();
            },
        ),
        ("a.txt", |scene| scene.write("a.txt", "other\n"), |scene| scene.write("a.txt", "one\n")),
        (
            "a.txt",
            |scene| fs::remove_file(scene.top().join("a.txt")).unwrap(),
            |scene| scene.write("a.txt", "one\n"),
        ),
        (
            "dir/deep",
            |scene| scene.write("dir/deep", "x\n"),
            |scene| {
                fs::remove_dir_all(scene.top().join("dir")).unwrap();
                symlink("/etc", scene.top().join("dir")).unwrap();
            },
        ),
        (".cuegate/x", |scene| scene.write(".cuegate/x", "x\n"), |_| ()),
    ];
    let kinds: [(&str, &str); 3] = [("a.txt", "160000"), ("a.txt", "120000"), ("a.txt", "100755")];
    for (path, work, after) in hidden {
        let scene = Scene::new();
        let mut git = scene.git();
        let taken = run_call(&mut git, || {
            work(&scene);
            commit(&scene);
            after(&scene);
        });
        assert!(taken.left.iter().any(|left| left.contains(&format!("`{path}`"))), "{path}: {taken:?}");
        assert_eq!(scene.user(&["log", "-1", "--format=%s"]), "base\n", "{path}");
        // A later commit without it brings both.
        if path != ".cuegate/x" {
            run_call(&mut git, || {
                scene.agent(&["add", "--all"]);
                scene.agent(&["commit", "--quiet", "--allow-empty", "--message", "mended"]);
            });
            assert_eq!(scene.user(&["log", "-1", "--format=%s"]), "mended\n", "{path}");
        }
    }
    for (path, mode) in kinds {
        let scene = Scene::new();
        // Without the setting git compares modes.
        scene.user(&["config", "--unset", "core.fileMode"]);
        let mut git = scene.git();
        let taken = run_call(&mut git, || {
            let object = scene.agent(&["rev-parse", if mode == "160000" { "HEAD" } else { "HEAD:a.txt" }]);
            scene.agent(&["update-index", "--cacheinfo", &format!("{mode},{},{path}", object.trim())]);
            scene.agent(&["commit", "--quiet", "--message", "own"]);
        });
        assert!(taken.left.iter().any(|left| left.contains(&format!("`{path}`"))), "{mode}: {taken:?}");
        assert_eq!(scene.user(&["log", "-1", "--format=%s"]), "base\n", "{mode}");
    }
    let seen: [(&str, Work, Work); 5] = [
        ("edited further", |scene| scene.write("a.txt", "other\n"), |scene| scene.write("a.txt", "third\n")),
        ("more files", |scene| scene.write("b", "x\n"), |scene| scene.write("c", "x\n")),
        ("an ignored file", |scene| scene.write("kept.log", "x\n"), |_| ()),
        (
            "a mode",
            |scene| {
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
                fs::set_permissions(scene.top().join("a.txt"), mode).unwrap();
            },
            |_| (),
        ),
        (
            "no longer tracked",
            |scene| {
                scene.agent(&["rm", "--quiet", "--cached", "a.txt"]);
                scene.write(".gitignore", "a.txt\n");
            },
            |_| (),
        ),
    ];
    for (name, work, after) in seen {
        let scene = Scene::new();
        scene.write(".gitignore", "*.log\n");
        scene.user(&["add", "--all"]);
        scene.user(&["commit", "--quiet", "--message", "rules"]);
        let mut git = scene.git();
        let taken = run_call(&mut git, || {
            work(&scene);
            if name == "an ignored file" {
                scene.agent(&["add", "--force", "kept.log"]);
            }
            commit(&scene);
            after(&scene);
        });
        assert_eq!(taken.left, [""; 0], "{name}");
        assert_eq!(scene.user(&["log", "-1", "--format=%s"]), "own\n", "{name}");
    }
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// All files of a folder with their contents, and the targets of links.
fn read_all(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut unread = vec![folder.to_owned()];
    while let Some(folder) = unread.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let about = path.symlink_metadata().unwrap();
            if about.is_dir() {
                unread.push(path.clone());
                files.insert(path, Vec::new());
            } else if about.is_symlink() {
                files.insert(
                    path.clone(),
                    fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                );
            } else {
                files.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// The entries of a folder, at most some of them.
fn list_some(folder: &Path, limit: usize) -> Vec<PathBuf> {
    let mut entries = Vec::new();
    let mut unread = vec![folder.to_owned()];
    while let Some(folder) = unread.pop() {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            if path.symlink_metadata().is_ok_and(|about| about.is_dir()) {
                unread.push(path.clone());
            }
            entries.push(path);
        }
    }
    entries.truncate(limit);
    entries
}

#[test]
fn nothing_outside_changes_whatever_agents_make_links() {
    let seeds =
        std::env::var("CUEGATE_HOSTILE_TREES").ok().and_then(|count| count.parse().ok()).unwrap_or(12);
    for seed in 0..seeds {
        let mut random = Random(seed);
        let scene = Scene::new();
        let outside = scene.dir.path().join("outside");
        let sprung = make_trap(&scene, &outside.join("trap"));
        for file in [
            "canary",
            "objects/info/alternates",
            "refs/heads/main",
            "hooks/x.lock",
            "index.lock",
            "config.lock",
        ] {
            fs::create_dir_all(outside.join(file).parent().unwrap()).unwrap();
            fs::write(outside.join(file), "mine\n").unwrap();
        }
        let head = scene.user(&["rev-parse", "HEAD"]);
        scene.user(&["update-index", "--add", "--cacheinfo", &format!("160000,{},sub", head.trim())]);
        scene.user(&["commit", "--quiet", "--message", "with sub"]);
        // The stand-in of an agent has no sandbox: what it changes itself outside is no fault.
        let mut before = read_all(&outside);
        let mut git = scene.git();
        let folder = scene.dir.path().join("run/git");
        for _ in 0..4 {
            run_call(&mut git, || {
                assert!(read_all(&outside) == before, "seed {seed}, at the start");
                let agent = |args: &[&str]| {
                    // A damaged repository fails.
                    let mut git = scene.command(args);
                    git.env("GIT_DIR", &folder).env("GIT_WORK_TREE", scene.top());
                    let _ = git.output().unwrap();
                };
                let number = random.below(1000).to_string();
                fs::write(scene.top().join("b.txt"), &number).ok();
                agent(&["add", "--all"]);
                agent(&["commit", "--quiet", "--message", &number]);
                for _ in 0..1 + random.below(6) {
                    let base = if random.below(3) == 0 { scene.top() } else { folder.clone() };
                    let mut entries = list_some(&base, 400);
                    entries.retain(|path| !path.starts_with(scene.top().join(".git")));
                    entries.push(scene.top().join("sub/.git"));
                    let path = entries[random.below(entries.len())].clone();
                    let _ = fs::create_dir_all(path.parent().unwrap());
                    let targets = [
                        "",
                        "canary",
                        "objects",
                        "refs",
                        "refs/heads",
                        "hooks",
                        "trap",
                        "../tree/.git",
                        "nowhere",
                    ];
                    let target = outside.join(targets[random.below(targets.len())]);
                    if path.symlink_metadata().is_ok_and(|about| about.is_dir()) {
                        let _ = fs::remove_dir_all(&path);
                    } else {
                        let _ = fs::remove_file(&path);
                    }
                    let _ = match random.below(6) {
                        0 => fs::write(&path, format!("gitdir: {}\n", target.display())),
                        1 => fs::create_dir_all(&path),
                        _ => symlink(&target, &path),
                    };
                }
                before = read_all(&outside);
            });
            if random.below(3) == 0 {
                git.reset().unwrap();
            }
            // It may fail, where a link is in the place of a submodule, and start nothing.
            scene.command(&["status"]).output().unwrap();
        }
        assert!(read_all(&outside) == before, "seed {seed}, at the end");
        assert!(!sprung.exists(), "seed {seed}");
        scene.user(&["fsck", "--no-dangling"]);
    }
}
