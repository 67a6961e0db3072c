//! Makes the OpenID providers at which people sign in from the settings.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{self, OidcProvider, ScimLink};
use crate::gateway::{OidcDoor, OidcDoors};
use crate::net;
use crate::oidc::{Provider, ProviderSettings};
use crate::tenancy::{DEFAULT_TENANT, DirectoryLink, EntryRules, GroupRules, TenantChoice};

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
    let tenant = if said.tenants.is_empty() {
        let name = said.tenant.as_deref().unwrap_or(DEFAULT_TENANT);
        TenantChoice::Fixed(name.to_owned())
    } else {
        TenantChoice::ByDomain(said.tenants.clone())
    };
    OidcDoor {
        name: said.name.clone().unwrap_or_else(|| id.to_owned()),
        provider: Provider::new(settings, http),
        rules: EntryRules {
            tenant,
            roles: said.roles.clone(),
            groups: GroupRules {
                named: said.groups.clone(),
                has_same_names: said.same_groups,
            },
            default_role: said.default_role,
            makes_people: said.create_people,
            directory_link: match said.scim_link {
                ScimLink::None => None,
                ScimLink::Sub => Some(DirectoryLink::Subject),
                ScimLink::PreferredUsername => Some(DirectoryLink::PreferredUsername),
                ScimLink::Email => Some(DirectoryLink::Email),
            },
        },
    }
}
