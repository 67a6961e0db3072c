//! Who may do what: every operation of REST and every command of the socket, asked by every role of a
//! tenant about what is their own, a colleague's and the tenant's, against the table of `docs/roles.md`;
//! and by somebody of another tenant, and about what is not there, which is always not found.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use reqwest::Method;
use sepal::domain::{Right, Rights, Role, UserId};
use sepal::gateway::wire::COMMANDS;
use sepal::tenancy::{NewScimToken, RoleDraft};
use serde_json::{Value, json};

use crate::rest::{Answer, Client};
use crate::support::{Person, TestApp, TestSocket};

/// The columns of the table.
const ROLES: [&str; 6] = [
    "viewer",
    "approver",
    "member",
    "admin",
    "owner",
    "installation admin",
];

/// Operations that are no question of roles: probes, ways in, descriptions, and links that carry a secret
/// of their own (`isolation.rs` says why each is open).
const OPEN: &[&str] = &[
    "read_health",
    "read_readiness",
    "read_metrics",
    "set_up",
    "open_link",
    "read_invitation",
    "accept_invitation",
    "sign_in",
    "sign_out",
    "read_shared",
    "read_mcp_client",
    "return_from_authorization",
    "finish_mcp_connection",
    "return_from_issuer",
    "sign_in_by_proxy",
    "ask_passkey",
    "sign_in_by_passkey",
    "begin_oidc",
    "return_from_oidc",
    "finish_oidc",
    "log_out_by_oidc",
    "log_out_in_frame",
];

/// Operations that make something of one's own under whatever name it gets, so that nothing is missing.
const CREATES: &[&str] = &["put_provider", "count_tokens"];

/// The act that each changing operation leaves in the audit of its tenant.
const ACTS: &[(&str, &str)] = &[
    ("put_sharing", "tenant.links_switched"),
    ("add_person", "user.added"),
    ("add_service_account", "user.added"),
    ("change_tenant", "tenant.resumed"),
    ("change_person", "user.role_set"),
    ("sign_out_person", "user.signed_out"),
    ("reset_passkey_only", "user.passkey_only_set"),
    ("delete_person", "user.given_up"),
    ("add_role", "role.added"),
    ("change_role", "role.changed"),
    ("delete_role", "role.removed"),
    ("set_person_roles", "role.given"),
    ("add_group", "group.added"),
    ("change_group", "group.changed"),
    ("delete_group", "group.removed"),
    ("add_group_member", "group.joined"),
    ("set_group_access", "group.access_given"),
    ("remove_group_member", "group.left"),
    ("revoke_scim_token", "scim_token.revoked"),
    ("link_directory_person", "directory.person_linked"),
    ("unlink_directory_person", "directory.person_unlinked"),
    ("link_directory_group", "directory.group_linked"),
    ("unlink_directory_group", "directory.group_unlinked"),
    ("invite_person", "invitation.added"),
    ("withdraw_invitation", "invitation.withdrawn"),
    ("revoke_key", "key.revoked"),
    ("put_mail", "user.mail_set"),
    ("put_provider", "provider.set"),
    ("delete_provider", "provider.removed"),
    ("set_mcp_secret", "secret.set"),
    ("delete_mcp_secret", "secret.removed"),
    ("add_mcp_server", "server.added"),
    ("change_mcp_server", "server.changed"),
    ("delete_mcp_server", "server.removed"),
    ("set_mcp_tool", "tool.set"),
    ("create_rule", "rule.added"),
    ("delete_rule", "rule.removed"),
    ("set_budget", "budget.set"),
    ("delete_budget", "budget.removed"),
    ("create_skill", "skill.added"),
    ("replace_skill", "skill.replaced"),
    ("switch_skill", "skill.switched"),
    ("delete_skill", "skill.removed"),
    ("create_assistant", "assistant.added"),
    ("change_assistant", "assistant.changed"),
    ("restore_assistant_version", "assistant.changed"),
    ("set_assistant_access", "assistant.shared"),
    ("delete_assistant", "assistant.removed"),
    ("set_model_default", "model_default.set"),
    ("set_compaction", "compaction.set"),
    ("clear_compaction", "compaction.removed"),
    ("add_webhook", "webhook.added"),
    ("delete_webhook", "webhook.removed"),
    ("share_session", "session.shared"),
    ("stop_sharing", "session.share_removed"),
    ("rename_passkey", "passkey.renamed"),
    ("delete_passkey", "passkey.removed"),
];

