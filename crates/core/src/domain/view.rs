//! Reads a tool's declaration of its view (the extension MCP Apps), and the hosts that a view may reach.
//!
//! The hosts become part of a header, so they are parsed strictly: anything that is not clearly a host is
//! left out.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The media type of a view's document; no other type is shown as a view.
pub const VIEW_TYPE: &str = "text/html;profile=mcp-app";

/// The scheme of a view's address.
pub const VIEW_SCHEME: &str = "ui://";

/// Maximum length of a view's address, in bytes.
pub const MAX_VIEW_URI: usize = 1024;

/// Maximum number of hosts that a view may declare for each [`ViewReach`].
const MAX_HOSTS: usize = 20;

/// Maximum characters of an invalid host in a message.
const MAX_SHOWN: usize = 200;

/// A tool's declaration of its view.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolView {
    /// The `ui://…` address of the view at the tool's server; `None` = the tool has no view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// True if only views may call the tool, so that models are not offered it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_app_only: bool,
    /// True if views may not call the tool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_hidden_from_apps: bool,
}

impl ToolView {
    /// Reads the `_meta` of a tool's definition; `None` if it does not mention views.
    pub fn of_meta(meta: &serde_json::Map<String, Value>) -> Option<Self> {
        let ui = meta.get("ui");
        // Drafts of the extension used this flat member.
        let uri = ui.and_then(|ui| ui.get("resourceUri"));
        let uri = uri.or_else(|| meta.get("ui/resourceUri"));
        let uri = uri.and_then(Value::as_str).filter(|uri| is_view_uri(uri));
        let visibility = ui.and_then(|ui| ui.get("visibility"));
        let visibility = visibility.and_then(Value::as_array);
        let view = Self {
            uri: uri.map(ToOwned::to_owned),
            is_app_only: visibility.is_some_and(|to| to.iter().all(|to| to != "model")),
            is_hidden_from_apps: visibility.is_some_and(|to| to.iter().all(|to| to != "app")),
        };
        (view != Self::default()).then_some(view)
    }
}

/// Returns true if a text is the address of a view: `ui://` followed by printable ASCII without spaces.
pub fn is_view_uri(uri: &str) -> bool {
    let rest = uri.strip_prefix(VIEW_SCHEME).unwrap_or_default();
    !rest.is_empty() && uri.len() <= MAX_VIEW_URI && rest.chars().all(|c| c.is_ascii_graphic())
}

/// A host that a view may reach, in the syntax of a Content Security Policy: `https://cdn.example.com`,
/// `https://*.example.com:8443`, or `wss://…`. It contains no character that ends a source or a directive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ViewHost(String);

/// The way in which a view uses a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewReach {
    /// Connects to it, also by websockets.
    Connect,
    /// Loads scripts, styles, images, fonts and media from it.
    Load,
    /// Embeds its pages in frames.
    Frame,
    /// Uses it as the base of relative addresses.
    Base,
}

impl ViewReach {
    /// All variants, in the order of [`ViewHosts`].
    pub const ALL: [Self; 4] = [Self::Connect, Self::Load, Self::Frame, Self::Base];

    /// The member of a resource's `_meta.ui.csp` that declares these hosts.
    fn member(self) -> &'static str {
        match self {
            Self::Connect => "connectDomains",
            Self::Load => "resourceDomains",
            Self::Frame => "frameDomains",
            Self::Base => "baseUriDomains",
        }
    }
}

impl ViewHost {
    /// Parses a host from a server's declaration or an address. Refused are a wildcard for everything,
    /// numeric addresses, names without a dot (they belong to the reader's own network), schemes other than
    /// `https` (and `wss` to connect to), and anything with a path, a query or an unusual character.
    pub fn parse(text: &str, reach: ViewReach) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_scheme = scheme == "https" || (scheme == "wss" && reach == ViewReach::Connect);
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        };
        let is_port = |port: &str| {
            port.bytes().all(|byte| byte.is_ascii_digit())
                && port.parse::<u16>().is_ok_and(|port| port > 0)
        };
        let is_fit = is_scheme && is_host(host) && port.is_none_or(is_port);
        is_fit.then(|| Self(format!("{scheme}://{rest}").to_ascii_lowercase()))
    }

    /// The host in the syntax of a Content Security Policy.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns true for a DNS name of at least two labels, optionally after `*.`.
fn is_host(host: &str) -> bool {
    let name = host.strip_prefix("*.").unwrap_or(host);
    let is_label = |label: &str| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let labels: Vec<&str> = name.split('.').collect();
    let top = labels.last().copied().unwrap_or_default();
    host.len() <= 253
        && labels.len() > 1
        && labels.iter().copied().all(is_label)
        && top.bytes().any(|byte| byte.is_ascii_alphabetic())
        // Browsers read `0x7f` and the like as numbers.
        && !(top.starts_with("0x") || top.starts_with("0X"))
}

/// The hosts that a view may reach; the default is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ViewHosts([Vec<ViewHost>; 4]);

