//! The rules of loading, as tables.

mod meaning;
mod providers;
mod refusal;
mod servers;

use secrecy::ExposeSecret as _;

use super::table::{Fallback, LATER, SETTINGS};
use super::{Flag, Loaded, SourceFile, Sources, load};

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

fn loaded(sources: &Sources) -> Loaded {
    load(sources).unwrap()
}

fn problems(sources: &Sources) -> String {
    load(sources).unwrap_err().to_string()
}

/// Asserts that loading names one problem, and that its text holds all the pieces.
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

#[test]
fn the_defaults_are_those_of_the_contract() {
    insta::assert_debug_snapshot!(loaded(&Sources::default()).settings);
}

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
    // The environment wins over it like over any file, and it cannot stand beside the other one.
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

#[test]
fn every_variable_of_the_table_reaches_its_key() {
    for definition in SETTINGS {
        let value = match definition.fallback {
            Fallback::Is(value) => value,
            Fallback::Words(_) => continue,
        };
        for name in definition.env {
            let source = format!("{} = ", definition.key);
            let shown = loaded(&env(&[(name, value)])).shown;
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
