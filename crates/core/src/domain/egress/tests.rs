//! Tests parsing, matching and comparing entries of allow-lists.

use proptest::prelude::*;

use super::*;

#[test]
fn entries_are_read_or_refused_with_the_reason() {
    let check = |text: &str, expected: Result<&str, HostProblem>| {
        let read = text.parse::<AllowedHost>().map(|host| host.to_string());
        assert_eq!(read, expected.map(str::to_owned), "{text}");
    };
    check("api.github.com", Ok("api.github.com"));
    check("API.GitHub.com.", Ok("api.github.com"));
    check("api.github.com:8443", Ok("api.github.com:8443"));
    check("*.example.com:8443", Ok("*.example.com:8443"));
    check("localhost:3000", Ok("localhost:3000"));
    check("xn--bcher-kva.example", Ok("xn--bcher-kva.example"));
    check("", Err(HostProblem::Empty));
    check(".", Err(HostProblem::Empty));
    check("https://api.github.com", Err(HostProblem::Scheme));
    check("tcp://DB.example.com:5432", Ok("tcp://db.example.com:5432"));
    check("tcp://*.example.com:22", Ok("tcp://*.example.com:22"));
    check("tcp://db.example.com", Err(HostProblem::RawPort));
    check("tcp://", Err(HostProblem::Empty));
    check("tcp://https://a.example:1", Err(HostProblem::Scheme));
    check("api.github.com/repos", Err(HostProblem::Path));
    check("me@api.github.com", Err(HostProblem::UserName));
    check("internet", Err(HostProblem::Bare));
    check("intranet:443", Ok("intranet:443"));
    check("*", Err(HostProblem::TooWide));
    check("*.com", Err(HostProblem::TooWide));
    check("*:443", Err(HostProblem::TooWide));
    check("a.*.com", Err(HostProblem::Wildcard));
    check("*api.example.com", Err(HostProblem::Wildcard));
    check("10.0.0.1", Err(HostProblem::Address));
    check("127.1", Err(HostProblem::Address));
    check("0x7f.0x1", Err(HostProblem::Address));
    check("2130706433", Err(HostProblem::Address));
    check("[::1]:80", Err(HostProblem::Address));
    check("fe80::1", Err(HostProblem::Address));
    check("api.github.com:0", Err(HostProblem::Port));
    check("api.github.com:", Err(HostProblem::Port));
    check("api.github.com:+1", Err(HostProblem::Port));
    check("api.github.com:65536", Err(HostProblem::Port));
    check("api..com", Err(HostProblem::Name));
    check("-a.com", Err(HostProblem::Name));
    check("bücher.example", Err(HostProblem::Name));
    check("a b.com", Err(HostProblem::Name));
    check(&"a".repeat(300), Err(HostProblem::Name));
}

#[test]
fn an_entry_covers_what_it_stands_for_and_nothing_more() {
    let check = |wide: &str, narrow: &str, expected| {
        let (wide, narrow) = (wide.parse::<AllowedHost>(), narrow.parse::<AllowedHost>());
        assert_eq!(wide.unwrap().covers(&narrow.unwrap()), expected);
    };
    let (exactly, below) = (Some(HostMatch::Exactly), Some(HostMatch::Below));
    check("pypi.org", "pypi.org", exactly);
    check("pypi.org", "PyPI.org:443", exactly);
    check("pypi.org", "pypi.org:22", None);
    check("pypi.org:443", "pypi.org", None);
    check("pypi.org:8443", "pypi.org:8443", exactly);
    check("pypi.org", "*.pypi.org", None);
    check("pypi.org", "test.pypi.org", None);
    check("*.pypi.org", "*.pypi.org", below);
    check("*.pypi.org", "*.test.pypi.org", below);
    check("*.pypi.org", "test.pypi.org:80", below);
    check("*.pypi.org", "pypi.org", None);
    check("*.pypi.org", "evilpypi.org", None);
    check("*.pypi.org:8443", "test.pypi.org", None);
    check("tcp://pypi.org:443", "pypi.org:443", exactly);
    check("pypi.org:443", "tcp://pypi.org:443", None);
    check("pypi.org", "tcp://pypi.org:443", None);
}

#[test]
fn a_host_is_found_by_name_and_port() {
    let list = ["api.github.com", "db.example.com:5432", "*.example.org"];
    let list = AllowedHosts::parse(list).unwrap();
    let check = |host: &str, port, expected| {
        let found = canonical_name(host)
            .ok()
            .and_then(|it| list.find(&it, port));
        assert_eq!(found, expected, "{host}:{port}");
    };
    check("api.github.com", 443, Some(HostMatch::Exactly));
    check("Api.GitHub.Com.", 80, Some(HostMatch::Exactly));
    check("api.github.com", 22, None);
    check("evil-api.github.com", 443, None);
    check("api.github.com.evil.example", 443, None);
    check("db.example.com", 5432, Some(HostMatch::Exactly));
    check("db.example.com", 443, None);
    check("a.example.org", 443, Some(HostMatch::Below));
    check("a.b.example.org", 80, Some(HostMatch::Below));
    check("example.org", 443, None);
    check("badexample.org", 443, None);
    check("127.0.0.1", 443, None);
}

proptest! {
    /// For any input, an entry matches its own host and no host that only looks similar.
    #[test]
    fn an_entry_finds_itself_only(text in ".{0,40}", name in "[a-z0-9.-]{1,20}", port in 1_u16..) {
        if let Ok(host) = text.parse::<AllowedHost>() {
            prop_assert_eq!(host.to_string().parse::<AllowedHost>(), Ok(host));
        }
        let Ok(canonical) = canonical_name(&name) else { return Ok(()) };
        let again = canonical_name(&canonical);
        prop_assert_eq!(again.as_ref(), Ok(&canonical));
        let list = AllowedHosts::parse([format!("{canonical}:{port}")]).unwrap();
        prop_assert_eq!(list.find(&canonical, port), Some(HostMatch::Exactly));
        prop_assert_eq!(list.find(&format!("a.{canonical}"), port), None);
        prop_assert_eq!(list.find(&format!("{canonical}.a"), port), None);
        prop_assert_eq!(list.find(&canonical, port.wrapping_add(1)), None);
    }
}

#[test]
fn an_empty_list_finds_nothing_and_doubles_are_kept_once() {
    assert_eq!(AllowedHosts::default().find("a.example", 443), None);
    let list = AllowedHosts::parse(["a.example", "A.example.", "b.example"]).unwrap();
    assert_eq!(list.to_string(), "a.example, b.example");
}
