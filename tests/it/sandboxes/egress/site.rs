//! A site on this machine's loopback interface, in the plainest HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Ends when it is dropped.
pub(crate) struct Site {
    pub(crate) port: u16,
    visits: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let visits = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&visits);
        #[expect(clippy::disallowed_methods, reason = "a test's own server")]
        let serving = tokio::spawn(async move {
            let mut visitors = tokio::task::JoinSet::new();
            while let Ok((visitor, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                visitors.spawn(answer(visitor));
            }
        });
        Self {
            port,
            visits,
            serving,
        }
    }

    /// How many connections came.
    pub(crate) fn visits(&self) -> usize {
        self.visits.load(Ordering::Relaxed)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Says what was asked for, of which host; `/endless` never ends.
async fn answer(visitor: TcpStream) {
    let mut visitor = BufReader::new(visitor);
    let (mut line, mut path, mut host) = (String::new(), String::new(), "nobody".to_owned());
    while visitor
        .read_line(&mut line)
        .await
        .is_ok_and(|read| read > 2)
    {
        if let Some(rest) = line.strip_prefix("GET ") {
            path = rest.split(' ').next().unwrap_or_default().to_owned();
        }
        if let Some((_, name)) = line.trim_end().split_once("ost: ") {
            name.clone_into(&mut host);
        }
        line.clear();
    }
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    let said = format!("{head}I am {path} of {host}\n");
    let _ = visitor.write_all(said.as_bytes()).await;
    while path == "/endless" && visitor.write_all(&[b'z'; 16 << 10]).await.is_ok() {}
    let _ = visitor.shutdown().await;
}
