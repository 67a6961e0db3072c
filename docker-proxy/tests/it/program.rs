//! The program itself: its options, its check, its end.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::harness::variable;

const DEADLINE: Duration = Duration::from_mins(1);

fn program(listen: &str) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_sepal-docker-proxy"));
    program.args([
        "--listen",
        listen,
        "--engine",
        &variable("SEPAL_TEST_DOCKER"),
    ]);
    program
}

/// Asks until it is well; each question is a process and takes its time.
fn until_well(listen: &str) {
    let began = Instant::now();
    while !program(listen).arg("--check").status().unwrap().success() {
        assert!(began.elapsed() < DEADLINE, "it never answers at {listen}");
    }
}

fn failed(output: &Output, expected: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains(expected),
        "{said}"
    );
}

#[test]
fn it_serves_until_it_is_told_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("p.sock");
    let listen = format!("unix://{}", socket.display());
    failed(
        &program(&listen).arg("--check").output().unwrap(),
        "nobody answers",
    );
    let mut running = program(&listen)
        .args(["--socket-mode", "640", "--log-format", "json"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until_well(&listen);
    assert_eq!(
        socket.metadata().unwrap().permissions().mode() & 0o777,
        0o640
    );
    failed(&program(&listen).output().unwrap(), "cannot listen");
    let id = running.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    assert!(running.wait().unwrap().success());
    assert!(!socket.exists());
    let mut log = String::new();
    std::io::Read::read_to_string(&mut running.stderr.take().unwrap(), &mut log).unwrap();
    assert!(log.lines().all(|line| line.starts_with('{')), "{log}");
    assert!(log.contains("Everything has ended"), "{log}");
}

#[test]
fn a_killed_life_leaves_a_socket_that_the_next_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    let listen = format!("unix://{}", folder.path().join("p.sock").display());
    for _ in 0..2 {
        let mut running = program(&listen).stderr(Stdio::null()).spawn().unwrap();
        until_well(&listen);
        running.kill().unwrap();
        running.wait().unwrap();
    }
    // A file that is no socket is not ours to remove.
    let mine = folder.path().join("mine");
    std::fs::File::create(&mine)
        .unwrap()
        .write_all(b"x")
        .unwrap();
    let listen = format!("unix://{}", mine.display());
    failed(&program(&listen).output().unwrap(), "cannot listen");
    assert_eq!(std::fs::read(&mine).unwrap(), b"x");
}

#[test]
fn it_listens_on_loopback_and_never_for_everybody() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let listen = format!("tcp://127.0.0.1:{port}");
    let mut running = program(&listen).stderr(Stdio::null()).spawn().unwrap();
    until_well(&listen);
    let ask = |host: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request = format!("GET /info HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut said = String::new();
        std::io::Read::read_to_string(&mut stream, &mut said).unwrap();
        said
    };
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}")] {
        let said = ask(&host);
        assert!(said.starts_with("HTTP/1.1 200"), "{host}: {said}");
    }
    // A page whose name leads here.
    let said = ask(&format!("page.example:{port}"));
    assert!(said.starts_with("HTTP/1.1 400"), "{said}");
    assert!(
        said.contains("`--listen`") && !said.contains("MemTotal"),
        "{said}"
    );
    running.kill().unwrap();
    running.wait().unwrap();
    failed(
        &program("tcp://0.0.0.0:0").output().unwrap(),
        "others may reach",
    );
}

#[test]
fn options_that_open_a_hole_are_refused() {
    let listen = "unix:///nowhere/p.sock";
    let check = |options: &[&str], expected: &str| {
        failed(&program(listen).args(options).output().unwrap(), expected);
    };
    check(&["--network", "host"], "`host`");
    check(&["--label", "a=b"], "`a=b`");
    check(&["--max-memory-mb", "0"], "`memory`");
    check(&["--image", "../x"], "`../x`");
    check(&["--socket-mode", "999"], "octal");
    check(&[], "cannot listen");
}