impl ViewHosts {
    /// Reads the hosts that a resource's `_meta.ui.csp` declares, and returns the invalid and surplus ones
    /// that are left out.
    pub fn declared(csp: &Value) -> (Self, Vec<String>) {
        let mut hosts = Self::default();
        let mut left_out = Vec::new();
        for reach in ViewReach::ALL {
            let listed = csp.get(reach.member()).and_then(Value::as_array);
            for entry in listed.into_iter().flatten() {
                let text = entry
                    .as_str()
                    .map_or_else(|| entry.to_string(), ToOwned::to_owned);
                if !hosts.add(&text, reach) && left_out.len() < MAX_HOSTS {
                    left_out.push(text.chars().take(MAX_SHOWN).collect());
                }
            }
        }
        (hosts, left_out)
    }

    /// Adds a host; returns false if it is invalid or exceeds the limit.
    pub fn add(&mut self, text: &str, reach: ViewReach) -> bool {
        let (Some(host), Some(known)) =
            (ViewHost::parse(text, reach), self.0.get_mut(reach as usize))
        else {
            return false;
        };
        if known.contains(&host) {
            return true;
        }
        let has_room = known.len() < MAX_HOSTS;
        if has_room {
            known.push(host);
        }
        has_room
    }

    /// The hosts of one kind, in the order of the declaration.
    pub fn of(&self, reach: ViewReach) -> &[ViewHost] {
        self.0.get(reach as usize).map_or(&[], Vec::as_slice)
    }

    /// The Content Security Policy of a view's document. The document has no origin, and may use nothing
    /// that the policy does not list.
    pub fn policy(&self) -> String {
        let sources = |reach: ViewReach, own: &str| {
            let hosts = self.of(reach).iter().map(ViewHost::as_str);
            let all: Vec<&str> = own
                .split(' ')
                .filter(|it| !it.is_empty())
                .chain(hosts)
                .collect();
            if all.is_empty() {
                "'none'".to_owned()
            } else {
                all.join(" ")
            }
        };
        let load = |own| sources(ViewReach::Load, own);
        format!(
            "sandbox allow-scripts allow-forms; default-src 'none'; script-src {}; style-src {}; \
             img-src {}; font-src {}; media-src {}; connect-src {}; frame-src {}; base-uri {}; \
             object-src 'none'; worker-src 'none'; form-action 'none'; webrtc 'block'; \
             frame-ancestors 'self'",
            load("'unsafe-inline'"),
            load("'unsafe-inline'"),
            load("data: blob:"),
            load("data:"),
            load("data: blob:"),
            sources(ViewReach::Connect, ""),
            sources(ViewReach::Frame, ""),
            sources(ViewReach::Base, ""),
        )
    }

