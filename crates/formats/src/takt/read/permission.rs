//! Reads what an agent may do: its tools, whether it may change files, and whether that suffices for its work.

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::{Boundary, Permission, Tools, tools},
};

use super::gates::Gates;
use super::step::StepReader;
use crate::codes;
use crate::source::tool_names;
use crate::suggest::quote_names;
use crate::takt::compose::{as_list, items_of_list};
use crate::values::json::{Fields, Json, Kind, Text};

/// Tools by capability, for TAKT's own names.
const CAPABILITIES: [(&str, &[&str]); 3] = [
    ("readonly", &["Read", "Glob", "Grep", "Bash", "WebSearch", "WebFetch"]),
    ("edit", &["Read", "Glob", "Grep", "Edit", "Write", "Bash", "WebSearch", "WebFetch"]),
    ("enable-skills", &[]),
];

/// The permission modes, from the least to the most.
const MODES: [&str; 3] = ["readonly", "edit", "full"];

/// What modes were called before version 0.4. `default` was as no mode.
const OLDER_MODES: [(&str, &str); 2] = [("acceptEdits", "edit"), ("bypassPermissions", "full")];

/// The tools of an agent, as its step or its workflow lists them.
#[derive(Debug, Clone)]
pub(crate) struct ToolList {
    /// The key that lists them.
    key: &'static str,
    /// Whether they are those of the step's own `allowed_tools`, which imply nothing about files.
    is_own: bool,
    names: Vec<(Str, Span)>,
    span: Span,
}

impl ToolList {
    fn texts(&self) -> Vec<Text<'_>> {
        self.names.iter().map(|(text, span)| Text { text, span: *span }).collect()
    }

    /// The tools that only write.
    fn writing(&self) -> Vec<(&str, Span)> {
        let named = self.names.iter().map(|(name, span)| (&**name, *span));
        named.filter(|(name, _)| tools::only_writes(name)).collect()
    }

    fn to_tools(&self) -> Tools {
        match self.names.iter().any(|(name, _)| &**name == "*") {
            true => Tools::All,
            false => Tools::Only(self.names.iter().map(|(name, _)| name.clone()).collect()),
        }
    }
}

impl StepReader<'_, '_, '_> {
    /// Reads the tools of an agent: those of `allowed_tools`, else of `provider_options`, else of its capabilities, else of
    /// the capabilities of its workflow. `None` means all.
    pub(super) fn read_tool_list(&self, fields: &Fields<'_, '_>) -> Option<ToolList> {
        let of_options = self.read_tools_of_options(fields);
        let capabilities = fields.nullable("capabilities").map(|entry| &entry.value);
        if fields.nullable("allowed_tools").is_some() {
            return read_listed_tools(fields, "allowed_tools");
        }
        of_options.or_else(|| match capabilities {
            Some(names) => self.find_capabilities(names, fields),
            None => self.find_capabilities(self.sections.scope().root.get("capabilities")?, fields),
        })
    }

    /// Reads the tools among the options of a provider; the other options have no effect.
    fn read_tools_of_options(&self, fields: &Fields<'_, '_>) -> Option<ToolList> {
        let entry = fields.shunned("provider_options")?;
        self.notes.ignore_key(entry);
        let listed = entry.value.get("claude")?.get("allowed_tools")?;
        let names = read_names(listed, None, fields);
        Some(ToolList { key: "allowed_tools", is_own: false, names, span: listed.span })
    }

    /// The tools that a preset lists, or the ones that it extends: of several the last that lists some.
    fn find_listed_tools(&self, preset: &Json, seen: &mut Vec<String>) -> Option<Json> {
        if let Some(listed) = preset.get("claude").and_then(|claude| claude.get("allowed_tools")) {
            return Some(listed.clone());
        }
        let layers = &self.sections.scope().layers;
        for name in preset.get("extends").into_iter().flat_map(as_list).rev() {
            let path = name.as_text().map(str::trim).and_then(|name| {
                layers.find(self.files.loader, &["provider-options"], name, &[".yaml", ".yml"])
            });
            let Some(path) = path.filter(|path| !seen.contains(path)) else {
                let message = "`extends` names no preset that is there, or leads back to its own";
                let hint = "name another file of `provider-options`";
                self.files.loader.found.left_out(name.span, message.to_owned(), hint);
                continue;
            };
            seen.push(path.clone());
            let parent = self.files.parse(&path);
            if let Some(listed) = parent.and_then(|parent| self.find_listed_tools(&parent, seen)) {
                return Some(listed);
            }
        }
        None
    }

    /// Finds the tools of capabilities: in files of presets, else by TAKT's own names. A later name wins.
    fn find_capabilities(&self, names: &Json, fields: &Fields<'_, '_>) -> Option<ToolList> {
        let layers = &self.sections.scope().layers;
        let mut tools = None;
        for name in as_list(names) {
            let Some(written) = name.as_text().map(str::trim) else { continue };
            let path = layers.find(self.files.loader, &["provider-options"], written, &[".yaml", ".yml"]);
            let preset = path.as_ref().map(|path| self.files.parse(path));
            if matches!(preset, Some(None)) {
                self.notes.mark_refused();
            }
            let preset = preset.flatten();
            let listed = preset.as_ref().and_then(|preset| self.find_listed_tools(preset, &mut Vec::new()));
            let known = CAPABILITIES.iter().find(|(known, _)| *known == written);
            if let Some(listed) = listed {
                tools = Some(read_names(&listed, Some(name.span), fields));
            } else if let Some((_, listed)) = known.filter(|(_, listed)| !listed.is_empty()) {
                tools = Some(listed.iter().map(|tool| (Str::from(*tool), name.span)).collect());
            } else if known.is_none() && preset.is_none() {
                let message = format!("the capability `{written}` is not found");
                let hint = format!("it is looked for in {}", layers.places("provider-options", written));
                self.files.loader.found.left_out(name.span, message, &hint);
            }
        }
        Some(ToolList { key: "capabilities", is_own: false, names: tools?, span: names.span })
    }
}

