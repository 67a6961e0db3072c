//! Workspaces of a model that means harm: links, names, pages that want the reader's cookie.

use super::{Ana, names, unpacked};
use crate::support::TestApp;

async fn what_a_model_makes_leads_nowhere(app: TestApp) {
    let ana = Ana::open(&app, "acme").await;
    let made = "ln -s /etc/passwd passwd; ln -s / root; ln -s .. up; mkdir d; ln -s ../d d/self; \
                mkfifo pipe; echo in > d/in; printf x > $'two\\nlines'; printf y > $'caf\\xe9'; \
                printf z > ./-rf; printf n > 'back\\slash'; echo done";
    assert!(ana.runs(&app, made).await.contains("done"));
    let root = ana.list("").await;
    let expected = [
        "d",
        "-rf",
        "back\\slash",
        r"$'caf\xe9'",
        "passwd",
        "pipe",
        "root",
        r"$'two\x0alines'",
        "up",
    ];
    assert_eq!(names(&root), expected);
    odd_names_are_read_and_nothing_else(&ana).await;
    the_archive_holds_files_alone(&ana).await;
    // A link goes itself.
    let gone = ana
        .client
        .delete(&ana.at("files/root?recursive=true"))
        .await;
    assert_eq!(gone.status, 204, "{}", gone.text);
    assert!(!names(&ana.list("").await).contains(&"root"));
}

async fn odd_names_are_read_and_nothing_else(ana: &Ana) {
    // Each is read by the address that the list gives, byte for byte.
    for (path, content) in [
        ("$'two%5Cx0alines'", "x"),
        ("$'caf%5Cxe9'", "y"),
        ("-rf", "z"),
        ("back%5Cslash", "n"),
        ("d/in", "in\n"),
    ] {
        let found = ana.get(&format!("files/{path}"), &[]).await;
        assert_eq!(
            (found.status, &found.bytes[..]),
            (200, content.as_bytes()),
            "{path}"
        );
    }
    for path in [
        "passwd",
        "root/etc/passwd",
        "up/x",
        "d/self/in",
        "pipe",
        "d",
        "..%2f..%2fetc%2fpasswd",
        "$'..%5Cx2fx'",
        "a%00",
        "$'%5Cx2fetc%5Cx2fpasswd'",
        "%2fetc%2fpasswd",
    ] {
        let refused = ana.client.get(&ana.at(&format!("files/{path}"))).await;
        refused.problem(400, "invalid_arguments");
        let put = ana.put(&format!("{path}?overwrite=true"), "mine").await;
        put.problem(400, "invalid_arguments");
    }
    for path in ["root", "..", "d/../..", "/etc", "$'..'", "up"] {
        let encoded = path.replace('\'', "%27").replace('$', "%24");
        let refused = ana
            .client
            .get(&ana.at(&format!("files?path={encoded}")))
            .await;
        refused.problem(400, "invalid_arguments");
    }
}

async fn the_archive_holds_files_alone(ana: &Ana) {
    let archive = ana.get("files-archive", &[]).await;
    let files = unpacked(&archive.bytes);
    assert!(
        files
            .iter()
            .all(|(name, _)| name.starts_with(b"workspace/")),
        "{files:?}"
    );
    let find = |name: &[u8]| {
        files
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, it)| it)
    };
    // No system but Unix takes a line break in a name.
    let two = files
        .iter()
        .find(|(name, _)| name.starts_with(b"workspace/two_lines~"));
    assert_eq!(two.unwrap().1, b"x", "{files:?}");
    assert_eq!(find(b"workspace/caf\xe9").unwrap(), b"y");
    assert_eq!(find(b"workspace/passwd"), None);
    let left_out = find(b"workspace/LEFT-OUT.txt").unwrap();
    let left_out = String::from_utf8_lossy(left_out);
    for words in [
        "passwd: a symbolic link to /etc/passwd",
        "pipe: a pipe",
        "d/self: a symbolic",
    ] {
        assert!(left_out.contains(words), "{left_out}");
    }
}

/// Asserts O10.
#[tokio::test]
async fn what_a_model_makes_leads_nowhere_in_bubblewrap() {
    what_a_model_makes_leads_nowhere(TestApp::with_sandbox().await).await;
}

/// Asserts O10.
#[tokio::test]
async fn what_a_model_makes_leads_nowhere_in_docker() {
    what_a_model_makes_leads_nowhere(TestApp::with_docker().await).await;
}

/// A page of the workspace is saved, or shown where nothing in it runs, loads or is our origin.
#[tokio::test]
async fn content_is_served_sealed() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    let page = "<script>fetch('/api/auth/me')</script><img src=https://evil.example/x>";
    for name in [
        "a.html",
        "a.svg",
        "a.txt",
        "a.js",
        "a.png",
        "a\"; x.html",
        "żółw.md",
    ] {
        ana.put(&name.replace('"', "%22").replace(' ', "%20"), page)
            .await
            .ok(201);
    }
    for (path, kind) in [
        ("a.html", "text/html; charset=utf-8"),
        ("a.svg", "image/svg+xml"),
        ("a.png", "image/png"),
        ("a.js", "text/plain; charset=utf-8"),
        ("a.txt", "text/plain; charset=utf-8"),
        ("a%22;%20x.html", "text/html; charset=utf-8"),
    ] {
        let shown = ana.get(&format!("files/{path}?preview=true"), &[]).await;
        assert_eq!(shown.header("content-type"), kind, "{path}");
        let policy = shown.header("content-security-policy");
        assert!(
            policy.starts_with("sandbox; default-src 'none';"),
            "{policy}"
        );
        assert!(
            !policy.contains("allow-") && !policy.contains("script-src"),
            "{policy}"
        );
        assert!(policy.contains("frame-ancestors 'self'"), "{policy}");
        assert_eq!(shown.header("x-frame-options"), "SAMEORIGIN");
        let saved = ana.get(&format!("files/{path}"), &[]).await;
        for content in [&shown, &saved] {
            assert_eq!(content.header("connection-allowlist"), "()");
            assert_eq!(content.header("x-dns-prefetch-control"), "off");
            assert_eq!(content.header("x-content-type-options"), "nosniff");
            assert_eq!(content.bytes, page.as_bytes());
        }
        assert_eq!(saved.header("content-type"), "application/octet-stream");
        assert_eq!(saved.header("x-frame-options"), "DENY");
        assert!(
            saved
                .header("content-disposition")
                .starts_with("attachment;")
        );
        assert_eq!(saved.header("cache-control"), "no-store");
    }
}

/// Asserts O10: a folder that was one is looked at anew.
#[tokio::test]
async fn a_link_that_comes_in_the_place_of_a_folder_is_not_followed() {
    let app = TestApp::with_sandbox().await;
    let ana = Ana::open(&app, "acme").await;
    ana.runs(&app, "mkdir d; echo in > d/passwd").await;
    assert_eq!(ana.get("files/d/passwd", &[]).await.bytes, b"in\n");
    ana.runs(&app, "rm -r d; ln -s /etc d").await;
    let refused = ana.client.get(&ana.at("files/d/passwd")).await;
    refused.problem(400, "invalid_arguments");
    let refused = ana.put("d/new", "x").await;
    refused.problem(400, "invalid_arguments");
}
