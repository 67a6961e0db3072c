//! Stores the attachments of sessions, and reads them for models and people.

mod contents;
mod intake;
mod reader;

pub(in crate::agent) use reader::{
    AttachmentPaths, Reader, Sight, file_name, is_file_name, placed,
};

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use tokio::sync::Semaphore;

use self::contents::Cache;
use super::journal::projection::Projection;
use super::mailbox::store_away;
use crate::domain::{
    Attachment, BlobId, Code, Holder, Most, ResourceRef, SessionId, SessionKey, Share, Shares,
    TenantId, Timestamp,
};
use crate::jobs::Pool;
use crate::session::Refusal;
use crate::store::Records;
use crate::store::records::{AttachedTo, PutOutcome};

/// The most attachments of one message.
pub(in crate::agent) const MAX_OF_MESSAGE: usize = 10;
/// Limits on uploads under way: each holds a whole file in memory.
const MAX_UPLOADS: Most = Most {
    all: Some(16),
    per_tenant: Some(8),
    per_user: Some(4),
};
/// Limits on requests for workspace files under way: each holds a part of a file in memory.
const MAX_FILE_REQUESTS: Most = Most {
    all: Some(64),
    per_tenant: Some(24),
    per_user: Some(8),
};
/// The most files that are decoded at the same time in the whole gateway.
const DECODERS: usize = 2;
/// Pictures with more pixels than this are decoded one at a time: each pixel takes four bytes, and twice that
/// while the picture is turned upright.
const LARGE_PICTURE: u64 = 16_000_000;

/// The size limits of attachments, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct AttachmentLimits {
    /// One file as it is sent.
    pub file: u64,
    /// All attachments of one session.
    pub session: u64,
    /// One file that a person uploads into a workspace.
    pub upload: u64,
}

/// A file or picture that an MCP server returned.
#[derive(Debug)]
pub(in crate::agent) struct ReturnedFile {
    /// The file name; may be empty.
    pub(in crate::agent) name: String,
    /// True if the server sent it as an image.
    pub(in crate::agent) is_image: bool,
    pub(in crate::agent) bytes: Vec<u8>,
    /// The resource that it comes from.
    pub(in crate::agent) source: Option<ResourceRef>,
}

/// The attachments of sessions. Cheap to clone.
#[derive(Clone)]
pub struct Attachments(Arc<Shared>);

struct Shared {
    records: Records,
    /// Writes the rows of sessions; unset until the sessions are started.
    rows: OnceLock<Projection>,
    limits: AttachmentLimits,
    uploads: Arc<Shares>,
    file_requests: Arc<Shares>,
    decoders: Pool,
    /// Decodes large pictures one at a time, because each can take hundreds of megabytes.
    large: Pool,
    /// One semaphore for each tenant that decodes. The lock is never held across an await.
    turns: Mutex<HashMap<TenantId, Weak<Semaphore>>>,
    cache: Cache,
}

impl fmt::Debug for Attachments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attachments(…)")
    }
}

impl Attachments {
    /// Stores attachments in `records`.
    pub fn new(records: Records, limits: AttachmentLimits) -> Self {
        Self(Arc::new(Shared {
            records,
            rows: OnceLock::new(),
            limits,
            uploads: Shares::new(MAX_UPLOADS),
            file_requests: Shares::new(MAX_FILE_REQUESTS),
            decoders: Pool::new("pictures", DECODERS),
            large: Pool::new("large pictures", 1),
            turns: Mutex::default(),
            cache: Cache::default(),
        }))
    }

    /// Tells who writes the rows of sessions. The first attachment of a new session waits for its row.
    pub(in crate::agent) fn await_rows_of(&self, rows: Projection) {
        // An error means that it was told before.
        let _ = self.0.rows.set(rows);
    }

