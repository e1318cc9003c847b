//! The verdict of an agent: which of the eight types, and what its table asks of its `config`.

use cuegate_flow::{Diagnostic, Span, Verdict};

use crate::codes;
use crate::files::{join, lies_in};
use crate::json::{Fields, Json, Kind, Text};

/// The verdict types of 002.
pub(crate) const VERDICT_TYPES: [&str; 8] = [
    "count:iteration",
    "count:check",
    "poll:state",
    "detect:keyword",
    "detect:structured",
    "detect:graph",
    "meta:composite",
    "meta:custom",
];

/// Iterations after which `count:iteration` completes when nothing is said (`DEFAULT_MAX_ITERATIONS` of 002).
const COUNT_DEFAULT: u32 = 10;

/// Iterations after which every other verdict stops the run when nothing is said (`FALLBACK_MAX_ITERATIONS` of
/// 002).
pub(crate) const SAFETY_DEFAULT: u32 = 20;

/// A verdict as written.
#[derive(Debug)]
pub(crate) struct VerdictSettings<'j> {
    /// Its type.
    pub(crate) kind: &'static str,
    /// When the run is done besides reaching an end.
    pub(crate) verdict: Verdict,
    /// The most iterations.
    pub(crate) iterations_max: u32,
    /// Whether a type is written, and whether a limit is.
    pub(crate) written: (bool, bool),
    /// The registry that `detect:graph` names instead of the agent's.
    pub(crate) registry: Option<Text<'j>>,
    /// The entry that `detect:graph` names instead of the registry's.
    pub(crate) entry: Option<Text<'j>>,
}

impl Default for VerdictSettings<'_> {
    fn default() -> Self {
        VerdictSettings {
            kind: "count:iteration",
            verdict: Verdict::Iterations(COUNT_DEFAULT),
            iterations_max: COUNT_DEFAULT,
            written: (false, false),
            registry: None,
            entry: None,
        }
    }
}

/// Reads `runner.verdict`.
pub(crate) fn read_verdict<'j>(fields: Fields<'j, '_>, agent_dir: &str) -> VerdictSettings<'j> {
    let kind = fields.one_of("type", &VERDICT_TYPES);
    let unknown = kind.is_none() && fields.entry("type").is_some();
    let (kind, span) = kind.unwrap_or(("count:iteration", fields.span));
    let config = fields.object("config");
    let settings = if unknown {
        // Which keys belong to it is unknown as well.
        let (verdict, iterations_max) = (Verdict::Flow, SAFETY_DEFAULT);
        VerdictSettings { verdict, iterations_max, written: (true, false), ..VerdictSettings::default() }
    } else {
        read_settings(kind, span, config, &fields, agent_dir)
    };
    fields.finish();
    settings
}

fn read_settings<'j>(
    kind: &'static str,
    span: Span,
    config: Option<Fields<'j, '_>>,
    verdict: &Fields<'j, '_>,
    agent_dir: &str,
) -> VerdictSettings<'j> {
    let max = config.as_ref().and_then(|config| config.count("maxIterations", 1)).map(|(max, _)| max);
    let (mut registry, mut entry) = (None, None);
    match config {
        Some(config) => {
            if kind == "count:iteration" && config.entry("maxIterations").is_none() {
                config.missing("maxIterations");
            }
            check_config(kind, &config, agent_dir);
            if kind == "detect:graph" {
                registry = config.filled("registryPath");
                entry = config.filled("entryStep");
            }
            finish_config(kind, config);
        }
        None => {
            for key in required(kind).iter().filter(|_| kind != "count:iteration") {
                verdict.push(
                    Diagnostic::error(
                        codes::MISSING_KEY,
                        span,
                        format!("the verdict `{kind}` needs `config.{key}`"),
                    )
                    .hint(format!("add `config` with `{key}`")),
                );
            }
        }
    }
    let iterations_max =
        max.unwrap_or(if kind == "count:iteration" { COUNT_DEFAULT } else { SAFETY_DEFAULT });
    let verdict_rule = match kind {
        "count:iteration" => Verdict::Iterations(iterations_max),
        "detect:graph" => Verdict::Flow,
        other => {
            let statement = format!(
                "the verdict `{other}` is not evaluated yet: the run ends by `closing`, or at its limit of \
                 {iterations_max} iterations"
            );
            verdict.found.left_out(span, statement, "use `count:iteration` or `detect:graph` until it is");
            Verdict::Flow
        }
    };
    VerdictSettings {
        kind,
        verdict: verdict_rule,
        iterations_max,
        written: (true, max.is_some()),
        registry,
        entry,
    }
}

