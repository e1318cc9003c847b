//! Today's spelling of a workflow that was written for an older version of TAKT. The text is edited in its places, so that
//! comments and layout stay.

use std::ops::Range;

use cuegate_flow::diagnostics::{Diagnostic, FileId, Sources, Span};

use super::compose::items_of_list;
use super::read::is_path;
use crate::codes;
use crate::findings::Findings;
use crate::values::json::{Entry, Json, Kind};
use crate::values::yaml;

/// A workflow in today's spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpgradedWorkflow {
    pub text: String,
    /// How many places were changed.
    pub changes: usize,
    /// What today's TAKT refuses and what cannot be spelled otherwise: the line, from 1, and what to do.
    pub left: Vec<(usize, String)>,
}

/// Spells a workflow as TAKT does today.
///
/// # Errors
/// What is wrong with the YAML.
pub fn upgrade_takt_workflow(path: &str, text: &str) -> Result<UpgradedWorkflow, (Vec<Diagnostic>, Sources)> {
    let mut sources = Sources::default();
    let file: FileId = sources.add(path, text);
    let found = Findings::default();
    let root = yaml::parse(text, file, &found).filter(|root| {
        let is_object = matches!(root.kind, Kind::Object(_));
        if !is_object {
            let finding = Diagnostic::error(codes::WRONG_TYPE, root.span, "a workflow is a mapping");
            found.push(finding.hint("name a file with keys such as `name` and `steps`"));
        }
        is_object
    });
    let Some(root) = root else { return Err((found.into_parts().0, sources)) };
    let mut upgrade = Upgrade { text, edits: Vec::new(), left: Vec::new() };
    upgrade.upgrade_workflow(&root);
    Ok(upgrade.apply())
}

/// Keys of a workflow, of a step, and of the judge of a monitor that have another name today.
const OF_WORKFLOW: [(&str, &str); 5] = [
    ("movements", "steps"),
    ("initial_movement", "initial_step"),
    ("max_movements", "max_steps"),
    ("max_iterations", "max_steps"),
    ("piece_config", "workflow_config"),
];
const OF_STEP: [(&str, &str); 3] =
    [("agent", "persona"), ("agent_name", "persona_name"), ("review_completion", "completion_retry")];

/// Keys that today's TAKT refuses, with what to do.
const REFUSED: [(&str, &str); 5] = [
    ("provider", "TAKT refuses `provider` in a workflow today: move it to `runtime.yaml`"),
    ("model", "TAKT refuses `model` in a workflow today: move it to `runtime.yaml`"),
    ("provider_options", "TAKT refuses `provider_options` in a workflow today: move it to `runtime.yaml`"),
    ("allowed_tools", "TAKT takes tools from `capabilities` today, which name a file of `provider-options`"),
    ("answer_agent", "nothing reads `answer_agent` today: remove it"),
];

/// Placeholders of instructions that have another name today.
const PLACEHOLDERS: [(&str, &str); 3] = [
    ("{movement_iteration}", "{step_iteration}"),
    ("{max_iterations}", "{max_steps}"),
    ("{max_movements}", "{max_steps}"),
];

/// Modes by their names today. `default` of Claude Code says nothing more than `edit`.
const MODES: [(&str, &str); 5] = [
    ("acceptEdits", "edit"),
    ("bypassPermissions", "full"),
    ("plan", "readonly"),
    ("edit", "edit"),
    ("full", "full"),
];

/// The edits of one text.
struct Upgrade<'t> {
    text: &'t str,
    edits: Vec<(Range<usize>, String)>,
    left: Vec<(usize, String)>,
}

impl<'t> Upgrade<'t> {
    fn upgrade_workflow(&mut self, root: &Json) {
        for (older, today) in OF_WORKFLOW {
            self.rename_key(root, older, today);
        }
        self.note_refused_keys(root);
        if let Some(tags) = root.entry("tags") {
            self.leave(tags.key_span, "TAKT knows no `tags` of a workflow today: give them to its steps");
        }
        for config in ["workflow_config", "piece_config"].into_iter().filter_map(|key| root.get(key)) {
            self.note_refused_keys(config);
        }
        for section in ["instructions", "report_formats"] {
            for text in root.get(section).iter().flat_map(|all| all.pairs()) {
                self.rename_placeholders(&text.value);
            }
        }
        for key in ["steps", "movements"] {
            for step in root.get(key).map(items_of_list).unwrap_or_default() {
                self.upgrade_step(step);
            }
        }
        for monitor in root.get("loop_monitors").map(items_of_list).unwrap_or_default() {
            if let Some(judge) = monitor.get("judge") {
                self.upgrade_agent(judge);
            }
        }
    }

