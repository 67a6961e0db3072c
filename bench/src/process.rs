//! Runs a program in a process of its own, and reads its address, processor time and memory.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The time limit for a program to listen or to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// The interval of checks while waiting for a program.
const LOOK: Duration = Duration::from_micros(200);

/// The model settings of a gateway, without the address; the command line beside it needs the same settings.
const MODEL: [(&str, &str); 2] = [
    ("SPL_LLM_PROVIDER", "openai-compatible"),
    ("SPL_LLM_MODEL", "bench"),
];

/// A program that listens; dropping it ends the process.
pub(crate) struct Program {
    child: Child,
    /// The address that it listens on.
    pub(crate) address: SocketAddr,
    /// Milliseconds from its start until it accepted a connection.
    pub(crate) started_ms: f64,
    /// The folder of its data, which is deleted with it.
    pub(crate) folder: Option<TempDir>,
}

impl Program {
    /// Starts another part of this program: `upstream`, or `relay` with its arguments.
    pub(crate) fn part(args: &[&str]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(args);
        Self::start(command, None)
    }

    /// Starts the gateway with a data folder that contains only `files`, and with Redis if there is an
    /// address.
    pub(crate) fn sepal(
        path: &Path,
        upstream: SocketAddr,
        redis: Option<SocketAddr>,
        files: &[(&str, String)],
    ) -> Result<Self> {
        let folder = TempDir::new()?;
        if !files.is_empty() {
            fs::create_dir(folder.path().join("data"))?;
        }
        for (name, content) in files {
            fs::write(folder.path().join("data").join(name), content)?;
        }
        let mut env = vec![
            ("SPL_HTTP_PORT", "0".to_owned()),
            ("SPL_LLM_BASE_URL", format!("http://{upstream}/v1")),
        ];
        if let Some(redis) = redis {
            env.push(("SPL_REDIS_URL", format!("redis://{redis}/0")));
        }
        let mut program = Self::gateway(path, folder.path(), &env, None)?;
        program.folder = Some(folder);
        Ok(program)
    }

    /// Starts the gateway on the data in `folder`, without limits on sockets, sessions, sandboxes and
    /// connections. Its log goes to `log`, if present.
    pub(crate) fn gateway(
        path: &Path,
        folder: &Path,
        env: &[(&str, String)],
        log: Option<File>,
    ) -> Result<Self> {
        let mut command = sepal(path, folder);
        command
            .env("SPL_LOG_LEVEL", "warn")
            .envs(MODEL)
            .env("SPL_LIMIT_SOCKETS", "0")
            .env("SPL_LIMIT_SOCKETS_PER_USER", "0")
            .env("SPL_LIMIT_SESSIONS", "0")
            .env("SPL_LIMIT_NEW_SESSIONS_PER_USER", "0")
            .env("SPL_LIMIT_NEW_SESSIONS_PER_TENANT", "0")
            .env("SPL_LIMIT_SANDBOXES_PER_USER", "0")
            .env("SPL_LIMIT_SANDBOXES_PER_TENANT", "0")
            .env("SPL_LIMIT_CONNECTIONS", "0")
            .env("SPL_SANDBOX", "bubblewrap")
            .envs(env.iter().map(|(name, value)| (name, value)));
        if let Some(log) = log {
            command.stderr(log);
        }
        Self::start(command, None)
    }

    /// Starts a Redis as the documentation recommends: with an append-only file that is synced every second.
    pub(crate) fn redis() -> Result<Self> {
        let folder = TempDir::new()?;
        let mut program = Self::redis_on(folder.path(), free_address()?, "everysec")?;
        program.folder = Some(folder);
        Ok(program)
    }

