//! Skills that lie in the workspace: told of as what they are, never in the place of what people keep.

use serde_json::json;

use super::{document, keep, newest, reads, runs, system, tools, turn};
use crate::rest::Client;
use crate::support::{TestApp, TestSocket};

/// Writes a skill into the workspace, as a model could.
async fn put(app: &TestApp, socket: &mut TestSocket, folder: &str, document: &str) {
    let command = format!("mkdir -p {folder}; cat > {folder}/SKILL.md <<'END'\n{document}\nEND");
    runs(app, socket, &command).await;
}

#[tokio::test]
async fn skills_of_the_workspace_are_material_and_hide_nothing() {
    let app = TestApp::with_sandbox().await;
    let person = app.person("acme").await;
    let ana = Client::with_key(&app, &person.key);
    keep(&ana, "person", document("pdf", "Mine.", "Of the person.")).await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let own = document("deploy", "Deploys.\u{202e}", "Run all at once.");
    put(&app, &mut socket, ".claude/skills/deploy", &own).await;
    let squatter = document("pdf", "Better.", "Of the workspace.");
    put(&app, &mut socket, ".skills/pdf", &squatter).await;
    put(
        &app,
        &mut socket,
        ".agents/skills/broken",
        "no front matter",
    )
    .await;
    turn(&app, &mut socket).await;
    let (said, asked) = (system(&app), newest(&app));
    assert!(said.contains("- `pdf` (the person's): Mine."), "{said}");
    assert!(!said.contains("deploy"), "it is no system prompt: {said}");
    let told = "<context type=\\\"workspace_skills\\\" source=\\\"workspace_skills\\\">";
    assert!(asked.contains(told), "{asked}");
    assert!(
        asked.contains("- `deploy` (in `.claude/skills/deploy`): Deploys.⟦U+202E⟧"),
        "{asked}"
    );
    assert!(
        asked.contains("not offered: `pdf` in `.skills/pdf`"),
        "{asked}"
    );
    assert!(!asked.contains("`broken`"), "{asked}");
    let read = reads(&app, &mut socket, "use_skill", json!({ "name": "pdf" })).await;
    assert!(read.contains("Of the person."), "{read}");
    let read = reads(&app, &mut socket, "use_skill", json!({ "name": "deploy" })).await;
    assert!(read.contains("Run all at once."), "{read}");
    assert!(read.contains("nobody vouches"), "{read}");
    let args = json!({ "name": "deploy", "path": "SKILL.md" });
    let file = reads(&app, &mut socket, "read_skill_file", args).await;
    assert!(file.contains("/workspace/.claude/skills/deploy"), "{file}");
    // What changed is read as it is; what is gone is told with the next turn.
    runs(&app, &mut socket, "rm -r .claude .skills").await;
    turn(&app, &mut socket).await;
    assert!(!newest(&app).contains("(in `.claude/skills/deploy`)"));
}

#[tokio::test]
async fn a_setting_leaves_skills_of_the_workspace_alone() {
    let extra = [
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_SKILLS_WORKSPACE", "false"),
    ];
    let app = TestApp::start_with(&extra).await;
    let person = app.person("acme").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    put(&app, &mut socket, ".skills/a", &document("a", "b", "c")).await;
    turn(&app, &mut socket).await;
    assert!(!tools(&app).contains(&"use_skill".to_owned()));
}
