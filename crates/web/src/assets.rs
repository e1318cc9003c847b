//! The files of the page, embedded in the binary.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};

/// The name, the type and the content of a file.
type File = (&'static str, &'static str, &'static str);

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

const FILES: [File; 16] = [
    ("/", HTML, include_str!("../assets/index.html")),
    ("/app.css", STYLE, include_str!("../assets/app.css")),
    ("/app.js", SCRIPT, include_str!("../assets/app.js")),
    ("/dom.js", SCRIPT, include_str!("../assets/dom.js")),
    ("/api.js", SCRIPT, include_str!("../assets/api.js")),
    ("/runs.js", SCRIPT, include_str!("../assets/runs.js")),
    ("/batches.js", SCRIPT, include_str!("../assets/batches.js")),
    ("/run.js", SCRIPT, include_str!("../assets/run.js")),
    ("/timeline.js", SCRIPT, include_str!("../assets/timeline.js")),
    ("/graph.js", SCRIPT, include_str!("../assets/graph.js")),
    ("/diff.js", SCRIPT, include_str!("../assets/diff.js")),
    ("/visit.js", SCRIPT, include_str!("../assets/visit.js")),
    ("/compare.js", SCRIPT, include_str!("../assets/compare.js")),
    ("/fleet.js", SCRIPT, include_str!("../assets/fleet.js")),
    ("/start.js", SCRIPT, include_str!("../assets/start.js")),
    ("/icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
];

/// The file of a path.
pub(crate) fn serve_asset(path: &str) -> Response {
    if path == "/graph.css" {
        return build_asset_response(StatusCode::OK, STYLE, cuegate_view::SVG_STYLE);
    }
    match FILES.iter().find(|(name, ..)| *name == path) {
        Some((_, kind, content)) => build_asset_response(StatusCode::OK, kind, content),
        None => build_asset_response(
            StatusCode::NOT_FOUND,
            "text/plain; charset=utf-8",
            "there is no such page\n",
        ),
    }
}

fn build_asset_response(status: StatusCode, kind: &'static str, content: &'static str) -> Response {
    let mut response = Response::new(Body::from(content));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
