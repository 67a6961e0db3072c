//! Derives defaults that depend on other settings, and finds contradictions between settings.

use serde_json::{Value, json};

use super::settings::{is_loopback, pair};
use super::value::{ResolvedValue, Values};
use super::{Preset, Problem, Source, Sources};

const HOST: &str = "runtime.transports.http.host";
/// The shortest secret key: a shorter one could be guessed by an attacker who has the database.
const SECRET_KEY_CHARACTERS: usize = 32;

const HTTP_ENABLED: &str = "runtime.transports.http.enabled";
const AUTH_MODE: &str = "auth.mode";

/// Fills in the defaults that depend on other settings.
pub(super) fn fill(values: &mut Values, sources: &Sources) {
    fill_preset(values, sources.preset);
    let in_open_container = sources.in_container && text(values, AUTH_MODE) != Some("none");
    let (host, why) = if in_open_container {
        ("0.0.0.0", Source::Derived("default in a container"))
    } else {
        ("localhost", Source::Default)
    };
    fill_one(values, HOST, host, why);
    let version = env!("CARGO_PKG_VERSION");
    fill_one(values, "agent.version", version, Source::Default);
    let image = concat!("sepal/sandbox:", env!("CARGO_PKG_VERSION"));
    fill_one(values, "sandbox.image", image, Source::Default);
    let image = concat!("sepal/packages:", env!("CARGO_PKG_VERSION"));
    fill_one(values, "sandbox.packages.image", image, Source::Default);
    if let Some(folder) = text(values, "store.data_dir") {
        let url = format!("sqlite://{}/sepal.db", folder.trim_end_matches('/'));
        let why = Source::Derived("default below store.data_dir");
        fill_one(values, "store.database_url", &url, why);
    }
    // Without sign-in there is only one user, whose share is the total.
    let is_alone = text(values, AUTH_MODE) == Some("none");
    for (key, total, part) in SHARES {
        let is_address = key.ends_with("_per_address");
        let part = if is_alone && !is_address {
            (1, 1)
        } else {
            *part
        };
        fill_share(values, (key, total, part));
    }
}

/// The default shares of totals that one user, one tenant or one address may have: the key, its total, and
/// the fraction. A quarter is much for one person; three quarters leave room for other tenants without taking
/// half of the machine from a sole tenant.
const SHARES: &[(&str, &str, (u64, u64))] = &[
    (
        "runtime.limits.sockets_per_tenant",
        "runtime.limits.sockets",
        (3, 4),
    ),
    (
        "runtime.limits.waiting_bytes_per_user",
        "runtime.limits.waiting_bytes",
        (1, 4),
    ),
    (
        "runtime.limits.waiting_bytes_per_tenant",
        "runtime.limits.waiting_bytes",
        (3, 4),
    ),
    (
        "runtime.limits.sessions_per_user",
        "runtime.limits.sessions",
        (1, 4),
    ),
    (
        "runtime.limits.sessions_per_tenant",
        "runtime.limits.sessions",
        (3, 4),
    ),
    ("runtime.limits.sandboxes_per_user", "sandbox.max", (1, 4)),
    ("runtime.limits.sandboxes_per_tenant", "sandbox.max", (3, 4)),
    (
        "runtime.limits.questions_per_user",
        "runtime.limits.questions",
        (1, 4),
    ),
    (
        "runtime.limits.questions_per_tenant",
        "runtime.limits.questions",
        (3, 4),
    ),
    (
        "runtime.limits.streams_per_user",
        "runtime.limits.streams",
        (1, 4),
    ),
    (
        "runtime.limits.streams_per_tenant",
        "runtime.limits.streams",
        (3, 4),
    ),
    (
        "runtime.limits.connections_per_address",
        "runtime.limits.connections",
        (1, 10),
    ),
];

/// Sets a share that is not configured to its fraction of the total, rounded up; 0 (no limit) if the total
/// has no limit.
fn fill_share(values: &mut Values, (key, total, (parts, of)): (&str, &str, (u64, u64))) {
    let total = values.get(total).and_then(|total| total.value.as_u64());
    let share = total.unwrap_or_default().saturating_mul(parts).div_ceil(of);
    if let Some(resolved) = values.get_mut(key)
        && resolved.value.is_null()
    {
        *resolved = ResolvedValue {
            value: json!(share),
            source: Source::Derived("default, a part of the total"),
        };
    }
}

