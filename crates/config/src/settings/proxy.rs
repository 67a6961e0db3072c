//! `auth.proxy`: a proxy in front of the gateway that signs people in, and names them in headers.

use std::collections::BTreeMap;

use ipnet::IpNet;
use sepal_core::domain::Role;
use serde::Deserialize;
use url::Url;

use super::oidc::{self, ScimLink};
use super::read;

/// `auth.proxy`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignInProxy {
    /// The header that names the account; `None` = no proxy signs people in.
    pub header: Option<String>,
    /// The addresses from which the proxy connects.
    #[serde(deserialize_with = "read::parsed_list")]
    pub addresses: Vec<IpNet>,
    /// The name of the proxy in accounts.
    pub name: String,
    pub email_header: Option<String>,
    pub name_header: Option<String>,
    pub groups_header: Option<String>,
    /// The name of the tenant that people come into; `None` = the default tenant, or `tenants`.
    pub tenant: Option<String>,
    /// The names of tenants by the domain of the mail address, in lower case; empty = `tenant` counts.
    #[serde(deserialize_with = "oidc::domains")]
    pub tenants: BTreeMap<String, String>,
    /// The roles of groups.
    #[serde(deserialize_with = "oidc::roles")]
    pub roles: BTreeMap<String, Role>,
    /// The groups here that the proxy's groups fill.
    #[serde(deserialize_with = "oidc::group_names")]
    pub groups: BTreeMap<String, String>,
    /// True if a group of the proxy fills the group of the same name.
    pub same_groups: bool,
    /// The role of people without such a group; `None` = they are not let in.
    #[serde(deserialize_with = "oidc::role_or_none")]
    pub default_role: Option<Role>,
    /// True if a person is made when an account first signs in.
    pub create_people: bool,
    /// The part of an account that names the person whom the tenant's directory made for it.
    pub scim_link: ScimLink,
    /// The address to which a browser goes after it signed out here.
    #[serde(deserialize_with = "read::parsed_option")]
    pub logout_url: Option<Url>,
}
