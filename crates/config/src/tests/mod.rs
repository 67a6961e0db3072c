//! The rules of loading, as tables.

mod compaction;
mod contexts;
mod fallback;
mod meaning;
mod oidc;
mod providers;
mod proxy;
mod refusal;
mod rules;
mod servers;

use std::time::Duration;

use secrecy::ExposeSecret as _;

use super::table::{Definition, Fallback, Kind, LATER, SETTINGS, Word};
use super::{Flag, LoadedSettings, SourceFile, Sources, load};

fn env(pairs: &[(&str, &str)]) -> Sources {
    let pairs = pairs.iter();
    Sources {
        env: pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..Sources::default()
    }
}

fn yaml(text: &str) -> Sources {
    file("sepal.yaml", text)
}

fn file(name: &str, text: &str) -> Sources {
    Sources {
        file: Some(SourceFile {
            name: name.to_owned(),
            text: text.to_owned(),
        }),
        ..Sources::default()
    }
}

fn loaded(sources: &Sources) -> LoadedSettings {
    load(sources).unwrap()
}

fn problems(sources: &Sources) -> String {
    load(sources).unwrap_err().to_string()
}

/// Asserts that loading reports one problem, whose text contains all the pieces.
fn check_refused(sources: &Sources, pieces: &[&str]) {
    let problems = load(sources).unwrap_err();
    assert_eq!(problems.0.len(), 1, "{problems}");
    let text = problems.to_string();
    for piece in pieces {
        assert!(text.contains(piece), "`{piece}` is not in: {text}");
    }
}

fn port(sources: &Sources) -> u16 {
    loaded(sources).settings.runtime.transports.http.port
}

/// Asserts S0.21, S0.26, S0.27, S0.30, S0.31, S0.33, S0.34, S0.44, S0.53, S1.19, S2.9, S2.19.
#[test]
fn the_defaults_are_those_of_the_contract() {
    insta::assert_debug_snapshot!(loaded(&Sources::default()).settings);
}

/// Asserts S0.22, S1.14, S1.19.
#[test]
fn the_command_line_beats_the_environment_and_that_the_file_and_that_the_default() {
    let mut sources = Sources::default();
    assert_eq!(port(&sources), 3000);
    sources.file = yaml("runtime: {transports: {http: {port: 1}}}").file;
    assert_eq!(port(&sources), 1);
    sources.env = env(&[("PORT", "2")]).env;
    assert_eq!(port(&sources), 2);
    sources.env = env(&[("PORT", "2"), ("SPL_HTTP_PORT", "3")]).env;
    assert_eq!(port(&sources), 3);
    sources.flags = vec![Flag {
        name: "--port",
        key: "runtime.transports.http.port",
        value: "4".to_owned(),
    }];
    assert_eq!(port(&sources), 4);
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    assert_eq!(port(&env(&[("SPL_HTTP_PORT", " "), ("PORT", "5")])), 5);
    assert_eq!(
        port(&env(&[("SPL_MCPS_0_URL", ""), ("SPL_TYPO", "")])),
        3000
    );
}

/// Asserts S0.19, S0.21.
#[test]
fn yaml_and_json_say_the_same() {
    let json = r#"{"agent": {"llm": {"apiKey": "k", "maxTokens": 9}}}"#;
    for sources in [
        file("a.json", json),
        file("a.yaml", json),
        file(
            "a.yml",
            "agent:\n  llm:\n    api_key: k\n    maxTokens: 9\n",
        ),
    ] {
        let llm = loaded(&sources).settings.llm;
        let entry = llm.default_entry().unwrap();
        assert_eq!(entry.api_key.as_ref().unwrap().expose_secret(), "k");
        assert_eq!(llm.max_tokens.unwrap().get(), 9);
    }
    check_refused(&file("a.toml", ""), &["a.toml", ".yaml"]);
    check_refused(&file("a.json", "{"), &["a.json", "line 1"]);
    check_refused(&yaml("agent: {}\nagent: {}\n"), &["duplicate"]);
    check_refused(&yaml("- a"), &["sepal.yaml", "section"]);
    loaded(&yaml(""));
}

/// Asserts S0.34.
#[test]
fn system_prompt_is_another_name_for_the_template() {
    for name in ["systemPrompt", "system_prompt", "promptTemplate"] {
        let settings = loaded(&yaml(&format!("agent: {{llm: {{{name}: hello}}}}"))).settings;
        assert_eq!(settings.llm.prompt_template, "hello");
    }
    let twice = "agent: {llm: {systemPrompt: a, prompt_template: b}}";
    check_refused(&yaml(twice), &["twice"]);
}

