//! Serves the gateway's end of a tunnel: a program without a network, whose connections go through its own
//! stdin and stdout.
//!
//! Inside, `/sepal/mcp-server tunnel` wraps the program (`mcp-server/src/tunnel`). Its first stream carries
//! the program's stdin and stdout; each further stream is a connection of the program, and goes to the proxy
//! of [`sepal_net`].

mod tunnel;

use tokio::io::duplex;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use self::tunnel::Tunnel;
use super::{Launch, Running};
use sepal_net::{Egress, Proxy};

/// The buffer size of each direction of the program's streams.
const BUFFER_BYTES: usize = 64 << 10;
/// The most lines of the log that wait to be received.
const MAX_WAITING_LINES: usize = 256;

/// Returns the command prefix that wraps a program with egress, with the path of `server` inside; empty for a
/// program without egress.
pub(super) fn prefix(launch: &Launch, server: &str) -> Vec<String> {
    match launch.egress {
        Some(_) => [server, "tunnel", "--"].map(str::to_owned).to_vec(),
        None => Vec::new(),
    }
}

/// Returns the program with its streams unwrapped from the tunnel; its connections go through the proxy until
/// it ends.
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
            // A full log loses lines and does not block the sandbox.
            let _ = lines.try_send(line);
        }
    });
    let tunnel = Tunnel::over(stdout, stdin, proxy, tasks.clone());
    // One pipe for each direction, so that closing stdin alone reaches the program.
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
