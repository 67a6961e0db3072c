//! Intercepts TLS connections to insert secrets: only to the hosts that a secret is for.
//!
//! Toward the program, the proxy acts as the host, with a certificate of the sandbox's own authority. Toward
//! the host, the proxy is a TLS client and verifies the host's certificate as the program would. Requests go
//! to the host that was named when the connection started, whatever the requests themselves say.

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self as client, SendRequest};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::dial::Target;
use super::message::{Body, Refusal, address_to, broken, remove_hop_by_hop};
use super::secrets::Secrets;
use super::{CONNECT_LIMIT, Egress, HEAD_LIMIT, MAX_HEAD_BYTES};

/// The default port of `https`.
const HTTPS: u16 = 443;

/// One connection into which secrets are inserted.
pub(super) struct Interception<'a> {
    secrets: Arc<Secrets>,
    target: &'a Target,
}

impl<'a> Interception<'a> {
    /// The interception of a connection, if a secret is for its host.
    pub(super) fn of(egress: &Egress, target: &'a Target) -> Option<Self> {
        let secrets = egress.secrets.clone()?;
        let is_one = secrets.is_for(target);
        is_one.then_some(Self { secrets, target })
    }

    /// Answers the program's requests until either side disconnects.
    pub(super) async fn run(
        self,
        program: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        host: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) {
        let Some(config) = self.secrets.acting_as(&self.target.host) else {
            return;
        };
        let accepting = TlsAcceptor::from(config).accept(program);
        let Ok(Ok(program)) = timeout(HEAD_LIMIT, accepting).await else {
            tracing::debug!(
                egress.host = %self.target.host,
                "A sandboxed program does not believe the authority of its sandbox"
            );
            return;
        };
        let host = self.connect(host).await;
        let (sender, connection) = match host {
            Ok((sender, connection)) => (Ok(Mutex::new(sender)), Some(connection)),
            Err(said) => (Err(said), None),
        };
        let answering = server::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_LIMIT)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(
                TokioIo::new(program),
                service_fn(|request| self.answer(request, &sender)),
            );
        let onwards = async {
            if let Some(connection) = connection {
                // The waiting request reports errors of the connection.
                let _ = connection.await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = answering => {}
            () = onwards => {}
        }
    }

    /// Establishes TLS with the host; the error is the message for the program.
    async fn connect<S>(
        &self,
        host: S,
    ) -> Result<
        (
            SendRequest<Incoming>,
            impl Future<Output = hyper::Result<()>> + use<S>,
        ),
        String,
    >
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let Target { host: name, port } = self.target;
        let server = ServerName::try_from(name.clone());
        let server = server.map_err(|_| format!("{name}:{port} is no name for TLS."))?;
        let connecting = TlsConnector::from(self.secrets.client()).connect(server, host);
        let connected = timeout(CONNECT_LIMIT, connecting).await;
        let connected = connected.map_err(|_| format!("{name}:{port} does not answer by TLS."))?;
        let stream =
            connected.map_err(|error| format!("{name}:{port} is not believed: {error}."))?;
        let shaken = client::handshake(TokioIo::new(stream)).await;
        shaken.map_err(|_| format!("{name}:{port} speaks no HTTP."))
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        sender: &Result<Mutex<SendRequest<Incoming>>, String>,
    ) -> Result<Response<Body>, Infallible> {
        let answered = match sender {
            Ok(sender) => self.forward(request, sender).await,
            Err(said) => Err(Refusal {
                status: StatusCode::BAD_GATEWAY,
                said: said.clone(),
            }),
        };
        Ok(answered.unwrap_or_else(|refusal| {
            let mut answer = refusal.answer();
            // The next request needs a new connection.
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(header::CONNECTION, close);
            answer
        }))
    }

    async fn forward(
        &self,
        mut request: Request<Incoming>,
        sender: &Mutex<SendRequest<Incoming>>,
    ) -> Result<Response<Body>, Refusal> {
        address_to(&mut request, self.target, HTTPS);
        self.secrets.put_in(&mut request, self.target)?;
        let mut sender = sender.lock().await;
        let answering = async {
            sender.ready().await?;
            sender.send_request(request).await
        };
        let answered = answering.await;
        let mut answer = answered.map_err(|error| broken(self.target, &error))?;
        let mut ends = answer.headers().get_all(header::CONNECTION).iter();
        let ends = ends.any(|value| value.as_bytes().eq_ignore_ascii_case(b"close"));
        remove_hop_by_hop(answer.headers_mut());
        if ends {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(header::CONNECTION, close);
        }
        Ok(answer.map(BodyExt::boxed))
    }
}