    /// Prepares a file and stores it with a session. The sender's `counted` share is held until the file is
    /// decoded, even if the sender hangs up before.
    pub(in crate::agent) async fn keep(
        &self,
        to: AttachedTo<'_>,
        name: &str,
        bytes: Vec<u8>,
        counted: Option<Share>,
    ) -> Result<Attachment, Refusal> {
        let prepared = self.prepare(&to.key().tenant, name, bytes, counted, intake::prepare);
        let (attachment, content) = prepared.await?;
        self.put(to, attachment, content).await
    }

    /// Prepares a file without storing it.
    pub(in crate::agent) async fn look_at(
        &self,
        tenant: &TenantId,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<(Attachment, Vec<u8>), Refusal> {
        self.prepare(tenant, name, bytes, None, intake::prepare)
            .await
    }

    async fn put(
        &self,
        to: AttachedTo<'_>,
        attachment: Attachment,
        content: Vec<u8>,
    ) -> Result<Attachment, Refusal> {
        let key = to.key();
        let now = Timestamp(jiff::Timestamp::now().as_millisecond());
        let limit = self.0.limits.session;
        let records = self.0.records.attachments();
        let put = async |content| {
            let put = records.put(to, &attachment, content, limit, now).await;
            put.map_err(|error| away(key, &error))
        };
        let mut outcome = put(content.clone()).await?;
        if let (PutOutcome::NoSession, Some(rows)) = (outcome, self.0.rows.get()) {
            // A session that was just begun exists before its row does.
            rows.written().await;
            outcome = put(content).await?;
        }
        match outcome {
            PutOutcome::Stored => return Ok(attachment),
            PutOutcome::NoSession => {
                let text = "the session is not stored: it was deleted, or the database is behind";
                return Err(Refusal::new(Code::NotFound, text));
            }
            PutOutcome::Full => {}
        }
        let most = self.0.limits.session / (1024 * 1024);
        Err(Refusal::new(
            Code::TooLarge,
            format!(
                "the attachments of one session may have {most} MiB together; start a new session, \
                 or have the operator raise `runtime.limits.attachments_mb_per_session`"
            ),
        ))
    }

    /// Does the same for a file from an MCP server, which may also be a sound or any other kind. Refuses a
    /// file that was sent as an image but is not one.
    pub(in crate::agent) async fn keep_of_server(
        &self,
        key: &SessionKey,
        given: ReturnedFile,
    ) -> Result<Attachment, Refusal> {
        if given.is_image && !intake::is_image(&given.bytes) {
            let text = "its bytes are no image of a kind that is known here";
            return Err(Refusal::new(Code::InvalidArguments, text));
        }
        let prepare = intake::prepare_of_server;
        let prepared = self.prepare(&key.tenant, &given.name, given.bytes, None, prepare);
        let (mut attachment, content) = prepared.await?;
        attachment.source = given.source.map(Box::new);
        self.put(AttachedTo::Stored(key), attachment, content).await
    }

    /// Decodes a file outside of the session's task: at most two files at a time, and one per tenant, so that
    /// no tenant takes the processors of others.
    async fn prepare(
        &self,
        tenant: &TenantId,
        name: &str,
        bytes: Vec<u8>,
        counted: Option<Share>,
        take_in: fn(&str, Vec<u8>) -> Result<intake::PreparedAttachment, intake::AttachmentError>,
    ) -> Result<intake::PreparedAttachment, Refusal> {
        let turn = self.turn(tenant).acquire_owned().await;
        let turn = turn.map_err(|_| super::mailbox::stopping())?;
        let name = name.to_owned();
        // Hold the tenant's semaphore and the sender's share until the work is done.
        let held = (turn, counted);
        let broken = |error| {
            tracing::error!(%error, "A file could not be taken in");
            Refusal::new(Code::Internal, "the file could not be taken in")
        };
        let looking = self
            .0
            .decoders
            .run(move || (intake::pixels(&bytes), bytes, held));
        let (pixels, bytes, held) = looking.await.map_err(broken)?;
        let pool = if pixels > LARGE_PICTURE {
            &self.0.large
        } else {
            &self.0.decoders
        };
        let prepared = pool.run(move || {
            let _held = held;
            take_in(&name, bytes)
        });
        let prepared = prepared.await.map_err(broken)?;
        prepared.map_err(|unfit| {
            tracing::debug!(?unfit, "A file is refused");
            let code = match unfit {
                intake::AttachmentError::TooManyPixels(_) | intake::AttachmentError::TooLong => {
                    Code::TooLarge
                }
                intake::AttachmentError::Empty
                | intake::AttachmentError::Kind
                | intake::AttachmentError::Unreadable(_)
                | intake::AttachmentError::Unwritable(_) => Code::InvalidArguments,
            };
            Refusal::of_field(code, "file", unfit.to_string())
        })
    }

    fn turn(&self, tenant: &TenantId) -> Arc<Semaphore> {
        let mut turns = self.0.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(tenant).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::new(Semaphore::new(1));
        turns.insert(tenant.clone(), Arc::downgrade(&turn));
        turn
    }

    /// Finds the attachments that a message names, in its order. Only those of its own session are found.
    pub(in crate::agent) async fn find(
        &self,
        key: &SessionKey,
        ids: &[BlobId],
    ) -> Result<Vec<Attachment>, Refusal> {
        let wrong = |text: String| Refusal::of_field(Code::InvalidArguments, "attachments", text);
        if ids.len() > MAX_OF_MESSAGE {
            let text = format!("a message may have {MAX_OF_MESSAGE} attachments");
            return Err(wrong(text));
        }
        let mut found: Vec<Attachment> = Vec::with_capacity(ids.len());
        for id in ids {
            if found.iter().any(|earlier| earlier.id == *id) {
                continue;
            }
            let attachment = self.0.records.attachments().find(key, id).await;
            let attachment = attachment.map_err(|error| away(key, &error))?;
            let missing = || wrong(format!("this session has no attachment `{id}`"));
            found.push(attachment.ok_or_else(missing)?);
        }
        Ok(found)
    }

    /// Gives a session that is about to be written the attachments of another session of its tenant.
    pub(in crate::agent) async fn share(
        &self,
        from: &SessionKey,
        to: &SessionId,
        at: Timestamp,
    ) -> Result<(), Refusal> {
        let shared = self.0.records.attachments().share(from, to, at).await;
        shared.map_err(|error| away(from, &error))
    }

    /// Returns an attachment with its content, for people; `None` if the session does not have it.
    pub(in crate::agent) async fn read(
        &self,
        key: &SessionKey,
        id: &BlobId,
    ) -> Result<Option<(Attachment, Vec<u8>)>, Refusal> {
        let records = self.0.records.attachments();
        let read = async {
            let attachment = records.find(key, id).await?;
            let content = records.content(key, id).await?;
            Ok(attachment.zip(content))
        };
        read.await.map_err(|error| away(key, &error))
    }

    /// The size limits.
    pub(in crate::agent) fn limits(&self) -> AttachmentLimits {
        self.0.limits
    }

    /// Counts a request for workspace files against the caller, for as long as the returned share lives.
    pub(in crate::agent) fn use_files(&self, holder: Holder) -> Result<Share, Refusal> {
        self.0.file_requests.take(holder, 1).map_err(|_| {
            let text = "too many files are being read or written at the same time; try again in a \
                        moment";
            Refusal::new(Code::TooManyRequests, text)
        })
    }

    /// Counts an upload against its sender, for as long as the returned share lives.
    pub(in crate::agent) fn begin(&self, holder: Holder) -> Result<Share, Refusal> {
        self.0.uploads.take(holder, 1).map_err(|_| {
            let text = "too many files are being attached at the same time; try again in a moment";
            Refusal::new(Code::TooManyRequests, text)
        })
    }
}

fn away(key: &SessionKey, error: &crate::store::Error) -> Refusal {
    tracing::warn!(session.id = %key.session, ?error, "Attachments are out of reach");
    store_away()
}
