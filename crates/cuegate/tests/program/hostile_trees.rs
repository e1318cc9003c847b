//! Random trees of hostile agents, with links, FIFOs and repositories at every level, and then each command that changes or
//! reads files: nothing outside of the project changes, git of the user starts nothing, and nothing hangs or panics.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::{Value, json};

use crate::support::Project;

const WORKFLOW: &str = "\
name: it
max_steps: 4
initial_step: work
steps:
  - name: work
    edit: true
    instruction: Work.
    rules:
      - { condition: Done, next: more }
  - name: more
    edit: true
    instruction: More.
    rules:
      - { condition: Done, next: COMPLETE }
";

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        // The constants of Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit as u64) as usize
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// What an agent runs: ordinary edits, and traps that lead to `outside`.
    fn damage(&mut self, outside: &Path) -> String {
        let places = [
            "src",
            "src/a.txt",
            "src/deep",
            "src/deep/b.txt",
            "new",
            "new/x",
            "sub",
            "top.txt",
            ".cuegate",
            ".takt",
            "-x",
        ];
        let targets = ["", "canary", "folder", "folder/a.txt", "trap", "nowhere"];
        let at = self.pick(&places);
        let to = outside.join(self.pick(&targets));
        let to = to.display();
        let inside = self.pick(&[
            "HEAD",
            "config",
            "index",
            "refs/heads",
            "objects",
            "hooks",
            "info",
            "logs",
            "packed-refs",
            "modules",
        ]);
        let ready = format!("mkdir -p -- \"$(dirname -- './{at}')\" 2>/dev/null");
        let command = match self.below(12) {
            // An agent that writes into its own FIFO waits for ever.
            0..3 => format!("{ready}; [ -p './{at}' ] || echo {} > './{at}'", self.below(1000)),
            3 => format!("{ready}; rm -rf './{at}'; ln -s '{to}' './{at}'"),
            4 => format!(
                "rm -rf './{at}'; mkdir -p './{at}'; ln -s '{to}' './{at}/{}'",
                self.pick(&["a.txt", ".git", "b.txt"])
            ),
            5 => format!("{ready}; rm -rf './{at}'; mkfifo './{at}'"),
            6 => format!("rm -rf './{at}'; mkdir -p './{at}'; echo 'gitdir: {to}' > './{at}/.git'"),
            7 => format!(
                "G=$(git rev-parse --absolute-git-dir); rm -rf \"$G/{inside}\"; ln -s '{to}' \"$G/{inside}\""
            ),
            8 => "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub; git commit -qm link"
                .to_owned(),
            9 => format!("rm -rf './{at}'"),
            10 => format!("{ready}; rm -rf './{at}'; ln -s ../../.. './{at}'"),
            _ => "git add --all; git commit -qm all".to_owned(),
        };
        format!("({command}) >/dev/null 2>&1; true")
    }
}

/// All files of a folder with their modes and contents.
fn read_all(folder: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut files = BTreeMap::new();
    let mut unread = vec![folder.to_owned()];
    while let Some(folder) = unread.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let about = path.symlink_metadata().unwrap();
            let text = if about.is_dir() { Vec::new() } else { fs::read(&path).unwrap() };
            files.insert(path.display().to_string(), (about.permissions().mode(), text));
            if about.is_dir() {
                unread.push(path);
            }
        }
    }
    files
}

/// A folder outside of the project whose files nothing may change, with a repository that starts a program.
fn outside(project: &Project, folder: &Path) {
    for name in [
        "canary",
        "folder/a.txt",
        "folder/b.txt",
        "folder/deep/b.txt",
        "refs/heads/main",
        "objects/info/alternates",
    ] {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        fs::write(folder.join(name), "mine\n").unwrap();
    }
    let trap = folder.join("trap").display().to_string();
    project.git(&["init", "--quiet", "--bare", &trap]);
    project.git(&["--git-dir", &trap, "config", "core.bare", "false"]);
    let sprung = folder.with_extension("sprung");
    project.git(&[
        "--git-dir",
        &trap,
        "config",
        "core.fsmonitor",
        &format!("touch '{}'; true", sprung.display()),
    ]);
}

fn answers(random: &mut Random, folder: &Path) -> Value {
    let mut answer = |step: &str| {
        let runs: Vec<String> = (0..2 + random.below(7)).map(|_| random.damage(folder)).collect();
        json!({"step": step, "output": {"outcome": "Done", "response": "Did."}, "runs": runs})
    };
    // A step is done again after a violation.
    let answers: Vec<Value> = ["work", "work", "more", "more"].into_iter().map(&mut answer).collect();
    json!({ "answers": answers })
}

#[test]
fn nothing_outside_changes_whatever_agents_leave() {
    let seeds = std::env::var("CUEGATE_HOSTILE_TREES").ok().and_then(|count| count.parse().ok()).unwrap_or(4);
    for seed in 0..seeds {
        let mut random = Random(seed);
        let project = Project::empty();
        project.write(".takt/workflows/it.yaml", WORKFLOW);
        project.write(".gitignore", "/script.json\n/.cuegate\n");
        for name in ["src/a.txt", "src/deep/b.txt", "top.txt"] {
            project.write(name, "kept\n");
        }
        project.init();
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("outside");
        outside(&project, &folder);
        let before = read_all(&folder);
        let check = |doing: &str| {
            assert!(read_all(&folder) == before, "seed {seed}, after {doing}");
            // It may fail, where a link is in the place of a folder, and start nothing.
            let _ =
                std::process::Command::new("git").arg("status").current_dir(project.path()).output().unwrap();
            assert!(!folder.with_extension("sprung").exists(), "seed {seed}: git after {doing}");
        };
        let run = |args: &[&str]| {
            let ran = project.job(args).end();
            assert!(![101, 134, 139].contains(&ran.code), "seed {seed}: {args:?} {}", ran.stderr);
            check(&args.join(" "));
        };
        for round in 0..3 {
            project.write("script.json", &answers(&mut random, &folder).to_string());
            let in_worktree: &[&str] = if random.below(2) == 0 { &["--worktree"] } else { &[] };
            run(&[&["run", "it", "Do it", "--script", "script.json"], in_worktree].concat());
            for _ in 0..4 {
                match random.below(8) {
                    0 => run(&["undo", "--all"]),
                    1 => run(&["restore", "--at", "work"]),
                    2 => run(&["fork", "--before", "more"]),
                    3 => run(&["gc", "--keep", "1"]),
                    4 => run(&["clean", "last"]),
                    5 => run(&["diff"]),
                    6 => run(&["retry"]),
                    _ => run(&["apply"]),
                }
            }
            if round == 1 {
                project.write("mine.txt", "changed\n");
            }
        }
    }
}
