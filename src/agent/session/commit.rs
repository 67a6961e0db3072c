//! Decides commands, appends the commit, folds and shows it.

use std::time::Duration;

use tokio::time::Instant;

use super::replica::{Replica, StaleReason};
use super::telemetry;
use crate::agent::audit::decisions::decision_rows;
use crate::agent::cluster::message::ClusterMessage;
use crate::agent::feed::{FeedItem, ShownEvent};
use crate::agent::journal::projection::RowNeed;
use crate::agent::journal::{AppendResult, JournalError};
use crate::agent::mailbox::{Acknowledgement, damaged, deleted, store_away};
use crate::agent::service_events::ServiceEvent;
use crate::agent::usage::fold::UsageFold;
use crate::domain::{CommitId, Digest};
use crate::session::{
    Activity, Command, Commit, Control, Gateway, Inputs, Refusal, SCHEMA, decide,
};
use crate::store::clock::now;
use crate::store::records::UsageRows;

/// The number of commits between snapshots.
const SNAPSHOT_EVERY: u64 = 128;
/// The longest time that a snapshot is behind, if other programs may read it. A busy session makes one for many
/// commits.
const BEHIND_FOR: Duration = Duration::from_secs(2);
/// The pause between two checks of an unsettled commit while the store is away.
const SETTLE_EVERY: Duration = Duration::from_secs(1);

impl Replica {
    /// Carries out a new command; refuses it while the store is away.
    pub(super) async fn command(&mut self, command: Command) -> Result<Acknowledgement, Refusal> {
        self.cluster.membership.be_heard().await;
        let committed = self.commit(&[&command], None).await;
        committed.map_err(|failure| match failure {
            Failure::Refused(refusal) | Failure::Unfit(refusal) => refusal,
            Failure::Damaged => damaged(),
            Failure::Away(error) => {
                tracing::warn!(session.id = %self.key.session, error = ?error, "The store is away");
                store_away()
            }
        })
    }

    /// Decides, appends, folds and shows. Starts again if another gateway wrote meanwhile. Several commands
    /// become one commit, or none of them is decided.
    pub(super) async fn commit(
        &mut self,
        commands: &[&Command],
        epoch: Option<u64>,
    ) -> Result<Acknowledgement, Failure> {
        loop {
            let now = now();
            let rules = self.agent.tools.rules(&self.owner().id);
            let control = &self.state.control;
            let inputs = Inputs {
                gateway: self.gateway(epoch),
                rules: &rules,
                now,
                genesis: &self.genesis,
            };
            let events = decide(control, commands.iter().copied(), inputs);
            let events = events.map_err(Failure::Refused)?;
            if events.is_empty() {
                return Ok(Acknowledgement {
                    seq: self.seq_of_repeat(commands),
                });
            }
            let commit = Commit {
                version: control.version.saturating_add(1),
                commit_id: CommitId::from_bits(rand::random()),
                schema: SCHEMA,
                at: now.max(control.at),
                seq: control.seq,
                events,
                is_inherited: false,
            };
            // When no other gateway is known to live, the append also carries the announcement of the commit.
            let is_alone = self.cluster.membership.is_alone();
            let wake = (is_alone && self.cluster.is_shared())
                .then(|| ClusterMessage::moved(&self.cluster.gateway, commit.version))
                .flatten();
            match self.journal.append(&self.state, &commit, wake).await {
                AppendResult::Stored {
                    bytes,
                    link,
                    records,
                } => {
                    self.unsettled = None;
                    telemetry::count(self, &commit);
                    telemetry::record(self, &commit);
                    let mut used = UsageFold::of(&self.state.control).apply(&commit);
                    used.decisions = decision_rows(&self.state.control, &commit, records);
                    let had_waiting = has_waiting(&self.state.control);
                    self.state.apply_linked(&commit, link);
                    self.widen().await;
                    self.show(&commit);
                    let need = self.row_need(had_waiting, &used);
                    self.publish_to_others(&commit, (!is_alone).then_some(bytes), (used, need));
                    return Ok(Acknowledgement {
                        seq: commit.last_seq().min(commit.seq.saturating_add(1)),
                    });
                }
                AppendResult::Conflict => Box::pin(self.read_on()).await?,
                AppendResult::Unfit(refusal) => return Err(Failure::Unfit(refusal)),
                AppendResult::Away(error) => {
                    self.unsettled = Some(Instant::now() + SETTLE_EVERY);
                    return Err(self.failure(error.into()));
                }
            }
        }
    }

