//! Counts the finished spans that wait for the collector. The library drops spans silently if its queue is
//! full, so we count before it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::instruments;

/// The places of the queue.
#[derive(Debug)]
pub(super) struct Queue {
    places: usize,
    waiting: AtomicUsize,
    /// True once it was logged that spans are dropped.
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

    /// Reserves a place for one span. Returns false if there is none; the loss is counted, and logged when it
    /// starts.
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

    /// Frees the places of spans that were taken out of the queue.
    pub(super) fn leave(&self, spans: usize) {
        let before = self.waiting.fetch_sub(spans, Ordering::AcqRel);
        // Waits until half of the queue is free: otherwise a queue that stays full would be logged
        // repeatedly.
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
