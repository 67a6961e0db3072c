//! Shares a value between threads without showing its type to the compiler's checks of threads.

use std::ops::Deref;
use std::sync::Arc;

/// An `Arc` whose content was checked once, when it was made.
///
/// For each future that is spawned or boxed, the compiler checks that everything that it can reach may move
/// between threads. What half of the program reaches would be checked thousands of times. Reading costs one
/// indirect call.
pub struct Shared<T: 'static>(Arc<dyn Deref<Target = T> + Send + Sync>);

struct Content<T>(T);

impl<T> Deref for Content<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send + Sync> Shared<T> {
    /// Shares `content`, which lives as long as one of the clones.
    pub fn new(content: T) -> Self {
        Self(Arc::new(Content(content)))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
