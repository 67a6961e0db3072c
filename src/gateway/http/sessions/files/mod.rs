//! The files of a session's workspace: folders, contents, uploads, and all of it as an archive. They
//! are the owner's alone; whoever a session is shared with sees none of them.

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
