//! Parses the hosts of addresses, so strictly that no client could read another host.

use super::Fit;

/// Returns how surely `text` is an address at `pattern`.
pub(super) fn fit(text: &str, pattern: &str) -> Fit {
    let Some(host) = host_of(text) else {
        return Fit::Unsure;
    };
    let pattern = pattern.to_ascii_lowercase();
    match pattern.strip_prefix("*.") {
        None => (host == pattern).into(),
        Some(domain) => host
            .strip_suffix(domain)
            .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            .into(),
    }
}

/// Returns the host of an `http` or `https` address, in lower case. `None` for everything that clients might
/// read differently: user names, brackets, escapes, other alphabets.
pub(crate) fn host_of(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))?;
    if text.contains(|sign: char| sign.is_whitespace() || sign.is_control() || sign == '\\') {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    let is_sure = is_host(host) && port.bytes().all(|byte| byte.is_ascii_digit());
    is_sure.then(|| host.to_owned())
}

/// Returns true if a rule may name this host.
pub(crate) fn is_host_pattern(pattern: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    is_host(pattern.strip_prefix("*.").unwrap_or(&pattern))
}

fn is_host(host: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    // `0x7f.1` and `127.1` are other notations of IP addresses.
    let is_number = |label: &str| label.starts_with(|sign: char| sign.is_ascii_digit());
    let last = host.rsplit('.').next().unwrap_or_default();
    host.split('.').all(is_label)
        && (!is_number(last) || host.parse::<std::net::Ipv4Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::{Fit, fit};

    #[test]
    fn a_host_is_read_only_where_every_client_agrees() {
        for (text, pattern, expected) in [
            ("https://example.com/a", "example.com", Fit::Yes),
            ("HTTPS://Example.COM:8443?x", "example.com", Fit::Yes),
            ("https://example.com.evil.example/", "example.com", Fit::No),
            ("https://evil.example/example.com", "example.com", Fit::No),
            ("https://api.example.com", "*.example.com", Fit::Yes),
            ("https://example.com", "*.example.com", Fit::No),
            ("https://notexample.com", "*.example.com", Fit::No),
            (
                "https://example.com@evil.example",
                "example.com",
                Fit::Unsure,
            ),
            (
                "https://example.com\\@evil.example",
                "example.com",
                Fit::Unsure,
            ),
            ("https:example.com", "example.com", Fit::Unsure),
            ("https://example.com.", "example.com", Fit::Unsure),
            ("https://ex%61mple.com", "example.com", Fit::Unsure),
            ("https://exämple.com", "example.com", Fit::Unsure),
            ("https://[::1]/", "example.com", Fit::Unsure),
            ("https://127.1/", "example.com", Fit::Unsure),
            ("https://127.0.0.1/", "127.0.0.1", Fit::Yes),
            ("ftp://example.com", "example.com", Fit::Unsure),
            (" https://example.com", "example.com", Fit::Unsure),
        ] {
            assert_eq!(fit(text, pattern), expected, "{text} {pattern}");
        }
    }
}
