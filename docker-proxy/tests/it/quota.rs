//! There are never more containers and volumes than the settings say, however they are asked for.

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::harness::{Proxy, in_time, lines};

/// The line that asks for the container of a server of the sandbox.
fn line(proxy: &Proxy, number: usize) -> String {
    format!("POST /containers/create?name={}-s{number}", proxy.name())
}

/// Containers that the engine has of ours.
fn containers(proxy: &Proxy) -> Vec<String> {
    let filter = format!("label={}", proxy.label);
    lines(&["ps", "-aq", "--no-trunc", "--filter", &filter])
}

fn is_told(told: &Value, setting: &str) -> bool {
    let message = told["message"].as_str().unwrap_or_default();
    message.contains(setting)
}

#[tokio::test]
async fn many_creates_at_once_make_no_more_containers_than_may_be() {
    let proxy = Proxy::with(|it| it.max_containers = 3).await;
    let body = proxy.body("true");
    let asked = (0..12).map(async |number| proxy.ask(&line(&proxy, number), Some(&body)).await);
    let answers = in_time(join_all(asked)).await;
    let made = answers.iter().filter(|(status, _)| *status == 201).count();
    assert_eq!(made, 3, "{answers:?}");
    for (status, told) in answers.iter().filter(|(status, _)| *status != 201) {
        assert_eq!(*status, 429, "{told}");
        assert!(is_told(told, "`--max-containers`"), "{told}");
    }
    let there = containers(&proxy);
    assert_eq!(there.len(), 3);

    // Another life of the proxy counts what this one made.
    let label = proxy.label.clone();
    let next = Proxy::with(move |it| {
        it.label = label.parse().unwrap();
        it.max_containers = 3;
    })
    .await;
    assert_eq!(next.ask(&line(&proxy, 20), Some(&body)).await.0, 429);
    let gone = format!("DELETE /containers/{}?force=1", there[0]);
    assert_eq!(next.ask(&gone, None).await.0, 204);
    let (status, told) = next.ask(&line(&proxy, 20), Some(&body)).await;
    assert_eq!(status, 201, "{told}");
    assert_eq!(next.ask(&line(&proxy, 21), Some(&body)).await.0, 429);
    // A name that is taken is the engine's to refuse, also where nothing more may be made.
    assert_eq!(next.ask(&line(&proxy, 20), Some(&body)).await.0, 409);
}

#[tokio::test]
async fn who_does_not_wait_for_the_answer_gets_no_more_than_others() {
    let proxy = Proxy::with(|it| it.max_containers = 2).await;
    let body = proxy.body("true").to_string();
    for number in 0..20 {
        let mut stream = proxy.connect().await;
        let request = format!(
            "{} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
            line(&proxy, number),
            body.len(),
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        // The proxy has asked the engine meanwhile; then the client is gone.
        assert_eq!(proxy.ask("GET /version", None).await.0, 200);
    }
    let (status, told) = proxy
        .ask(&line(&proxy, 20), Some(&proxy.body("true")))
        .await;
    assert!(matches!(status, 201 | 429), "{status} {told}");
    proxy.stop().await;
    let there = containers(&proxy);
    assert_eq!(there.len(), 2, "{there:?}");
}

#[tokio::test]
async fn volumes_have_a_limit_of_their_own_and_one_that_exists_is_given() {
    let proxy = Proxy::with(|it| it.max_volumes = 2).await;
    let body = |number: u32| {
        let sandbox = format!("{}{number:04x}", &proxy.sandbox[..32]);
        json!({ "Name": format!("sepal-ws-{sandbox}"), "Labels": { "sepal.sandbox": sandbox } })
    };
    let create = async |number| {
        let (status, told) = proxy.ask("POST /volumes/create", Some(&body(number))).await;
        assert!(
            status == 201 || is_told(&told, "`--max-volumes`"),
            "{status} {told}"
        );
        status
    };
    assert_eq!((create(1).await, create(2).await), (201, 201));
    assert_eq!((create(3).await, create(2).await), (429, 201));
    let gone = format!("DELETE /volumes/{}", body(1)["Name"].as_str().unwrap());
    assert_eq!(proxy.ask(&gone, None).await.0, 204);
    assert_eq!((create(3).await, create(4).await), (201, 429));
    assert_eq!(proxy.made().len(), 2);
}

/// The engine makes a volume that a container asks for and that is not there.
#[tokio::test]
async fn a_container_makes_no_volume_beside_the_count() {
    let proxy = Proxy::with(|it| it.max_volumes = 1).await;
    let mut body = proxy.body("true");
    body["HostConfig"]["Mounts"] = json!([{
        "Type": "volume", "Source": proxy.volume(), "Target": "/workspace",
    }]);
    let (status, told) = proxy.ask(&line(&proxy, 1), Some(&body)).await;
    assert_eq!(status, 404, "{told}");
    assert!(is_told(&told, "No such volume"), "{told}");
    assert!(proxy.made().is_empty());
    let volume = json!({ "Name": proxy.volume(), "Labels": { "sepal.sandbox": proxy.sandbox } });
    let (status, told) = proxy.ask("POST /volumes/create", Some(&volume)).await;
    assert_eq!(status, 201, "{told}");
    let (status, told) = proxy.ask(&line(&proxy, 1), Some(&body)).await;
    assert_eq!(status, 201, "{told}");
}