    fn upgrade_step(&mut self, step: &Json) {
        self.upgrade_agent(step);
        if let Some(mode) = step.entry("permission_mode") {
            self.upgrade_mode(step, mode);
        }
        if let Some(report) = step.entry("report")
            && step.entry("output_contracts").is_none()
        {
            self.nest_report(report);
        }
        let members = step.get("parallel").into_iter().flat_map(|parallel| match &parallel.kind {
            Kind::Object(entries) => {
                entries.iter().flat_map(|entry| items_of_list(&entry.value)).collect::<Vec<_>>()
            }
            _ => items_of_list(parallel).iter().collect(),
        });
        for member in members {
            self.upgrade_step(member);
        }
    }

    /// Upgrades what steps and judges share.
    fn upgrade_agent(&mut self, of: &Json) {
        for (older, today) in OF_STEP {
            self.rename_key(of, older, today);
        }
        self.note_refused_keys(of);
        let completion = ["completion_retry", "review_completion"].into_iter().find_map(|key| of.get(key));
        let texts = ["instruction", "instruction_template"].into_iter().filter_map(|key| of.get(key));
        let texts = texts.chain(completion.and_then(|completion| completion.get("retry_instruction")));
        texts.for_each(|text| self.rename_placeholders(text));
        for report in of
            .get("output_contracts")
            .and_then(|all| all.get("report"))
            .map(items_of_list)
            .into_iter()
            .flatten()
        {
            ["format", "order"]
                .into_iter()
                .filter_map(|key| report.get(key))
                .for_each(|text| self.rename_placeholders(text));
        }
        if let Some(template) = of.entry("instruction_template") {
            self.upgrade_instruction(of, template);
        }
        for rule in of.get("rules").map(items_of_list).unwrap_or_default() {
            self.upgrade_rule(rule);
        }
    }

    /// `instruction_template` is always a text, of which a word alone is a name as an `instruction`.
    fn upgrade_instruction(&mut self, of: &Json, template: &Entry) {
        if of.entry("instruction").is_some() {
            let what = "`instruction_template` holds, so `instruction` beside it has no effect: remove it, and then rename \
                        `instruction_template`";
            return self.leave(template.key_span, what);
        }
        let word = template.value.as_text().filter(|text| is_path(text));
        let Some(word) = word.filter(|_| !self.slice(template.value.span).contains('\n')) else {
            return self.rename_key(of, "instruction_template", "instruction");
        };
        let Some(value) = self.own_value(template) else { return self.leave_alias(template) };
        if self.is_in_flow(of) || self.text[value.clone()].starts_with(['|', '>']) {
            return self.leave(
                template.key_span,
                "a word alone is the name of a file as an `instruction`: write a sentence",
            );
        }
        self.rename_key(of, "instruction_template", "instruction");
        let indent = self.column(template.key_span) + 2;
        // A comment behind the word stays behind the mark of the block.
        let rest = self.text[value.end..].split('\n').next().unwrap_or_default();
        let block = format!("|{}\n{}{}", rest.trim_end(), " ".repeat(indent), word.trim());
        self.edit(value.start..value.end + rest.trim_end().len(), block);
    }

    /// `when: EXPR` is `condition: when(EXPR)`.
    fn upgrade_rule(&mut self, rule: &Json) {
        if let Some(when) = rule.entry("when")
            && rule.entry("condition").is_none()
            && let Some(expression) = when.value.scalar_text()
        {
            match self.own_value(when) {
                Some(value) => {
                    self.rename_key(rule, "when", "condition");
                    let line_end = if self.text[value.clone()].ends_with('\n') { "\n" } else { "" };
                    let expression = expression.split_whitespace().collect::<Vec<_>>().join(" ");
                    let quoted = format!("'when({})'{line_end}", expression.replace('\'', "''"));
                    self.edit(value, quoted);
                }
                None => self.leave_alias(when),
            }
        }
        let condition = rule
            .entry("condition")
            .filter(|entry| entry.value.as_text().is_some_and(|text| text.trim_start().starts_with("ai(")));
        if let Some(condition) = condition {
            self.leave(
                condition.value.span,
                "TAKT refuses `ai(\"…\")` today: write its text as the condition",
            );
        }
    }

