//! The graph of a flow: nodes, links and marks. Every output format is drawn from it.

use std::collections::BTreeMap;

use cuegate_flow::{
    analysis::flow_queries,
    diagnostics::{Diagnostic, Severity},
    model::{
        Act, Ask, DanglingTarget, Edge, Ending, Flow, Gate, MemberCommand, OutcomeReader, Role, Step, StepId,
        Target,
    },
};

use crate::{
    format::plural,
    show::{completion_rule, wording},
};

/// The graph of a flow.
#[derive(Debug, Clone)]
pub struct Graph {
    /// The flow's name.
    pub(super) name: String,
    /// The flow's format.
    pub(super) dialect: String,
    /// The steps in definition order, then the reachable ends. A judge that only decides an outcome is left out.
    pub(super) nodes: Vec<Node>,
    /// The links, in the order of their sources.
    pub(super) links: Vec<Link>,
    /// Notes about the whole flow.
    pub(super) notes: Vec<String>,
}

/// A step, or an end.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The step's name, or `@completed` and the like.
    pub(super) name: String,
    /// The title, when it differs from the name.
    pub(super) title: Option<String>,
    /// The kind, which decides the shape.
    pub(super) kind: NodeKind,
    /// Whether this is the entry.
    pub(super) entry: bool,
    /// The parallel step that it is a member of.
    pub(super) parent: Option<usize>,
    /// Codes of its errors and warnings, the most severe first.
    pub(super) marks: Vec<FindingMark>,
}

/// A finding about a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FindingMark {
    pub(super) severity: Severity,
    pub(super) code: &'static str,
}

impl FindingMark {
    /// The text in graphs.
    pub(super) fn words(&self) -> String {
        format!("{}: {}", self.severity.as_str(), self.code)
    }
}

impl Node {
    /// The highest severity of its marks.
    pub(super) fn gravest(&self) -> Option<Severity> {
        self.marks.first().map(|mark| mark.severity)
    }
}

/// The colour of a mark, in formats with a single theme.
pub(super) fn colour_of_severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "#b3261e",
        Severity::Warning | Severity::Note => "#8a5a00",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeKind {
    Work,
    Judge,
    Check,
    Parallel,
    Commands,
    Person,
    System,
    Completed,
    Aborted,
    Failed,
    /// A target that is no step.
    Unknown,
}

impl NodeKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            NodeKind::Work => "work",
            NodeKind::Judge => "judge",
            NodeKind::Check => "check",
            NodeKind::Parallel => "parallel",
            NodeKind::Commands => "commands",
            NodeKind::Person => "person",
            NodeKind::System => "system",
            NodeKind::Completed => "completed",
            NodeKind::Aborted => "aborted",
            NodeKind::Failed => "failed",
            NodeKind::Unknown => "unknown",
        }
    }
}

/// A link from one node to another.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Outcomes and bounds, one per line.
    pub(super) label: Vec<String>,
    /// The line style.
    pub(super) line: LinkStyle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinkStyle {
    /// A transition.
    Plain,
    /// A transition with a remedy prompt, after a failure.
    Remedy,
    /// An ask of a member, a judge or a monitor, before the transition.
    Asks,
}

impl LinkStyle {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            LinkStyle::Plain => "goes",
            LinkStyle::Remedy => "remedy",
            LinkStyle::Asks => "asks",
        }
    }
}

impl Graph {
    /// The graph of a flow; findings mark the steps that they name.
    ///
    /// Edges that the format adds to every step become one note instead of links.
    pub fn new(flow: &Flow, findings: &[Diagnostic]) -> Graph {
        let mut drawing = GraphBuilder { flow, nodes: Vec::new(), ends: BTreeMap::new(), links: Vec::new() };
        drawing.steps(findings);
        for (index, step) in flow.steps.iter().enumerate() {
            drawing.links_of(index, step);
        }
        drawing.monitors();
        drawing.entry();
        let mut notes = notes_of_flow(flow, findings);
        let GraphBuilder { nodes, links, .. } = drawing;
        let mut graph = Graph {
            name: flow.name.to_string(),
            dialect: flow.dialect.to_owned(),
            nodes,
            links: merge_links(links),
            notes: Vec::new(),
        };
        if graph.leave_out_judges() {
            notes.push("a judge decides answers without a readable outcome".to_owned());
        }
        graph.notes = notes;
        graph
    }

