//! Runs `sepal backup` and `sepal restore`.

use std::path::Path;
use std::process::ExitCode;

use crate::app;
use crate::app::workspaces::{self, MissingFiles, RestoredWorkspaces, SavedWorkspaces};
use crate::config::LoadedSettings;
use crate::store::backup::{BackupDraft, BackupScope, Existing, KeyPlace, Manifest, StagedRestore};

use super::{complain, say};

/// The choice whether a backup or a restore includes the files of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Workspaces {
    Included,
    LeftOut,
}

pub(super) async fn back_up(
    loaded: &LoadedSettings,
    settings_file: Option<&Path>,
    file: &Path,
    choice: Workspaces,
) -> anyhow::Result<ExitCode> {
    let settings = app::store_settings(&loaded.settings.store);
    let wanted = BackupScope {
        settings: &settings,
        has_own_key: loaded.settings.auth.secret_key.is_some(),
        settings_file,
    };
    let mut draft = BackupDraft::begin(wanted, file).await?;
    let saved = match choice {
        Workspaces::Included => Some(workspaces::save(&loaded.settings, &mut draft).await?),
        Workspaces::LeftOut => None,
    };
    let manifest = draft.finish().await?;
    say(&format!("Wrote `{}`:", file.display()));
    say_parts(&manifest);
    match manifest.secret_key {
        KeyPlace::File => say("It opens every stored secret: keep it as safe as a password."),
        KeyPlace::Settings => say(
            "The key of stored secrets (`auth.secret_key`, SPL_SECRET_KEY) is not in it: keep that \
             too.",
        ),
    }
    let Some(saved) = saved else {
        say(
            "Files of sessions (workspaces) and `.env` are not in it; --workspaces adds the files.",
        );
        return Ok(ExitCode::SUCCESS);
    };
    say("`.env` is not in it.");
    let SavedWorkspaces {
        elsewhere, missing, ..
    } = saved;
    if elsewhere > 0 {
        say(&format!(
            "Another engine or folder keeps the files of {elsewhere} sessions, which are not in it."
        ));
    }
    Ok(complain_of(&missing, "These files are not in the backup:"))
}

/// Lists the files of a backup, and sums up its workspaces.
fn say_parts(manifest: &Manifest) {
    let (workspaces, files): (Vec<_>, Vec<_>) =
        manifest.files.iter().partition(|part| part.is_workspace());
    for part in files {
        say(&format!("  {}  {} bytes", part.name, part.bytes));
    }
    if !workspaces.is_empty() {
        let bytes: u64 = workspaces.iter().map(|part| part.bytes).sum();
        let count = workspaces.len();
        say(&format!("  workspaces of {count} sessions  {bytes} bytes"));
    }
}

/// Names the files that are missing. The exit code tells a script whether there are any.
fn complain_of(missing: &[MissingFiles], first: &str) -> ExitCode {
    if missing.is_empty() {
        return ExitCode::SUCCESS;
    }
    complain(&format!("sepal: {first}"));
    for files in missing {
        complain(&format!(
            "  session {} ({}): {}",
            files.session, files.sandbox, files.reason
        ));
    }
    ExitCode::FAILURE
}

pub(super) async fn restore(
    loaded: &LoadedSettings,
    file: &Path,
    existing: Existing,
    choice: Workspaces,
) -> anyhow::Result<ExitCode> {
    let settings = app::store_settings(&loaded.settings.store);
    let staged = StagedRestore::begin(&settings, file, existing).await?;
    let has_workspaces = staged.has_workspaces();
    let is_wanted = has_workspaces && choice == Workspaces::Included;
    let workspaces = if is_wanted {
        Some(workspaces::restore(&loaded.settings, &staged).await?)
    } else {
        None
    };
    let restored = staged.finish().await?;
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
    let missing = if let Some(RestoredWorkspaces { restored, missing }) = workspaces {
        say(&format!("The files of {restored} sessions came back."));
        missing
    } else {
        if has_workspaces {
            say("The files of sessions were left out.");
        }
        Vec::new()
    };
    say("Next: sepal serve");
    Ok(complain_of(
        &missing,
        "These files did not come back, and their sessions say that they are elsewhere:",
    ))
}
