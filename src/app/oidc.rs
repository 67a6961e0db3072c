//! Makes the OpenID providers at which people sign in, and the proxy that signs people in, from the settings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::http::HeaderName;

use crate::config::{self, OidcProvider, ScimLink, SignInProxy};
use crate::gateway::{OidcDoor, OidcDoors, ProxyDoor};
use crate::net;
use crate::oidc::{Provider, ProviderSettings};
use crate::tenancy::{
    DEFAULT_TENANT, DirectoryLink, EntryRules, GroupRules, TenantChoice, proxy_issuer,
};

/// The time for which a provider may be silent.
const SILENCE: Duration = Duration::from_secs(10);

/// Makes the providers. None is asked for anything yet.
pub(super) fn doors(auth: &config::Auth) -> anyhow::Result<OidcDoors> {
    if auth.oidc.is_empty() {
        return Ok(OidcDoors::default());
    }
    let http = net::client(&net::Settings {
        read_timeout: Some(SILENCE),
        ..net::Settings::default()
    })?;
    let doors = auth.oidc.iter();
    let doors = doors.map(|(id, said)| (id.clone(), door(id, said, http.clone())));
    Ok(Arc::new(doors.collect()))
}

/// Makes the proxy that signs people in; `None` if the settings name none.
pub(super) fn proxy(said: &SignInProxy) -> anyhow::Result<Option<ProxyDoor>> {
    let Some(header) = &said.header else {
        return Ok(None);
    };
    let named = |name: &str| -> anyhow::Result<HeaderName> {
        let name = name.trim().parse();
        name.context("`auth.proxy` names a header that is not valid")
    };
    let optional = |name: Option<&str>| name.map(named).transpose();
    Ok(Some(ProxyDoor {
        header: named(header)?,
        email_header: optional(said.email_header.as_deref())?,
        name_header: optional(said.name_header.as_deref())?,
        groups_header: optional(said.groups_header.as_deref())?,
        addresses: said.addresses.clone(),
        issuer: proxy_issuer(&said.name),
        rules: EntryRules {
            tenant: tenant(said.tenant.as_deref(), &said.tenants),
            roles: said.roles.clone(),
            groups: GroupRules {
                named: said.groups.clone(),
                has_same_names: said.same_groups,
            },
            default_role: said.default_role,
            makes_people: said.create_people,
            directory_link: directory_link(said.scim_link),
        },
        logout_url: said.logout_url.clone(),
    }))
}

/// The tenant into which accounts come.
fn tenant(fixed: Option<&str>, by_domain: &BTreeMap<String, String>) -> TenantChoice {
    if by_domain.is_empty() {
        TenantChoice::Fixed(fixed.unwrap_or(DEFAULT_TENANT).to_owned())
    } else {
        TenantChoice::ByDomain(by_domain.clone())
    }
}

fn directory_link(said: ScimLink) -> Option<DirectoryLink> {
    match said {
        ScimLink::None => None,
        ScimLink::Sub => Some(DirectoryLink::Subject),
        ScimLink::PreferredUsername => Some(DirectoryLink::PreferredUsername),
        ScimLink::Email => Some(DirectoryLink::Email),
    }
}

fn door(id: &str, said: &OidcProvider, http: reqwest::Client) -> OidcDoor {
    let settings = ProviderSettings {
        issuer: said.issuer.clone(),
        client_id: said.client_id.clone(),
        client_secret: said.client_secret.clone(),
        scopes: said.scopes.clone(),
        groups_claim: said.groups_claim.clone(),
        needs_groups: !said.roles.is_empty() || !said.groups.is_empty() || said.same_groups,
        needs_email: !said.tenants.is_empty() || said.scim_link == ScimLink::Email,
    };
    OidcDoor {
        name: said.name.clone().unwrap_or_else(|| id.to_owned()),
        provider: Provider::new(settings, http),
        step_up_acr: said.step_up_acr.clone(),
        rules: EntryRules {
            tenant: tenant(said.tenant.as_deref(), &said.tenants),
            roles: said.roles.clone(),
            groups: GroupRules {
                named: said.groups.clone(),
                has_same_names: said.same_groups,
            },
            default_role: said.default_role,
            makes_people: said.create_people,
            directory_link: directory_link(said.scim_link),
        },
    }
}
