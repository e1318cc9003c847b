//! Measures other programs on the same graphs, as far as they can express them: `agentproofx` checks reachability,
//! `costwright` bounds node executions. Neither reads our formats, so each gets the graph in its own format.

use std::{
    collections::BTreeSet,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use cuegate_flow::{
    analysis::variants::targets,
    checks::check,
    model::{Act, Flow, Target},
};
use cuegate_formats::{Options, PieceOptions, load_agent, load_piece};
use cuegate_testkit::large::{Flaw, Large, piece, registry};
use serde_json::json;

use super::process::{Taken, measured};

/// The pinned versions of the programs, so that comparisons are repeatable.
const PINNED: [(&str, &str); 2] = [("agentproofx", "0.3.1"), ("costwright", "0.2.15")];
/// The measured sizes.
const SIZES: [usize; 4] = [100, 1_000, 5_000, 10_000];
/// How often a process is measured, after one run to warm caches.
const ROUNDS: usize = 3;
/// A program that takes longer than this many milliseconds is not measured at larger sizes: some grow quadratically.
const MS_MAX: f64 = 8_000.0;
/// The Python driver.
const DRIVER: &str = include_str!("others.py");

/// Measures the programs, or prints why not. A failure is printed in its row and does not fail the benchmark.
pub(super) fn others(cuegate: &Path, target: &Path, place: &Path) -> Result<(), String> {
    let python = match installed(target) {
        Ok(python) => python,
        Err(problem) => {
            println!("\n{} and {} are not installed: {problem}\n", PINNED[0].0, PINNED[1].0);
            return Ok(());
        }
    };
    let driver = place.join("others.py");
    fs::write(&driver, DRIVER).map_err(|error| format!("failed to write the driver: {error}"))?;
    println!("\n| graph | program | process ms | MiB | inside ms | answer |");
    println!("|---|---|---:|---:|---:|---|");
    for (format, make) in [("registry", registry as fn(usize, Flaw) -> Large), ("piece", piece)] {
        let mut slow: BTreeSet<&str> = BTreeSet::new();
        for size in SIZES {
            let made = make(size, Flaw::None);
            let graph = format!("{format} of {}", made.steps);
            let flow = flow_of(&made)?;
            let folder = place.join(format!("others-{format}-{size}"));
            let path =
                made.write(&folder).map_err(|error| format!("failed to write a definition: {error}"))?;
            for command in ["check", "price"] {
                let taken = measured(cuegate, &[command, &path.display().to_string()], &folder, ROUNDS, 0)?;
                row(&graph, &format!("cuegate {command}"), taken, None, "reads all files of the definition");
            }
            for (program, _) in PINNED {
                if slow.contains(program) {
                    println!("| {graph} | {program} | too long | | | |");
                    continue;
                }
                let graph_file = written(program, &flow, &folder)?;
                match one(&python, &driver, program, &graph_file, &folder) {
                    Ok((taken, inside, answer)) => {
                        row(&graph, program, taken, Some(inside), &answer);
                        if taken.ms > MS_MAX {
                            slow.insert(program);
                        }
                    }
                    Err(problem) => println!("| {graph} | {program} | | | | {problem} |"),
                }
            }
            fs::remove_dir_all(&folder).map_err(|error| format!("failed to remove the project: {error}"))?;
        }
    }
    println!();
    Ok(())
}

fn row(graph: &str, program: &str, taken: Taken, inside: Option<f64>, answer: &str) {
    let inside = inside.map_or_else(String::new, |ms| format!("{ms:.1}"));
    println!("| {graph} | {program} | {:.1} | {:.0} | {inside} | {answer} |", taken.ms, taken.mib);
}

/// The Python of a virtual environment in the target folder with both programs.
fn installed(target: &Path) -> Result<PathBuf, String> {
    let environment = target.join("bench-python");
    let python = environment.join("bin/python");
    let run = |program: &Path, args: &[&str]| {
        let output = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("failed to start `{}`: {error}", program.display()))?;
        let told = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
        if output.status.success() { Ok(()) } else { Err(told) }
    };
    let wanted: Vec<String> = PINNED.iter().map(|(name, version)| format!("{name}=={version}")).collect();
    let has = "import importlib.metadata as m, sys; sys.exit(any('=='.join([n, m.version(n)]) != w for w in sys.argv[1:] \
               for n in [w.split('==')[0]]))";
    let args: Vec<&str> = ["-c", has].into_iter().chain(wanted.iter().map(String::as_str)).collect();
    if run(&python, &args).is_ok() {
        return Ok(python);
    }
    run(Path::new("python3"), &["-m", "venv", &environment.display().to_string()])?;
    let mut args = vec!["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"];
    args.extend(wanted.iter().map(String::as_str));
    run(&python, &args)?;
    Ok(python)
}

