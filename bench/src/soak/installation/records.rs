//! Records that several gateways read: an empty database on the PostgreSQL of the run.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The maintenance database of a server, told as to the tests by `tests/servers/servers`.
const SERVER: &str = "SEPAL_TEST_POSTGRES";

/// A database; it goes with its server.
pub(crate) struct Records {
    /// Its address.
    pub(crate) url: String,
    /// The port of its server.
    pub(crate) port: u16,
}

impl Records {
    /// Makes an empty one.
    pub(crate) fn make() -> Result<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the servers that a run needs are told by the environment"
        )]
        let server = std::env::var(SERVER);
        let server = server.with_context(|| {
            format!(
                "{SERVER} is not set, and several gateways need a PostgreSQL: use `./run soak`, or \
                 start this below `tests/servers/servers run`"
            )
        })?;
        let (base, _) = server.rsplit_once('/').context("an address has a path")?;
        let port = base.rsplit(':').next().unwrap_or_default();
        let port = port
            .parse()
            .with_context(|| format!("no port in `{base}`"))?;
        let name = format!("soak_{:016x}", fastrand::u64(..));
        // Nobody may be signed in at the template, and nobody is at this one.
        let sql = format!("CREATE DATABASE {name} TEMPLATE template0");
        let mut command = Command::new(psql());
        command.args(["--no-psqlrc", "--quiet", "--command", &sql, &server]);
        let output = command.stdin(Stdio::null()).output();
        let output = output.context("psql does not start; is it installed?")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(Self {
            url: format!("{base}/{name}"),
            port,
        })
    }
}

/// The newest installed version's; Debian keeps it off the path.
fn psql() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let numbers = versions.flatten();
    let numbers = numbers.filter_map(|entry| {
        entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
    });
    let newest: Option<u32> = numbers.max();
    let installed = newest.map(|version| format!("/usr/lib/postgresql/{version}/bin/psql").into());
    installed
        .filter(|path: &PathBuf| path.exists())
        .unwrap_or_else(|| "psql".into())
}