/// Operations that change something and are no acts of their own: what they do to sessions is in their journals,
/// or comes later; others only ask.
const NO_ACTS: &[&str] = &[
    "accept_mcp_installation",
    // A key makes no keys, and everybody here comes with one.
    "add_key",
    "add_service_account_key",
    "add_scim_token",
    // The audit of the new tenant begins with it.
    "add_tenant",
    // A key changes no password, and its user has no browser to sign out of.
    "change_password",
    "end_sign_in",
    // Nobody deletes the tenant that they are in.
    "delete_tenant",
    "add_passkey",
    "set_passkey_only",
    "answer_elicitation",
    "attach_file",
    // No built-in role reads what others wrote (`rights/readings.rs`).
    "begin_reading",
    "end_reading",
    "see_reading",
    "begin_dry_run",
    // Only a browser is sent to a provider, and everybody here comes with a key.
    "begin_step_up",
    "finish_step_up",
    "call_for_view",
    "cancel_mcp_installation",
    "challenge_gesture",
    "challenge_passkey",
    "change_session",
    "change_sessions",
    "check_mcp_installation",
    "check_models",
    "check_skill",
    "choose_compaction",
    "choose_model",
    "choose_window",
    // Nothing is set here that it could clear; what changes nothing is no act.
    "clear_model_default",
    "close_view",
    "complete_argument",
    "connect_mcp_server",
    "count_tokens",
    "create_session",
    "decide_call",
    "delete_file",
    "delete_session",
    "disconnect_mcp_server",
    "dismiss_mcp_connection",
    "drop_dry_run",
    "fill_mcp_bundle_entry",
    "fill_mcp_registry_entry",
    "fork_session",
    "get_prompt",
    // Nobody here has left (`rights/hand_over.rs`).
    "hand_over",
    "import_sessions",
    "issue_ticket",
    "make_gesture",
    "plan_undo",
    "preview_mcp_package",
    "preview_rule",
    "put_file",
    "read_for_view",
    "read_pasted_servers",
    "read_resource",
    "read_view",
    "replace_mcp_bundle",
    "reset_context",
    "resolve_call",
    "restart_mcp_server",
    "retry_mcp_installation",
    "retry_turn",
    "send_message",
    "simulate_rule",
    "stop_call",
    "stop_turn",
    "test_mcp_server",
    "test_new_mcp_server",
    "test_provider",
    "test_webhook",
    "undo_change",
    "update_session_assistant",
    "upload_mcp_bundle",
    "verify_audit",
    "withdraw_message",
];

/// The things of one person, real behind each id.
#[derive(Clone)]
struct Things {
    session: String,
    call: String,
    share: String,
    blob: String,
    server: String,
    skill: String,
    assistant: String,
    rule: String,
    provider: String,
    webhook: String,
    person: String,
    person_name: String,
    invitation: String,
    key: String,
    tenant: String,
    role: String,
    group: String,
    scim_token: String,
}

impl Things {
    /// Ids in the right form behind which nothing is.
    fn missing() -> Self {
        let id = |prefix: &str| format!("{prefix}_{}", "0".repeat(32));
        Self {
            session: id("ses"),
            call: "call_1_0".to_owned(),
            share: id("shr"),
            blob: "0".repeat(64),
            server: "nothing".to_owned(),
            skill: id("skl"),
            assistant: id("ast"),
            rule: id("rul"),
            provider: "nothing".to_owned(),
            webhook: id("whk"),
            person: id("usr"),
            person_name: "nobody".to_owned(),
            invitation: id("inv"),
            key: id("key"),
            tenant: id("ten"),
            role: id("rol"),
            group: id("grp"),
            scim_token: id("sct"),
        }
    }

    fn fill(&self, path: &str) -> String {
        let id = if path.starts_with("/api/sessions/") {
            &self.session
        } else if path.starts_with("/api/skills/") {
            &self.skill
        } else if path.starts_with("/api/assistants/") {
            &self.assistant
        } else if path.starts_with("/api/rules/") {
            &self.rule
        } else if path.starts_with("/api/webhooks/") {
            &self.webhook
        } else if path.starts_with("/api/providers/") {
            &self.provider
        } else if path.starts_with("/api/tenants/") {
            &self.tenant
        } else if path.starts_with("/api/people/") || path.starts_with("/api/service-accounts/") {
            &self.person
        } else if path.starts_with("/api/invitations/") {
            &self.invitation
        } else if path.starts_with("/api/keys/") {
            &self.key
        } else if path.starts_with("/api/roles/") {
            &self.role
        } else if path.starts_with("/api/scim-tokens/") {
            &self.scim_token
        } else if path.starts_with("/api/directory/people/") {
            &self.person
        } else if path.starts_with("/api/groups/") || path.starts_with("/api/directory/groups/") {
            &self.group
        } else {
            "nothing"
        };
        path.replace("{id}", id)
            .replace("{callId}", &self.call)
            .replace("{call}", &self.call)
            .replace("{person}", &self.person)
            .replace("{share}", &self.share)
            .replace("{blob}", &self.blob)
            .replace("{name}", &self.server)
            .replace("{tool}", "look")
            .replace("{secret}", "A")
            .replace("{number}", "1")
            .replace("{version}", "1")
            .replace("{path}", "a.txt")
            .replace("{sha256}", &"0".repeat(64))
    }
}

