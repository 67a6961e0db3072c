//! The proxy that signs people in.

use sepal_core::domain::Role;

use super::{check_refused, env, loaded, yaml};

const NEEDED: &str = "header: X-Forwarded-User, addresses: [10.1.2.3, 'fd00::/64']";

fn named(fields: &str) -> String {
    format!("auth: {{proxy: {{{fields}}}}}")
}

#[test]
fn no_proxy_signs_people_in_unless_a_header_is_named() {
    let proxy = loaded(&env(&[])).settings.auth.proxy;
    assert!(proxy.header.is_none() && proxy.addresses.is_empty());
    assert_eq!(proxy.default_role, Some(Role::Member));
}

#[test]
fn a_proxy_says_who_comes_where_in_which_role() {
    let text = format!(
        "{NEEDED}, emailHeader: X-Forwarded-Email, groupsHeader: X-Forwarded-Groups, \
         tenants: ['Acme.com=acme'], roles: ['CN=Ops,DC=acme=admin', staff=member], \
         groups: [staff=Everybody], defaultRole: none, createPeople: false, \
         logoutUrl: 'https://sso.test/oauth2/sign_out'"
    );
    let proxy = loaded(&yaml(&named(&text))).settings.auth.proxy;
    assert_eq!(proxy.header.as_deref(), Some("X-Forwarded-User"));
    let addresses: Vec<String> = proxy.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.1.2.3/32", "fd00::/64"]);
    assert_eq!(proxy.name, "proxy");
    assert_eq!(proxy.tenants["acme.com"], "acme");
    assert_eq!(proxy.roles["CN=Ops,DC=acme"], Role::Admin);
    assert_eq!(proxy.groups["staff"], "Everybody");
    assert_eq!(proxy.default_role, None);
    assert!(!proxy.create_people && !proxy.same_groups);
    let url = proxy.logout_url.unwrap();
    assert_eq!(url.as_str(), "https://sso.test/oauth2/sign_out");
}

#[test]
fn a_proxy_by_which_nobody_or_anybody_could_sign_in_is_refused() {
    let check = |fields: &str, pieces: &[&str]| check_refused(&yaml(&named(fields)), pieces);
    check(
        "header: X-User",
        &["auth.proxy.addresses", "anybody could send the header"],
    );
    check(
        "addresses: [10.0.0.1]",
        &["auth.proxy.header", "no header names the account"],
    );
    check(
        "header: X-User, addresses: ['0.0.0.0/0']",
        &["auth.proxy.addresses", "everybody could sign in"],
    );
    check(
        "header: X-User, addresses: [proxy.local]",
        &["auth.proxy.addresses", "neither"],
    );
    check(
        "header: 'X User', addresses: [10.0.0.1]",
        &["auth.proxy.header", "not the name of a header"],
    );
    check(
        "header: X-Forwarded-For, addresses: [10.0.0.1]",
        &["auth.proxy.header", "means something else"],
    );
    let with = |more: &str, pieces: &[&str]| check(&format!("{NEEDED}, {more}"), pieces);
    with(
        "emailHeader: x-forwarded-user",
        &["auth.proxy.email_header", "two settings name this header"],
    );
    with(
        "tenants: ['acme.com=acme']",
        &["auth.proxy.email_header", "by whose domain"],
    );
    with(
        "tenant: a, emailHeader: X-Email, tenants: ['acme.com=acme']",
        &["auth.proxy.tenants", "one of the two"],
    );
    with(
        "roles: [ops=admin]",
        &["auth.proxy.groups_header", "no header tells the groups"],
    );
    with(
        "groupsHeader: X-Groups, roles: [ops=king]",
        &["auth.proxy.roles", "`group=role`"],
    );
    with(
        "defaultRole: none",
        &["auth.proxy.default_role", "nobody could come in"],
    );
    with(
        "logoutUrl: 'javascript:alert(1)'",
        &["auth.proxy.logout_url", "not such an address"],
    );
    check_refused(
        &yaml(&format!("auth: {{mode: none, proxy: {{{NEEDED}}}}}")),
        &["auth.proxy.header", "nobody signs in"],
    );
}
