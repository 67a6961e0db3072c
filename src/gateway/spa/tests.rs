//! Tests the responses for paths of the page.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::response::Response;

use super::{Asset, NOT_BUILT, answer};

fn files(path: &str) -> Option<Asset> {
    let text = match path {
        "index.html" => r#"<html><head><base href="/" /></head></html>"#,
        "assets/app-1a2b.js" | "diagram.js" => "plain",
        "assets/app-1a2b.js.br" => "brotli",
        "assets/app-1a2b.js.gz" => "gzip",
        "icon.svg" => "<svg/>",
        "diagram.html" => "<html></html>",
        ".vite/manifest.json" => "{}",
        _ => return None,
    };
    Some(Asset {
        bytes: text.as_bytes().into(),
        etag: format!("\"{path}\""),
    })
}

fn get(path: &str, headers: &[(&'static str, &'static str)]) -> Response {
    let line = |(name, value): &(&'static str, &'static str)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    };
    let headers: HeaderMap = headers.iter().map(line).collect();
    answer(files, "/", &Method::GET, path, &headers)
}

async fn text(response: Response) -> String {
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20)
        .await
        .unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Asserts S2.61.
#[test]
fn page_routes_get_the_index_and_missing_files_do_not() {
    for path in [
        "/",
        "/welcome",
        "/sign-in",
        "/s/ses_1",
        "/servers/files",
        "/admin/system",
        "/index.html",
        "//",
        "/s/",
    ] {
        let response = get(path, &[]);
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(
            response.headers()["content-type"],
            "text/html; charset=utf-8",
            "{path}"
        );
        assert_eq!(response.headers()["cache-control"], "no-cache", "{path}");
    }
    for path in [
        "/api",
        "/api/nothing",
        "/socket.io/",
        "/assets/old-0000.js",
        "/missing.png",
        "/.vite/manifest.json",
        "/../Cargo.toml",
        "/assets/../index.html",
        "/a\\..\\b",
    ] {
        assert_eq!(get(path, &[]).status(), 404, "{path}");
    }
    assert_eq!(
        answer(files, "/", &Method::POST, "/welcome", &HeaderMap::new()).status(),
        405
    );
    assert_eq!(
        answer(files, "/", &Method::POST, "/api/x", &HeaderMap::new()).status(),
        404
    );
}

#[tokio::test]
async fn the_index_learns_its_path() {
    let response = answer(files, "/sepal/", &Method::GET, "/s/x", &HeaderMap::new());
    assert!(text(response).await.contains(r#"<base href="/sepal/" />"#));
}

#[tokio::test]
async fn compressed_variants_are_chosen_by_the_client() {
    for (accepted, body, encoding) in [
        ("gzip, deflate, br", "brotli", Some("br")),
        ("gzip", "gzip", Some("gzip")),
        ("br;q=0, gzip;q=0.5", "gzip", Some("gzip")),
        ("identity", "plain", None),
        ("brotli", "plain", None),
    ] {
        let response = get("/assets/app-1a2b.js", &[("accept-encoding", accepted)]);
        let headers = response.headers();
        assert_eq!(headers["content-type"], "text/javascript; charset=utf-8");
        assert_eq!(
            headers["cache-control"],
            "public, max-age=31536000, immutable"
        );
        assert_eq!(headers["vary"], "accept-encoding");
        let found = headers
            .get("content-encoding")
            .map(|value| value.to_str().unwrap());
        assert_eq!(found, encoding, "{accepted}");
        assert_eq!(text(response).await, body, "{accepted}");
    }
    let icon = get("/icon.svg", &[("accept-encoding", "br")]);
    assert_eq!(icon.headers()["cache-control"], "no-cache");
    assert!(!icon.headers().contains_key("content-encoding"));
}

#[test]
fn the_frame_of_a_diagram_has_no_origin_and_no_network() {
    for headers in [&[][..], &[("if-none-match", "\"diagram.html\"")][..]] {
        let response = get("/diagram.html", headers);
        let policy = response.headers()["content-security-policy"]
            .to_str()
            .unwrap();
        for part in [
            "sandbox allow-scripts;",
            "default-src 'none'",
            "frame-ancestors 'self'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("allow-same-origin"), "{policy}");
        assert_eq!(response.headers()["x-frame-options"], "SAMEORIGIN");
    }
    let icon = get("/icon.svg", &[]);
    assert!(!icon.headers().contains_key("content-security-policy"));
}

/// For a frame without an origin, its own script comes from another site.
#[test]
fn the_frame_of_a_diagram_may_load_its_program_and_other_sites_no_document() {
    let policy = "cross-origin-resource-policy";
    for path in ["/diagram.js", "/assets/app-1a2b.js"] {
        assert_eq!(get(path, &[]).headers()[policy], "cross-origin", "{path}");
    }
    for path in ["/", "/diagram.html", "/icon.svg"] {
        assert!(!get(path, &[]).headers().contains_key(policy), "{path}");
    }
}

#[test]
fn what_the_browser_has_is_not_sent_again() {
    let response = get("/icon.svg", &[("if-none-match", "W/\"x\", \"icon.svg\"")]);
    assert_eq!(
        (response.status().as_u16(), &response.headers()["etag"]),
        (304, &"\"icon.svg\"".parse().unwrap())
    );
    assert_eq!(
        get("/welcome", &[("if-none-match", "\"index.html\"")]).status(),
        304
    );
    assert_eq!(
        get("/icon.svg", &[("if-none-match", "\"other\"")]).status(),
        200
    );
}

#[tokio::test]
async fn a_build_without_the_page_says_what_to_do() {
    let response = answer(|_| None, "/", &Method::GET, "/", &HeaderMap::new());
    assert_eq!(response.status(), 404);
    assert_eq!(text(response).await, NOT_BUILT);
}
