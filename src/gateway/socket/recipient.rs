//! A client that takes the frames of a session: a socket, or the reader of an event stream.

use crate::domain::JournalId;
use crate::gateway::wire::Frame;

/// The client is gone, or takes nothing any more.
pub(super) struct ClientGone;

/// A position in the shown events of a session.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    /// The journal that `seq` belongs to.
    pub(super) journal: &'a JournalId,
    /// The `seq` of the last event that the client has.
    pub(super) seq: u64,
}

/// Takes the frames of a session in order.
pub(super) trait Recipient: Sync {
    /// Hands over a frame, and waits for room. `cursor` is the position of the client once it has taken this
    /// frame; `None` if the position stays, or if more frames of the same event follow.
    fn emit(
        &self,
        frame: &Frame,
        cursor: Option<Cursor<'_>>,
    ) -> impl Future<Output = Result<(), ClientGone>> + Send;

    /// Hands over frames; the client has the position with the last one.
    fn emit_all(
        &self,
        frames: &[Frame],
        cursor: Cursor<'_>,
    ) -> impl Future<Output = Result<(), ClientGone>> + Send {
        async move {
            for (index, frame) in frames.iter().enumerate() {
                let is_last = index + 1 == frames.len();
                self.emit(frame, is_last.then_some(cursor)).await?;
            }
            Ok(())
        }
    }
}
