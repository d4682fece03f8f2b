//! The address of a store: what PostgreSQL's own addresses say, the schema, and how connections are encrypted.
//!
//! `sslmode` and `sslrootcert` mean what they mean to PostgreSQL's own programs. Without a file of roots a server is checked against the
//! public ones. A certificate that signs itself may be in that file, too.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Error, Result};

/// How many bytes the name of a schema has at most.
const MAX_NAME: usize = 63;

/// Where a store is.
#[derive(Clone)]
pub(super) struct Address {
    /// Of each host, in their order. The client by itself goes on to the next one only if a host refuses, not if it says nothing.
    pub(super) hosts: Vec<Config>,
    pub(super) tls: MakeRustlsConnect,
    /// The quoted name of the schema.
    pub(super) schema: String,
    /// Whether statements are prepared, and live as long as their connection.
    pub(super) is_preparing: bool,
}

impl Address {
    /// Reads an address; a host that does not answer to a connection within `timeout` is given up, unless the address says otherwise.
    pub(super) fn parse(url: &str, timeout: Duration) -> Result<Self> {
        let own = Own::of(url);
        // The server cuts longer names, and this one means the user's.
        if !(1..=MAX_NAME).contains(&own.schema.len()) || own.schema == "$user" {
            return Err(invalid("the name of a schema has 1 to 63 bytes, and is not $user"));
        }
        let (mode, check) = match (own.mode, own.roots) {
            (Some("disable"), _) => (SslMode::Disable, Check::Nothing),
            (Some("allow" | "prefer"), _) | (None, None) => (SslMode::Prefer, Check::Nothing),
            (Some("require"), None) => (SslMode::Require, Check::Nothing),
            (Some("require" | "verify-ca"), _) => (SslMode::Require, Check::Issuer),
            (Some("verify-full") | None, _) => (SslMode::Require, Check::IssuerAndName),
            (Some(_), _) => {
                return Err(invalid(
                    "sslmode is disable, prefer, require, verify-ca or verify-full",
                ));
            }
        };
        let config = |url: &String| -> Result<Config> {
            // The client's error may quote a password.
            let mut config: Config = url.parse().map_err(|_| match unknown(url) {
                Some(name) => invalid(&format!("there is no parameter {name}, or not with this value")),
                None => invalid("expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME, where `?` in a part is %3F, and `@` is %40"),
            })?;
            if config.get_connect_timeout().is_none() {
                config.connect_timeout(timeout.max(Duration::from_secs(1)));
            }
            // Without these a long call to a host that is gone waits for two hours, or where the system says so for twelve minutes.
            if !url.contains("keepalives") {
                config
                    .keepalives_idle(Duration::from_secs(30))
                    .keepalives_interval(Duration::from_secs(10))
                    .keepalives_retries(3);
            }
            config.ssl_mode(mode);
            Ok(config)
        };
        let hosts = of_each_host(&own.rest).iter().map(config).collect::<Result<_>>()?;
        let tls = MakeRustlsConnect::new(client(check, own.roots)?);
        let schema = format!("\"{}\"", own.schema.replace('"', "\"\""));
        let is_preparing = match own.prepare {
            Some("yes") => true,
            Some("no") | None => false,
            Some(_) => return Err(invalid("prepare is yes or no")),
        };
        Ok(Self { hosts, tls, schema, is_preparing })
    }
}

fn invalid(why: &str) -> Error {
    Error::InvalidValue {
        what: "address of a store",
        given: "postgresql://..".to_owned(),
        why: why.to_owned(),
    }
}

/// Returns the name of a parameter that the client does not take.
fn unknown(url: &str) -> Option<&str> {
    let mut parameters = url.split_once('?')?.1.split('&');
    let wrong = parameters.find(|it| format!("postgresql://host/?{it}").parse::<Config>().is_err());
    wrong?.split('=').next()
}

/// The parameters that are not the client's.
#[derive(Debug, PartialEq, Eq)]
struct Own<'u> {
    schema: &'u str,
    prepare: Option<&'u str>,
    mode: Option<&'u str>,
    roots: Option<&'u str>,
    /// The address without them.
    rest: String,
}

impl<'u> Own<'u> {
    fn of(url: &'u str) -> Self {
        let mut own = Self {
            schema: "talktree",
            prepare: None,
            mode: None,
            roots: None,
            rest: url.to_owned(),
        };
        let Some((before, parameters)) = url.split_once('?') else { return own };
        let mut others = Vec::new();
        for parameter in parameters.split('&') {
            match parameter.split_once('=') {
                Some(("schema", value)) => own.schema = value,
                Some(("prepare", value)) => own.prepare = Some(value),
                Some(("sslmode", value)) => own.mode = Some(value),
                Some(("sslrootcert", value)) => own.roots = Some(value),
                _ => others.push(parameter),
            }
        }
        own.rest = match others.is_empty() {
            true => before.to_owned(),
            false => format!("{before}?{}", others.join("&")),
        };
        own
    }
}

/// Returns an address for each host of one.
fn of_each_host(url: &str) -> Vec<String> {
    let start = url.find("://").map(|at| at + 3);
    // With these the hosts belong together.
    let is_one = ["hostaddr=", "load_balance_hosts="].iter().any(|it| url.contains(it));
    let Some(start) = start.filter(|_| !is_one) else { return vec![url.to_owned()] };
    let end = url[start..].find(['/', '?']).map_or(url.len(), |at| start + at);
    let start = url[start..end].find('@').map_or(start, |at| start + at + 1);
    let hosts = url[start..end].split(',');
    hosts.map(|host| [&url[..start], host, &url[end..]].concat()).collect()
}

