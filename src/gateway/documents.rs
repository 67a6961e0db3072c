//! Writes documents of whole sessions (exports and shared sessions) on worker threads of their own, and
//! streams them at the reader's speed.
//!
//! A document is written into an unnamed file below the data folder and sent from there, so neither a long
//! session nor a slow reader holds memory or one of the few writer slots. A shared session never changes, so
//! its file is cached for later readers. Each gateway has its own cache: the file can be rebuilt from the
//! journal at any time, which needs no agreement between gateways or kinds of database. The operating system
//! deletes an unnamed file when it is closed or the process ends, so no data of a deleted session remains in
//! one.

use std::collections::HashMap;
use std::fs::File;
use std::future::Future;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::stream;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::error::ApiError;
use super::export::{Document, Form, Sink};
use crate::agent::{AuditTrail, DecisionReader, TranscriptPart};
use crate::domain::{BlobId, Caller, Code, Most, Share, SharedSessionId, Shares, Timestamp};
use crate::jobs::{self, Place, Pool, Watch};
use crate::session::Refusal;
use crate::session::proof::DecisionDocument;

/// The number of documents that are written at the same time: each holds the events of a session in memory.
const WRITERS: usize = 2;
/// The number of documents that may wait to be written.
const WAITING: usize = 32;
/// The number of pieces that are read from files at the same time.
const FETCHERS: usize = 4;
/// The number of events of a session that are fetched at once.
const EVENTS: usize = 100;
/// The number of stored commits that are fetched at once.
const COMMITS: usize = 100;
/// The maximum number of commits in one document.
const MAX_COMMITS: u64 = 1_000_000;
/// The maximum number of events in one document.
const MAX_EVENTS: usize = 1_000_000;
/// The maximum size of a document in bytes, without the content of attachments.
const MAX_BYTES: u64 = 1 << 30;
/// The number of bytes of a document that are sent at once.
const PIECE: usize = 64 * 1024;
/// The maximum number of concurrent readers of one shared session.
const READERS_OF_LINK: usize = 8;
/// The maximum number of concurrent readers of all shared sessions.
const READERS: usize = 128;
/// The maximum number of exports at the same time.
const MAX_EXPORTS: Most = Most {
    all: Some(32),
    per_tenant: Some(12),
    per_user: Some(4),
};
/// The maximum number of cached shared sessions, and of their bytes.
const MAX_KEPT: usize = 64;
const MAX_KEPT_BYTES: u64 = 512 << 20;
/// The time after which a cached document without readers is dropped.
const KEPT_FOR: Duration = Duration::from_mins(10);

/// Writes, caches and sends documents. Clones share the cache.
#[derive(Clone)]
pub struct Documents(Arc<Inner>);

struct Inner {
    /// The folder of the unnamed files.
    dir: PathBuf,
    writers: Pool,
    fetchers: Pool,
    exports: Arc<Shares>,
    readers: Arc<Semaphore>,
    /// Cached shared sessions. The lock is never held across an await.
    kept: Mutex<HashMap<SharedSessionId, CachedDocument>>,
}

/// A cached shared session, with the permits of its readers.
struct CachedDocument {
    written: Arc<OnceCell<Arc<DocumentFile>>>,
    readers: Arc<Semaphore>,
    used_at: Instant,
}

/// A document in its file.
#[derive(Debug)]
pub(super) struct DocumentFile {
    pub(super) title: String,
    file: File,
    parts: Vec<Part>,
    bytes: u64,
}

#[derive(Debug, Clone)]
enum Part {
    /// A range of the file.
    Text {
        at: u64,
        bytes: u64,
    },
    Content(BlobId),
}

/// Counts a reader of a document until the response is dropped.
#[derive(Debug)]
pub(super) enum Reader {
    Export {
        _counted: Share,
    },
    Shared {
        _of_link: OwnedSemaphorePermit,
        _of_all: OwnedSemaphorePermit,
    },
    /// A document in an archive, which counts as one export.
    Archive,
}