/// Measures one program on one graph, as a process and within a process, and returns its answer.
fn one(
    python: &Path,
    driver: &Path,
    program: &str,
    graph: &Path,
    dir: &Path,
) -> Result<(Taken, f64, String), String> {
    let (driver, graph) = (driver.display().to_string(), graph.display().to_string());
    let taken = measured(python, &[&driver, program, &graph, "1"], dir, ROUNDS, 0)?;
    let rounds = if taken.ms > MS_MAX { "1" } else { "3" };
    let output = Command::new(python)
        .args([&driver, program, &graph, rounds])
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("failed to start it: {error}"))?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = told.lines();
    let inside = lines.next().and_then(|line| line.parse().ok()).ok_or("it printed nothing")?;
    Ok((taken, inside, lines.next().unwrap_or_default().to_owned()))
}

/// The flow of a definition.
fn flow_of(made: &Large) -> Result<Flow, String> {
    let files = made.bytes();
    let loaded = if made.path.ends_with(".yaml") {
        load_piece(&files, &PieceOptions { file: made.path.clone(), ..PieceOptions::default() })
    } else {
        load_agent(&files, &Options { agent_dir: made.path.clone(), ..Options::default() })
    };
    let checked = check(loaded.draft);
    checked
        .flow
        .ok_or_else(|| format!("the generated definition has errors: {:?}", checked.diagnostics.first()))
}

/// The edges of the graph by step index; `None` is the end. Members of a parallel step are nodes between it and its
/// targets.
fn edges(flow: &Flow) -> BTreeSet<(usize, Option<usize>)> {
    let mut edges = BTreeSet::new();
    for (at, step) in flow.steps.iter().enumerate() {
        let mut from = vec![at];
        if let Act::All { members, .. } = &step.act {
            from = members.iter().map(|member| member.0 as usize).collect();
            edges.extend(from.iter().map(|member| (at, Some(*member))));
        }
        for edge in &step.edges {
            let ends = matches!(edge.to, Target::End(_)).then_some(None);
            let to = targets(edge).into_iter().map(|to| Some(to.0 as usize)).chain(ends);
            edges.extend(to.flat_map(|to| from.iter().map(move |from| (*from, to))));
        }
    }
    edges
}

/// Writes the graph in the format of a program.
fn written(program: &str, flow: &Flow, folder: &Path) -> Result<PathBuf, String> {
    let (name, text) = match program {
        "costwright" => ("graph.py", as_python(flow)),
        _ => ("graph.json", as_graph(flow)),
    };
    let path = folder.join(name);
    fs::write(&path, text).map_err(|error| format!("failed to write a graph: {error}"))?;
    Ok(path)
}

fn as_graph(flow: &Flow) -> String {
    let name = |at: usize| &*flow.steps[at].name;
    let end = |to: Option<usize>| to.map_or("@end", name);
    let nodes = (0..flow.steps.len()).map(|at| json!({"id": name(at), "kind": "llm", "label": name(at)}));
    let outside = [json!({"id": "@start", "kind": "entry"}), json!({"id": "@end", "kind": "exit"})];
    let first = [json!({"source": "@start", "target": name(flow.entry.0 as usize)})];
    let edges = edges(flow)
        .into_iter()
        .map(|(from, to)| json!({"source": name(from), "target": end(to), "kind": "conditional"}));
    json!({"name": "large", "framework": "manual", "entry_id": "@start", "exit_ids": ["@end"],
        "nodes": nodes.chain(outside).collect::<Vec<_>>(), "edges": first.into_iter().chain(edges).collect::<Vec<_>>()})
    .to_string()
}

/// A LangGraph source, which is never executed: nodes, edges with the values that select them, and the limit.
fn as_python(flow: &Flow) -> String {
    let name = |at: usize| &*flow.steps[at].name;
    let mut text =
        "from langgraph.graph import END, START, StateGraph\n\ngraph = StateGraph(dict)\n".to_owned();
    for at in 0..flow.steps.len() {
        let _ = writeln!(text, "graph.add_node({:?}, work)", name(at));
    }
    let _ = writeln!(text, "graph.add_edge(START, {:?})", name(flow.entry.0 as usize));
    let edges: Vec<(usize, Option<usize>)> = edges(flow).into_iter().collect();
    for group in edges.chunk_by(|one, other| one.0 == other.0) {
        let to = group.iter().map(|(_, to)| to.map_or("END".to_owned(), |to| format!("{:?}", name(to))));
        let cases: Vec<String> = to.enumerate().map(|(at, to)| format!("\"o{at}\": {to}")).collect();
        let _ = writeln!(
            text,
            "graph.add_conditional_edges({:?}, route, {{{}}})",
            name(group[0].0),
            cases.join(", ")
        );
    }
    let limit = flow.limits.iterations_max;
    let _ = writeln!(text, "graph.compile().invoke({{}}, {{\"recursion_limit\": {limit}}})");
    text
}
