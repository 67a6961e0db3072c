//! Tracks the resources whose changes somebody wants to know.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

/// The watched addresses. A change is reported once until the resource is read again, so a server that floods
/// us with changes causes no more reports.
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
    /// Watches a resource. The first caller receives the channel of all reports.
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

    /// Reports a change of the resource, if it is watched and not yet reported.
    pub(super) fn changed(&self, uri: &str) {
        let mut watching = self.watching();
        if !watching.unchanged.remove(uri) {
            return;
        }
        if let Some(heard) = &watching.heard {
            // The receiver may be gone.
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
