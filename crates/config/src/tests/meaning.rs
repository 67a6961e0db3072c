//! The meaning of values, and of combinations of values.

use std::time::Duration;

use secrecy::ExposeSecret as _;

use super::{check_refused, env, loaded, problems, yaml};
use crate::{ApprovalWay, LogLevel, LogOutput, Preset, SandboxDriver, Sources};
use sepal_core::domain::Most;
use sepal_core::domain::StrategyName::{DeleteMiddle, DeleteOld, None as Keep, PartialSummary};

/// Asserts S0.33, S0.67.
#[test]
fn zero_means_no_limit_or_not_sent() {
    let settings = loaded(&env(&[
        ("MAX_OUTPUT_TOKENS", "0"),
        ("MAX_HISTORY_TOKENS", "0"),
        ("SPL_LIMIT_SOCKETS", "0"),
        ("SPL_LLM_TEMPERATURE", "0"),
    ]))
    .settings;
    assert_eq!(settings.llm.max_tokens, None);
    assert_eq!(settings.chat.max_tokens, None);
    assert_eq!(settings.runtime.limits.sockets, None);
    assert_eq!(settings.llm.temperature, Some(0.0));
}

/// S0.28, S0.55.
#[test]
fn every_level_of_the_requirements_has_its_word() {
    for (word, level) in [
        ("trace", LogLevel::Trace),
        ("silly", LogLevel::Trace),
        ("debug", LogLevel::Debug),
        ("info", LogLevel::Info),
        ("warn", LogLevel::Warn),
        ("warning", LogLevel::Warn),
        ("error", LogLevel::Error),
        ("fatal", LogLevel::Fatal),
        ("panic", LogLevel::Panic),
    ] {
        let settings = loaded(&env(&[("SPL_LOG_LEVEL", word)])).settings;
        assert_eq!(settings.runtime.log.level, level, "{word}");
    }
}

#[test]
fn a_share_is_a_part_of_its_total_unless_somebody_set_it() {
    let check = |pairs: &[(&str, &str)], expected: (Most, Most)| {
        let settings = loaded(&env(pairs)).settings;
        let limits = settings.runtime.limits;
        assert_eq!((limits.questions(), settings.sandbox.most), expected);
    };
    let most = |all, per_tenant, per_user| Most {
        all,
        per_tenant,
        per_user,
    };
    let usual = most(Some(100), Some(75), Some(25));
    check(&[], (most(Some(1000), Some(750), Some(250)), usual));
    // Rounded up, so that no share is 0.
    let few = [("SPL_LIMIT_QUESTIONS", "2"), ("SPL_SANDBOX_MAX", "1")];
    let one = most(Some(1), Some(1), Some(1));
    check(&few, (most(Some(2), Some(2), Some(1)), one));
    let set = [
        ("SPL_LIMIT_QUESTIONS", "0"),
        ("SPL_LIMIT_SANDBOXES_PER_USER", "0"),
    ];
    check(
        &set,
        (most(None, None, None), most(Some(100), Some(75), None)),
    );
    // Without sign-in there is only one user.
    let alone = [("SPL_AUTH", "none"), ("SPL_LIMIT_QUESTIONS", "8")];
    let all = most(Some(100), Some(100), Some(100));
    check(&alone, (most(Some(8), Some(8), Some(8)), all));
    let limits = loaded(&env(&alone)).settings.runtime.limits;
    let address = limits.connections_per_address.map(u32::from);
    assert_eq!(address, Some(2000), "addresses are not people");
}

#[test]
fn lists_are_written_as_lists_or_with_commas() {
    let expected = ["https://a.example", "http://b:8080"];
    let commas = env(&[("SPL_ALLOWED_ORIGINS", "https://A.example/, http://b:8080,")]);
    let list = yaml("runtime: {http: {allowedOrigins: ['https://a.example', 'http://b:8080']}}");
    for sources in [commas, list] {
        assert_eq!(
            loaded(&sources).settings.runtime.http.allowed_origins,
            expected
        );
    }
    let access = loaded(&env(&[("SPL_TRUSTED_PROXIES", "10.1.2.3/8, ::1")]))
        .settings
        .runtime
        .http;
    let proxies: Vec<String> = access
        .trusted_proxies
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(proxies, ["10.0.0.0/8", "::1/128"]);
}

