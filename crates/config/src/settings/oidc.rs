//! `auth.oidc`: the OpenID providers at which people sign in.

use std::collections::BTreeMap;

use secrecy::SecretString;
use sepal_core::domain::Role;
use serde::de::{Error as _, IntoDeserializer as _};
use serde::{Deserialize, Deserializer};
use url::Url;

use super::read;

/// One entry of `auth.oidc`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcProvider {
    /// The name on the button; `None` = the id.
    #[serde(default)]
    pub name: Option<String>,
    #[serde(deserialize_with = "read::parsed")]
    pub issuer: Url,
    pub client_id: String,
    pub client_secret: SecretString,
    /// The scopes to ask for.
    #[serde(default = "usual_scopes")]
    pub scopes: Vec<String>,
    /// The name of the tenant that people come into; `None` = the default tenant, or `tenants`.
    #[serde(default)]
    pub tenant: Option<String>,
    /// The names of tenants by the domain of the mail address, in lower case; empty = `tenant` counts.
    #[serde(default, deserialize_with = "domains")]
    pub tenants: BTreeMap<String, String>,
    /// The claim with a person's groups.
    #[serde(default = "usual_claim")]
    pub groups_claim: String,
    /// The roles of groups.
    #[serde(default, deserialize_with = "roles")]
    pub roles: BTreeMap<String, Role>,
    /// The groups here that the provider's groups fill; empty = none by this list.
    #[serde(default, deserialize_with = "group_names")]
    pub groups: BTreeMap<String, String>,
    /// True if a group of the provider fills the group of the same name.
    #[serde(default)]
    pub same_groups: bool,
    /// The role of people without such a group; `None` = they are not let in.
    #[serde(default = "usual_role", deserialize_with = "role_or_none")]
    pub default_role: Option<Role>,
    /// True if a person is made when an account first signs in.
    #[serde(default = "yes")]
    pub create_people: bool,
    /// The claim by which an account belongs to a person whom the tenant's directory made.
    #[serde(default)]
    pub scim_link: ScimLink,
    /// The ways in which the provider has to check a person who confirms something (`acr`); empty = any.
    #[serde(default)]
    pub step_up_acr: Vec<String>,
}

/// The claim by which an account belongs to a person whom the tenant's directory made (SCIM).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScimLink {
    /// No account does.
    #[default]
    None,
    /// The account's id equals the person's `externalId`.
    Sub,
    /// The account's user name equals the person's `userName`.
    PreferredUsername,
    /// The account's verified mail address equals the person's `userName`.
    Email,
}

/// Splits `key=value` at the last `=`: keys of directories hold some themselves.
pub(crate) fn pair(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.rsplit_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    (!key.is_empty() && !value.is_empty()).then_some((key, value))
}

fn usual_scopes() -> Vec<String> {
    ["openid", "profile", "email"].map(str::to_owned).into()
}

fn usual_claim() -> String {
    "groups".to_owned()
}

#[expect(clippy::unnecessary_wraps, reason = "the type of the field")]
fn usual_role() -> Option<Role> {
    Some(Role::Member)
}

fn yes() -> bool {
    true
}

fn pairs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, String)>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let pairs = texts.iter().map(|text| {
        let (key, value) = pair(text).ok_or_else(|| D::Error::custom("it is no pair"))?;
        Ok((key.to_owned(), value.to_owned()))
    });
    pairs.collect()
}

pub(super) fn domains<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let pairs = pairs(from)?.into_iter();
    Ok(pairs
        .map(|(domain, tenant)| (domain.to_lowercase(), tenant))
        .collect())
}

pub(super) fn roles<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, Role>, D::Error> {
    let roles = pairs(from)?.into_iter().map(|(group, role)| {
        let role = Role::deserialize(role.into_deserializer())?;
        Ok((group, role))
    });
    roles.collect()
}

pub(super) fn group_names<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    Ok(pairs(from)?.into_iter().collect())
}

pub(super) fn role_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Role>, D::Error> {
    let word = String::deserialize(from)?;
    if word == "none" {
        return Ok(None);
    }
    Role::deserialize(word.into_deserializer()).map(Some)
}
