//! Addresses and keys.

use std::time::Duration;

use secrecy::SecretString;

use super::GenerateContent;
use crate::{Api, CacheTtl, CompactionSetting, Error, KeyFault, Provider, ProviderKind, Settings};
use sepal_net as net;

fn connect(key: &str, base_url: &str) -> Result<GenerateContent, Error> {
    net::install_tls();
    let settings = Settings {
        id: "p".to_owned(),
        kind: ProviderKind::Gemini,
        api_key: Some(SecretString::from(key.to_owned())),
        base_url: Some(base_url.to_owned()),
        api: Api::Auto,
        cache_ttl: CacheTtl::default(),
        compaction: CompactionSetting::default(),
        pace: Duration::ZERO,
    };
    GenerateContent::new(settings, net::client(&net::Settings::default()).unwrap())
}

#[test]
fn the_vendor_needs_a_key_and_others_do_not() {
    assert!(matches!(
        connect("", ""),
        Err(Error::Key {
            key: KeyFault::Missing,
            ..
        })
    ));
    assert!(connect("", "http://localhost:1").is_ok());
    assert!(matches!(
        connect("k", "file:///etc"),
        Err(Error::Misconfigured { .. })
    ));
}

#[test]
fn a_model_is_one_segment_of_the_path_whatever_people_call_it() {
    fn check(base: &str, model: &str, expected: &str) {
        let provider = connect("k", base).unwrap();
        assert_eq!(provider.stream_url(model).as_str(), expected);
    }
    let vendor = "https://generativelanguage.googleapis.com/v1beta/models";
    let sse = ":streamGenerateContent?alt=sse";
    check(
        "",
        "gemini-2.0-flash",
        &format!("{vendor}/gemini-2.0-flash{sse}"),
    );
    check(
        "",
        "models/gemini-2.0-flash",
        &format!("{vendor}/gemini-2.0-flash{sse}"),
    );
    check(
        "",
        "../../x?key=1#",
        &format!("{vendor}/..%2F..%2Fx%3Fkey=1%23{sse}"),
    );
    check("", "..", &format!("{vendor}/..{sse}"));
    check("http://h", "m", &format!("http://h/v1beta/models/m{sse}"));
    check("http://h/v1", "m", &format!("http://h/v1/models/m{sse}"));
    check(
        "http://h/v1beta/models/",
        "m",
        &format!("http://h/v1beta/models/m{sse}"),
    );
}

#[tokio::test]
async fn the_placeholder_key_starts_but_asks_nobody() {
    let provider = connect("dummy-api-key", "").unwrap();
    let error = provider.models().await.unwrap_err();
    assert_eq!(error.code(), sepal_core::domain::Code::MissingApiKey);
}
