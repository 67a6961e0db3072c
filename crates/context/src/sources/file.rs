//! Provides a file on the gateway's machine, such as the house rules of an installation.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::io::AsyncReadExt as _;

use super::hidden;
use crate::{Context, ContextError, ContextProvider, ContextSession};

/// The most bytes of a file.
const MAX_BYTES: u64 = 128 * 1024;

/// The kind that the file's text has for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
    /// The operator's own words, at the end of the system prompt.
    System,
    /// Material.
    Material,
}

/// Provides the text of one file, read again for each turn; an unchanged file stays the same context.
pub struct FileProvider {
    name: String,
    path: PathBuf,
    role: FileRole,
    /// Never held across an await.
    read: Mutex<Option<(Arc<str>, Context)>>,
}

impl FileProvider {
    /// Provides the file at that path on the gateway's machine, which only the operator may choose.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>, role: FileRole) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
            role,
            read: Mutex::default(),
        }
    }

    async fn text(&self) -> Result<String, ContextError> {
        let failed = |error: std::io::Error| hidden("its file cannot be read", &error);
        let file = tokio::fs::File::open(&self.path).await.map_err(failed)?;
        let metadata = file.metadata().await.map_err(failed)?;
        if !metadata.is_file() {
            return Err(ContextError::new("its path names no file"));
        }
        let mut content = Vec::new();
        let mut reader = file.take(MAX_BYTES + 1);
        reader.read_to_end(&mut content).await.map_err(failed)?;
        if content.len() as u64 > MAX_BYTES {
            let most = MAX_BYTES / 1024;
            return Err(ContextError::new(format!(
                "its file is longer than {most} KiB; split it into several"
            )));
        }
        String::from_utf8(content).map_err(|_| ContextError::new("its file is no UTF-8 text"))
    }

    fn context(&self, text: String) -> Context {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, context)) = &*read
            && **before == *text
        {
            return context.clone();
        }
        let text: Arc<str> = text.into();
        let context = match self.role {
            FileRole::System => Context::system(Arc::clone(&text)),
            FileRole::Material => Context::new("file", Arc::clone(&text)),
        };
        let context = context.with_metadata("source", self.name.as_str());
        *read = Some((text, context.clone()));
        context
    }
}

#[async_trait]
impl ContextProvider for FileProvider {
    fn name(&self) -> &str {
        &self.name
    }

    async fn provide(&self, _: &ContextSession<'_>) -> Result<Vec<Context>, ContextError> {
        let text = self.text().await?;
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![self.context(text)])
    }
}

#[cfg(test)]
mod tests {
    use super::{FileProvider, FileRole, MAX_BYTES};
    use crate::{Context, ContextKind, ContextProvider as _, ContextSession};
    use sepal_core::domain::{SessionId, SessionKey, TenantId};

    async fn read(provider: &FileProvider) -> Result<Vec<Context>, String> {
        let session = ContextSession::create(SessionKey {
            tenant: TenantId::from_bits(1),
            session: SessionId::from_bits(1),
        });
        let read = provider.provide(&session).await;
        read.map_err(|error| error.to_string())
    }

    /// Asserts S4.22.
    #[tokio::test]
    async fn a_file_is_read_anew_each_time_and_what_is_wrong_with_it_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.md");
        let provider = FileProvider::new("rules", &path, FileRole::System);
        assert_eq!(
            read(&provider).await.unwrap_err(),
            "its file cannot be read"
        );
        for text in ["Be kind.", "Be brief."] {
            std::fs::write(&path, text).unwrap();
            let contexts = read(&provider).await.unwrap();
            assert_eq!(contexts.len(), 1);
            assert_eq!(contexts[0].content(), text);
            assert_eq!(contexts[0].kind(), &ContextKind::System);
            assert_eq!(contexts[0].source(), Some("rules"));
        }
        std::fs::write(&path, " \n").unwrap();
        assert_eq!(read(&provider).await.unwrap().len(), 0);
        std::fs::write(&path, b"\xff\xfe").unwrap();
        assert_eq!(
            read(&provider).await.unwrap_err(),
            "its file is no UTF-8 text"
        );
        let most = usize::try_from(MAX_BYTES).unwrap();
        std::fs::write(&path, "x".repeat(most + 1)).unwrap();
        let error = read(&provider).await.unwrap_err();
        assert!(error.contains("longer than 128 KiB"), "{error}");
        let folder = FileProvider::new("rules", folder.path(), FileRole::Material);
        assert_eq!(read(&folder).await.unwrap_err(), "its path names no file");
    }
}
