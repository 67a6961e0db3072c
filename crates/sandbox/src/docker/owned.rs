//! Tracks which containers have an owner in this process; the others were left by an earlier process.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The names of the containers that have an owner in this process.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnedNames(Arc<Mutex<BTreeSet<String>>>);

impl OwnedNames {
    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a name. Must be called before the container is created.
    pub(super) fn own(&self, name: String) -> Owner {
        self.names().insert(name.clone());
        Owner {
            name,
            owned: self.clone(),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.names().contains(name)
    }
}

/// The ownership of a name, until it is dropped.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) name: String,
    owned: OwnedNames,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.owned.names().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_owned_until_its_owner_lets_go() {
        let owned = OwnedNames::default();
        let hold = owned.own("a".to_owned());
        assert!(owned.has("a") && !owned.has("b"));
        drop(hold);
        assert!(!owned.has("a"));
    }
}