/// S3.37.
#[test]
fn a_section_of_the_model_at_the_top_of_the_file_is_that_of_the_agent() {
    let text = "llm: {provider: anthropic, model: claude-3-haiku-20240307, systemPrompt: Be kind, \
                apiKey: $MY_KEY, providers: {openai: {apiKey: other}}}";
    let mut sources = yaml(text);
    sources.env = env(&[("MY_KEY", "secret")]).env;
    let llm = loaded(&sources).settings.llm;
    assert_eq!(
        (
            llm.provider.as_str(),
            llm.model.as_str(),
            llm.prompt_template.as_str()
        ),
        ("anthropic", "claude-3-haiku-20240307", "Be kind")
    );
    let key = |name: &str| {
        llm.providers[name]
            .api_key
            .as_ref()
            .unwrap()
            .expose_secret()
            .to_owned()
    };
    assert_eq!(
        (key("anthropic").as_str(), key("openai").as_str()),
        ("secret", "other")
    );
    // The environment overrides it like any file, and it cannot be combined with `agent.llm`.
    let mut sources = yaml("llm: {model: filed}");
    sources.env = env(&[("SPL_LLM_MODEL", "set"), ("OPENAI_API_KEY", "k")]).env;
    assert_eq!(loaded(&sources).settings.llm.model, "set");
    let twice = "llm: {model: a}\nagent: {llm: {model: b}}";
    check_refused(&yaml(twice), &["twice", "agent.llm.model"]);
    check_refused(
        &yaml("llm: {modell: a}"),
        &["did you mean `agent.llm.model`?"],
    );
}

/// A value that the setting accepts, spelled as in the environment.
fn sample(definition: &Definition) -> String {
    if let Fallback::Is(value) = definition.fallback {
        return value.to_owned();
    }
    let value = match definition.kind {
        Kind::Text if definition.key == "agent.llm.fallback" => "a/b",
        Kind::Text | Kind::Template => "sample",
        Kind::Model => "openai/sample",
        Kind::Secret => "a secret that has at least 32 characters",
        Kind::Flag => "true",
        Kind::Whole(least, _) => return least.to_string(),
        Kind::Number(least, _) => return least.to_string(),
        Kind::OneOf(words) | Kind::ListOf(words) => match words[0] {
            Word::Is(word) | Word::Alias(word, _) | Word::Later(word) => word,
        },
        Kind::Provider => "scripted",
        Kind::Host => "localhost",
        Kind::Listen => "127.0.0.1:9090",
        Kind::Url => "https://a.example/v1",
        Kind::Origins => "https://a.example",
        Kind::Networks => "10.0.0.0/8",
        Kind::Texts if definition.key.ends_with(".tenants") => "a.example=a",
        Kind::Texts => "a=member",
        Kind::PublicKeys => "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
        Kind::Hosts => "api.example.com",
        Kind::Database => "sqlite::memory:",
        Kind::Redis => "redis://localhost/0",
        Kind::Smtp => "smtps://ana:hush@mail.example",
        Kind::Headers | Kind::Attributes => "a=b",
        Kind::NamedUrls => "a=http://localhost:1/v1",
    };
    value.to_owned()
}

/// S0.20, S0.36, S0.37, S0.38, S0.39, S0.40, S1.22, S2.18, S2.19, S2.20: also settings whose default is
/// described in words.
#[test]
fn every_variable_of_the_table_reaches_its_key() {
    for definition in SETTINGS {
        let value = sample(definition);
        for name in definition.env {
            let source = format!("{} = ", definition.key);
            let mut variables = vec![(*name, &*value)];
            if definition.key == "agent.llm.base_url" {
                variables.push(("SPL_LLM_MODEL", "it needs one"));
            }
            if definition.key.starts_with("auth.proxy.") {
                variables.extend(
                    [
                        ("SPL_AUTH_PROXY_HEADER", "x-user"),
                        ("SPL_AUTH_PROXY_ADDRESSES", "10.0.0.0/8"),
                        ("SPL_AUTH_PROXY_EMAIL_HEADER", "x-email"),
                        ("SPL_AUTH_PROXY_GROUPS_HEADER", "x-groups"),
                    ]
                    .into_iter()
                    .filter(|(other, _)| other != name),
                );
            }
            if definition.key == "notifications.smtp.url" {
                variables.push(("SPL_SMTP_FROM", "it@needs.example"));
            }
            let shown = loaded(&env(&variables)).shown;
            let line = shown
                .lines()
                .find(|line| line.starts_with(&source))
                .unwrap();
            assert!(
                line.ends_with(&format!("(environment variable {name})")),
                "{line}"
            );
        }
    }
}

