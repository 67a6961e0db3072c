//! What was worked out of a value and is kept with it.

use std::fmt;
use std::sync::OnceLock;

/// Something that follows from the rest of the value it lies in: it makes no two values differ, and is
/// neither copied nor stored. Whoever changes the value makes it anew.
pub struct Memo<T>(OnceLock<T>);

impl<T> Memo<T> {
    /// Whether it was worked out before.
    pub fn is_known(&self) -> bool {
        self.0.get().is_some()
    }

    /// What was worked out before, or is now.
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
