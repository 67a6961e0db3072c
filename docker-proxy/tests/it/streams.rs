//! Streams, waits and the end.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::harness::{Proxy, in_time};

/// Attaches; the head of the answer is read.
async fn attach(proxy: &Proxy, id: &str) -> UnixStream {
    let mut stream = proxy.connect().await;
    let request = format!(
        "POST /containers/{id}/attach?stream=true&stdin=true&stdout=true&stderr=true HTTP/1.1\r\n\
         Host: x\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(in_time(stream.read_u8()).await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    stream
}

async fn start(proxy: &Proxy, id: &str) {
    let (status, told) = proxy
        .ask(&format!("POST /containers/{id}/start"), None)
        .await;
    assert_eq!(status, 204, "{told}");
}

/// Reads stdout until its end, without the heads of the frames.
async fn rest(stream: &mut UnixStream) -> String {
    let mut said = Vec::new();
    loop {
        let mut head = [0; 8];
        if in_time(stream.read_exact(&mut head)).await.is_err() {
            return String::from_utf8(said).unwrap();
        }
        let length = u32::from_be_bytes(head[4..].try_into().unwrap());
        let mut part = vec![0; length as usize];
        in_time(stream.read_exact(&mut part)).await.unwrap();
        said.extend(part);
    }
}

#[tokio::test]
async fn the_end_of_stdin_is_passed_on_and_the_answer_comes_back() {
    let proxy = Proxy::start().await;
    let id = proxy.create(&proxy.body("sort; echo end")).await;
    let mut stream = attach(&proxy, &id).await;
    start(&proxy, &id).await;
    let large = "b\na\n".repeat(50_000);
    let (mut reader, mut writer) = stream.split();
    let writing = async {
        writer.write_all(large.as_bytes()).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let mut first = [0; 8];
    let reading = async {
        reader.read_exact(&mut first).await.unwrap();
    };
    in_time(async { tokio::join!(writing, reading) }).await;
    let mut part = vec![0; u32::from_be_bytes(first[4..].try_into().unwrap()) as usize];
    in_time(reader.read_exact(&mut part)).await.unwrap();
    let said = String::from_utf8(part).unwrap() + &rest(&mut stream).await;
    assert_eq!(said, "a\n".repeat(50_000) + &"b\n".repeat(50_000) + "end\n");
    let said = proxy
        .raw(format!("POST /containers/{id}/wait HTTP/1.1\r\nConnection: close\r\n\r\n").as_bytes())
        .await;
    assert!(said.contains(r#""StatusCode":0"#), "{said}");
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_program() {
    let proxy = Proxy::start().await;
    let id = proxy.create(&proxy.body("cat; exit 7")).await;
    let stream = attach(&proxy, &id).await;
    start(&proxy, &id).await;
    // Already started, which is no error.
    assert_eq!(
        proxy
            .ask(&format!("POST /containers/{id}/start"), None)
            .await
            .0,
        304
    );
    drop(stream);
    let said = proxy
        .raw(format!("POST /containers/{id}/wait HTTP/1.1\r\nConnection: close\r\n\r\n").as_bytes())
        .await;
    assert!(said.contains(r#""StatusCode":7"#), "{said}");
}

/// A client that waits gets the head at once; otherwise it would take the proxy for dead.
#[tokio::test]
async fn a_wait_begins_to_answer_before_the_end() {
    let proxy = Proxy::start().await;
    let id = proxy.create(&proxy.body("cat")).await;
    let stream = attach(&proxy, &id).await;
    start(&proxy, &id).await;
    let wait =
        format!("POST /containers/{id}/wait?condition=not-running HTTP/1.1\r\nHost: x\r\n\r\n");
    let said = proxy.raw_first(wait.as_bytes()).await;
    assert!(
        said.starts_with("HTTP/1.1 200") && !said.contains("StatusCode"),
        "{said}"
    );
    proxy
        .refuses(
            &format!("POST /containers/{id}/wait?condition=x"),
            None,
            "?condition",
        )
        .await;
    drop(stream);
}

/// Else whoever attaches again and again would open the machine's files without end.
#[tokio::test]
async fn a_stream_has_the_place_of_its_connection() {
    let proxy = Proxy::with(|it| it.max_connections = 2).await;
    let id = proxy.create(&proxy.body("cat")).await;
    let first = attach(&proxy, &id).await;
    start(&proxy, &id).await;
    let second = attach(&proxy, &id).await;
    let ping = async || {
        let mut stream = proxy.connect().await;
        let request = b"GET /_ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        // Refused is closed at once, perhaps before it is asked.
        let _ = stream.write_all(request).await;
        let mut said = String::new();
        let _ = in_time(stream.read_to_string(&mut said)).await;
        said
    };
    assert_eq!(ping().await, "", "no place is left");
    // The program ends with its stdin, and so do the streams, which gives the places back.
    drop((first, second));
    let waiting = async {
        while !ping().await.starts_with("HTTP/1.1 200") {
            tokio::task::yield_now().await;
        }
    };
    in_time(waiting).await;
}

#[tokio::test]
async fn an_end_in_order_ends_the_streams_and_takes_the_socket_away() {
    let proxy = Proxy::start().await;
    let id = proxy.create(&proxy.body("cat")).await;
    let mut stream = attach(&proxy, &id).await;
    start(&proxy, &id).await;
    proxy.stop().await;
    assert_eq!(rest(&mut stream).await, "");
    assert!(!proxy.socket().exists());
}

#[tokio::test]
async fn a_volume_serves_its_own_sandbox() {
    let proxy = Proxy::start().await;
    let volume = json!({ "Name": proxy.volume(), "Labels": { "sepal.sandbox": proxy.sandbox } });
    // Twice, as a volume is provided before each start.
    for _ in 0..2 {
        assert_eq!(
            proxy.ask("POST /volumes/create", Some(&volume)).await.0,
            201
        );
    }
    let mut body = proxy.body("echo kept > /workspace/a && cat /workspace/a");
    body["HostConfig"]["Mounts"] =
        json!([{ "Type": "volume", "Source": proxy.volume(), "Target": "/workspace" }]);
    let id = proxy.create(&body).await;
    let mut stream = attach(&proxy, &id).await;
    start(&proxy, &id).await;
    assert_eq!(rest(&mut stream).await, "kept\n");
    let (status, told) = proxy
        .ask(&format!("DELETE /volumes/{}", proxy.volume()), None)
        .await;
    assert_eq!(status, 409, "it is in use: {told}");
    assert_eq!(
        proxy
            .ask(
                &format!("DELETE /containers/{id}?force=true&v=false&link=false"),
                None
            )
            .await
            .0,
        204
    );
    assert_eq!(
        proxy
            .ask(&format!("DELETE /volumes/{}", proxy.volume()), None)
            .await
            .0,
        204
    );
    assert!(proxy.made().is_empty());
}
