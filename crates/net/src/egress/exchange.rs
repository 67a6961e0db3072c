//! Handles the requests of one connection: `CONNECT` for TLS or for any protocol that an entry permits, and
//! plain HTTP.

use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderValue};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio_util::task::TaskTracker;

use super::dial::{DialRefusal, Target, dial};
use super::hello::{UNRECOGNIZED_NAME, read_hello};
use super::intercept::Interception;
use super::journal::{Journal, Record};
use super::message::{Body, Refusal, address_to, broken, remove_hop_by_hop, text};
use super::traffic::{CountedStream, Traffic};
use super::{Egress, IDLE_LIMIT};

/// A connection of the program, as long as it speaks HTTP to the proxy.
pub(super) struct Exchange<'a> {
    egress: &'a Egress,
    journal: &'a Journal,
    tasks: &'a TaskTracker,
    /// The tunnel that `CONNECT` opened. Never locked across an await.
    opened: Mutex<Option<OpenTunnel>>,
}

/// A tunnel, which no longer speaks HTTP to the proxy.
struct OpenTunnel {
    program: OnUpgrade,
    host: CountedStream<TcpStream>,
    /// Written to the log when it is dropped.
    record: Record,
}

/// A connection to a host.
struct HostConnection {
    host: CountedStream<TcpStream>,
    record: Record,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(egress: &'a Egress, journal: &'a Journal, tasks: &'a TaskTracker) -> Self {
        Self {
            egress,
            journal,
            tasks,
            opened: Mutex::default(),
        }
    }

