//! Only the calls of the table are passed on, and their answers tell no more than is needed.

use serde_json::{Value, json};

use crate::harness::{Proxy, image, lines};

/// The images of the engine. Those of the same second come in any order.
fn images() -> Vec<String> {
    let mut images = lines(&["images", "-q", "--no-trunc"]);
    images.sort();
    images
}

#[tokio::test]
async fn everything_else_of_docker_is_refused() {
    let proxy = Proxy::start().await;
    let own = proxy.create(&proxy.body("sleep 1000")).await;
    let before = images();
    for line in [
        "POST /build",
        "POST /images/create?fromImage=busybox",
        "POST /images/create?fromSrc=-",
        "POST /images/load",
        "POST /images/prune",
        "GET /images/json",
        "GET /images/get",
        "POST /auth",
        "GET /events",
        "GET /system/df",
        "POST /networks/create",
        "POST /swarm/init",
        "GET /plugins",
        "POST /plugins/pull",
        "GET /secrets",
        "POST /services/create",
        "POST /session",
        "POST /grpc",
        "POST /containers/prune",
        "POST /volumes/prune",
    ] {
        proxy.refuses(line, None, "docs/docker-proxy.md").await;
    }
    let privileged = json!({ "Privileged": true, "Cmd": ["sh"], "AttachStdout": true });
    for end in ["exec", "update", "kill", "restart", "resize", "copy"] {
        let line = format!("POST /containers/{own}/{end}");
        proxy
            .refuses(&line, Some(&privileged), "is not passed on")
            .await;
    }
    let commit = format!("POST /commit?container={own}");
    proxy.refuses(&commit, None, "is not passed on").await;
    let exec = "0".repeat(64);
    proxy
        .refuses(
            &format!("POST /exec/{exec}/start"),
            Some(&json!({})),
            "is not passed on",
        )
        .await;
    proxy
        .refuses(&format!("GET /exec/{exec}/json"), None, "is not passed on")
        .await;
    let put = format!("PUT /containers/{own}/archive?path=/");
    proxy.refuses(&put, None, "is not passed on").await;
    assert_eq!(images(), before);
}

#[tokio::test]
async fn answers_tell_no_more_than_is_needed() {
    let proxy = Proxy::start().await;
    let mut body = proxy.body("true");
    body["Env"] = json!(["TOKEN=secret"]);
    let id = proxy.create(&body).await;
    let (_, told) = proxy.ask(&format!("GET /containers/{id}/json"), None).await;
    assert_eq!(told["Id"], id);
    assert_eq!(told["State"]["Status"], "created");
    assert_eq!(told["Config"]["Labels"]["sepal.sandbox"], proxy.sandbox);
    assert!(!told.to_string().contains("secret") && told.get("HostConfig").is_none());
    let line = format!("GET /images/{}/json", image());
    let (_, told) = proxy.ask(&line, None).await;
    assert!(told["Id"].is_string(), "{told}");
    let config = told["Config"].as_object().unwrap();
    let needed = ["Volumes", "Entrypoint", "Cmd"];
    assert!(
        config.keys().all(|name| needed.contains(&name.as_str())),
        "{told}"
    );
    let (_, info) = proxy.ask("GET /info", None).await;
    assert_eq!(info["MemoryLimit"], true);
    assert!(info["Runtimes"].get("runc").is_some(), "{info}");
    for private in [
        "DockerRootDir",
        "RegistryConfig",
        "HttpProxy",
        "Swarm",
        "Labels",
    ] {
        assert_eq!(info.get(private), None, "{private}");
    }
    let (_, version) = proxy.ask("GET /v1.30/version", None).await;
    assert!(version["ApiVersion"].as_str().unwrap().starts_with("1."));
    assert_eq!(version.get("Components"), None);
}

#[tokio::test]
async fn ping_and_health_say_whether_the_engine_is_there() {
    let proxy = Proxy::start().await;
    let said = proxy
        .raw(b"GET /_ping HTTP/1.1\r\nConnection: close\r\n\r\n")
        .await;
    assert!(
        said.starts_with("HTTP/1.1 200") && said.ends_with("OK"),
        "{said}"
    );
    assert!(said.to_lowercase().contains("api-version: 1."), "{said}");
    let (status, told) = proxy.ask("GET /health", None).await;
    assert_eq!((status, &told["engine"]), (200, &json!("ok")));

    let nowhere = "unix:///nowhere/docker.sock".parse().unwrap();
    let proxy = Proxy::with(|it| it.engine = nowhere).await;
    for line in [
        "GET /_ping",
        "GET /info",
        "GET /containers/json",
        "GET /version",
    ] {
        let (status, told) = proxy.ask(line, None).await;
        assert_eq!(status, 503, "{told}");
        let message = told["message"].as_str().unwrap();
        assert!(
            message.contains("/nowhere/docker.sock") && message.contains("systemctl start docker")
        );
    }
    let (status, told) = proxy.ask("GET /health", None).await;
    assert_eq!((status, &told["proxy"]), (503, &json!("ok")));
    assert_ne!(told["engine"], Value::from("ok"));
}
