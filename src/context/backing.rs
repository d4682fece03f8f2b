//! Backing: where the texts of blocks are, and the conversation they belong to.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::storage::SessionProvider;
use crate::storage::context::ContextStore;

/// What a context stands on; a storage of one's own has no place for texts, a context by itself no conversation.
#[derive(Clone, Default)]
pub(crate) struct Backing {
    pub(crate) store: Option<Arc<dyn ContextStore>>,
    pub(crate) conversation: Option<Arc<dyn SessionProvider>>,
}

impl Backing {
    pub(crate) fn store(&self) -> Result<&dyn ContextStore> {
        self.store.as_deref().ok_or(Error::Unsupported { what: "context kept in the store" })
    }

    pub(crate) fn conversation(&self) -> Result<&dyn SessionProvider> {
        let what = "a conversation beside the context";
        self.conversation.as_deref().ok_or(Error::Unsupported { what })
    }
}