    /// The number of links.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// Repeats an end for each of its links when it has more than `most`: many lines to one node hide the flow.
    pub(super) fn with_ends_apart(mut self, most: usize) -> Graph {
        let is_end =
            |node: &Node| matches!(node.kind, NodeKind::Completed | NodeKind::Aborted | NodeKind::Failed);
        for end in (0..self.nodes.len()).filter(|at| is_end(&self.nodes[*at])).collect::<Vec<_>>() {
            let links: Vec<usize> = (0..self.links.len()).filter(|at| self.links[*at].to == end).collect();
            if links.len() > most {
                for at in links.into_iter().skip(1) {
                    self.links[at].to = self.nodes.len();
                    self.nodes.push(self.nodes[end].clone());
                }
            }
        }
        self
    }

    /// Leaves out judges without links of their own: one beside each step would hide the flow. Returns whether there
    /// were any.
    fn leave_out_judges(&mut self) -> bool {
        let leads = |index| self.links.iter().any(|link| link.from == index);
        let stays: Vec<bool> = (0..self.nodes.len())
            .map(|index| {
                let node = &self.nodes[index];
                node.kind != NodeKind::Judge || leads(index) || !node.marks.is_empty()
            })
            .collect();
        let place = |index: usize| stays[..index].iter().filter(|stays| **stays).count();
        self.links.retain(|link| stays[link.to]);
        for link in &mut self.links {
            (link.from, link.to) = (place(link.from), place(link.to));
        }
        let mut index = 0;
        self.nodes.retain(|_| {
            index += 1;
            stays[index - 1]
        });
        for node in &mut self.nodes {
            node.parent = node.parent.map(place);
        }
        stays.contains(&false)
    }
}

fn notes_of_flow(flow: &Flow, findings: &[Diagnostic]) -> Vec<String> {
    let iterations = plural(u64::from(flow.limits.iterations_max), "iteration");
    let mut notes =
        vec![format!("at most {iterations}"), completion_rule::describe_completion_rule(&flow.verdict)];
    notes.extend(crate::show::list_implied_edges(flow).into_iter().map(|way| format!("all steps: {way}")));
    let about_all =
        findings.iter().filter(|finding| finding.step.as_ref().is_none_or(|name| flow.find(name).is_none()));
    let about_all = about_all.filter(|finding| finding.severity != Severity::Note);
    let mut marks: BTreeMap<(u8, &str), (FindingMark, u64)> = BTreeMap::new();
    for finding in about_all {
        let mark = FindingMark { severity: finding.severity, code: finding.code };
        marks.entry((rank_of_severity(mark.severity), mark.code)).or_insert((mark, 0)).1 += 1;
    }
    notes.extend(marks.into_values().map(|(mark, count)| match count {
        1 => mark.words(),
        count => format!("{} ({count}×)", mark.words()),
    }));
    notes
}

struct GraphBuilder<'f> {
    flow: &'f Flow,
    nodes: Vec<Node>,
    ends: BTreeMap<String, usize>,
    links: Vec<Link>,
}

