//! The gateway's end of a tunnel: a program without a network, whose connections come by its own
//! stdin and stdout.
//!
//! Inside, `/sepal/mcp-server tunnel` stands around the program (`mcp-server/src/tunnel`). Its first
//! stream is the program's stdin and stdout; each further one is a connection of the program, and
//! goes to the proxy of [`crate::net`].

mod tunnel;

use tokio::io::duplex;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use self::tunnel::Tunnel;
use super::{Launch, Running};
use crate::net::{Egress, Proxy};

/// Bytes of the program that wait in each direction.
const BUFFER_BYTES: usize = 64 << 10;
/// Lines of its log that wait for somebody to take them.
const MAX_WAITING_LINES: usize = 256;

/// What stands in front of a program that may reach hosts, where `server` is seen inside; nothing in
/// front of one that may not.
pub(super) fn prefix(launch: &Launch, server: &str) -> Vec<String> {
    match launch.egress {
        Some(_) => [server, "tunnel", "--"].map(str::to_owned).to_vec(),
        None => Vec::new(),
    }
}

/// Takes the program out of its tunnel; what it asks for goes by the proxy until it ends.
pub(super) fn open(running: Running, egress: Egress, server: &str, tasks: &TaskTracker) -> Running {
    let Running {
        stdin,
        stdout,
        mut stderr,
        image,
        life,
    } = running;
    let (lines, told) = mpsc::channel(MAX_WAITING_LINES);
    let proxy = Proxy::new(egress, server, lines.clone());
    tasks.spawn(async move {
        while let Some(line) = stderr.recv().await {
            // A full log loses lines, not the sandbox.
            let _ = lines.try_send(line);
        }
    });
    let tunnel = Tunnel::over((stdout, stdin), proxy, tasks.clone());
    // One for each direction, because dropping stdin alone has to be heard inside.
    let (stdin, asked) = duplex(BUFFER_BYTES);
    let (said, stdout) = duplex(BUFFER_BYTES);
    tasks.spawn(tunnel.run(tokio::io::join(asked, said)));
    Running {
        stdin: Box::new(stdin),
        stdout: Box::new(stdout),
        stderr: told,
        image,
        life,
    }
}
