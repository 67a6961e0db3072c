//! Batches the signals that wait for one socket, and drops outdated states.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use crate::agent::{FeedItem, Signal};

/// The maximum number of signals in a batch.
const MOST: usize = 32;

/// Signals in their order, and the number of signals lost right after them.
pub(super) struct Batch {
    /// The signals. Mostly one: a token arrives alone.
    pub(super) signals: SmallVec<[Arc<Signal>; 1]>,
    /// The number of lost signals. The receiver reports a loss only once, so the caller must handle it.
    pub(super) lost: Option<u64>,
}

impl Batch {
    /// Takes the signals that are queued after `first`, and keeps only the latest of each state.
    pub(super) fn take(first: Arc<Signal>, from: &mut Receiver<Arc<Signal>>) -> Self {
        let (mut all, mut lost): (SmallVec<[_; 1]>, _) = (smallvec![first], None);
        while all.len() < MOST {
            match from.try_recv() {
                Ok(signal) => all.push(signal),
                Err(TryRecvError::Lagged(count)) => {
                    lost = Some(count);
                    break;
                }
                // The next receive reports a closed channel again.
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        if all.len() == 1 {
            return Self { signals: all, lost };
        }
        let is_current = |at: usize, signal: &Signal| {
            let mut later = all.iter().skip(at + 1);
            !later.any(|later| replaces(&later.item, &signal.item))
        };
        let current = all.iter().enumerate();
        let current = current.filter(|(at, signal)| is_current(*at, signal));
        Self {
            signals: current.map(|(_, signal)| Arc::clone(signal)).collect(),
            lost,
        }
    }
}

/// True if the later state makes the earlier signal obsolete.
fn replaces(later: &FeedItem, earlier: &FeedItem) -> bool {
    matches!(
        (later, earlier),
        (FeedItem::Queue(_), FeedItem::Queue(_)) | (FeedItem::Usage(_), FeedItem::Usage(_))
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::broadcast;

    use super::Batch;
    use crate::agent::{FeedItem, QueueState, Signal};

    fn signal(item: FeedItem) -> Arc<Signal> {
        Arc::new(Signal::new(item))
    }

    fn queue(seq: u64) -> Arc<Signal> {
        signal(FeedItem::Queue(QueueState {
            seq,
            ..QueueState::default()
        }))
    }

    #[test]
    fn only_the_latest_state_is_left_and_the_order_stays() {
        let (sender, mut receiver) = broadcast::channel(8);
        for sent in [
            signal(FeedItem::Moved(1)),
            queue(2),
            signal(FeedItem::Moved(3)),
        ] {
            assert!(sender.send(sent).is_ok());
        }
        let batch = Batch::take(queue(1), &mut receiver);
        let place = |signal: &Arc<Signal>| {
            if let FeedItem::Queue(queue) = &signal.item {
                return (true, queue.seq);
            }
            let FeedItem::Moved(seq) = &signal.item else {
                panic!("{:?}", signal.item);
            };
            (false, *seq)
        };
        let places = batch.signals.iter().map(place);
        let expected = [(false, 1), (true, 2), (false, 3)];
        assert_eq!(places.collect::<Vec<_>>(), expected);
        assert_eq!(batch.lost, None);
    }

    #[test]
    fn what_was_lost_while_a_batch_was_taken_is_said() {
        let (sender, mut receiver) = broadcast::channel(2);
        for seq in 1..=5 {
            assert!(sender.send(signal(FeedItem::Moved(seq))).is_ok());
        }
        let batch = Batch::take(signal(FeedItem::Moved(0)), &mut receiver);
        assert_eq!((batch.signals.len(), batch.lost), (1, Some(3)));
    }
}
