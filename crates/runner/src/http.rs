//! HTTP requests. Requests to this machine bypass the proxy; redirects are not followed, they could lead to any host.

use std::{sync::Arc, time::Duration};

use ureq::{
    Agent, Proxy,
    http::Uri,
    tls::{RootCerts, TlsConfig},
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Posts a JSON object.
///
/// # Errors
/// Why it did not arrive, or the status that it was answered with.
pub fn post_json(
    address: &str,
    headers: &[(String, String)],
    body: &serde_json::Value,
    timeout: Duration,
) -> Result<(), String> {
    let uri: Uri = address.parse().map_err(|error| format!("`{address}` is not an address: {error}"))?;
    let mut request = build_http_agent(&uri, timeout).post(uri).header("Content-Type", "application/json");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let answer = request.send(body.to_string()).map_err(|error| error.to_string())?;
    match answer.status().is_success() {
        true => Ok(()),
        false => Err(format!("the server answered {}", answer.status())),
    }
}

/// The status with which a server answers a GET request.
///
/// # Errors
/// Why it did not answer.
pub fn get_status(address: &str, headers: &[(String, String)], timeout: Duration) -> Result<u16, String> {
    let uri: Uri = address.parse().map_err(|error| format!("`{address}` is not an address: {error}"))?;
    let mut request = build_http_agent(&uri, timeout).get(uri);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let answer = request.call().map_err(|error| error.to_string())?;
    Ok(answer.status().as_u16())
}

/// An agent for requests to the host of `uri`. `timeout` limits a whole request.
pub(crate) fn build_http_agent(uri: &Uri, timeout: Duration) -> Agent {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
    let local = host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    Agent::config_builder()
        .user_agent(concat!("cuegate/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls)
        .proxy(if local { None } else { Proxy::try_from_env() })
        .max_redirects(0)
        .http_status_as_error(false)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_global(Some(timeout))
        .build()
        .new_agent()
}