#[test]
fn a_container_listens_to_everybody_unless_nobody_signs_in() {
    let host = |pairs: &[(&str, &str)]| {
        let in_container = true;
        let sources = Sources {
            in_container,
            ..env(pairs)
        };
        loaded(&sources).settings.runtime.transports.http.host
    };
    assert_eq!(host(&[]), "0.0.0.0");
    assert_eq!(host(&[("HOST", "10.0.0.1")]), "10.0.0.1");
    assert_eq!(host(&[("SPL_AUTH", "none")]), "localhost");
}

#[test]
fn the_database_lies_in_the_data_folder_unless_told_otherwise() {
    let url = |pairs: &[(&str, &str)]| {
        let url = loaded(&env(pairs)).settings.store.database_url;
        url.expose_secret().to_owned()
    };
    assert_eq!(url(&[]), "sqlite://data/sepal.db");
    assert_eq!(
        url(&[("SPL_DATA_DIR", "/var/lib/sepal/")]),
        "sqlite:///var/lib/sepal/sepal.db"
    );
    assert_eq!(
        url(&[("DATABASE_URL", "sqlite::memory:")]),
        "sqlite::memory:"
    );
    for server in [
        "postgres://u:secret@h/d",
        "postgresql://h",
        "postgres:///d?host=/run",
    ] {
        assert_eq!(url(&[("DATABASE_URL", server)]), server);
    }
}

/// Asserts S0.28.
#[test]
fn units_become_durations() {
    let settings = loaded(&env(&[
        ("LLM_RETRY_INITIAL_BACKOFF", "0.5"),
        ("SPL_SANDBOX_COMMAND_TIMEOUT", "7"),
        ("SPL_SANDBOX_IDLE_MINUTES", "2"),
        ("SPL_LLM_SCRIPTED_PACE_MS", "0"),
        ("SPL_LOG_OUTPUT", "./simple.log"),
        ("HISTORY_TTL_SECONDS", "60"),
    ]))
    .settings;
    assert_eq!(
        settings.llm.retry.initial_backoff,
        Duration::from_millis(500)
    );
    assert_eq!(settings.sandbox.command_timeout, Duration::from_secs(7));
    assert_eq!(settings.sandbox.idle, Duration::from_mins(2));
    assert_eq!(settings.llm.scripted_pace, Duration::ZERO);
    assert_eq!(settings.store.history_ttl, Some(Duration::from_mins(1)));
    assert_eq!(
        settings.runtime.log.output,
        LogOutput::File("./simple.log".into())
    );
}

#[test]
fn the_ways_of_approval_keep_their_order() {
    use ApprovalWay::{Auto, Deny, Elicit, Web};
    let ways = |sources: &Sources| loaded(sources).settings.approval;
    assert_eq!(ways(&env(&[])), [Elicit, Web, Deny]);
    assert_eq!(
        ways(&env(&[("SPL_AGENT_APPROVAL", "web,Deny")])),
        [Web, Deny]
    );
    assert_eq!(ways(&yaml("agent: {approval: [auto]}")), [Auto]);
    assert_eq!(ways(&yaml("agent: {approval: deny}")), [Deny]);
}

#[test]
fn the_engine_of_containers_has_its_settings() {
    let sandbox = loaded(&env(&[
        ("SPL_SANDBOX", "docker"),
        ("DOCKER_HOST", "unix:///run/docker.sock"),
        ("SPL_SANDBOX_RUNTIME", "runsc"),
        ("SPL_SANDBOX_POOL_SIZE", "0"),
    ]))
    .settings
    .sandbox;
    assert_eq!(sandbox.driver, SandboxDriver::Docker);
    assert_eq!(
        sandbox.docker_host.as_deref(),
        Some("unix:///run/docker.sock")
    );
    assert_eq!(sandbox.runtime.as_deref(), Some("runsc"));
    assert_eq!(sandbox.pool_size, 0);
    assert!(sandbox.image.starts_with("sepal/sandbox:"));
}

