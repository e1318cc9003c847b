//! The description of the API, made of one table of its routes.

use serde_json::{Map, Value, json};

struct Route {
    method: &'static str,
    path: &'static str,
    about: &'static str,
    query: &'static [(&'static str, &'static str, &'static str)],
    /// The fields of the body: name, type, whether it is required.
    body: &'static [(&'static str, &'static str, bool)],
    answer: RouteAnswer,
}

/// What a route answers.
enum RouteAnswer {
    /// A JSON object with this `schema`.
    Json(&'static str),
    /// A text of this kind.
    Text(&'static str),
    /// Server-sent events.
    Events,
    /// The run that changes.
    Accepted,
}

const NUMBER: &str = "integer";
const RANGE: [(&str, &str, &str); 2] =
    [("from_seq", NUMBER, "The first record."), ("to_seq", NUMBER, "The last record.")];

const ROUTES: [Route; 33] = [
    define_get_route(
        "/session",
        "The project, the version, and whether runs can be changed.",
        &[],
        RouteAnswer::Json("session"),
    ),
    define_get_route("/openapi.json", "This description.", &[], RouteAnswer::Text("application/json")),
    Route {
        method: "post",
        path: "/links",
        about: "The token of a new one-time link, `/#token=TOKEN`.",
        query: &[],
        body: &[],
        answer: RouteAnswer::Json("link"),
    },
    define_get_route("/definitions", "The definitions that can be run.", &[], RouteAnswer::Json("list")),
    define_get_route("/agents", "The agents that work on this machine.", &[], RouteAnswer::Json("agents")),
    define_get_route(
        "/fleet",
        "The machines that take runs from the same journal, and what waits for whom; 404 without a fleet.",
        &[],
        RouteAnswer::Json("fleet"),
    ),
    define_get_route(
        "/batches",
        "The batches with their tasks, newest first.",
        &[],
        RouteAnswer::Json("batches"),
    ),
    define_get_route("/batches/{batch}", "A batch with its tasks.", &[], RouteAnswer::Json("work")),
    define_get_route(
        "/stream",
        "`runs` whenever the list of runs changes, with `cuegate/runs/v1`.",
        &[],
        RouteAnswer::Events,
    ),
    define_get_route("/runs", "The runs, newest first.", &[], RouteAnswer::Json("runs")),
    define_get_route(
        "/runs/{run}",
        "The state and history of a run.",
        &[("steps", "boolean", "Whether to include the ended visits.")],
        RouteAnswer::Json("run"),
    ),
    define_get_route(
        "/runs/{run}/spans",
        "Visits with their asks, tools, validators, effects and waits; the path and the spending.",
        &[
            ("from", NUMBER, "The first visit, from 0; the last page if it is left out."),
            ("count", NUMBER, "How many visits, at most 1000."),
        ],
        RouteAnswer::Json("spans"),
    ),
    define_get_route(
        "/runs/{run}/events",
        "The lines of the log, at most those of 2000 records.",
        &[RANGE[0], RANGE[1], ("full", "boolean", "Whether long texts are included.")],
        RouteAnswer::Json("events"),
    ),
    define_get_route(
        "/runs/{run}/stream",
        "`log`: the lines of the log, as `cuegate/event/v1`, from the first one or after `Last-Event-ID`. `state`: whether \
         a process drives the run. `working`: what is in progress.",
        &[("from_seq", NUMBER, "The first record.")],
        RouteAnswer::Events,
    ),
    define_get_route("/runs/{run}/working", "What is in progress.", &[], RouteAnswer::Json("working")),
    define_get_route(
        "/runs/{run}/graph",
        "The graph of the definition.",
        &[],
        RouteAnswer::Text("image/svg+xml"),
    ),
    define_get_route("/runs/{run}/why", "Why the run is where it is.", &[], RouteAnswer::Json("why")),
    define_get_route(
        "/runs/{run}/findings",
        "The findings of the definition.",
        &[],
        RouteAnswer::Json("check"),
    ),
    define_get_route("/runs/{run}/report", "The report of the run.", &[], RouteAnswer::Text("text/plain")),
    define_get_route(
        "/runs/{run}/reports/{name}",
        "A report that a step wrote.",
        &[],
        RouteAnswer::Json("report"),
    ),
    define_get_route(
        "/runs/{run}/diff",
        "The changes, or those between two records.",
        &RANGE,
        RouteAnswer::Text("text/plain"),
    ),
    define_get_route(
        "/runs/{run}/compare/{other}",
        "What differs between the files of two runs.",
        &[],
        RouteAnswer::Text("text/plain"),
    ),
    define_get_route(
        "/runs/{run}/blobs/{digest}",
        "A text that an event names by its digest.",
        &[],
        RouteAnswer::Text("text/plain"),
    ),
    define_post_route(
        "/runs",
        "Starts a run of a definition.",
        &[
            ("definition", "string", true),
            ("task", "string", false),
            ("args", "object", false),
            ("folder", "string", false),
            ("agent", "string", false),
            ("model", "string", false),
            ("worktree", "boolean", false),
            ("issue", NUMBER, false),
            ("budget_usd", "number", false),
            ("budget_tokens", NUMBER, false),
            ("budget_calls", NUMBER, false),
            ("budget_minutes", "number", false),
            ("call_usd", "number", false),
            ("key", "string", false),
        ],
    ),
    define_post_route(
        "/runs/{run}/answer",
        "Answers the question of a run, and continues it.",
        &[("text", "string", true)],
    ),
    define_post_route("/runs/{run}/cancel", "Cancels a run.", &[]),
    define_post_route("/runs/{run}/pause", "Interrupts a run; it can be resumed.", &[]),
    define_post_route("/runs/{run}/resume", "Resumes a run.", &[]),
    define_post_route(
        "/runs/{run}/retry",
        "Continues a run that failed or was aborted; `say` is added to the prompt of its step.",
        &[("say", "string", false)],
    ),
    define_post_route(
        "/runs/{run}/fork",
        "Goes on as a new run after a visit (`at`, as `STEP#VISIT`) or from its beginning (`before`).",
        &[
            ("at", "string", false),
            ("before", "string", false),
            ("answer", "string", false),
            ("model", "string", false),
        ],
    ),
    define_post_route(
        "/runs/{run}/apply",
        "Merges the changes of the worktree of a run into the working tree.",
        &[],
    ),
    define_post_route("/runs/{run}/undo", "Takes back what a run did in the working tree.", &[]),
    define_post_route(
        "/runs/{run}/reviewed",
        "Marks a run as reviewed, or takes that back.",
        &[("reviewed", "boolean", true)],
    ),
];

const fn define_get_route(
    path: &'static str,
    about: &'static str,
    query: &'static [(&'static str, &'static str, &'static str)],
    answer: RouteAnswer,
) -> Route {
    Route { method: "get", path, about, query, body: &[], answer }
}

