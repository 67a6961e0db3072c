//! Asks a time-stamp service (RFC 3161) to say when a text existed.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use der::asn1::AnyRef;
use der::{Decode as _, Reader as _, SliceReader, Tag, TagNumber};
use reqwest::Client;
use reqwest::header::CONTENT_TYPE;
use sha2::{Digest as _, Sha256};
use url::Url;

/// The time that a service has to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The largest answer that is read, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// SHA-256 and its absent parameters, with the header of the 32 bytes that follow: the imprint in DER.
const IMPRINT: [u8; 19] = [
    0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05,
    0x00, 0x04, 0x20,
];
/// `id-signedData` and `id-ct-TSTInfo`.
const SIGNED_DATA: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
const TST_INFO: [u8; 11] = [
    0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x04,
];

/// The reason there is no time stamp.
#[derive(Debug, thiserror::Error)]
pub enum TimestampError {
    #[error("the time-stamp service cannot be reached: {0}")]
    Away(String),
    #[error("the time-stamp service answered {0}")]
    Status(u16),
    #[error("the time-stamp service refused the request")]
    Refused,
    #[error("the answer of the time-stamp service is no time stamp (RFC 3161)")]
    Form,
    #[error("the time stamp is of something else")]
    Other,
}

/// Returns the time stamp of a text: the answer of the service (`TimeStampResp` in DER) in base64url, which
/// `openssl ts -verify` checks against the service's certificate.
pub(super) async fn stamp(http: &Client, url: &Url, text: &[u8]) -> Result<String, TimestampError> {
    let asked = Asked::new(text, rand::random());
    let answer = http
        .post(url.clone())
        .timeout(TIMEOUT)
        .header(CONTENT_TYPE, "application/timestamp-query")
        .body(asked.to_der())
        .send()
        .await;
    let mut answer = answer.map_err(|error| TimestampError::Away(crate::net::below(&error)))?;
    if !answer.status().is_success() {
        return Err(TimestampError::Status(answer.status().as_u16()));
    }
    let mut body = Vec::new();
    loop {
        match answer.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= MAX_BYTES => {
                body.extend_from_slice(&chunk);
            }
            Ok(None) => break,
            Ok(Some(_)) => return Err(TimestampError::Form),
            Err(error) => return Err(TimestampError::Away(crate::net::below(&error))),
        }
    }
    asked.check(&body)?;
    Ok(URL_SAFE_NO_PAD.encode(body))
}

/// The request to a time-stamp service.
struct Asked {
    imprint: Vec<u8>,
    nonce: [u8; 8],
}

impl Asked {
    fn new(text: &[u8], mut nonce: [u8; 8]) -> Self {
        // A positive number of exactly eight bytes.
        nonce[0] = nonce[0] & 0x3f | 0x40;
        Self {
            imprint: [&IMPRINT[..], &Sha256::digest(text)].concat(),
            nonce,
        }
    }

    /// `TimeStampReq`: version 1, the imprint, the nonce, and the wish for the service's certificate.
    fn to_der(&self) -> Vec<u8> {
        let head = [0x30, 0x43, 0x02, 0x01, 0x01];
        let tail = [0x01, 0x01, 0xff];
        [&head[..], &self.imprint, &[0x02, 0x08], &self.nonce, &tail].concat()
    }

    /// Checks that an answer is a time stamp of what was asked about. The service's own signature is for those
    /// who trust the service: they have its certificate.
    fn check(&self, answer: &[u8]) -> Result<(), TimestampError> {
        let (status, token) = parts(answer).ok_or(TimestampError::Form)?;
        if !matches!(status, [0 | 1]) {
            return Err(TimestampError::Refused);
        }
        let info = token.and_then(info).ok_or(TimestampError::Form)?;
        let has = |tag, value: &[u8]| {
            info.iter()
                .any(|item| item.tag == tag && item.value == value)
        };
        let imprint = self.imprint.get(2..).unwrap_or_default();
        if has(Tag::Sequence, imprint) && has(Tag::Integer, &self.nonce) {
            return Ok(());
        }
        Err(TimestampError::Other)
    }
}

/// A value in DER.
#[derive(Clone, Copy)]
struct Item<'d> {
    tag: Tag,
    value: &'d [u8],
}

