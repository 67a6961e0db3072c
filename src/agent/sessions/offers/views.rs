//! Reads the views of tools (MCP Apps) for the session's owner: a view's document, read like a resource, with
//! the hosts that it may reach.

use std::time::Duration;

use serde_json::{Value, json};

use super::{SessionOffers, refused};
use crate::domain::{Caller, Code, ResourceRef, SessionKey, VIEW_TYPE, ViewHosts, is_view_uri};
use crate::mcp::{self, GivenView, Offers};
use crate::session::Refusal;

/// The most bytes of a view's document. Servers' single-page documents have some hundred KiB.
const MAX_VIEW_BYTES: usize = 2 * 1024 * 1024;

/// The time limit of a server to return a view: a person waits for it.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(30);

/// The browser permissions that a view may request, none of which is granted.
const PERMISSIONS: [&str; 4] = ["camera", "microphone", "geolocation", "clipboardWrite"];

/// A view as it may be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerView {
    /// The document.
    pub html: String,
    /// The declared hosts, and the only ones that it can reach.
    pub hosts: ViewHosts,
    /// Declared values that are not hosts, which are left out.
    pub left_out: Vec<String>,
    /// The requested browser permissions (such as `camera`), which are not granted.
    pub permissions: Vec<&'static str>,
}

impl SessionOffers<'_> {
    /// Reads a view's document over the session's own connection. Nothing of it is stored.
    pub async fn view(
        &self,
        key: &SessionKey,
        caller: &Caller,
        which: &ResourceRef,
    ) -> Result<ServerView, Refusal> {
        // A view belongs to a call, so this must not create a session.
        if !self.0.join(key, caller).await?.view.is_stored {
            let text = "there is no such session";
            return Err(Refusal::new(Code::SessionNotFound, text));
        }
        if !is_view_uri(&which.uri) {
            let text = "the address of a view begins with `ui://`, and has at most 1024 characters of \
                        ASCII and no spaces";
            return Err(Refusal::of_field(Code::InvalidArguments, "uri", text));
        }

        let opened = self
            .open(
                key,
                caller,
                &which.server,
                "resources/read",
                json!({ "uri": which.uri }),
            )
            .await?;
        let offers = Offers::of(&opened.held.connection);
        let given = offers.view(&which.uri, opened.limit.min(MAX_WAIT)).await;
        let given = given.map_err(|error| refused(&which.server, &error))?;
        let read = given.ok_or_else(|| "it has no content".to_owned());
        let read = read.and_then(shown);
        read.map_err(|reason| {
            let reason = format!("`{}` cannot be shown: {reason}", which.uri);
            refused(&which.server, &mcp::Error::Refused(reason))
        })
    }
}

/// Checks a view, and returns it or the reason it is invalid.
fn shown(given: GivenView) -> Result<ServerView, String> {
    let mime_type = given
        .mime_type
        .as_deref()
        .unwrap_or("nothing that is named");
    if mime_type != VIEW_TYPE {
        return Err(format!("it is {mime_type}, and a view is {VIEW_TYPE}"));
    }
    if given.html.len() > MAX_VIEW_BYTES {
        return Err(format!(
            "it has {} bytes, and at most {MAX_VIEW_BYTES} are shown",
            given.html.len()
        ));
    }
    let html = String::from_utf8(given.html).map_err(|_| "it is no text of UTF-8".to_owned())?;
    let said = |of: &Value, name: &str| of.get(name).cloned().unwrap_or_default();
    let (hosts, left_out) = ViewHosts::declared(&said(&given.ui, "csp"));
    let asked = said(&given.ui, "permissions");
    let permissions = PERMISSIONS.into_iter();
    Ok(ServerView {
        html,
        hosts,
        left_out,
        permissions: permissions
            .filter(|name| asked.get(name).is_some_and(Value::is_object))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MAX_VIEW_BYTES, shown};
    use crate::domain::{VIEW_TYPE, ViewReach};
    use crate::mcp::GivenView;

    fn given(mime_type: Option<&str>, html: Vec<u8>) -> GivenView {
        GivenView {
            mime_type: mime_type.map(ToOwned::to_owned),
            html,
            ui: json!({ "csp": { "connectDomains": ["https://api.example.com", "*"] },
                "permissions": { "camera": {}, "microphone": false } }),
        }
    }

    #[test]
    fn a_view_is_a_document_of_its_own_type_and_of_bounded_size() {
        let view = shown(given(Some(VIEW_TYPE), b"<p>hi".to_vec())).unwrap();
        assert_eq!(view.html, "<p>hi");
        assert_eq!(view.hosts.of(ViewReach::Connect).len(), 1);
        assert_eq!(
            (view.left_out, view.permissions),
            (vec!["*".to_owned()], vec!["camera"])
        );
        for other in [
            None,
            Some("text/html"),
            Some("text/html; profile=mcp-app"),
            Some("text/html;profile=mcp-app;charset=utf-8"),
            Some("TEXT/HTML;profile=mcp-app"),
            Some("image/svg+xml"),
        ] {
            let reason = shown(given(other, b"<p>hi".to_vec())).unwrap_err();
            assert!(reason.contains(VIEW_TYPE), "{reason}");
        }
        let large = vec![b'x'; MAX_VIEW_BYTES + 1];
        assert!(
            shown(given(Some(VIEW_TYPE), large))
                .unwrap_err()
                .contains("at most")
        );
        assert!(shown(given(Some(VIEW_TYPE), vec![0xff])).is_err());
    }
}
