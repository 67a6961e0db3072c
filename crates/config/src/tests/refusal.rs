//! Refused settings, and their error messages.

use super::{check_refused, env, loaded, problems, yaml};
use crate::table::LATER;
use crate::{AuthMode, Problems, load};

#[test]
fn what_comes_later_is_refused_rather_than_ignored() {
    for later in LATER {
        let key = later.key.replace('*', "x");
        let nested: Vec<&str> = key.split('.').collect();
        let (open, close) = (nested.join(": {"), "}".repeat(nested.len() - 1));
        let family = later.key.trim_end_matches(".*");
        check_refused(
            &yaml(&format!("{open}: 1{close}")),
            &[family, "not in this version yet"],
        );
        for name in later.env {
            let name = name.replace('*', "0_ID");
            check_refused(&env(&[(&name, "1")]), &[&name, "not in this version yet"]);
        }
    }
}

/// A piece of a file, and the texts that the report must contain.
const WRONG: &[(&str, &[&str])] = &[
    (
        "runtime: {transports: {http: {port: 70000}}}",
        &[
            "runtime.transports.http.port",
            "sepal.yaml:runtime.transports.http.port",
            "`70000`",
            "0 to 65535",
        ],
    ),
    (
        "runtime: {transports: {http: {port: '80'}}}",
        &["`80` is not a whole number"],
    ),
    (
        "agent: {llm: {temperature: hot}}",
        &["not a number", "from 0 to 2"],
    ),
    ("agent: {llm: {temperature: 3}}", &["out of range"]),
    ("agent: {version: 1.0}", &["put it in quotes"]),
    ("agent: {name: ''}", &["empty"]),
    ("agent: {chat: 5}", &["agent.chat", "section"]),
    ("agent: {name: {a: 1}}", &["a mapping is not a text"]),
    (
        "agent: {chat: {maxToken: 5}}",
        &[
            "sepal.yaml:agent.chat.maxToken",
            "did you mean `agent.chat.max_tokens`?",
        ],
    ),
    ("zzz: 1", &["unknown setting", "docs/configuration.md"]),
    (
        "runtime: {log: {level: loud}}",
        &["`trace`, `debug`, `info`, `warn`, `error`"],
    ),
    (
        "runtime: {http: {allowed_origins: ['*']}}",
        &["`*` is not an origin"],
    ),
    (
        "runtime: {http: {allowed_origins: ['https://a.example/path']}}",
        &["not an origin"],
    ),
    (
        "runtime: {metrics: {listen: localhost}}",
        &[
            "runtime.metrics.listen: `localhost` is not both",
            "an IP address with a port",
        ],
    ),
    (
        "runtime: {http: {trusted_proxies: [localhost]}}",
        &["neither"],
    ),
    (
        "runtime: {http: {public_url: 'ftp://a'}}",
        &["not such an address"],
    ),
    (
        "runtime: {http: {public_url: 'https://u:p4ss@a'}}",
        &["user or password"],
    ),
    (
        "runtime: {transports: {http: {host: 'http://a'}}}",
        &["neither"],
    ),
    (
        "runtime: {transports: {http: {enabled: yes please}}}",
        &["neither", "`true` or `false`"],
    ),
    (
        "runtime: {transports: {http: {enabled: false}, stdio: {enabled: false}}}",
        &["nothing would run"],
    ),
    (
        "agent: {llm: {prompt_template: '{{ open'}}",
        &["template cannot be read"],
    ),
    (
        "agent: {llm: {api_key: $NOT_SET}}",
        &["the variable `NOT_SET` is not set", "$$"],
    ),
    (
        "agent: {llm: {api_key: [a]}}",
        &["agent.llm.api_key", "not a text"],
    ),
    ("agent: {chat: {max_llm_iterations: 0}}", &["from 1 to"]),
    (
        "agent: {llm: {retry: {max_backoff: 0.5}}}",
        &["shorter than the first"],
    ),
    ("store: {database_url: 'mysql://a'}", &["not known"]),
    ("store: {database_url: 'sqlite://'}", &["path is missing"]),
    ("store: {database_url: 'postgres:'}", &["cannot be read"]),
    ("store: {redis_url: 'http://a'}", &["scheme", "rediss://"]),
    ("store: {redis_url: 'redis://'}", &["cannot be read"]),
    ("auth: {secret_key: short}", &["too short", "32"]),
    (
        "notifications: {smtp: {url: 'smtp://h'}}",
        &["notifications.smtp.from", "nobody who sends it"],
    ),
    (
        "agent: {approval: [elicit, maybe]}",
        &["`maybe` is not known"],
    ),
    ("agent: {approval: [web, web]}", &["`web` stands twice"]),
    ("agent: {approval: []}", &["empty"]),
    (
        "agent: {reviewer: {model: gpt-4o}}",
        &["agent.reviewer.model", "`provider/model`"],
    ),
    (
        "agent: {reviewer: {timeout_s: 0}}",
        &["agent.reviewer.timeout_s", "1 to 600"],
    ),
    (
        "sandbox: {network: internet}",
        &["`internet`", "it has no dot", "`none`"],
    ),
];

