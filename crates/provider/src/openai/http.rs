//! The HTTP client and the classification of its errors.

use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

use ureq::{
    Agent, Error, Proxy, RequestBuilder, Timeout,
    http::Uri,
    tls::{RootCerts, TlsConfig},
};

use super::{
    endpoint,
    wire::{Trouble, What},
};

/// The client's timeouts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub connect: Duration,
    /// The maximum time without data from the service.
    pub idle: Duration,
}

/// A client for this URL.
///
/// It does not follow redirects, which would send the key and the prompt to another host. It trusts the machine's
/// certificates, because services in private networks often use a certificate authority that only this machine knows.
/// It reaches this machine without a proxy, whatever the environment.
pub(super) fn agent(uri: &Uri, patience: Patience) -> Agent {
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
pub(super) fn trouble(error: Error, proxied: bool) -> Trouble {
    let said = error.to_string();
    let what = match error {
        Error::Timeout(Timeout::Resolve | Timeout::Connect) => What::Unreachable,
        Error::Timeout(_) => What::Silent,
        Error::HostNotFound | Error::ConnectionFailed => What::Unreachable,
        Error::ConnectProxyFailed(_) | Error::InvalidProxyUrl => What::Proxy,
        Error::Tls(_) | Error::Pem(_) | Error::Rustls(_) | Error::TlsRequired => What::Tls,
        Error::Io(error) => io_trouble(&error),
        Error::Protocol(_) | Error::LargeResponseHeader(..) => What::Garbled,
        Error::Http(_) | Error::BadUri(_) => What::Unsendable,
        _ => What::BrokeOff,
    };
    let at_the_proxy = proxied && matches!(what, What::ConnectionRefused | What::Unreachable);
    Trouble::new(if at_the_proxy { What::Proxy } else { what }, said)
}

fn io_trouble(error: &io::Error) -> What {
    // The handshake reports an invalid certificate as a read error.
    if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
        return What::Tls;
    }
    match error.kind() {
        io::ErrorKind::ConnectionRefused => What::ConnectionRefused,
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => What::BrokeOff,
        // An unknown host name, or no route.
        _ => What::Unreachable,
    }
}
