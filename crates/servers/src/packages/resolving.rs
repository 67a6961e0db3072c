//! Asks the registry for the version that would be installed, directly from the gateway: a wrong name or
//! version is reported to the person before anything is installed.

use std::time::Duration;

use reqwest::{Client, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::order::registry;
use sepal_core::domain::{InstallProblem, PackageRegistry, PackageSpec};
use sepal_sandbox::host::PackageInstalling;

/// The time limit of one answer.
const LIMIT: Duration = Duration::from_secs(20);
/// The most bytes that are read of an answer.
const MAX_ANSWER: usize = 16 << 20;

/// The registry's information about a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResolvedPath {
    /// The exact version; `None` if only the installer can resolve it, as with ranges.
    pub version: Option<String>,
    /// The author's description.
    pub summary: Option<String>,
}

/// The reason why a package cannot be installed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct FileRefusal {
    pub problem: InstallProblem,
    pub text: String,
}

fn refused(problem: InstallProblem, text: String) -> Refused {
    Refused { problem, text }
}

/// Asks the registry about a package.
pub(crate) async fn resolve(
    client: &Client,
    spec: &PackageSpec,
    settings: &PackageInstalling,
) -> Result<Resolved, Refused> {
    let asking = Asking {
        client,
        spec,
        base: registry(spec.registry, settings),
    };
    match spec.registry {
        PackageRegistry::Npm => asking.npm().await,
        PackageRegistry::Pypi => asking.pypi().await,
        // No registry is involved: the bundle's file is stored here.
        PackageRegistry::Bundle => Ok(Resolved::default()),
    }
}

struct Asking<'a> {
    client: &'a Client,
    spec: &'a PackageSpec,
    base: &'a str,
}

/// A version of a package in npm's format.
#[derive(Deserialize)]
struct NpmVersion {
    version: String,
    description: Option<String>,
}

/// A version of a package in the format of the Python index.
#[derive(Deserialize)]
struct PypiVersion {
    info: PypiInfo,
    #[serde(default)]
    urls: Vec<PypiFile>,
}

#[derive(Deserialize)]
struct PypiInfo {
    version: String,
    summary: Option<String>,
    #[serde(default)]
    yanked: bool,
    yanked_reason: Option<String>,
}

#[derive(Deserialize)]
struct PypiFile {
    packagetype: String,
}

