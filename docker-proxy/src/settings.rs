//! Defines and checks the operator's settings.

use std::{fmt, str::FromStr};

use crate::{address::Address, name};

/// All settings but the address to listen on.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address of the engine.
    pub engine: Address,
    /// The label that is set on everything created here, and required of everything that is touched.
    pub label: Label,
    /// The image of the sandboxes, the only one that may measure a workspace with the right to read every
    /// folder.
    pub image: String,
    /// The other images that may run; empty = any that the engine has.
    pub other_images: Vec<String>,
    /// The OCI runtime of every container; `None` = the engine's default.
    pub runtime: Option<String>,
    /// The network that a container may request; `None` = only `none`.
    pub network: Option<String>,
    /// The most that one container may request, and what it gets if it requests nothing.
    pub most: Most,
    /// The most containers of ours at the same time, running or not.
    pub max_containers: usize,
    /// The most volumes of ours at the same time: one for each session that has run a tool.
    pub max_volumes: usize,
    /// The most connections at the same time. A running sandbox has two: its streams, and the wait for its
    /// end.
    pub max_connections: usize,
}

/// A label with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The label's name.
    pub name: String,
    /// The label's value.
    pub value: String,
}

/// The limits of one container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// Bytes of memory, swap included.
    pub memory_bytes: i64,
    /// Billionths of a processor.
    pub nano_cpus: i64,
    /// The number of processes and threads.
    pub processes: i64,
    /// Most bytes of one file.
    pub file_bytes: i64,
}

impl Default for Most {
    /// Four times the default limits of Sepal, and eight times the size of its workspace.
    fn default() -> Self {
        Self {
            memory_bytes: 2 << 30,
            nano_cpus: 2_000_000_000,
            processes: 512,
            file_bytes: 8 << 30,
        }
    }
}

/// An error of the settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The label is invalid.
    #[error("`{0}` is no label; write `sepal.proxy=NAME`, with a name that no other proxy has")]
    Label(String),
    /// The image name is invalid.
    #[error("`{0}` is no image; write for example `sepal/sandbox:0.1.0`")]
    Image(String),
    /// The network does not isolate anything, or its name is invalid.
    #[error(
        "`{0}` is no network for sandboxes; name one that was made with `docker network create \
         --internal`, or leave it out"
    )]
    Network(String),
    /// The runtime name is invalid.
    #[error("`{0}` is no runtime; write for example `runsc`")]
    Runtime(String),
    /// The limit is zero or less.
    #[error("the limit `{0}` has to be more than nothing")]
    Limit(&'static str),
}

impl FromStr for Label {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let wrong = || SettingsError::Label(text.to_owned());
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        // The name has to begin with `sepal.`, so that a request's own labels can never replace it.
        if !name.starts_with("sepal.") || !name::is_word(name) || !name::is_word(value) {
            return Err(wrong());
        }
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }
}

impl fmt::Display for Label {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}={}", self.name, self.value)
    }
}

impl Settings {
    /// Refuses settings that would let nothing, or too much, through.
    pub fn check(&self) -> Result<(), SettingsError> {
        let images = std::iter::once(&self.image).chain(&self.other_images);
        if let Some(wrong) = images.into_iter().find(|image| !name::is_image(image)) {
            return Err(SettingsError::Image(wrong.clone()));
        }
        if let Some(network) = &self.network {
            let is_open = ["host", "default", "bridge", "none"].contains(&network.as_str());
            if is_open || !name::is_word(network) {
                return Err(SettingsError::Network(network.clone()));
            }
        }
        if let Some(runtime) = self.runtime.as_ref().filter(|it| !name::is_word(it)) {
            return Err(SettingsError::Runtime(runtime.clone()));
        }
        let most = self.most;
        let limits = [
            ("memory", most.memory_bytes),
            ("processor", most.nano_cpus),
            ("processes", most.processes),
            ("workspace", most.file_bytes),
        ];
        let counts = [
            ("containers", self.max_containers),
            ("volumes", self.max_volumes),
        ];
        let limits = limits.into_iter().map(|(name, most)| (name, most <= 0));
        let counts = counts.into_iter().map(|(name, most)| (name, most == 0));
        match limits.chain(counts).find(|(_, is_nothing)| *is_nothing) {
            Some((name, _)) => Err(SettingsError::Limit(name)),
            None => Ok(()),
        }
    }

    /// Returns true if containers of that image may be created.
    pub(crate) fn allows_image(&self, image: &str) -> bool {
        image == self.image
            || self.other_images.is_empty()
            || self.other_images.iter().any(|it| it == image)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn settings() -> Settings {
        Settings {
            engine: Address::Unix("/nowhere".into()),
            label: "sepal.proxy=test".parse().unwrap(),
            image: "sepal/sandbox:1".to_owned(),
            other_images: Vec::new(),
            runtime: None,
            network: None,
            most: Most::default(),
            max_containers: 10,
            max_volumes: 10,
            max_connections: 10,
        }
    }

    #[test]
    fn labels_have_to_be_ours() {
        let label: Label = "sepal.proxy=one".parse().unwrap();
        assert_eq!(label.to_string(), "sepal.proxy=one");
        for text in [
            "sepal.proxy",
            "sepal.proxy=",
            "a=b",
            "sepal.=a b",
            "com.docker.x=1",
        ] {
            assert!(text.parse::<Label>().is_err(), "{text}");
        }
    }

    #[test]
    fn settings_that_open_a_hole_are_refused() {
        assert!(settings().check().is_ok());
        let check = |change: fn(&mut Settings), expected: &str| {
            let mut settings = settings();
            change(&mut settings);
            let text = settings.check().unwrap_err().to_string();
            assert!(text.contains(expected), "{text}");
        };
        check(|it| it.network = Some("host".to_owned()), "`host`");
        check(
            |it| it.network = Some("container:x".to_owned()),
            "`container:x`",
        );
        check(|it| it.image = "../x".to_owned(), "`../x`");
        check(|it| it.runtime = Some("a b".to_owned()), "`a b`");
        check(|it| it.most.memory_bytes = 0, "`memory`");
        check(|it| it.max_containers = 0, "`containers`");
        check(|it| it.max_volumes = 0, "`volumes`");
    }

    #[test]
    fn any_image_may_run_until_some_are_named() {
        let mut settings = settings();
        assert!(settings.allows_image("mcp/time"));
        settings.other_images = vec!["mcp/time".to_owned()];
        assert!(settings.allows_image("mcp/time") && settings.allows_image("sepal/sandbox:1"));
        assert!(!settings.allows_image("mcp/time:latest"));
    }
}
