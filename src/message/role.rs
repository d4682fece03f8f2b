//! The roles of messages.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Who speaks in a message: one of four usual roles, or any other text.
///
/// ```
/// use talktree::Role;
///
/// assert_eq!(Role::from("user"), Role::User);
/// assert_eq!(Role::from("critic").as_str(), "critic");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// A person.
    User,
    /// The model.
    Assistant,
    /// Instructions to the model.
    System,
    /// Results of tools.
    Tool,
    /// Any other role.
    Other(Box<str>),
}

impl Role {
    /// Returns the role as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
            Self::Tool => "tool",
            Self::Other(role) => role,
        }
    }
}

impl From<&str> for Role {
    fn from(role: &str) -> Self {
        match role {
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "system" => Self::System,
            "tool" => Self::Tool,
            other => Self::Other(other.into()),
        }
    }
}

impl From<String> for Role {
    fn from(role: String) -> Self {
        Self::from(role.as_str())
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Role {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Role {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Ok(Self::from(&*text))
    }
}
