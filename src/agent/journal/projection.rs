//! Projects the rows of session lists from the journals in batches, and broadcasts them after they are
//! written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent::cluster::list_broadcast::ListBroadcast;
use crate::agent::feed::list_update::ListUpdate;
use crate::domain::{Iteration, ModelRequestId, SessionKey, TurnId, UserId};
use crate::session::{Activity, Call, Control, waiting_since};
use crate::store::records::{
    AskedRoles, Marks, ProjectedRow, Records, SessionRow, SessionState, UsageRows, WaitingBatch,
};

/// The most rows that wait. A full queue drops a row; the next commit of its session sends a newer one.
const QUEUE: usize = 4096;

/// The period, in seconds, after which the batch numbers of view calls repeat.
const BATCHES: u32 = 1_000_000_000;

/// The most tool names in the row of a session.
const MAX_TOOLS: usize = 20;

/// The pause between two writes while somebody watches a list or a row is needed soon: commits of a turn
/// follow each other within milliseconds, only the last row of a session counts, and a write is a sync to
/// disk.
const PAUSE: Duration = Duration::from_millis(100);

/// The pause between two writes otherwise.
const LAZY_PAUSE: Duration = Duration::from_secs(1);

/// The wait before rows that could not be written are tried again, together with newer ones.
const AGAIN: Duration = Duration::from_secs(1);

/// Queues rows, and writes them when the database has time.
#[derive(Clone)]
pub(in crate::agent) struct Projection {
    news: mpsc::Sender<News>,
    /// Notified when the next write must not wait any longer.
    bell: Arc<Notify>,
    /// Notified when usage rows of a session may be missing.
    incomplete: Arc<Notify>,
}

/// Notifies the tasks that depend on the rows.
#[derive(Clone)]
pub(in crate::agent) struct Bells {
    /// Notified when rows were written.
    pub(in crate::agent) written: Arc<Notify>,
    /// Notified when usage rows of a session may be missing.
    pub(in crate::agent) incomplete: Arc<Notify>,
    /// Notified when rows were written, because waiting calls may have changed.
    pub(in crate::agent) waiting: Arc<Notify>,
}

/// Says who needs a row, which decides how soon it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::agent) enum RowNeed {
    /// Only lists.
    Lists,
    /// Whoever continues after a crash, or a budget, which holds back what a request reserved until its
    /// usage is written.
    Soon,
    /// Those who are told about calls that wait.
    Waiting,
}

/// One change for the writer.
enum News {
    Changed(Box<ProjectedRow>, RowNeed),
    /// The session was deleted; its owner's list may still show it.
    Gone(SessionKey, UserId),
    /// Answered when everything before it is written.
    Written(oneshot::Sender<()>),
}

impl News {
    /// Returns true if somebody waits for the write.
    fn is_urgent(&self) -> bool {
        match self {
            Self::Written(_) => true,
            Self::Changed(..) | Self::Gone(..) => false,
        }
    }

    /// Returns true if it may not wait for a lazy write.
    fn is_needed_soon(&self) -> bool {
        match self {
            Self::Changed(_, need) => *need > RowNeed::Lists,
            Self::Gone(..) | Self::Written(_) => true,
        }
    }

    /// Returns true if calls may have begun or ceased to wait.
    fn changes_waiting(&self) -> bool {
        match self {
            Self::Changed(_, need) => *need == RowNeed::Waiting,
            Self::Gone(..) => true,
            Self::Written(_) => false,
        }
    }
}

impl Projection {
    /// Returns the sender, and the task that writes until `stop`.
    pub(in crate::agent) fn start(
        records: Records,
        lists: ListBroadcast,
        bells: Bells,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (news, queue) = mpsc::channel(QUEUE);
        let bell = Arc::<Notify>::default();
        let rung = Arc::clone(&bell);
        (
            Self {
                news,
                bell,
                incomplete: Arc::clone(&bells.incomplete),
            },
            write_news(records, lists, bells, queue, rung, stop),
        )
    }

    /// Queues the row of a session that was opened.
    pub(in crate::agent) fn update(&self, key: &SessionKey, control: &Control) {
        self.project(key, control, None, RowNeed::Waiting);
        self.incomplete.notify_one();
    }

    /// Queues the row of a session after a commit, with the usage of that commit.
    pub(in crate::agent) fn update_after(
        &self,
        key: &SessionKey,
        control: &Control,
        (used, need): (UsageRows, RowNeed),
    ) {
        self.project(key, control, Some(used), need);
    }