/// Makes a token of the tenant's directory. A tenant has five at most.
async fn scim_token(app: &TestApp, person: &Person, name: &str) -> String {
    let administration = app.tenancy.administration();
    let known = administration.scim_tokens(&person.tenant).await.unwrap();
    if let Some(oldest) = known.get(4) {
        let revoked = administration.revoke_scim_token(&person.tenant, &oldest.id);
        revoked.await.unwrap();
    }
    let new = NewScimToken {
        name: name.to_owned(),
        role: Role::Member,
        deletes: false,
    };
    let created = administration.add_scim_token(&person.tenant, None, new);
    created.await.unwrap().token.id
}

/// Makes everything that a person can have, while they may.
async fn things(app: &TestApp, person: &Person, name: &str, scope: &str) -> Things {
    let client = Client::with_key(app, &person.key);
    let id = |answer: Answer| answer.json()["id"].as_str().unwrap_or_default().to_owned();
    app.model.forget_rest();
    app.model.will_call("list_files", json!({}));
    let mut socket = TestSocket::open(app.address, person, None).await;
    socket.say("list").await;
    let card = socket.wait_for_approval().await;
    let session = socket.session();
    let at = |rest: &str| format!("/api/sessions/{session}/{rest}");
    let share = client
        .post(&at("shares"), json!({ "audience": "tenant" }))
        .await;
    let attached = client
        .request(Method::POST, &at("attachments?name=a.txt"))
        .body("a");
    let blob = Answer::of(attached.send().await.unwrap()).await;
    let server = format!("{name}-server");
    let config = json!({ "name": server, "scope": scope, "config": { "command": "true" } });
    assert_eq!(client.post("/api/mcp/add", config).await.status, 201);
    let skill = json!({ "name": format!("{name}-skill"), "description": "Helps", "body": "Help." });
    let skill = client
        .post(&format!("/api/skills?scope={scope}"), skill)
        .await;
    let of_whom = if scope == "tenant" { "team" } else { "person" };
    let assistant = client
        .post(
            &format!("/api/assistants?scope={of_whom}"),
            json!({ "name": "Helper" }),
        )
        .await;
    let rule =
        json!({ "effect": "ask", "scope": scope, "server": "sandbox", "tool": "list_files" });
    let rule = client.post("/api/rules", rule).await;
    let provider = json!({ "kind": "scripted", "scope": "tenant", "models": ["scripted"] });
    let provider_name = format!("{name}-provider");
    client
        .put(&format!("/api/providers/{provider_name}"), provider)
        .await;
    let webhook = client
        .post("/api/webhooks", json!({ "url": "http://127.0.0.1:9/hook" }))
        .await;
    let added = client
        .post("/api/people", json!({ "name": format!("{name}-person") }))
        .await;
    let invited = client.post("/api/invitations", json!({})).await.ok(201);
    let custom = json!({ "name": format!("{name} role"), "rights": [] });
    let custom = client.post("/api/roles", custom).await;
    let group = client.post("/api/groups", json!({ "name": format!("{name} group") }));
    let group = group.await.ok(201)["group"]["id"].clone();
    let user = UserId::parse(&user_of(app, &person.key).await).unwrap();
    let administration = app.tenancy.administration();
    let key = administration.create_key(&person.tenant, &user, "spare");
    let key = key.await.unwrap().id.to_string();
    let scim_token = if scope == "tenant" {
        scim_token(app, person, name).await
    } else {
        Things::missing().scim_token
    };
    Things {
        session,
        call: card["callId"].as_str().unwrap().to_owned(),
        share: id(share),
        blob: id(blob),
        server,
        skill: id(skill),
        assistant: id(assistant),
        rule: id(rule),
        provider: provider_name,
        webhook: id(webhook),
        person: id(added),
        person_name: format!("{name}-person"),
        invitation: invited["invitation"]["id"].as_str().unwrap().to_owned(),
        key,
        tenant: person.tenant.to_string(),
        role: id(custom),
        group: group.as_str().unwrap().to_owned(),
        scim_token,
    }
}