/// Asserts S0.57.
#[test]
fn the_agent_has_defaults_of_its_own_below_everything_that_was_set() {
    let settings = |preset, pairs: &[(&str, &str)]| {
        let sources = Sources {
            preset,
            ..env(pairs)
        };
        loaded(&sources).settings
    };
    let agent = settings(Preset::Agent, &[]);
    assert_eq!(
        (agent.chat.max_tokens, agent.chat.max_messages),
        (None, None)
    );
    assert_eq!(agent.chat.compaction_strategy, [DeleteOld]);
    assert_eq!(agent.runtime.log.output, LogOutput::Stderr);
    let daemon = settings(Preset::Daemon, &[("MAX_HISTORY_TOKENS", "9")]);
    assert_eq!(daemon.chat.max_tokens.unwrap().get(), 9);
    assert_eq!(daemon.runtime.log.output, LogOutput::Stdout);
}

/// Asserts S0.11, S0.18, S0.33, S3.12.
#[test]
fn strategies_are_named_one_after_the_other() {
    let strategies = |pairs: &[(&str, &str)]| {
        let loaded = loaded(&env(pairs));
        loaded.settings.chat.compaction_strategy
    };
    let named = |text| strategies(&[("SPL_CHAT_COMPACTION_STRATEGY", text)]);
    assert_eq!(strategies(&[]), [DeleteMiddle, DeleteOld]);
    assert_eq!(named("delete-old"), [DeleteOld]);
    assert_eq!(named("delete-middle"), [DeleteMiddle]);
    assert_eq!(
        named("delete-old, delete-middle"),
        [DeleteOld, DeleteMiddle]
    );
    assert_eq!(named("none"), [Keep]);
    assert_eq!(
        named("partial-summary,delete-middle"),
        [PartialSummary, DeleteMiddle]
    );
}

#[test]
fn a_collector_is_named_as_everywhere_and_its_headers_are_not_shown() {
    assert!(loaded(&env(&[])).settings.telemetry.otlp_endpoint.is_none());
    let loaded = loaded(&env(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://everybody:4318"),
        ("SPL_OTEL_EXPORTER_OTLP_ENDPOINT", "http://ours:4318"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hush"),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.namespace=a,host.name=b",
        ),
    ]));
    assert!(!loaded.shown.contains("hush"), "{}", loaded.shown);
    let telemetry = loaded.settings.telemetry;
    let endpoint = telemetry.otlp_endpoint.unwrap();
    assert_eq!(endpoint.as_str(), "http://ours:4318/");
    let header = &telemetry.otlp_headers["authorization"];
    assert_eq!(header.expose_secret(), "Bearer hush");
    assert_eq!(telemetry.resource_attributes["host.name"], "b");
    assert_eq!(telemetry.service_name, None);
    let wrong = env(&[("OTEL_EXPORTER_OTLP_HEADERS", "hush")]);
    check_refused(
        &wrong,
        &["telemetry.otlp_headers", "number 1", "name=value"],
    );
    assert!(!problems(&wrong).contains("hush"));
}

#[test]
fn local_model_servers_are_named_addresses_or_none() {
    let servers = |text: &str| {
        let settings = loaded(&env(&[("SPL_LLM_LOCAL_SERVERS", text)])).settings;
        settings.llm.local_servers
    };
    let found = servers("Ollama=http://localhost:11434/v1, tgi = http://10.0.0.2:8080 ,");
    let pairs: Vec<_> = found.iter().collect();
    assert_eq!(
        format!("{pairs:?}"),
        r#"[("ollama", "http://localhost:11434/v1"), ("tgi", "http://10.0.0.2:8080/")]"#
    );
    assert!(servers("none").is_empty());
    for (wrong, piece) in [
        ("http://localhost:1/v1", "has no name before a `=`"),
        ("a=ftp://localhost", "is not such an address"),
        ("a=http://me:hush@localhost", "user or password"),
    ] {
        let wrong = env(&[("SPL_LLM_LOCAL_SERVERS", wrong)]);
        check_refused(&wrong, &["agent.llm.local_servers", piece]);
    }
}