    /// Starts a Redis on the data in `folder`, with the given `appendfsync`.
    pub(crate) fn redis_on(folder: &Path, address: SocketAddr, appendfsync: &str) -> Result<Self> {
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]);
        command.args(["--appendfsync", appendfsync, "--daemonize", "no"]);
        command.args([OsStr::new("--dir"), folder.as_os_str()]);
        command.args(["--port", &address.port().to_string()]);
        let began = Instant::now();
        let child = command.stdout(Stdio::null()).spawn();
        let child = child.context("redis-server does not start; is it installed?")?;
        let mut program = Self {
            child,
            address,
            started_ms: 0.0,
            folder: None,
        };
        program.wait_for_connection(began)?;
        Ok(program)
    }

    /// Starts a program that prints its address in its first line.
    fn start(mut command: Command, folder: Option<TempDir>) -> Result<Self> {
        let began = Instant::now();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().context("its output is piped")?;
        let mut lines = BufReader::new(output).lines();
        let first = lines.next().context("it ended without a word")??;
        let address = first
            .rsplit("//")
            .next()
            .unwrap_or(&first)
            .trim_end_matches('/');
        let address = address.replace("localhost", "127.0.0.1").parse();
        let mut program = Self {
            child,
            address: address.with_context(|| format!("no address in `{first}`"))?,
            started_ms: 0.0,
            folder,
        };
        program.wait_for_connection(began)?;
        Ok(program)
    }

    fn wait_for_connection(&mut self, began: Instant) -> Result<()> {
        while TcpStream::connect(self.address).is_err() {
            if began.elapsed() > PATIENCE {
                bail!("nothing listens at {}", self.address);
            }
            std::thread::sleep(LOOK);
        }
        self.started_ms = began.elapsed().as_secs_f64() * 1_000.0;
        Ok(())
    }

    /// Creates a member with the command line beside the running gateway, and returns their key.
    pub(crate) fn member_key(&self, path: &Path) -> Result<String> {
        let folder = self.folder.as_ref().context("a gateway has a folder")?;
        let admin = Admin {
            sepal: path,
            folder: folder.path(),
            env: &[],
        };
        admin.add_tenant("bench")?;
        admin.add_member("bench", "ana")
    }

    /// Returns its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the processor seconds that it has used, in user and system mode, including ended threads.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The process name may contain spaces and brackets; the other fields follow its last bracket.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: u32 = ticks.filter_map(|field| field.parse::<u32>().ok()).sum();
        let per_second = u32::try_from(rustix::param::clock_ticks_per_second())?;
        Ok(f64::from(ticks) / f64::from(per_second))
    }

    /// Returns its resident memory in MiB.
    pub(crate) fn memory_mib(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        let kib: u32 = kib.context("no VmRSS in /proc")?.parse()?;
        Ok(f64::from(kib) / 1024.0)
    }

    /// Waits until it has been idle for a while, so that work after an answer is included.
    pub(crate) async fn settle(&self) -> Result<()> {
        let began = Instant::now();
        let mut before = self.cpu_seconds()?;
        while began.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let now = self.cpu_seconds()?;
            if now - before < 0.011 {
                return Ok(());
            }
            before = now;
        }
        bail!("{} never comes to rest", self.address)
    }

    /// Ends it by a signal, and returns its exit status.
    pub(crate) fn end_by(&mut self, signal: Signal) -> Result<ExitStatus> {
        let began = Instant::now();
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        kill_process(Pid::from_child(&self.child), signal)?;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if began.elapsed() > PATIENCE {
                bail!("it does not end");
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.end_by(Signal::TERM).is_err() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The `sepal` command line beside a gateway.
pub(crate) struct Admin<'a> {
    /// The path of the program.
    pub(crate) sepal: &'a Path,
    /// The gateway's folder.
    pub(crate) folder: &'a Path,
    /// Further environment variables, such as the address of records outside of the folder.
    pub(crate) env: &'a [(&'static str, String)],
}

impl Admin<'_> {
    /// Creates a tenant.
    pub(crate) fn add_tenant(&self, name: &str) -> Result<()> {
        self.run(&["tenant", "add", name]).map(drop)
    }

    /// Creates a member of a tenant, and returns their key.
    pub(crate) fn add_member(&self, tenant: &str, name: &str) -> Result<String> {
        self.run(&["user", "add", name, "--tenant", tenant])?;
        let key = self.run(&["key", "add", "bench", "--user", name, "--tenant", tenant])?;
        Ok(key.lines().last().unwrap_or_default().to_owned())
    }

    /// Replays every session; returns whether all sessions matched, and the output.
    pub(crate) fn replay_all(&self) -> Result<(bool, String)> {
        let mut command = self.command();
        let output = command.envs(MODEL).args(["replay", "--all"]).output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8(said)?))
    }

    fn run(&self, args: &[&str]) -> Result<String> {
        let output = self.command().arg("admin").args(args).output()?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    fn command(&self) -> Command {
        let mut command = sepal(self.sepal, self.folder);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

fn sepal(path: &Path, data: &Path) -> Command {
    let mut command = Command::new(path);
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .env("SPL_DATA_DIR", data.join("data"))
        .env("SPL_HTTP_HOST", "127.0.0.1")
        .current_dir(data);
    command
}

/// Returns an address of this machine that is not in use.
pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}
