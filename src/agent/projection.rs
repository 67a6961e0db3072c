//! The rows of the session list, projected from the journals in batches.

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::domain::SessionKey;
use crate::session::{Activity, Control};
use crate::store::records::{Records, SessionRow, SessionState};

/// Rows that may wait; a full queue drops a row, and the next commit of its session brings it back.
const QUEUE: usize = 4096;

/// Takes rows and writes them when the database has time.
#[derive(Clone)]
pub(super) struct Projection {
    rows: mpsc::Sender<SessionRow>,
}

impl Projection {
    /// The sender, and the task's work.
    pub(super) fn start(
        records: Records,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (rows, queue) = mpsc::channel(QUEUE);
        (Self { rows }, write_rows(records, queue, stop))
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
        if self.rows.try_send(row).is_err() {
            tracing::warn!(session.id = %key.session, "The session list lags behind");
        }
    }
}

async fn write_rows(
    records: Records,
    mut queue: mpsc::Receiver<SessionRow>,
    stop: CancellationToken,
) {
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            taken = queue.recv_many(&mut batch, 256) => if taken == 0 { return },
            () = stop.cancelled() => return,
        }
        // Only the newest row of a session matters.
        let newest: BTreeMap<_, _> = batch.drain(..).map(|row| (row.key.clone(), row)).collect();
        let rows: Vec<SessionRow> = newest.into_values().collect();
        if let Err(error) = records.sessions().project(&rows).await {
            tracing::warn!(%error, rows = rows.len(), "The session list was not brought up to date");
        }
    }
}