/// Reads a key that lists tools.
pub(super) fn read_listed_tools(fields: &Fields<'_, '_>, key: &'static str) -> Option<ToolList> {
    let span = fields.nullable(key)?.value.span;
    let names = fields.texts(key)?;
    let names = names.iter().map(|name| (name.text.into(), name.span)).collect();
    Some(ToolList { key, is_own: true, names, span })
}

/// The texts of a list of tools, each once; `span` is the place that names the list, if it is in another file.
fn read_names(listed: &Json, span: Option<Span>, fields: &Fields<'_, '_>) -> Vec<(Str, Span)> {
    let mut names: Vec<(Str, Span)> = Vec::new();
    if !matches!(listed.kind, Kind::List(_)) {
        fields.wrong_type("allowed_tools", listed, "a list of texts");
    }
    for item in items_of_list(listed) {
        let Some(text) = item.as_text() else {
            fields.wrong_type("allowed_tools", item, "a list of texts");
            continue;
        };
        if !names.iter().any(|(known, _)| **known == *text) {
            names.push((text.into(), span.unwrap_or(item.span)));
        }
    }
    names
}

/// The keys that say whether an agent may change files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PermissionKeys {
    /// The value of `edit`; `None` if it is missing or unreadable.
    pub(super) edit: Option<(bool, Span)>,
    /// Whether `edit` is missing, and nothing else implies it.
    lacks_edit: bool,
    /// Whether one of the keys could not be read.
    is_misread: bool,
    /// The mode, with the key that says it.
    mode: Option<(&'static str, Mode)>,
    /// The least mode that TAKT gives, as a mode.
    pub(super) required: Option<Mode>,
}

