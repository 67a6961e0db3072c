//! Converts errors of file access into refusals with the codes that clients know.

use crate::domain::Code;
use crate::mcp::{FileError, FileRefusal};
use crate::session::Refusal;

pub(super) fn refused(error: FileError) -> Refusal {
    match error {
        FileError::Refused { kind, text } => {
            let code = match kind {
                FileRefusal::Missing => Code::NotFound,
                FileRefusal::NotFile
                | FileRefusal::NotFolder
                | FileRefusal::Invalid
                | FileRefusal::Forbidden => Code::InvalidArguments,
                FileRefusal::Exists => Code::FileExists,
                FileRefusal::Changed => Code::ChangedSinceShown,
                FileRefusal::Full => Code::TooLarge,
                FileRefusal::Busy => Code::TooManyRequests,
                FileRefusal::Failed => Code::SandboxUnavailable,
            };
            Refusal::of_field(code, "path", text)
        }
        FileError::Outdated => {
            let text = format!("{error}; have the operator pull the image of this version");
            Refusal::new(Code::SandboxUnavailable, text)
        }
        FileError::Server(error) => {
            tracing::warn!(?error, "The files of a session cannot be reached");
            let text = format!("the sandbox of this session did not answer: {error}; try again");
            Refusal::new(Code::SandboxUnavailable, text)
        }
    }
}
