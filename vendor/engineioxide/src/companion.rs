//! A session as whoever serves its client has it: work in the websocket's task, and messages that are
//! encoded already.
//!
//! Not in upstream, where whoever serves a client has a task of its own: each packet then takes two
//! tasks, and an idle client the memory of both.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

use engineioxide_core::{Str, TransportType};
use tokio::sync::mpsc::error::TrySendError;

use crate::Socket;

/// What is to be done beside the exchange of packets.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send + 'static>>;

/// One session. It lies in the extensions of the request that began it
/// ([`Socket::req_parts`](crate::Socket::req_parts)).
#[derive(Clone)]
pub struct Companion(Arc<Shared>);

struct Shared {
    socket: OnceLock<Weak<dyn Emit>>,
    place: Mutex<Place>,
}

#[derive(Default)]
struct Place {
    given: Option<Work>,
    /// There is no websocket, or it has ended.
    is_closed: bool,
    reader: Option<Waker>,
}

trait Emit: Send + Sync {
    fn emit(&self, message: Str) -> Result<(), TrySendError<Str>>;
}

impl<D: Default + Send + Sync + 'static> Emit for Socket<D> {
    fn emit(&self, message: Str) -> Result<(), TrySendError<Str>> {
        self.outbox.try_send_encoded(message)
    }
}

impl Companion {
    /// Only a session that begins as a websocket has a task to give work to.
    pub(crate) fn new(transport: TransportType) -> Self {
        Self(Arc::new(Shared {
            socket: OnceLock::new(),
            place: Mutex::new(Place {
                is_closed: transport != TransportType::Websocket,
                ..Place::default()
            }),
        }))
    }

    pub(crate) fn belong_to<D: Default + Send + Sync + 'static>(&self, socket: &Arc<Socket<D>>) {
        let socket = Arc::downgrade(socket);
        let _ = self.0.socket.set(socket);
    }

    /// [`Socket::emit`](crate::Socket::emit) for a message that is encoded already, as a websocket
    /// carries it: with the type of its packet (`4`) before it. It is shared, never copied.
    pub fn emit(&self, message: Str) -> Result<(), TrySendError<Str>> {
        match self.0.socket.get().and_then(Weak::upgrade) {
            Some(socket) => socket.emit(message),
            None => Err(TrySendError::Closed(message)),
        }
    }

    /// Gives it to the websocket's task, where it goes on until the websocket ends, and then in a task
    /// of its own. So does what was given before and not begun yet, and everything of a session that
    /// did not begin as a websocket.
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
        self.0.place.lock().unwrap_or_else(PoisonError::into_inner)
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
        let companion = Companion::new(TransportType::Websocket);
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
    async fn a_session_without_a_websocket_has_no_task_for_work() {
        let companion = Companion::new(TransportType::Polling);
        let (done, is_done) = oneshot::channel();
        companion.give(Box::pin(async move { done.send(()).unwrap() }));
        within(is_done).await.unwrap();
        let answer = companion.emit("nobody".into());
        assert!(matches!(answer, Err(TrySendError::Closed(_))));
    }

    #[tokio::test]
    async fn work_outlives_the_websocket() {
        let companion = Companion::new(TransportType::Websocket);
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
