//! `setup`: makes the tools of `mcp` known to the user's agent, with a text that says when to use them.

mod edits;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use super::ProjectPlace;
use crate::cli::commands::start::prompt_user::read_terminal_line;
use crate::cli::print;
use crate::{Failure, exit};
use edits::{FileEdit, edit_block, edit_json_server, edit_toml_server, edit_whole_file};

/// When to use the tools, and how to write a workflow. Also in the manual of the project.
const SKILL: &str = include_str!("skill.md");

/// An agent that can be set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SetupAgent {
    /// Claude Code: `.mcp.json` and a skill in `.claude/skills`, in this project
    Claude,
    /// Codex: `config.toml` in its home, and a section in AGENTS.md of this project
    Codex,
}

#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// Whose settings are written
    pub(crate) agent: SetupAgent,
    /// Take back what an earlier setup wrote
    #[arg(long)]
    pub(crate) undo: bool,
    /// Write without a question
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows what would be written, and writes it if the user agrees.
pub(in crate::cli::commands) fn set_up_agent(place: &ProjectPlace, args: &SetupArgs) -> Result<u8, Failure> {
    let root = place.home.root();
    let edits = plan_edits(root, args)?;
    for note in edits.iter().filter_map(|edit| edit.note.as_ref()) {
        print::print_important(&format!("note: {note}"));
    }
    let has_left = edits.iter().any(|edit| edit.note.is_some());
    let edits: Vec<FileEdit> = edits.into_iter().filter(FileEdit::changes).collect();
    if !args.json {
        for edit in &edits {
            print::print_data(&edit.describe(root));
        }
    }
    if edits.is_empty() && !args.json {
        print::print_line(match (args.undo, has_left) {
            (_, true) => "nothing else is to be done",
            (true, _) => "nothing of an earlier setup is there",
            (false, _) => "everything is set up already",
        });
        return Ok(exit::DONE);
    }
    let writes = !edits.is_empty() && (args.yes || print::is_interactive() && !args.json && is_agreed()?);
    if writes {
        edits.iter().try_for_each(FileEdit::write)?;
    }
    if args.json {
        let files: Vec<String> = edits.iter().map(|edit| edit.path.display().to_string()).collect();
        print::print_json(&json!({ "schema": "cuegate/setup/v1", "files": files, "written": writes }));
        return Ok(exit::DONE);
    }
    if !writes {
        print::print_line("nothing was written; `--yes` writes it");
        return Ok(exit::DONE);
    }
    print::print_line(match (args.agent, args.undo) {
        (SetupAgent::Claude, true) => "taken back",
        (SetupAgent::Codex, true) => {
            "taken back; the server is gone from all your projects, whose AGENTS.md may still name it"
        }
        (SetupAgent::Claude, false) => {
            "done: start Claude Code in this project, and allow the server `cuegate` when it asks"
        }
        (SetupAgent::Codex, false) => {
            "done: start Codex in this project; it asks before it starts a run. `codex exec` needs `approval_mode = \
             \"approve\"` in `[mcp_servers.cuegate.tools.start]` and `.act`"
        }
    });
    Ok(exit::DONE)
}

fn is_agreed() -> Result<bool, Failure> {
    let answer = read_terminal_line("write this? [y/N] ")?.unwrap_or_default();
    Ok(matches!(answer.as_str(), "y" | "Y" | "yes"))
}

fn plan_edits(root: &Path, args: &SetupArgs) -> Result<Vec<FileEdit>, Failure> {
    let program = find_program()?;
    let adds = !args.undo;
    Ok(match args.agent {
        SetupAgent::Claude => {
            let skill = format!(
                "---\nname: cuegate\ndescription: Check, price and run workflows of coding agents with Cuegate, whose commands \
                 decide whether work is done. Use it for work that must pass tests or a review before it counts as done, for \
                 long work in the background, and when the user asks for a workflow or a run.\n---\n\n{SKILL}"
            );
            vec![
                edit_json_server(&root.join(".mcp.json"), &program, adds)?,
                edit_whole_file(&root.join(".claude/skills/cuegate/SKILL.md"), &skill, adds)?,
            ]
        }
        SetupAgent::Codex => {
            let home = std::env::var_os("CODEX_HOME").map(PathBuf::from);
            let home = home.or_else(|| Some(std::env::home_dir()?.join(".codex")));
            let home = home.ok_or_else(|| Failure::environment("the home folder is unknown"))?;
            vec![
                edit_toml_server(&home.join("config.toml"), &program, adds)?,
                edit_block(&root.join("AGENTS.md"), &format!("# Cuegate\n\n{SKILL}"), adds)?,
            ]
        }
    })
}

/// How the agent starts this program: by name where that finds it, as in a file that others share.
fn find_program() -> Result<String, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::environment(format!("the path of this program is unknown: {error}")))?;
    let is_own = |found: PathBuf| found.canonicalize().ok() == own.canonicalize().ok();
    Ok(match cuegate_provider::locate_program("cuegate").is_some_and(is_own) {
        true => "cuegate".to_owned(),
        false => own.display().to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::SKILL;

    /// The example in the text is what people copy.
    #[test]
    fn the_workflow_of_the_skill_is_sound() {
        let text = SKILL.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let flows = folder.path().join(".takt/workflows");
        std::fs::create_dir_all(&flows).unwrap();
        std::fs::write(flows.join("fix-and-review.yaml"), text).unwrap();
        let place = crate::cli::commands::ProjectPlace {
            here: folder.path().to_owned(),
            home: cuegate_runner::StateDir::new(folder.path()),
            builtins: None,
        };
        let location = place.locate("fix-and-review").unwrap();
        let definition = crate::cli::commands::load_with_defaults(&location, &[]).unwrap();
        assert!(
            definition.diagnostics.is_empty() && definition.flow.is_some(),
            "{:?}",
            definition.diagnostics
        );
    }
}
