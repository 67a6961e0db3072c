//! The real program: refused at start with address, cause and setting; TLS.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::RedisServer;

fn sepal(folder: &Path, redis: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sepal"));
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("SPL_DATA_DIR", folder.join("data"))
        .env("SPL_HTTP_HOST", "127.0.0.1")
        .env("SPL_HTTP_PORT", "0")
        .env("SPL_SANDBOX", "none")
        .env("REDIS_URL", redis)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn refusal(folder: &Path, redis: &str) -> String {
    let output = sepal(folder, redis).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

/// Asserts S2.1, S2.23.
#[test]
fn a_start_without_its_redis_names_address_cause_and_setting() {
    let folder = TempDir::new().unwrap();
    let mut redis = RedisServer::start_with(&["--appendonly", "no"]);
    let with_password = redis.url().replace("redis://", "redis://ann:geheim@");
    let text = refusal(folder.path(), &redis.url());
    assert!(text.contains(&redis.url()), "{text}");
    assert!(text.contains("appendonly yes"), "{text}");
    assert!(text.contains("store.allow_volatile"), "{text}");
    redis.stop();
    let text = refusal(folder.path(), &with_password);
    assert!(text.contains(&redis.url()), "{text}");
    assert!(text.contains("refused"), "the cause: {text}");
    assert!(text.contains("store.redis_url"), "{text}");
    assert!(!text.contains("geheim"), "{text}");
}

/// Asserts S2.1.
#[test]
fn nothing_is_served_before_the_store_is_there() {
    let folder = TempDir::new().unwrap();
    let redis = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("redis://{}", redis.local_addr().unwrap());
    let mut command = sepal(folder.path(), &url);
    let program = command
        .env("SPL_HTTP_PORT", port.to_string())
        .spawn()
        .unwrap();
    let mut program = Running(program);
    // The program waits for its store now.
    let (store, _) = redis.accept().unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client
        .write_all(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        .unwrap();
    drop((store, redis));
    assert!(!program.0.wait().unwrap().success());
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    assert_eq!(answer, b"");
}

/// An authority and a certificate of it for 127.0.0.1.
fn certificates(folder: &Path) {
    let openssl = |args: &str| {
        let done = Command::new("openssl")
            .args(args.split_whitespace())
            .current_dir(folder)
            .output()
            .expect("`openssl` is needed in PATH: use `./run test`");
        assert!(done.status.success(), "{done:?}");
    };
    let new_key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(&format!(
        "req -x509 {new_key} -keyout ca.key -out ca.pem -days 2 -subj /CN=test-authority"
    ));
    openssl(&format!(
        "req {new_key} -keyout server.key -out server.csr -subj /CN=localhost"
    ));
    std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1").unwrap();
    openssl(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem \
         -days 2 -extfile names",
    );
}

#[test]
fn a_redis_behind_tls_is_used_if_its_certificate_is_trusted() {
    let folder = TempDir::new().unwrap();
    certificates(folder.path());
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let redis = RedisServer::start_with_tls(&file("server.pem"), &file("server.key"));
    let text = refusal(folder.path(), &redis.tls_url());
    assert!(text.contains("certificate"), "{text}");

    let mut trusting = sepal(folder.path(), &redis.tls_url());
    trusting.env("SSL_CERT_FILE", folder.path().join("ca.pem"));
    let mut running = Running(trusting.spawn().unwrap());
    let output = BufReader::new(running.0.stdout.take().unwrap());
    let first = output.lines().next().unwrap().unwrap();
    assert!(first.contains("http://127.0.0.1:"), "{first}");
}