impl std::fmt::Debug for Documents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Documents(…)")
    }
}

impl Documents {
    /// Creates unnamed files in `dir`.
    pub fn new(dir: PathBuf) -> Self {
        Self(Arc::new(Inner {
            dir,
            writers: Pool::new("documents", WRITERS).with_queue(WAITING),
            fetchers: Pool::new("pieces of documents", FETCHERS),
            exports: Shares::new(MAX_EXPORTS),
            readers: Arc::new(Semaphore::new(READERS)),
            kept: Mutex::default(),
        }))
    }

    /// Counts an export against the caller's limits; the error says that too many exports are running.
    pub(super) fn begin_export(&self, caller: &Caller) -> Result<Reader, ApiError> {
        match self.0.exports.take(caller.holder(), 1) {
            Ok(share) => Ok(Reader::Export { _counted: share }),
            Err(_) => Err(busy("too many exports run at the same time")),
        }
    }

    /// Writes a document from the parts of a transcript, which are fetched one after the other.
    pub(super) async fn write<Fetching>(
        &self,
        document: Document,
        form: Form,
        fetch: impl Fn(u64, usize) -> Fetching,
    ) -> Result<Arc<DocumentFile>, ApiError>
    where
        Fetching: Future<Output = Result<TranscriptPart, Refusal>>,
    {
        let mut place = self.0.writers.place().await.map_err(not_now)?;
        let (mut document, mut after, mut events) = (document, 0, 0);
        loop {
            let part = fetch(after, EVENTS).await?;
            let reading = place.run_watched(move |_| {
                let read = part.read().map(|read| add(&mut document, read));
                (document, read)
            });
            let read;
            (place, (document, read)) = reading.await.map_err(not_now)?;
            let Some((last, count)) = read? else { break };
            (after, events) = (last, events + count);
            if events > MAX_EVENTS {
                return Err(too_long());
            }
        }
        self.spool(place, move |spool| {
            document.write(form, spool)?;
            Ok(document.title().to_owned())
        })
        .await
    }

    /// Writes the signed document of a session's decisions.
    pub(super) async fn prove(
        &self,
        mut document: DecisionDocument,
        decisions: &DecisionReader,
        (audit, now): (AuditTrail, Timestamp),
    ) -> Result<Arc<DocumentFile>, ApiError> {
        let mut place = self.0.writers.place().await.map_err(not_now)?;
        let mut has_more = true;
        while has_more {
            let part = decisions.part(document.through(), COMMITS).await?;
            let adding = place.run_watched(move |_| {
                let added = part.add_to(&mut document);
                (document, added)
            });
            let added;
            (place, (document, added)) = adding.await.map_err(not_now)?;
            has_more = added?;
            if document.through() > MAX_COMMITS {
                return Err(too_long());
            }
        }
        self.spool(place, move |spool| {
            let key = audit.key();
            let public = key.public().to_string();
            let signed = document.signed((&public, now), |document| key.sign(document))?;
            spool.text(&String::from_utf8_lossy(&signed))?;
            Ok(String::new())
        })
        .await
    }

    /// Writes a document into its file; `write` returns its title.
    async fn spool(
        &self,
        place: Place,
        write: impl FnOnce(&mut Spool) -> io::Result<String> + Send + 'static,
    ) -> Result<Arc<DocumentFile>, ApiError> {
        let dir = self.0.dir.clone();
        let writing = place.run_watched(move |watch| {
            let mut spool = Spool::new(tempfile::tempfile_in(dir)?, watch.clone());
            let title = write(&mut spool)?;
            spool.finish(title)
        });
        let (_, written) = writing.await.map_err(not_now)?;
        match written {
            Ok(written) => Ok(Arc::new(written)),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(too_long()),
            Err(error) => {
                tracing::error!(%error, "A document cannot be written below the data folder");
                let text =
                    "the document cannot be written now; the operator finds the cause in the log";
                Err(ApiError::new(Code::Internal, text))
            }
        }
    }

