//! What waits to be sent to one client.
//!
//! Not in upstream, which has three channels for it: together they take more than 6 KiB of memory
//! for a connection on which nothing happens. This takes about 200 bytes.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use engineioxide_core::{Packet, PacketBuf, Str};
use smallvec::smallvec;
use tokio::sync::{Notify, mpsc::error::TrySendError};

/// Room for groups of packets that is kept while nothing waits.
const KEPT_ROOM: usize = 4;

/// What is sent together.
#[derive(Debug, PartialEq)]
pub(crate) enum Group {
    /// In a box, because most of the time there is room for more than waits.
    Packets(Box<PacketBuf>),
    /// One message as a websocket carries it, with the type of its packet (`4`) before it.
    Encoded(Str),
}

impl Group {
    /// For a transport that encodes packets itself.
    pub(crate) fn into_packets(self) -> PacketBuf {
        match self {
            Group::Packets(packets) => *packets,
            Group::Encoded(message) => smallvec![Packet::Message(message.slice(1..))],
        }
    }
}

impl From<PacketBuf> for Group {
    fn from(packets: PacketBuf) -> Self {
        Group::Packets(Box::new(packets))
    }
}

/// A message that is encoded already.
struct Encoded(Str);

impl From<Encoded> for Group {
    fn from(Encoded(message): Encoded) -> Self {
        Group::Encoded(message)
    }
}

/// A bounded queue with one reader, and beside it the latest volatile packets.
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    /// Groups of packets that may wait, with those that have a [`Permit`].
    capacity: usize,
    closing: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Group>,
    reserved: usize,
    /// Only the latest; a later one replaces it.
    volatile: Option<Box<PacketBuf>>,
    /// Nothing more is to be waited for.
    is_stopped: bool,
    /// Nothing more is taken.
    is_closed: bool,
    reader: Option<Waker>,
}

impl Outbox {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            state: Mutex::default(),
            capacity,
            closing: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, then wakes the reader with the lock released.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let (result, reader) = {
            let mut state = self.state();
            (change(&mut state), state.reader.take())
        };
        if let Some(reader) = reader {
            reader.wake();
        }
        result
    }

    /// Adds packets that are sent together, if there is room.
    pub(crate) fn try_send(&self, packets: PacketBuf) -> Result<(), TrySendError<PacketBuf>> {
        self.add(packets)
    }

    /// Adds a message that is encoded already, if there is room.
    pub(crate) fn try_send_encoded(&self, message: Str) -> Result<(), TrySendError<Str>> {
        debug_assert!(message.starts_with('4'), "no message packet");
        self.add(Encoded(message)).map_err(|error| match error {
            TrySendError::Full(Encoded(message)) => TrySendError::Full(message),
            TrySendError::Closed(Encoded(message)) => TrySendError::Closed(message),
        })
    }

    fn add<T: Into<Group>>(&self, group: T) -> Result<(), TrySendError<T>> {
        self.change(|state| match state.room(self.capacity) {
            Ok(()) => {
                state.push(group.into());
                Ok(())
            }
            Err(TrySendError::Full(())) => Err(TrySendError::Full(group)),
            Err(TrySendError::Closed(())) => Err(TrySendError::Closed(group)),
        })
    }

    /// Adds packets of the protocol itself, which need no room. False if it is closed.
    pub(crate) fn send_control(&self, packets: PacketBuf) -> bool {
        self.change(|state| {
            if !state.is_closed {
                state.push(packets.into());
            }
            !state.is_closed
        })
    }

    /// Keeps room for one group of packets.
    pub(crate) fn try_reserve(&self) -> Result<Permit<'_>, TrySendError<()>> {
        let mut state = self.state();
        state.room(self.capacity)?;
        state.reserved += 1;
        Ok(Permit { outbox: Some(self) })
    }

    /// Replaces the volatile packets. False if it is closed.
    pub(crate) fn send_volatile(&self, packets: PacketBuf) -> bool {
        self.change(|state| {
            if !state.is_closed {
                state.volatile = Some(Box::new(packets));
            }
            !state.is_closed
        })
    }

    /// The next packets: those that wait before the volatile ones, `None` once it is stopped or
    /// closed, and empty. Only the last task that asked is woken.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Group>> {
        let mut state = self.state();
        if let Some(group) = state.waiting.pop_front() {
            if state.waiting.is_empty() && state.waiting.capacity() > KEPT_ROOM {
                state.waiting = VecDeque::new();
            }
            return Poll::Ready(Some(group));
        }
        if let Some(packets) = state.volatile.take() {
            return Poll::Ready(Some(Group::Packets(packets)));
        }
        if state.is_stopped || state.is_closed {
            return Poll::Ready(None);
        }
        state.wake_later(cx);
        Poll::Pending
    }

    /// Whether nothing more is to be waited for; else the task is woken by the next change.
    pub(crate) fn poll_stopped(&self, cx: &mut Context<'_>) -> bool {
        let mut state = self.state();
        if !state.is_stopped {
            state.wake_later(cx);
        }
        state.is_stopped
    }

    /// The reader looks again before it waits: nobody has to wake it.
    pub(crate) fn forget_reader(&self) {
        self.state().reader = None;
    }

    /// The reader waits for nothing more: the session ends. What is sent until it is closed can be
    /// read.
    pub(crate) fn stop(&self) {
        self.change(|state| state.is_stopped = true);
    }

    /// Takes nothing any more. What waits can still be read.
    pub(crate) fn close(&self) {
        self.change(|state| state.is_closed = true);
        self.closing.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Waits until it is closed.
    pub(crate) async fn closed(&self) {
        // Registered with its creation, so that no closing comes between.
        let closing = self.closing.notified();
        if !self.is_closed() {
            closing.await;
        }
    }
}

