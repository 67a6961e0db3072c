//! `sepal admin tenant export` and `import`: moves a whole tenant, beside a running server.

use std::path::Path;

use super::{Beside, say};
use crate::app;
use crate::config::LoadedSettings;
use crate::gateway::wire::audit::{record_line, seal_line};
use crate::store::tenant_archive::{AuditLines, TenantCounts};
use crate::tenancy::check_tenant_name;

pub(super) async fn export(
    beside: &Beside,
    loaded: &LoadedSettings,
    name: &str,
    file: &Path,
) -> anyhow::Result<()> {
    let tenant = beside.tenancy.administration().find_tenant(name).await?;
    // The export has signatures over the whole chain of the tenant.
    let trail = app::open_audit(&loaded.settings, &beside.store, None).await?;
    trail.seal().await?;
    let lines = AuditLines {
        record: record_line,
        seal: seal_line,
    };
    let counts = beside.store.export_tenant(&tenant, file, lines).await?;
    say(&format!(
        "Wrote `{}`: {}. It holds everything of the tenant, and its secrets only sealed: keep it as safe as the \
         conversations in it.",
        file.display(),
        words(&counts)
    ));
    say("Files of sessions (workspaces) are not in it. The tenant stays suspended.");
    Ok(())
}

pub(super) async fn import(
    beside: &Beside,
    loaded: &LoadedSettings,
    file: &Path,
    name: Option<&str>,
) -> anyhow::Result<()> {
    let keys = app::secret_keys(&loaded.settings.auth);
    let sealer = beside.store.sealer(&keys).await?;
    let export = beside.store.verify_export(file, &sealer, name).await?;
    check_tenant_name(export.name())?;
    let done = beside.store.import_tenant(export).await?;
    say(&format!(
        "Imported the tenant `{}`: {}.",
        done.name,
        words(&done.counts)
    ));
    if done.closed_secrets > 0 {
        say(&format!(
            "{} of its secrets were sealed by another installation and cannot be opened here: give its providers, \
             servers and webhooks theirs again, and let its people connect their accounts again.",
            done.closed_secrets
        ));
    }
    if done.former_admins > 0 {
        say(&format!(
            "{} of its people administered the installation that it comes from, and do not administer this one: \
             sepal admin user installation-admin",
            done.former_admins
        ));
    }
    say(&format!(
        "It is suspended. Next: start running gateways anew, then sepal admin tenant resume {}",
        done.name
    ));
    Ok(())
}

fn words(counts: &TenantCounts) -> String {
    let TenantCounts {
        rows,
        sessions,
        records,
    } = counts;
    format!("{sessions} sessions with {records} commits, and {rows} rows")
}
