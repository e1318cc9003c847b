//! The HTTP client and the classification of its errors.

use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

use ureq::{
    Agent, Error, Proxy, RequestBuilder, Timeout,
    http::Uri,
    tls::{RootCerts, TlsConfig},
};

use super::{
    endpoint,
    wire::{RequestTrouble, TroubleKind},
};

#[derive(Debug, Clone, Copy)]
pub(super) struct ClientTimeouts {
    pub connect: Duration,
    /// The maximum time without data from the service.
    pub idle: Duration,
}

/// A client for this URL.
///
/// It does not follow redirects, which would send the key and the prompt to another host. It trusts the machine's
/// certificates, because services in private networks often use a certificate authority that only this machine knows.
/// It reaches this machine without a proxy, whatever the environment.
pub(super) fn build_http_client(uri: &Uri, patience: ClientTimeouts) -> Agent {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let local = uri.host().is_some_and(|host| endpoint::is_local(&host.to_ascii_lowercase()));
    Agent::config_builder()
        .user_agent(concat!("cuegate/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls)
        .proxy(if local { None } else { Proxy::try_from_env() })
        .max_redirects(0)
        .http_status_as_error(false)
        .timeout_resolve(Some(patience.connect))
        .timeout_connect(Some(patience.connect))
        .timeout_per_read(Some(patience.idle))
        .timeout_per_write(Some(patience.idle))
        .build()
        .new_agent()
}

/// Adds the configured headers and the key.
pub(super) fn with_headers<B>(
    mut request: RequestBuilder<B>,
    headers: &BTreeMap<String, String>,
    key: Option<&str>,
    key_header: Option<&str>,
) -> RequestBuilder<B> {
    for (name, value) in headers {
        request = request.header(name, value);
    }
    match (key, key_header) {
        (None, _) => request,
        (Some(key), None) => request.header("Authorization", format!("Bearer {key}")),
        (Some(key), Some(name)) => request.header(name, key),
    }
}

/// Classifies an error of the client. `proxied`: the connection goes through a proxy.
pub(super) fn trouble_of_client_error(error: Error, proxied: bool) -> RequestTrouble {
    let said = error.to_string();
    let what = match error {
        Error::Timeout(Timeout::Resolve | Timeout::Connect) => TroubleKind::Unreachable,
        Error::Timeout(_) => TroubleKind::Silent,
        Error::HostNotFound | Error::ConnectionFailed => TroubleKind::Unreachable,
        Error::ConnectProxyFailed(_) | Error::InvalidProxyUrl => TroubleKind::Proxy,
        Error::Tls(_) | Error::Pem(_) | Error::Rustls(_) | Error::TlsRequired => TroubleKind::Tls,
        Error::Io(error) => io_trouble(&error),
        Error::Protocol(_) | Error::LargeResponseHeader(..) => TroubleKind::Garbled,
        Error::Http(_) | Error::BadUri(_) => TroubleKind::Unsendable,
        _ => TroubleKind::BrokeOff,
    };
    let at_the_proxy = proxied && matches!(what, TroubleKind::ConnectionRefused | TroubleKind::Unreachable);
    RequestTrouble::new(if at_the_proxy { TroubleKind::Proxy } else { what }, said)
}

fn io_trouble(error: &io::Error) -> TroubleKind {
    // The handshake reports an invalid certificate as a read error.
    if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
        return TroubleKind::Tls;
    }
    match error.kind() {
        io::ErrorKind::ConnectionRefused => TroubleKind::ConnectionRefused,
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => TroubleKind::BrokeOff,
        // An unknown host name, or no route.
        _ => TroubleKind::Unreachable,
    }
}
