//! A secret that the program never has goes in on the way to its hosts, by `https`.

use std::sync::Arc;

use sepal::domain::AllowedHosts;
use sepal::net::{AUTHORITY_VARIABLE, EdgeSecret, Egress, Reach, Secrets};
use sepal::sandbox::{Access, Launch, ProgramEnd};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::rustls::RootCertStore;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::super::house::House;
use super::egress;
use crate::support::{Door, docker, vouched_for};

const STAND_IN: &str = "sepal-secret-0123456789abcdef0123456789abcdef";

/// Asks by Python, as most programs would: by what the environment says about proxies and authorities. The
/// host of the tests is this machine, for which no proxy is usual.
const ASK: &str = r#"
import os, urllib.request
os.environ.pop("NO_PROXY"); os.environ.pop("no_proxy")
request = urllib.request.Request(os.environ["ASKED"], headers={"Authorization": "Bearer " + os.environ["TOKEN"]})
print(urllib.request.urlopen(request, timeout=20).read().decode())
for number in filter(str.isdigit, os.listdir("/proc")):
    try: print(open(f"/proc/{number}/environ").read())
    except OSError: pass
"#;

/// A site by TLS that says back what it is asked.
struct TlsSite {
    port: u16,
    roots: RootCertStore,
    _serving: AbortOnDropHandle<()>,
}

impl TlsSite {
    async fn start() -> Self {
        let (acceptor, authority) = vouched_for();
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = async move {
            loop {
                let (visitor, _) = listener.accept().await.unwrap();
                let Ok(mut visitor) = acceptor.accept(visitor).await else {
                    continue;
                };
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = visitor.read_u8().await else {
                        break;
                    };
                    asked.push(byte);
                }
                let length = asked.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
                );
                let answer = [head.as_bytes(), &asked].concat();
                // Whoever has left hears nothing.
                let _ = visitor.write_all(&answer).await;
                let _ = visitor.shutdown().await;
            }
        };
        Self {
            port,
            roots,
            _serving: AbortOnDropHandle::new(TaskTracker::new().spawn(serving)),
        }
    }
}

#[tokio::test]
async fn a_program_in_bubblewrap_asks_with_a_secret_that_it_does_not_have() {
    asks_with_a_secret(House::bubblewrap().await).await;
}

#[tokio::test]
async fn a_program_in_docker_asks_with_a_secret_that_it_does_not_have() {
    let image = docker::packages_image();
    let house = House::docker_with(Door::Direct, |settings| settings.image = image).await;
    asks_with_a_secret(house).await;
}

async fn asks_with_a_secret(house: House) {
    let site = TlsSite::start().await;
    let host = format!("localhost:{}", site.port);
    let secret = EdgeSecret {
        stand_in: STAND_IN.to_owned(),
        value: "swordfish-7".into(),
        hosts: AllowedHosts::parse([&host]).unwrap(),
    };
    let secrets = Arc::new(Secrets::new(vec![secret], site.roots.clone()).unwrap());
    let authority = secrets.authority().to_owned();
    let allowed = Egress {
        secrets: Some(secrets),
        ..egress(Reach::Private, &[&host])
    };
    let environment = [
        ("TOKEN", STAND_IN.to_owned()),
        ("ASKED", format!("https://{host}/path")),
        (AUTHORITY_VARIABLE, authority),
    ];
    let launch = Launch {
        environment: environment
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
        workspace: Access::None,
        egress: Some(allowed),
        ..house.command(1, &["python3", "-c", ASK])
    };
    let (said, ended) = house.run_launch(launch).await;
    assert_eq!(ended, ProgramEnd::Exited(0), "{said}");
    assert!(said.contains("GET /path HTTP/1.1"), "{said}");
    assert!(said.contains("Bearer swordfish-7\r\n"), "{said}");
    // What the site said back is all that has it: no process of the sandbox does.
    assert_eq!(said.matches("swordfish").count(), 1, "{said}");
    assert!(said.contains(&format!("TOKEN={STAND_IN}")), "{said}");
    assert!(
        said.contains(&format!("sepal: reached {host} at ")),
        "{said}"
    );
    house.close().await;
}