    fn upgrade_mode(&mut self, step: &Json, mode: &Entry) {
        const TODAY: &str = "required_permission_mode";
        let Some(written) = mode.value.as_text().map(str::trim) else { return };
        if step.entry(TODAY).is_some() {
            return self
                .leave(mode.key_span, "`required_permission_mode` is there as well: remove one of them");
        }
        let value = self.own_value(mode);
        if written == "default" {
            return if value.is_some() { self.remove_entry(step, mode) } else { self.leave_alias(mode) };
        }
        match (MODES.iter().find(|(older, today)| *older == written && older != today), value) {
            (Some((_, today)), Some(value)) => self.edit(value, (*today).to_owned()),
            (Some(_), None) => return self.leave_alias(mode),
            (None, _) => {}
        }
        self.rename_key(step, "permission_mode", TODAY);
    }

    /// `report` is a list below `output_contracts` today.
    fn nest_report(&mut self, report: &Entry) {
        let value = &report.value;
        let key = report.key_span;
        let Some(range) = self.own_value(report) else { return self.leave_alias(report) };
        let written = with_todays_placeholders(&self.text[range.clone()]);
        let is_flow = written.starts_with(['[', '{']) || matches!(value.kind, Kind::Text(_));
        let is_far = self.text[key.end as usize..range.start].contains('#');
        if is_flow && (is_far || written.starts_with(['|', '>'])) {
            return self
                .leave(key, "write the report in the line of its key, and then again `check --upgrade`");
        }
        let list = match &value.kind {
            Kind::Text(text) => format!("[{{ name: {} }}]", quote_in_flow(&written, text)),
            Kind::Object(_) => format!("[{written}]"),
            Kind::List(_) => written,
            _ => return,
        };
        if is_flow {
            let whole = key.start as usize..range.end;
            return self.edit(whole, format!("output_contracts: {{ report: {list} }}"));
        }
        let column = self.column(key);
        let (before, after) = self.text.split_at(key.end as usize);
        let rest_of_line = after.split('\n').next().unwrap_or_default();
        let body_start = before.len() + rest_of_line.len() + 1;
        let is_list = matches!(value.kind, Kind::List(_));
        let body = self.block_below(body_start, column, is_list);
        let indent = " ".repeat(column);
        let mut whole = format!("output_contracts:\n{indent}  report{rest_of_line}");
        let lines = with_todays_placeholders(&self.text[body.clone()]);
        let lines = lines.lines().map(str::to_owned).collect::<Vec<_>>();
        let is_content = |line: &&String| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        let own =
            lines.iter().find(is_content).map_or(column + 2, |line| line.len() - line.trim_start().len());
        let mut is_first = !is_list;
        for line in lines {
            whole.push('\n');
            if line.trim().is_empty() {
                continue;
            }
            if is_list {
                whole.push_str(&format!("  {line}"));
                continue;
            }
            // The one report becomes an item of the list.
            let inner = line.len() - line.trim_start().len();
            let mark = match (is_first, is_content(&&line)) {
                (true, true) => "- ",
                (true, false) => "",
                (false, _) => "  ",
            };
            is_first = is_first && mark != "- ";
            whole.push_str(&format!(
                "{indent}    {mark}{}{}",
                " ".repeat(inner.saturating_sub(own)),
                line.trim_start()
            ));
        }
        self.edit(key.start as usize..body.end.max(key.end as usize), whole);
    }

    /// The lines below a key that belong to it, from `start`, without empty ones and comments at their end.
    fn block_below(&self, start: usize, column: usize, is_list: bool) -> Range<usize> {
        let (mut end, mut at) = (start.min(self.text.len()), start);
        for line in self.text.get(start..).unwrap_or_default().split_inclusive('\n') {
            let content = line.trim();
            let indent = line.len() - line.trim_start().len();
            let is_below = indent > column || (is_list && indent == column && content.starts_with('-'));
            // A comment belongs to the list if an item follows.
            if !content.is_empty() && !is_below && !content.starts_with('#') {
                break;
            }
            at += line.len();
            if is_below && !content.is_empty() {
                end = at - (line.len() - line.trim_end_matches(['\n', '\r']).len());
            }
        }
        start.min(end)..end
    }

    /// Notes keys that TAKT refuses today.
    fn note_refused_keys(&mut self, of: &Json) {
        for (entry, what) in REFUSED.into_iter().filter_map(|(key, what)| Some((of.entry(key)?, what))) {
            self.leave(entry.key_span, what);
        }
    }

    fn rename_key(&mut self, of: &Json, older: &str, today: &str) {
        let Some(entry) = of.entry(older) else { return };
        if of.entry(today).is_some() {
            return self.leave(entry.key_span, &format!("`{today}` is there as well: remove one of them"));
        }
        let span = entry.key_span;
        self.edit(span.start as usize..span.end as usize, today.to_owned());
    }

