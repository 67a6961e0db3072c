//! Packs a workspace into a tar archive, and unpacks such an archive into a new workspace, with any runtime.
//!
//! A model's commands wrote what is in a workspace, so this process neither opens the workspace nor reads the
//! archive: `tar` does both, in a short-lived sandbox without a network that sees this workspace alone, and
//! this process forwards bytes. The sandbox ends its answer with a random mark, because the end of a stream
//! alone does not tell a complete archive from a broken connection.

use std::{collections::BTreeMap, io};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
};

use super::workspace::trim;
use super::{Access, Bounds, Error, Launch, Packages, Program, ProgramEnd, Running, Runtime};
use sepal_core::domain::SandboxId;

/// Packs what follows; without the options that only a copy or only an archive needs.
pub(crate) const PACK: &str =
    "tar --create --file=- --directory=/workspace --sparse --warning=no-file-ignored";
/// Unpacks its standard input.
pub(crate) const UNPACK: &str =
    "tar --extract --file=- --directory=/workspace --preserve-permissions";

/// Names the entries that even their owner may not read, and packs the others. Changes of files while they
/// are read are expected: programs of the session may run.
const TOLERANT: &str = "--ignore-failed-read --warning=no-file-changed --warning=no-file-removed \
                        --warning=no-file-shrank";
/// Unpacks, counts the bytes, because tar takes an archive that ends between two files for a whole one, and waits
/// until all files are on the disk.
const UNPACK_ALL: &str = r#"set -o pipefail
count=$({ { tee /proc/self/fd/4 | wc -c >&3; } 4>&1 | UNPACK; } 3>&1) || exit
[ "$count" -eq "$1" ] && sync -f /workspace && printf %s "$2""#;
/// The name of the packing program, in the place of a server's name.
const PACKER: &str = "sepal-backup";
/// The name of the unpacking program.
const UNPACKER: &str = "sepal-restore";
/// Bytes that are forwarded at once.
const BUFFER_BYTES: usize = 64 << 10;
/// The most names of unreadable entries that are kept.
const MAX_UNREADABLE: usize = 16;

/// The reason that a workspace was not packed or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// No sandbox could be started, so other workspaces would fail too.
    #[error(transparent)]
    Start(#[from] Error),
    /// The file of the archive cannot be read or written here.
    #[error("the archive's file cannot be read or written")]
    File(#[source] io::Error),
    /// The workspace is larger than its limit in bytes.
    #[error("it is larger than its limit of {} MB (`sandbox.workspace_mb`)", .0 >> 20)]
    TooLarge(u64),
    /// The sandbox ended before the work was complete, with these last words.
    #[error("its sandbox did not complete it: {0}")]
    Incomplete(String),
}

/// A workspace that was packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedWorkspace {
    /// The size of the archive.
    pub bytes: u64,
    /// Reports about entries that the workspace's own user may not read, and that are not in the archive; the
    /// first few.
    pub unreadable: Vec<String>,
}

/// Writes the current state of a workspace into `archive`; programs in the workspace may go on. The archive
/// holds at most twice as many bytes as the limit of the workspace, because names and padding count too.
pub async fn pack(
    runtime: &dyn Runtime,
    sandbox: &SandboxId,
    bounds: Bounds,
    archive: &mut (impl AsyncWrite + Send + Unpin),
) -> Result<PackedWorkspace, ArchiveError> {
    let mark = mark();
    // tar exits with 1 if a file changed while it was read.
    let script = format!("{PACK} {TOLERANT} .; [ $? -le 1 ] && printf %s \"$1\"");
    let words = ["bash", "-c", &script, PACKER, &mark];
    let launch = launch(sandbox, PACKER, Access::ReadOnly, bounds, &words);
    let Running {
        stdin,
        mut stdout,
        stderr,
        life,
        ..
    } = runtime.start(launch).await?;
    drop(stdin);
    let limit = trim::ceiling(bounds.workspace_bytes);
    let received = match receive(&mut stdout, archive, limit, mark.as_bytes()).await {
        Ok(received) => received,
        Err(ReceiveError::TooLarge) => {
            life.kill().await;
            return Err(ArchiveError::TooLarge(bounds.workspace_bytes));
        }
        Err(ReceiveError::File(error)) => {
            life.kill().await;
            return Err(ArchiveError::File(error));
        }
    };
    let end = life.ended().await;
    let said = lines(stderr).await;
    match received {
        Some(bytes) => Ok(PackedWorkspace {
            bytes,
            unreadable: said,
        }),
        None => Err(incomplete(said, end)),
    }
}

