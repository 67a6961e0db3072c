//! Parses database addresses. No text about an address contains its password.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use sqlx::postgres::PgConnectOptions;

use super::super::Error;

/// The location of the database.
#[derive(Debug)]
pub(super) enum Address {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server, with the options to connect to it.
    Postgres(Box<PgConnectOptions>),
}

impl Address {
    /// Parses `sqlite://<file>` or `postgres://…`. Without an address, uses `sepal.db` in the data folder.
    pub(super) fn parse(address: Option<&str>, data_dir: &Path) -> Result<Self, Error> {
        let Some(address) = address else {
            return Ok(Self::Sqlite(data_dir.join(super::DATABASE_FILE)));
        };
        let (scheme, rest) = address.split_once(':').unwrap_or((address, ""));
        match scheme {
            "sqlite" => sqlite_file(rest).map(Self::Sqlite),
            "postgres" | "postgresql" => PgConnectOptions::from_str(address)
                .map(|options| Self::Postgres(Box::new(options)))
                .map_err(|_| unusable(scheme, "the address of the server cannot be read")),
            _ => {
                let reason = "the database is SQLite (`sqlite://`) or PostgreSQL (`postgres://`)";
                Err(unusable(scheme, reason))
            }
        }
    }
}

fn sqlite_file(rest: &str) -> Result<PathBuf, Error> {
    let path = rest.strip_prefix("//").unwrap_or(rest);
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    if path.is_empty() || path == ":memory:" {
        return Err(unusable("sqlite", "the address names no file"));
    }
    Ok(path.into())
}

/// An error that shows only the scheme, because the rest may contain a password.
fn unusable(scheme: &str, reason: &'static str) -> Error {
    Error::Unusable {
        path: format!("{scheme}:…").into(),
        reason,
        source: None,
    }
}

/// A server's address without its password.
pub(super) fn shown(options: &PgConnectOptions) -> String {
    let place = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    let (user, database) = (options.get_username(), options.get_database());
    format!("postgres://{user}@{place}/{}", database.unwrap_or(user))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Address, shown};

    #[test]
    fn an_address_names_a_file_or_is_refused_without_its_password() {
        let check = |address, expected: &str| {
            let text = match Address::parse(address, Path::new("data")) {
                Ok(Address::Sqlite(path)) => path.display().to_string(),
                Ok(Address::Postgres(options)) => shown(&options),
                Err(error) => error.to_string(),
            };
            assert_eq!(text, expected);
        };
        check(None, "data/sepal.db");
        check(Some("sqlite://data/sepal.db"), "data/sepal.db");
        check(Some("sqlite:///var/lib/s.db?mode=rwc"), "/var/lib/s.db");
        check(Some("sqlite:s.db"), "s.db");
        check(
            Some("sqlite::memory:"),
            "cannot use `sqlite:…`: the address names no file",
        );
        check(
            Some("postgres://ann:secret@db.test:6000/sepal?sslmode=require"),
            "postgres://ann@db.test:6000/sepal",
        );
        check(
            Some("postgresql://ann:secret@localhost/sepal?host=/run/postgresql"),
            "postgres://ann@/run/postgresql/sepal",
        );
        check(
            Some("postgres://ann:secret@db.test:port/sepal"),
            "cannot use `postgres:…`: the address of the server cannot be read",
        );
        check(
            Some("mysql://ann:secret@db.test/sepal"),
            "cannot use `mysql:…`: the database is SQLite (`sqlite://`) or PostgreSQL (`postgres://`)",
        );
    }
}
