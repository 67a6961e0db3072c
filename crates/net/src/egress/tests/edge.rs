//! Secrets that the proxy inserts, tested with TLS sites on loopback.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::DEADLINE;
use crate::Guard;
use crate::egress::{EdgeSecret, Egress, Proxy, Reach, Secrets};
use sepal_core::domain::AllowedHosts;

/// A site on loopback that returns each request as the body of its response.
struct TlsSite {
    port: u16,
    roots: RootCertStore,
    _serving: AbortOnDropHandle<()>,
}

impl TlsSite {
    async fn start() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let mut roots = RootCertStore::empty();
        roots
            .add(params.self_signed(&key).unwrap().der().clone())
            .unwrap();
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let own = own.signed_by(&key, &issuer).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], key.into())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = async move {
            loop {
                let (visitor, _) = listener.accept().await.unwrap();
                let Ok(mut visitor) = acceptor.accept(visitor).await else {
                    continue;
                };
                while let Some(asked) = head(&mut visitor).await {
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{asked}",
                        asked.len()
                    );
                    visitor.write_all(answer.as_bytes()).await.unwrap();
                }
            }
        };
        Self {
            port,
            roots,
            _serving: AbortOnDropHandle::new(TaskTracker::new().spawn(serving)),
        }
    }
}

/// The head of a message, up to the empty line.
async fn head(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Option<String> {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        read.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(read).ok()
}

/// A program behind the proxy, whose token is for the given hosts.
struct Program {
    proxy: Proxy,
    secrets: Arc<Secrets>,
}

const STAND_IN: &str = "sepal-secret-0123456789abcdef0123456789abcdef";

impl Program {
    fn new(site: &TlsSite, hosts: &[&str], secret: &str) -> Self {
        let listed = format!("localhost:{}", site.port);
        let mut egress = Egress::new(
            AllowedHosts::parse([listed]).unwrap(),
            Reach::Private,
            Guard::default(),
        );
        let secret = EdgeSecret {
            stand_in: STAND_IN.to_owned(),
            value: secret.into(),
            hosts: AllowedHosts::parse(hosts).unwrap(),
        };
        let secrets = Arc::new(Secrets::new(vec![secret], site.roots.clone()).unwrap());
        egress.secrets = Some(Arc::clone(&secrets));
        let (lines, _) = mpsc::channel(8);
        Self {
            proxy: Proxy::new(egress, "test", lines),
            secrets,
        }
    }

    /// Opens TLS to the site through the proxy, trusting `roots`.
    async fn connect(
        &self,
        port: u16,
        roots: RootCertStore,
    ) -> std::io::Result<TlsStream<DuplexStream>> {
        let (mut own, stream) = duplex(64 << 10);
        let proxy = self.proxy.clone();
        TaskTracker::new().spawn(async move { proxy.serve(stream).await });
        let asked = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n");
        own.write_all(asked.as_bytes()).await.unwrap();
        assert!(head(&mut own).await.unwrap().starts_with("HTTP/1.1 200"));
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, own)
            .await
    }

    /// The authority that the program's tunnel makes it trust.
    fn authority(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        let own = CertificateDer::from_pem_slice(self.secrets.authority().as_bytes()).unwrap();
        roots.add(own).unwrap();
        roots
    }
}

/// Sends one request; returns the head of the response, and the body with the request that the site received.
async fn ask(stream: &mut TlsStream<DuplexStream>, said: &str) -> (String, String) {
    let asking = async {
        stream.write_all(said.as_bytes()).await.unwrap();
        let head = head(stream).await.unwrap();
        let length = head
            .to_lowercase()
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).await.unwrap();
        (head, String::from_utf8(body).unwrap())
    };
    tokio::time::timeout(DEADLINE, asking).await.unwrap()
}