/// One role of the tenant, with what is theirs and what they find in their tenant.
struct Actor {
    role: &'static str,
    person: Person,
    own: Things,
    tenants: Things,
}

/// Somebody who made everything as an owner and has that role since.
async fn actor(app: &TestApp, role: &'static str) -> Actor {
    actor_named(app, role, &role.replace(' ', "-")).await
}

async fn actor_named(app: &TestApp, role: &'static str, name: &str) -> Actor {
    let person = app.person_with("acme", Role::Owner).await;
    let own = things(app, &person, name, "person").await;
    let keeper = app.person_with("acme", Role::Owner).await;
    let tenants = things(app, &keeper, &format!("shared-{name}"), "tenant").await;
    let administration = app.tenancy.administration();
    let keys = administration.keys(&person.tenant).await.unwrap();
    let me = Client::with_key(app, &person.key)
        .get("/api/auth/me")
        .await
        .ok(200);
    let is_own = |id: &str| me["user"]["id"] == id;
    let own_key = keys.iter().find(|key| is_own(&key.user.to_string()));
    let user = own_key.unwrap().user.clone();
    let is = match role {
        "viewer" => Role::Viewer,
        "approver" => Role::Approver,
        "admin" => Role::Admin,
        "owner" => Role::Owner,
        _ => Role::Member,
    };
    administration
        .set_role(&person.tenant, &user, is)
        .await
        .unwrap();
    if role == "installation admin" {
        let set = administration.set_installation_admin(&person.tenant, &user, true);
        set.await.unwrap();
    }
    Actor {
        role,
        person,
        own,
        tenants,
    }
}

/// A body that is fit for the operation; what is not told apart by roles is `{}`.
fn body(operation: &str, things: &Things, scope: &str) -> Value {
    let server = json!({ "config": { "command": "true" }, "scope": scope });
    let rule = json!({ "effect": "deny", "scope": scope, "server": "x", "tool": "y" });
    match operation {
        "set_budget" => {
            json!({ "level": if scope == "tenant" { "tenant" } else { "own" }, "period": "day", "limitUsd": 5 })
        }
        "add_mcp_server" | "test_new_mcp_server" => server,
        "read_pasted_servers" => json!({ "text": "npx -y some-server" }),
        "preview_mcp_package" => json!({ "config": { "command": "true" } }),
        "fill_mcp_registry_entry" => {
            json!({ "name": "a/b", "version": "1", "way": "x", "values": {} })
        }
        "change_mcp_server" => json!({ "timeout": 10 }),
        "set_mcp_secret" => json!({ "value": "x" }),
        "set_mcp_tool" => json!({ "enabled": false }),
        "accept_mcp_installation" => json!({ "content": "x" }),
        "replace_mcp_bundle" => json!({ "server": things.server, "seen": "x" }),
        "set_compaction" => json!({ "strategies": ["none"] }),
        "set_model_default" => {
            json!({ "provider": "default", "scope": if scope == "tenant" { "tenant" } else { "own" } })
        }
        "put_mail" => json!({ "isOn": false }),
        "add_person" => json!({ "name": "newcomer" }),
        "add_service_account" => json!({ "name": "robot" }),
        "add_role" => json!({ "name": "newcomers", "rights": [] }),
        "change_role" | "change_group" => json!({ "description": "x" }),
        "hand_over" => json!({ "to": things.person }),
        "set_group_access" => json!({ "models": [things.provider] }),
        "set_person_roles" => json!({ "roles": [things.role] }),
        "add_group" => json!({ "name": "newcomers" }),
        "link_directory_person" => json!({ "userName": things.person_name }),
        "begin_reading" => json!({ "reason": "x" }),
        "change_person" => json!({ "role": "viewer" }),
        "change_password" => json!({ "new": "correct horse battery" }),
        "add_tenant" => json!({ "name": "new-tenant" }),
        "change_tenant" => json!({ "suspended": false }),
        "delete_tenant" => json!({ "name": "acme" }),
        "delete_person" => json!({ "name": things.person_name }),
        "add_passkey" => json!({ "name": "x", "credential": {} }),
        "rename_passkey" => json!({ "name": "x" }),
        "set_passkey_only" => json!({ "passkeyOnly": true }),
        "put_provider" => json!({ "kind": "scripted", "scope": "tenant", "models": ["scripted"] }),
        "create_rule" | "preview_rule" | "simulate_rule" => rule,
        "change_sessions" => json!({ "ids": [things.session], "action": "pin" }),
        "change_session" => json!({ "title": "x" }),
        "decide_call" => json!({ "callId": things.call, "approved": false }),
        "begin_dry_run" => json!({ "callId": things.call }),
        "answer_elicitation" => {
            json!({ "elicitationId": format!("elc_{}", "0".repeat(32)), "action": "decline" })
        }
        "complete_argument" => {
            json!({ "server": "x", "prompt": "x", "argument": "x", "value": "x" })
        }
        "count_tokens" | "send_message" => json!({ "text": "x" }),
        "get_prompt" => json!({ "server": "x", "name": "x" }),
        "read_resource" | "read_view" => json!({ "server": "x", "uri": "x:y" }),
        "read_for_view" => json!({ "callId": things.call, "uri": "x:y" }),
        "share_session" => json!({ "audience": "tenant" }),
        "put_sharing" => json!({ "linksAllowed": true }),
        "create_skill" | "check_skill" | "replace_skill" => {
            json!({ "name": "other", "description": "x", "body": "x" })
        }
        "switch_skill" => json!({ "enabled": true }),
        "create_assistant" | "change_assistant" => json!({ "name": "Other" }),
        "set_assistant_access" => json!({ "entries": [] }),
        "add_webhook" => json!({ "url": "http://127.0.0.1:9/other" }),
        "undo_change" => json!({ "digest": "x" }),
        "withdraw_message" => json!({ "clientMessageId": "m1" }),
        "resolve_call" => json!({ "happened": true }),
        "call_for_view" => {
            json!({ "callId": things.call, "viewId": "v", "requestId": "r", "name": "look" })
        }
        "close_view" => json!({ "viewId": "v" }),
        "choose_model" => json!({ "model": "stub-large" }),
        "choose_window" => json!({ "whole": true }),
        "choose_compaction" => json!({ "strategies": ["delete-middle"] }),
        _ => json!({}),
    }
}