impl GraphBuilder<'_> {
    fn steps(&mut self, findings: &[Diagnostic]) {
        for (index, step) in self.flow.steps.iter().enumerate() {
            let mut marks: Vec<FindingMark> = findings
                .iter()
                .filter(|finding| finding.step.as_deref() == Some(&*step.name))
                .filter(|finding| finding.severity != Severity::Note)
                .map(|finding| FindingMark { severity: finding.severity, code: finding.code })
                .collect();
            marks.sort_by_key(|mark| (rank_of_severity(mark.severity), mark.code));
            marks.dedup();
            let title = (!step.title.is_empty() && step.title != step.name).then(|| step.title.to_string());
            self.nodes.push(Node {
                name: step.name.to_string(),
                title,
                kind: node_kind_of_step(step),
                entry: self.flow.entry.0 as usize == index,
                parent: None,
                marks,
            });
        }
        for (index, step) in self.flow.steps.iter().enumerate() {
            if let Act::All { members, .. } = &step.act {
                for member in members {
                    self.nodes[member.0 as usize].parent = Some(index);
                }
            }
        }
    }

    fn end(&mut self, ending: &Ending) -> usize {
        // All failures share a node: the links to it show the causes.
        let kind = match ending {
            Ending::Completed => NodeKind::Completed,
            Ending::Aborted => NodeKind::Aborted,
            Ending::Failed(_) => NodeKind::Failed,
        };
        let name = format!("@{}", kind.as_str());
        if let Some(index) = self.ends.get(&name) {
            return *index;
        }
        let index = self.nodes.len();
        self.nodes.push(Node {
            name: name.clone(),
            title: None,
            kind,
            entry: false,
            parent: None,
            marks: Vec::new(),
        });
        self.ends.insert(name, index);
        index
    }

    /// Adds nodes for targets of an edge that are no steps. Returns whether there are any; then the target of the edge
    /// is only a placeholder.
    fn dangling(&mut self, from: usize, edge: &Edge<StepId>, label: &str, line: LinkStyle) -> bool {
        for dangling in &edge.dangling {
            let to = self.unknown(dangling);
            let label = match (&dangling.case, &edge.to) {
                (Some(case), Target::Select { by, .. }) => {
                    format!("{label}, {} = {case}", wording::describe_selector(by))
                }
                _ => label.to_owned(),
            };
            self.link(from, to, label, line);
        }
        !edge.dangling.is_empty()
    }

    /// Marks an unknown entry as the entry, instead of the step that replaces it.
    fn entry(&mut self) {
        let Some(lost) = &self.flow.lost_entry else { return };
        let index = self.unknown(lost);
        self.nodes[self.flow.entry.0 as usize].entry = false;
        self.nodes[index].entry = true;
    }

    fn unknown(&mut self, dangling: &DanglingTarget) -> usize {
        let (name, title) = match &dangling.name {
            Some(name) => (name.to_string(), "no such step"),
            None => ("?".to_owned(), "leads nowhere"),
        };
        let known = |node: &Node| node.kind == NodeKind::Unknown && node.name == name;
        if let Some(index) = self.nodes.iter().position(known) {
            return index;
        }
        let marks =
            dangling.name.iter().map(|_| FindingMark { severity: Severity::Error, code: "unknown-target" });
        self.nodes.push(Node {
            title: Some(title.to_owned()),
            kind: NodeKind::Unknown,
            entry: false,
            parent: None,
            marks: marks.collect(),
            name,
        });
        self.nodes.len() - 1
    }

    fn link(&mut self, from: usize, to: usize, label: impl Into<String>, line: LinkStyle) {
        let label = Some(label.into()).filter(|label| !label.is_empty());
        self.links.push(Link { from, to, label: label.into_iter().collect(), line });
    }

    fn links_of(&mut self, from: usize, step: &Step<StepId>) {
        if let Act::All { members, width } = &step.act {
            let label =
                if (*width as usize) < members.len() { format!("{width} at a time") } else { String::new() };
            for (index, member) in members.iter().enumerate() {
                self.link(from, member.0 as usize, if index == 0 { &*label } else { "" }, LinkStyle::Asks);
            }
        }
        for selector in &step.selectors {
            self.link(from, selector.0 as usize, "selects", LinkStyle::Asks);
        }
        for judge in judges_of_step(step) {
            self.link(from, judge, "unclear", LinkStyle::Asks);
        }
        // A member retries by itself when its commands fail.
        if let Act::Ask(Ask { guard: Some(guard), .. }) = &step.act {
            for MemberCommand { validator, .. } in &guard.commands {
                let label = add_bound_to_label(format!("{} fails", validator.name), Some(guard.mends_max));
                self.link(from, from, label, LinkStyle::Remedy);
            }
        }
        for edge in step.edges.iter().filter(|edge| !edge.implied) {
            let label = add_bound_to_label(
                wording::name_of_outcome(step, &edge.on),
                edge.bound.map(|bound| bound.max),
            );
            let line = if edge.remedy.is_some() { LinkStyle::Remedy } else { LinkStyle::Plain };
            let stands_in = self.dangling(from, edge, &label, line);
            match &edge.to {
                Target::Step(_) | Target::End(_) if stands_in => {}
                Target::Step(to) => self.link(from, to.0 as usize, label, line),
                Target::End(ending) => {
                    let to = self.end(ending);
                    self.link(from, to, label, line);
                }
                Target::Origin { among } => {
                    for to in among {
                        self.link(from, to.0 as usize, label.clone(), line);
                    }
                }
                Target::Select { by, cases, default } => {
                    let by = wording::describe_selector(by);
                    for (value, to) in cases {
                        self.link(from, to.0 as usize, format!("{label}, {by} = {value}"), line);
                    }
                    if let Some(to) = default {
                        self.link(from, to.0 as usize, format!("{label}, else"), line);
                    }
                }
                Target::Jump { among, default, .. } => {
                    for to in among {
                        self.link(from, to.0 as usize, format!("{label}, named"), line);
                    }
                    if let Some(to) = default.filter(|to| !among.contains(to)) {
                        self.link(from, to.0 as usize, label, line);
                    }
                }
            }
        }
    }

    /// Links each monitor from the step that ends a round; a monitor that never fires is labelled `never`.
    fn monitors(&mut self) {
        let acting = flow_queries::mark_acting_monitors(self.flow);
        for (monitor, acts) in self.flow.monitors.iter().zip(acting) {
            let rounds = plural(u64::from(monitor.threshold), "round");
            let label = if acts { format!("after {rounds}") } else { "never".to_owned() };
            if let Some(last) = monitor.cycle.last().and_then(|stage| stage.last()) {
                self.link(last.0 as usize, monitor.judge.0 as usize, label, LinkStyle::Asks);
            }
        }
    }
}

