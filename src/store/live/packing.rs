//! Compression of snapshots. Both forms are always readable; the setting decides what is written.

use std::io::{Read as _, Write as _};
use std::sync::LazyLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::super::Error;
use crate::jobs::Pool;

/// Snapshots that are packed at the same time. Many sessions may rest at once, and every further
/// thread would only wait for a processor, with memory of its own.
static PACKERS: LazyLock<Pool> = LazyLock::new(|| Pool::new("packing of snapshots", 2));

/// Snapshots that are unpacked at the same time: somebody waits for each.
static UNPACKERS: LazyLock<Pool> = LazyLock::new(|| Pool::new("unpacking of snapshots", 4));

/// A body as it lies in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed {
    /// Whether `body` is gzip.
    pub(super) is_compressed: bool,
    pub(super) body: Bytes,
}

/// Packs off the async threads: level 1 of 100 KiB takes about a millisecond.
pub(super) async fn pack(body: Bytes, compress: bool) -> Packed {
    let plain = Packed {
        is_compressed: false,
        body: body.clone(),
    };
    if !compress {
        return plain;
    }
    match PACKERS.run(move || gzip(&body)).await {
        Ok(Ok(body)) => Packed {
            is_compressed: true,
            body,
        },
        // Compression is only an encoding: without it the snapshot is larger, not wrong.
        Ok(Err(_)) | Err(_) => plain,
    }
}

/// Gives back what was packed.
pub(super) async fn unpack(packed: Packed) -> Result<Bytes, Error> {
    if !packed.is_compressed {
        return Ok(packed.body);
    }
    UNPACKERS
        .run(move || gunzip(&packed.body))
        .await
        .ok()
        .and_then(Result::ok)
        .ok_or_else(|| Error::corrupt("snapshot", "gzip"))
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

    use super::{pack, unpack};

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
}
