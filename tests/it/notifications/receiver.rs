//! A stand-in for whoever receives webhooks: keeps what it is sent, and checks every signature by its
//! own computation.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::support::DEADLINE;

/// A message as it came.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) path: String,
    pub(crate) id: String,
    pub(crate) at: i64,
    pub(crate) signature: String,
    pub(crate) text: String,
}

impl Message {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// What it says but for the address of the page: a process that starts anew has another port here.
    pub(crate) fn facts(&self) -> Value {
        let mut facts = self.json();
        facts["data"].as_object_mut().unwrap().remove("url");
        facts
    }

    pub(crate) fn kind(&self) -> String {
        self.json()["type"].as_str().unwrap().to_owned()
    }

    /// HMAC by its definition (RFC 2104), so that it is not our own code that agrees with itself.
    #[track_caller]
    pub(crate) fn check(&self, secret: &str) {
        let key = STANDARD
            .decode(secret.strip_prefix("whsec_").unwrap())
            .unwrap();
        assert!((24..=64).contains(&key.len()));
        let pad = |byte: u8| -> Vec<u8> {
            let padded = key.iter().copied().chain(std::iter::repeat(0));
            padded.take(64).map(|bits| bits ^ byte).collect()
        };
        let signed = format!("{}.{}.{}", self.id, self.at, self.text);
        let inner = Sha256::digest([pad(0x36), signed.into_bytes()].concat());
        let outer = Sha256::digest([pad(0x5c), inner.to_vec()].concat());
        assert_eq!(self.signature, format!("v1,{}", STANDARD.encode(outer)));
    }
}

#[derive(Default)]
struct Taken {
    messages: Vec<Message>,
    /// What is answered instead of 204; 0 = nothing, ever.
    answers: VecDeque<u16>,
}

/// The stand-in.
pub(crate) struct Receiver {
    address: SocketAddr,
    taken: Arc<Mutex<Taken>>,
    count: watch::Sender<usize>,
    _server: AbortOnDropHandle<()>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let taken = Arc::<Mutex<Taken>>::default();
        let count = watch::Sender::new(0);
        let state = (Arc::clone(&taken), count.clone());
        let router = Router::new().fallback(take).with_state(state);
        let server = TaskTracker::new().spawn(async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self {
            address,
            taken,
            count,
            _server: AbortOnDropHandle::new(server),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The next messages are answered with these; 0 = not at all.
    pub(crate) fn will_answer(&self, statuses: &[u16]) {
        self.taken.lock().unwrap().answers.extend(statuses);
    }

    /// All that came, once there are so many.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Message> {
        let mut counted = self.count.subscribe();
        let waiting = counted.wait_for(|counted| *counted >= count);
        let waited = tokio::time::timeout(DEADLINE, waiting).await;
        let messages = self.messages();
        assert!(
            waited.is_ok(),
            "{} of {count}: {messages:#?}",
            messages.len()
        );
        messages
    }

    pub(crate) fn messages(&self) -> Vec<Message> {
        self.taken.lock().unwrap().messages.clone()
    }
}

type Shared = (Arc<Mutex<Taken>>, watch::Sender<usize>);

async fn take(
    State((taken, count)): State<Shared>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "application/json");
    let message = Message {
        path: uri.path().to_owned(),
        id: header("webhook-id"),
        at: header("webhook-timestamp").parse().unwrap(),
        signature: header("webhook-signature"),
        text: String::from_utf8(body.to_vec()).unwrap(),
    };
    let answer = {
        let mut taken = taken.lock().unwrap();
        taken.messages.push(message);
        taken.answers.pop_front().unwrap_or(204)
    };
    count.send_modify(|count| *count += 1);
    if answer == 0 {
        std::future::pending::<()>().await;
    }
    let status = StatusCode::from_u16(answer).unwrap();
    // Whoever follows it comes back by another path.
    (status, [("location", "/followed")]).into_response()
}
