//! Addresses, keys and limits.

use std::collections::BTreeSet;
use std::time::Duration;

use secrecy::SecretString;

use super::Messages;
use super::request::thinking::plan;
use crate::{
    Api, CacheTtl, CompactionSetting, Error, KeyFault, Provider, ProviderKind, Request, Settings,
};
use sepal_net as net;

fn connect(key: &str, base_url: &str) -> Result<Messages, Error> {
    net::install_tls();
    let settings = Settings {
        id: "p".to_owned(),
        kind: ProviderKind::Anthropic,
        api_key: Some(SecretString::from(key.to_owned())),
        base_url: Some(base_url.to_owned()),
        api: Api::Auto,
        cache_ttl: CacheTtl::default(),
        compaction: CompactionSetting::default(),
        pace: Duration::ZERO,
    };
    Messages::new(settings, net::client(&net::Settings::default()).unwrap())
}

#[test]
fn the_vendor_needs_a_key_and_others_do_not() {
    for address in ["", "https://api.anthropic.com/v1/"] {
        let missing = connect(" ", address).err();
        assert!(matches!(
            missing,
            Some(Error::Key {
                key: KeyFault::Missing,
                ..
            })
        ));
    }
    assert!(connect("", "http://localhost:1").is_ok());
    assert!(matches!(
        connect("k", "localhost:1"),
        Err(Error::Misconfigured { .. })
    ));
}

#[test]
fn the_version_stands_in_a_path_once() {
    fn check(base: &str, expected: &str) {
        let provider = connect("k", base).unwrap();
        assert_eq!(provider.0.url("messages").as_str(), expected);
    }
    check("", "https://api.anthropic.com/v1/messages");
    check("http://h", "http://h/v1/messages");
    check("http://h/", "http://h/v1/messages");
    check("http://h/v1", "http://h/v1/messages");
    check("http://h/anthropic", "http://h/anthropic/v1/messages");
    check("http://h/v1/messages", "http://h/v1/messages");
    check("http://h/x?a=1", "http://h/x/v1/messages?a=1");
}

/// Asserts S2.15.
#[test]
fn a_limit_of_the_answer_is_always_sent_and_never_more_than_the_model_can() {
    fn check(model: &str, wanted: Option<u32>, expected: u32) {
        check_said(model, wanted, None, expected);
    }
    fn check_said(model: &str, wanted: Option<u32>, max_output: Option<u32>, expected: u32) {
        let request = Request {
            model: model.to_owned(),
            system: None,
            entries: [].into(),
            tools: [].into(),
            temperature: None,
            effort: None,
            max_tokens: wanted,
            max_output,
            affordable: None,
            compacting: None,
            contents: crate::Contents::default(),
            deferral: None,
        };
        let provider = connect("k", "").unwrap();
        assert_eq!(
            plan(&request, provider.0.longest(&request), &BTreeSet::new()).max_tokens,
            expected,
            "{model} {wanted:?}"
        );
    }
    check("claude-sonnet-4-5-20250929", None, 8_192);
    check("claude-sonnet-4-5-20250929", Some(0), 8_192);
    check("claude-sonnet-4-5-20250929", Some(9), 9);
    check("claude-3-haiku-20240307", None, 4_096);
    check("claude-3-haiku-20240307", Some(8_192), 4_096);
    check("my-own", Some(100_000), 100_000);
    // A limit in the request takes precedence over the catalogue (S3.11).
    check_said("claude-3-haiku-20240307", Some(9_000), Some(16_000), 9_000);
    check_said("claude-sonnet-4-5-20250929", None, Some(2_000), 2_000);
    check_said("my-own", Some(100_000), Some(3_000), 3_000);
}

#[tokio::test]
async fn the_placeholder_key_starts_but_asks_nobody() {
    let provider = connect("dummy-api-key", "").unwrap();
    let error = provider.models().await.unwrap_err();
    assert_eq!(error.code(), sepal_core::domain::Code::MissingApiKey);
}
