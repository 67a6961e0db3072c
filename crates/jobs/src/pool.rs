//! Pools of places for work that keeps a thread busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

/// The places for one kind of work. Clones share them.
#[derive(Debug, Clone)]
pub struct Pool {
    name: &'static str,
    places: Arc<Semaphore>,
    /// The slots of the queue; `None` = any number of callers may wait.
    queue: Option<Arc<Semaphore>>,
}

/// The reason why work gave no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The queue of waiting work is full.
    #[error("too much work of the kind `{0}` waits")]
    Full(&'static str),
    /// The work panicked, or the process is stopping.
    #[error("work of the kind `{0}` ended without a result")]
    Broken(&'static str),
}

/// A place in a pool. It permits one piece of work, and is freed when it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Place {
    name: &'static str,
    permit: OwnedSemaphorePermit,
}

/// Tells work whether its result is still awaited.
#[derive(Debug, Clone, Default)]
pub struct Watch(Arc<AtomicBool>);

impl Watch {
    /// Returns true if the result is no longer awaited, so that the work can stop.
    pub fn is_abandoned(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns a guard that marks the work as abandoned when it is dropped.
    fn guard(&self) -> Waiting {
        Waiting(self.clone())
    }
}

/// The guard of a caller that awaits a result.
struct Waiting(Watch);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Pool {
    /// Creates a pool with that many places. Work without a free place waits.
    pub fn new(name: &'static str, places: usize) -> Self {
        Self {
            name,
            places: Arc::new(Semaphore::new(places)),
            queue: None,
        }
    }

    /// Limits the number of waiting callers; further ones are refused at once.
    #[must_use]
    pub fn with_queue(self, waiting: usize) -> Self {
        Self {
            queue: Some(Arc::new(Semaphore::new(waiting))),
            ..self
        }
    }

    /// Waits for a place.
    ///
    /// # Errors
    /// The queue is full.
    pub async fn place(&self) -> Result<Place, Error> {
        let full = |_| Error::Full(self.name);
        let queued = self.queue.as_ref().map(|queue| queue.try_acquire());
        let _queued = queued.transpose().map_err(full)?;
        let permit = Arc::clone(&self.places).acquire_owned().await;
        // The semaphore is never closed.
        let permit = permit.map_err(|_| Error::Broken(self.name))?;
        Ok(self.held(permit))
    }

    /// Takes a place, if one is free.
    pub fn try_place(&self) -> Option<Place> {
        let permit = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(self.held(permit))
    }

    fn held(&self, permit: OwnedSemaphorePermit) -> Place {
        Place {
            name: self.name,
            permit,
        }
    }

    /// Waits for a place and runs the work in it.
    ///
    /// # Errors
    /// The queue is full, or the work broke.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.place().await?.run(work).await
    }
}

impl Place {
    /// Runs the work, and frees the place when it ends.
    ///
    /// # Errors
    /// The work broke.
    pub async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let name = self.name;
        let done = self.start(work).await;
        done.map_err(|_| Error::Broken(name))
    }

    /// Runs work that is followed by more work: returns the place with the result, unless the caller is gone.
    /// The work can check whether its result is still awaited.
    ///
    /// # Errors
    /// The work broke.
    pub async fn run_watched<T: Send + 'static>(
        self,
        work: impl FnOnce(&Watch) -> T + Send + 'static,
    ) -> Result<(Self, T), Error> {
        let name = self.name;
        let watch = Watch::default();
        let _waiting = watch.guard();
        let done = spawn(move || {
            let result = work(&watch);
            (self, result)
        });
        done.await.map_err(|_| Error::Broken(name))
    }

    /// Starts the work without waiting for its end.
    pub fn start<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        spawn(move || {
            // The place stays taken until the work ends, even if the caller is gone.
            let _permit = self.permit;
            work()
        })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that begins blocking work, with a permit inside of it"
)]
fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    // Log entries of the work belong to the request that started it.
    let (span, listener) = (
        tracing::Span::current(),
        tracing::dispatcher::get_default(Clone::clone),
    );
    tokio::task::spawn_blocking(move || {
        tracing::dispatcher::with_default(&listener, || span.in_scope(work))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::{Error, Pool};

    /// Work that runs until the sender sends, and reports its start.
    fn held() -> (impl FnOnce() + Send, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let (begun, has_begun) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let work = move || {
            let _ = begun.send(());
            let _ = ends.recv();
        };
        (work, has_begun, end)
    }

    #[tokio::test]
    async fn a_place_is_taken_until_the_work_ends_whoever_hangs_up() {
        let pool = Pool::new("test", 1);
        let (work, has_begun, end) = held();
        let mut request = Box::pin(pool.run(work));
        assert!(futures::poll!(&mut request).is_pending());
        assert!(futures::poll!(&mut request).is_pending());
        has_begun.recv().unwrap();
        // The client disconnects; its work goes on and keeps its place.
        drop(request);
        assert!(pool.try_place().is_none());
        end.send(()).unwrap();
        assert_eq!(pool.run(|| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn watched_work_hears_that_nobody_waits_and_gives_its_place_back() {
        let pool = Pool::new("test", 1);
        let place = pool.place().await.unwrap();
        let (place, two) = place.run_watched(|_| 2).await.unwrap();
        assert_eq!(two, 2);
        assert!(
            pool.try_place().is_none(),
            "the place came back with the result"
        );
        let (tell, told) = mpsc::channel();
        let mut request = Box::pin(place.run_watched(move |watch| {
            while !watch.is_abandoned() {
                std::thread::yield_now();
            }
            tell.send(()).unwrap();
        }));
        assert!(futures::poll!(&mut request).is_pending());
        drop(request);
        told.recv().unwrap();
        assert_eq!(pool.run(|| 3).await, Ok(3));
    }

    #[tokio::test]
    async fn a_queue_refuses_what_is_too_much_and_broken_work_gives_its_place_back() {
        let pool = Pool::new("test", 1).with_queue(1);
        let first = pool.place().await.unwrap();
        let mut second = Box::pin(pool.place());
        assert!(futures::poll!(&mut second).is_pending());
        assert_eq!(pool.place().await.unwrap_err(), Error::Full("test"));
        drop(first);
        let second = second.await.unwrap();
        let broken = second.run::<()>(|| std::panic::resume_unwind(Box::new(())));
        assert_eq!(broken.await, Err(Error::Broken("test")));
        assert_eq!(pool.run(|| 1).await, Ok(1));
    }
}
