//! Every file of `site/examples` loads, and the scripted model runs with it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rmcp::model::CallToolRequestParams;
use sepal::config::{self, Preset, SourceFile, Sources};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{TestClient, connect, sepal, text_of};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("site/examples")
}

fn examples() -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder()).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let is_settings = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("yaml" | "json"))
    };
    let paths: BTreeSet<_> = paths.filter(is_settings).collect();
    assert!(paths.len() >= 5, "{paths:?}");
    paths.into_iter().collect()
}

fn loaded(path: &Path) -> config::LoadedSettings {
    let sources = Sources {
        file: Some(SourceFile {
            name: path.display().to_string(),
            text: std::fs::read_to_string(path).unwrap(),
        }),
        preset: Preset::Agent,
        ..Sources::default()
    };
    config::load(&sources).unwrap_or_else(|problems| panic!("{}: {problems}", path.display()))
}

/// Asserts S0.25.
#[test]
fn every_example_warns_of_its_dummy_key_and_names_the_variable() {
    for path in examples() {
        let loaded = loaded(&path);
        assert!(loaded.notices[0].contains("dummy"), "{}", path.display());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("dummy-api-key"), "{}", path.display());
        let has_comments = path.extension().unwrap() == "yaml";
        assert!(!has_comments || text.contains("# ") && text.contains("SPL_LLM_API_KEY"));
    }
}

/// Asserts S0.42.
#[test]
fn yaml_and_json_of_one_name_say_the_same() {
    for path in examples() {
        let twin = path.with_extension("yaml");
        if path != twin {
            let without_file =
                |shown: &str, path: &Path| shown.replace(&path.display().to_string(), "");
            let (json, yaml) = (loaded(&path).shown, loaded(&twin).shown);
            assert_eq!(without_file(&json, &path), without_file(&yaml, &twin));
        }
    }
}

/// Asserts S0.26, S0.42, S0.64.
#[tokio::test]
async fn every_example_runs_as_an_agent_with_the_scripted_model() {
    for path in examples() {
        let tool = loaded(&path).settings.tool;
        let home = TempDir::new().unwrap();
        let mut command = sepal(&home);
        // The file alone means the agent: it wants standard input and output and no listener.
        command.arg("--config").arg(&path);
        let scripted = [
            ("SPL_LLM_PROVIDER", "scripted"),
            ("SPL_LLM_MODEL", "scripted"),
            ("SPL_LLM_SCRIPTED_PACE_MS", "0"),
        ];
        let mut process = command.envs(scripted).spawn().unwrap();
        let (client, _hears) = TestClient::new(None);
        let client = connect(&mut process, client).await;
        let tools = client.list_all_tools().await.unwrap();
        assert_eq!(tools[0].name, tool.name, "{}", path.display());
        let Value::Object(arguments) = json!({ tool.argument_name: "Who are you?" }) else {
            unreachable!()
        };
        let call = CallToolRequestParams::new(tool.name).with_arguments(arguments);
        let (text, is_error) = text_of(&client.call_tool(call).await.unwrap());
        assert!(!is_error && text.contains("I follow a script"), "{text}");
    }
}
