//! Reads `auth.oidc`: the file's OpenID providers, and the one of `SPL_OIDC_*`.

use serde_json::{Value, json};
use url::Url;

use super::{Fields, Member, Members, checked_field, has_problem, path};
use crate::check::is_name;
use crate::settings::is_loopback;
use crate::settings::pair;
use crate::table::OIDC;
use crate::value::{ResolvedValue, Values, variable};
use crate::{Problem, Source, Sources};

/// The entry that the variables make or fill.
const OF_VARIABLES: &str = "company";

/// The name on the button of that entry, unless the settings give one.
const USUAL_NAME: &str = "your company account";

const PREFIX: &str = "SPL_OIDC_";

const ROLES: [&str; 5] = ["viewer", "approver", "member", "admin", "owner"];

/// Returns true if a variable belongs to this family.
pub(crate) fn is_variable(name: &str) -> bool {
    OIDC.env.iter().any(|(known, _)| *known == name)
}

/// Reads the providers with their fields.
pub(crate) fn read(
    members: Vec<Member>,
    values: &Values,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) -> Members {
    let mut providers = Members::new();
    for member in members {
        if is_name(&member.name) {
            providers.insert(member.name, member.fields);
        } else {
            problems.push(Problem {
                path: OIDC.shown.to_owned(),
                source: Some(member.source),
                what: "the id cannot be used".to_owned(),
                accepted: "1 to 64 letters, digits, `_` or `-`".to_owned(),
            });
        }
    }
    let above = of_variables(sources, problems);
    if !above.is_empty() {
        let entry = providers.entry(OF_VARIABLES.to_owned());
        let entry = entry.or_insert_with(|| {
            let name = ResolvedValue {
                value: json!(USUAL_NAME),
                source: Source::Default,
            };
            Fields::from([("name", name)])
        });
        entry.extend(above);
    }
    let mode = values.get("auth.mode");
    let is_open = mode.is_some_and(|mode| mode.value == json!("none"));
    for (name, fields) in &providers {
        check(name, fields, is_open, problems);
    }
    providers
}

fn of_variables(sources: &Sources, problems: &mut Vec<Problem>) -> Fields {
    let mut fields = Fields::new();
    for field in OIDC.fields {
        let name = format!("{PREFIX}{}", field.name.to_ascii_uppercase());
        let Some((raw, source)) = variable([name.as_str()].into_iter(), sources) else {
            continue;
        };
        let checked = checked_field(&OIDC, OF_VARIABLES, field, (&raw, &source), problems);
        fields.extend(checked.map(|resolved| (field.name, resolved)));
    }
    fields
}

/// Refuses a provider at which nobody could sign in.
fn check(name: &str, fields: &Fields, is_open: bool, problems: &mut Vec<Problem>) {
    if has_problem(&OIDC, name, problems) {
        return;
    }
    let mut refuse = |field: &str, what: &str, accepted: &str| {
        problems.push(Problem {
            path: path(&OIDC, name, field),
            source: fields.get(field).map(|field| field.source.clone()),
            what: what.to_owned(),
            accepted: accepted.to_owned(),
        });
    };
    let text = |field: &str| fields.get(field).and_then(|it| it.value.as_str());
    for (field, accepted) in [
        ("issuer", "the provider's address"),
        (
            "client_id",
            "the id that the provider gave this installation",
        ),
        ("client_secret", "the secret that goes with `client_id`"),
    ] {
        if !fields.contains_key(field) {
            refuse(field, "an OpenID provider needs it", accepted);
        }
    }
    if text("issuer").is_some_and(|issuer| !is_protected(issuer)) {
        let what = "whoever listens on the way could sign in as anybody";
        let accepted = "an https address; http only for a provider on this machine (`localhost`)";
        refuse("issuer", what, accepted);
    }
    if is_open {
        let what = "nobody signs in, because `auth.mode` is `none`";
        refuse("issuer", what, "no provider, or `auth.mode: password`");
    }
    if fields.contains_key("tenant") && fields.contains_key("tenants") {
        let what = "`tenant` says already which tenant people come into";
        refuse("tenants", what, "one of the two");
    }
    let is_domain = |(domain, tenant): (&str, &str)| {
        domain.contains('.') && !domain.contains('@') && !tenant.contains('.')
    };
    if wrong_pair(fields, "tenants", is_domain) {
        let what = "an entry is not the domain of mail addresses with a tenant";
        refuse(
            "tenants",
            what,
            "`domain=tenant`, for example `acme.com=acme`",
        );
    }
    if wrong_pair(fields, "roles", |(_, role)| ROLES.contains(&role)) {
        let what = "an entry is not a group with a role";
        let accepted = "`group=role`, with `viewer`, `approver`, `member`, `admin` or `owner`";
        refuse("roles", what, accepted);
    }
    if wrong_pair(fields, "groups", |_| true) {
        let what = "an entry is not a group of the provider with a group here";
        refuse("groups", what, "`their group=our group`");
    }
    let is_empty = |field: &str| {
        let list = fields.get(field).and_then(|it| it.value.as_array());
        list.is_none_or(Vec::is_empty)
    };
    if text("default_role") == Some("none") && is_empty("roles") {
        let what = "nobody could come in, because no group has a role in `roles`";
        refuse("default_role", what, "another role, or `roles` of groups");
    }
}

/// Returns true if an entry of a list is not a pair, or not one that fits.
fn wrong_pair(fields: &Fields, field: &str, fits: impl Fn((&str, &str)) -> bool) -> bool {
    let list = fields.get(field).and_then(|it| it.value.as_array());
    let mut texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.any(|text| !pair(text).is_some_and(&fits))
}

/// Returns true if nobody on the way to the address can listen.
fn is_protected(address: &str) -> bool {
    let Ok(url) = address.parse::<Url>() else {
        return false;
    };
    url.scheme() == "https" || url.host_str().is_some_and(is_loopback)
}