/// The values within a sequence or another wrapping value.
fn items(value: &[u8]) -> Option<Vec<Item<'_>>> {
    let mut reader = SliceReader::new(value).ok()?;
    let mut items = Vec::new();
    while !reader.is_finished() {
        let any: AnyRef<'_> = reader.decode().ok()?;
        items.push(Item {
            tag: der::Tagged::tag(&any),
            value: any.value(),
        });
    }
    Some(items)
}

/// The status of an answer, and its token.
fn parts(answer: &[u8]) -> Option<(&[u8], Option<Item<'_>>)> {
    let whole = AnyRef::from_der(answer).ok()?;
    let items_of_answer = items(whole.value())?;
    let mut parts = items_of_answer.into_iter();
    let status = items(parts.next()?.value)?.first()?.value;
    Some((status, parts.next()))
}

/// The members of `TSTInfo`, within what the service signed.
fn info(token: Item<'_>) -> Option<Vec<Item<'_>>> {
    let explicit = Tag::ContextSpecific {
        constructed: true,
        number: TagNumber::N0,
    };
    let members = items(token.value)?;
    let signed = content(&members, &SIGNED_DATA, explicit)?;
    let signed = items(items(signed)?.first()?.value)?;
    let encapsulated = items(signed.get(2)?.value)?;
    let octets = content(&encapsulated, &TST_INFO, explicit)?;
    let octets = items(octets)?;
    let octets = octets.first().filter(|it| it.tag == Tag::OctetString)?;
    items(items(octets.value)?.first()?.value)
}

/// The value in the explicit member of an object of this kind.
fn content<'d>(members: &[Item<'d>], kind: &[u8], explicit: Tag) -> Option<&'d [u8]> {
    let is_of_kind = members.first()?.value == kind;
    let content = members.get(1)?;
    (is_of_kind && content.tag == explicit).then_some(content.value)
}

#[cfg(test)]
mod tests {
    use super::{Asked, IMPRINT, SIGNED_DATA, TST_INFO, TimestampError};

    fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let value = parts.concat();
        let length = u8::try_from(value.len()).unwrap();
        let head = if length < 128 {
            vec![tag, length]
        } else {
            vec![tag, 0x81, length]
        };
        [head, value].concat()
    }

    /// An answer as services give it, with its time in fractions of a second.
    fn answer(status: u8, imprint: &[u8], nonce: &[u8]) -> Vec<u8> {
        let info = der(
            0x30,
            &[
                &der(0x02, &[&[1]]),
                &der(0x06, &[&[0x2a, 3, 4]]),
                imprint,
                &der(0x02, &[&[7]]),
                &der(0x18, &[b"20261129070000.123Z"]),
                &der(0x02, &[nonce]),
            ],
        );
        let octets = der(0xa0, &[&der(0x04, &[&info])]);
        let encapsulated = der(0x30, &[&der(0x06, &[&TST_INFO]), &octets]);
        let signed = der(0x30, &[&der(0x02, &[&[3]]), &der(0x31, &[]), &encapsulated]);
        let token = der(0x30, &[&der(0x06, &[&SIGNED_DATA]), &der(0xa0, &[&signed])]);
        der(0x30, &[&der(0x30, &[&der(0x02, &[&[status]])]), &token])
    }

    #[test]
    fn a_time_stamp_is_taken_for_what_was_asked_about_alone() {
        let asked = Asked::new(b"text", [9; 8]);
        assert_eq!(asked.to_der().len(), 69);
        let other = [&IMPRINT[..], &[0; 32]].concat();
        let nonce = asked.nonce;
        let check = |answer: &[u8]| asked.check(answer);
        assert!(check(&answer(0, &asked.imprint, &nonce)).is_ok());
        assert!(check(&answer(1, &asked.imprint, &nonce)).is_ok());
        let refused = check(&answer(2, &asked.imprint, &nonce));
        assert!(matches!(refused, Err(TimestampError::Refused)));
        let of_other = check(&answer(0, &other, &nonce));
        assert!(matches!(of_other, Err(TimestampError::Other)));
        let of_earlier = check(&answer(0, &asked.imprint, &[1; 8]));
        assert!(matches!(of_earlier, Err(TimestampError::Other)));
        for wrong in [&b""[..], b"<html>", &[0x30, 0x02, 0x05, 0x00]] {
            assert!(matches!(check(wrong), Err(TimestampError::Form)));
        }
    }
}
