//! Reads which file an address names, part by part from the encoded address: decoding it as a whole could
//! turn a part of a name into a separator or `..`.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;

use crate::domain::{Code, SessionId};
use crate::gateway::error::ApiError;

/// The part of the address before the session.
const BEFORE: &str = "/api/sessions/";
const BETWEEN: &str = "/files/";

/// The session and the file of `/api/sessions/{id}/files/{path}`.
pub(super) struct FileAddress {
    pub(super) session: SessionId,
    /// The path as the sandbox takes it; names that are not plain text have bash's `$'...'` form.
    pub(super) path: String,
}

impl<S: Send + Sync> FromRequestParts<S> for FileAddress {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        read(parts.uri.path())
    }
}

fn read(address: &str) -> Result<FileAddress, ApiError> {
    let unknown = || ApiError::new(Code::SessionNotFound, "there is no such session");
    let rest = address.strip_prefix(BEFORE).ok_or_else(unknown)?;
    let (session, path) = rest.split_once(BETWEEN).ok_or_else(unknown)?;
    let session = SessionId::parse(session).ok_or_else(unknown)?;
    let parts = path.split('/').map(part);
    let parts: Vec<String> = parts.collect::<Result<_, _>>()?;
    Ok(FileAddress {
        session,
        path: parts.join("/"),
    })
}

/// Decodes one part of the path; an error if it is not the name of an entry.
fn part(part: &str) -> Result<String, ApiError> {
    let text = percent_decode_str(part).decode_utf8().map_err(|_| {
        wrong("a name that is no UTF-8 stands in the form that the list of files gives")
    })?;
    if text.is_empty() || text == "." || text == ".." {
        return Err(wrong("the parts of a path are names, without `.` and `..`"));
    }
    if text.contains(['/', '\0']) {
        return Err(wrong("a part of the path holds a separator or NUL"));
    }
    Ok(text.into_owned())
}

fn wrong(text: &'static str) -> ApiError {
    ApiError::of_field(Code::InvalidArguments, "path", text)
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::domain::SessionId;

    fn path(rest: &str) -> Option<String> {
        let address = format!("/api/sessions/{}/files/{rest}", SessionId::from_bits(7));
        read(&address).ok().map(|address| address.path)
    }

    #[test]
    fn a_path_is_made_of_names() {
        for (rest, expected) in [
            ("a.txt", "a.txt"),
            ("a/b%20c", "a/b c"),
            ("a%2520b", "a%20b"),
            ("$'caf%5Cxe9'", r"$'caf\xe9'"),
            ("%C5%BC/x", "ż/x"),
            ("..a", "..a"),
            ("files/files/x", "files/files/x"),
        ] {
            assert_eq!(path(rest).as_deref(), Some(expected), "{rest}");
        }
        for rest in [
            "", "/", "a//b", "a/", "..", "../a", "a/..", "%2e%2e/a", "..%2fa", "a%2Fb", "a%00",
            "%ff", "./a",
        ] {
            assert_eq!(path(rest), None, "{rest}");
        }
    }
}