    /// The value of `Connection-Allowlist` for a view's document: every host that the view may connect to,
    /// load from or embed. Browsers that know the header look up no other name, whereas the Content
    /// Security Policy only blocks requests after the look-up. Websockets match by the `https` form of
    /// their address. Source: <https://wicg.github.io/connection-allowlists/>.
    pub fn connection_allowlist(&self) -> String {
        let reached = [ViewReach::Connect, ViewReach::Load, ViewReach::Frame];
        let hosts = reached.iter().flat_map(|reach| self.of(*reach));
        let patterns: BTreeSet<String> = hosts
            .map(|host| match host.as_str().strip_prefix("wss://") {
                Some(name) => format!("\"https://{name}\""),
                None => format!("\"{}\"", host.as_str()),
            })
            .collect();
        let patterns: Vec<String> = patterns.into_iter().collect();
        format!("({})", patterns.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ToolView, ViewHost, ViewHosts, ViewReach, is_view_uri};

    fn view(meta: Value) -> Option<(Option<String>, bool)> {
        let Value::Object(meta) = meta else {
            panic!("an object");
        };
        ToolView::of_meta(&meta).map(|view| (view.uri, view.is_app_only))
    }

    #[test]
    fn a_definition_says_its_view_and_whom_it_is_for() {
        let uri = Some("ui://chart/main.html".to_owned());
        assert_eq!(
            view(json!({ "ui": { "resourceUri": "ui://chart/main.html" } })),
            Some((uri.clone(), false))
        );
        assert_eq!(
            view(json!({ "ui/resourceUri": "ui://chart/main.html" })),
            Some((uri.clone(), false))
        );
        let app = json!({ "ui": { "resourceUri": "ui://chart/main.html", "visibility": ["app"] } });
        assert_eq!(view(app), Some((uri, true)));
        assert_eq!(
            view(json!({ "ui": { "visibility": [] } })),
            Some((None, true))
        );
        for nothing in [
            json!({}),
            json!({ "ui": "ui://x" }),
            json!({ "ui": { "visibility": ["model", "app"] } }),
            json!({ "ui": { "resourceUri": "https://example.com/a.html" } }),
            json!({ "ui": { "resourceUri": 5, "visibility": "app" } }),
        ] {
            assert_eq!(view(nothing.clone()), None, "{nothing}");
        }
        for odd in ["ui://", "ui://a b", "ui://a\nb", "UI://a", "x:y"] {
            assert!(!is_view_uri(odd), "{odd}");
        }
        assert!(!is_view_uri(&format!("ui://{}", "x".repeat(2_000))));
    }

    #[test]
    fn a_host_is_plainly_one_or_none() {
        for (text, expected) in [
            ("https://cdn.example.com", "https://cdn.example.com"),
            ("https://CDN.example.com/", "https://cdn.example.com"),
            ("https://*.example.com:8443", "https://*.example.com:8443"),
            (
                "https://xn--bcher-kva.example",
                "https://xn--bcher-kva.example",
            ),
        ] {
            for reach in ViewReach::ALL {
                let host = ViewHost::parse(text, reach);
                assert_eq!(
                    host.as_ref().map(ViewHost::as_str),
                    Some(expected),
                    "{text}"
                );
            }
        }
        assert!(ViewHost::parse("wss://live.example.com", ViewReach::Connect).is_some());
        assert!(ViewHost::parse("wss://live.example.com", ViewReach::Load).is_none());
    }

    #[test]
    fn what_would_write_into_a_policy_is_no_host() {
        for text in [
            "*",
            "https:",
            "https://",
            "https://*",
            "https://*.com",
            "https://*.*.example.com",
            "https://a.*.example.com",
            "'unsafe-eval'",
            "'self'",
            "data:",
            "blob:",
            "http://example.com",
            "ws://example.com",
            "example.com",
            "https://localhost",
            "https://127.0.0.1",
            "https://2130706433",
            "https://1.0x7f",
            "https://[::1]",
            "https://example.com; script-src *",
            "https://example.com script-src",
            "https://example.com,https://other.example",
            "https://example.com\r\nX: y",
            "https://example.com'",
            "https://example.com/path",
            "https://example.com?q",
            "https://example.com#f",
            "https://user@example.com",
            "https://example.com:",
            "https://example.com:0",
            "https://example.com:99999",
            "https://example.com:+80",
            "https://example.com:*",
            "https://-a.example.com",
            "https://a..example.com",
            "https://b\u{fc}cher.example",
        ] {
            for reach in ViewReach::ALL {
                assert_eq!(ViewHost::parse(text, reach), None, "{text:?}");
            }
        }
    }

    #[test]
    fn a_policy_has_what_was_declared_and_is_closed_without() {
        let policy = ViewHosts::default().policy();
        for closed in [
            "default-src 'none'",
            "script-src 'unsafe-inline';",
            "connect-src 'none'",
            "frame-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "object-src 'none'",
        ] {
            assert!(policy.contains(closed), "{closed} in {policy}");
        }
        assert!(
            policy.starts_with("sandbox allow-scripts allow-forms;"),
            "{policy}"
        );
        assert!(
            !policy.contains("allow-same-origin") && !policy.contains("'self';"),
            "{policy}"
        );
        let (hosts, left_out) = ViewHosts::declared(&json!({
            "connectDomains": ["https://api.example.com", "*", "https://api.example.com/"],
            "resourceDomains": ["https://a.example.com; connect-src *", 5],
            "frameDomains": ["https://video.example.com"],
            "baseUriDomains": "https://base.example.com",
        }));
        assert_eq!(left_out, ["*", "https://a.example.com; connect-src *", "5"]);
        assert_eq!(hosts.of(ViewReach::Connect).len(), 1);
        let policy = hosts.policy();
        assert!(
            policy.contains("connect-src https://api.example.com;"),
            "{policy}"
        );
        assert!(policy.contains("script-src 'unsafe-inline';"), "{policy}");
        assert!(
            policy.contains("frame-src https://video.example.com;"),
            "{policy}"
        );
    }

    #[test]
    fn the_allowlist_names_what_the_view_reaches_and_nothing_else() {
        assert_eq!(ViewHosts::default().connection_allowlist(), "()");
        let (hosts, _) = ViewHosts::declared(&json!({
            "connectDomains": ["wss://live.example.com", "https://api.example.com"],
            "resourceDomains": ["https://*.cdn.example.com:8443", "https://api.example.com"],
            "frameDomains": ["https://video.example.com"],
            "baseUriDomains": ["https://base.example.com"],
        }));
        assert_eq!(
            hosts.connection_allowlist(),
            "(\"https://*.cdn.example.com:8443\" \"https://api.example.com\" \
             \"https://live.example.com\" \"https://video.example.com\")"
        );
    }

    #[test]
    fn hosts_are_bounded() {
        let many: Vec<String> = (0..100)
            .map(|n| format!("https://h{n}.example.com"))
            .collect();
        let (hosts, left_out) = ViewHosts::declared(&json!({ "connectDomains": many }));
        assert_eq!(
            (hosts.of(ViewReach::Connect).len(), left_out.len()),
            (20, 20)
        );
    }
}