/// The keys that the table of 002 requires of a type.
fn required(kind: &str) -> &'static [&'static str] {
    match kind {
        "count:iteration" => &["maxIterations"],
        "count:check" => &["maxChecks"],
        "detect:keyword" => &["verdictKeyword"],
        "detect:structured" => &["signalType"],
        "meta:composite" => &["operator", "conditions"],
        "meta:custom" => &["handlerPath"],
        _ => &[],
    }
}

/// Checks the keys that belong to a type.
fn check_config(kind: &str, config: &Fields<'_, '_>, agent_dir: &str) {
    match kind {
        "count:check" => {
            config.count("maxChecks", 1);
        }
        "detect:keyword" => {
            config.filled("verdictKeyword");
        }
        "detect:structured" => {
            config.filled("signalType");
            if let Some(entry) = config.entry("requiredFields") {
                match &entry.value.kind {
                    Kind::Object(_) => {}
                    Kind::List(_) => drop(config.texts("requiredFields")),
                    _ => config.wrong_type("requiredFields", &entry.value, "an object or a list"),
                }
            }
        }
        "poll:state" => {
            config.one_of("resourceType", &["github-issue", "github-project", "file", "api"]);
            if let Some(entry) = config.entry("targetState")
                && !matches!(entry.value.kind, Kind::Text(_) | Kind::Object(_))
            {
                config.wrong_type("targetState", &entry.value, "a text or an object");
            }
        }
        "detect:graph" => {
            inside(config.filled("registryPath"), agent_dir, config);
            config.filled("entryStep");
        }
        "meta:composite" => {
            config.one_of("operator", &["and", "or", "first"]);
            check_conditions(config, agent_dir);
        }
        "meta:custom" => inside(config.filled("handlerPath"), agent_dir, config),
        _ => {}
    }
    for key in required(kind).iter().filter(|key| **key != "maxIterations" && config.entry(key).is_none()) {
        config.missing(key);
    }
}

fn check_conditions(config: &Fields<'_, '_>, agent_dir: &str) {
    let conditions: &[Json] = config.items("conditions");
    if conditions.is_empty() && config.entry("conditions").is_some() {
        config.invalid(config.opening(), "`conditions` is empty", "name the verdicts that are combined");
    }
    for condition in conditions {
        let Some(fields) = Fields::of(condition, "a condition", None, config.found) else { continue };
        if fields.entry("type").is_none() {
            fields.missing("type");
        }
        let kind = fields.one_of("type", &VERDICT_TYPES);
        match (kind, fields.object("config")) {
            (Some((kind, _)), Some(inner)) => {
                inner.count("maxIterations", 1);
                if kind == "count:iteration" && inner.entry("maxIterations").is_none() {
                    inner.missing("maxIterations");
                }
                check_config(kind, &inner, agent_dir);
                finish_config(kind, inner);
            }
            (_, None) if fields.entry("config").is_none() => fields.missing("config"),
            _ => {}
        }
        fields.finish();
    }
}

/// Keys of other types are known, but say nothing here.
fn finish_config(kind: &str, config: Fields<'_, '_>) {
    const KEYS: [(&str, &str); 13] = [
        ("count:check", "maxChecks"),
        ("detect:keyword", "verdictKeyword"),
        ("detect:structured", "signalType"),
        ("detect:structured", "requiredFields"),
        ("poll:state", "resourceType"),
        ("poll:state", "targetState"),
        ("detect:graph", "registryPath"),
        ("detect:graph", "entryStep"),
        ("meta:composite", "operator"),
        ("meta:composite", "conditions"),
        ("meta:custom", "handlerPath"),
        // Real agents carry these over from an older generation.
        ("", "type"),
        ("", "issueParam"),
    ];
    for (owner, key) in KEYS.into_iter().filter(|(owner, _)| *owner != kind) {
        let why = if owner.is_empty() {
            "older definitions carry it; remove it".to_owned()
        } else {
            format!("it belongs to the verdict `{owner}`; remove it")
        };
        config.stray(key, &why);
    }
    config.finish();
}

/// A path that has to stay in the agent's folder.
fn inside(path: Option<Text<'_>>, agent_dir: &str, fields: &Fields<'_, '_>) {
    let Some(path) = path else { return };
    if !join(agent_dir, path.text).is_some_and(|joined| lies_in(&joined, agent_dir)) {
        let message = format!("`{}` leads out of the agent's folder", path.text);
        fields.push(
            Diagnostic::error(codes::ESCAPES_ROOT, path.span, message).hint("keep it in the agent's folder"),
        );
    }
}