    /// Answers one request; failures are answers too.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let answered = if request.method() == Method::CONNECT {
            self.open(request).await
        } else {
            self.forward(request).await
        };
        Ok(answered.unwrap_or_else(Refusal::answer))
    }

    /// Copies the bytes of the tunnel, if one was opened.
    pub(super) async fn pass_on(self) {
        let opened = self
            .opened
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(mut opened) = opened else {
            return;
        };
        let Ok(program) = opened.program.await else {
            return;
        };
        let mut program = TokioIo::new(program);
        let traffic = opened.host.traffic.clone();
        let target = &opened.record.target;
        let passing = async {
            match Interception::of(self.egress, target) {
                Some(interception) => interception.run(program, opened.host).await,
                None if self.begins(&mut program, &mut opened.host, target).await => {
                    // An error means that one side disconnected, which the other side notices itself.
                    drop(copy_bidirectional(&mut program, &mut opened.host).await);
                }
                None => {}
            }
        };
        tokio::select! {
            () = passing => {}
            () = traffic.until_idle(IDLE_LIMIT) => {}
            () = self.egress.withdrawn(&opened.record.target) => {}
        }
    }

    /// Checks the start of a tunnel and passes it on. Returns true if the program may continue: with TLS for
    /// the host, or with any protocol if an entry permits that.
    async fn begins(
        &self,
        program: &mut (impl AsyncRead + AsyncWrite + Unpin),
        host: &mut (impl AsyncWrite + Unpin),
        target: &Target,
    ) -> bool {
        if self.egress.is_raw(target) {
            return true;
        }
        match read_hello(program, &target.host).await {
            Ok(hello) => host.write_all(&hello).await.is_ok(),
            Err(why) => {
                self.journal.refused(target, &why, &self.egress.refusals);
                if !matches!(why, DialRefusal::NotTls) {
                    // The program may have disconnected already.
                    drop(program.write_all(&UNRECOGNIZED_NAME).await);
                }
                drop(program.shutdown().await);
                false
            }
        }
    }

    async fn open(&self, mut request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let (host, port) = place(request.uri(), 443).ok_or_else(no_proxy_request)?;
        let HostConnection { host, record } = self.reach(&host, port).await?;
        let opened = OpenTunnel {
            program: hyper::upgrade::on(&mut request),
            host,
            record,
        };
        let mut slot = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = Some(opened);
        Ok(Response::new(text(String::new())))
    }

    async fn forward(&self, mut request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let is_plain = request.uri().scheme_str() == Some("http");
        let (host, port) = place(request.uri(), 80)
            .filter(|_| is_plain)
            .ok_or_else(no_proxy_request)?;
        let HostConnection { host, record } = self.reach(&host, port).await?;
        let target = record.target.clone();
        let traffic = host.traffic.clone();
        let shaken = http1::handshake(TokioIo::new(host)).await;
        let (mut sender, connection) = shaken.map_err(|error| broken(&target, &error))?;
        let egress = self.egress.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                // The waiting request reports errors of the connection.
                _ = connection => {}
                () = traffic.until_idle(IDLE_LIMIT) => {}
                () = egress.withdrawn(&record.target) => {}
            }
            drop(record);
        });
        address_to(&mut request, &target, 80);
        let close = HeaderValue::from_static("close");
        request.headers_mut().insert(header::CONNECTION, close);
        let answered = sender.send_request(request).await;
        let mut answer = answered.map_err(|error| broken(&target, &error))?;
        remove_hop_by_hop(answer.headers_mut());
        Ok(answer.map(BodyExt::boxed))
    }

    async fn reach(&self, host: &str, port: u16) -> Result<HostConnection, Refusal> {
        let dialled = match Target::of(host, port) {
            Ok(target) => {
                let dialled = dial(&target, self.egress).await;
                dialled
                    .map(|(stream, address)| (stream, address, target.clone()))
                    .map_err(|why| (target, why))
            }
            Err(refused) => Err(refused),
        };
        match dialled {
            Ok((stream, address, target)) => {
                let traffic = Traffic::default();
                let record = self.journal.reached(target, address, traffic.clone());
                let host = CountedStream { stream, traffic };
                Ok(HostConnection { host, record })
            }
            Err((target, why)) => {
                self.journal.refused(&target, &why, &self.egress.refusals);
                Err(self.refusal(&target, &why))
            }
        }
    }

    /// The refusal as a text for people and models.
    fn refusal(&self, target: &Target, why: &DialRefusal) -> Refusal {
        let Target { host, port } = target;
        let may = self.what_may_be_reached();
        let (whose, remedy) = self.who_can_allow(target);
        let (status, said) = match why {
            DialRefusal::Unlisted => (
                StatusCode::FORBIDDEN,
                format!("{whose} may not reach {host}:{port}. {may} {remedy}"),
            ),
            DialRefusal::Unshown => (
                StatusCode::FORBIDDEN,
                format!("{whose} may not reach {host}:{port} yet: {why}. Run the command again."),
            ),
            DialRefusal::NotTls
            | DialRefusal::Nameless
            | DialRefusal::OtherName(_)
            | DialRefusal::Address
            | DialRefusal::Name
            | DialRefusal::Private => (
                StatusCode::FORBIDDEN,
                format!("{whose} may not reach {host}:{port}: {why}. {may}"),
            ),
            DialRefusal::Unknown(_) | DialRefusal::Unreachable(_) => (
                StatusCode::BAD_GATEWAY,
                format!("{host}:{port} cannot be reached: {why}."),
            ),
            DialRefusal::TooSlow => (
                StatusCode::GATEWAY_TIMEOUT,
                format!("{host}:{port} cannot be reached: {why}."),
            ),
        };
        Refusal { status, said }
    }

    fn what_may_be_reached(&self) -> String {
        let mut all: Vec<String> = self.egress.hosts.iter().map(ToString::to_string).collect();
        if let Some(grants) = &self.egress.grants {
            all.extend(grants.hosts());
        }
        if all.is_empty() {
            "It may reach no host yet.".to_owned()
        } else {
            format!("It may reach: {}.", all.join(", "))
        }
    }

    /// The owner of the program, and the way to allow the host.
    fn who_can_allow(&self, target: &Target) -> (&'static str, String) {
        if self.egress.grants.is_some() {
            let remedy = "The session's page shows this line and who can allow the host for the session; \
                          once that has happened, run the command again.";
            return ("this session", remedy.to_owned());
        }
        let remedy = format!(
            "Who looks after servers can allow it: add `{}` to the server's `network`.",
            target.entry()
        );
        ("this server", remedy)
    }
}

/// The host and port of a request; the default port if it names none.
fn place(uri: &Uri, usual_port: u16) -> Option<(String, u16)> {
    let authority = uri.authority()?;
    let port = match authority.port() {
        Some(port) => port.as_str().parse().ok()?,
        None => usual_port,
    };
    Some((authority.host().to_owned(), port))
}

fn no_proxy_request() -> Refusal {
    Refusal {
        status: StatusCode::BAD_REQUEST,
        said: "this is a proxy. It takes `CONNECT host:port`, and requests with a whole `http://` \
               address."
            .to_owned(),
    }
}
