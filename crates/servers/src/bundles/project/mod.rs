//! Starts bundles that use uv: Python projects whose `pyproject.toml` names the packages that they need from
//! the index. These are installed once beside the bundle's files, as [packages] installs its own, and the
//! program is started without uv.
//!
//! [packages]: crate::packages

mod declared;
mod uv_run;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::declared::Declared;
use self::uv_run::{Target, UvRun};
use super::archive::Archive;
use super::manifest::McpConfig;
use super::path::shown;
use super::template::{self, FOLDER};
use sepal_mcp::config::EntryProblem;

pub(super) use self::uv_run::is_uv;

/// The folder of the installed packages, as the program sees it.
const SITE: &str = "/packages/site";
/// Removes the working directory from the module path, because it may contain a session's files.
const SAFELY: &str = "import sys;sys.path[:]=[p for p in sys.path if p];";
/// Runs a module by its name.
const MODULE: &str =
    "import runpy;runpy.run_module(sys.argv.pop(1),run_name='__main__',alter_sys=True)";
/// Calls the object that a script of the project names, as `module:object`.
const OBJECT: &str = "import functools,importlib;m,_,o=sys.argv.pop(1).partition(':');\
                      sys.exit(functools.reduce(getattr,o.split('.'),importlib.import_module(m))())";
/// Calls the object that a script of an installed package names.
const SCRIPT: &str = "from importlib.metadata import entry_points as e;n=sys.argv.pop(1);\
                      p=[*e(group='console_scripts',name=n)] or sys.exit('no package has a program '+n);\
                      sys.exit(p[0].load()())";

/// The packages that are installed from the index beside the files of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependencies {
    /// The requirements of its author, each as pip reads it.
    pub wanted: Vec<String>,
    /// `NAME==VERSION` of the packages that its author locked in `uv.lock`; empty if there are none.
    pub locked: Vec<String>,
}

/// The way to start a bundle here.
pub(super) struct Start {
    pub(super) config: McpConfig,
    /// The packages to install first; `None` if the bundle contains everything it needs.
    pub(super) dependencies: Option<Dependencies>,
    /// The range of Python versions that its project supports.
    pub(super) python: Option<String>,
}

/// Replaces uv in the start configuration, or returns the problems.
pub(super) fn without_uv(
    archive: &mut Archive<'_>,
    config: McpConfig,
) -> Result<Start, Vec<EntryProblem>> {
    let refused = |text| vec![EntryProblem::new("manifest.server.mcp_config", text)];
    let uv = UvRun::read(&config.command, &config.args).map_err(refused)?;
    let folder = folder(uv.folder.as_deref()).map_err(refused)?;
    let declared = Declared::read(archive, &folder)?;
    let dependencies = declared.dependencies(&uv)?;
    let code =
        |code: &str, name: &str| ["-c".to_owned(), format!("{SAFELY}{code}"), name.to_owned()];
    let start = match &uv.target {
        Target::File(path) => vec![file(archive, &folder, path).map_err(refused)?],
        Target::Module(name) => code(MODULE, name).to_vec(),
        Target::Script(name) => match declared.script(name) {
            Some(object) => code(OBJECT, object).to_vec(),
            None => code(SCRIPT, name).to_vec(),
        },
    };
    // Arguments that name a file of the project become full paths, because the program is started in another
    // folder.
    let argument = |word: String| {
        let path = below(&folder, word.strip_prefix("./").unwrap_or(&word));
        if archive.has_file(&path) {
            format!("{FOLDER}/{path}")
        } else {
            word
        }
    };
    let arguments = uv.arguments.into_iter().map(argument);
    let args = start.into_iter().chain(arguments).collect();
    let mut env = environment(archive, &folder, config.env);
    if uv.is_unbuffered {
        env.insert("PYTHONUNBUFFERED".to_owned(), "1".to_owned());
    }
    Ok(Start {
        config: McpConfig {
            command: "python3".to_owned(),
            args,
            env,
            platform_overrides: BTreeMap::new(),
        },
        dependencies: Some(dependencies).filter(|it| !it.wanted.is_empty()),
        python: declared.python(),
    })
}

/// Returns the folder of the project, below the bundle's folder; empty if they are the same.
fn folder(written: Option<&str>) -> Result<String, String> {
    let resolved = template::resolved(written.unwrap_or_default());
    let inside = match resolved.strip_prefix(FOLDER) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Some(rest),
        None if !resolved.starts_with('/') => Some(resolved.as_str()),
        Some(_) | None => None,
    };
    let parts = inside.unwrap_or_default().split('/');
    let parts: Vec<&str> = parts.filter(|it| !matches!(*it, "" | ".")).collect();
    if inside.is_none() || parts.contains(&"..") || resolved.contains("${") {
        return Err(format!(
            "`--directory {}` is not a folder of the bundle: name one below `${{__dirname}}`",
            shown(&resolved)
        ));
    }
    Ok(parts.join("/"))
}

/// Returns the path of a name in the project's folder, below the bundle's folder.
fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        return name.to_owned();
    }
    format!("{folder}/{name}")
}

/// Returns the full path of the file that Python runs.
fn file(archive: &Archive<'_>, folder: &str, written: &str) -> Result<String, String> {
    let resolved = template::resolved(written);
    let path = match resolved.strip_prefix(&format!("{FOLDER}/")) {
        Some(path) => path.to_owned(),
        None => below(folder, resolved.strip_prefix("./").unwrap_or(&resolved)),
    };
    if archive.has_file(&path) {
        return Ok(format!("{FOLDER}/{path}"));
    }
    let path = shown(&path);
    Err(format!("the bundle has no file `{path}`: pack it again"))
}

/// Adds the variables by which Python finds the packages and the project's own code.
fn environment(
    archive: &Archive<'_>,
    folder: &str,
    mut env: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let src = below(folder, "src");
    let own = env.remove("PYTHONPATH").filter(|own| !own.is_empty());
    let mut places: Vec<String> = own.into_iter().collect();
    places.push(SITE.to_owned());
    if archive.has_folder(&src) {
        places.push(format!("{FOLDER}/{src}"));
    }
    places.push(
        format!("{FOLDER}/{folder}")
            .trim_end_matches('/')
            .to_owned(),
    );
    env.insert("PYTHONPATH".to_owned(), places.join(":"));
    let bytecode = env.entry("PYTHONDONTWRITEBYTECODE".to_owned());
    bytecode.or_insert_with(|| "1".to_owned());
    env
}