/// What operations without an id in their address are about: the caller's own things, and in some the
/// tenant's.
fn of_tenant(operation: &str) -> bool {
    matches!(
        operation,
        "set_budget"
            | "delete_budget"
            | "add_mcp_server"
            | "create_rule"
            | "create_skill"
            | "create_assistant"
            | "set_model_default"
            | "clear_model_default"
    )
}

fn query(operation: &str, scope: &str) -> String {
    let level = if scope == "tenant" { "tenant" } else { "own" };
    match operation {
        "delete_budget" => format!("?level={level}&period=day"),
        "clear_model_default" => format!("?scope={level}"),
        "create_skill" => format!("?scope={scope}"),
        "create_assistant" if scope == "tenant" => "?scope=team".to_owned(),
        "create_assistant" => "?scope=person".to_owned(),
        "search_sessions" | "search_session" => "?q=word".to_owned(),
        "attach_file" => "?name=b.txt".to_owned(),
        "read_changed_file" => "?path=a.txt".to_owned(),
        _ => String::new(),
    }
}

/// Lets the model answer whatever an operation asks of it, and what a turn of an earlier one still asks.
fn answer_all(app: &TestApp) {
    app.model.forget_rest();
    for _ in 0..8 {
        app.model.will_say("fine");
    }
}

async fn ask(app: &TestApp, key: &str, asked: (&Method, &str), body: &Value) -> u16 {
    answer_all(app);
    let client = Client::with_key(app, key);
    let request = client.request(asked.0.clone(), asked.1);
    let request = match *asked.0 {
        Method::GET => request,
        _ => request.json(body),
    };
    request.send().await.unwrap().status().as_u16()
}

/// A record of the audit: its place, what was done and by whom.
type Recorded = (String, String, Option<String>);

