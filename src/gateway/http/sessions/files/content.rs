//! Streams the content of a file in parts. The content is hostile: browsers save it, or show it in a sandbox
//! in which nothing runs, loads or sends.

use std::io;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, IF_RANGE, LAST_MODIFIED, RANGE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures::stream;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use utoipa::IntoParams;

use super::super::{CONNECTION_ALLOWLIST, DNS_PREFETCH, key_of};
use super::address::FileAddress;
use crate::agent::{FilePurpose, SessionFiles};
use crate::domain::Caller;
use crate::gateway::GatewayState;
use crate::gateway::error::{ApiError, Problem};
use crate::gateway::extract::Query;
use crate::mcp::{FILE_PART, FilePart};

/// The policy of a saved file: nothing in it may run or load, whatever type a browser assumes.
const SAVED: &str = "sandbox; default-src 'none'; frame-ancestors 'none'";
/// The policy of a file that our own page shows in a frame: only its own styles, images and fonts are used.
const SHOWN: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
     font-src data:; frame-ancestors 'self'; base-uri 'none'; form-action 'none'; webrtc 'block'";

/// The way in which a file is served.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::http) struct ReadFileQuery {
    /// True to make browsers show the file in a sealed frame instead of saving it: images, HTML and SVG as
    /// such, anything else as text.
    preview: Option<bool>,
}

/// Returns the content of a file of the workspace, or one range of it (`Range`).
#[utoipa::path(get, path = "/api/sessions/{id}/files/{*path}", tag = "sessions",
    params(("id" = String, Path), ("path" = String, Path,
        description = "From the workspace down, as the list of files names it."), ReadFileQuery),
    responses((status = 200, description = "The content.", content_type = "application/octet-stream",
        body = Vec<u8>), (status = 206, description = "The range.",
        content_type = "application/octet-stream", body = Vec<u8>), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 416, description = "No such range."),
        (status = 503, body = Problem)),
)]
pub(in crate::gateway::http) async fn read_file(
    State(state): State<GatewayState>,
    caller: Caller,
    FileAddress { session, path }: FileAddress,
    Query(query): Query<ReadFileQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let key = key_of(&caller, session);
    let files = SessionFiles::open(&state.sessions, &key, &caller, FilePurpose::Read).await?;
    let wanted = headers.get(RANGE).and_then(|value| value.to_str().ok());
    let length = if wanted.is_some() { 0 } else { FILE_PART };
    let first = files.read(&path, 0, length, None).await?;
    let etag = format!("\"{}\"", first.version);
    let is_same = |condition: &HeaderValue| condition.as_bytes() == etag.as_bytes();
    let holds = headers.get(IF_RANGE).is_none_or(is_same);
    let range = match wanted
        .filter(|_| holds)
        .map(|text| range(text, first.bytes))
    {
        Some(RequestedRange::Part(start, end)) => Some((start, end)),
        Some(RequestedRange::Nowhere) => return Ok(nowhere(first.bytes)),
        Some(RequestedRange::Whole) | None => None,
    };
    let (start, end) = range.unwrap_or((0, first.bytes));
    let mut response = Response::new(Body::from_stream(parts(
        files,
        path.clone(),
        start,
        end,
        &first,
    )));
    let shows = query.preview.unwrap_or(false);
    describe(response.headers_mut(), &path, shows, &first);
    set(
        response.headers_mut(),
        CONTENT_LENGTH,
        &(end - start).to_string(),
    );
    if range.is_some() {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let told = format!("bytes {start}-{}/{}", end - 1, first.bytes);
        set(response.headers_mut(), CONTENT_RANGE, &told);
    }
    Ok(response)
}

/// Streams the range in parts. If the file changes meanwhile, the response ends before its announced length,
/// which the client notices.
fn parts(
    files: SessionFiles,
    path: String,
    start: u64,
    end: u64,
    first: &FilePart,
) -> impl futures::Stream<Item = io::Result<Bytes>> + Send + 'static {
    let version = first.version.clone();
    let begun = (start == 0).then(|| Bytes::copy_from_slice(&first.data));
    let begun = begun.filter(|begun| !begun.is_empty() && begun.len() as u64 <= end);
    let state = (files, begun, start);
    stream::try_unfold(state, move |(files, begun, at)| {
        let (path, version) = (path.clone(), version.clone());
        async move {
            if at >= end {
                return Ok(None);
            }
            let part = if let Some(begun) = begun {
                begun
            } else {
                let length = usize::try_from(end - at)
                    .unwrap_or(FILE_PART)
                    .min(FILE_PART);
                let read = files.read(&path, at, length, Some(&version)).await;
                Bytes::from(read.map_err(io::Error::other)?.data)
            };
            if part.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let next = at + part.len() as u64;
            Ok(Some((part, (files, None, next))))
        }
    })
}

