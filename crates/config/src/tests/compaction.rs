//! The setting that decides who compacts the context of a provider's models.

use super::{check_refused, loaded, yaml};
use crate::CompactedBy;

#[test]
fn who_compacts_is_said_where_the_vendor_can_and_refused_anywhere_else() {
    let file = yaml(
        "agent: {llm: {provider: anthropic, apiKey: k, compaction: vendor, compactionThreshold: 60000, \
         providers: {openai: {apiKey: k, compaction: vendor}, \
         other: {kind: openai-compatible, baseUrl: 'http://h', api: responses, compaction: vendor, compactionThreshold: 2000}, \
         third: {kind: anthropic, apiKey: k, baseUrl: 'http://h'}}}}",
    );
    let llm = loaded(&file).settings.llm;
    for (name, by, threshold) in [
        ("anthropic", CompactedBy::Vendor, Some(60_000)),
        ("openai", CompactedBy::Vendor, None),
        ("other", CompactedBy::Vendor, Some(2_000)),
        ("third", CompactedBy::Sepal, None),
    ] {
        let entry = &llm.providers[name];
        assert_eq!(
            (entry.compaction, entry.compaction_threshold),
            (by, threshold),
            "{name}"
        );
    }
    let entry = |fields: &str| {
        let file =
            format!("agent: {{llm: {{provider: scripted, providers: {{other: {{{fields}}}}}}}}}");
        yaml(&file)
    };
    for fields in [
        "kind: gemini, apiKey: k",
        "kind: openai-compatible, baseUrl: 'http://h'",
        "kind: openai, apiKey: k, baseUrl: 'http://h'",
        "kind: openai, apiKey: k, api: chat-completions",
    ] {
        let file = entry(&format!("{fields}, compaction: vendor"));
        check_refused(&file, &["other.compaction", "cannot compact by itself"]);
    }
    let file = entry("kind: anthropic, apiKey: k, compactionThreshold: 49999");
    check_refused(
        &file,
        &["other.compaction_threshold", "50000 tokens or more"],
    );
    let file = yaml("agent: {llm: {provider: gemini, apiKey: k, compaction: vendor}}");
    check_refused(&file, &["agent.llm.compaction", "`sepal`"]);
}
