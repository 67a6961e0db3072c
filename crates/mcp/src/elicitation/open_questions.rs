//! Tracks the open questions of a connection, and the pages that are not completed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The open questions of one connection.
#[derive(Debug)]
pub(super) struct OpenQuestions {
    /// Never held across an await.
    all: Mutex<All>,
    /// True while a person is asked.
    is_asking: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct All {
    count: usize,
    /// The pages that are not completed, by the server's own ids.
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

    /// Watches whether a person is asked.
    pub(super) fn is_asking(&self) -> watch::Receiver<bool> {
        self.is_asking.subscribe()
    }

    /// Marks a page as completed, when the server says so.
    pub(super) fn complete(&self, id: &str) {
        if let Some(page) = self.all().pages.get(id) {
            page.cancel();
        }
    }

    /// Returns the number of pages that are not completed.
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

/// An open question, until it is dropped.
#[derive(Debug)]
pub(super) struct Waits {
    open: Arc<OpenQuestions>,
    /// The question's page, by the server's own id.
    page: Option<(String, CancellationToken)>,
}

impl Waits {
    pub(super) fn begin(open: &Arc<OpenQuestions>, page: Option<String>) -> Self {
        open.count(|waiting| waiting + 1);
        let page = page.map(|id| {
            // Several questions about the same page complete together.
            let done = open.all().pages.entry(id.clone()).or_default().clone();
            (id, done)
        });
        Self {
            open: Arc::clone(open),
            page,
        }
    }

    /// Returns a token that is cancelled when the server reports the page as completed.
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
