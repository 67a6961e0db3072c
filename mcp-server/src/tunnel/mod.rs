//! A program's only way out of a sandbox without a network: a proxy's port on the loopback
//! interface, whose connections go out by this process's own stdin and stdout.
//!
//! This end decides nothing. Each connection to the port is a stream of a multiplexer ([`yamux`]),
//! the program's own stdin and stdout are one more, and at the other end stands the gateway, which
//! reads what is asked for and says no to all that is not allowed. So a sandbox needs no interface
//! but loopback, wherever its engine is.

mod arguments;
mod authority;
mod link;

use std::{
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitCode, ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncWriteExt as _, copy, copy_bidirectional, sink},
    net::{TcpListener, TcpStream},
    process::Command,
    signal::unix::{SignalKind, signal},
    sync::Semaphore,
    time::timeout,
};
use tokio_util::task::TaskTracker;

use self::link::{Link, OpenStream, Opener};
use crate::{
    Outcome,
    command::{Group, Groups},
};

pub(crate) use self::arguments::Arguments;

/// What the gateway reads first, on the stream of the program.
const GREETING: &[u8] = b"sepal-tunnel 1\n";
/// Connections at once; more wait in the kernel until one ends.
const MAX_CONNECTIONS: usize = 64;
/// How long what a program said last may take to go out.
const LAST_WORDS_LIMIT: Duration = Duration::from_secs(10);
/// Between two tries where this process has no descriptor left for a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// Where programs look for a proxy. Each of them knows some of these.
const PROXY_VARIABLES: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];
/// What needs none: the sandbox itself.
const LOOPBACK: &str = "localhost,127.0.0.1,::1";

/// Runs the program until it ends, or the gateway does.
pub(crate) async fn run(arguments: Arguments, groups: &Groups) -> Outcome<ExitCode> {
    let listener = TcpListener::bind(("127.0.0.1", arguments.port)).await?;
    let port = listener.local_addr()?.port();
    let (link, opener) = Link::over(crate::streams::stdio());
    let tasks = TaskTracker::new();
    let mut driving = tasks.spawn(link.run());
    let mut own = opener.open().await?;
    own.write_all(GREETING).await?;
    let mut command = command(&arguments, port);
    believe(&mut command).map_err(|error| format!("`{}`: {error}", authority::FILE))?;
    let mut program = Group::spawn(command, groups)
        .map_err(|error| format!("`{}` does not start: {error}", arguments.program.display()))?;
    let (stdin, stdout) = program.streams();
    let (mut heard, mut said) = tokio::io::split(own);
    let hearing = tasks.spawn(async move {
        if let Some(mut stdin) = stdin {
            let _ = copy(&mut heard, &mut stdin).await;
        }
        // With stdin dropped, the program hears that nobody asks any more.
        heard
    });
    let saying = tasks.spawn(async move {
        if let Some(mut stdout) = stdout {
            let _ = copy(&mut stdout, &mut said).await;
        }
        let _ = said.shutdown().await;
    });
    tasks.spawn(accept(listener, opener.clone(), tasks.clone()));
    let mut terminated = signal(SignalKind::terminate())?;
    let mut died = signal(SignalKind::child())?;
    let burying = async {
        loop {
            died.recv().await;
            groups.bury();
        }
    };
    tokio::select! {
        () = program.ended() => {}
        // The gateway has left, or speaks nonsense: nobody is there for whom anything could go on.
        _ = &mut driving => return Ok(ExitCode::SUCCESS),
        _ = terminated.recv() => return Ok(ExitCode::SUCCESS),
        () = burying => {}
    }
    // Whoever could still write to the program's stdout ends with it.
    let status = program.end().await?;
    let last_words = async {
        let _ = saying.await;
        // The gateway ends its side once it has all that was said.
        if let Ok(mut heard) = hearing.await {
            let _ = copy(&mut heard, &mut sink()).await;
        }
        opener.close();
        let _ = driving.await;
    };
    let _ = timeout(LAST_WORDS_LIMIT, last_words).await;
    Ok(code(status))
}

fn command(arguments: &Arguments, port: u16) -> Command {
    let proxy = format!("http://127.0.0.1:{port}");
    let mut command = Command::new(&arguments.program);
    command
        .args(&arguments.rest)
        .envs(PROXY_VARIABLES.map(|name| (name, &proxy)))
        .envs([("NO_PROXY", LOOPBACK), ("no_proxy", LOOPBACK)])
        // Node has the variables in mind only when it is told so.
        .env("NODE_USE_ENV_PROXY", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Lets the program believe the sandbox's own authority, if it has one.
#[expect(
    clippy::disallowed_methods,
    reason = "the gateway says it by the environment, which the program inherits too"
)]
fn believe(command: &mut Command) -> io::Result<()> {
    let Some(own) = std::env::var_os(authority::VARIABLE) else {
        return Ok(());
    };
    let system = authority::SYSTEM.map(OsString::from);
    let named = std::env::var_os("SSL_CERT_FILE");
    let system = named.into_iter().chain(system);
    let found = authority::provide(&own, system, Path::new(authority::FILE))?;
    command.env_remove(authority::VARIABLE).envs(found);
    Ok(())
}

/// Takes connections for as long as there is a link.
async fn accept(listener: TcpListener, opener: Opener, tasks: TaskTracker) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let Ok((connection, _)) = listener.accept().await else {
            // The program may have taken every descriptor; that passes.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(stream) = opener.open().await else {
            return;
        };
        tasks.spawn(async move {
            let _ = bridge(connection, stream).await;
            drop(place);
        });
    }
}

async fn bridge(mut connection: TcpStream, mut stream: OpenStream) -> io::Result<()> {
    connection.set_nodelay(true)?;
    copy_bidirectional(&mut connection, &mut stream).await?;
    Ok(())
}

/// The program's own code; for a signal, what a shell makes of it.
fn code(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    let code = code.and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