/// Asserts S1.19.
#[test]
fn a_problem_names_path_source_and_what_is_accepted() {
    for (text, pieces) in WRONG {
        check_refused(&yaml(text), pieces);
    }
    check_refused(
        &env(&[("SPL_LLM_MODLE", "x")]),
        &["did you mean `SPL_LLM_MODEL`?"],
    );
    check_refused(&env(&[("PORT", "x")]), &["environment variable PORT"]);
}

/// Asserts S0.23, S1.7.
#[test]
fn all_problems_are_told_at_once() {
    let mut sources = yaml(
        "runtime:\n  log: {level: loud, colour: true}\n  transports: {http: {host: 0.0.0.0, port: -1}}\n\
         agent:\n  llm: {apiKey: '${NO_KEY}', provider: clade, temprature: 1}\nstore: {redis_url: x}\n",
    );
    sources.env = env(&[
        ("SPL_AUTH", "none"),
        ("SPL_SANDBOX_CPU", "1"),
        ("PORT", "http"),
    ])
    .env;
    insta::assert_snapshot!(problems(&sources));
}

#[test]
fn no_secret_is_ever_quoted_or_shown() {
    let secrets = [
        ("OPENAI_API_KEY", "sk-hush"),
        ("ANTHROPIC_API_KEY", "sk-hush"),
        ("SPL_REDIS_URL", "redis://:sk-hush@h/0"),
        ("SPL_SMTP_URL", "smtps://ana:sk-hush@h"),
        ("SPL_SMTP_FROM", "ana@h.example"),
        ("DATABASE_URL", "postgres://u:sk-hush@h/d"),
        ("SPL_SECRET_KEY", "sk-hush-0123456789-0123456789-0123456789"),
    ];
    let mut sources = env(&secrets);
    let loaded = loaded(&sources);
    assert!(!loaded.shown.contains("sk-hush"), "{}", loaded.shown);
    assert!(!format!("{loaded:?}").contains("sk-hush"), "{loaded:?}");
    sources
        .env
        .insert("SPL_HTTP_PORT".to_owned(), "x".to_owned());
    assert!(!problems(&sources).contains("sk-hush"));
    for (name, wrong) in [
        ("REDIS_URL", "sk-hush://h"),
        ("SPL_SMTP_URL", "sk-hush://h"),
        ("DATABASE_URL", "sk-hush://h"),
    ] {
        assert!(!problems(&env(&[(name, wrong)])).contains("sk-hush"));
    }
    let server = "agent: {connections: {mcpServers: {a: {url: 'https://h', headers: 'sk-hush'}}}}";
    assert!(!problems(&yaml(server)).contains("sk-hush"));
}

#[test]
fn without_sign_in_nobody_else_may_reach_the_gateway() {
    for host in ["localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]"] {
        let settings = loaded(&env(&[("SPL_AUTH", "none"), ("HOST", host)])).settings;
        assert_eq!(settings.auth.mode, AuthMode::None);
        assert!(settings.runtime.transports.http.is_loopback());
    }
    for (name, value) in [
        ("HOST", "0.0.0.0"),
        ("HOST", "::"),
        ("HOST", "example.org"),
        ("HOST", "localhost.example.org"),
        ("SPL_PUBLIC_URL", "https://example.org"),
        ("SPL_TRUSTED_PROXIES", "127.0.0.1"),
    ] {
        let sources = env(&[("SPL_AUTH", "none"), (name, value)]);
        check_refused(&sources, &[name, "`auth.mode` is `none`"]);
    }
    loaded(&env(&[
        ("SPL_AUTH", "none"),
        ("SPL_PUBLIC_URL", "http://localhost:8080"),
    ]));
}

#[test]
fn one_problem_is_not_counted_as_many() {
    let one = load(&env(&[("PORT", "x")])).unwrap_err();
    assert!(
        one.to_string().starts_with("one setting is wrong\n"),
        "{one}"
    );
    assert!(
        Problems(vec![])
            .to_string()
            .starts_with("0 settings are wrong")
    );
}
