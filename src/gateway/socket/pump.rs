//! Maintains one client's cursor into its session. The socket library's own `emit` never waits and drops
//! packets when its buffer is full, so the cursor only moves past events that the buffer took: a slow client
//! delays its own events, but loses none.

use std::sync::Arc;

use tokio::sync::broadcast::{self, error::RecvError};

use super::SocketContext;
use super::batch::Batch;
use super::connection::{Connection, End, ResumePoint};
use super::delivered_answer::DeliveredAnswer;
use super::recipient::{ClientGone, Cursor, Recipient};
use crate::agent::{
    FeedItem, Page, RunningAnswer, SessionSubscription, SessionView, ShownEvent, Signal, damaged,
};
use crate::domain::{Code, JournalId, SessionKey};
use crate::gateway::wire::{self, Frame, Ready, event_frames, signal_frames};
use crate::session::{CallStatus, Event, Refusal};
use crate::telemetry::instruments;

/// The number of events in one page, such as that of `system:ready`.
const PAGE: usize = 200;
/// The maximum number of missed events that are replayed; beyond it, a client gets a snapshot
/// (docs/protocol.md).
const MOST_EVENTS_BEHIND: u64 = 1_000;
/// The same limit in bytes.
const MOST_BYTES_BEHIND: usize = 1 << 20;

impl From<ClientGone> for End {
    fn from(_: ClientGone) -> Self {
        Self::Gone
    }
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        Self::Told(refusal)
    }
}

/// Sends the events of a session to one client.
pub(super) struct Pump<'a, C> {
    context: &'a SocketContext,
    client: &'a C,
    connection: &'a Connection,
    key: &'a SessionKey,
    /// The journal that `seq` belongs to.
    journal: JournalId,
    /// `seq` of the last event that the client's buffer took.
    seq: u64,
    /// The part of the running answer that the buffer took.
    told: DeliveredAnswer,
    /// True if the session was not stored when `system:ready` was sent: then another gateway may create it,
    /// with another journal id.
    is_unnamed: bool,
}

impl<'a, C: Recipient> Pump<'a, C> {
    pub(super) fn new(
        context: &'a SocketContext,
        client: &'a C,
        connection: &'a Connection,
        key: &'a SessionKey,
        journal: &JournalId,
    ) -> Self {
        Self {
            context,
            client,
            connection,
            key,
            journal: journal.clone(),
            seq: 0,
            told: DeliveredAnswer::default(),
            is_unnamed: false,
        }
    }

    /// Runs until the client is gone or the connection has to end.
    pub(super) async fn run(&mut self, joined: Box<SessionSubscription>) -> End {
        let has = self.connection.has.clone();
        let mut signals = match Box::pin(self.start(joined, has)).await {
            Ok(signals) => signals,
            Err(end) => return end,
        };
        loop {
            if let Err(end) = self.step(&mut signals).await {
                return end;
            }
        }
    }

    async fn step(&mut self, signals: &mut broadcast::Receiver<Arc<Signal>>) -> Result<(), End> {
        tokio::select! {
            biased;
            point = self.connection.resumed() => {
                *signals = Box::pin(self.begin_anew(Some(point))).await?;
                Ok(())
            }
            signal = signals.recv() => match signal {
                Ok(signal) => Box::pin(self.show_all(signal, signals)).await,
                Err(RecvError::Lagged(count)) => Box::pin(self.make_up_for(count, signals)).await,
                Err(RecvError::Closed) => Err(End::Gone),
            },
        }
    }

    async fn begin_anew(
        &mut self,
        has: Option<ResumePoint>,
    ) -> Result<broadcast::Receiver<Arc<Signal>>, End> {
        let joined = self.join().await?;
        self.start(joined, has).await
    }

    async fn join(&self) -> Result<Box<SessionSubscription>, Refusal> {
        let (key, caller) = (self.key, &self.connection.entered.caller);
        let joined = Box::pin(self.context.state.sessions.join(key, caller)).await?;
        Ok(Box::new(joined))
    }

    /// Sends `system:ready`, and then the missed events or a snapshot.
    async fn start(
        &mut self,
        joined: Box<SessionSubscription>,
        has: Option<ResumePoint>,
    ) -> Result<broadcast::Receiver<Arc<Signal>>, End> {
        let SessionSubscription { signals, view } = *joined;
        self.is_unnamed = !view.is_stored;
        self.journal.clone_from(&view.journal);
        // A client at `seq` 0 has no events of another journal.
        let is_of = |(seq, journal): &ResumePoint| {
            *seq == 0 || journal.as_ref().is_none_or(|it| *it == view.journal)
        };
        let missed = match has.filter(is_of) {
            Some((seq, _)) => self.missed(seq, &view).await?,
            None => None,
        };
        match missed {
            Some((seq, missed)) => {
                instruments().events_replayed(missed.len());
                self.seq = seq;
                let ready = self.ready(&view, true, &[]);
                self.client.emit(&ready, Some(self.cursor())).await?;
                self.events(&missed).await?;
                self.catch_up(&view).await?;
            }
            None => self.snapshot(&view).await?,
        }
        Ok(signals)
    }

