//! Serves the page: the files of `web/dist/` inside the binary, and `index.html` for the page's own routes.

use std::borrow::Cow;
use std::fmt::Write as _;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, VARY, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

use super::GatewayState;
use super::error::ApiError;
use super::guard::RESOURCE_POLICY;
use crate::domain::Code;

/// The built page, into which its build copies the files of `public/`. A debug build reads the folder at
/// each request.
#[derive(RustEmbed)]
#[folder = "web/dist/"]
#[allow_missing = true]
struct Page;

/// The folder of Vite's files with a hash in their names.
const HASHED: &str = "assets/";

/// The sandboxed frame that draws diagrams from a model's text: it has no origin and no network access.
const DIAGRAM: &str = "diagram.html";

/// The Content-Security-Policy of the frame: it loads its script from here and writes styles into the
/// drawing; nothing else is loaded.
const DIAGRAM_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'self'; \
     style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

const NOT_BUILT: &str = "The page is not part of this build.\n\n\
    Build it with `./run build` (or `npm ci && npm run build` in web/), then start Sepal again.\n\
    The API answers below /api/, Socket.IO below /socket.io.\n";

/// A file of the page.
struct Asset {
    bytes: Cow<'static, [u8]>,
    etag: String,
}

/// The function that finds files; tests use their own.
type Source = fn(&str) -> Option<Asset>;

fn embedded(path: &str) -> Option<Asset> {
    let file = Page::get(path)?;
    let hash = file.metadata.sha256_hash();
    let mut etag = String::from("\"");
    for byte in hash.iter().take(12) {
        let _ = write!(etag, "{byte:02x}");
    }
    etag.push('"');
    Some(Asset {
        bytes: file.data,
        etag,
    })
}

/// True if the page is part of this build.
pub fn page_is_built() -> bool {
    embedded("index.html").is_some()
}

/// Answers all paths without a route.
pub(super) async fn fallback(
    State(state): State<GatewayState>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    answer(
        embedded,
        &state.access.base_path(),
        &method,
        uri.path(),
        &headers,
    )
}

fn answer(
    source: Source,
    base: &str,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Response {
    let path = path.trim_start_matches('/');
    let first = path.split('/').next().unwrap_or_default();
    if matches!(first, "api" | "socket.io") {
        return ApiError::new(Code::NotFound, "there is nothing at this address").into_response();
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        let text = "the page is read with GET";
        let error = ApiError::new(Code::MethodNotAllowed, text);
        return ([(axum::http::header::ALLOW, "GET,HEAD")], error).into_response();
    }
    if path != "index.html" {
        let asset = if is_hidden(path) { None } else { source(path) };
        if let Some(asset) = asset {
            let mut response = file(source, path, asset, headers);
            if path == DIAGRAM {
                seal(response.headers_mut());
            }
            if is_program(path) {
                let policy = HeaderValue::from_static("cross-origin");
                response.headers_mut().insert(RESOURCE_POLICY, policy);
            }
            return response;
        }
        if is_hidden(path) || is_file_name(path) {
            return ApiError::new(Code::NotFound, "there is no such file").into_response();
        }
    }
    match source("index.html") {
        Some(asset) => index(&asset, base, headers),
        None => (StatusCode::NOT_FOUND, NOT_BUILT).into_response(),
    }
}

/// Adds the headers of the diagram frame, also to a 304 response, whose headers replace those in the
/// browser's cache.
fn seal(headers: &mut HeaderMap) {
    let policy = HeaderValue::from_static(DIAGRAM_POLICY);
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
}

/// True for scripts. The sealed frame loads scripts of the page; because the frame has no origin, browsers
/// treat them as another site's. Scripts hold no data of people.
fn is_program(path: &str) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, ending)| ending == "js")
}

/// True if a part of the path begins with a dot, such as `..` or metadata of the build.
fn is_hidden(path: &str) -> bool {
    path.split(['/', '\\']).any(|part| part.starts_with('.'))
}

/// True if the path names a file. The page's routes have no dot in their last part. An old page that
/// requests a chunk of another version has to get an error instead of `index.html`.
fn is_file_name(path: &str) -> bool {
    path.starts_with(HASHED)
        || path
            .rsplit('/')
            .next()
            .is_some_and(|name| name.contains('.'))
}

fn file(source: Source, path: &str, plain: Asset, headers: &HeaderMap) -> Response {
    let cache = if path.starts_with(HASHED) {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    if is_known(&plain.etag, headers) {
        let status = StatusCode::NOT_MODIFIED;
        return (
            status,
            [(ETAG, plain.etag), (CACHE_CONTROL, cache.to_owned())],
        )
            .into_response();
    }
    let kind = content_type(path);
    let etag = plain.etag.clone();
    let (encoding, asset) = compressed(source, path, headers)
        .map_or((None, plain), |(encoding, asset)| (Some(encoding), asset));
    let mut response = Body::from(asset.bytes).into_response();
    let out = response.headers_mut();
    out.insert(CONTENT_TYPE, kind);
    out.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    out.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Some(encoding) = encoding {
        out.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    if let Ok(etag) = HeaderValue::try_from(etag) {
        out.insert(ETAG, etag);
    }
    response
}

/// Returns the variant that was compressed at build time, if the client accepts one.
fn compressed(source: Source, path: &str, headers: &HeaderMap) -> Option<(&'static str, Asset)> {
    let accepted = headers
        .get(ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok())?;
    [("br", "br"), ("gzip", "gz")]
        .into_iter()
        .find_map(|(encoding, ending)| {
            let asset = accepts(accepted, encoding).then(|| source(&format!("{path}.{ending}")));
            Some((encoding, asset.flatten()?))
        })
}

fn accepts(accepted: &str, encoding: &str) -> bool {
    accepted.split(',').any(|one| {
        let (name, parameters) = one.split_once(';').unwrap_or((one, ""));
        let quality = parameters
            .trim()
            .strip_prefix("q=")
            .and_then(|q| q.trim().parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case(encoding) && quality.is_none_or(|quality| quality > 0.0)
    })
}

/// Returns `index.html` with the public base path in its `<base>` tag.
fn index(asset: &Asset, base: &str, headers: &HeaderMap) -> Response {
    if is_known(&asset.etag, headers) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, asset.etag.clone())]).into_response();
    }
    let text = String::from_utf8_lossy(&asset.bytes);
    let escaped = base
        .replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;");
    let text = text.replacen(
        r#"<base href="/""#,
        &format!(r#"<base href="{escaped}""#),
        1,
    );
    let fixed = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (fixed, [(ETAG, asset.etag.clone())], text).into_response()
}

fn is_known(etag: &str, headers: &HeaderMap) -> bool {
    let known = headers
        .get(IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok());
    known.is_some_and(|known| {
        known
            .split(',')
            .any(|one| one.trim().trim_start_matches("W/") == etag)
    })
}

fn content_type(path: &str) -> HeaderValue {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    HeaderValue::from_static(match ending {
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "woff2" => "font/woff2",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "html" => "text/html; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    })
}

#[cfg(test)]
mod tests;