impl Asking<'_> {
    async fn npm(&self) -> Result<Resolved, Refused> {
        let PackageSpec { name, version, .. } = self.spec;
        let wanted = version.as_deref().unwrap_or("latest");
        let path = name.replace('/', "%2f");
        let is_range = is_npm_range(wanted);
        let asked = if is_range { "latest" } else { wanted };
        let address = format!("{}/{path}/{asked}", self.base);
        match self.get::<NpmVersion>(&address).await? {
            Some(_) if is_range => Ok(Resolved::default()),
            Some(found) => Ok(Resolved {
                version: Some(found.version),
                summary: found.description,
            }),
            None if asked == "latest" => Err(self.no_package()),
            None => {
                let newest = format!("{}/{path}/latest", self.base);
                match self.get::<NpmVersion>(&newest).await? {
                    None => Err(self.no_package()),
                    Some(newest) => Err(self.no_version(wanted, &newest.version)),
                }
            }
        }
    }

    async fn pypi(&self) -> Result<Resolved, Refused> {
        let PackageSpec { name, version, .. } = self.spec;
        // Only an index whose address ends in `/simple` is expected to have PyPI's JSON API.
        let Some(base) = self.base.strip_suffix("/simple") else {
            return Ok(Resolved::default());
        };
        let exact = version.as_deref().and_then(|version| {
            let exact = version.strip_prefix("==")?;
            (!exact.contains(['*', ',', '='])).then(|| exact.trim().to_owned())
        });
        let of_package = format!("{base}/pypi/{name}/json");
        let address = match &exact {
            Some(exact) => format!("{base}/pypi/{name}/{exact}/json"),
            None => of_package.clone(),
        };
        let Some(found) = self.get::<PypiVersion>(&address).await? else {
            return self.missing(exact.as_deref(), &of_package).await;
        };
        if exact.is_none() && version.is_some() {
            // A range: the installer picks the newest version that fits.
            return Ok(Resolved::default());
        }
        let PypiInfo {
            version,
            summary,
            yanked,
            yanked_reason,
        } = found.info;
        if yanked {
            let why = yanked_reason.filter(|why| !why.is_empty());
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            let text = format!("version {version} of `{name}` was taken back by its author{why}");
            return Err(refused(InstallProblem::Yanked, text));
        }
        let is_built = found.urls.iter().any(|it| it.packagetype == "bdist_wheel");
        if !found.urls.is_empty() && !is_built && !self.spec.allow_scripts {
            let text = format!(
                "version {version} of `{name}` is only there as source, and building it runs code of \
                 its authors"
            );
            return Err(refused(InstallProblem::NoWheel, text));
        }
        Ok(Resolved {
            version: Some(format!("=={version}")),
            summary,
        })
    }

    /// A package that the JSON API does not know may exist all the same, because not all indexes have that
    /// API; then the simple index decides.
    async fn missing(&self, exact: Option<&str>, package: &str) -> Result<Resolved, Refused> {
        if let Some(exact) = exact
            && let Some(newest) = self.get::<PypiVersion>(package).await?
        {
            return Err(self.no_version(exact, &newest.info.version));
        }
        let listed = format!("{}/{}/", self.base, self.spec.name);
        if self.is_there(&listed).await? {
            return Ok(Resolved::default());
        }
        Err(self.no_package())
    }

    fn no_package(&self) -> Refused {
        let PackageSpec { registry, name, .. } = self.spec;
        let text = format!("{} has no package `{name}`", registry.title());
        refused(InstallProblem::NoSuchPackage, text)
    }

    fn no_version(&self, wanted: &str, newest: &str) -> Refused {
        let name = &self.spec.name;
        let text = format!("`{name}` has no version `{wanted}`; its newest is {newest}");
        refused(InstallProblem::NoSuchVersion, text)
    }

    /// Fetches and parses an answer; `None` if there is nothing at the address.
    async fn get<T: DeserializeOwned>(&self, address: &str) -> Result<Option<T>, Refused> {
        let Some(body) = self.fetch(address).await? else {
            return Ok(None);
        };
        let read = serde_json::from_slice(&body);
        read.map(Some).map_err(|error| {
            self.unreachable(&format!("its answer is not what a registry says ({error})"))
        })
    }

    async fn is_there(&self, address: &str) -> Result<bool, Refused> {
        Ok(self.fetch(address).await?.is_some())
    }

    async fn fetch(&self, address: &str) -> Result<Option<Vec<u8>>, Refused> {
        let fetching = async {
            let asked = self
                .client
                .get(address)
                .header("accept", "application/json");
            let mut answer = asked.send().await?;
            let status = answer.status();
            let mut body = Vec::new();
            while let Some(part) = answer.chunk().await? {
                body.extend_from_slice(&part);
                if body.len() > MAX_ANSWER {
                    break;
                }
            }
            Ok::<_, reqwest::Error>((status, body))
        };
        match tokio::time::timeout(LIMIT, fetching).await {
            Err(_) => Err(self.unreachable("it does not answer")),
            Ok(Err(error)) => {
                tracing::info!(?error, "The registry of packages cannot be reached");
                Err(self.unreachable("no connection"))
            }
            Ok(Ok((_, body))) if body.len() > MAX_ANSWER => {
                Err(self.unreachable("its answer is too large"))
            }
            Ok(Ok((StatusCode::NOT_FOUND | StatusCode::GONE, _))) => Ok(None),
            Ok(Ok((status, body))) if status.is_success() => Ok(Some(body)),
            Ok(Ok((status, _))) => Err(self.unreachable(&format!("it answers {status}"))),
        }
    }

    fn unreachable(&self, why: &str) -> Refused {
        let title = self.spec.registry.title();
        let text = format!("the registry of {title} packages cannot be used now: {why}");
        refused(InstallProblem::Unreachable, text)
    }
}

/// Returns true for a range of versions by the rules of npm: a text with operators, or a version of which a
/// component is left out or is exactly `x`, `X` or `*`. Everything else is one version or a tag.
fn is_npm_range(wanted: &str) -> bool {
    if wanted.contains(['^', '~', '<', '>', '=', '|', ' ']) {
        return true;
    }
    let version = wanted.strip_prefix('v').unwrap_or(wanted);
    // Only a complete version has a suffix; `1-beta` is a tag.
    let range = match version.split_once(['-', '+']) {
        Some((numbers, _)) if numbers.split('.').count() == 3 => numbers,
        _ => version,
    };
    semver::Version::parse(version).is_err() && semver::VersionReq::parse(range).is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_npm_range;

    #[test]
    fn a_range_of_npm_is_told_from_a_version_and_from_a_tag() {
        let ranges = [
            "^1.2.3",
            "~1.2",
            ">=1 <2",
            "1 || 2",
            "1.2.3 - 2",
            "*",
            "x",
            "X",
            "1",
            "v1",
            "1.2",
            "1.x",
            "1.2.x",
            "1.X",
            "1.*",
            "1.2.*",
            "1.x.x",
            "1.2.x-beta",
        ];
        for range in ranges {
            assert!(is_npm_range(range), "{range}");
        }
        let others = [
            "1.2.3",
            "v1.2.3",
            "1.2.3-next.1",
            "1.2.3-x.7",
            "1.2.3+x",
            "next",
            "latest",
            "experimental",
            "xyz",
            "x-next",
            "1-beta",
            "1.x-beta",
            "1.2.3.4",
            "",
        ];
        for other in others {
            assert!(!is_npm_range(other), "{other}");
        }
    }
}