/// The newest records of the audit of a tenant, as somebody who sees all has them.
async fn recorded(auditor: &Client, limit: usize) -> Vec<Recorded> {
    let page = auditor
        .get(&format!("/api/audit?limit={limit}"))
        .await
        .ok(200);
    let items = page["items"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    items
        .map(|item| {
            let (id, act) = (text(&item["id"]), text(&item["act"]));
            (id.unwrap(), act.unwrap(), text(&item["person"]["id"]))
        })
        .collect()
}

/// The id of the user who has a key.
async fn user_of(app: &TestApp, key: &str) -> String {
    let me = Client::with_key(app, key).get("/api/auth/me").await.ok(200);
    me["user"]["id"].as_str().unwrap().to_owned()
}

/// `yes`: the role is let through, whatever comes of it. `no`: it is told that it may not. `–`: not found.
fn word(status: u16) -> &'static str {
    match status {
        403 => "no",
        404 => "–",
        401 => "signed out",
        500.. if status != 503 && status != 502 && status != 504 => "broken",
        _ => "yes",
    }
}

/// An operation as the description has it.
struct Operation {
    id: String,
    method: Method,
    path: String,
}

async fn operations(app: &TestApp) -> Vec<Operation> {
    let api = Client::nobody(app).get("/api/openapi.json").await.json();
    let mut all = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, about) in methods.as_object().unwrap() {
            all.push(Operation {
                id: about["operationId"].as_str().unwrap().to_owned(),
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
            });
        }
    }
    // What removes things comes last, and a thing after what is in it.
    all.sort_by_key(|operation| {
        let removes = operation.method == Method::DELETE;
        let depth = operation.path.matches('/').count();
        let within = if removes { usize::MAX - depth } else { 0 };
        (removes, within, operation.path.clone())
    });
    all
}

type Table = BTreeMap<(String, &'static str), Vec<&'static str>>;

fn has_id(path: &str) -> bool {
    path.contains('{') && !path.starts_with("/api/models/")
}

/// The objects that an operation is asked about, each with its name and scope.
fn about<'a>(
    operation: &Operation,
    actor: &'a Actor,
    colleague: &'a Things,
) -> Vec<(&'static str, &'a Things, &'static str)> {
    let path = operation.path.as_str();
    let is_shared_kind = [
        "/api/mcp/{",
        "/api/skills/{",
        "/api/assistants/{",
        "/api/rules/{",
    ]
    .iter()
    .any(|start| path.starts_with(start));
    let of_tenants = [
        "/api/providers/{",
        "/api/webhooks/{",
        "/api/people/{",
        "/api/service-accounts/{",
        "/api/invitations/{",
        "/api/roles/{",
        "/api/groups/{",
        "/api/scim-tokens/{",
        "/api/directory/people/{",
        "/api/directory/groups/{",
    ];
    let is_tenants_kind = of_tenants.iter().any(|start| path.starts_with(start));
    if is_shared_kind {
        vec![
            ("own", &actor.own, "person"),
            ("colleague's", colleague, "person"),
            ("tenant's", &actor.tenants, "tenant"),
        ]
    } else if ["/api/tenants/{", "/api/sign-ins/{"]
        .iter()
        .any(|start| path.starts_with(start))
    {
        vec![("own", &actor.own, "person")]
    } else if path.starts_with("/api/keys/{") {
        vec![
            ("own", &actor.own, "person"),
            ("tenant's", &actor.tenants, "tenant"),
        ]
    } else if is_tenants_kind {
        vec![("tenant's", &actor.tenants, "tenant")]
    } else if has_id(path) {
        vec![
            ("own", &actor.own, "person"),
            ("colleague's", colleague, "person"),
        ]
    } else if of_tenant(&operation.id) {
        vec![
            ("own", &actor.own, "person"),
            ("tenant's", &actor.own, "tenant"),
        ]
    } else {
        vec![("", &actor.own, "person")]
    }
}

/// A row of the table in the docs.
struct Row {
    operation: String,
    object: String,
    cells: Vec<String>,
    /// The sets of rights of which each one suffices; empty if no right counts.
    rights: Vec<Rights>,
}

impl Row {
    /// What the table says of a role.
    fn of(&self, role: &str) -> &str {
        let place = ROLES.iter().position(|known| *known == role).unwrap();
        &self.cells[place]
    }
}

/// The table as the docs have it.
fn written() -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/roles.md");
    let text = fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<String> = line
            .trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().trim_matches('`').to_owned())
            .collect();
        let ways = cells[8].split(" or ").filter(|way| !way.is_empty());
        let right = |name| Right::parse(name).unwrap_or_else(|| panic!("{name}"));
        Row {
            operation: cells[0].clone(),
            object: cells[1].clone(),
            cells: cells[2..8].to_vec(),
            rights: ways
                .map(|way| way.split(" and ").map(right).collect())
                .collect(),
        }
    })
    .collect()
}

