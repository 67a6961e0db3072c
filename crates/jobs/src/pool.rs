//! Places for work that keeps a thread busy, and the work that has one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

/// Places for one kind of work. Clones share them.
#[derive(Debug, Clone)]
pub struct Pool {
    name: &'static str,
    places: Arc<Semaphore>,
    /// Room in the queue; none = as many as like may wait.
    queue: Option<Arc<Semaphore>>,
}

/// The reason work gave no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// As many as may wait for a place do.
    #[error("too much work of the kind `{0}` waits")]
    Full(&'static str),
    /// The work panicked, or the process is stopping.
    #[error("work of the kind `{0}` ended without a result")]
    Broken(&'static str),
}

/// A place in a pool. Whoever holds it may run one piece of work, and takes no place from others once it
/// is dropped.
#[derive(Debug)]
#[must_use]
pub struct Place {
    name: &'static str,
    permit: OwnedSemaphorePermit,
}

/// Tells work whether anybody still waits for its result.
#[derive(Debug, Clone, Default)]
pub struct Watch(Arc<AtomicBool>);

impl Watch {
    /// Whether nobody waits for the result any more, so that the rest of the work is in vain.
    pub fn is_abandoned(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Abandons the work when it is dropped.
    fn guard(&self) -> Waiting {
        Waiting(self.clone())
    }
}

/// Somebody who waits for a result.
struct Waiting(Watch);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Pool {
    /// A pool of that many places. Whatever finds none waits.
    pub fn new(name: &'static str, places: usize) -> Self {
        Self {
            name,
            places: Arc::new(Semaphore::new(places)),
            queue: None,
        }
    }

    /// The same, in which only so many may wait; more are refused at once.
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
    /// Too many wait.
    pub async fn place(&self) -> Result<Place, Error> {
        let full = |_| Error::Full(self.name);
        let queued = self.queue.as_ref().map(|queue| queue.try_acquire());
        let _queued = queued.transpose().map_err(full)?;
        let permit = Arc::clone(&self.places).acquire_owned().await;
        // The semaphore is never closed.
        let permit = permit.map_err(|_| Error::Broken(self.name))?;
        Ok(self.held(permit))
    }

    /// A place, if there is one now.
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
    /// Too many wait, or the work broke.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.place().await?.run(work).await
    }
}

impl Place {
    /// Runs the work, and gives the place back when it ends.
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

    /// The same for work that several pieces follow: the place comes back with the result, unless nobody
    /// waits for it any more. The work can ask whether somebody does.
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

    /// Begins work whose end nobody waits for.
    pub fn start<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        spawn(move || {
            // Kept until the work is done, even if nobody waits for it any more.
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
    // What the work logs belongs to the request that began it.
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

    /// Work that goes on until the sender says so, and tells when it has begun.
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
        // The client hangs up; what it began goes on, and keeps its place.
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
