//! Lists every call that is let through, in one table; docs/docker-proxy.md shows the same one.

use hyper::Method;

use crate::{name, refusal::Refusal};

/// The action of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Ping,
    Health,
    Version,
    Info,
    ImageInspect,
    ContainerCreate,
    ContainerList,
    ContainerInspect,
    ContainerAttach,
    ContainerStart,
    ContainerPause,
    ContainerUnpause,
    ContainerWait,
    ContainerRemove,
    VolumeCreate,
    VolumeList,
    VolumeRemove,
}

/// An allowed call.
#[derive(Debug)]
pub struct Route {
    /// The method: `GET`, `POST` or `DELETE`.
    pub method: &'static str,
    /// The path; `{…}` matches a name or id.
    pub path: &'static str,
    /// The parameters that are read; others must have no effect.
    pub query: &'static [&'static str],
    /// The effect of the call, for the documentation.
    pub does: &'static str,
    pub(crate) call: Call,
}

const fn get(path: &'static str, call: Call, does: &'static str) -> Route {
    route("GET", path, call, does)
}

const fn post(path: &'static str, call: Call, does: &'static str) -> Route {
    route("POST", path, call, does)
}

const fn route(method: &'static str, path: &'static str, call: Call, does: &'static str) -> Route {
    Route {
        method,
        path,
        query: &[],
        does,
        call,
    }
}

impl Route {
    const fn reading(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    /// Returns true if the call has a body.
    pub(crate) fn has_body(&self) -> bool {
        matches!(self.call, Call::ContainerCreate | Call::VolumeCreate)
    }
}

/// All calls that are let through.
pub const ROUTES: &[Route] = &[
    get(
        "/_ping",
        Call::Ping,
        "answers `OK` with the API version if the engine does",
    ),
    get(
        "/health",
        Call::Health,
        "says whether proxy and engine are up; not a call of Docker",
    ),
    get("/version", Call::Version, "versions, without components"),
    get(
        "/info",
        Call::Info,
        "id, name, what limits and runtimes the engine has; no addresses, no registries",
    ),
    get(
        "/images/{image}/json",
        Call::ImageInspect,
        "of an allowed image: whether it is there, the volumes that it declares, and what it runs",
    ),
    post(
        "/containers/create",
        Call::ContainerCreate,
        "rebuilt from the template; an allowed image, the sandbox's own volume at `/workspace` or none, and those of other sandboxes of ours at `/packages` and `/sepal`, read-only",
    )
    .reading(&["name"]),
    get(
        "/containers/json",
        Call::ContainerList,
        "only ours: our label is added to the filter",
    )
    .reading(&["all", "filters"]),
    get(
        "/containers/{id}/json",
        Call::ContainerInspect,
        "of ours: names, labels, state; no environment, no paths of the machine",
    ),
    post(
        "/containers/{id}/attach",
        Call::ContainerAttach,
        "of ours: stdin, stdout and stderr; needs `Upgrade: tcp` and no body",
    )
    .reading(&["stream", "stdin", "stdout", "stderr"]),
    post("/containers/{id}/start", Call::ContainerStart, "of ours"),
    post("/containers/{id}/pause", Call::ContainerPause, "of ours"),
    post("/containers/{id}/unpause", Call::ContainerUnpause, "of ours"),
    post("/containers/{id}/wait", Call::ContainerWait, "of ours").reading(&["condition"]),
    route(
        "DELETE",
        "/containers/{id}",
        Call::ContainerRemove,
        "of ours, with the nameless volumes that its image made",
    )
    .reading(&["force", "v"]),
    post(
        "/volumes/create",
        Call::VolumeCreate,
        "rebuilt from the template: driver `local`, of its options only the size",
    ),
    get(
        "/volumes",
        Call::VolumeList,
        "only ours: our label is added to the filter",
    )
    .reading(&["filters"]),
    route("DELETE", "/volumes/{name}", Call::VolumeRemove, "of ours"),
];

/// Returns the table for the documentation.
pub fn table() -> String {
    let row = |route: &Route| {
        let query: Vec<String> = route.query.iter().map(|it| format!("`{it}`")).collect();
        let (method, path, does) = (route.method, route.path, route.does);
        format!("| `{method} {path}` | {} | {does} |\n", query.join(", "))
    };
    let rows: String = ROUTES.iter().map(row).collect();
    format!("| call | parameters | what is let through |\n|---|---|---|\n{rows}")
}

/// Finds the call for a method and a checked path without its version, and the name in the path.
pub(crate) fn find<'p>(
    method: &Method,
    path: &'p str,
) -> Result<(&'static Route, Option<&'p str>), Refusal> {
    let of_method = ROUTES.iter().filter(|it| it.method == method.as_str());
    // A path without a name has precedence: no container is called `json`.
    let (plain, named): (Vec<_>, Vec<_>) = of_method.partition(|it| !it.path.contains('{'));
    if let Some(route) = plain.into_iter().find(|it| it.path == path) {
        return Ok((route, None));
    }
    let mut found = named
        .into_iter()
        .filter_map(|route| Some((route, Some(named_in(route, path)?))));
    found.next().ok_or_else(|| Refusal::NoCall {
        method: method.to_string(),
        path: path.to_owned(),
    })
}