const fn define_post_route(
    path: &'static str,
    about: &'static str,
    body: &'static [(&'static str, &'static str, bool)],
) -> Route {
    Route { method: "post", path, about, query: &[], body, answer: RouteAnswer::Accepted }
}

/// The description as OpenAPI 3.1.
pub fn build_openapi_document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in &ROUTES {
        let path = paths.entry(format!("/api/v1{}", route.path)).or_insert_with(|| json!({}));
        path[route.method] = describe_operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Cuegate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Objects are those of the command line (`cuegate/*/v1`). Every request needs the token of a \
                            session or that in `.cuegate/serve.json`, and a `Host` of the server. A page exchanges the token \
                            of a one-time link for that of a session: `POST /api/v1/session` with `Authorization: Link TOKEN`.",
        },
        "servers": [{ "url": "/" }],
        "security": [{ "bearer": [] }],
        "components": {
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
            },
            "schemas": { "error": schema_of_object("error", &["error"]) },
        },
        "paths": paths,
    })
}

fn describe_operation(route: &Route) -> Value {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = in_path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 } }))
        .collect();
    for (name, kind, about) in route.query {
        let mut schema = json!({ "type": kind });
        if *kind == NUMBER {
            schema["minimum"] = json!(0);
            schema["maximum"] = json!(i64::MAX);
        }
        parameters.push(json!({ "name": name, "in": "query", "description": about, "schema": schema }));
    }
    let (status, content) = match route.answer {
        RouteAnswer::Json(name) => {
            ("200", json!({ "application/json": { "schema": schema_of_object(name, &[]) } }))
        }
        RouteAnswer::Text("application/json") => {
            ("200", json!({ "application/json": { "schema": { "type": "object" } } }))
        }
        RouteAnswer::Text(kind) => ("200", json!({ kind: { "schema": { "type": "string" } } })),
        RouteAnswer::Events => ("200", json!({ "text/event-stream": { "schema": { "type": "string" } } })),
        RouteAnswer::Accepted => {
            ("202", json!({ "application/json": { "schema": schema_of_object("control", &["run"]) } }))
        }
    };
    let mut responses = json!({ status: { "description": "As requested.", "content": content } });
    let mut errors = vec!["401", "403", "405", "500"];
    if route.path.contains('{') || route.path == "/fleet" {
        errors.push("404");
    }
    if !route.query.is_empty() || route.method == "post" || route.path.contains('{') {
        errors.push("400");
    }
    if route.method == "post" {
        errors.extend(["404", "409", "413"]);
    }
    for status in errors {
        let content = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/error" } } });
        responses[status] = json!({ "description": "Why not.", "content": content });
    }
    let name: String = route.path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let mut operation = json!({
        "operationId": format!("{}{name}", route.method),
        "summary": route.about,
        "parameters": parameters,
        "responses": responses,
    });
    if !route.body.is_empty() {
        let fields: Map<String, Value> =
            route.body.iter().map(|(name, kind, _)| ((*name).to_owned(), schema_of_field(kind))).collect();
        let required: Vec<&str> = route.body.iter().filter(|field| field.2).map(|field| field.0).collect();
        let schema = json!({
            "type": "object", "properties": fields, "required": required, "additionalProperties": false,
        });
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

fn schema_of_field(kind: &str) -> Value {
    match kind {
        "object" => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        "integer" => json!({ "type": "integer", "minimum": 0, "maximum": i64::MAX }),
        "number" => json!({ "type": "number", "minimum": 0 }),
        "string" => json!({ "type": "string", "minLength": 1, "pattern": "\\S" }),
        kind => json!({ "type": kind }),
    }
}

/// A `cuegate/NAME/v1` object.
fn schema_of_object(name: &str, required: &[&str]) -> Value {
    let required: Vec<&str> = std::iter::once("schema").chain(required.iter().copied()).collect();
    json!({
        "type": "object",
        "properties": { "schema": { "const": format!("cuegate/{name}/v1") } },
        "required": required,
    })
}