    fn project(&self, key: &SessionKey, control: &Control, used: Option<UsageRows>, need: RowNeed) {
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
            title: control.title.text.clone().unwrap_or_default(),
            state,
            waiting: waiting as u64,
            asks: asked_roles(control),
            waiting_since: control.waiting_since(),
            batch: waiting_batch(control).map(Box::new),
            decided_at: control.decided_at,
            created_at: control.created_at,
            updated_at: control.at,
            version: control.version,
            forked_from: control.forked_from.clone(),
            marks: Marks::default(),
        };
        let used_from = used.is_some().then(|| row.version.saturating_sub(1));
        let row = ProjectedRow {
            row,
            used: used.unwrap_or_default(),
            used_from,
        };
        let news = News::Changed(Box::new(row), need);
        let is_needed_soon = news.is_needed_soon();
        if self.news.try_send(news).is_err() {
            tracing::warn!(session.id = %key.session, "The session list lags behind");
        }
        if is_needed_soon || self.news.capacity() < QUEUE / 2 {
            self.bell.notify_one();
        }
    }

    /// Removes a deleted session from the list, after all its queued rows.
    pub(in crate::agent) fn forget(&self, key: &SessionKey, owner: &UserId) {
        let gone = News::Gone(key.clone(), owner.clone());
        if self.news.try_send(gone).is_err() {
            tracing::warn!(session.id = %key.session, "A deleted session stays on the list");
        }
        self.bell.notify_one();
    }

    /// Waits until everything queued so far was written or has failed.
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
    records: Records,
    lists: ListBroadcast,
    bells: Bells,
    mut queue: mpsc::Receiver<News>,
    bell: Arc<Notify>,
    stop: CancellationToken,
) {
    let mut batch = Vec::new();
    let mut last: Option<Instant> = None;
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
        // Do not wake for every row: rows can wait in the queue.
        while !batch.iter().any(News::is_urgent) && batch.len() < QUEUE / 2 {
            let is_soon = lists.are_watched() || batch.iter().any(News::is_needed_soon);
            let pause = if is_soon { PAUSE } else { LAZY_PAUSE };
            let due = last.map_or_else(Instant::now, |last| last + pause);
            let is_due = tokio::select! {
                biased;
                () = stop.cancelled() => true,
                () = bell.notified() => false,
                () = tokio::time::sleep_until(due) => true,
            };
            while let Ok(news) = queue.try_recv() {
                batch.push(news);
            }
            if is_due {
                break;
            }
        }
        let was_late = !unwritten.is_empty();
        let may_change_waiting = was_late || batch.iter().any(News::changes_waiting);
        let WriteOutcome { left, updates } =
            write(&records, &lists, unwritten, batch.drain(..)).await;
        if was_late && left.is_empty() {
            // Their usage was dropped when they could not be written.
            bells.incomplete.notify_one();
        }
        unwritten = left;
        if !updates.is_empty() {
            bells.written.notify_one();
            if may_change_waiting {
                bells.waiting.notify_one();
            }
        }
        // Broadcast after the write, so that a listener that subscribes later reads a list that has these
        // rows.
        lists.publish(updates);
        last = Some(Instant::now());
    }
}

/// The newest update of each session.
type Newest = BTreeMap<SessionKey, ListUpdate>;

/// The rows of one write.
#[derive(Default)]
struct Batch {
    changed: BTreeMap<SessionKey, ProjectedRow>,
    /// Rows of sessions that were deleted meanwhile: their usage still has to be stored.
    left: Vec<ProjectedRow>,
    gone: Vec<(SessionKey, UserId)>,
    waiting: Vec<oneshot::Sender<()>>,
}

impl Batch {
    /// Merges updates: the newest row of each session, with the usage of all its rows.
    fn new(unwritten: Newest, news: impl Iterator<Item = News>) -> Self {
        let mut batch = Self::default();
        for update in unwritten.into_values() {
            match update {
                ListUpdate::Changed(row) | ListUpdate::Unlisted(row) => batch.change(row.into()),
                ListUpdate::Removed { key, owner } => batch.gone.push((key, owner)),
                // Never part of a projection.
                ListUpdate::GivenUp { .. } => {}
            }
        }
        for news in news {
            match news {
                News::Changed(row, _) => batch.change(*row),
                News::Gone(key, owner) => {
                    batch.left.extend(batch.changed.remove(&key));
                    batch.gone.push((key, owner));
                }
                News::Written(done) => batch.waiting.push(done),
            }
        }
        batch
    }

    fn change(&mut self, row: ProjectedRow) {
        let key = row.row.key.clone();
        self.gone.retain(|(gone, _)| *gone != key);
        let row = match self.changed.remove(&key) {
            Some(earlier) => after(earlier, row),
            None => row,
        };
        self.changed.insert(key, row);
    }
}

