//! How many finished spans wait for the collector. The library drops what its queue has no room for
//! without telling anybody, so we count first.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::instruments;

/// The places of the queue.
#[derive(Debug)]
pub(super) struct Queue {
    places: usize,
    waiting: AtomicUsize,
    /// Whether it was said that spans are dropped.
    is_dropping: AtomicBool,
}

impl Queue {
    pub(super) fn new(places: usize) -> Self {
        Self {
            places,
            waiting: AtomicUsize::new(0),
            is_dropping: AtomicBool::new(false),
        }
    }

    /// Takes a place for one span; `false` if there is none, which is counted, and said when it
    /// begins.
    pub(super) fn enter(&self) -> bool {
        let room = |waiting: usize| (waiting < self.places).then_some(waiting + 1);
        let entered = self
            .waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, room);
        if entered.is_ok() {
            return true;
        }
        instruments().spans_lost("queue", 1);
        if !self.is_dropping.swap(true, Ordering::AcqRel) {
            let places = self.places;
            tracing::warn!(
                "Traces are lost: {places} spans wait for the collector, and more do not fit; \
                 `sepal_spans_lost_total` counts them"
            );
        }
        false
    }

    /// So many spans were taken out of it.
    pub(super) fn leave(&self, spans: usize) {
        let before = self.waiting.fetch_sub(spans, Ordering::AcqRel);
        // Not at the first free place: a queue that stays full would say the same again and again.
        if before.saturating_sub(spans) <= self.places / 2 {
            self.is_dropping.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Queue;
    use std::sync::atomic::Ordering;

    #[test]
    fn what_does_not_fit_is_dropped_and_it_is_said_once_until_there_is_room_again() {
        let queue = Queue::new(4);
        let says = |queue: &Queue| queue.is_dropping.load(Ordering::Acquire);
        assert!((0..4).all(|_| queue.enter()) && !says(&queue));
        assert!(!queue.enter() && says(&queue));
        queue.leave(1);
        assert!(says(&queue), "it is as good as full");
        assert!(queue.enter() && !queue.enter());
        queue.leave(2);
        assert!(!says(&queue), "the next time is news again");
        assert!(queue.enter() && queue.enter() && !queue.enter());
    }
}