/// The judges between the outcomes of a step.
fn judges_of_step(step: &Step<StepId>) -> Vec<usize> {
    let judges: Vec<StepId> = match &step.gate {
        Gate::Readers(readers) => readers
            .iter()
            .filter_map(|reader| match reader {
                OutcomeReader::Judge { step } => Some(*step),
                _ => None,
            })
            .collect(),
        Gate::Join { judges, .. } => judges.clone(),
        _ => Vec::new(),
    };
    judges.into_iter().map(|judge| judge.0 as usize).collect()
}

/// Merges links with the same nodes and style; the merged link has all labels.
fn merge_links(links: Vec<Link>) -> Vec<Link> {
    let mut merged: Vec<Link> = Vec::new();
    let mut at: BTreeMap<(usize, usize, LinkStyle), usize> = BTreeMap::new();
    for link in links {
        match at.get(&(link.from, link.to, link.line)) {
            Some(index) => {
                for label in link.label {
                    if !merged[*index].label.contains(&label) {
                        merged[*index].label.push(label);
                    }
                }
            }
            None => {
                at.insert((link.from, link.to, link.line), merged.len());
                merged.push(link);
            }
        }
    }
    merged
}

fn rank_of_severity(severity: Severity) -> u8 {
    match severity {
        Severity::Error => 0,
        Severity::Warning => 1,
        Severity::Note => 2,
    }
}

/// The label of an edge with its bound.
fn add_bound_to_label(label: String, max: Option<u32>) -> String {
    match max {
        None => label,
        Some(0) => label + " (never)",
        Some(max) => format!("{label} (≤ {max}×)"),
    }
}

fn node_kind_of_step(step: &Step<StepId>) -> NodeKind {
    match &step.act {
        Act::Ask(ask) => match ask.role {
            Role::Work => NodeKind::Work,
            Role::Judge => NodeKind::Judge,
            Role::Check => NodeKind::Check,
        },
        Act::All { .. } => NodeKind::Parallel,
        Act::Exec { .. } => NodeKind::Commands,
        Act::Person { .. } => NodeKind::Person,
        Act::System(_) => NodeKind::System,
    }
}
