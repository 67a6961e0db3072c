//! The questions of a connection that wait, and the pages that are not done yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What waits for people on one connection.
#[derive(Debug)]
pub(super) struct OpenQuestions {
    /// Never held across an await.
    all: Mutex<All>,
    /// Whether somebody is asked now.
    is_asking: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct All {
    count: usize,
    /// Pages that are not done yet, by the server's own ids.
    pages: BTreeMap<String, CancellationToken>,
}

impl Default for OpenQuestions {
    fn default() -> Self {
        Self {
            all: Mutex::default(),
            is_asking: watch::channel(false).0,
        }
    }
}

impl OpenQuestions {
    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a person is asked.
    pub(super) fn is_asking(&self) -> watch::Receiver<bool> {
        self.is_asking.subscribe()
    }

    /// The server says that all is done at its page.
    pub(super) fn complete(&self, id: &str) {
        if let Some(page) = self.all().pages.get(id) {
            page.cancel();
        }
    }

    /// Pages that are not done yet.
    #[cfg(test)]
    pub(super) fn pages(&self) -> usize {
        self.all().pages.len()
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        let mut all = self.all();
        all.count = change(all.count);
        self.is_asking.send_replace(all.count > 0);
    }
}

/// A question that waits, until it is dropped.
#[derive(Debug)]
pub(super) struct Waits {
    open: Arc<OpenQuestions>,
    /// Its page, by the server's own id.
    page: Option<(String, CancellationToken)>,
}

impl Waits {
    pub(super) fn begin(open: &Arc<OpenQuestions>, page: Option<String>) -> Self {
        open.count(|waiting| waiting + 1);
        let page = page.map(|id| {
            // The same page twice is done at once.
            let done = open.all().pages.entry(id.clone()).or_default().clone();
            (id, done)
        });
        Self {
            open: Arc::clone(open),
            page,
        }
    }

    /// Ends when the server says that all is done at the page.
    pub(super) fn completed(&self) -> Option<CancellationToken> {
        self.page.as_ref().map(|(_, done)| done.clone())
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.open.count(|waiting| waiting.saturating_sub(1));
        if let Some((id, _)) = &self.page {
            self.open.all().pages.remove(id);
        }
    }
}