    /// Returns a shared session's document; the first reader writes it.
    pub(super) async fn shared<Writing>(
        &self,
        id: &SharedSessionId,
        write: impl FnOnce() -> Writing,
    ) -> Result<(Arc<DocumentFile>, Reader), ApiError>
    where
        Writing: Future<Output = Result<Arc<DocumentFile>, ApiError>>,
    {
        let full = |_| busy("too many people read this at the same time");
        let (cell, readers) = self.kept(id);
        let reader = Reader::Shared {
            _of_link: readers.try_acquire_owned().map_err(full)?,
            _of_all: Arc::clone(&self.0.readers)
                .try_acquire_owned()
                .map_err(full)?,
        };
        // Readers that arrive meanwhile wait for the same write.
        let written = Arc::clone(cell.get_or_try_init(write).await?);
        self.make_room(id);
        Ok((written, reader))
    }

    /// Packs a piece of an archive on a worker thread.
    pub(super) async fn pack<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let packing = self.0.fetchers.run(work);
        packing.await.map_err(io::Error::other)?
    }

    fn kept(&self, id: &SharedSessionId) -> (Arc<OnceCell<Arc<DocumentFile>>>, Arc<Semaphore>) {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        kept.retain(|_, one| one.is_read() || now - one.used_at < KEPT_FOR);
        let one = kept.entry(id.clone()).or_insert_with(|| CachedDocument {
            written: Arc::default(),
            readers: Arc::new(Semaphore::new(READERS_OF_LINK)),
            used_at: now,
        });
        one.used_at = now;
        (Arc::clone(&one.written), Arc::clone(&one.readers))
    }

    /// Drops the least recently used documents without readers until the cache is within its limits. Never
    /// drops `but`.
    fn make_room(&self, but: &SharedSessionId) {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let bytes: u64 = kept.values().map(CachedDocument::bytes).sum();
            if kept.len() <= MAX_KEPT && bytes <= MAX_KEPT_BYTES {
                return;
            }
            let idle = kept.iter().filter(|(id, one)| *id != but && !one.is_read());
            let oldest = idle.min_by_key(|(_, one)| one.used_at);
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else {
                return;
            };
            kept.remove(&oldest);
        }
    }

    /// Drops the cached document of a share.
    pub(super) fn forget(&self, id: &SharedSessionId) {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(id);
    }

    /// Streams a document as the body of a response. The contents of attachments are fetched one after the
    /// other; a content that cannot be read aborts the response, so the client sees a failed download.
    pub(super) fn send<Fetching>(
        &self,
        written: Arc<DocumentFile>,
        reader: Reader,
        content: impl Fn(BlobId) -> Fetching + Send + 'static,
    ) -> Body
    where
        Fetching: Future<Output = Result<Option<Vec<u8>>, Refusal>> + Send + 'static,
    {
        let fetchers = self.0.fetchers.clone();
        let sending = Sending {
            written,
            _reader: reader,
            part: 0,
            sent: 0,
        };
        Body::from_stream(stream::try_unfold(
            (sending, content),
            move |(mut sending, content)| {
                let fetchers = fetchers.clone();
                async move {
                    let Some(part) = sending.next() else {
                        return Ok(None);
                    };
                    let piece = match part {
                        Part::Text { at, bytes } => {
                            let written = Arc::clone(&sending.written);
                            let fetching = fetchers.run(move || read(&written.file, at, bytes));
                            fetching.await.map_err(io::Error::other)??
                        }
                        Part::Content(id) => {
                            let found = content(id).await;
                            let found =
                                found.map_err(|refusal| io::Error::other(refusal.message))?;
                            let found = found.unwrap_or_default();
                            let encoding = fetchers.run(move || STANDARD.encode(found));
                            Bytes::from(encoding.await.map_err(io::Error::other)?)
                        }
                    };
                    Ok::<_, io::Error>(Some((piece, (sending, content))))
                }
            },
        ))
    }
}

