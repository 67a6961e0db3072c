//! Listens, answers requests and logs them.

use std::{
    convert::Infallible,
    fs::Permissions,
    io,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::{
    Method, Request, StatusCode, body::Incoming, client::conn::http1::handshake, header::HOST,
    server::conn::http1, service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::{
    net::{TcpListener, UnixListener, UnixStream},
    pin,
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, info, warn};

use crate::{
    address::{self, Address, Stream},
    attach::Seat,
    calls::{self, Answer, Door},
    engine::Engine,
    quota::Quota,
    refusal::Refusal,
    settings::Settings,
};

/// The time limit of a request's head.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// The longest head, in bytes.
const MAX_HEAD_BYTES: usize = 32 << 10;
const MAX_HEADERS: usize = 64;
/// The time for which requests may go on after the shutdown began.
const GRACE: Duration = Duration::from_secs(5);
/// The pause after a connection could not be accepted, for example because too many files are open.
const PAUSE: Duration = Duration::from_millis(200);
/// The time limit of the health check.
const HEALTH_LIMIT: Duration = Duration::from_secs(5);

/// Listens for requests. The file of a Unix socket is removed when this is dropped.
#[derive(Debug)]
pub struct Listener {
    kind: Kind,
    address: Address,
    /// The configured host name, if this listens on TCP.
    host: Option<String>,
}

#[derive(Debug)]
enum Kind {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens on `address`. A socket gets `mode` and, if given, `group`. The socket of a killed process is
    /// replaced; one that still accepts connections is not.
    pub async fn bind(address: &Address, mode: u32, group: Option<u32>) -> io::Result<Self> {
        match address {
            Address::Unix(path) => {
                remove_stale(path).await?;
                let listener = UnixListener::bind(path)?;
                if group.is_some() {
                    chown(path, None, group)?;
                }
                std::fs::set_permissions(path, Permissions::from_mode(mode))?;
                Ok(Self {
                    kind: Kind::Unix(listener, path.clone()),
                    address: address.clone(),
                    host: None,
                })
            }
            Address::Tcp(host) => {
                let private = address::private(host).await.map_err(io::Error::other)?;
                let listener = TcpListener::bind(private).await?;
                let bound = listener.local_addr()?;
                Ok(Self {
                    kind: Kind::Tcp(listener),
                    address: Address::Tcp(bound.to_string()),
                    host: Some(address::name(host).to_owned()),
                })
            }
        }
    }

    /// Returns the address, with the port that was assigned for port 0.
    pub fn address(&self) -> &Address {
        &self.address
    }

    async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match &self.kind {
            Kind::Unix(listener, _) => Box::new(listener.accept().await?.0),
            Kind::Tcp(listener) => Box::new(listener.accept().await?.0),
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Kind::Unix(_, path) = &self.kind {
            let _ = std::fs::remove_file(path);
        }
    }
}

async fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    let is_socket = found.file_type().is_socket();
    if !is_socket || UnixStream::connect(path).await.is_ok() {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    std::fs::remove_file(path)
}

/// Serves requests until `shutdown`. Requests then have a few seconds; the streams of containers end at once,
/// which ends the programs that read them.
pub async fn serve(settings: Settings, listener: Listener, shutdown: CancellationToken) {
    let door = Arc::new(Door {
        engine: Arc::new(Engine::new(settings.engine.clone())),
        containers: Quota::new("containers", "--max-containers", settings.max_containers),
        volumes: Quota::new("volumes", "--max-volumes", settings.max_volumes),
        making: TaskTracker::new(),
        settings,
        streams: TaskTracker::new(),
        shutdown,
        host: listener.host.clone(),
    });
    info!(
        "Let Sepal use the engine at `{}` through `{}`, with label `{}`",
        door.settings.engine, listener.address, door.settings.label
    );
    let connections = TaskTracker::new();
    tokio::select! {
        () = take_all(&door, &listener, &connections) => {}
        () = door.shutdown.cancelled() => {}
    }
    drop(listener);
    connections.close();
    connections.wait().await;
    end(&door).await;
    info!("Everything has ended");
}

/// Waits for the work that requests began.
async fn end(door: &Door) {
    door.making.close();
    if timeout(GRACE, door.making.wait()).await.is_err() {
        warn!("The engine has not answered what it was asked to make");
    }
    door.streams.close();
    door.streams.wait().await;
    door.engine.close().await;
}

/// Accepts connections forever.
async fn take_all(door: &Arc<Door>, listener: &Listener, connections: &TaskTracker) {
    let places = Arc::new(Semaphore::new(door.settings.max_connections));
    loop {
        let stream = match listener.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                warn!(%error, "A connection cannot be taken");
                sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            warn!("A connection is refused: `--max-connections` are open");
            continue;
        };
        let door = Arc::clone(door);
        connections.spawn(async move {
            converse(&door, stream, Seat::new(place)).await;
        });
    }
}

/// Answers the requests of one connection.
async fn converse(door: &Arc<Door>, stream: Box<dyn Stream>, seat: Seat) {
    let answering = service_fn(|mut request: Request<Incoming>| {
        let door = Arc::clone(door);
        request.extensions_mut().insert(seat.clone());
        async move { Ok::<Answer, Infallible>(answer(&door, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), answering)
        .with_upgrades();
    pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = door.shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            timeout(GRACE, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        debug!(%error, "A client's connection broke");
    }
}

/// Answers one request, and logs it if it changes something or is refused.
async fn answer(door: &Door, request: Request<Incoming>) -> Answer {
    let began = Instant::now();
    let what = format!("{} {}", request.method(), request.uri().path());
    let changes = request.method() != Method::GET;
    let carried_out = door.carry_out(request).await;
    let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    match carried_out {
        Ok(told) => {
            let status = told.status().as_u16();
            if changes {
                info!(status, duration_ms, "Carry out `{what}`");
            }
            told
        }
        Err(refusal) => {
            write_down(&refusal, &what, duration_ms);
            refused(refusal.status(), &refusal.to_string())
        }
    }
}

fn write_down(refusal: &Refusal, what: &str, duration_ms: u64) {
    let status = refusal.status().as_u16();
    if refusal.is_suspicious() {
        warn!(status, duration_ms, "Refuse `{what}`: {refusal}");
    } else {
        debug!(status, duration_ms, "Refuse `{what}`: {refusal}");
    }
}

/// Builds an error in Docker's format.
fn refused(status: StatusCode, message: &str) -> Answer {
    // Responses with other statuses have no body, and are not errors.
    let status = if status.is_client_error() || status.is_server_error() {
        status
    } else {
        StatusCode::BAD_GATEWAY
    };
    calls::json(status, &json!({ "message": message }))
}

/// Asks a running proxy whether it and its engine are well; the error says what is wrong.
pub async fn health(address: &Address) -> Result<(), String> {
    let asking = async {
        let stream = address.connect().await?;
        let connected = handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = connected.map_err(io::Error::other)?;
        let request = Request::get("/health")
            .header(HOST, address.host())
            .body(Empty::<Bytes>::new())
            .map_err(io::Error::other)?;
        let answered = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let body = response.into_body().collect().await?;
            Ok::<_, hyper::Error>((status, body.to_bytes()))
        };
        tokio::select! {
            answered = answered => answered.map_err(io::Error::other),
            _ = connection => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    };
    match timeout(HEALTH_LIMIT, asking).await {
        Ok(Ok((StatusCode::OK, _))) => Ok(()),
        Ok(Ok((_, body))) => Err(String::from_utf8_lossy(&body).into_owned()),
        Ok(Err(error)) => Err(format!("nobody answers at `{address}`: {error}")),
        Err(_) => Err(format!("`{address}` does not answer in time")),
    }
}
