//! Tables for this file.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{Chunk, usage};

#[test]
fn plain_text_is_borrowed() {
    let chunk: Chunk<'_> =
        serde_json::from_str(r#"{"choices":[{"delta":{"content":"plain"}}]}"#).unwrap();
    let delta = chunk.choices[0].delta.as_ref().unwrap();
    assert!(matches!(delta.content.text.0, Cow::Borrowed("plain")));
}

#[test]
fn usage_is_read_in_every_dialect() {
    fn check(json: &str, expected: Option<(u64, u64, u64, u64)>) {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        let got = usage(raw).map(|u| {
            (
                u.input_tokens,
                u.cached_tokens,
                u.output_tokens,
                u.reasoning_tokens,
            )
        });
        assert_eq!(got, expected, "{json}");
    }
    check(
        r#"{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}"#,
        Some((7, 0, 3, 0)),
    );
    check(
        r#"{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4},
            "completion_tokens_details":{"reasoning_tokens":2,"x":1}}"#,
        Some((7, 4, 3, 2)),
    );
    check(
        r#"{"prompt_tokens":7,"completion_tokens":3,"total_tokens":20}"#,
        Some((7, 0, 13, 0)),
    );
    check(
        r#"{"prompt_tokens":7,"prompt_cache_hit_tokens":9}"#,
        Some((7, 7, 0, 0)),
    );
    check(
        r#"{"prompt_tokens":7,"cached_tokens":1,"prompt_tokens_details":null}"#,
        Some((7, 1, 0, 0)),
    );
    for json in [
        r#"{"prompt_tokens":"7","completion_tokens":"3"}"#,
        r#"{"prompt_tokens":7.0,"completion_tokens":3.9}"#,
        r#"{"input_tokens":7,"output_tokens":3}"#,
        r#"{"prompt_tokens":null,"input_tokens":7,"completion_tokens":3}"#,
        r#"{"prompt_tokens":7,"completion_tokens":3,"total_tokens":-1}"#,
        r#"{"prompt_tokens":7,"completion_tokens":3,"total_tokens":null}"#,
        r#"{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":"none"}"#,
        r#"{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":-4}}"#,
        r#"{"prompt_tokens":7,"completion_tokens":3,"completion_tokens_details":[]}"#,
    ] {
        check(json, Some((7, 0, 3, 0)));
    }
    check(
        r#"{"prompt_tokens":7,"completion_tokens":-3}"#,
        Some((7, 0, 0, 0)),
    );
    check(r#"{"prompt_tokens":-7,"completion_tokens":3}"#, None);
    check(r#"{"prompt_tokens":1e300}"#, None);
    check("{}", None);
    check("[]", None);
    check(r#"{"prompt_tokens":"x"}"#, None);
}