/// Asserts O5.
#[tokio::test]
async fn every_role_may_do_what_the_table_says_and_nothing_else() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_OUTGOING_ALLOW", "127.0.0.0/8"),
    ])
    .await;
    let colleague = app.person_with("acme", Role::Owner).await;
    let colleagues = things(&app, &colleague, "colleague", "person").await;
    let stranger = app.person_with("other", Role::Owner).await;
    let operations = operations(&app).await;
    let auditor = app.person_with("acme", Role::Owner).await;
    let auditor = Client::with_key(&app, &auditor.key);
    // Operations that were done, with a record and without one.
    let (mut told, mut silent) = (BTreeSet::new(), BTreeSet::new());
    let mut table = Table::new();
    let mut wrong = unsaid(&operations);
    // Before anything is asked, so that no turn of one takes the model's words for another.
    let mut actors = Vec::new();
    for role in ROLES {
        actors.push(actor(&app, role).await);
    }
    for actor in actors {
        let role = actor.role;
        let user = user_of(&app, &actor.person.key).await;
        for spec in COMMANDS {
            let auth = Some(actor.own.session.as_str());
            let mut socket = TestSocket::open(app.address, &actor.person, auth).await;
            answer_all(&app);
            let answer = socket.ask(spec.name, &(spec.example)()).await;
            let may = answer["error"]["code"] != "not_allowed";
            let row = (spec.name.to_owned(), "own");
            table
                .entry(row)
                .or_default()
                .push(if may { "yes" } else { "no" });
        }
        for operation in operations
            .iter()
            .filter(|it| !OPEN.contains(&it.id.as_str()))
        {
            let Operation { id, method, path } = operation;
            if has_id(path) && !CREATES.contains(&id.as_str()) {
                let nothing = Things::missing();
                let body = body(id, &nothing, "person");
                let target = format!("{}{}", nothing.fill(path), query(id, "person"));
                let status = ask(&app, &actor.person.key, (method, &target), &body).await;
                if !matches!(status, 403 | 404) {
                    let _ = writeln!(wrong, "{role}: {id} of what is not there: {status}");
                }
            }
            for (name, things, scope) in about(operation, &actor, &colleagues) {
                let target = format!("{}{}", things.fill(path), query(id, scope));
                let body = body(id, things, scope);
                if has_id(path) && !CREATES.contains(&id.as_str()) {
                    let status = ask(&app, &stranger.key, (method, &target), &body).await;
                    if status != 404 {
                        let _ =
                            writeln!(wrong, "another tenant: {id} of {role}'s {name}: {status}");
                    }
                }
                let expected = ACTS.iter().find(|(operation, _)| operation == id);
                let newest = match expected {
                    Some(_) => recorded(&auditor, 1).await.pop(),
                    None => None,
                };
                let status = ask(&app, &actor.person.key, (method, &target), &body).await;
                if let Some((_, act)) = expected {
                    let since = recorded(&auditor, 20).await.into_iter();
                    let since = since.take_while(|record| Some(record) != newest.as_ref());
                    let found: Vec<Recorded> = since.filter(|(_, it, _)| it == act).collect();
                    if found.is_empty() && status < 300 {
                        silent.insert(id.clone());
                    }
                    if let Some((_, _, by)) = found.first() {
                        told.insert(id.clone());
                        if status >= 300 || found.len() > 1 || by.as_deref() != Some(&user) {
                            let _ = writeln!(wrong, "{role}: {id} ({name}): {status}: {found:?}");
                        }
                    }
                }
                let said = word(status);
                if matches!(said, "broken" | "signed out") {
                    let _ = writeln!(wrong, "{} {id} ({name}): {status}", actor.role);
                }
                table.entry((id.clone(), name)).or_default().push(said);
            }
        }
    }
    // What changes nothing, because it is so already, is no act.
    for id in silent.difference(&told) {
        let _ = writeln!(wrong, "`{id}` was done, and the audit does not say so");
    }
    assert!(told.len() > ACTS.len() / 2, "{told:?}");
    wrong += &differences(&table);
    assert!(
        wrong.is_empty(),
        "docs/roles.md says something else:\n{wrong}"
    );
}