    /// Returns the events after `seq`, or `None` if `seq` is ahead of the head or too far behind.
    async fn missed(
        &self,
        seq: u64,
        view: &SessionView,
    ) -> Result<Option<(u64, Vec<ShownEvent>)>, Refusal> {
        let Some(behind) = view.seq.checked_sub(seq) else {
            return Ok(None);
        };
        if behind > MOST_EVENTS_BEHIND {
            return Ok(None);
        }
        let mut missed = Vec::new();
        let mut bytes = 0;
        let mut after = seq;
        while after < view.seq {
            let page = self.page(Page::After(after), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            bytes += page.iter().map(frames_len).sum::<usize>();
            if bytes > MOST_BYTES_BEHIND {
                return Ok(None);
            }
            missed.extend(page);
        }
        Ok(Some((seq, missed)))
    }

    async fn page(&self, page: Page, limit: usize) -> Result<Vec<ShownEvent>, Refusal> {
        let sessions = &self.context.state.sessions;
        let caller = &self.connection.entered.caller;
        Box::pin(sessions.page(self.key, caller, page, limit)).await
    }

    fn cursor(&self) -> Cursor<'_> {
        Cursor {
            journal: &self.journal,
            seq: self.seq,
        }
    }

    fn ready(&self, view: &SessionView, is_resumed: bool, page: &[ShownEvent]) -> Frame {
        let ready = Ready {
            session: &self.key.session,
            caller: &self.connection.entered.caller,
            installation: &self.context.installation(),
            is_resumed,
            page,
        };
        wire::ready(view, &ready)
    }

    /// Sends a snapshot, and then the open cards again with their own `seq`.
    async fn snapshot(&mut self, view: &SessionView) -> Result<(), End> {
        let page = if view.seq == 0 {
            Vec::new()
        } else {
            self.page(Page::Before(view.seq + 1), PAGE).await?
        };
        self.seq = view.seq;
        self.told = view.told().map(DeliveredAnswer::all_of).unwrap_or_default();
        let mut frames = vec![self.ready(view, false, &page)];
        frames.extend(open_cards(view, &page).iter().flat_map(event_frames));
        self.client.emit_all(&frames, self.cursor()).await?;
        Ok(())
    }

    /// Brings a client that fell behind to the state of `view`: events, the running answer, and states.
    async fn catch_up(&mut self, view: &SessionView) -> Result<(), End> {
        self.fill_to(view.seq).await?;
        if let Some(answer) = &view.answer {
            self.rest_of(answer).await?;
        }
        for frame in wire::view_frames(view) {
            self.client.emit(&frame, None).await?;
        }
        Ok(())
    }

    async fn rest_of(&mut self, answer: &RunningAnswer) -> Result<(), ClientGone> {
        if self.told.answer != (answer.request(), answer.attempt) {
            self.told = DeliveredAnswer {
                answer: (answer.request(), answer.attempt),
                ..DeliveredAnswer::default()
            };
        }
        for delta in answer.missing(self.told.text, self.told.reasoning) {
            *self.told.units(&delta) = delta.offset + delta.text.encode_utf16().count();
            self.client.emit(&wire::delta_frame(&delta), None).await?;
        }
        Ok(())
    }

    /// Sends a signal and those queued after it. Callers box the future, because a socket is idle for most
    /// of its life.
    async fn show_all(
        &mut self,
        first: Arc<Signal>,
        signals: &mut broadcast::Receiver<Arc<Signal>>,
    ) -> Result<(), End> {
        let batch = Batch::take(first, signals);
        for signal in &batch.signals {
            let is_named = self.is_unnamed && matches!(signal.item, FeedItem::Moved(_));
            if is_named || matches!(signal.item, FeedItem::Rewound) {
                let has = is_named.then_some((self.seq, None));
                // The new start covers the rest of the batch.
                *signals = Box::pin(self.begin_anew(has)).await?;
                return Ok(());
            }
            self.show(signal).await?;
        }
        match batch.lost {
            Some(count) => Box::pin(self.make_up_for(count, signals)).await,
            None => Ok(()),
        }
    }