#[tokio::test]
async fn a_secret_goes_into_headers_and_the_address_of_its_host() {
    let site = TlsSite::start().await;
    let host = format!("localhost:{}", site.port);
    let program = Program::new(&site, &[&host], "sword fish/2");
    let mut stream = program
        .connect(site.port, program.authority())
        .await
        .unwrap();
    let basic = base64(&format!("me:{STAND_IN}"));
    let said = format!(
        "GET /a?key={STAND_IN}&b=c HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer {STAND_IN}\r\n\
         X-Key: {STAND_IN}\r\nX-Other: kept\r\n\r\n"
    );
    let (answer, heard) = ask(&mut stream, &said).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let heard = heard.to_lowercase();
    assert!(
        heard.contains("get /a?key=sword%20fish%2f2&b=c "),
        "{heard}"
    );
    assert!(
        heard.contains("authorization: bearer sword fish/2\r\n"),
        "{heard}"
    );
    assert!(heard.contains("x-key: sword fish/2\r\n"), "{heard}");
    assert!(heard.contains("x-other: kept\r\n"), "{heard}");
    assert!(heard.contains(&format!("host: {host}\r\n")), "{heard}");
    assert!(
        !heard.contains("evil.example") && !heard.contains(STAND_IN),
        "{heard}"
    );
    // The next request of the same connection.
    let said = format!("GET / HTTP/1.1\r\nAuthorization: Basic {basic}\r\n\r\n");
    let (_, heard) = ask(&mut stream, &said).await;
    let expected = format!("Basic {}", base64("me:sword fish/2"));
    assert!(heard.contains(&expected), "{heard}");
}

#[tokio::test]
async fn other_hosts_are_passed_on_unopened_and_learn_nothing() {
    let site = TlsSite::start().await;
    let program = Program::new(&site, &["api.example.com"], "swordfish");
    // The program gets the certificate of the site itself.
    let refused = program.connect(site.port, program.authority()).await;
    assert!(refused.is_err());
    let mut stream = program
        .connect(site.port, site.roots.clone())
        .await
        .unwrap();
    let said = format!("GET / HTTP/1.1\r\nAuthorization: Bearer {STAND_IN}\r\n\r\n");
    let (_, heard) = ask(&mut stream, &said).await;
    assert!(heard.contains(&format!("Bearer {STAND_IN}")), "{heard}");
}

#[tokio::test]
async fn a_host_that_cannot_prove_itself_gets_no_secret() {
    let (site, other) = (TlsSite::start().await, TlsSite::start().await);
    let host = format!("localhost:{}", site.port);
    // The roots of the other site do not vouch for this one.
    let site = TlsSite {
        roots: other.roots,
        ..site
    };
    let program = Program::new(&site, &[&host], "swordfish");
    let mut stream = program
        .connect(site.port, program.authority())
        .await
        .unwrap();
    let said = format!("GET / HTTP/1.1\r\nAuthorization: Bearer {STAND_IN}\r\n\r\n");
    let (answer, said) = ask(&mut stream, &said).await;
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert!(said.contains(&format!("{host} is not believed")), "{said}");
}

#[tokio::test]
async fn a_secret_that_no_header_can_have_is_told_and_not_cut() {
    let site = TlsSite::start().await;
    let host = format!("localhost:{}", site.port);
    let program = Program::new(&site, &[&host], "sword\r\nX-Evil: 1");
    let mut stream = program
        .connect(site.port, program.authority())
        .await
        .unwrap();
    let said = format!("GET / HTTP/1.1\r\nAuthorization: Bearer {STAND_IN}\r\n\r\n");
    let (answer, said) = ask(&mut stream, &said).await;
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert!(
        said.contains("characters that no header may have"),
        "{said}"
    );
    assert!(!said.contains("sword"), "{said}");
}

#[test]
fn what_is_printed_of_them_says_nothing() {
    let secret = EdgeSecret {
        stand_in: STAND_IN.to_owned(),
        value: "swordfish".into(),
        hosts: AllowedHosts::default(),
    };
    let secrets = Secrets::new(vec![secret.clone()], RootCertStore::empty()).unwrap();
    assert!(!format!("{secrets:?} {secret:?}").contains("swordfish"));
}

fn base64(text: &str) -> String {
    use ::base64::Engine as _;
    ::base64::engine::general_purpose::STANDARD.encode(text)
}
