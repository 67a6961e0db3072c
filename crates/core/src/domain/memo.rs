//! Caches a value that is derived from the value that contains it.

use std::fmt;
use std::sync::OnceLock;

/// A cache inside a value of something derived from the rest of it. It is ignored by comparisons, and
/// neither cloned nor stored. Code that changes the value has to reset the cache.
pub struct Memo<T>(OnceLock<T>);

impl<T> Memo<T> {
    /// Returns true if the value is cached.
    pub fn is_known(&self) -> bool {
        self.0.get().is_some()
    }

    /// The cached value, or the one that `work_out` computes now.
    pub fn get(&self, work_out: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(work_out)
    }
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T> Clone for Memo<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T> PartialEq for Memo<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> fmt::Debug for Memo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Memo;

    #[test]
    fn it_is_worked_out_once_and_not_copied() {
        let memo = Memo::default();
        assert_eq!(*memo.get(|| 1), 1);
        assert_eq!(*memo.get(|| 2), 1);
        let copy = memo.clone();
        assert_eq!(*copy.get(|| 3), 3);
        assert_eq!(memo, copy);
    }
}