    /// Joins the session again after signals were lost, and sends what they contained.
    async fn make_up_for(
        &mut self,
        count: u64,
        signals: &mut broadcast::Receiver<Arc<Signal>>,
    ) -> Result<(), End> {
        instruments().signals_dropped(count);
        let joined = self.join().await?;
        self.catch_up(&joined.view).await?;
        *signals = joined.signals;
        Ok(())
    }

    async fn show(&mut self, signal: &Signal) -> Result<(), End> {
        match &signal.item {
            FeedItem::Event(event) if event.seq <= self.seq => return Ok(()),
            FeedItem::Event(event) => {
                if self.seq < event.seq - 1 {
                    Box::pin(self.fill_to(event.seq - 1)).await?;
                }
                self.end_answer(event).await?;
                (self.seq, self.is_unnamed) = (event.seq, false);
                let frames = signal_frames(signal);
                return Ok(self.client.emit_all(frames, self.cursor()).await?);
            }
            FeedItem::Delta(delta) => {
                let units = self.told.units(delta);
                if *units > delta.offset {
                    return Ok(());
                }
                if *units < delta.offset {
                    return Box::pin(self.fill_answer()).await;
                }
                *units += delta.text.encode_utf16().count();
            }
            FeedItem::Moved(seq) => return Box::pin(self.fill_to(*seq)).await,
            FeedItem::Deleted => {
                let gone = "the session was deleted";
                return Err(End::Told(Refusal::new(Code::SessionNotFound, gone)));
            }
            FeedItem::Damaged => return Err(End::Told(damaged())),
            FeedItem::Notice(notice) => self.told.heed(notice),
            FeedItem::Progress(..)
            | FeedItem::Copying(_)
            | FeedItem::ResourceChanged(_)
            | FeedItem::Queue(_)
            | FeedItem::Usage(_)
            | FeedItem::Rewound => {}
        }
        self.send(signal).await?;
        Ok(())
    }

    async fn fill_answer(&mut self) -> Result<(), End> {
        let caller = &self.connection.entered.caller;
        let feed = self.context.state.sessions.feed(self.key, caller);
        if let Some(answer) = feed.and_then(|feed| feed.running_answer()) {
            self.rest_of(&answer).await?;
        }
        Ok(())
    }

    /// Sends the events up to `seq` from the journal.
    async fn fill_to(&mut self, seq: u64) -> Result<(), End> {
        while self.seq < seq {
            let mut page = self.page(Page::After(self.seq), PAGE).await?;
            page.retain(|event| event.seq <= seq);
            if page.is_empty() {
                let lost = "the journal has a gap; connect again";
                return Err(End::Told(Refusal::new(Code::StoreUnavailable, lost)));
            }
            instruments().events_replayed(page.len());
            self.events(&page).await?;
        }
        Ok(())
    }

    async fn events(&mut self, events: &[ShownEvent]) -> Result<(), ClientGone> {
        for event in events {
            self.end_answer(event).await?;
            self.seq = event.seq;
            let frames = event_frames(event);
            self.client.emit_all(&frames, self.cursor()).await?;
        }
        Ok(())
    }

    /// Sends the rest of an answer that ended while this client was behind.
    async fn end_answer(&mut self, event: &ShownEvent) -> Result<(), ClientGone> {
        match self.told.rest(&event.event) {
            Some(rest) => self.client.emit(&wire::delta_frame(&rest), None).await,
            None => Ok(()),
        }
    }

    async fn send(&self, signal: &Signal) -> Result<(), ClientGone> {
        for frame in signal_frames(signal) {
            self.client.emit(frame, None).await?;
        }
        Ok(())
    }
}

/// Returns the cards that still wait, as they were asked.
fn open_cards(view: &SessionView, page: &[ShownEvent]) -> Vec<ShownEvent> {
    let of_model = (view.queue.calls.iter()).filter(|call| call.origin.is_none());
    let total = of_model.count();
    let open = view
        .queue
        .calls
        .iter()
        .enumerate()
        .filter(|(_, call)| matches!(call.status, CallStatus::Pending { asked: true }));
    open.map(|(index, call)| {
        let asked = page.iter().rev().find(|event| {
            matches!(&event.event, Event::ApprovalAsked { call: asked, .. } if asked.id == call.id)
        });
        // A card older than the page is rebuilt from the current state.
        let ((position, total), said) = match &call.origin {
            None => ((index + 1, total), view.queue.said.clone()),
            Some(_) => ((1, 1), String::new()),
        };
        asked.cloned().unwrap_or_else(|| ShownEvent {
            seq: view.seq,
            at: call.since,
            event: Event::ApprovalAsked {
                call: Arc::clone(call),
                position,
                total,
                said,
            },
        })
    })
    .collect()
}

fn frames_len(event: &ShownEvent) -> usize {
    let frames = event_frames(event);
    frames.iter().map(|frame| frame.packet.len()).sum()
}
