//! Compresses and decompresses snapshots. Both forms can always be read; a setting decides which one is
//! written.

use std::io::{Read as _, Write as _};
use std::sync::LazyLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::super::Error;
use sepal_jobs::Pool;

/// Compresses at most two snapshots at a time. Many sessions may become idle at once, and more threads would
/// only use memory while they wait for a processor.
static PACKERS: LazyLock<Pool> = LazyLock::new(|| Pool::new("packing of snapshots", 2));

/// Decompresses at most four snapshots at a time; a caller waits for each.
static UNPACKERS: LazyLock<Pool> = LazyLock::new(|| Pool::new("unpacking of snapshots", 4));

/// A snapshot's body in its stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PackedSnapshot {
    /// True if `body` is gzip.
    pub(super) is_compressed: bool,
    pub(super) body: Bytes,
}

/// Compresses a body on a worker thread, because gzip level 1 takes about a millisecond for 100 KiB.
pub(super) async fn pack(body: Bytes, compress: bool) -> PackedSnapshot {
    let plain = PackedSnapshot {
        is_compressed: false,
        body: body.clone(),
    };
    if !compress {
        return plain;
    }
    match PACKERS.run(move || gzip(&body)).await {
        Ok(Ok(body)) => PackedSnapshot {
            is_compressed: true,
            body,
        },
        // An uncompressed snapshot is larger but equally valid.
        Ok(Err(_)) | Err(_) => plain,
    }
}

/// Decompresses a stored body. Returns [`Error::Corrupt`] only if the body itself is damaged.
pub(super) async fn unpack(packed: PackedSnapshot) -> Result<Bytes, Error> {
    if !packed.is_compressed {
        return Ok(packed.body);
    }
    let plain = UNPACKERS.run(move || gunzip(&packed.body)).await?;
    plain.map_err(|_| Error::corrupt("snapshot", "gzip"))
}

fn gzip(body: &[u8]) -> std::io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(1));
    encoder.write_all(body)?;
    Ok(encoder.finish()?.into())
}

fn gunzip(body: &[u8]) -> std::io::Result<Bytes> {
    let mut plain = Vec::new();
    GzDecoder::new(body).read_to_end(&mut plain)?;
    Ok(plain.into())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::FutureExt as _;
    use sepal_core::domain::Fault;

    use super::{PackedSnapshot, pack, unpack};
    use crate::Error;

    /// Asserts S2.10, O9.
    #[tokio::test]
    async fn both_forms_come_back_and_a_body_that_looks_like_gzip_stays_itself() {
        for body in [&b"state"[..], b"", &[0x1f, 0x8b, 8, 0]] {
            for compress in [true, false] {
                let packed = pack(Bytes::copy_from_slice(body), compress).await;
                assert_eq!(packed.is_compressed, compress);
                assert_eq!(unpack(packed).await.unwrap(), body);
            }
        }
    }

    /// The threads of a runtime that has ended take no work, as in a process that is stopping.
    #[test]
    fn a_snapshot_that_no_thread_unpacks_is_not_damaged_and_one_that_is_no_gzip_is() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let (packed, damaged) = runtime.block_on(async {
            let packed = pack(Bytes::from_static(b"state"), true).await;
            let damaged = PackedSnapshot {
                is_compressed: true,
                body: Bytes::from_static(b"state"),
            };
            (packed, unpack(damaged).await.unwrap_err())
        });
        assert!(damaged.is_damage(), "{damaged:?}");

        let ended = runtime.handle().clone();
        drop(runtime);
        let _inside = ended.enter();
        let error = unpack(packed).now_or_never().unwrap().unwrap_err();
        assert!(matches!(error, Error::NoWorker(_)), "{error:?}");
        assert_eq!(
            (error.is_damage(), error.fault()),
            (false, Fault::Transient)
        );
    }
}
