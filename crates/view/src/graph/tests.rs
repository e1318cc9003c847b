//! Graphs of the test flows.

#[cfg(test)]
pub(crate) mod overlap;

use cuegate_flow::{
    diagnostics::{Diagnostic, Severity, Span},
    model::{DanglingTarget, Outcome, Target},
};
use insta::assert_snapshot;

use super::{
    Graph, graph_json, layout::lay_out_graph, model::NodeKind, render_dot, render_mermaid, render_svg,
};
use crate::testing::{piece, registry};

fn marked() -> Graph {
    let findings = [
        Diagnostic::warning("self-next", Span::default(), "m").step("initial.fix"),
        Diagnostic::error("no-way-to-end", Span::default(), "m").step("initial.fix"),
        Diagnostic {
            severity: Severity::Note,
            ..Diagnostic::warning("a-note", Span::default(), "m").step("initial.fix")
        },
        Diagnostic::warning("unused-definition", Span::default(), "m"),
    ];
    Graph::new(&registry(), &findings)
}

#[test]
fn registry_as_mermaid() {
    assert_snapshot!(render_mermaid(&marked()), @r#"
    flowchart TD
      notes["iterator<br/>at most 8 iterations<br/>completed when the flow ends<br/>all steps: abort → @aborted<br/>warning: unused-definition"]
      n0["initial.fix<br/>Understand the issue<br/>error: no-way-to-end<br/>warning: self-next"]
      n1["continuation.fix<br/>Fix it"]
      n2["closure.fix<br/>Close"]
      n3{{"closure.fix/validators"}}
      n4(("@completed"))
      n5(("@failed"))
      n0 -->|"next"| n1
      n0 -->|"repeat"| n0
      n1 -->|"next, next = again"| n0
      n1 -->|"next, else"| n1
      n1 -->|"handoff"| n2
      n2 -->|"closing"| n3
      n3 -->|"all pass"| n4
      n3 ==>|"• tests fails (≤ 2×)<br/>• clean fails (≤ 2×)"| n1
      n3 ==>|"• tests fails (≤ 2×)<br/>• clean fails (≤ 2×)"| n2
      n3 -->|"• tests fails<br/>• clean fails"| n5
      classDef entry stroke-width:3px
      classDef error stroke:#b3261e,stroke-width:3px
      classDef warning stroke:#8a5a00,stroke-width:2px
      classDef notes fill:none,stroke-dasharray:3 3
      class n0 entry
      class n0 error
      class notes notes
    "#);
}

#[test]
fn piece_as_mermaid() {
    assert_snapshot!(render_mermaid(&Graph::new(&piece(), &[])), @r#"
    flowchart TD
      notes["review<br/>at most 12 iterations<br/>completed when the flow ends<br/>a judge decides answers without a readable outcome"]
      n0["plan"]
      n1[["reviewers"]]
      n2["security"]
      n3["style"]
      n4["fix"]
      n5{"monitor:reviewers+fix"}
      n6[/"ask_user"/]
      n7(("@completed"))
      n0 -->|"ready"| n1
      n0 -->|"unclear"| n6
      n1 -.-> n2
      n1 -.-> n3
      n1 -->|"all(#34;approved#34;)"| n7
      n1 -->|"any(#34;needs_fix#34;)"| n4
      n4 -->|"done"| n1
      n5 -->|"healthy"| n1
      n5 -->|"stuck"| n0
      n6 -->|"answered"| n0
      n4 -.->|"after 2 rounds"| n5
      classDef entry stroke-width:3px
      classDef error stroke:#b3261e,stroke-width:3px
      classDef warning stroke:#8a5a00,stroke-width:2px
      classDef notes fill:none,stroke-dasharray:3 3
      class n0 entry
      class notes notes
    "#);
}

#[test]
fn piece_as_dot() {
    assert_snapshot!(render_dot(&Graph::new(&piece(), &[])), @r#"
    digraph "review" {
      graph [fontname="Helvetica"]
      node [fontname="Helvetica" shape=box style=rounded]
      edge [fontname="Helvetica" fontsize=10]
      label="review\nat most 12 iterations\ncompleted when the flow ends\na judge decides answers without a readable outcome"
      n0 [label="plan" penwidth=3]
      n1 [label="reviewers" shape=box peripheries=2]
      n2 [label="security"]
      n3 [label="style"]
      n4 [label="fix"]
      n5 [label="monitor:reviewers+fix" shape=diamond]
      n6 [label="ask_user" shape=parallelogram]
      n7 [label="@completed" shape=doublecircle]
      n0 -> n1 [label="ready"]
      n0 -> n6 [label="unclear"]
      n1 -> n2 [label="" style=dashed]
      n1 -> n3 [label="" style=dashed]
      n1 -> n7 [label="all(\"approved\")"]
      n1 -> n4 [label="any(\"needs_fix\")"]
      n4 -> n1 [label="done"]
      n5 -> n1 [label="healthy"]
      n5 -> n0 [label="stuck"]
      n6 -> n0 [label="answered"]
      n4 -> n5 [label="after 2 rounds" style=dashed]
      subgraph "cluster_1" { label="reviewers" n2; n3 }
    }
    "#);
}

#[test]
fn registry_as_json() {
    assert_snapshot!(serde_json::to_string(&graph_json(&marked())).unwrap(), @r#"{"schema":"cuegate/graph/v1","name":"iterator","dialect":"registry-closing","notes":["at most 8 iterations","completed when the flow ends","all steps: abort → @aborted","warning: unused-definition"],"nodes":[{"name":"initial.fix","title":"Understand the issue","kind":"work","entry":true,"parent":null,"findings":[{"severity":"error","code":"no-way-to-end"},{"severity":"warning","code":"self-next"}]},{"name":"continuation.fix","title":"Fix it","kind":"work","entry":false,"parent":null,"findings":[]},{"name":"closure.fix","title":"Close","kind":"work","entry":false,"parent":null,"findings":[]},{"name":"closure.fix/validators","title":null,"kind":"commands","entry":false,"parent":null,"findings":[]},{"name":"@completed","title":null,"kind":"completed","entry":false,"parent":null,"findings":[]},{"name":"@failed","title":null,"kind":"failed","entry":false,"parent":null,"findings":[]}],"links":[{"from":"initial.fix","to":"continuation.fix","line":"goes","labels":["next"]},{"from":"initial.fix","to":"initial.fix","line":"goes","labels":["repeat"]},{"from":"continuation.fix","to":"initial.fix","line":"goes","labels":["next, next = again"]},{"from":"continuation.fix","to":"continuation.fix","line":"goes","labels":["next, else"]},{"from":"continuation.fix","to":"closure.fix","line":"goes","labels":["handoff"]},{"from":"closure.fix","to":"closure.fix/validators","line":"goes","labels":["closing"]},{"from":"closure.fix/validators","to":"@completed","line":"goes","labels":["all pass"]},{"from":"closure.fix/validators","to":"continuation.fix","line":"remedy","labels":["tests fails (≤ 2×)","clean fails (≤ 2×)"]},{"from":"closure.fix/validators","to":"closure.fix","line":"remedy","labels":["tests fails (≤ 2×)","clean fails (≤ 2×)"]},{"from":"closure.fix/validators","to":"@failed","line":"goes","labels":["tests fails","clean fails"]}]}"#);
}

/// Nodes do not overlap, every link has points, and everything lies within the graph.
#[test]
fn nodes_do_not_overlap() {
    for flow in [registry(), piece()] {
        let graph = Graph::new(&flow, &[]);
        let placed = lay_out_graph(&graph);
        for (index, area) in placed.nodes.iter().enumerate() {
            assert!(area.left() >= 0.0 && area.top() >= 0.0, "{area:?}");
            assert!(area.right() <= placed.width && area.bottom() <= placed.height, "{area:?}");
            for other in &placed.nodes[index + 1..] {
                let apart = area.right() <= other.left()
                    || other.right() <= area.left()
                    || area.bottom() <= other.top()
                    || other.bottom() <= area.top();
                assert!(apart, "{area:?} {other:?}");
            }
        }
        assert!(placed.links.iter().all(|course| course.points.len() >= 2));
        let parallel = graph.nodes.iter().filter(|node| node.kind == NodeKind::Parallel).count();
        assert_eq!(placed.groups.len(), parallel);
    }
}

#[test]
fn svg_is_self_contained_and_shows_findings() {
    let graph = marked();
    let picture = render_svg(&graph);
    for word in ["initial.fix", "@completed", "self-next", "no-way-to-end", "class=\"node entry error\""] {
        assert!(picture.contains(word), "{word}");
    }
    assert!(!picture.contains("a-note"));
    for outside in ["href", "@import", "<script", "url(http", "src="] {
        assert!(!picture.contains(outside), "{outside}");
    }
}

/// An unknown target is drawn under its written name, not as the step that replaces it.
#[test]
fn unknown_targets_are_drawn_under_their_written_name() {
    let mut flow = registry();
    flow.steps[0].edges[0].dangling = vec![DanglingTarget::to("continuation.fxi")];
    flow.steps[0].edges[1].dangling = vec![DanglingTarget::unread()];
    let selects =
        flow.steps[1].edges.iter_mut().find(|edge| matches!(edge.to, Target::Select { .. })).unwrap();
    selects.dangling = vec![DanglingTarget::to("continuation.fxi").of_case(&"other".into())];
    let graph = Graph::new(&flow, &[]);
    let text = render_mermaid(&graph);
    let unknown = graph.nodes.iter().position(|node| node.name == "continuation.fxi").unwrap();
    for line in [
        format!("n{unknown}>\"continuation.fxi<br/>no such step<br/>error: unknown-target\"]"),
        format!("n0 -->|\"next\"| n{unknown}"),
        format!("n1 -->|\"next, next = other\"| n{unknown}"),
        format!("n0 -->|\"repeat\"| n{}", unknown + 1),
    ] {
        assert!(text.contains(&line), "{line}\n{text}");
    }
    assert!(!text.contains("n0 -->|\"next\"| n1") && !text.contains("n0 -->|\"repeat\"| n0"), "{text}");
    assert!(text.contains("n1 -->|\"next, next = again\"| n0"), "its other ways are drawn: {text}");
    assert_eq!(graph_json(&graph)["nodes"][unknown]["kind"], "unknown");
    assert!(render_svg(&graph).contains("flag: no such step"));
}

#[test]
fn an_unknown_entry_is_drawn_under_its_written_name() {
    let mut flow = piece();
    flow.lost_entry = Some(DanglingTarget::to("paln"));
    let graph = Graph::new(&flow, &[]);
    let entries: Vec<&str> =
        graph.nodes.iter().filter(|node| node.entry).map(|node| node.name.as_str()).collect();
    assert_eq!(entries, ["paln"], "and not the one that stands in for it");
    let unknown = graph.nodes.iter().position(|node| node.name == "paln").unwrap();
    let text = render_mermaid(&graph);
    assert!(
        text.contains(&format!("n{unknown}>\"paln<br/>no such step<br/>error: unknown-target\"]")),
        "{text}"
    );
    assert!(text.contains(&format!("class n{unknown} entry")), "{text}");
    assert!(render_svg(&graph).contains("class=\"node entry error\""));
}

#[test]
fn a_monitor_that_never_fires_is_labelled_never() {
    let mut flow = piece();
    flow.monitors[0].cycle.reverse();
    assert!(render_mermaid(&Graph::new(&flow, &[])).contains("after 2 rounds"));
    let plan = flow.find("plan").unwrap();
    flow.monitors[0].cycle.insert(0, vec![plan]);
    let text = render_mermaid(&Graph::new(&flow, &[]));
    assert!(text.contains("-.->|\"never\"|") && !text.contains("after 2 rounds"), "{text}");
}

/// Percent signs and braces configure Mermaid, even in comments and labels.
#[test]
fn text_is_never_a_mermaid_directive() {
    let mut flow = registry();
    flow.steps[0].title = "%%{init: {'theme':'dark'}}%%".into();
    let finding = Diagnostic::warning("%%{x", Span::default(), "m");
    let text = render_mermaid(&Graph::new(&flow, &[finding]));
    assert!(!text.contains("%%{") && !text.contains("}%%") && !text.contains("{init"), "{text}");
    assert!(text.contains("#37;#37;#123;init: #123;'theme':'dark'#125;#125;#37;#37;"), "{text}");
    assert!(text.contains("<br/>warning: #37;#37;#123;x\"]\n"), "{text}");
    flow.steps[0].title = "$$x$$".into();
    let text = render_mermaid(&Graph::new(&flow, &[]));
    assert!(text.contains("#36;#8203;#36;x#36;#8203;#36;"), "two dollars start a formula: {text}");
}

/// Graphviz decodes HTML entities in labels.
#[test]
fn html_entities_are_escaped_in_dot() {
    let mut flow = registry();
    flow.steps[0].title = "&lt;x&gt;".into();
    assert!(render_dot(&Graph::new(&flow, &[])).contains("&amp;lt;x&amp;gt;"));
}

/// Directional characters make a name look like another one.
#[test]
fn directional_characters_are_spelled_out() {
    let mut flow = piece();
    flow.name = "re\u{202e}view\u{202c}".into();
    flow.steps[0].name = "pl\u{200f}an".into();
    flow.steps[0].title = "\u{2067}title\u{2069}".into();
    flow.steps[0].edges[0].on = Outcome::Named("re\u{202d}ady".into());
    let graph = Graph::new(&flow, &[Diagnostic::warning("no\u{61c}te", Span::default(), "m")]);
    for (form, text) in
        [("mermaid", render_mermaid(&graph)), ("dot", render_dot(&graph)), ("svg", render_svg(&graph))]
    {
        let turning = |letter| matches!(letter, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        assert!(!text.contains(turning), "{form}: {text}");
        for word in ["pl[U+200F]an", "[U+2067]title[U+2069]", "re[U+202D]ady", "no[U+061C]te"] {
            assert!(text.contains(word), "{form} without {word}: {text}");
        }
    }
    assert!(render_svg(&graph).contains("re[U+202E]view[U+202C]"));
    assert_eq!(graph_json(&graph)["nodes"][0]["name"], "pl\u{200f}an", "JSON keeps the written name");
}

#[test]
fn text_of_a_definition_is_escaped_in_all_formats() {
    let mut flow = registry();
    flow.name = "x\"]; click n0 \"javascript:0\" <script>&".into();
    flow.steps[0].title = "a\"]\n  n9[\"<img src=x onerror=y>#amp;`".into();
    let graph = Graph::new(&flow, &[]);
    assert_eq!(render_mermaid(&graph).lines().filter(|line| line.trim_start().starts_with("n9")).count(), 0);
    assert!(!render_mermaid(&graph).contains("<img"));
    assert!(!render_svg(&graph).contains("<img") && !render_svg(&graph).contains("<script"));
    let digraph = render_dot(&graph);
    assert!(digraph.starts_with("digraph \"x\\\"]; click n0 \\\"javascript:0\\\" <script>&amp;\" {\n"));
}

#[test]
fn text_of_a_definition_is_shown_verbatim() {
    let mut flow = piece();
    let texts = ["- dash **bold** _it_", "1. numbered $$x$$", "a_b 2. c - d", "U\u{fffe}\u{ffff}"];
    for (step, text) in flow.steps.iter_mut().zip(texts) {
        step.title = text.into();
    }
    let graph = Graph::new(&flow, &[]);
    let mermaid = render_mermaid(&graph);
    for shown in [
        "#45; dash #42;#42;bold#42;#42; #95;it#95;",
        "1#46; numbered #36;#8203;#36;x#36;#8203;#36;",
        "a_b 2. c - d",
    ] {
        assert!(mermaid.contains(shown), "{shown}\n{mermaid}");
    }
    let svg = render_svg(&graph);
    assert!(svg.contains("U\u{fffd}\u{fffd}") && !svg.contains(['\u{fffe}', '\u{ffff}']), "XML forbids them");
}

#[test]
fn an_end_with_many_links_is_repeated() {
    let mut flow = registry();
    let ends = |flow: &cuegate_flow::model::Flow| {
        render_svg(&Graph::new(flow, &[])).matches(">@failed</text>").count()
    };
    assert_eq!(ends(&flow), 1);
    let step = flow.steps[3].clone();
    for index in 0..6 {
        let name = format!("more-{index}");
        flow.steps.push(cuegate_flow::model::Step { name: name.into(), ..step.clone() });
    }
    assert_eq!(ends(&flow), 7);
    assert_eq!(render_mermaid(&Graph::new(&flow, &[])).matches("@failed").count(), 1);
}

#[test]
fn equal_findings_share_a_note() {
    let found = |code| Diagnostic::warning(code, Span::default(), "m");
    let graph = Graph::new(&registry(), &[found("step-name"), found("self-next"), found("step-name")]);
    let text = render_dot(&graph);
    assert!(text.contains("warning: self-next\\nwarning: step-name (2×)\""), "{text}");
}