/// What the built-in roles may is what their rights say, for every row that names a right.
#[test]
fn the_table_names_a_right_for_everything_that_only_some_may() {
    for row in written() {
        let what = format!("{} ({})", row.operation, row.object);
        let is_administration = row.of("member") != "yes" && row.of("owner") == "yes";
        assert!(!is_administration || !row.rights.is_empty(), "{what}");
        for (name, role) in [
            ("viewer", Role::Viewer),
            ("approver", Role::Approver),
            ("member", Role::Member),
            ("admin", Role::Admin),
            ("owner", Role::Owner),
        ] {
            let has = |rights: &Rights| rights.without(role.rights()).is_empty();
            let may = row.of(name) == "yes";
            assert!(
                row.rights.is_empty() || may == row.rights.iter().any(has),
                "{what}: {name}"
            );
        }
    }
}

/// Asserts O5: for everything that only some may, a member needs a custom role with exactly the right of the
/// table, and no other right will do.
#[tokio::test]
async fn a_custom_role_lets_a_member_do_what_its_rights_say_and_nothing_else() {
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_OUTGOING_ALLOW", "127.0.0.0/8"),
    ])
    .await;
    let colleague = app.person_with("acme", Role::Owner).await;
    let colleagues = things(&app, &colleague, "colleague", "person").await;
    let actor = actor_named(&app, "member", "holder").await;
    let tenant = &actor.person.tenant;
    let administration = app.tenancy.administration();
    let draft = |rights| RoleDraft {
        name: "Probe".to_owned(),
        description: String::new(),
        rights,
    };
    let probe = administration.add_role(tenant, draft(Rights::NONE));
    let probe = probe.await.unwrap();
    let user = UserId::parse(&user_of(&app, &actor.person.key).await).unwrap();
    let given = std::slice::from_ref(&probe);
    let given = administration.give_roles(tenant, &user, given, &[]).await;
    given.unwrap();
    let all: Rights = Right::ALL.iter().copied().collect();
    let written = written();
    let mut wrong = String::new();
    let mut tried = 0;
    for operation in operations(&app).await {
        let Operation { id, method, path } = &operation;
        let about = about(&operation, &actor, &colleagues);
        for row in written.iter().filter(|row| row.operation == *id) {
            let object = about.iter().find(|(name, ..)| *name == row.object);
            let (_, things, scope) = object.unwrap();
            let target = format!("{}{}", things.fill(path), query(id, scope));
            let body = body(id, things, scope);
            let attempt = async |rights: Rights| {
                let changed = administration.change_role(tenant, &probe.id, draft(rights));
                changed.await.unwrap();
                word(ask(&app, &actor.person.key, (method, &target), &body).await)
            };
            // One of each way is missing, so that no way is left.
            let missing: Rights = row
                .rights
                .iter()
                .filter_map(|way| way.iter().next())
                .collect();
            for way in &row.rights {
                tried += 1;
                let said = attempt(all.without(missing)).await;
                if said == "yes" {
                    let _ = writeln!(
                        wrong,
                        "{id} ({}) without {}: {said}",
                        row.object,
                        way.to_text()
                    );
                }
                let said = attempt(*way).await;
                if said != "yes" {
                    let _ = writeln!(
                        wrong,
                        "{id} ({}) with {}: {said}",
                        row.object,
                        way.to_text()
                    );
                }
            }
        }
    }
    assert!(tried > 40, "{tried}");
    assert!(
        wrong.is_empty(),
        "docs/roles.md names other rights:\n{wrong}"
    );
}

/// The operations of which neither list says whether they are acts.
fn unsaid(operations: &[Operation]) -> String {
    let unsaid = operations.iter().filter(|it| {
        let is_said = ACTS.iter().any(|(id, _)| *id == it.id) || NO_ACTS.contains(&&*it.id);
        it.method != Method::GET && !OPEN.contains(&&*it.id) && !is_said
    });
    let mut wrong = String::new();
    for operation in unsaid {
        let _ = writeln!(wrong, "`{}` is in ACTS or in NO_ACTS", operation.id);
    }
    wrong
}

/// The rows of the table that the documentation does not have, and those that it has alone.
fn differences(table: &Table) -> String {
    let mut wrong = String::new();
    let written = written();
    for ((operation, object), cells) in table {
        let mut known = written.iter();
        let known = known.find(|row| row.operation == *operation && row.object == *object);
        if known.is_none_or(|known| known.cells != *cells) {
            let _ = writeln!(
                wrong,
                "| `{operation}` | {object} | {} |",
                cells.join(" | ")
            );
        }
    }
    for Row {
        operation, object, ..
    } in &written
    {
        let is_known = table.keys().any(|(id, of)| id == operation && of == object);
        if !is_known {
            let _ = writeln!(
                wrong,
                "`{operation}` ({object}) is in the table and nowhere else"
            );
        }
    }
    wrong
}