/// S0.36, S0.37, S0.38, S0.39, S0.40, and S2.18, S2.19 with their short names: no value is the default.
/// Asserts S0.44, S1.22.
#[test]
fn the_variables_of_the_requirements_say_what_holds() {
    let settings = loaded(&env(&[
        ("SPL_AGENT_NAME", "architect"),
        ("SPL_AGENT_VERSION", "1.0.0"),
        ("SPL_TOOL_NAME", "design"),
        ("SPL_TOOL_DESCRIPTION", "Designs"),
        ("SPL_TOOL_ARGUMENT_NAME", "query"),
        ("SPL_TOOL_ARGUMENT_DESCRIPTION", "What to design"),
        ("SPL_LLM_PROVIDER", "openai"),
        ("SPL_LLM_API_KEY", "k"),
        ("SPL_LLM_MODEL", "gpt-4o-mini"),
        ("SPL_LLM_MAX_TOKENS", "4096"),
        ("SPL_LLM_TEMPERATURE", "0.2"),
        ("SPL_LLM_RETRY_MAX_RETRIES", "4"),
        ("SPL_LLM_RETRY_INITIAL_BACKOFF", "1.5"),
        ("SPL_LLM_RETRY_MAX_BACKOFF", "31"),
        ("SPL_LLM_RETRY_BACKOFF_MULTIPLIER", "2.5"),
        ("SPL_CHAT_MAX_TOKENS", "9"),
        ("SPL_CHAT_COMPACTION_STRATEGY", "delete-old"),
        ("SPL_CHAT_MAX_ITERATIONS", "7"),
    ]))
    .settings;
    let (agent, tool) = (&settings.agent, &settings.tool);
    assert_eq!((&*agent.name, &*agent.version), ("architect", "1.0.0"));
    assert_eq!((&*tool.name, &*tool.description), ("design", "Designs"));
    let argument = (&*tool.argument_name, &*tool.argument_description);
    assert_eq!(argument, ("query", "What to design"));
    let llm = &settings.llm;
    assert_eq!((&*llm.provider, &*llm.model), ("openai", "gpt-4o-mini"));
    let key = llm.default_entry().unwrap().api_key.as_ref().unwrap();
    assert_eq!(key.expose_secret(), "k");
    assert_eq!(llm.max_tokens.unwrap().get(), 4096);
    assert_eq!(llm.temperature, Some(0.2));
    assert_eq!(llm.effort, None, "models think as they do by themselves");
    assert_eq!(llm.retry.max_retries, 4);
    assert_eq!(llm.retry.initial_backoff, Duration::from_millis(1_500));
    assert_eq!(llm.retry.max_backoff, Duration::from_secs(31));
    assert!((llm.retry.backoff_multiplier - 2.5).abs() < f64::EPSILON);
    assert_eq!(settings.chat.max_tokens.unwrap().get(), 9);
    assert_eq!(settings.chat.max_llm_iterations.get(), 7);

    let short = [
        ("MAX_OUTPUT_TOKENS", "8192"),
        ("MAX_HISTORY_TOKENS", "30001"),
    ];
    let settings = loaded(&env(&short)).settings;
    assert_eq!(settings.llm.max_tokens.unwrap().get(), 8192);
    assert_eq!(settings.chat.max_tokens.unwrap().get(), 30_001);
    let both = [("MAX_OUTPUT_TOKENS", "8192"), ("SPL_LLM_MAX_TOKENS", "5")];
    let settings = loaded(&env(&both)).settings;
    assert_eq!(settings.llm.max_tokens.unwrap().get(), 5, "ours wins");
    let settings = loaded(&env(&[("SPL_LLM_EFFORT", "High")])).settings;
    assert_eq!(settings.llm.effort, Some(sepal_core::domain::Effort::High));
}

#[test]
fn no_name_stands_twice_in_the_table() {
    let mut names: Vec<_> = SETTINGS.iter().map(|definition| definition.key).collect();
    names.extend(SETTINGS.iter().flat_map(|definition| definition.env));
    names.extend(LATER.iter().map(|later| later.key));
    names.extend(LATER.iter().flat_map(|later| later.env));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    for definition in SETTINGS {
        assert!(definition.env[0].starts_with("SPL_"), "{}", definition.key);
        assert!(definition.doc.ends_with('.'), "{}", definition.key);
    }
}

#[test]
fn variables_in_the_file_are_expanded_and_then_parsed() {
    let mut sources = yaml("runtime: {transports: {http: {port: '${P}'}}}\nagent: {name: a$P}");
    sources.env = env(&[("P", "81")]).env;
    let settings = loaded(&sources).settings;
    assert_eq!(settings.runtime.transports.http.port, 81);
    assert_eq!(settings.agent.name, "a81");
}

#[test]
fn show_names_every_value_and_its_source() {
    let mut sources = env(&[
        ("OPENAI_API_KEY", "k"),
        ("HOST", "127.0.0.1"),
        ("SPL_REDIS_URL", "redis://:hush@localhost/0"),
        ("DATABASE_URL", "postgres://u:hush@localhost/d"),
        ("SPL_MCPS_0_ID", "time"),
        ("SPL_MCPS_0_ARGS", "--utc"),
    ]);
    let file =
        "agent: {name: acme, connections: {mcpServers: {time: {command: x, env: {A: hush}}}}}";
    sources.file = yaml(file).file;
    insta::assert_snapshot!(loaded(&sources).shown);
}