/// The part of a file that a `Range` header selects.
#[derive(Debug, PartialEq, Eq)]
enum RequestedRange {
    /// From the first offset up to the second, which is excluded.
    Part(u64, u64),
    /// A range outside of the file.
    Nowhere,
    /// Another unit, several ranges or an invalid range: the header is ignored (RFC 9110, 14.2).
    Whole,
}

fn range(text: &str, bytes: u64) -> RequestedRange {
    let Some((from, to)) = text
        .strip_prefix("bytes=")
        .filter(|ranges| !ranges.contains(','))
        .and_then(|range| range.trim().split_once('-'))
    else {
        return RequestedRange::Whole;
    };
    match (from.parse::<u64>(), to.parse::<u64>()) {
        (Ok(from), Ok(to)) if from > to => RequestedRange::Whole,
        (Ok(from), _) if from >= bytes && (to.is_empty() || to.parse::<u64>().is_ok()) => {
            RequestedRange::Nowhere
        }
        (Ok(from), Ok(to)) => RequestedRange::Part(from, to.saturating_add(1).min(bytes)),
        (Ok(from), Err(_)) if to.is_empty() => RequestedRange::Part(from, bytes),
        (Err(_), Ok(0)) if from.is_empty() => RequestedRange::Nowhere,
        (Err(_), Ok(_)) if from.is_empty() && bytes == 0 => RequestedRange::Nowhere,
        (Err(_), Ok(last)) if from.is_empty() => {
            RequestedRange::Part(bytes.saturating_sub(last), bytes)
        }
        (Ok(_) | Err(_), _) => RequestedRange::Whole,
    }
}

fn nowhere(bytes: u64) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    set(
        response.headers_mut(),
        CONTENT_RANGE,
        &format!("bytes */{bytes}"),
    );
    response
}

fn describe(headers: &mut HeaderMap, path: &str, shows: bool, file: &FilePart) {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (way, kind, policy, frames) = if shows {
        ("inline", kind_of(name), SHOWN, "SAMEORIGIN")
    } else {
        ("attachment", "application/octet-stream", SAVED, "DENY")
    };
    let encoded = utf8_percent_encode(name, NON_ALPHANUMERIC);
    for (header, value) in [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, policy),
        (CONNECTION_ALLOWLIST, "()"),
        (DNS_PREFETCH, "off"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, frames),
        (ACCEPT_RANGES, "bytes"),
        (ETAG, &format!("\"{}\"", file.version)),
        (
            CONTENT_DISPOSITION,
            &format!("{way}; filename*=UTF-8''{encoded}"),
        ),
    ] {
        set(headers, header, value);
    }
    let modified = jiff::Timestamp::from_millisecond(file.modified_ms).ok();
    let modified = modified
        .and_then(|at| jiff::fmt::rfc2822::to_string(&at.to_zoned(jiff::tz::TimeZone::UTC)).ok());
    if let Some(modified) = modified {
        set(headers, LAST_MODIFIED, &modified.replace("+0000", "GMT"));
    }
}

/// Returns the media type of a preview, by the file's extension. Any other file is text, whatever its bytes
/// are: `nosniff` keeps browsers from guessing.
fn kind_of(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "bmp" => "image/bmp",
        "ico" => "image/x-icon",
        "svg" => "image/svg+xml",
        "html" | "htm" | "xhtml" => "text/html; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::{RequestedRange, range};

    #[test]
    fn one_range_counts_and_nonsense_does_not() {
        for (text, expected) in [
            ("bytes=0-4", RequestedRange::Part(0, 5)),
            ("bytes=5-", RequestedRange::Part(5, 10)),
            ("bytes=-3", RequestedRange::Part(7, 10)),
            ("bytes=-30", RequestedRange::Part(0, 10)),
            ("bytes=8-99", RequestedRange::Part(8, 10)),
            ("bytes=10-", RequestedRange::Nowhere),
            ("bytes=10-12", RequestedRange::Nowhere),
            ("bytes=-0", RequestedRange::Nowhere),
            ("bytes=4-2", RequestedRange::Whole),
            ("bytes=0-1,4-5", RequestedRange::Whole),
            ("lines=0-4", RequestedRange::Whole),
            ("bytes=a-b", RequestedRange::Whole),
            ("bytes=-", RequestedRange::Whole),
        ] {
            assert_eq!(range(text, 10), expected, "{text}");
        }
        assert_eq!(range("bytes=0-", 0), RequestedRange::Nowhere);
        assert_eq!(range("bytes=-1", 0), RequestedRange::Nowhere);
    }
}
