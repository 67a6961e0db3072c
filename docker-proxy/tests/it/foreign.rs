//! Tests that resources of others at the engine stay hidden.

use serde_json::{Value, json};

use crate::harness::{Proxy, docker, image, lines};

/// A container or volume that is not ours; gone with the test.
struct Foreign(&'static [&'static str], String);

impl Drop for Foreign {
    fn drop(&mut self) {
        docker(&[self.0, &[&self.1]].concat());
    }
}

fn container(name: &str, labels: &[&str]) -> Foreign {
    let image = image();
    let mut make = vec!["create", "--name", name, "--network", "none"];
    make.extend(labels.iter().flat_map(|label| ["--label", label]));
    make.extend(["--entrypoint", "sleep", &image, "1000"]);
    Foreign(&["rm", "-f"], lines(&make).remove(0))
}

#[tokio::test]
async fn a_foreign_container_is_neither_seen_nor_touched() {
    let proxy = Proxy::start().await;
    let name = format!("foreign-{}", proxy.sandbox);
    let foreign = container(&name, &["sepal.proxy=another", "sepal.installation=x"]);
    for reference in [&name, &foreign.1, &foreign.1[..12]] {
        let at = format!("/containers/{reference}");
        for line in [
            format!("GET {at}/json"),
            format!("POST {at}/start"),
            format!("POST {at}/pause"),
            format!("POST {at}/unpause"),
            format!("POST {at}/wait"),
            format!("DELETE {at}?force=true"),
        ] {
            let (status, told) = proxy.ask(&line, None).await;
            assert_eq!(status, 404, "{line}: {told}");
            assert_eq!(told["message"], format!("No such container: {reference}"));
        }
        let attach = format!(
            "POST {at}/attach?stream=1&stdin=1&stdout=1&stderr=1 HTTP/1.1\r\nHost: x\r\n\
             Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
        );
        let mut stream = proxy.connect().await;
        let mut said = [0; 12];
        {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            stream.write_all(attach.as_bytes()).await.unwrap();
            stream.read_exact(&mut said).await.unwrap();
        }
        assert_eq!(&said, b"HTTP/1.1 404");
        for line in [
            format!("POST {at}/kill"),
            format!("POST {at}/stop"),
            format!("POST {at}/exec"),
            format!("POST {at}/update"),
            format!("POST {at}/rename?name=x"),
            format!("GET {at}/logs?stdout=1"),
            format!("GET {at}/archive?path=/etc"),
            format!("GET {at}/export"),
            format!("GET {at}/top"),
        ] {
            proxy.refuses(&line, None, "is not passed on").await;
        }
    }
    let state = lines(&["inspect", "--format", "{{.State.Status}}", &foreign.1]);
    assert_eq!(state, ["created"]);
}

#[tokio::test]
async fn lists_show_only_what_is_ours_whatever_they_are_asked() {
    let proxy = Proxy::start().await;
    let foreign = container(
        &format!("foreign-{}", proxy.sandbox),
        &["sepal.proxy=another"],
    );
    let own = proxy.create(&proxy.body("true")).await;
    for query in [
        "?all=true",
        "?all=1&filters={}",
        "?all=1&filters=%7B%22label%22%3A%5B%5D%7D",
    ] {
        let (status, listed) = proxy
            .ask(&format!("GET /containers/json{query}"), None)
            .await;
        assert_eq!(status, 200, "{listed}");
        let ids: Vec<&Value> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|it| &it["Id"])
            .collect();
        assert_eq!(ids, [&json!(own)], "{query}");
    }
    let label = "%7B%22label%22%3A%5B%22sepal.proxy%3Danother%22%5D%7D";
    let line = format!("GET /containers/json?all=1&filters={label}");
    assert_eq!(proxy.ask(&line, None).await, (200, json!([])));
    let id = format!("%7B%22id%22%3A%5B%22{}%22%5D%7D", foreign.1);
    let line = format!("GET /containers/json?all=1&filters={id}");
    proxy.refuses(&line, None, "?filters.id").await;
}

#[tokio::test]
async fn a_foreign_volume_is_neither_seen_nor_removed() {
    let proxy = Proxy::start().await;
    let other = format!("data-{}", proxy.sandbox);
    for name in [&other, &proxy.volume()] {
        lines(&["volume", "create", name]);
        let foreign = Foreign(&["volume", "rm", "-f"], name.clone());
        let line = format!("DELETE /volumes/{name}");
        let (status, told) = proxy.ask(&line, None).await;
        assert_eq!(status, 404, "{told}");
        let (_, listed) = proxy.ask("GET /volumes", None).await;
        assert_eq!(listed["Volumes"], json!([]));
        assert_eq!(
            lines(&["volume", "inspect", "--format", "{{.Name}}", name]),
            [name.as_str()]
        );
        drop(foreign);
    }
}

/// Sepal would remove what is in its way, try again, and do so for ever.
#[tokio::test]
async fn a_name_that_somebody_else_has_is_told_and_stays_theirs() {
    let proxy = Proxy::start().await;
    let foreign = container(&proxy.name(), &[]);
    let line = format!("POST /containers/create?name={}", proxy.name());
    proxy
        .refuses(&line, Some(&proxy.body("true")), "is not of this proxy")
        .await;
    let state = lines(&["inspect", "--format", "{{.State.Status}}", &foreign.1]);
    assert_eq!(state, ["created"]);
    drop(foreign);
    proxy.create(&proxy.body("true")).await;
    // Now it is our own: an ordinary conflict.
    let (status, told) = proxy.ask(&line, Some(&proxy.body("true"))).await;
    assert_eq!(status, 409, "{told}");
}

#[tokio::test]
async fn two_proxies_at_one_engine_do_not_see_each_other() {
    let (one, two) = (Proxy::start().await, Proxy::start().await);
    let id = one.create(&one.body("true")).await;
    assert_eq!(
        two.ask("GET /containers/json?all=1", None).await,
        (200, json!([]))
    );
    assert_eq!(
        two.ask(&format!("GET /containers/{id}/json"), None).await.0,
        404
    );
    assert_eq!(
        two.ask(&format!("DELETE /containers/{id}?force=1"), None)
            .await
            .0,
        404
    );
    assert_eq!(
        one.ask(&format!("GET /containers/{id}/json"), None).await.0,
        200
    );
}