/// Sets the defaults of `sepal agent` for keys that are not configured.
fn fill_preset(values: &mut Values, preset: Preset) {
    let of_agent = [
        ("agent.chat.max_tokens", json!(0)),
        ("agent.chat.max_messages", json!(0)),
        ("agent.chat.compaction_strategy", json!(["delete-old"])),
    ];
    let of_daemon = [("runtime.log.output", json!("stdout"))];
    let (agent, daemon) = match preset {
        Preset::Gateway => (&[][..], &[][..]),
        Preset::Agent => (&of_agent[..], &[][..]),
        Preset::Daemon => (&of_agent[..], &of_daemon[..]),
    };
    for (key, value) in agent.iter().chain(daemon) {
        if let Some(resolved) = values.get_mut(key)
            && resolved.source == Source::Default
        {
            *resolved = ResolvedValue {
                value: value.clone(),
                source: Source::Derived("default of `sepal agent`"),
            };
        }
    }
}

/// Sets a key that is not configured.
fn fill_one(values: &mut Values, key: &'static str, value: &str, source: Source) {
    if let Some(resolved) = values.get_mut(key)
        && resolved.value.is_null()
    {
        *resolved = ResolvedValue {
            value: json!(value),
            source,
        };
    }
}

fn text<'a>(values: &'a Values, key: &str) -> Option<&'a str> {
    values.get(key)?.value.as_str()
}

fn number(values: &Values, key: &str) -> Option<f64> {
    values.get(key)?.value.as_f64()
}

/// Refuses values that are valid alone but contradict each other. A key that already has a problem has no
/// value here.
pub(super) fn cross_check(values: &Values, problems: &mut Vec<Problem>) {
    let mut refuse = |key: &str, what: &str, accepted: &str| {
        let source = values.get(key).map(|resolved| resolved.source.clone());
        problems.push(Problem {
            path: key.to_owned(),
            source: source.filter(|source| *source != Source::Default),
            what: what.to_owned(),
            accepted: accepted.to_owned(),
        });
    };
    if text(values, AUTH_MODE) == Some("none") {
        check_open_door(values, &mut refuse);
    }
    let is_off = |key| values.get(key).is_some_and(|on| on.value == json!(false));
    if is_off(HTTP_ENABLED) && is_off("runtime.transports.stdio.enabled") {
        let what = "nothing would run, because `runtime.transports.stdio.enabled` is off too";
        refuse(HTTP_ENABLED, what, "`true` for one of the two");
    }
    let is_short = |key: &str| key.chars().count() < SECRET_KEY_CHARACTERS;
    if text(values, "auth.secret_key").is_some_and(is_short) {
        let what = "the key is too short to keep secrets";
        let accepted = "at least 32 characters, for example of `openssl rand -hex 32`";
        refuse("auth.secret_key", what, accepted);
    }
    let is_set = |key: &str| values.get(key).is_some_and(|set| !set.value.is_null());
    if is_set("notifications.smtp.url") && !is_set("notifications.smtp.from") {
        let what = "there is a relay for mail and nobody who sends it";
        let accepted = "an address like `Sepal <sepal@example.org>`";
        refuse("notifications.smtp.from", what, accepted);
    }
    check_proxy(values, &mut refuse);
    let (initial, max) = (
        "agent.llm.retry.initial_backoff",
        "agent.llm.retry.max_backoff",
    );
    if number(values, initial) > number(values, max) && number(values, max).is_some() {
        refuse(
            max,
            "the longest wait is shorter than the first",
            "at least `initial_backoff`",
        );
    }
}

/// Headers that cannot name an account: browsers, other proxies and the gateway itself give them a meaning.
const TAKEN_HEADERS: &[&str] = &[
    "authorization",
    "cookie",
    "host",
    "origin",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-csrf-token",
];

