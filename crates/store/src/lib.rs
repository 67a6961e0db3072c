//! Stores everything that outlives the process: the journals of sessions ([`live`]) and all other data
//! ([`records`]).
//!
//! Both are in one SQLite file in a locked data folder or in a PostgreSQL database. If several gateways
//! share the journals, those are in Redis. The store keeps what it is given: it never decides what is stored,
//! and it never reads a commit.
//!
//! Start at [`Store::open`]. [`LiveStore`] is the seam to journals, [`Records`] leads to all tables, and
//! [`live::cluster_bus`] is the line between gateways. Statements for both databases go through `db`.

pub mod audit;
pub mod backup;
pub mod clock;
mod data_dir;
mod db;
mod error;
mod keyed;
pub mod live;
pub mod records;
pub mod sealed;
mod settings;
mod store;
pub mod tenant_archive;
pub mod versions;

pub use data_dir::{DataDir, Holder};
pub use error::{Error, RedisTrouble};
pub use live::{AppendOutcome, Head, LiveStore, NewRecord, Record, Snapshot};
pub use records::Records;
pub use sealed::{Sealer, SecretKeys};
pub use settings::Settings;
pub use store::{Access, Probe, Store};
