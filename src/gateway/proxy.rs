//! Recognises people whom a proxy in front of the gateway has signed in, by the headers in which it names them.
//!
//! The headers count only if the connection itself comes from an address of the proxy: whatever a request says
//! about forwarding is ignored. A sign-in that was made by the headers stays bound to its account. Each request
//! with its cookie needs the same header, so that a browser whose person at the proxy changed shows nothing of
//! the one before.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use url::Url;

use super::GatewayState;
use super::error::ApiError;
use crate::domain::Code;
use crate::tenancy::{Account, AuthenticatedCaller, EntryRules};

/// The longest value of a header that names an account, in bytes.
const MAX_NAME: usize = 256;

/// The proxy that signs people in.
#[derive(Debug, Clone)]
pub struct ProxyDoor {
    /// The header that names the account.
    pub header: HeaderName,
    pub email_header: Option<HeaderName>,
    pub name_header: Option<HeaderName>,
    pub groups_header: Option<HeaderName>,
    /// The addresses from which the proxy connects.
    pub addresses: Vec<IpNet>,
    /// The issuer of its accounts.
    pub issuer: String,
    pub rules: EntryRules,
    /// The address to which a browser goes after it signed out here.
    pub logout_url: Option<Url>,
}

impl ProxyDoor {
    /// The account that the proxy names with a request; `None` if the request does not come from the proxy, or
    /// does not name exactly one account.
    pub(super) fn account(&self, parts: &Parts) -> Option<Account> {
        let ConnectInfo(peer) = parts.extensions.get::<ConnectInfo<SocketAddr>>()?;
        let address = peer.ip().to_canonical();
        if !self.addresses.iter().any(|net| net.contains(&address)) {
            return None;
        }
        self.named(&parts.headers)
    }

    fn named(&self, headers: &HeaderMap) -> Option<Account> {
        let subject = value(headers, &self.header).ok().flatten()?;
        let optional = |name: Option<&HeaderName>| match name {
            Some(name) => value(headers, name).ok(),
            None => Some(None),
        };
        let email = optional(self.email_header.as_ref())?;
        let name = optional(self.name_header.as_ref())?;
        let groups = optional(self.groups_header.as_ref())?;
        let groups = groups.as_deref().unwrap_or_default().split([',', '|']);
        let groups = groups.map(str::trim).filter(|group| !group.is_empty());
        Some(Account {
            issuer: self.issuer.clone(),
            preferred_username: Some(name.unwrap_or_else(|| subject.clone())),
            subject,
            sid: None,
            is_email_verified: email.is_some(),
            email,
            name: None,
            groups: groups.map(str::to_owned).collect(),
        })
    }
}

/// More than one value, or one that cannot name anything: somebody else may have added it.
struct Unclear;

/// The one value of a header; `None` if it is absent or empty.
fn value(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, Unclear> {
    let mut values = headers.get_all(name).iter();
    let one = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(one), None) => one,
        (Some(_), Some(_)) => {
            tracing::warn!(header = %name, "The sign-in proxy sent a header twice, so it does not count");
            return Err(Unclear);
        }
    };
    let text = std::str::from_utf8(one.as_bytes()).map_err(|_| Unclear)?;
    let text = text.trim();
    if text.contains(char::is_control) {
        return Err(Unclear);
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

/// The account that the sign-in proxy names with a request.
pub(super) fn account(state: &GatewayState, parts: &Parts) -> Option<Account> {
    let named = state.proxy.as_ref()?.account(parts)?;
    (named.subject.len() <= MAX_NAME).then_some(named)
}

/// Refuses a sign-in that is bound to an account at the proxy, unless the proxy names the same account with this
/// request.
pub(super) fn check(
    state: &GatewayState,
    parts: &Parts,
    entered: &AuthenticatedCaller,
) -> Result<(), ApiError> {
    let Some(bound) = &entered.proxied else {
        return Ok(());
    };
    if account(state, parts).is_some_and(|named| named.key() == *bound) {
        return Ok(());
    }
    let text = "this sign-in counts only with the account at the sign-in proxy by which it was made: \
                open Sepal at the proxy's address, and sign in there";
    Err(ApiError::new(Code::Unauthorized, text))
}

/// The address to which the browser of a sign-in goes after it signed out here.
pub(super) fn logout_url(state: &GatewayState, entered: &AuthenticatedCaller) -> Option<String> {
    entered.proxied.as_ref()?;
    let url = state.proxy.as_ref()?.logout_url.as_ref()?;
    Some(url.to_string())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderName, HeaderValue};

    use super::ProxyDoor;
    use crate::tenancy::{EntryRules, GroupRules, TenantChoice};

    fn door() -> ProxyDoor {
        ProxyDoor {
            header: HeaderName::from_static("x-user"),
            email_header: Some(HeaderName::from_static("x-email")),
            name_header: None,
            groups_header: Some(HeaderName::from_static("x-groups")),
            addresses: Vec::new(),
            issuer: "proxy:sso".to_owned(),
            rules: EntryRules {
                tenant: TenantChoice::Fixed("default".to_owned()),
                roles: std::collections::BTreeMap::new(),
                groups: GroupRules::default(),
                default_role: None,
                makes_people: true,
                directory_link: None,
            },
            logout_url: None,
        }
    }

    #[test]
    fn an_account_is_named_by_exactly_one_value() {
        let check = |lines: &[(&'static str, &[u8])], expected: Option<(&str, &[&str])>| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                let value = HeaderValue::from_bytes(value).unwrap();
                headers.append(HeaderName::from_static(name), value);
            }
            let found = door().named(&headers);
            let found = found.as_ref().map(|it| (it.subject.as_str(), &it.groups));
            let expected = expected.map(|(subject, groups)| {
                let groups: Vec<String> = groups.iter().map(|&it| it.to_owned()).collect();
                (subject, groups)
            });
            let expected = expected
                .as_ref()
                .map(|(subject, groups)| (*subject, groups));
            assert_eq!(found, expected, "{lines:?}");
        };
        check(&[], None);
        check(&[("x-user", b" ann ")], Some(("ann", &[])));
        check(&[("x-user", b"  ")], None);
        check(&[("x-user", b"ann"), ("x-user", b"ann")], None);
        check(&[("x-user", b"ann"), ("x-user", b"")], None);
        check(&[("x-user", "änn".as_bytes())], Some(("änn", &[])));
        check(&[("x-user", b"\xff")], None);
        check(&[("x-user", b"a\tb")], None);
        check(
            &[("x-user", b"ann"), ("x-groups", b"ops, the staff|x,")],
            Some(("ann", &["ops", "the staff", "x"])),
        );
        check(
            &[("x-user", b"ann"), ("x-groups", b"x"), ("x-groups", b"ops")],
            None,
        );
        check(
            &[("x-user", b"ann"), ("x-email", b"a@b.c"), ("x-email", b"")],
            None,
        );
    }
}
