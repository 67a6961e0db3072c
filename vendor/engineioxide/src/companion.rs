//! Work that belongs to one websocket and is done in its task.
//!
//! Not in upstream, where whoever serves a client has a task of its own: each packet then takes two
//! tasks, and an idle client the memory of both.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// What is to be done beside the exchange of packets.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send + 'static>>;

/// The task of one websocket, for work beside it. It lies in the extensions of the request of every
/// session that began as a websocket ([`Socket::req_parts`](crate::Socket::req_parts)); a session that
/// began by polling has none.
///
/// The work goes on in a task of its own when the websocket ends before it.
#[derive(Clone, Default)]
pub struct Companion(Arc<Mutex<Place>>);

#[derive(Default)]
struct Place {
    given: Option<Work>,
    /// The websocket has ended.
    is_closed: bool,
    reader: Option<Waker>,
}

impl Companion {
    /// Gives it to the websocket's task; what was given before and not begun yet is done in a task of
    /// its own, and so is everything once the websocket has ended.
    pub fn give(&self, work: Work) {
        let (work, reader) = {
            let mut place = self.place();
            let work = if place.is_closed {
                Some(work)
            } else {
                place.given.replace(work)
            };
            (work, place.reader.take())
        };
        if let Some(work) = work {
            tokio::spawn(work);
        }
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Waits for work that nobody has taken.
    fn poll_taken(&self, cx: &mut Context<'_>) -> Poll<Work> {
        let mut place = self.place();
        match place.given.take() {
            Some(work) => Poll::Ready(work),
            None => {
                place.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Companion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Companion").finish_non_exhaustive()
    }
}

/// The websocket's end of a [`Companion`]. Dropping it leaves the work to a task of its own.
pub(crate) struct Worker {
    companion: Option<Companion>,
    work: Option<Work>,
}

impl Worker {
    pub(crate) fn new(companion: Option<Companion>) -> Self {
        Self {
            companion,
            work: None,
        }
    }

    /// Does what there is to do, and takes what is given.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) {
        loop {
            if let Some(work) = &mut self.work {
                if work.as_mut().poll(cx).is_pending() {
                    return;
                }
                self.work = None;
            }
            let taken = self.companion.as_ref().map(|it| it.poll_taken(cx));
            match taken {
                Some(Poll::Ready(work)) => self.work = Some(work),
                Some(Poll::Pending) | None => return,
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let given = self.companion.as_ref().and_then(|companion| {
            let mut place = companion.place();
            place.is_closed = true;
            place.given.take()
        });
        // Work that broke is not polled again.
        let begun = self.work.take().filter(|_| !std::thread::panicking());
        // Nothing can be spawned when the runtime itself goes: the work goes with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            for work in begun.into_iter().chain(given) {
                runtime.spawn(work);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, time::Duration};

    use futures_util::FutureExt;
    use tokio::sync::{mpsc, oneshot};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    async fn within<T>(work: impl Future<Output = T>) -> T {
        tokio::time::timeout(TIMEOUT, work).await.expect("in time")
    }

    /// A websocket's task that does nothing but the work.
    async fn serve(worker: &mut Worker) {
        poll_fn(|cx| {
            worker.poll(cx);
            Poll::Pending
        })
        .await
    }

    #[tokio::test]
    async fn work_is_done_in_the_task_of_the_websocket_one_after_the_other() {
        let companion = Companion::default();
        let mut worker = Worker::new(Some(companion.clone()));
        let task = tokio::spawn(async move { serve(&mut worker).await });
        let (said, mut heard) = mpsc::unbounded_channel();
        for number in 0..3 {
            let said = said.clone();
            let (done, is_done) = oneshot::channel();
            companion.give(Box::pin(async move {
                said.send((number, tokio::task::id())).unwrap();
                done.send(()).unwrap();
            }));
            within(is_done).await.unwrap();
            assert_eq!(within(heard.recv()).await.unwrap(), (number, task.id()));
        }
        task.abort();
    }

    #[tokio::test]
    async fn work_outlives_the_websocket() {
        let companion = Companion::default();
        let mut worker = Worker::new(Some(companion.clone()));
        let (go_on, goes_on) = oneshot::channel::<()>();
        let (done, mut is_done) = oneshot::channel();
        companion.give(Box::pin(async move {
            goes_on.await.unwrap();
            done.send(()).unwrap();
        }));
        assert!(serve(&mut worker).now_or_never().is_none());
        drop(worker);
        assert!(is_done.try_recv().is_err());
        go_on.send(()).unwrap();
        within(is_done).await.unwrap();

        // And what is given too late is done too.
        let (done, is_done) = oneshot::channel();
        companion.give(Box::pin(async move { done.send(()).unwrap() }));
        within(is_done).await.unwrap();
    }
}
