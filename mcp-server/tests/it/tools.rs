//! What the server says about itself.

use rmcp::{
    model::{CustomRequest, ErrorCode},
    service::ServiceError,
};
use serde_json::{Value, json};

use crate::harness::{Harness, in_time};

#[test]
fn the_definitions_that_the_gateway_compiles_in_are_the_servers_own() {
    let described = std::process::Command::new(env!("CARGO_BIN_EXE_sepal-mcp-server"))
        .arg("--describe")
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(described.stdout).unwrap(),
        include_str!("../../tools.json"),
        "run `sepal-mcp-server --describe > mcp-server/tools.json`"
    );
}

/// Asserts S2.46.
#[tokio::test]
async fn a_client_is_told_the_same_definitions() {
    let harness = Harness::start().await;
    let listed = in_time(harness.client.list_all_tools()).await.unwrap();
    let compiled: Value = serde_json::from_str(include_str!("../../tools.json")).unwrap();
    assert_eq!(serde_json::to_value(listed).unwrap(), compiled);
}

#[tokio::test]
async fn wrong_arguments_are_told_to_the_model() {
    let harness = Harness::start().await;
    let table = [
        ("read_file", json!({}), "missing field `path`"),
        ("read_file", json!({ "path": 7 }), "invalid type"),
        (
            "read_file",
            json!({ "path": "a", "paht": "b" }),
            "unknown field `paht`",
        ),
        ("list_files", json!({ "depth": -1 }), "invalid value"),
    ];
    for (tool, arguments, expected) in table {
        let told = harness.refuses(tool, arguments).await;
        assert!(told.contains(expected), "{told}");
    }
}

#[tokio::test]
async fn an_unknown_tool_is_a_fault_of_the_protocol() {
    let harness = Harness::start().await;
    let request = rmcp::model::CallToolRequestParams::new("no_such_tool");
    let error = in_time(harness.client.call_tool(request))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no_such_tool"), "{error}");
}

#[tokio::test]
async fn what_is_not_declared_is_not_answered() {
    let harness = Harness::start().await;
    for method in [
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    ] {
        let params = json!({ "uri": "a:b" });
        let request = CustomRequest::new(method, Some(params));
        match in_time(harness.client.send_request(request.into())).await {
            Err(ServiceError::McpError(error)) => {
                assert_eq!(error.code, ErrorCode::METHOD_NOT_FOUND, "{method}: {error}");
            }
            answer => panic!("{method} is answered: {answer:?}"),
        }
    }
}

#[test]
fn a_wrong_option_or_workspace_is_refused_in_words() {
    for (options, expected) in [
        (["--nonsense", ""], "unknown option `--nonsense`"),
        (
            ["--workspace", "/no/such/folder"],
            "`/no/such/folder` cannot be opened",
        ),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_sepal-mcp-server"))
            .args(options)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && said.contains(expected),
            "{said}"
        );
    }
}