/// Returns how errors call the host of an address.
pub(super) fn named(host: &Config) -> String {
    let port = host.get_ports().first().unwrap_or(&5432);
    let name = |host: &Host| match host {
        Host::Tcp(name) => format!("{name}:{port}"),
        #[cfg(unix)]
        Host::Unix(folder) => folder.display().to_string(),
    };
    host.get_hosts().iter().map(name).collect::<Vec<_>>().join(", ")
}

/// What is checked of a server before anything is sent to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    Nothing,
    Issuer,
    IssuerAndName,
}

/// Returns what encrypts connections.
fn client(check: Check, roots: Option<&str>) -> Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let failed = |error: rustls::Error| Error::Storage { source: error.into() };
    let (issuer, trusted) = match check {
        Check::Nothing => (None, Vec::new()),
        _ => {
            let (roots, certificates) = trusted(roots)?;
            let builder =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            let verifier = builder.build();
            let verifier = verifier.map_err(|error| Error::Storage { source: error.into() })?;
            (Some(verifier), certificates)
        }
    };
    let checks_name = check == Check::IssuerAndName;
    let verifier = Verifier { issuer, trusted, checks_name, provider: Arc::clone(&provider) };
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

/// Returns who is trusted: those in a file, with their certificates, or whom the public trusts.
fn trusted(file: Option<&str>) -> Result<(RootCertStore, Vec<CertificateDer<'static>>)> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file.filter(|file| *file != "system") else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok((roots, Vec::new()));
    };
    let failed = |why: String| Error::Io { path: file.into(), source: std::io::Error::other(why) };
    let read = CertificateDer::pem_file_iter(file).map_err(|error| failed(error.to_string()))?;
    let mut certificates = Vec::new();
    for certificate in read {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots.add(certificate.clone()).map_err(|error| failed(error.to_string()))?;
        certificates.push(certificate);
    }
    match roots.is_empty() {
        true => Err(failed("it has no certificate".to_owned())),
        false => Ok((roots, certificates)),
    }
}

/// Checks a server as far as an address asks for.
#[derive(Debug)]
struct Verifier {
    issuer: Option<Arc<WebPkiServerVerifier>>,
    /// The certificates of a file.
    trusted: Vec<CertificateDer<'static>>,
    checks_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext, Other};
        let Some(issuer) = &self.issuer else { return Ok(ServerCertVerified::assertion()) };
        match issuer.verify_server_cert(certificate, others, name, ocsp, now) {
            // The name is checked last.
            Err(rustls::Error::InvalidCertificate(
                NotValidForName | NotValidForNameContext { .. },
            )) if !self.checks_name => Ok(ServerCertVerified::assertion()),
            // One that signs itself is mostly that of an issuer, and no issuer may answer as a server. It is trusted itself; its dates
            // are checked first.
            Err(rustls::Error::InvalidCertificate(Other(_)))
                if self.trusted.iter().any(|trusted| trusted == certificate) =>
            {
                if self.checks_name {
                    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            answer => answer,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_does_not_know_is_taken_out_of_an_address() {
        let own = |schema, mode, roots, rest: &str| {
            let rest = rest.to_owned();
            Own { schema, prepare: None, mode, roots, rest }
        };
        let plain = "postgresql://a@h/db";
        assert_eq!(Own::of(plain), own("talktree", None, None, plain));
        assert_eq!(Own::of("postgresql://a@h/db?schema=x"), own("x", None, None, plain));
        assert_eq!(
            Own::of(
                "postgresql://a@h/db?host=/tmp&schema=x&sslmode=require&port=1&sslrootcert=/a.pem"
            ),
            own("x", Some("require"), Some("/a.pem"), "postgresql://a@h/db?host=/tmp&port=1")
        );
    }

    #[test]
    fn an_address_of_several_hosts_is_one_for_each() {
        let both = "postgresql://a:b,c@h:1,[::1]:2/db?connect_timeout=1,2";
        let each = [
            "postgresql://a:b,c@h:1/db?connect_timeout=1,2",
            "postgresql://a:b,c@[::1]:2/db?connect_timeout=1,2",
        ];
        assert_eq!(of_each_host(both), each);
        for one in ["postgresql:///db?host=/a,b", "host=a,b", "postgresql://a,b?hostaddr=::1,::2"] {
            assert_eq!(of_each_host(one), [one]);
        }
    }

    #[test]
    fn the_longest_name_of_a_schema_is_taken() {
        let url = format!("postgresql://a@h/db?schema={}", "x".repeat(63));
        assert!(Address::parse(&url, Duration::ZERO).is_ok());
    }

    #[test]
    fn an_address_that_is_not_understood_is_an_error_without_its_password() {
        for (url, why) in [
            ("postgresql://a:secret@h:x/db", "expected postgresql://"),
            ("postgresql://a:secret@h/db?sslmode=sometimes", "sslmode is"),
            ("postgresql://a:secret@h/db?schema=$user", "is not $user"),
            ("postgresql://a:secret@h/db?schema=", "1 to 63 bytes"),
            ("postgresql://a:secret@h/db?port=1&shcema=a", "no parameter shcema"),
            (
                "postgresql://a:secret@h/db?target_session_attrs=most",
                "no parameter target_session_attrs, or",
            ),
            (&*format!("postgresql://a:secret@h/db?schema={}", "é".repeat(32)), "63 bytes"),
            ("postgresql://a:secret@h/db?sslrootcert=/nowhere.pem", "/nowhere.pem"),
        ] {
            let error = Address::parse(url, Duration::ZERO).map(drop).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("secret"), "{error}");
        }
    }
}