    fn rename_placeholders(&mut self, text: &Json) {
        if let Kind::List(items) = &text.kind {
            return items.iter().for_each(|item| self.rename_placeholders(item));
        }
        if text.as_text().is_none() {
            return;
        }
        let start = text.span.start as usize;
        for (older, today) in PLACEHOLDERS {
            for (at, _) in self.slice(text.span).match_indices(older) {
                self.edit(start + at..start + at + older.len(), today.to_owned());
            }
        }
    }

    /// The range of a value in the text, with the `|` or `>` of a block scalar. `None` for an alias or a value with an
    /// anchor, because other keys use that value too.
    fn own_value(&self, entry: &Entry) -> Option<Range<usize>> {
        let (after_key, span) = (entry.key_span.end as usize, entry.value.span);
        let between = self.text.get(after_key..span.start as usize)?;
        let code = between.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let code = code.collect::<Vec<_>>().concat();
        let mark = code.trim_start_matches(['"', '\'']).trim_start().strip_prefix(':')?.trim_start();
        if mark.starts_with(['*', '&', '!']) {
            return None;
        }
        let start = match mark.starts_with(['|', '>']) {
            true => after_key + between.find(['|', '>'])?,
            false => span.start as usize,
        };
        Some(start..span.end as usize)
    }

    fn leave_alias(&mut self, entry: &Entry) {
        self.leave(entry.key_span, "its value has an anchor or an alias: write the value itself");
    }

    /// Removes a key with its value; its comment stays.
    fn remove_entry(&mut self, of: &Json, entry: &Entry) {
        let (mut start, mut end) = (entry.key_span.start as usize, entry.value.span.end as usize);
        let after = &self.text[end..];
        if self.is_in_flow(of) {
            let comma = after.len() - after.trim_start().len();
            match after.trim_start().strip_prefix(',') {
                Some(rest) => end += comma + 1 + (rest.len() - rest.trim_start_matches(' ').len()),
                None => start = self.text[..start].trim_end().trim_end_matches(',').len(),
            }
        } else {
            let rest = after.split('\n').next().unwrap_or_default();
            let begin = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
            // The first key of a step is behind a dash.
            let is_alone = self.text[begin..start].trim().is_empty();
            if rest.trim().is_empty() && is_alone {
                (start, end) = (begin, (end + rest.len() + 1).min(self.text.len()));
            } else if is_alone {
                end += rest.len() - rest.trim_start().len();
            } else {
                return self
                    .leave(entry.key_span, "`permission_mode: default` says nothing today: remove it");
            }
        }
        self.edit(start..end, String::new());
    }

    fn slice(&self, span: Span) -> &'t str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// Whether an object is written in braces.
    fn is_in_flow(&self, of: &Json) -> bool {
        self.slice(of.span).starts_with('{')
    }

    /// How many characters are before a place in its line.
    fn column(&self, span: Span) -> usize {
        let before = &self.text[..span.start as usize];
        before[before.rfind('\n').map_or(0, |at| at + 1)..].chars().count()
    }

    /// Adds an edit; a place that an alias repeats is edited once.
    fn edit(&mut self, range: Range<usize>, with: String) {
        let with = match self.text.contains("\r\n") {
            true => with.replace('\r', "").replace('\n', "\r\n"),
            false => with,
        };
        if !self.edits.iter().any(|(known, _)| *known == range) {
            self.edits.push((range, with));
        }
    }

    fn leave(&mut self, at: Span, what: &str) {
        let line = self.text[..at.start as usize].matches('\n').count() + 1;
        if !self.left.iter().any(|left| *left == (line, what.to_owned())) {
            self.left.push((line, what.to_owned()));
        }
    }

    fn apply(mut self) -> UpgradedWorkflow {
        self.edits.sort_by_key(|(range, _)| range.start);
        let (mut text, mut at, mut changes) = (String::new(), 0, 0);
        for (range, with) in self.edits {
            // What is inside of an edited place was written with it.
            if range.start < at {
                continue;
            }
            text.push_str(&self.text[at..range.start]);
            text.push_str(&with);
            at = range.end;
            changes += 1;
        }
        text.push_str(&self.text[at..]);
        self.left.sort();
        UpgradedWorkflow { text, changes, left: self.left }
    }
}

/// A text with the names of today for its placeholders.
fn with_todays_placeholders(text: &str) -> String {
    PLACEHOLDERS.iter().fold(text.to_owned(), |text, (older, today)| text.replace(older, today))
}

/// A text as it is written, or quoted where braces and brackets would end it.
fn quote_in_flow(written: &str, text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ' ');
    match written.starts_with(['"', '\'']) || written.chars().all(is_plain) {
        true => written.to_owned(),
        false => format!("'{}'", with_todays_placeholders(text).replace('\'', "''")),
    }
}