impl CachedDocument {
    fn is_read(&self) -> bool {
        self.readers.available_permits() < READERS_OF_LINK
    }

    fn bytes(&self) -> u64 {
        self.written.get().map_or(0, |written| written.bytes)
    }
}

/// Adds events to the document, and returns the `seq` of the last one and their number, or `None` if there
/// are no events.
fn add(document: &mut Document, read: Vec<crate::agent::ShownEvent>) -> Option<(u64, usize)> {
    let (last, count) = (read.last()?.seq, read.len());
    for event in read {
        document.push(event);
    }
    Some((last, count))
}

fn read(file: &File, at: u64, bytes: u64) -> io::Result<Bytes> {
    let mut piece = vec![0; usize::try_from(bytes).unwrap_or(PIECE)];
    file.read_exact_at(&mut piece, at)?;
    Ok(piece.into())
}

fn not_now(error: jobs::Error) -> ApiError {
    match error {
        jobs::Error::Full(_) => busy("too many documents are being written at the same time"),
        jobs::Error::Broken(_) => ApiError::new(Code::Internal, "the document cannot be written"),
    }
}

fn busy(text: &str) -> ApiError {
    ApiError::new(
        Code::TooManyRequests,
        format!("{text}; try again in a moment"),
    )
}

fn too_long() -> ApiError {
    let text = "the session is too long for one document; read it in parts by `GET \
                /api/sessions/{id}/events`";
    ApiError::new(Code::TooLarge, text)
}

/// Writes a document into its file.
struct Spool {
    file: BufWriter<File>,
    parts: Vec<Part>,
    bytes: u64,
    watch: Watch,
}

impl Spool {
    fn new(file: File, watch: Watch) -> Self {
        Self {
            file: BufWriter::with_capacity(PIECE, file),
            parts: Vec::new(),
            bytes: 0,
            watch,
        }
    }

    fn finish(self, title: String) -> io::Result<DocumentFile> {
        let file = self.file.into_inner().map_err(io::Error::from)?;
        Ok(DocumentFile {
            title,
            file,
            parts: self.parts,
            bytes: self.bytes,
        })
    }
}

impl Sink for Spool {
    fn text(&mut self, text: &str) -> io::Result<()> {
        if self.watch.is_abandoned() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let more = text.len() as u64;
        if self.bytes + more > MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.file.write_all(text.as_bytes())?;
        match self.parts.last_mut() {
            Some(Part::Text { bytes, .. }) => *bytes += more,
            Some(Part::Content(_)) | None => self.parts.push(Part::Text {
                at: self.bytes,
                bytes: more,
            }),
        }
        self.bytes += more;
        Ok(())
    }

    fn content(&mut self, id: &BlobId) -> io::Result<()> {
        self.parts.push(Part::Content(id.clone()));
        Ok(())
    }
}

/// A document that is being sent to a reader.
struct Sending {
    written: Arc<DocumentFile>,
    _reader: Reader,
    /// The number of parts that were sent.
    part: usize,
    /// The number of bytes of the current part that were sent.
    sent: u64,
}

impl Sending {
    /// Returns the next piece to send: the content of an attachment, or up to [`PIECE`] bytes of text.
    fn next(&mut self) -> Option<Part> {
        let part = self.written.parts.get(self.part)?;
        let Part::Text { at, bytes } = part else {
            self.part += 1;
            return Some(part.clone());
        };
        let (at, left) = (at + self.sent, bytes - self.sent);
        let now = left.min(PIECE as u64);
        if now == left {
            self.part += 1;
            self.sent = 0;
        } else {
            self.sent += now;
        }
        Some(Part::Text { at, bytes: now })
    }
}
