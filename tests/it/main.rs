//! Integration tests on the real parts, one binary, one file per story.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helper functions of tests are not covered by the test allowance"
)]

mod agent_mode;
mod approvals;
mod architecture;
mod assistants;
mod attachments;
mod audit;
mod backup;
mod bad_input;
mod budgets;
mod burst;
mod company;
mod compose;
mod containers;
mod context;
mod context_providers;
mod damage;
mod database;
mod decisions;
mod disk_pressure;
mod documents;
mod dry_runs;
mod erasure;
mod file_facts;
mod forked_files;
mod forks;
mod generated;
mod gestures;
mod groups;
mod idle;
mod imports;
mod inbox;
mod isolation;
mod key_scopes;
mod kill;
mod landings;
mod late_engine;
mod leaving;
mod lists;
mod llm;
mod logs;
mod loops;
mod metrics;
mod model_stub;
mod notifications;
mod oauth;
mod oidc;
mod packages;
mod people;
mod placed_attachments;
mod plain_turn;
mod providers;
mod proxy_sign_in;
mod reads;
mod reasoning;
mod redis_app;
mod replay;
mod replicas;
mod requirements;
mod rest;
mod rights;
mod roles;
mod rules;
mod sandboxes;
mod scim;
mod search;
mod secret_key;
mod servers;
mod session_marks;
mod session_network;
mod shared_engine;
mod shares;
mod sharing;
mod skills;
mod stores;
mod story;
mod summaries;
mod support;
mod tasks;
mod tenancy;
mod tenant_archive;
mod titles;
mod traces;
mod turn_limit;
mod usage;
mod vendors;
mod workspace_changes;
mod workspace_files;
mod worst_input;
