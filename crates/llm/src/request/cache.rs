//! Caches values derived from a list of tools, for the next requests with the same list.

use std::sync::{Arc, Mutex, PoisonError};

use sepal_core::domain::Tool;

/// The most lists in the cache: one for each active tenant.
const KEPT: usize = 64;

/// A cache of values derived from lists of tools. Sessions share a list and send it again and again.
#[derive(Debug)]
pub struct RequestCache<T> {
    /// The cached values, newest last. Never locked across an await.
    made: Mutex<Vec<(Arc<[Tool]>, T)>>,
}

impl<T> Default for RequestCache<T> {
    fn default() -> Self {
        Self {
            made: Mutex::default(),
        }
    }
}

impl<T: Clone> RequestCache<T> {
    /// The cached value for exactly this list (the same `Arc`), else a new one. Errors are not cached.
    pub fn get<E>(
        &self,
        tools: &Arc<[Tool]>,
        work_out: impl FnOnce(&[Tool]) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, made)) = all.iter().find(|(of, _)| Arc::ptr_eq(of, tools)) {
            return Ok(made.clone());
        }
        let made = work_out(tools)?;
        if all.len() >= KEPT {
            all.remove(0);
        }
        all.push((Arc::clone(tools), made.clone()));
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use super::{KEPT, RequestCache};
    use sepal_core::domain::Tool;

    #[test]
    fn it_is_made_once_for_an_offer_and_the_oldest_goes() {
        let kept = RequestCache::default();
        let made = |tools: &Arc<[Tool]>, what| kept.get(tools, |_| Ok::<_, Infallible>(what));
        // Two lists with the same tools are two entries.
        let (one, two) = (Arc::from(Vec::new()), Arc::from(Vec::new()));
        assert_eq!(made(&one, 1), Ok(1));
        assert_eq!(made(&one, 2), Ok(1));
        assert_eq!(made(&two, 3), Ok(3));
        for more in 0..KEPT {
            let _ = made(&Arc::from(Vec::new()), more);
        }
        assert_eq!(kept.made.lock().unwrap().len(), KEPT);
        assert_eq!(made(&one, 4), Ok(4));
        assert_eq!(kept.get(&Arc::from(Vec::new()), |_| Err("no")), Err("no"));
    }
}