impl State {
    fn push(&mut self, group: Group) {
        // Mostly one waits at a time, and the room is kept.
        if self.waiting.capacity() == 0 {
            self.waiting.reserve_exact(1);
        }
        self.waiting.push_back(group);
    }

    fn wake_later(&mut self, cx: &mut Context<'_>) {
        match &mut self.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            None => self.reader = Some(cx.waker().clone()),
        }
    }

    fn room(&self, capacity: usize) -> Result<(), TrySendError<()>> {
        if self.is_closed {
            return Err(TrySendError::Closed(()));
        }
        if self.waiting.len() + self.reserved >= capacity {
            return Err(TrySendError::Full(()));
        }
        Ok(())
    }
}

/// Room for one group of packets, given back if it is not used.
pub(crate) struct Permit<'a> {
    outbox: Option<&'a Outbox>,
}

impl Permit<'_> {
    /// Adds packets that are sent together.
    pub(crate) fn send(mut self, packets: PacketBuf) {
        if let Some(outbox) = self.outbox.take() {
            outbox.change(|state| {
                state.reserved -= 1;
                state.push(packets.into());
            });
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(outbox) = self.outbox {
            outbox.state().reserved -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, time::Duration};

    use engineioxide_core::{Packet, Str};
    use futures_util::FutureExt;
    use smallvec::smallvec;

    use super::*;

    fn message(text: &'static str) -> PacketBuf {
        smallvec![Packet::Message(Str::from(text))]
    }

    fn next(outbox: &Outbox) -> Option<Option<PacketBuf>> {
        let next = poll_fn(|cx| outbox.poll_next(cx)).now_or_never()?;
        Some(next.map(Group::into_packets))
    }

    #[test]
    fn packets_come_in_order_and_volatile_ones_last() {
        let outbox = Outbox::new(8);
        assert!(outbox.send_volatile(message("replaced")));
        assert!(outbox.send_volatile(message("latest")));
        outbox.try_send(message("a")).unwrap();
        outbox.try_reserve().unwrap().send(message("b"));
        assert_eq!(next(&outbox), Some(Some(message("a"))));
        assert_eq!(next(&outbox), Some(Some(message("b"))));
        assert_eq!(next(&outbox), Some(Some(message("latest"))));
        assert_eq!(next(&outbox), None);
    }

    #[test]
    fn an_encoded_message_is_the_same_packet_to_who_encodes_itself() {
        let outbox = Outbox::new(1);
        outbox.try_send_encoded("4a".into()).unwrap();
        let full = outbox.try_send_encoded("4b".into());
        assert!(matches!(full, Err(TrySendError::Full(back)) if back.as_str() == "4b"));
        assert_eq!(next(&outbox), Some(Some(message("a"))));
    }

    #[test]
    fn permits_take_room_and_give_it_back() {
        let outbox = Outbox::new(2);
        outbox.try_send(message("a")).unwrap();
        let permit = outbox.try_reserve().unwrap();
        assert!(matches!(
            outbox.try_send(message("b")),
            Err(TrySendError::Full(_))
        ));
        assert!(matches!(outbox.try_reserve(), Err(TrySendError::Full(()))));
        // The protocol's own need no room.
        assert!(outbox.send_control(smallvec![Packet::Noop]));
        drop(permit);
        assert_eq!(next(&outbox), Some(Some(message("a"))));
        outbox.try_send(message("c")).unwrap();
    }

    #[tokio::test]
    async fn closing_wakes_everybody_and_loses_nothing_that_waits() {
        let outbox = Outbox::new(2);
        let reads = poll_fn(|cx| outbox.poll_next(cx));
        let closes = async {
            outbox.try_send(message("last")).unwrap();
            outbox.close();
        };
        let (read, (), ()) = tokio::time::timeout(Duration::from_secs(10), async {
            tokio::join!(reads, outbox.closed(), closes)
        })
        .await
        .expect("everybody should be woken");
        assert_eq!(read.map(Group::into_packets), Some(message("last")));
        assert_eq!(next(&outbox), Some(None));
        assert!(matches!(
            outbox.try_send(message("late")),
            Err(TrySendError::Closed(_))
        ));
        assert!(!outbox.send_volatile(message("late")));
        assert!(!outbox.send_control(message("late")));
        outbox.closed().await;
    }

    #[test]
    fn a_stopped_outbox_is_read_to_its_end() {
        let outbox = Outbox::new(2);
        outbox.stop();
        assert_eq!(next(&outbox), Some(None));
        outbox.try_send(message("goodbye")).unwrap();
        assert_eq!(next(&outbox), Some(Some(message("goodbye"))));
        assert_eq!(next(&outbox), Some(None));
    }

    #[test]
    fn a_burst_leaves_no_room_behind() {
        let outbox = Outbox::new(100);
        for _ in 0..100 {
            outbox.try_send(message("many")).unwrap();
        }
        while next(&outbox).is_some() {}
        assert!(outbox.state().waiting.capacity() <= KEPT_ROOM);
    }
}
