//! Which calls run, and how each is told to stop.
//!
//! rmcp keeps the answer of a cancelled call to itself, as MCP recommends for servers in general. Here
//! the answer is what tells the gateway that the call is over: that its processes are gone and that it
//! did not, after all, come to its end. So a cancellation is taken off the stream before rmcp sees it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::{
    RoleServer,
    model::{ClientNotification, ClientRequest, JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio_util::sync::CancellationToken;

/// The calls that run.
#[derive(Clone, Default)]
pub(crate) struct Stops(Arc<Mutex<HashMap<RequestId, CancellationToken>>>);

impl Stops {
    /// Resolves when the call is to stop.
    pub(crate) fn of(&self, call: &RequestId) -> CancellationToken {
        self.calls().get(call).cloned().unwrap_or_default()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream from which cancellations go to [`Stops`].
pub(crate) struct Stoppable<T> {
    pub(crate) inner: T,
    pub(crate) stops: Stops,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Stoppable<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        if let Some(call) = answered {
            self.stops.calls().remove(call);
        }
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.inner.receive().await?;
            match &message {
                JsonRpcMessage::Request(request) => {
                    if matches!(request.request, ClientRequest::CallToolRequest(_)) {
                        let stop = CancellationToken::new();
                        self.stops.calls().insert(request.id.clone(), stop);
                    }
                }
                JsonRpcMessage::Notification(told) => {
                    if let ClientNotification::CancelledNotification(told) = &told.notification {
                        if let Some(call) = &told.params.request_id {
                            self.stops.of(call).cancel();
                        }
                        continue;
                    }
                }
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}