/// Refuses a sign-in proxy by which nobody or anybody could sign in.
fn check_proxy(values: &Values, refuse: &mut impl FnMut(&str, &str, &str)) {
    let key = |field: &str| format!("auth.proxy.{field}");
    let said = |field: &str| text(values, &key(field));
    let list = |field: &str| {
        let found = values.get(key(field).as_str());
        found.and_then(|it| it.value.as_array())
    };
    let items = |field: &str| {
        let texts = list(field).into_iter().flatten();
        texts.filter_map(Value::as_str).collect::<Vec<_>>()
    };
    if said("header").is_none() {
        if !items("addresses").is_empty() {
            let what = "no header names the account";
            refuse(&key("header"), what, "a header such as `X-Forwarded-User`");
        }
        return;
    }
    let mut seen = Vec::new();
    for field in ["header", "email_header", "name_header", "groups_header"] {
        let Some(name) = said(field) else { continue };
        let name = name.trim().to_ascii_lowercase();
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > 64 || !name.bytes().all(is_letter) {
            let accepted = "the name of a header: letters, digits, `-` and `_`";
            refuse(&key(field), "it is not the name of a header", accepted);
        } else if TAKEN_HEADERS.contains(&name.as_str()) {
            let accepted = "a header that only the proxy sets, such as `X-Forwarded-User`";
            refuse(&key(field), "this header means something else", accepted);
        } else if seen.contains(&name) {
            refuse(
                &key(field),
                "two settings name this header",
                "one header each",
            );
        }
        seen.push(name);
    }
    if text(values, AUTH_MODE) == Some("none") {
        let what = "nobody signs in, because `auth.mode` is `none`";
        refuse(&key("header"), what, "no header, or `auth.mode: password`");
    }
    let addresses = items("addresses");
    // An address that is not valid was told already.
    if list("addresses").is_some_and(Vec::is_empty) {
        let what = "without it, anybody could send the header";
        refuse(&key("addresses"), what, "the addresses of the proxy");
    }
    if addresses.iter().any(|net| net.ends_with("/0")) {
        let what = "everybody could sign in as anybody";
        refuse(&key("addresses"), what, "the addresses of the proxy alone");
    }
    if said("tenant").is_some() && !items("tenants").is_empty() {
        let what = "`tenant` says already which tenant people come into";
        refuse(&key("tenants"), what, "one of the two");
    }
    let fits = |field: &str, fits: fn((&str, &str)) -> bool| {
        items(field)
            .into_iter()
            .all(|it| pair(it).is_some_and(fits))
    };
    if !fits("tenants", |(domain, _)| {
        domain.contains('.') && !domain.contains('@')
    }) {
        let what = "an entry is not the domain of mail addresses with a tenant";
        let accepted = "`domain=tenant`, for example `acme.com=acme`";
        refuse(&key("tenants"), what, accepted);
    }
    if !fits("roles", |(_, role)| {
        ["viewer", "member", "admin", "owner"].contains(&role)
    }) {
        let what = "an entry is not a group with a role";
        let accepted = "`group=role`, with `viewer`, `member`, `admin` or `owner`";
        refuse(&key("roles"), what, accepted);
    }
    if !fits("groups", |_| true) {
        let what = "an entry is not a group of the proxy with a group here";
        refuse(&key("groups"), what, "`their group=our group`");
    }
    if !items("tenants").is_empty() && said("email_header").is_none() {
        let what = "no header tells the mail address, by whose domain the tenant is chosen";
        refuse(
            &key("email_header"),
            what,
            "the header with the mail address",
        );
    }
    let is_same = values.get("auth.proxy.same_groups");
    let needs_groups = ["roles", "groups"].iter().any(|it| !items(it).is_empty())
        || is_same.is_some_and(|it| it.value == json!(true));
    if needs_groups && said("groups_header").is_none() {
        let what = "no header tells the groups";
        refuse(&key("groups_header"), what, "the header with the groups");
    }
    if said("default_role") == Some("none") && items("roles").is_empty() {
        let what = "nobody could come in, because no group has a role in `roles`";
        refuse(
            &key("default_role"),
            what,
            "another role, or `roles` of groups",
        );
    }
}

/// Refuses addresses that others can reach if `auth.mode` is `none`, because then everybody who can reach the
/// gateway can use it.
fn check_open_door(values: &Values, refuse: &mut impl FnMut(&str, &str, &str)) {
    let what = "everybody could use the gateway, because `auth.mode` is `none`";
    if text(values, HOST).is_some_and(|host| !is_loopback(host)) {
        refuse(
            HOST,
            what,
            "`localhost` or another loopback address, or `auth.mode: password`",
        );
    }
    let public =
        text(values, "runtime.http.public_url").and_then(|url| url.parse::<url::Url>().ok());
    let host = public.as_ref().and_then(|url| url.host_str());
    if host.is_some_and(|host| !is_loopback(host)) {
        refuse(
            "runtime.http.public_url",
            what,
            "none, or `auth.mode: password`",
        );
    }
    let proxies = values.get("runtime.http.trusted_proxies");
    if proxies.is_some_and(|list| list.value != Value::Array(Vec::new())) {
        refuse(
            "runtime.http.trusted_proxies",
            what,
            "none, or `auth.mode: password`",
        );
    }
}