/// Returns the name in `path`, if the path matches the route.
fn named_in<'p>(route: &Route, path: &'p str) -> Option<&'p str> {
    let (before, rest) = route.path.split_once('{')?;
    let (kind, after) = rest.split_once('}')?;
    let name = path.strip_prefix(before)?.strip_suffix(after)?;
    let is_name = match kind {
        "image" => name::is_image(name),
        _ => name::is_word(name),
    };
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, path: &str) -> Option<(Call, Option<String>)> {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let (route, name) = find(&method, path).ok()?;
        Some((route.call, name.map(str::to_owned)))
    }

    #[test]
    fn allowed_calls_are_found_with_their_name() {
        let named = |call, name: &str| Some((call, Some(name.to_owned())));
        assert_eq!(check("GET", "/_ping"), Some((Call::Ping, None)));
        assert_eq!(
            check("GET", "/containers/json"),
            Some((Call::ContainerList, None))
        );
        assert_eq!(
            check("GET", "/containers/a/json"),
            named(Call::ContainerInspect, "a")
        );
        assert_eq!(
            check("DELETE", "/containers/a"),
            named(Call::ContainerRemove, "a")
        );
        assert_eq!(
            check("GET", "/images/h:1/a/b:c/json"),
            named(Call::ImageInspect, "h:1/a/b:c")
        );
    }

    #[test]
    fn everything_else_is_refused() {
        for (method, path) in [
            ("POST", "/build"),
            ("POST", "/images/create"),
            ("POST", "/images/load"),
            ("POST", "/commit"),
            ("POST", "/containers/a/exec"),
            ("POST", "/exec/a/start"),
            ("GET", "/exec/a/json"),
            ("POST", "/containers/a/kill"),
            ("POST", "/containers/a/update"),
            ("POST", "/containers/a/rename"),
            ("POST", "/containers/prune"),
            ("GET", "/containers/a/logs"),
            ("GET", "/containers/a/archive"),
            ("PUT", "/containers/a/archive"),
            ("GET", "/containers/a/export"),
            ("GET", "/containers/a/attach/ws"),
            ("GET", "/events"),
            ("GET", "/volumes/a"),
            ("POST", "/networks/create"),
            ("POST", "/networks/a/connect"),
            ("POST", "/swarm/init"),
            ("POST", "/plugins/pull"),
            ("POST", "/session"),
            ("POST", "/grpc"),
            ("POST", "/auth"),
            ("DELETE", "/containers/create/a"),
            ("DELETE", "/images/a"),
            ("get", "/_ping"),
            ("GET", "/_PING"),
            ("GET", "//_ping"),
            ("GET", "/Containers/json"),
            ("GET", "/containers/../info"),
            ("GET", "/images/../containers/a/json"),
            ("GET", ""),
        ] {
            assert_eq!(check(method, path), None, "{method} {path}");
        }
    }

    #[test]
    fn the_document_has_the_table() {
        let document = include_str!("../../docs/docker-proxy.md");
        assert!(
            document.contains(&table()),
            "docs/docker-proxy.md lacks:\n{}",
            table()
        );
    }
}
