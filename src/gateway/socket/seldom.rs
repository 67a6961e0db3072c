//! Waits for what is seldom there, beside what often is.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

/// Goes on with `future` only when something has woken the task for it. A future that waits for many
/// things looks at all of them otherwise whenever the task is woken, which here each token does.
pub(super) async fn seldom<T>(mut future: Pin<&mut impl Future<Output = T>>) -> T {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    poll_fn(|cx| {
        if bell.has_rung_for(cx.waker()) {
            future.as_mut().poll(&mut Context::from_waker(&waker))
        } else {
            Poll::Pending
        }
    })
    .await
}

struct Bell {
    has_rung: AtomicBool,
    task: AtomicWaker,
}

impl Bell {
    /// Whether it rang since it was last asked; if not, its next ring wakes that task.
    ///
    /// The task is noted each time, and before the look: a ring marks, then takes the note to wake
    /// with. A look that comes between the two sees the mark, and the ring takes a note that was made
    /// for the next one.
    fn has_rung_for(&self, task: &Waker) -> bool {
        self.task.register(task);
        self.has_rung.swap(false, Ordering::AcqRel)
    }

    fn mark(&self) {
        self.has_rung.store(true, Ordering::Release);
    }
}

impl Default for Bell {
    /// Rung for the first look.
    fn default() -> Self {
        Self {
            has_rung: AtomicBool::new(true),
            task: AtomicWaker::new(),
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.mark();
        self.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{Future as _, poll_fn};
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Poll, Wake, Waker};
    use std::time::Duration;

    use tokio::sync::Notify;

    use super::{Bell, seldom};

    #[tokio::test]
    async fn it_goes_on_when_it_was_woken_and_only_then() {
        let (rare, often, looks) = (Notify::new(), Notify::new(), Cell::new(0));
        let mut waiting = pin!(rare.notified());
        let counted = pin!(poll_fn(|cx| {
            looks.set(looks.get() + 1);
            waiting.as_mut().poll(cx)
        }));
        let mut seldom = pin!(seldom(counted));
        for _ in 0..100 {
            often.notify_one();
            tokio::select! {
                biased;
                () = &mut seldom => panic!("nobody has called"),
                () = often.notified() => {}
            }
        }
        assert_eq!(looks.get(), 1);
        let (called, calls) = (seldom, async { rare.notify_one() });
        let both = async { tokio::join!(called, calls) };
        let in_time = tokio::time::timeout(Duration::from_secs(10), both).await;
        assert!(in_time.is_ok());
        assert_eq!(looks.get(), 2);
    }

    #[test]
    fn a_look_between_mark_and_wake_costs_no_ring() {
        let bell = Arc::new(Bell::default());
        let (task, woken) = counted();
        assert!(bell.has_rung_for(&task));
        // A ring, in whose midst the task looks for another reason.
        bell.mark();
        assert!(bell.has_rung_for(&task));
        bell.task.wake();
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(!bell.has_rung_for(&task));
        bell.wake_by_ref();
        assert_eq!(woken.0.load(Ordering::Relaxed), 2, "the next ring is lost");
        assert!(bell.has_rung_for(&task));
    }

    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counted() -> (Waker, Arc<Woken>) {
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        (Waker::from(Arc::clone(&woken)), woken)
    }

    #[tokio::test]
    async fn a_task_that_takes_it_over_is_woken() {
        let rare = std::sync::Arc::new(Notify::new());
        let waits = std::sync::Arc::clone(&rare);
        let mut called = Box::pin(async move {
            seldom(pin!(waits.notified())).await;
        });
        // Looked at once here, and then by another task.
        poll_fn(|cx| {
            assert!(called.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        let task = tokio_util::task::TaskTracker::new().spawn(called);
        tokio::task::yield_now().await;
        rare.notify_one();
        let in_time = tokio::time::timeout(Duration::from_secs(10), task).await;
        assert!(in_time.is_ok());
    }
}
