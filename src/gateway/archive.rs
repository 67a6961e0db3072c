//! Streams the archive of a person: a zip file with a few small files and a document of each of their sessions. It is
//! written piece by piece while it is read, so its size needs neither memory nor disk.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use futures::future::BoxFuture;
use futures::{StreamExt as _, stream};
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipWriter};

use super::GatewayState;
use super::documents::Reader;
use super::error::ApiError;
use super::export::{Document, Form, Format};
use crate::agent::ArchivedSession;
use crate::domain::{Caller, Code, SessionId};

/// The number of packed bytes from which a piece is sent.
const PIECE: usize = 64 * 1024;
/// The wait while too many other documents are being written, and the most such waits of one archive.
const WAIT: Duration = Duration::from_secs(1);
const MAX_WAITS: u32 = 300;

/// A small file of an archive, made when its turn comes.
pub(super) struct File {
    pub(super) name: String,
    pub(super) content: BoxFuture<'static, Result<Bytes, ApiError>>,
}

/// Streams the archive of `owner`, which begins with these files. A file or session that cannot be read is named in the
/// archive with the reason, and the others follow.
pub(super) fn send(
    state: GatewayState,
    owner: Caller,
    reader: Reader,
    files: VecDeque<File>,
) -> Body {
    let archiving = Archiving {
        source: Source { state, owner },
        zip: Some(Zip::new()),
        files,
        queue: VecDeque::new(),
        last: None,
        current: None,
        waits: 0,
        _reader: reader,
    };
    Body::from_stream(stream::try_unfold(archiving, |mut archiving| async move {
        let piece = archiving.next().await?;
        Ok::<_, io::Error>(piece.map(|piece| (piece, archiving)))
    }))
}

/// An archive that is being sent.
struct Archiving {
    source: Source,
    /// `None` once its end was written.
    zip: Option<Zip>,
    /// The small files that are still to be written.
    files: VecDeque<File>,
    /// The next sessions.
    queue: VecDeque<ArchivedSession>,
    /// The last session that was listed.
    last: Option<SessionId>,
    /// The document that is being written.
    current: Option<BodyDataStream>,
    /// The number of times that other documents had to be waited for.
    waits: u32,
    _reader: Reader,
}

/// Where the sessions come from.
struct Source {
    state: GatewayState,
    owner: Caller,
}

impl Archiving {
    /// Returns the next piece of the archive; `None` at its end.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            let Some(zip) = self.zip.take() else {
                return Ok(None);
            };
            let (packed, piece) = self.advance(zip).await?;
            self.zip = packed;
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
    }

    /// Writes a little more. Returns the archive, unless this was its end, and what is to be sent.
    async fn advance(&mut self, zip: Zip) -> io::Result<(Option<Zip>, Bytes)> {
        if let Some(File { name, content }) = self.files.pop_front() {
            let zip = match content.await {
                Ok(content) => self.source.file(zip, name, content).await?,
                Err(error) => self.source.failure(zip, &name, error).await?,
            };
            return Ok((Some(zip), Bytes::new()));
        }
        if let Some(current) = &mut self.current {
            let Some(piece) = current.next().await else {
                self.current = None;
                return Ok((Some(zip), Bytes::new()));
            };
            let piece = piece.map_err(io::Error::other)?;
            let zip = self.source.work(move || zip.write(&piece)).await?;
            let packed = zip.pipe.take(PIECE);
            return Ok((Some(zip), packed));
        }
        if self.queue.is_empty() {
            let archive = self.source.state.sessions.archive();
            let more = archive.sessions(&self.source.owner, self.last.as_ref());
            let more = more.await;
            self.queue = more.map_err(io::Error::other)?.into();
            self.last = self.queue.back().map(|last| last.id().clone());
        }
        let Some(session) = self.queue.pop_front() else {
            let packed = self.source.work(move || zip.finish()).await?;
            return Ok((None, packed));
        };
        let zip = match self.source.open(&session).await {
            Ok(document) => {
                let name = format!("sessions/{}.json", session.id());
                self.current = Some(document.into_data_stream());
                self.source.work(move || zip.begin(&name)).await?
            }
            Err(error) if error.code() == Code::TooManyRequests && self.waits < MAX_WAITS => {
                self.waits += 1;
                self.queue.push_front(session);
                tokio::time::sleep(WAIT).await;
                zip
            }
            Err(error) => {
                let name = format!("sessions/{}", session.id());
                self.source.failure(zip, &name, error).await?
            }
        };
        Ok((Some(zip), Bytes::new()))
    }
}

impl Source {
    /// Writes the document of a session.
    async fn open(&self, session: &ArchivedSession) -> Result<Body, ApiError> {
        let (sessions, documents) = (&self.state.sessions, &self.state.documents);
        let document = Document::new(session.id().clone(), self.state.tenancy.now());
        let fetch = move |after, limit| async move {
            let archive = sessions.archive();
            archive.page(session, after, limit).await
        };
        let form = Form::Export(Format::Json);
        let written = documents.write(document, form, fetch).await?;
        let (sessions, session) = (sessions.clone(), session.clone());
        let content = move |id| {
            let (sessions, session) = (sessions.clone(), session.clone());
            async move {
                let found = sessions.archive().attachment(&session, &id).await?;
                Ok(found.map(|(_, content)| content))
            }
        };
        Ok(documents.send(written, Reader::Archive, content))
    }

    /// Writes a whole file.
    async fn file(&self, zip: Zip, name: String, text: Bytes) -> io::Result<Zip> {
        self.work(move || zip.begin(&name)?.write(&text)).await
    }

    /// Writes the reason for which a file is missing.
    async fn failure(&self, zip: Zip, name: &str, error: ApiError) -> io::Result<Zip> {
        let text = format!("This could not be read: {}\n", error.into_refusal().message);
        self.file(zip, format!("{name}.error.txt"), text.into())
            .await
    }

    /// Does work that keeps a thread busy.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        self.state.documents.pack(work).await
    }
}

/// A zip archive whose bytes are taken away as they are written.
struct Zip {
    /// Large, so it is moved by its box.
    writer: Box<ZipWriter<StreamWriter<Pipe>>>,
    pipe: Pipe,
}

/// Holds the bytes that the writer wrote until they are taken.
#[derive(Debug, Clone, Default)]
struct Pipe(Arc<Mutex<Vec<u8>>>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pipe {
    /// Takes the bytes if there are `least` of them.
    fn take(&self, least: usize) -> Bytes {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() < least {
            return Bytes::new();
        }
        std::mem::take(&mut *held).into()
    }
}

impl Zip {
    fn new() -> Self {
        let pipe = Pipe::default();
        Self {
            writer: Box::new(ZipWriter::new_stream(pipe.clone())),
            pipe,
        }
    }

    fn begin(mut self, name: &str) -> io::Result<Self> {
        // The length of a document is not known before its end, and may exceed 4 GiB with its attachments.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .large_file(true);
        self.writer.start_file(name, options)?;
        Ok(self)
    }

    fn write(mut self, bytes: &[u8]) -> io::Result<Self> {
        self.writer.write_all(bytes)?;
        Ok(self)
    }

    fn finish(self) -> io::Result<Bytes> {
        self.writer.finish()?;
        Ok(self.pipe.take(0))
    }
}
