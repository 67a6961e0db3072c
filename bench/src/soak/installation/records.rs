//! Creates records for several gateways: an empty database on the PostgreSQL server of the run.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The address of a server's maintenance database, which `tests/servers/servers` also sets for the tests.
const SERVER: &str = "SEPAL_TEST_POSTGRES";

/// A database, which is removed together with its server.
pub(crate) struct Records {
    /// The address of the database.
    pub(crate) url: String,
    /// The port of its server.
    pub(crate) port: u16,
}

impl Records {
    /// Creates an empty database.
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
        // The template must have no other connections, and `template0` accepts none.
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

/// Returns the `psql` of the newest installed version; Debian does not put it on the path.
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