    /// Converts an error of the journal. After damage the task ends, and the next person to open the session
    /// learns of it.
    fn failure(&mut self, error: JournalError) -> Failure {
        match error {
            JournalError::Store(error) if !error.is_damage() => Failure::Away(error),
            error @ (JournalError::Store(_)
            | JournalError::Commit(_)
            | JournalError::Gap { .. }) => {
                tracing::error!(session.id = %self.key.session, ?error, "The journal is damaged");
                self.lost = Some(StaleReason::Damaged);
                Failure::Damaged
            }
        }
    }

    fn seq_of_repeat(&self, commands: &[&Command]) -> u64 {
        let control = &self.state.control;
        let id = if let [
            Command::Say {
                client_message_id, ..
            },
        ] = commands
        {
            client_message_id.as_deref()
        } else {
            None
        };
        id.and_then(|id| control.seq_of_message(id))
            .unwrap_or(control.seq)
    }

    fn gateway(&self, epoch: Option<u64>) -> Gateway<'_> {
        let runner = self.state.control.runner.gateway.as_ref();
        Gateway {
            id: &self.cluster.gateway,
            engine: self.agent.tools.engine(),
            is_runner_alive: runner.is_some_and(|runner| self.cluster.membership.is_alive(runner)),
            epoch,
        }
    }

    /// Reads and shows commits of other gateways. If the journal is gone, the session's task ends.
    async fn read_on(&mut self) -> Result<(), Failure> {
        let from = self.state.control.version;
        loop {
            let mut commits = Vec::new();
            let read = self
                .journal
                .catch_up(&mut self.state, |commit| commits.push(commit.clone()));
            let read = read.await;
            self.widen().await;
            self.show_creation(from);
            for commit in &commits {
                self.show(commit);
            }
            match read {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return Err(self.failure(error)),
            }
        }
        self.follow_creation(from).await;
        self.compare_head().await
    }

    /// Ends the session's task if the stored journal is shorter than what was read from it.
    async fn compare_head(&mut self) -> Result<(), Failure> {
        let version = self.state.control.version;
        let head = self.journal.version().await;
        let head = head.map_err(|error| self.failure(error.into()))?;
        if head >= version {
            self.unsettled = None;
            return Ok(());
        }
        let (lost, refusal) = if head == 0 {
            (StaleReason::Deleted, deleted())
        } else {
            tracing::error!(session.id = %self.key.session, head, version, "The store came back with a shorter journal");
            (StaleReason::Rewound, store_away())
        };
        self.lost = Some(lost);
        Err(Failure::Refused(refusal))
    }

    /// Schedules the next check of an unsettled commit, in case it cannot be settled now.
    pub(super) fn expect_settled(&mut self) {
        self.unsettled = Some(Instant::now() + SETTLE_EVERY);
    }

    /// Reads missed commits; if that fails, they are read as soon as the store answers.
    pub(super) async fn catch_up(&mut self) {
        match self.read_on().await {
            Ok(()) | Err(Failure::Damaged) => {}
            Err(Failure::Refused(refusal) | Failure::Unfit(refusal)) => {
                tracing::debug!(session.id = %self.key.session, %refusal, "Nothing to read on");
            }
            Err(Failure::Away(error)) => {
                tracing::warn!(session.id = %self.key.session, ?error, "The store is away");
                self.cluster.membership.fall_behind(&self.key);
            }
        }
    }

    /// Applies a commit that another gateway appended. One without its link is read from the store.
    pub(super) async fn follow(&mut self, commit: &Commit, link: Option<Digest>) {
        let version = self.state.control.version;
        let link = link.filter(|_| commit.version == version.saturating_add(1));
        if let Some(link) = link {
            self.state.apply_linked(commit, link);
            self.widen().await;
            self.show_creation(version);
            self.show(commit);
            self.follow_creation(version).await;
        } else if commit.version > version {
            self.catch_up().await;
        }
    }

    /// Sends watchers to the new position after another gateway created the session: they were given another
    /// journal id, and could not continue from the events that follow.
    fn show_creation(&self, from: u64) {
        if from == 0 && self.state.control.version > 0 {
            self.feed.show(FeedItem::Moved(self.state.control.seq));
        }
    }

    /// After another gateway created the session, uses the sandbox that the journal names.
    async fn follow_creation(&mut self, from: u64) {
        if let Some(sandbox) = self.state.control.sandbox.as_ref().filter(|_| from == 0) {
            let owner = &self.owner().id;
            self.agent = self.factory.create_agent(&self.key, owner, sandbox);
            self.follow_journal();
            self.agent.tools.refresh().await;
        }
    }

    /// Says who needs the row of the session after a commit.
    fn row_need(&self, had_waiting: bool, used: &UsageRows) -> RowNeed {
        let control = &self.state.control;
        if had_waiting || has_waiting(control) {
            return RowNeed::Waiting;
        }
        // The first row is how others find a session whose gateway is gone.
        let is_first = control.version == 1;
        let is_paid =
            !used.requests.is_empty() && self.agent.parts.budgets.has_any(&self.key.tenant);
        if is_first || is_paid {
            RowNeed::Soon
        } else {
            RowNeed::Lists
        }
    }

    /// Publishes an own commit beyond this session's doors here. `bytes` is its size if the other gateways
    /// are still to be told.
    fn publish_to_others(
        &mut self,
        commit: &Commit,
        bytes: Option<usize>,
        used: (UsageRows, RowNeed),
    ) {
        if let Some(bytes) = bytes {
            self.cluster
                .broadcaster
                .publish_commit(&self.key, (commit, &self.state.link), bytes);
        }
        let control = &self.state.control;
        let runner = control
            .runner
            .gateway
            .as_ref()
            .filter(|_| control.is_unfinished());
        if let Some(runner) = runner.filter(|runner| **runner != self.cluster.gateway) {
            // The runner may have unloaded the session.
            self.cluster.broadcaster.nudge(runner, &self.key);
        }
        if let Some(observer) = &self.agent.parts.observer {
            let events = commit.events.iter();
            for event in events.filter_map(|event| ServiceEvent::of(event, control)) {
                observer.observe(&self.key, &event);
            }
        }
        self.projection.update_after(&self.key, control, used);
        if commit.version.is_multiple_of(SNAPSHOT_EVERY) {
            self.keep_snapshot();
        } else if self.snapshot_at.is_none() && self.journal.shows_snapshots() {
            self.snapshot_at = Instant::now().checked_add(BEHIND_FOR);
        }
    }

    /// Writes the snapshot beside the session's task.
    pub(super) fn keep_snapshot(&mut self) {
        self.snapshot_at = None;
        let (journal, state) = (self.journal.clone(), self.state.clone());
        let limits = self.cut_to;
        self.snapshots
            .spawn(async move { journal.keep_snapshot(state, limits).await });
    }

    /// Shows the changes of a commit, in order.
    fn show(&mut self, commit: &Commit) {
        self.follow_journal();
        for (seq, event) in commit.shown() {
            if event.facts().ends_answer {
                self.feed.end_answer();
            }
            let event = ShownEvent {
                seq,
                at: commit.at,
                event: event.clone(),
            };
            self.feed.show(FeedItem::Event(event));
        }
        if commit
            .events
            .iter()
            .any(|event| event.facts().changes_queue)
        {
            self.feed.show(FeedItem::Queue(self.queue()));
        }
        // It takes the context of the next request, so it is worked out only for somebody. Whoever comes later
        // is told when they join.
        if self.feed.is_watched()
            && commit
                .events
                .iter()
                .any(|event| event.facts().changes_usage)
        {
            self.feed.show(FeedItem::Usage(self.usage()));
        }
        if commit.version.is_multiple_of(SNAPSHOT_EVERY) {
            self.forget_unread();
        }
    }
}

/// The reason commands became no commit.
pub(super) enum Failure {
    /// The decision was a refusal.
    Refused(Refusal),
    /// It can never be stored.
    Unfit(Refusal),
    /// The journal is damaged. This was logged, and the task ends.
    Damaged,
    /// The store is away; it may work later.
    Away(crate::store::Error),
}

/// Returns true if calls wait for a person.
fn has_waiting(control: &Control) -> bool {
    matches!(control.activity(), Activity::Waiting(_))
}
