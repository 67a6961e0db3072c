//! The rows of the session list, projected from the journals in batches, and told once they are written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent::cluster::list_broadcast::ListBroadcast;
use crate::agent::feed::list_update::ListUpdate;
use crate::domain::{SessionKey, UserId};
use crate::session::{Activity, Control};
use crate::store::records::{Marks, Records, SessionRow, SessionState};

/// Rows that may wait; a full queue drops a row, and the next commit of its session brings it back.
const QUEUE: usize = 4096;

/// Between two writes, unless somebody waits for one: commits of a turn follow each other within
/// milliseconds, of each session only the last row counts, and a write is a sync to disk.
const PAUSE: Duration = Duration::from_millis(100);

/// Until rows that could not be written are tried again, with whatever came meanwhile.
const AGAIN: Duration = Duration::from_secs(1);

/// Takes rows and writes them when the database has time.
#[derive(Clone)]
pub(in crate::agent) struct Projection {
    news: mpsc::Sender<News>,
    /// Rung when the next write shall not wait any longer.
    bell: Arc<Notify>,
}

/// One change of the list.
enum News {
    Changed(SessionRow),
    /// Deleted; its owner's list may still show it.
    Gone(SessionKey, UserId),
    /// Everything before this is written.
    Written(oneshot::Sender<()>),
}

impl News {
    /// Whether somebody waits for it.
    fn is_urgent(&self) -> bool {
        match self {
            Self::Written(_) => true,
            Self::Changed(_) | Self::Gone(..) => false,
        }
    }
}

impl Projection {
    /// The sender, and the task's work.
    /// The bell is rung when rows were written.
    pub(in crate::agent) fn start(
        (records, indexing): (Records, Arc<Notify>),
        lists: ListBroadcast,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (news, queue) = mpsc::channel(QUEUE);
        let bell = Arc::<Notify>::default();
        let rung = Arc::clone(&bell);
        (
            Self { news, bell },
            write_news((records, indexing, lists), (queue, rung), stop),
        )
    }

    pub(in crate::agent) fn tell(&self, key: &SessionKey, control: &Control) {
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
            marks: Marks::default(),
        };
        if self.news.try_send(News::Changed(row)).is_err() {
            tracing::warn!(session.id = %key.session, "The session list lags behind");
        }
        if self.news.capacity() < QUEUE / 2 {
            self.bell.notify_one();
        }
    }

    /// Takes a deleted session off the list, after everything that was told of it.
    pub(in crate::agent) fn forget(&self, key: &SessionKey, owner: &UserId) {
        let gone = News::Gone(key.clone(), owner.clone());
        if self.news.try_send(gone).is_err() {
            tracing::warn!(session.id = %key.session, "A deleted session stays on the list");
        }
    }

    /// Waits until everything that was told is written, or will not be.
    pub(in crate::agent) async fn written(&self) {
        let (done, written) = oneshot::channel();
        if self.news.send(News::Written(done)).await.is_ok() {
            self.bell.notify_one();
            // An error means that the writer has ended.
            let _ = written.await;
        }
    }
}

async fn write_news(
    (records, indexing, lists): (Records, Arc<Notify>, ListBroadcast),
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
        let (left, written) = write(&records, unwritten, batch.drain(..)).await;
        unwritten = left;
        if !written.is_empty() {
            indexing.notify_one();
        }
        // Only now: whoever begins to listen later reads a list that has them.
        lists.tell(written);
        next = Instant::now() + PAUSE;
    }
}

/// The newest news of each session.
type Newest = BTreeMap<SessionKey, ListUpdate>;

/// Only the newest news of a session matters. What could not be written, and what was.
async fn write(
    records: &Records,
    mut newest: Newest,
    news: impl Iterator<Item = News>,
) -> (Newest, Vec<ListUpdate>) {
    let mut waiting = Vec::new();
    for news in news {
        match news {
            News::Changed(row) => drop(newest.insert(row.key.clone(), ListUpdate::Changed(row))),
            News::Gone(key, owner) => {
                newest.insert(key.clone(), ListUpdate::Removed { key, owner });
            }
            News::Written(done) => waiting.push(done),
        }
    }
    let (mut rows, mut written) = (Vec::new(), Vec::new());
    let mut unwritten = Newest::new();
    for (key, news) in newest {
        match news {
            ListUpdate::Changed(row) => rows.push(row),
            // Never among the news here.
            ListUpdate::GivenUp { .. } => {}
            gone @ ListUpdate::Removed { .. } => match records.sessions().delete(&key).await {
                Ok(_) => written.push(gone),
                Err(error) => {
                    tracing::warn!(session.id = %key.session, %error, "A deleted session stays on the list");
                    unwritten.insert(key, gone);
                }
            },
        }
    }
    match project(records, rows).await {
        Ok(listed) => written.extend(listed),
        Err(rows) => unwritten.extend(rows.map(|news| (news.key().clone(), news))),
    }
    for done in waiting {
        // Whoever asked may be gone.
        let _ = done.send(());
    }
    (unwritten, written)
}

/// Writes rows. What is told of them, or all of them where the database is away.
async fn project(
    records: &Records,
    rows: Vec<SessionRow>,
) -> Result<Vec<ListUpdate>, impl Iterator<Item = ListUpdate>> {
    if let Err(error) = records.sessions().project(&rows).await {
        tracing::warn!(%error, rows = rows.len(), "The session list was not brought up to date");
        return Err(rows.into_iter().map(ListUpdate::Changed));
    }
    let mut told = Vec::with_capacity(rows.len());
    for row in rows {
        told.extend(as_listed(records, row).await.map(ListUpdate::Changed));
    }
    Ok(told)
}

/// The row with what its person keeps beside the journal; `None` if it is on no list.
async fn as_listed(records: &Records, row: SessionRow) -> Option<SessionRow> {
    match records.sessions().find(&row.key).await {
        Ok(listed) => listed.filter(|listed| listed.marks.delete_at.is_none()),
        // Whoever shows it reads the list again sooner or later.
        Err(_) => Some(row),
    }
}
