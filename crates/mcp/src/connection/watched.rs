//! The resources that somebody has read and wants to know of when they change.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

/// The addresses. A change is told once until the resource is read again, so that a server that floods
/// us with changes says nothing more.
#[derive(Default)]
pub(crate) struct WatchedResources(
    /// Never held across an await.
    Mutex<Watching>,
);

#[derive(Default)]
struct Watching {
    unchanged: HashSet<String>,
    heard: Option<mpsc::UnboundedSender<String>>,
}

impl WatchedResources {
    /// From now on a change of that resource is told. The first who asks gets what is told.
    pub(crate) fn watch(&self, uri: &str) -> Option<mpsc::UnboundedReceiver<String>> {
        let mut watching = self.watching();
        watching.unchanged.insert(uri.to_owned());
        if watching.heard.is_some() {
            return None;
        }
        let (heard, changes) = mpsc::unbounded_channel();
        watching.heard = Some(heard);
        Some(changes)
    }

    /// The server says that it changed.
    pub(super) fn changed(&self, uri: &str) {
        let mut watching = self.watching();
        if !watching.unchanged.remove(uri) {
            return;
        }
        if let Some(heard) = &watching.heard {
            // Nobody listens any more.
            let _ = heard.send(uri.to_owned());
        }
    }

    fn watching(&self) -> MutexGuard<'_, Watching> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::WatchedResources;

    #[test]
    fn a_change_is_told_once_until_the_resource_is_read_again() {
        let resources = WatchedResources::default();
        resources.changed("demo://a");
        let mut changes = resources.watch("demo://a").unwrap();
        assert!(resources.watch("demo://b").is_none());
        for _ in 0..3 {
            resources.changed("demo://a");
            resources.changed("demo://never-read");
        }
        assert_eq!(changes.try_recv().unwrap(), "demo://a");
        assert!(changes.try_recv().is_err());
        assert!(resources.watch("demo://a").is_none());
        resources.changed("demo://a");
        assert_eq!(changes.try_recv().unwrap(), "demo://a");
    }
}