/// Unpacks the `bytes` of `archive` into a workspace, which should be new. Returns once everything is on the
/// disk; after an error the workspace holds a part of the files, and should be removed.
pub async fn unpack(
    runtime: &dyn Runtime,
    sandbox: &SandboxId,
    bounds: Bounds,
    archive: &mut (impl AsyncRead + Send + Unpin),
    bytes: u64,
) -> Result<(), ArchiveError> {
    let (mark, length) = (mark(), bytes.to_string());
    let script = UNPACK_ALL.replace("UNPACK", UNPACK);
    let words = ["bash", "-c", &script, UNPACKER, &length, &mark];
    let launch = launch(sandbox, UNPACKER, Access::ReadWrite, bounds, &words);
    let Running {
        mut stdin,
        stdout,
        stderr,
        life,
        ..
    } = runtime.start(launch).await?;
    let send = async move {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let read = archive.read(&mut buffer).await?;
            let piece = buffer.get(..read).unwrap_or_default();
            // A sandbox that has ended says why by itself.
            if piece.is_empty() || stdin.write_all(piece).await.is_err() {
                break;
            }
        }
        let _ = stdin.shutdown().await;
        Ok(())
    };
    let hear = async {
        let mut answer = String::new();
        let mut stdout = stdout.take(mark.len() as u64 + 1);
        // An answer that is no text is not the mark either.
        let _ = stdout.read_to_string(&mut answer).await;
        answer
    };
    let (forwarded, answer) = tokio::join!(send, hear);
    let end = life.ended().await;
    forwarded.map_err(ArchiveError::File)?;
    if answer == mark {
        return Ok(());
    }
    if matches!(end, ProgramEnd::OverWorkspace(_)) {
        return Err(ArchiveError::TooLarge(bounds.workspace_bytes));
    }
    Err(incomplete(lines(stderr).await, end))
}

/// Returns a text that no file of a workspace can hold by chance or by intent.
fn mark() -> String {
    format!("{:032x}", rand::random::<u128>())
}

fn launch(
    sandbox: &SandboxId,
    name: &str,
    workspace: Access,
    bounds: Bounds,
    words: &[&str],
) -> Launch {
    let words = words.iter().map(|word| (*word).to_owned());
    Launch {
        sandbox: sandbox.clone(),
        packages: Packages::None,
        holder: None,
        server: name.to_owned(),
        program: Program::Command(words.collect()),
        environment: BTreeMap::new(),
        workspace,
        egress: None,
        bounds,
    }
}

/// The reason that [`receive`] stopped.
#[derive(Debug)]
enum ReceiveError {
    TooLarge,
    File(io::Error),
}

/// Forwards everything but the mark at the end, and returns the number of bytes; `None` if the mark is missing,
/// so that the archive is incomplete.
async fn receive(
    stdout: &mut (impl AsyncRead + Send + Unpin),
    archive: &mut (impl AsyncWrite + Send + Unpin),
    limit: u64,
    mark: &[u8],
) -> Result<Option<u64>, ReceiveError> {
    let (mut buffer, mut held) = (vec![0; BUFFER_BYTES], Vec::new());
    let mut bytes = 0_u64;
    loop {
        // A stream that breaks off has no mark.
        let read = stdout.read(&mut buffer).await.unwrap_or(0);
        if read == 0 {
            archive.flush().await.map_err(ReceiveError::File)?;
            return Ok((held == mark).then_some(bytes));
        }
        held.extend_from_slice(buffer.get(..read).unwrap_or_default());
        let end = held.split_off(held.len().saturating_sub(mark.len()));
        bytes += held.len() as u64;
        if bytes > limit {
            return Err(ReceiveError::TooLarge);
        }
        archive.write_all(&held).await.map_err(ReceiveError::File)?;
        held = end;
    }
}

/// Returns the first lines of a sandbox that has ended, without characters that a terminal obeys.
async fn lines(mut stderr: mpsc::Receiver<String>) -> Vec<String> {
    let mut said = Vec::new();
    while let Some(line) = stderr.recv().await {
        if said.len() < MAX_UNREADABLE && !line.is_empty() {
            said.push(line.replace(char::is_control, "?"));
        }
    }
    said
}

fn incomplete(said: Vec<String>, end: ProgramEnd) -> ArchiveError {
    let words = said.into_iter().next();
    ArchiveError::Incomplete(words.unwrap_or_else(|| end.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &[u8] = b"0123456789abcdef";

    async fn received(said: &[u8], limit: u64) -> (Result<Option<u64>, &'static str>, Vec<u8>) {
        let mut archive = Vec::new();
        let received = receive(&mut &*said, &mut archive, limit, MARK).await;
        let received = received.map_err(|error| match error {
            ReceiveError::TooLarge => "too large",
            ReceiveError::File(_) => "file",
        });
        (received, archive)
    }

    #[tokio::test]
    async fn an_archive_is_complete_only_with_the_mark_at_its_end() {
        let large = b"x".repeat(3 * BUFFER_BYTES);
        for content in [b"".as_slice(), b"tar", MARK, &large] {
            let size = content.len() as u64;
            let whole = [content, MARK].concat();
            let (bytes, archive) = received(&whole, size).await;
            assert_eq!(bytes, Ok(Some(size)));
            assert!(archive == content);
            let cut = &whole[..whole.len() - 1];
            assert_eq!(received(cut, size).await.0, Ok(None));
            let (more, _) = received(&[&whole, b"\n".as_slice()].concat(), size + 1).await;
            assert_eq!(more, Ok(None));
        }
        let over = [b"tar".as_slice(), MARK].concat();
        assert_eq!(received(&over, 2).await.0, Err("too large"));
        assert_eq!(received(b"", 0).await.0, Ok(None));
    }
}
