//! The files of a session's workspace: lists folders, serves contents, takes uploads, and sends a folder as
//! an archive. The files are the owner's alone; people with whom the session is shared see none of them.

mod address;
mod archive;
mod content;
mod listing;
mod portable_name;
mod shown_name;
mod tape;
mod upload;

use crate::gateway::api_router::{ApiRouter, routes};

pub(super) fn routes() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(listing::list_files))
        .routes(routes!(
            content::read_file,
            upload::put_file,
            upload::delete_file
        ))
        .routes(routes!(archive::download_files))
}
