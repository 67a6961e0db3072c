//! Runs `sepal backup` and `sepal restore`.

use std::path::Path;
use std::process::ExitCode;

use crate::app;
use crate::config::LoadedSettings;
use crate::store::backup::{self, BackupScope, Existing, KeyPlace};

use super::say;

pub(super) async fn back_up(
    loaded: &LoadedSettings,
    settings_file: Option<&Path>,
    file: &Path,
) -> anyhow::Result<ExitCode> {
    let settings = app::store_settings(&loaded.settings.store);
    let wanted = BackupScope {
        settings: &settings,
        has_own_key: loaded.settings.auth.secret_key.is_some(),
        settings_file,
    };
    let manifest = backup::back_up(wanted, file).await?;
    say(&format!("Wrote `{}`:", file.display()));
    for part in &manifest.files {
        say(&format!("  {}  {} bytes", part.name, part.bytes));
    }
    match manifest.secret_key {
        KeyPlace::File => say("It opens every stored secret: keep it as safe as a password."),
        KeyPlace::Settings => say(
            "The key of stored secrets (`auth.secret_key`, SPL_SECRET_KEY) is not in it: keep that \
             too.",
        ),
    }
    say("Files of sessions (workspaces) and `.env` are not in it.");
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn restore(
    loaded: &LoadedSettings,
    file: &Path,
    force: bool,
) -> anyhow::Result<ExitCode> {
    let settings = app::store_settings(&loaded.settings.store);
    let existing = if force {
        Existing::MoveAside
    } else {
        Existing::Refuse
    };
    let restored = backup::restore(&settings, file, existing).await?;
    let manifest = restored.manifest;
    say(&format!(
        "Restored what Sepal {} kept at {} into `{}`.",
        manifest.program,
        manifest.created_at,
        settings.data_dir.display()
    ));
    if let Some(aside) = restored.aside {
        say(&format!("What was there lies in `{}`.", aside.display()));
    }
    if let Some(file) = restored.settings_file {
        say(&format!(
            "Its settings file lies in `{}`; use it with --config, from where you like.",
            file.display()
        ));
    }
    let has_own_key = loaded.settings.auth.secret_key.is_some();
    if manifest.secret_key == KeyPlace::Settings && !has_own_key {
        say("Its secrets were sealed with a key of the settings: set SPL_SECRET_KEY as it was.");
    }
    say("Next: sepal serve");
    Ok(ExitCode::SUCCESS)
}
