//! Where a journal is, and how the connection to it is encrypted.

use std::{net::IpAddr, path::Path, str::FromStr, sync::Arc};

use postgres::{
    Config,
    config::{Host, SslMode},
};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject as _};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The schema of the tables, unless the address names another search path.
const SCHEMA: &str = "cuegate";

/// The address of a journal: `postgres://USER@HOST/DATABASE`, or `key=value` words, as libpq reads them.
#[derive(Debug, Clone)]
pub struct Address {
    pub(crate) config: Config,
    pub(crate) schema: String,
    tls: MakeTls,
    /// Whether the password of the environment is not for its host.
    pub(crate) withholds_password: bool,
}

#[derive(Clone)]
struct MakeTls(Arc<ClientConfig>);

impl std::fmt::Debug for MakeTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MakeTls")
    }
}

/// Why an address cannot be used, in words for its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressError(pub String);

impl Address {
    /// Reads an address. `ca` is a file of certificates in PEM that the server's is checked with; without it those that this
    /// machine trusts are. A password in it is sent encrypted, unless the server is on this machine.
    ///
    /// # Errors
    /// When the address has no host or an unknown key, when it has a password and forbids to encrypt it, and when the
    /// certificates cannot be read.
    pub fn parse(text: &str, ca: Option<&Path>) -> Result<Address, AddressError> {
        let mut config = Config::from_str(text).map_err(|error| AddressError(explain_config(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(AddressError("it names no host".to_owned()));
        }
        if config.get_user().is_none() {
            return Err(AddressError("it names no user".to_owned()));
        }
        encrypt_password(&mut config)?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(std::time::Duration::from_secs(10));
        }
        config.application_name("cuegate");
        config.keepalives_idle(std::time::Duration::from_secs(20));
        config.tcp_user_timeout(std::time::Duration::from_secs(30));
        let schema = config.get_options().and_then(read_search_path).unwrap_or_else(|| SCHEMA.to_owned());
        let tls = MakeTls(Arc::new(build_tls(ca)?));
        Ok(Address { config, schema, tls, withholds_password: true })
    }

    /// Adds the password of `PGPASSWORD`, if the address has none: for a host that the user named, not a project, because
    /// whoever changes a project would be sent it.
    ///
    /// # Errors
    /// When the address forbids to encrypt it.
    pub fn with_environment_password(mut self) -> Result<Address, AddressError> {
        self.withholds_password = false;
        if let (None, Ok(password)) = (self.config.get_password(), std::env::var("PGPASSWORD")) {
            self.config.password(password);
            encrypt_password(&mut self.config)?;
        }
        Ok(self)
    }

    /// The same server, with the tables in another schema.
    #[must_use]
    pub fn with_schema(&self, schema: &str) -> Address {
        Address { schema: schema.to_owned(), ..self.clone() }
    }

    /// The schema of the tables.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    pub(crate) fn connector(&self) -> MakeRustlsConnect {
        MakeRustlsConnect::new((*self.tls.0).clone())
    }
}

/// Without user and password: `localhost:5432/work, schema cuegate`.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hosts: Vec<String> = self
            .config
            .get_hosts()
            .iter()
            .enumerate()
            .map(|(at, host)| {
                let ports = self.config.get_ports();
                let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
                match host {
                    Host::Tcp(name) => format!("{name}:{port}"),
                    Host::Unix(path) => format!("{}:{port}", path.display()),
                }
            })
            .collect();
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or_default();
        write!(f, "{}/{database}, schema {}", hosts.join(","), self.schema)
    }
}

/// Requires TLS where a password would cross a network: the server chooses how it is sent, and may ask for it in clear.
fn encrypt_password(config: &mut Config) -> Result<(), AddressError> {
    if config.get_password().is_none() || is_local(config) {
        return Ok(());
    }
    if config.get_ssl_mode() == SslMode::Disable {
        return Err(AddressError(
            "it has a password and `sslmode=disable`: a password is sent encrypted to another machine"
                .to_owned(),
        ));
    }
    config.ssl_mode(SslMode::Require);
    Ok(())
}

/// Whether all hosts are this machine. An address beside a host is what is connected to.
fn is_local(config: &Config) -> bool {
    let addresses = config.get_hostaddrs();
    if !addresses.is_empty() {
        return addresses.iter().all(IpAddr::is_loopback);
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
        Host::Unix(_) => true,
    })
}

/// The first schema of `-c search_path=…`.
fn read_search_path(options: &str) -> Option<String> {
    let path = options.split("search_path=").nth(1)?.split_whitespace().next()?;
    let first = path.split(',').next()?.trim_matches('"');
    (!first.is_empty()).then(|| first.to_owned())
}

/// The message of the library, without its name for the kind.
fn explain_config(error: &postgres::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    cause.unwrap_or_else(|| error.to_string())
}

fn build_tls(ca: Option<&Path>) -> Result<ClientConfig, AddressError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| AddressError(error.to_string()))?;
    let Some(path) = ca else {
        let verifying = builder.with_platform_verifier().map_err(|error| AddressError(error.to_string()))?;
        return Ok(verifying.with_no_client_auth());
    };
    let failed =
        |why: String| AddressError(format!("the certificates of `{}` cannot be used: {why}", path.display()));
    // A FIFO would be waited for.
    if !path.metadata().is_ok_and(|about| about.is_file()) {
        return Err(failed("there is no such file".to_owned()));
    }
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))? {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(failed("it holds none".to_owned()));
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_crosses_no_network_in_clear() {
        for (text, mode) in [
            ("postgres://me:p@db.example/work", SslMode::Require),
            ("host=localhost hostaddr=192.0.2.1 user=me password=p", SslMode::Require),
            ("postgres://me:p@localhost,db.example/work", SslMode::Require),
            ("postgres://me@db.example/work", SslMode::Prefer),
            ("postgres://me:p@127.0.0.1/work", SslMode::Prefer),
            ("postgres://me:p@[::1]/work", SslMode::Prefer),
            ("host=/run/pg user=me password=p", SslMode::Prefer),
            ("postgres://me@db.example/work?sslmode=disable", SslMode::Disable),
        ] {
            assert_eq!(Address::parse(text, None).unwrap().config.get_ssl_mode(), mode, "{text}");
        }
        let AddressError(why) =
            Address::parse("postgres://me:p@db.example/w?sslmode=disable", None).unwrap_err();
        assert!(why.contains("encrypted"), "{why}");
    }

    #[test]
    fn an_address_shows_no_password() {
        let address = Address::parse("postgres://me:s3cret@db.example:6432/work", None).unwrap();
        assert_eq!(address.to_string(), "db.example:6432/work, schema cuegate");
        assert!(!format!("{address:?}").contains("s3cret"));
        let other =
            Address::parse("host=/run/pg user=me options='-c search_path=team,public'", None).unwrap();
        assert_eq!(other.to_string(), "/run/pg:5432/me, schema team");
        for (wrong, why) in [
            ("postgres://db.example", "no user"),
            ("user=me", "no host"),
            ("postgres://me@h/d?colour=red", "colour"),
        ] {
            let AddressError(said) = Address::parse(wrong, None).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
        let missing = Address::parse("postgres://me@h/d", Some(Path::new("/nowhere"))).unwrap_err();
        assert!(missing.0.contains("/nowhere"), "{missing:?}");
    }
}
