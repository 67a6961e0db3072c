//! The rows of the session list, projected from the journals in batches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::SessionKey;
use crate::session::{Activity, Control};
use crate::store::records::{Records, SessionRow, SessionState};

/// Rows that may wait; a full queue drops a row, and the next commit of its session brings it back.
const QUEUE: usize = 4096;

/// Between two writes, unless somebody waits for one: commits of a turn follow each other within
/// milliseconds, of each session only the last row counts, and a write is a sync to disk.
const PAUSE: Duration = Duration::from_millis(100);

/// Until rows that could not be written are tried again, with whatever came meanwhile.
const AGAIN: Duration = Duration::from_secs(1);

/// Takes rows and writes them when the database has time.
#[derive(Clone)]
pub(super) struct Projection {
    news: mpsc::Sender<News>,
    /// Rung when the next write shall not wait any longer.
    bell: Arc<Notify>,
}

/// One change of the list.
enum News {
    Changed(SessionRow),
    Gone(SessionKey),
    /// Everything before this is written.
    Written(oneshot::Sender<()>),
}

impl News {
    /// Whether somebody waits for it.
    fn is_urgent(&self) -> bool {
        match self {
            Self::Written(_) => true,
            Self::Changed(_) | Self::Gone(_) => false,
        }
    }
}

impl Projection {
    /// The sender, and the task's work.
    pub(super) fn start(
        records: Records,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (news, queue) = mpsc::channel(QUEUE);
        let bell = Arc::<Notify>::default();
        let rung = Arc::clone(&bell);
        (
            Self { news, bell },
            write_news(records, (queue, rung), stop),
        )
    }

    pub(super) fn tell(&self, key: &SessionKey, control: &Control) {
        let Some(owner) = &control.owner else { return };
        let (state, waiting) = match control.activity() {
            Activity::Idle => (SessionState::Idle, 0),
            Activity::Running => (SessionState::Running, 0),
            Activity::Waiting(calls) => (SessionState::Waiting, calls),
            Activity::Failed => (SessionState::Failed, 0),
        };
        let row = SessionRow {
            key: key.clone(),
            owner: owner.id.clone(),
            title: control.title.clone().unwrap_or_default(),
            state,
            waiting: waiting as u64,
            created_at: control.created_at,
            updated_at: control.at,
            version: control.version,
        };
        if self.news.try_send(News::Changed(row)).is_err() {
            tracing::warn!(session.id = %key.session, "The session list lags behind");
        }
        if self.news.capacity() < QUEUE / 2 {
            self.bell.notify_one();
        }
    }

    /// Takes a deleted session off the list, after everything that was told of it.
    pub(super) fn forget(&self, key: &SessionKey) {
        if self.news.try_send(News::Gone(key.clone())).is_err() {
            tracing::warn!(session.id = %key.session, "A deleted session stays on the list");
        }
    }

    /// Waits until everything that was told is written, or will not be.
    pub(super) async fn written(&self) {
        let (done, written) = oneshot::channel();
        if self.news.send(News::Written(done)).await.is_ok() {
            self.bell.notify_one();
            // An error means that the writer has ended.
            let _ = written.await;
        }
    }
}

async fn write_news(
    records: Records,
    (mut queue, bell): (mpsc::Receiver<News>, Arc<Notify>),
    stop: CancellationToken,
) {
    let mut batch = Vec::new();
    let mut next = Instant::now();
    let mut unwritten = Newest::new();
    loop {
        let again = async {
            if unwritten.is_empty() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(AGAIN).await;
        };
        tokio::select! {
            biased;
            taken = queue.recv_many(&mut batch, QUEUE) => if taken == 0 { return },
            () = stop.cancelled() => return,
            () = again => {}
        }
        if !batch.iter().any(News::is_urgent) {
            // Not woken by every row: they wait in the queue as well as here.
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = bell.notified() => {}
                () = tokio::time::sleep_until(next) => {}
            }
            while let Ok(news) = queue.try_recv() {
                batch.push(news);
            }
        }
        unwritten = write(&records, unwritten, batch.drain(..)).await;
        next = Instant::now() + PAUSE;
    }
}

/// The row of a session, or nothing if it is gone.
type Newest = BTreeMap<SessionKey, Option<SessionRow>>;

/// Only the newest news of a session matters. What could not be written.
async fn write(records: &Records, mut newest: Newest, news: impl Iterator<Item = News>) -> Newest {
    let mut waiting = Vec::new();
    for news in news {
        match news {
            News::Changed(row) => drop(newest.insert(row.key.clone(), Some(row))),
            News::Gone(key) => drop(newest.insert(key, None)),
            News::Written(done) => waiting.push(done),
        }
    }
    let (mut rows, mut gone) = (Vec::new(), Vec::new());
    for (key, row) in newest {
        match row {
            Some(row) => rows.push(row),
            None => gone.push(key),
        }
    }
    let mut unwritten = Newest::new();
    if let Err(error) = records.sessions().project(&rows).await {
        tracing::warn!(%error, rows = rows.len(), "The session list was not brought up to date");
        unwritten.extend(rows.into_iter().map(|row| (row.key.clone(), Some(row))));
    }
    for key in gone {
        if let Err(error) = records.sessions().delete(&key).await {
            tracing::warn!(session.id = %key.session, %error, "A deleted session stays on the list");
            unwritten.insert(key, None);
        }
    }
    for done in waiting {
        // Whoever asked may be gone.
        let _ = done.send(());
    }
    unwritten
}
