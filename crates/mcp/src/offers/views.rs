//! Reads the document of a view (MCP Apps): a resource `ui://…`, with its metadata.

use std::time::Duration;

use rmcp::model::{
    ClientRequest, MetaObject, PaginatedRequestParams, ReadResourceRequest,
    ReadResourceRequestParams, ResourceContents, ServerResult,
};
use serde_json::Value;

use super::reading::odd;
use crate::connection::Connection;
use crate::error::Error;
use crate::tools::content::{self, AnswerContent};

/// The most pages of the resource list that are searched for a view's metadata.
const MAX_PAGES: usize = 10;

/// A view as its server returned it.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenView {
    /// The MIME type that the server names.
    pub mime_type: Option<String>,
    /// The document's bytes.
    pub html: Vec<u8>,
    /// The view's metadata (`_meta.ui`): from its content, or else from the list of resources.
    pub ui: Value,
}

/// Reads a view; `None` for a resource without content.
pub(super) async fn view(
    connection: &Connection,
    uri: &str,
    limit: Duration,
) -> Result<Option<GivenView>, Error> {
    let params = ReadResourceRequestParams::new(uri);
    let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
    let ServerResult::ReadResourceResult(result) = connection.answer(request, limit).await? else {
        return Err(odd());
    };
    let Some(contents) = result.contents.first() else {
        return Ok(None);
    };
    let ui = match ui_of(meta_of(contents)) {
        Some(ui) => ui,
        None => listed(connection, uri, limit).await,
    };
    let cleaner = connection.cleaner();
    let (mime_type, html) = match content::of_resource(contents, cleaner) {
        AnswerContent::Resource {
            mime_type, text, ..
        } => (mime_type, text.into_bytes()),
        AnswerContent::File(file) => (file.mime_type, file.bytes),
        AnswerContent::Text(_) | AnswerContent::Link(_) => return Err(odd()),
    };
    Ok(Some(GivenView {
        mime_type,
        html,
        ui: cleaner.clean_value(ui),
    }))
}

/// Finds the view's metadata in the list of resources; null if the list cannot be read in time.
async fn listed(connection: &Connection, uri: &str, limit: Duration) -> Value {
    let advancing = async {
        let mut page = PaginatedRequestParams::default();
        for _ in 0..MAX_PAGES {
            let listed = connection.peer().list_resources(Some(page)).await.ok()?;
            let found = listed.resources.iter().find(|it| it.uri == uri);
            if let Some(found) = found {
                return ui_of(found.meta.as_ref());
            }
            page = PaginatedRequestParams::default().with_cursor(Some(listed.next_cursor?));
        }
        None
    };
    let found = tokio::time::timeout(limit, looking).await;
    found.ok().flatten().unwrap_or_default()
}

fn ui_of(meta: Option<&MetaObject>) -> Option<Value> {
    meta.and_then(|meta| meta.0.get("ui")).cloned()
}

fn meta_of(contents: &ResourceContents) -> Option<&MetaObject> {
    match contents {
        ResourceContents::TextResourceContents { meta, .. }
        | ResourceContents::BlobResourceContents { meta, .. } => meta.as_ref(),
        _ => None,
    }
}
