//! Providers, secrets, MCP servers and their tools: what is added while the server runs.

use secrecy::SecretString;
use sepal::domain::{
    McpServerConfig, Scope, Tenant, TenantId, Timestamp, Tool, ToolRef, UserId, WebhookId,
};
use sepal::session::PolicyEffect;
use sepal::store::records::{
    Address, BundleRow, McpServerRow, ProviderRow, SecretRow, ToolSetting, WebhookRow,
};
use sepal::store::{Error, Records, Sealer};
use serde_json::json;

use super::records::with_records;

const NOW: Timestamp = Timestamp(1_000);

fn tenant(bits: u128) -> TenantId {
    TenantId::from_bits(bits)
}

fn provider(scope: Scope, id: &str) -> ProviderRow {
    ProviderRow {
        scope,
        id: id.into(),
        kind: "openai-compatible".into(),
        base_url: Some("http://localhost:11434/v1".into()),
        api: None,
        models: vec!["a".into(), "b, \"c\"".into()],
        windows: Some(r#"{"usual":8192}"#.into()),
        sealed_key: Some("sealed".into()),
        updated_at: NOW,
    }
}

#[tokio::test]
async fn a_tenant_sees_its_providers_and_those_of_the_installation() {
    with_records(async |records| {
        let providers = records.providers();
        let (everybody, one, two) = (
            provider(Scope::Installation, "z"),
            provider(Scope::Tenant(tenant(1)), "a"),
            provider(Scope::Tenant(tenant(2)), "a"),
        );
        for row in [&two, &one, &everybody] {
            providers.put(row).await.unwrap();
        }
        let seen = providers.list(&tenant(1)).await.unwrap();
        assert_eq!(seen, [everybody.clone(), one.clone()]);
        let all = providers.all().await.unwrap();
        assert_eq!(all, [everybody.clone(), one.clone(), two.clone()]);
        let nobodys = providers.list(&tenant(3)).await.unwrap();
        assert_eq!(nobodys, std::slice::from_ref(&everybody));
        let changed = ProviderRow {
            base_url: None,
            sealed_key: None,
            models: Vec::new(),
            ..one.clone()
        };
        providers.put(&changed).await.unwrap();
        let kept = providers.get(&one.scope, "a").await.unwrap();
        assert_eq!(kept, Some(changed));
        assert_eq!(providers.get(&two.scope, "a").await.unwrap(), Some(two));
        assert_eq!(providers.get(&one.scope, "z").await.unwrap(), None);
        assert!(!providers.delete(&one.scope, "z").await.unwrap());
        assert!(providers.delete(&everybody.scope, "z").await.unwrap());
        assert_eq!(providers.list(&tenant(3)).await.unwrap(), []);
    })
    .await;
}

#[tokio::test]
async fn a_secret_is_found_in_its_own_scope_only() {
    with_records(async |records| {
        let secrets = records.secrets();
        let put = async |scope: &Scope, name: &str, sealed: &str| {
            let row = SecretRow {
                scope: scope.clone(),
                name: name.into(),
                sealed: sealed.into(),
                updated_at: NOW,
            };
            secrets.put(&row).await.unwrap();
        };
        let (one, two) = (Scope::Tenant(tenant(1)), Scope::Tenant(tenant(2)));
        put(&one, "TOKEN", "old").await;
        put(&one, "TOKEN", "new").await;
        put(&one, "KEY", "k").await;
        put(&Scope::Installation, "TOKEN", "everybody's").await;
        assert_eq!(secrets.names(&one).await.unwrap(), ["KEY", "TOKEN"]);
        let kept = secrets.get(&one, "TOKEN").await.unwrap();
        assert_eq!(kept.as_deref(), Some("new"));
        assert_eq!(secrets.get(&two, "TOKEN").await.unwrap(), None);
        assert!(secrets.names(&two).await.unwrap().is_empty());
        assert!(!secrets.delete(&two, "TOKEN").await.unwrap());
        assert!(secrets.delete(&one, "TOKEN").await.unwrap());
        let kept = secrets.get(&Scope::Installation, "TOKEN").await.unwrap();
        assert_eq!(kept.as_deref(), Some("everybody's"));
    })
    .await;
}

async fn two_tenants(records: &Records) {
    for (bits, name) in [(1, "one"), (2, "two")] {
        let tenant = Tenant {
            id: tenant(bits),
            name: name.into(),
        };
        records.tenants().add(&tenant, NOW).await.unwrap();
    }
}

fn server(bits: u128, config: serde_json::Value) -> McpServerRow {
    McpServerRow {
        tenant: tenant(bits),
        name: "time".into(),
        owner: None,
        config: serde_json::from_value::<McpServerConfig>(config).unwrap(),
        sealed: None,
        updated_at: NOW,
    }
}

fn setting(server: &str, tool: &str, effect: PolicyEffect) -> ToolSetting {
    ToolSetting {
        tool: ToolRef {
            server: server.into(),
            tool: tool.into(),
        },
        is_enabled: effect != PolicyEffect::Deny,
        effect,
    }
}

#[tokio::test]
async fn a_servers_name_is_taken_in_its_tenant_only() {
    with_records(async |records| {
        two_tenants(&records).await;
        let servers = records.mcp_servers();
        let one = server(1, json!({"command": "uvx", "args": ["mcp-server-time"]}));
        let two = server(2, json!({"url": "https://e.test", "headers": {"a": "b"}}));
        servers.put(&one).await.unwrap();
        servers.put(&two).await.unwrap();
        let again = servers.put(&one).await.unwrap_err();
        assert!(matches!(again, Error::Taken(name) if name == "time"));
        let orphan = servers.put(&server(9, json!({}))).await;
        assert!(matches!(orphan, Err(Error::Database(_))));
        let changed = server(1, json!({"command": "uvx", "enabled": false}));
        assert!(servers.update(&changed).await.unwrap());
        let listed = servers.list(&tenant(1)).await.unwrap();
        assert_eq!(listed, std::slice::from_ref(&changed));
        assert_eq!(servers.all().await.unwrap(), [changed, two.clone()]);
        // Whose it is stays; who is another changes nothing.
        let theirs = McpServerRow {
            name: "own".into(),
            owner: Some(UserId::from_bits(7)),
            ..server(1, json!({"command": "uvx"}))
        };
        servers.put(&theirs).await.unwrap();
        let everybodys = McpServerRow {
            owner: None,
            ..theirs.clone()
        };
        assert!(!servers.update(&everybodys).await.unwrap());
        assert!(servers.update(&theirs).await.unwrap());
        let kept = servers.get(&tenant(1), "own").await.unwrap();
        assert_eq!(kept, Some(theirs));
        assert!(servers.delete(&tenant(1), "time").await.unwrap());
        assert!(!servers.delete(&tenant(1), "time").await.unwrap());
        assert!(!servers.update(&one).await.unwrap());
        assert_eq!(servers.get(&tenant(1), "time").await.unwrap(), None);
        let other = servers.get(&tenant(2), "time").await.unwrap();
        assert_eq!(other, Some(two));
    })
    .await;
}

/// Asserts that a row of an earlier release works as it is, that the next start seals it, and that its
/// values then open for nobody else.
#[tokio::test]
async fn what_an_earlier_release_kept_readable_is_sealed_at_the_start() {
    with_records(async |records| {
        two_tenants(&records).await;
        let key = |text: &str| Sealer::with_key(&SecretString::from(text));
        let (sealer, other) = (key("one"), key("two"));
        let config = json!({
            "url": "https://e.test/mcp?key=swordfish-1", "env": {"A": "swordfish-2"},
            "headers": {"X-Key": "swordfish-3", "Authorization": "Bearer ${secret:T}"},
            "containerEnv": {"B": "swordfish-4"},
            "oauth": {"clientId": "us", "clientSecret": "swordfish-5"}, "timeout": 7,
        });
        let old = server(1, config);
        records.mcp_servers().put(&old).await.unwrap();
        let hook = "https://hooks.test/T0/swordfish-6";
        let (whose, id) = (tenant(1), WebhookId::from_bits(1));
        let webhook = WebhookRow {
            tenant: whose.clone(),
            id: id.clone(),
            address: Address::Plain(hook.to_owned()),
            sealed: "sealed".to_owned(),
            tells_decided: false,
            created_at: NOW,
            last: None,
            failing_since: None,
            disabled_at: None,
        };
        records.webhooks().add(&webhook).await.unwrap();
        let mut read = records.mcp_servers().list(&whose).await.unwrap();
        assert_eq!(read.remove(0).open(&sealer), old.config);

        for _ in 0..2 {
            records.seal_what_is_plain(&sealer).await.unwrap();
            let row = records.mcp_servers().get(&whose, "time").await.unwrap();
            let row = row.unwrap();
            let kept = records.webhooks().list(&whose).await.unwrap().remove(0);
            let seen = format!("{row:?} {kept:?}");
            assert!(
                !seen.contains("swordfish") && seen.contains("clientSecret"),
                "{seen}"
            );
            assert_eq!(row.open(&sealer), old.config);
            assert_eq!(kept.address.open(&sealer, (&whose, &id)).unwrap(), hook);
        }
        // With another key nothing is sent in their place, and setting a secret is the remedy.
        let row = records.mcp_servers().get(&whose, "time").await.unwrap();
        let lost = row.unwrap().open(&other);
        assert_eq!(lost.headers["X-Key"], "${secret:LOST_headers_X_Key}");
        assert_eq!(
            (lost.url.as_deref(), lost.timeout),
            (Some("${secret:LOST_url}"), Some(7))
        );
        let kept = records.webhooks().list(&whose).await.unwrap().remove(0);
        assert!(kept.address.open(&other, (&whose, &id)).is_err());
        // A value opens in its own place alone.
        let row = records.mcp_servers().get(&whose, "time").await.unwrap();
        let moved = McpServerRow {
            name: "other".to_owned(),
            ..row.unwrap()
        };
        assert_eq!(moved.open(&sealer).env["A"], "${secret:LOST_env_A}");
    })
    .await;
}

#[tokio::test]
async fn a_new_server_inherits_no_permission_of_an_old_one() {
    with_records(async |records| {
        two_tenants(&records).await;
        let (settings, seen) = (records.tool_settings(), records.tool_definitions());
        let allowed = setting("time", "now", PolicyEffect::Allow);
        let denied = setting("files", "rm", PolicyEffect::Deny);
        for bits in [1, 2] {
            let row = server(bits, json!({"command": "time"}));
            records.mcp_servers().put(&row).await.unwrap();
            for setting in [&allowed, &denied] {
                settings.put(&tenant(bits), setting).await.unwrap();
            }
            let noted = seen.note(&tenant(bits), "time", "hash", NOW).await;
            assert!(noted.unwrap());
        }
        let (one, two) = (tenant(1), tenant(2));
        assert!(records.mcp_servers().delete(&one, "time").await.unwrap());
        assert_eq!(settings.of_server(&one, "time").await.unwrap(), []);
        assert_eq!(seen.history(&one, "time").await.unwrap(), []);
        let left = settings.list(&one).await.unwrap();
        assert_eq!(left, std::slice::from_ref(&denied));
        let others = settings.list(&two).await.unwrap();
        assert_eq!(others, [denied.clone(), allowed]);
        let asks = setting("files", "rm", PolicyEffect::Ask);
        settings.put(&two, &asks).await.unwrap();
        assert_eq!(settings.of_server(&two, "files").await.unwrap(), [asks]);
        let accepted = |tenant: &TenantId, server: &str| format!("accepted:{tenant}:{server}");
        for key in [
            accepted(&one, "time"),
            accepted(&two, "time"),
            accepted(&two, "files"),
        ] {
            seen.put(&key, &[]).await.unwrap();
        }
        settings
            .forget(&Scope::Tenant(two.clone()), "time")
            .await
            .unwrap();
        assert_eq!(seen.history(&two, "time").await.unwrap(), []);
        assert_eq!(settings.list(&one).await.unwrap(), [denied]);
        assert_eq!(seen.get(&accepted(&two, "time")).await.unwrap(), None);
        assert!(seen.get(&accepted(&one, "time")).await.unwrap().is_some());
        settings
            .forget(&Scope::Installation, "files")
            .await
            .unwrap();
        for tenant in [&one, &two] {
            assert_eq!(settings.of_server(tenant, "files").await.unwrap(), []);
        }
        assert_eq!(seen.get(&accepted(&two, "files")).await.unwrap(), None);
        assert!(seen.get(&accepted(&one, "time")).await.unwrap().is_some());
    })
    .await;
}

#[tokio::test]
async fn definitions_are_cached_and_their_changes_told() {
    with_records(async |records| {
        let definitions = records.tool_definitions();
        let tool = |name: &str| Tool {
            name: name.into(),
            title: None,
            description: "Tells the time".into(),
            input_schema: json!({"type": "object", "properties": {"zone": {"type": "string"}}}),
            output_schema: None,
            annotations: sepal::domain::ToolAnnotations::default(),
            needs_tasks: false,
            view: None,
            runs_as_task: false,
        };
        assert_eq!(definitions.get("h").await.unwrap(), None);
        definitions
            .put("h", &[tool("now"), tool("zones")])
            .await
            .unwrap();
        definitions.put("h", &[tool("now")]).await.unwrap();
        assert_eq!(definitions.get("h").await.unwrap(), Some(vec![tool("now")]));

        let (one, two) = (tenant(1), tenant(2));
        // Back to what was there before is a change too.
        for (hash, at, is_change) in [
            ("a", 1, true),
            ("a", 2, false),
            ("b", 3, true),
            ("a", 4, true),
        ] {
            let changed = definitions.note(&one, "time", hash, Timestamp(at)).await;
            assert_eq!(changed.unwrap(), is_change, "{hash} at {at}");
        }
        let history = definitions.history(&one, "time").await.unwrap();
        let history: Vec<_> = history
            .iter()
            .map(|c| (c.hash.as_str(), c.first_seen.0))
            .collect();
        assert_eq!(history, [("a", 4), ("b", 3), ("a", 1)]);
        assert_eq!(definitions.history(&two, "time").await.unwrap(), []);
        assert_eq!(definitions.history(&one, "files").await.unwrap(), []);

        // A deleted tenant takes along what it accepted, and nothing that others accepted.
        two_tenants(&records).await;
        let accepted = |of: &TenantId| format!("accepted:{}:time", of.as_str());
        for of in [&one, &two] {
            let tools = [tool("now")];
            definitions.put(&accepted(of), &tools).await.unwrap();
        }
        let tenants = records.tenants();
        tenants.purge(&one, NOW).await.unwrap();
        let kept = tenants.find(&one).await.unwrap();
        assert!(kept.is_some(), "nobody gave the tenant up");
        tenants.give_up(&one, NOW).await.unwrap();
        tenants.purge(&one, NOW).await.unwrap();
        assert_eq!(definitions.get(&accepted(&one)).await.unwrap(), None);
        let kept = definitions.get(&accepted(&two)).await.unwrap();
        assert_eq!(kept, Some(vec![tool("now")]));
    })
    .await;
}

#[tokio::test]
async fn a_bundle_is_its_tenants_and_its_file_comes_back_whole() {
    with_records(async |records| {
        let bundles = records.mcp_bundles();
        let file: Vec<u8> = (0..2_500_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let row = |of: u128, sha256: &str, bytes: usize| BundleRow {
            tenant: tenant(of),
            sha256: sha256.into(),
            facts: "{}".into(),
            bytes: bytes as u64,
            created_by: UserId::from_bits(7),
            created_at: NOW,
            used_at: NOW,
        };
        let (one, two) = (row(1, "aa", file.len()), row(2, "aa", 3));
        bundles.put(&one, &file).await.unwrap();
        bundles.put(&two, b"two").await.unwrap();
        // Whoever uploads it again changes nothing of it.
        bundles.put(&one, &file).await.unwrap();
        assert_eq!(
            bundles.list(&tenant(1)).await.unwrap(),
            std::slice::from_ref(&one)
        );
        assert_eq!(bundles.find(&tenant(3), "aa").await.unwrap(), None);
        let content = bundles.content(&tenant(1), "aa").await.unwrap();
        assert!(content.is_some_and(|content| content == file));
        let other = bundles.content(&tenant(2), "aa").await.unwrap();
        assert_eq!(other.as_deref(), Some(&b"two"[..]));
        assert_eq!(bundles.content(&tenant(3), "aa").await.unwrap(), None);

        let later = Timestamp(NOW.0 + 10);
        assert!(bundles.touch(&tenant(1), "aa", later).await.unwrap());
        assert!(!bundles.touch(&tenant(3), "aa", later).await.unwrap());
        let unused = bundles.unused_since(Timestamp(NOW.0 + 5)).await.unwrap();
        assert_eq!(unused, std::slice::from_ref(&two));
        // What was used meanwhile stays, with its file.
        bundles.remove(&tenant(1), "aa", NOW).await.unwrap();
        let content = bundles.content(&tenant(1), "aa").await.unwrap();
        assert!(content.is_some_and(|content| content == file));
        bundles.remove(&tenant(2), "aa", NOW).await.unwrap();
        assert_eq!(bundles.find(&tenant(2), "aa").await.unwrap(), None);
        assert!(bundles.find(&tenant(1), "aa").await.unwrap().is_some());
    })
    .await;
}
