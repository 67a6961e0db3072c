//! Tricks with addresses, lengths and protocols: nothing of what is sent reaches the engine as it is.

use crate::harness::{Proxy, status};

const END: &str = "Host: x\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn an_address_means_one_thing_or_nothing() {
    let proxy = Proxy::start().await;
    let check = async |line: &str, expected: u16| {
        let said = proxy
            .raw(format!("{line} HTTP/1.1\r\n{END}").as_bytes())
            .await;
        assert_eq!(status(&said), expected, "{line}: {said}");
    };
    check("GET /v1.41/containers/json", 200).await;
    for line in [
        "GET /v1.41//containers/json",
        "GET //containers/json",
        "GET /",
        "GET /containers/",
        "GET /containers/../images/json",
        "GET /v1.41/%2e%2e/images/json",
        "GET /%69mages/json",
        "GET /containers%2fjson",
        "GET /containers/x%2fexec/json",
        "GET /containers/x%00/json",
        "GET /containers/x;y/json",
        "GET /containers/x%0d%0aX:y/json",
        "GET http://docker/info",
        "GET http://docker/containers/json",
        "CONNECT docker:80",
        "OPTIONS *",
        "GET /images/../containers/x/json",
        "GET /images/a//b/json",
        "GET /containers/json?all=1&all=0",
    ] {
        check(line, 400).await;
    }
    for line in [
        "GET /V1.41/containers/json",
        "GET /v1.41/v1.41/containers/json",
        "GET /v2/info",
        "GET /CONTAINERS/JSON",
        "get /info",
        "HEAD /info",
        "PATCH /info",
        "GET /containers/json?before=x",
    ] {
        check(line, 403).await;
    }
}

#[tokio::test]
async fn no_request_hides_in_another() {
    let proxy = Proxy::start().await;
    let hidden = "GET /info HTTP/1.1\r\nHost: x\r\n\r\n";
    let create = format!(
        "POST /containers/create?name={} HTTP/1.1\r\nHost: x\r\n",
        proxy.name()
    );
    let check = async |heads: &str, body: &str, codes: &[u16]| {
        let said = proxy
            .raw(format!("{create}{heads}\r\n{body}").as_bytes())
            .await;
        let answers: Vec<u16> = said
            .match_indices("HTTP/1.1 ")
            .map(|(at, _)| status(&said[at..]))
            .collect();
        assert_eq!(answers.len(), 1, "{heads:?}: {said}");
        assert!(codes.contains(&answers[0]), "{heads:?}: {said}");
    };
    check(
        "Content-Length: 0\r\nContent-Length: 41\r\n",
        hidden,
        &[400],
    )
    .await;
    check("Content-Length: 5, 6\r\n", hidden, &[400]).await;
    check("Content-Length: -1\r\n", hidden, &[400]).await;
    check("Content-Length: +5\r\n", hidden, &[400]).await;
    let both = "Connection: close\r\nContent-Length: 41\r\nTransfer-Encoding: chunked\r\n";
    check(both, &format!("0\r\n\r\n{hidden}"), &[411]).await;
    let both = "Connection: close\r\nTransfer-Encoding: chunked\r\nContent-Length: 41\r\n";
    check(both, &format!("0\r\n\r\n{hidden}"), &[411]).await;
    check("Transfer-Encoding: xchunked\r\n", hidden, &[400]).await;
    check("Transfer-Encoding: chunked, identity\r\n", hidden, &[400]).await;
    check("Transfer-Encoding : chunked\r\n", hidden, &[400]).await;
    check(" Content-Length: 5\r\n", hidden, &[400]).await;
    check(
        "Connection: close\r\nTransfer-Encoding: chunked\r\n",
        "2\r\n{}\r\n0\r\n\r\n",
        &[411],
    )
    .await;
    check("Connection: close\r\n", "", &[411]).await;
    assert!(proxy.made().is_empty());
}

#[tokio::test]
async fn bodies_have_a_place_and_a_size() {
    let proxy = Proxy::start().await;
    let check = async |line: &str, heads: &str, expected: u16| {
        let request =
            format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{heads}\r\n\r\n{{}}");
        let said = proxy.raw(request.as_bytes()).await;
        assert_eq!(status(&said), expected, "{line} {heads}: {said}");
    };
    let create = format!("POST /containers/create?name={}", proxy.name());
    check(&create, "Content-Length: 1073741824", 413).await;
    check(&create, "Content-Length: 99999999999999999999999999", 400).await;
    check("POST /volumes/create", "Content-Length: 2097152", 413).await;
    check("GET /containers/json", "Content-Length: 2", 400).await;
    check("POST /containers/x/start", "Content-Length: 2", 400).await;
    check("DELETE /containers/x", "Transfer-Encoding: chunked", 400).await;
    let long = format!("GET /info HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    assert_eq!(status(&proxy.raw(long.as_bytes()).await), 431);
    let many = format!("GET /info HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(1000));
    assert_eq!(status(&proxy.raw(many.as_bytes()).await), 431);
}

#[tokio::test]
async fn only_attaching_becomes_a_stream_and_has_no_body() {
    let proxy = Proxy::start().await;
    let id = proxy.create(&proxy.body("true")).await;
    let check = async |line: &str, heads: &str, body: &str| {
        let request = format!("{line} HTTP/1.1\r\nHost: x\r\n{heads}\r\n{body}");
        let said = proxy.raw_first(request.as_bytes()).await;
        assert_eq!(status(&said), 400, "{line} {heads:?}: {said}");
    };
    let attach = format!("POST /containers/{id}/attach?stream=1&stdin=1&stdout=1&stderr=1");
    let upgrade = "Connection: Upgrade\r\nUpgrade: tcp\r\n";
    check(&attach, &format!("{upgrade}Content-Length: 2\r\n"), "{}").await;
    check(
        &attach,
        &format!("{upgrade}Transfer-Encoding: chunked\r\n"),
        "0\r\n\r\n",
    )
    .await;
    check(&attach, "", "").await;
    check(&attach, "Connection: Upgrade\r\nUpgrade: h2c\r\n", "").await;
    check(&attach, "Connection: Upgrade\r\nUpgrade: websocket\r\n", "").await;
    check("GET /info", upgrade, "").await;
    check(
        "GET /info",
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n",
        "",
    )
    .await;
    check(&format!("POST /containers/{id}/start"), upgrade, "").await;
    let without = format!("POST /containers/{id}/attach?stream=1&stdin=1");
    let said = proxy
        .raw_first(format!("{without} HTTP/1.1\r\nHost: x\r\n{upgrade}\r\n").as_bytes())
        .await;
    assert_eq!(status(&said), 403, "{said}");
    // The beginning of HTTP/2 is no request.
    assert!(
        !proxy
            .raw_first(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await
            .contains("200")
    );
}

#[tokio::test]
async fn a_page_in_a_browser_is_not_answered() {
    let proxy = Proxy::start().await;
    for head in ["Origin: http://evil", "Sec-Fetch-Site: same-origin"] {
        let said = proxy
            .raw(format!("GET /info HTTP/1.1\r\n{head}\r\n{END}").as_bytes())
            .await;
        assert_eq!(status(&said), 400, "{said}");
    }
}
