//! Defines the errors of a container engine, each with its remedy.

use bollard::errors::Error as ApiError;

use sepal_core::domain::Fault;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The engine does not answer, or we may not connect to it.
    #[error("no container engine answers at `{address}` ({said}); {REACH}")]
    Unreachable {
        address: String,
        /// The connection error.
        said: String,
    },
    /// The image of the sandboxes is missing.
    #[error("the image `{image}` is missing; get it: {}", remedy(.image))]
    NoImage { image: String },
    /// The image declares volumes, which would have no limit.
    #[error(
        "the image `{image}` is not run: it declares volumes (`{folders}`), to which the engine \
         gives no limit; use one without `VOLUME`, or build it anew without"
    )]
    HasVolumes {
        image: String,
        /// The folders, separated by closing and opening backticks.
        folders: String,
    },
    /// The image declares no command to run.
    #[error(
        "the image `{image}` has neither an entry point nor a command; give the program and its \
         arguments as `args`"
    )]
    NoCommand { image: String },
    /// The engine lacks the runtime that the settings name.
    #[error(
        "the engine has no runtime `{runtime}`; it has: {known}; install it there, or unset \
         `sandbox.runtime` (SPL_SANDBOX_RUNTIME)"
    )]
    NoRuntime {
        /// The runtime that the settings name.
        runtime: String,
        known: String,
    },
    /// The engine refused the request.
    #[error("the container engine refused to {what}: {said}")]
    RefusalPayload {
        /// The requested action.
        what: &'static str,
        said: String,
    },
    /// Another gateway has not released the sandbox.
    #[error("another gateway still runs `{name}` of this session; try again in a moment")]
    Taken { name: String },
    /// Too many requests for the engine are waiting.
    #[error("the container engine is busy: too many sandboxes start at once; try again")]
    Busy,
}

const REACH: &str = "start it (`systemctl start docker`), let this user reach its socket (group \
                     `docker`, id 990 in our compose file), or set SPL_SANDBOX_DOCKER_HOST";

/// Returns the command that gets an image.
fn remedy(image: &str) -> String {
    if image.starts_with("sepal/sandbox:") {
        "run `docker compose build sandbox` beside docker-compose.yml, or `./run image` in Sepal's \
         folder with DOCKER_HOST set if it is not the local engine"
            .to_owned()
    } else {
        format!("`docker pull {image}`")
    }
}

impl Problem {
    /// Converts an engine's error; `what` names the requested action.
    pub(in crate::docker) fn of(error: &ApiError, what: &'static str, address: &str) -> Self {
        match status(error) {
            // A proxy in front of the engine answers 503 if the engine is unreachable.
            Some(status) if status != 503 => Self::Refused {
                what,
                said: words(error),
            },
            Some(_) | None => Self::Unreachable {
                address: address.to_owned(),
                said: words(error),
            },
        }
    }

    /// Returns the remedy. It names no address, so anybody may read it.
    pub fn remedy(&self) -> String {
        match self {
            Self::Unreachable { .. } => REACH.to_owned(),
            Self::NoImage { image } => remedy(image),
            Self::NoRuntime { .. } => {
                "install that runtime in the engine, or unset `sandbox.runtime` \
                 (SPL_SANDBOX_RUNTIME)"
                    .to_owned()
            }
            Self::NoCommand { .. } => "give the program as `args`".to_owned(),
            Self::HasVolumes { .. } => "use an image without `VOLUME`".to_owned(),
            Self::Taken { .. } | Self::Busy => "try again in a moment".to_owned(),
            Self::Refused { .. } => "look at the engine's log".to_owned(),
        }
    }

    /// Returns the fault class, which says who has to act.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Unreachable { .. } | Self::Taken { .. } | Self::Busy => Fault::Transient,
            Self::NoImage { .. }
            | Self::HasVolumes { .. }
            | Self::NoCommand { .. }
            | Self::NoRuntime { .. }
            | Self::Refused { .. } => Fault::External,
        }
    }
}

/// Returns the engine's status code; `None` if it did not answer.
pub(in crate::docker) fn status(error: &ApiError) -> Option<u16> {
    if let ApiError::DockerResponseServerError { status_code, .. } = error {
        return Some(*status_code);
    }
    None
}

/// Returns the innermost cause's message: the outer ones only say that something failed.
pub(in crate::docker) fn words(error: &ApiError) -> String {
    if let ApiError::DockerResponseServerError { message, .. } = error {
        return message.trim().to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_says_what_to_do() {
        let check = |problem: Problem, expected: &str| {
            let text = problem.to_string();
            assert!(text.contains(expected), "{text}");
        };
        let image = |image: &str| Problem::NoImage {
            image: image.to_owned(),
        };
        check(image("sepal/sandbox:1.0"), "`./run image`");
        check(image("sepal/sandbox:1.0"), "`docker compose build sandbox`");
        check(image("mcp/time"), "`docker pull mcp/time`");
        let error = ApiError::IOError {
            err: std::io::Error::other("no such file"),
        };
        let away = Problem::of(&error, "start", "unix:///x");
        let remedy = away.remedy();
        assert!(
            remedy.contains("systemctl start docker") && !remedy.contains("unix:"),
            "{remedy}"
        );
        check(away, "at `unix:///x` (no such file); start it");
        let error = ApiError::DockerResponseServerError {
            status_code: 500,
            message: "bad mount".to_owned(),
        };
        let refused = Problem::of(&error, "start the container", "unix:///x");
        check(refused, "refused to start the container: bad mount");
    }
}
