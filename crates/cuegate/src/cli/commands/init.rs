//! `init`.

use std::path::Path;

use cuegate_view::{clean, pad};
use serde_json::{Value, json};

use super::Place;
use crate::{
    Failure,
    cli::{args::Init, print},
    exit,
    init::{self, Found, STARTERS, Wanted},
};

pub(super) fn init(place: &Place, args: &Init) -> Result<u8, Failure> {
    let Some(asked) = args.starter.as_deref().filter(|_| !args.list) else { return Ok(list(args.json)) };
    let starter = init::starter(asked).ok_or_else(|| {
        Failure::usage(
            format!("there is no `{asked}` to begin with"),
            "`cuegate init --list` says what there is",
        )
    })?;
    let root = place.home.root();
    let mut found = init::detect(root);
    let given = args.test.as_deref().map(|test| Found::given(test.trim()));
    let test = given.or_else(|| (!found.is_empty()).then(|| found.remove(0)));
    let name = args.name.as_deref().unwrap_or(starter.name);
    let wanted = Wanted::new(name, test.as_ref().map(|test| test.command.as_str()))?;
    let files = (starter.files)(&wanted);
    let folder = format!(".agent/{name}");
    init::write(&root.join(".agent").join(name), &files)?;
    let paths: Vec<String> = files.iter().map(|file| format!("{folder}/{}", file.path)).collect();
    let written = Written { starter: asked, place, name, folder, paths, test, others: found };
    if args.json {
        print::json(&written.to_json());
    } else {
        print::data(&written.paths.join("\n"));
        for line in written.lines() {
            print::line(&line);
        }
    }
    Ok(exit::DONE)
}

/// Says what there is to begin with.
fn list(json: bool) -> u8 {
    if json {
        let one = |starter: &init::Starter| json!({"name": starter.name, "about": starter.about});
        let all: Vec<Value> = STARTERS.iter().map(one).collect();
        print::json(&json!({"schema": "cuegate/starters/v1", "starters": all}));
    } else {
        let lines: Vec<String> =
            STARTERS.iter().map(|starter| format!("{}  {}", starter.name, starter.about)).collect();
        print::data(&lines.join("\n"));
    }
    exit::DONE
}

/// What was written, and from what.
struct Written<'a> {
    starter: &'a str,
    place: &'a Place,
    name: &'a str,
    folder: String,
    /// Relative to the project's top folder.
    paths: Vec<String>,
    test: Option<Found>,
    others: Vec<Found>,
}

impl Written<'_> {
    fn to_json(&self) -> Value {
        let found = |found: &Found| json!({"command": found.command, "source": found.source});
        json!({
            "schema": "cuegate/init/v1",
            "starter": self.starter,
            "name": self.name,
            "root": self.root().display().to_string(),
            "folder": self.folder,
            "files": self.paths,
            "test": self.test.as_ref().map(found),
            "others": self.others.iter().map(found).collect::<Vec<Value>>(),
        })
    }

    fn root(&self) -> &Path {
        self.place.home.root()
    }

    /// What was written, what was concluded, what to do next.
    fn lines(&self) -> Vec<String> {
        let root = self.root().display();
        let mut lines =
            vec![line("wrote", &format!("{} in {root}, {} files", self.folder, self.paths.len()))];
        match &self.test {
            Some(test) => {
                lines.push(line("tests", &format!("{} ({})", test.command, test.source)));
                lines.push(line("", "a run is done only when this passes, within 10 minutes"));
            }
            None => {
                lines.push(line(
                    "tests",
                    "none found: a run is done when the agent says so, and nothing proves it",
                ));
                let again = format!("cuegate init {} --test \"COMMAND\"", self.again());
                lines.push(line("", &format!("to name a command, remove that folder and say {again}")));
            }
        }
        let label = |index| if index == 0 { "also seen" } else { "" };
        for (index, other) in self.others.iter().enumerate() {
            lines.push(line(label(index), &format!("{} ({})", other.command, other.source)));
        }
        if !self.root().join(".git").exists() {
            lines.push(line(
                "note",
                "no git repository: a run works here, but cannot tell or undo what it changed",
            ));
        }
        let path = self.typed();
        lines.push(line("next", &format!("cuegate check {path}")));
        lines.push(line("", &format!("cuegate show {path}")));
        lines.push(line("", &format!("cuegate run {path} \"what to do\" --provider claude")));
        lines
    }

    /// The words after `init` that write the same.
    fn again(&self) -> String {
        if self.name == self.starter {
            return self.starter.to_owned();
        }
        format!("{} --name {}", self.starter, self.name)
    }

    /// What finds it from here: its name, unless something here is called the same.
    fn typed(&self) -> String {
        if !self.place.here.join(self.name).exists() {
            return self.name.to_owned();
        }
        if self.root() == self.place.here {
            return self.folder.clone();
        }
        self.root().join(&self.folder).display().to_string()
    }
}

fn line(label: &str, text: &str) -> String {
    format!("{}{}", pad(label, 12), clean(text))
}
