//! Writes the files of a bundle into its volume: this gateway sends them as a tar archive to a shell in the
//! sandbox of the installation, so nothing in that sandbox parses the uploaded file.

use std::io::{self, Write};
use std::sync::LazyLock;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, oneshot};

use super::archive::Archive;
use super::facts::BundleFacts;
use super::runtime;
use sepal_core::domain::{InstallProblem, Scope};
use sepal_jobs::Pool;
use sepal_mcp::config::EntryProblem;
use sepal_store::{self as store, Records};

/// Reports the version of the runtime, then reads exactly as many bytes as it is told, because stdin stays
/// open.
const UNPACK: &str = r#"set -e
if [ -n "$1" ]; then
  command -v "$1" >/dev/null || exit 127
  printf '{"runtime":"%s"}\n' "$("$1" --version </dev/null 2>&1)"
fi
printf '{"phase":"installing"}\n'
mkdir /workspace/bundle
head -c "$2" | tar --extract --file=- --directory=/workspace/bundle --no-same-owner --preserve-permissions"#;
/// The number of pieces of the archive that wait for the sandbox.
const PIECES: usize = 8;
/// The size of a piece in bytes.
const PIECE: usize = 64 << 10;

/// Limits the bundles that are unpacked at the same time: each lasts as long as its sandbox reads.
static UNPACKERS: LazyLock<Pool> = LazyLock::new(|| Pool::new("unpacking of bundles", 16));

/// A stored bundle.
pub(crate) struct KeptBundle {
    pub facts: BundleFacts,
    file: Vec<u8>,
}

/// The files of a bundle, sent into a sandbox.
pub(crate) struct Unpacking {
    /// The size of the archive in bytes.
    pub bytes: u64,
    /// The pieces of the tar archive.
    pub archive: mpsc::Receiver<Bytes>,
}

/// Returns a bundle of a tenant; `None` if its file is not stored, or does not match the hash.
pub(crate) async fn kept(
    records: &Records,
    scope: &Scope,
    sha256: &str,
) -> Result<Option<KeptBundle>, store::Error> {
    let Scope::Tenant(tenant) = scope else {
        return Ok(None);
    };
    let Some(facts) = kept_facts(records, scope, sha256).await? else {
        return Ok(None);
    };
    let file = records.mcp_bundles().content(tenant, sha256).await?;
    let file = file.filter(|file| hex::encode(Sha256::digest(file)) == sha256);
    Ok(file.map(|file| KeptBundle { facts, file }))
}

/// Returns the facts of a stored bundle.
pub(crate) async fn kept_facts(
    records: &Records,
    scope: &Scope,
    sha256: &str,
) -> Result<Option<BundleFacts>, store::Error> {
    let Scope::Tenant(tenant) = scope else {
        return Ok(None);
    };
    let row = records.mcp_bundles().find(tenant, sha256).await?;
    Ok(row.and_then(|row| serde_json::from_str(&row.facts).ok()))
}

impl KeptBundle {
    /// Begins to unpack the bundle, to at most `most` bytes.
    pub(crate) async fn unpack(self, most: u64) -> Result<Unpacking, String> {
        let (tell, told) = oneshot::channel();
        let (pieces, archive) = mpsc::channel(PIECES);
        let Self { facts, file } = self;
        let place = UNPACKERS.place().await.map_err(|error| error.to_string())?;
        place.start(move || pour(&file, &facts, most, tell, pieces));
        let bytes = told
            .await
            .map_err(|_| "the bundle could not be read".to_owned())?;
        Ok(Unpacking {
            bytes: bytes?,
            archive,
        })
    }
}

/// Returns the command that unpacks an archive of `bytes` bytes, for a bundle that contains everything it
/// needs.
pub(crate) fn command(facts: &BundleFacts, bytes: u64) -> Vec<String> {
    let program = runtime::program(&facts.kind).unwrap_or_default();
    let bytes = bytes.to_string();
    let words = ["/bin/sh", "-c", UNPACK, "unpack", program, &bytes];
    words.map(str::to_owned).to_vec()
}

/// Returns the problem if the sandboxes' runtime has not the version that the bundle requires; `None` if the
/// version is unknown.
pub(crate) fn runtime_problem(
    facts: &BundleFacts,
    has: Option<&str>,
) -> Option<(InstallProblem, String)> {
    let (wanted, has) = (facts.runtime.as_deref()?, has?);
    (!runtime::fits(wanted, has)).then(|| {
        let text = format!(
            "the bundle runs with {} {wanted}, and the sandboxes have {has}",
            facts.kind
        );
        (InstallProblem::NeedsNewer, text)
    })
}

/// Sends the size of the archive, then the archive for as long as somebody receives it.
fn pour(
    file: &[u8],
    facts: &BundleFacts,
    most: u64,
    tell: oneshot::Sender<Result<u64, String>>,
    pieces: mpsc::Sender<Bytes>,
) {
    let named = |problems: Vec<EntryProblem>| {
        let texts: Vec<String> = problems.into_iter().map(|it| it.message).collect();
        texts.join("; ")
    };
    let mut archive = match Archive::read(file, most).map_err(named) {
        Ok(archive) => archive,
        Err(text) => return drop(tell.send(Err(text))),
    };
    let bytes = archive.tar_bytes(&facts.entry_point);
    let is_told = tell.send(bytes.map_err(|error| error.to_string()));
    if is_told.is_err() {
        return;
    }
    let to = io::BufWriter::with_capacity(PIECE, Pieces(pieces));
    if let Err(error) = archive.write_tar(to, &facts.entry_point) {
        // The receiver reports why it ended.
        tracing::debug!(%error, "A bundle was not unpacked to its end");
    }
}

/// A writer that sends its bytes to a channel.
struct Pieces(mpsc::Sender<Bytes>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = Bytes::copy_from_slice(bytes);
        let sent = self.0.blocking_send(piece);
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