/// The outcome of a write.
struct WriteOutcome {
    /// The updates that failed.
    left: Newest,
    /// The updates that were written.
    updates: Vec<ListUpdate>,
}

/// Writes a batch.
async fn write(
    records: &Records,
    lists: &ListBroadcast,
    unwritten: Newest,
    news: impl Iterator<Item = News>,
) -> WriteOutcome {
    let Batch {
        changed,
        left: mut rows,
        gone,
        waiting,
    } = Batch::new(unwritten, news);
    let mut written = Vec::new();
    let mut left = Newest::new();
    rows.extend(changed.into_values());
    let projected = records.sessions().project(&rows).await;
    let rows = rows.into_iter().map(|row| row.row);
    let rows = rows.filter(|row| gone.iter().all(|(key, _)| *key != row.key));
    match projected {
        Ok(()) if lists.are_watched() => {
            written.extend(as_listed(records, rows.collect()).await);
        }
        Ok(()) => written.extend(rows.map(ListUpdate::Unlisted)),
        Err(error) => {
            tracing::warn!(%error, "The session list was not brought up to date");
            left.extend(rows.map(|row| (row.key.clone(), ListUpdate::Changed(row))));
        }
    }
    for (key, owner) in gone {
        let deleted = records.sessions().delete(&key).await;
        let removed = ListUpdate::Removed { key, owner };
        match deleted {
            Ok(_) => written.push(removed),
            Err(error) => {
                tracing::warn!(session.id = %removed.key().session, %error, "A deleted session stays on the list");
                left.insert(removed.key().clone(), removed);
            }
        }
    }
    for done in waiting {
        // The waiter may be gone.
        let _ = done.send(());
    }
    WriteOutcome {
        left,
        updates: written,
    }
}

/// Counts the pending calls that others than the owner may decide, by the lowest role that may.
fn asked_roles(control: &Control) -> AskedRoles {
    let mut asks = AskedRoles::default();
    for call in control.calls().filter(|call| call.is_pending()) {
        if let Some(lowest) = call.wants.lowest_role() {
            asks.count(lowest);
        }
    }
    asks
}

/// Describes the waiting calls to people who do not see the session: without arguments.
fn waiting_batch(control: &Control) -> Option<WaitingBatch> {
    let mut tools: Vec<String> = Vec::new();
    let asks = |call: &Call| {
        let mut asked = control.elicitations().filter(|asked| asked.awaits_person());
        asked.any(|asked| asked.call == call.id)
    };
    let waits = |call: &&Arc<Call>| call.is_pending() || asks(call);
    for call in control.calls().filter(waits) {
        if tools.len() < MAX_TOOLS && !tools.contains(&call.name) {
            tools.push(call.name.clone());
        }
    }
    (!tools.is_empty()).then(|| WaitingBatch {
        request: asking_request(control),
        tools,
        expires_at: control.expires_at(),
    })
}

/// Identifies a batch of waiting calls: by the model request that they came with; for calls of views, which
/// have none, by the time of the oldest one.
fn asking_request(control: &Control) -> ModelRequestId {
    let turn = control.turn.as_ref();
    let waits = turn.filter(|turn| turn.alone_since().is_none() || control.views.calls.is_empty());
    if let Some(turn) = waits {
        return turn.request();
    }
    let since = waiting_since(control.views.open()).unwrap_or_default();
    let seconds = (since.0 / 1_000).rem_euclid(i64::from(BATCHES));
    ModelRequestId {
        turn: TurnId(control.turns),
        iteration: Iteration(u32::try_from(seconds).unwrap_or_default()),
    }
}

/// Returns the later of two rows, with the usage of both. If a commit between them is missing, the usage is
/// not marked as complete.
fn after(mut earlier: ProjectedRow, later: ProjectedRow) -> ProjectedRow {
    let is_next = later.used_from == Some(earlier.row.version);
    earlier.used.append(later.used);
    ProjectedRow {
        row: later.row,
        used: earlier.used,
        used_from: earlier.used_from.filter(|_| is_next),
    }
}

/// Returns the rows that are on a list, with their people's marks, which are not part of the journals.
async fn as_listed(
    records: &Records,
    rows: Vec<SessionRow>,
) -> impl Iterator<Item = ListUpdate> + use<> {
    let keys = rows.iter().map(|row| &row.key);
    let mut listed = match records.sessions().find_all(keys).await {
        Ok(mut listed) => {
            listed.retain(|listed| listed.marks.delete_at.is_none());
            listed
        }
        // Listeners read the list again sooner or later.
        Err(_) => rows,
    };
    listed.sort_by(|one, other| one.key.cmp(&other.key));
    listed.into_iter().map(ListUpdate::Changed)
}
