//! Subscribes to the notifications of a server of 2026-07-28, which sends them only on a stream that the
//! client opens (`subscriptions/listen`) with a filter of everything it wants.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::FutureExt as _;
use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, ServiceError, Subscription};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::handler::Handler;

/// The time limit for the server to confirm the subscription.
const LIMIT: Duration = Duration::from_secs(30);
/// The first and the longest backoff before a stream that ended is opened again; each pause is twice the
/// previous one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Listens until it is dropped.
pub(super) struct Listening {
    /// The resources whose changes are wanted.
    resources: watch::Sender<BTreeSet<String>>,
    _task: AbortOnDropHandle<()>,
}

impl Listening {
    pub(super) fn begin(peer: Peer<RoleClient>, handler: Handler) -> Self {
        let (resources, wanted) = watch::channel(BTreeSet::new());
        let listener = Listener {
            peer,
            handler,
            wanted,
        };
        Self {
            resources,
            _task: AbortOnDropHandle::new(TaskTracker::new().spawn(listener.run())),
        }
    }

    /// Adds a resource whose changes are wanted.
    pub(super) fn add(&self, uri: &str) {
        self.resources
            .send_if_modified(|resources| resources.insert(uri.to_owned()));
    }
}

/// The end of a stream.
enum End {
    /// The filter changed; the stream with the new filter is already open.
    Replaced(Box<Subscription>),
    /// The server ended the stream, or it broke.
    Over,
    /// The listener is no longer wanted.
    Unwanted,
}

struct Listener {
    peer: Peer<RoleClient>,
    handler: Handler,
    wanted: watch::Receiver<BTreeSet<String>>,
}

impl Listener {
    async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        let mut may_have_missed = false;
        while !self.peer.is_transport_closed() {
            let filter = self.filter();
            if filter == SubscriptionFilter::default() {
                if self.wanted.changed().await.is_err() {
                    return;
                }
                continue;
            }
            let begun = Instant::now();
            if !self.listen(filter, may_have_missed).await {
                return;
            }
            may_have_missed = true;
            if begun.elapsed() > LONGEST_PAUSE {
                pause = FIRST_PAUSE;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Follows one stream to its end; returns false if no other stream should be opened.
    async fn listen(&mut self, filter: SubscriptionFilter, may_have_missed: bool) -> bool {
        match self.open(filter).await {
            Ok(stream) => {
                if may_have_missed {
                    self.tell_all();
                }
                self.follow(stream).await
            }
            Err(error) => {
                tracing::debug!(%error, "The server does not say what changes");
                !is_unknown(&error)
            }
        }
    }

    /// Builds the filter: the lists for which the server announces changes, and the wanted resources.
    fn filter(&mut self) -> SubscriptionFilter {
        let info = self.peer.peer_info();
        let declared = info.as_ref().map(|info| &info.capabilities);
        let mut filter = SubscriptionFilter::builder();
        let says = |list_changed: Option<Option<bool>>| list_changed.flatten() == Some(true);
        if let Some(declared) = declared {
            if says(declared.tools.as_ref().map(|it| it.list_changed)) {
                filter = filter.tools_list_changed();
            }
            if says(declared.prompts.as_ref().map(|it| it.list_changed)) {
                filter = filter.prompts_list_changed();
            }
            if says(declared.resources.as_ref().map(|it| it.list_changed)) {
                filter = filter.resources_list_changed();
            }
        }
        let resources = self.wanted.borrow_and_update();
        if !resources.is_empty() {
            filter = filter.resource_subscriptions(resources.iter());
        }
        filter.build()
    }

    async fn open(&self, filter: SubscriptionFilter) -> Result<Subscription, ServiceError> {
        let opened = tokio::time::timeout(LIMIT, self.peer.listen(filter)).await;
        opened.unwrap_or(Err(ServiceError::Timeout { timeout: LIMIT }))
    }

    /// Passes on notifications until the stream ends; returns false if the listener is no longer wanted.
    async fn follow(&mut self, mut stream: Subscription) -> bool {
        loop {
            match self.hear(&mut stream).await {
                End::Replaced(next) => {
                    // Notifications that arrived before the other stream was open.
                    while let Some(Ok(Some(news))) = stream.next().now_or_never() {
                        self.tell(&news);
                    }
                    stream = *next;
                }
                End::Over => return true,
                End::Unwanted => return false,
            }
        }
    }

    async fn hear(&mut self, stream: &mut Subscription) -> End {
        loop {
            tokio::select! {
                news = stream.next() => match news {
                    Ok(Some(news)) => self.tell(&news),
                    Ok(None) | Err(_) => return End::Over,
                },
                changed = self.wanted.changed() => {
                    if changed.is_err() {
                        return End::Unwanted;
                    }
                    let filter = self.filter();
                    return match self.open(filter).await {
                        Ok(next) => End::Replaced(Box::new(next)),
                        Err(_) => End::Over,
                    };
                }
            }
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "nothing else comes on such a stream, whatever rmcp adds"
    )]
    fn tell(&self, news: &ServerNotification) {
        match news {
            ServerNotification::ToolListChangedNotification(_) => {
                self.handler.changes.send_modify(|count| *count += 1);
            }
            ServerNotification::PromptListChangedNotification(_)
            | ServerNotification::ResourceListChangedNotification(_) => {
                self.handler.offer_changes.send_modify(|count| *count += 1);
            }
            ServerNotification::ResourceUpdatedNotification(updated) => {
                self.handler.resources.changed(&updated.params.uri);
            }
            _ => {}
        }
    }

    /// Reports everything as changed: changes between the end of one stream and the start of the next are not
    /// sent.
    fn tell_all(&self) {
        self.handler.changes.send_modify(|count| *count += 1);
        self.handler.offer_changes.send_modify(|count| *count += 1);
        for uri in self.wanted.borrow().iter() {
            self.handler.resources.changed(uri);
        }
    }
}

/// Returns true if the server does not know the method.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "every other error may pass, whatever rmcp adds"
)]
fn is_unknown(error: &ServiceError) -> bool {
    match error {
        ServiceError::McpError(data) => data.code == ErrorCode::METHOD_NOT_FOUND,
        _ => false,
    }
}