/// A permission mode and its place.
pub(super) type Mode = (&'static str, Span);

impl PermissionKeys {
    /// Reads the keys of a step. A tool of its capabilities that only writes implies `edit: true`.
    pub(super) fn read(fields: &Fields<'_, '_>, tools: Option<&ToolList>) -> PermissionKeys {
        fields.need("edit");
        let says_edit = fields.nullable("edit").is_some();
        let says_mode = fields.nullable("permission_mode").is_some();
        let implied = tools
            .filter(|tools| !tools.is_own && !says_edit && !says_mode)
            .and_then(|tools| Some((true, tools.writing().first()?.1)));
        let mode = read_mode(fields, "permission_mode");
        let required = read_mode(fields, "required_permission_mode");
        PermissionKeys {
            edit: fields.boolean("edit").or(implied),
            lacks_edit: !says_edit && implied.is_none(),
            is_misread: ["edit", "permission_mode", "required_permission_mode"]
                .iter()
                .any(|key| fields.is_poisoned(key)),
            mode: mode.map(|mode| ("permission_mode", mode)),
            required: required.filter(|_| !says_mode),
        }
    }

    /// The keys of those who do the parts of a leader's work.
    pub(super) fn for_part(self, edit: (bool, Span), required: Option<Mode>) -> PermissionKeys {
        PermissionKeys { edit: Some(edit), lacks_edit: false, mode: None, required, ..self }
    }

    /// The mode that holds. The least mode gives nothing that `edit` denies, and takes nothing that it gives.
    fn effective_mode(&self) -> Option<(&'static str, Mode)> {
        let edit = self.edit.map(|(edit, _)| edit);
        let counts = |(mode, _): &Mode| match *mode {
            "readonly" => edit != Some(true),
            _ => edit != Some(false),
        };
        self.mode.or_else(|| Some(("required_permission_mode", self.required.filter(counts)?)))
    }
}

/// Reads a key with a permission mode.
pub(super) fn read_mode(fields: &Fields<'_, '_>, key: &'static str) -> Option<Mode> {
    match fields.text(key)?.text {
        "default" if key == "permission_mode" => None,
        older => match OLDER_MODES.iter().find(|(mode, _)| *mode == older) {
            Some((_, mode)) if key == "permission_mode" => Some((mode, fields.text(key)?.span)),
            _ => fields.one_of(key, &MODES),
        },
    }
}

/// What a leader may do: read, as others do the work.
pub(super) fn boundary_of_leader() -> Boundary {
    Boundary { permission: Permission::Plan, tools: Tools::All }
}

/// What an agent may do, and whether a finding already questions it.
pub(super) fn read_boundary(
    fields: &Fields<'_, '_>,
    step: &str,
    keys: PermissionKeys,
    tools: Option<&ToolList>,
) -> (Boundary, bool) {
    let mut is_questioned = keys.lacks_edit;
    let permission = read_permission(fields, step, keys, &mut is_questioned);
    if let Some(tools) = tools {
        tool_names::check_tool_names(&tools.texts(), fields);
    }
    let tools = tools.map_or(Tools::All, ToolList::to_tools);
    (Boundary { permission, tools }, is_questioned || keys.is_misread)
}

fn read_permission(
    fields: &Fields<'_, '_>,
    step: &str,
    keys: PermissionKeys,
    is_questioned: &mut bool,
) -> Permission {
    let edits = matches!(keys.edit, Some((true, _)));
    let mode = keys.effective_mode();
    if keys.lacks_edit {
        report_missing_edit(fields, step, mode.map(|(key, (mode, _))| (key, mode)));
    }
    match mode {
        None if edits => Permission::AcceptEdits,
        None => Permission::Plan,
        Some((key, ("readonly", span))) => {
            if edits {
                let message = format!("`edit: true` has no effect beside `{key}: readonly`");
                fields.inert(span, message, "remove one of them: the stricter one holds");
                *is_questioned = true;
            }
            Permission::Plan
        }
        Some((key, (mode, span))) => {
            if let Some((false, _)) = keys.edit {
                let message = format!("`{key}: {mode}` contradicts `edit: false`");
                let finding = Diagnostic::error(codes::CONFLICTING_KEYS, span, message);
                fields.push(finding.hint("say `edit: true`, or `permission_mode: readonly`"));
                *is_questioned = true;
                return Permission::Plan;
            }
            // Without `edit`, the mode alone allows changes to files.
            if mode == "full" { Permission::BypassPermissions } else { Permission::AcceptEdits }
        }
    }
}

/// Reports that `edit` is missing. The mode alone may still allow changes.
fn report_missing_edit(fields: &Fields<'_, '_>, step: &str, mode: Option<(&str, &str)>) {
    if fields.is_broken() {
        return;
    }
    let (key, mode, what) = match mode {
        Some((key, "full")) => (key, "full", "everything"),
        Some((key, "edit")) => (key, "edit", "files"),
        _ => {
            let message = format!("`edit` is missing, so `{step}` may change nothing");
            let finding = Diagnostic::warning(codes::MISSING_EDIT, fields.opening(), message);
            fields.push(finding.hint("add `edit: true` or `edit: false`"));
            return;
        }
    };
    let message = format!("`edit` is missing; `{key}: {mode}` alone lets `{step}` change {what}");
    let finding = Diagnostic::warning(codes::MISSING_EDIT, fields.opening(), message);
    fields.push(finding.hint(format!("add `edit: true`; or `edit: false`, and remove `{key}`")));
}

/// Reports work that needs write access in a step that has none.
pub(super) fn check_write_access(
    fields: &Fields<'_, '_>,
    step: &str,
    boundary: &Boundary,
    gates: &Gates<'_>,
    tools: Option<&ToolList>,
) {
    if !boundary.permission.may_write() {
        report_writing_tools(fields, step, tools);
    } else if let Some(tools) = tools.filter(|_| !boundary.can_write()) {
        let message = format!("`{step}` may change files, but no tool of `{}` can", tools.key);
        let finding = Diagnostic::warning(codes::WEAK_PERMISSION, tools.span, message);
        fields.push(finding.hint("add `Edit`, `Write` or `Bash`, or say `edit: false`"));
        return;
    }
    if let Some(gate) = gates.commands.first().filter(|_| !boundary.can_write()) {
        let message = format!("`{step}` must fix what `{}` finds, but may not change files", gate.command);
        let finding = Diagnostic::warning(codes::WEAK_PERMISSION, gate.span, message);
        fields.push(finding.hint("say `edit: true`, or move the command to a step that may change files"));
    }
}

/// Reports tools that only write, in a step without write access.
fn report_writing_tools(fields: &Fields<'_, '_>, step: &str, tools: Option<&ToolList>) {
    let Some(tools) = tools else { return };
    let writing = tools.writing();
    let Some((_, span)) = writing.first() else { return };
    let names: Vec<&str> = writing.iter().map(|(tool, _)| *tool).collect();
    let message = format!(
        "{} of `{}` may write nothing, as `{step}` may change nothing",
        quote_names(&names),
        tools.key
    );
    let finding = Diagnostic::warning(codes::WEAK_PERMISSION, *span, message);
    fields.push(finding.hint("remove it, or say `edit: true`"));
}
