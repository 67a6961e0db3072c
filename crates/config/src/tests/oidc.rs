//! OpenID providers of the settings.

use secrecy::ExposeSecret as _;
use sepal_core::domain::Role;

use super::{check_refused, env, loaded, yaml};
use crate::ScimLink;

const NEEDED: &str = "issuer: 'https://op.test', client_id: c, client_secret: hush";

fn named(providers: &str) -> String {
    format!("auth: {{oidc: {{{providers}}}}}")
}

#[test]
fn three_variables_are_enough() {
    let variables = env(&[
        ("SPL_OIDC_ISSUER", "https://op.test/realms/acme"),
        ("SPL_OIDC_CLIENT_ID", "sepal"),
        ("SPL_OIDC_CLIENT_SECRET", "hush"),
    ]);
    let loaded = loaded(&variables);
    let provider = &loaded.settings.auth.oidc["company"];
    assert_eq!(provider.name.as_deref(), Some("your company account"));
    assert_eq!(provider.issuer.as_str(), "https://op.test/realms/acme");
    assert_eq!(provider.client_id, "sepal");
    assert_eq!(provider.client_secret.expose_secret(), "hush");
    assert_eq!(provider.scopes, ["openid", "profile", "email"]);
    assert_eq!(provider.default_role, Some(Role::Member));
    assert_eq!(provider.groups_claim, "groups");
    assert!(provider.create_people && provider.roles.is_empty());
    assert_eq!(provider.scim_link, ScimLink::None);
    assert!(provider.tenant.is_none() && provider.tenants.is_empty());
    assert!(provider.step_up_acr.is_empty());
    assert!(!loaded.shown.contains("hush"), "{}", loaded.shown);
}

#[test]
fn a_provider_says_who_comes_where_in_which_role() {
    let text = format!(
        "acme: {{{NEEDED}, name: Acme, tenants: ['Acme.com=acme', 'b.test=b'], \
         groupsClaim: realm_access.roles, roles: ['CN=Ops,DC=acme=admin', staff=member], \
         defaultRole: none, createPeople: false, scimLink: preferred_username, scopes: openid groups, \
         stepUpAcr: [phr, mfa]}}"
    );
    let loaded = loaded(&yaml(&named(&text)));
    let provider = &loaded.settings.auth.oidc["acme"];
    assert_eq!(provider.tenants["acme.com"], "acme");
    assert_eq!(provider.roles["CN=Ops,DC=acme"], Role::Admin);
    assert_eq!(provider.roles["staff"], Role::Member);
    assert_eq!(provider.default_role, None);
    assert_eq!(provider.scopes, ["openid", "groups"]);
    assert_eq!(provider.step_up_acr, ["phr", "mfa"]);
    assert!(!provider.create_people);
    assert_eq!(provider.scim_link, ScimLink::PreferredUsername);
}

#[test]
fn a_provider_at_which_nobody_could_sign_in_is_refused() {
    let check = |fields: &str, pieces: &[&str]| {
        check_refused(&yaml(&named(&format!("a: {{{fields}}}"))), pieces);
    };
    check(
        "client_id: c, client_secret: s",
        &["auth.oidc.a.issuer", "needs it"],
    );
    check(
        "issuer: 'https://op.test', client_id: c",
        &["auth.oidc.a.client_secret", "needs it"],
    );
    check(
        "issuer: 'http://op.test', client_id: c, client_secret: s",
        &["auth.oidc.a.issuer", "an https address"],
    );
    let with = |more: &str| format!("{NEEDED}, {more}");
    check(
        &with("roles: [staff]"),
        &["auth.oidc.a.roles", "`group=role`"],
    );
    check(
        &with("roles: [staff=king]"),
        &["auth.oidc.a.roles", "`group=role`"],
    );
    check(
        &with("tenants: ['@acme.com=acme']"),
        &["auth.oidc.a.tenants", "`domain=tenant`"],
    );
    check(
        &with("tenant: a, tenants: ['acme.com=acme']"),
        &["auth.oidc.a.tenants", "one of the two"],
    );
    check(
        &with("default_role: none"),
        &["auth.oidc.a.default_role", "nobody could come in"],
    );
    check(
        &with("default_role: king"),
        &["auth.oidc.a.default_role", "`viewer`"],
    );
    check_refused(
        &yaml(&format!("auth: {{mode: none, oidc: {{a: {{{NEEDED}}}}}}}")),
        &["auth.oidc.a.issuer", "nobody signs in"],
    );
    check_refused(
        &yaml(&named("'a b': {}")),
        &["auth.oidc.<id>", "the id cannot be used"],
    );
    check_refused(
        &env(&[("SPL_OIDC_ISUER", "https://op.test")]),
        &["SPL_OIDC_ISUER", "did you mean `SPL_OIDC_ISSUER`?"],
    );
    let local = "issuer: 'http://127.0.0.1:9000', client_id: c, client_secret: s";
    loaded(&yaml(&named(&format!("a: {{{local}}}"))));
}
