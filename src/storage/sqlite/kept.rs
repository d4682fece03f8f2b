//! Values that a program keeps under names, as settings of a name of their own kind.

use super::connection::Database;
use crate::error::{Result, check_size};
use crate::id::check_name;

/// What the names of these settings begin with.
const PREFIX: &str = "kept:";

impl Database {
    /// Returns the value under a name.
    pub(crate) fn kept(&self, name: &str) -> Result<Option<String>> {
        check_name("kept value", name)?;
        self.read(|conn| conn.first(FIND, format!("{PREFIX}{name}")))
    }

    /// Puts values under names, in one write.
    pub(crate) fn keep_values(&self, values: &[(String, String)]) -> Result<()> {
        for (name, value) in values {
            check_name("kept value", name)?;
            check_size("a kept value", value.len(), self.config.max_message_bytes)?;
        }
        self.write(|conn| {
            for (name, value) in values {
                conn.run(PUT, (format!("{PREFIX}{name}"), value))?;
            }
            Ok(())
        })
    }
}

const FIND: &str = "SELECT value FROM setting WHERE name = ?1";
const PUT: &str = "INSERT INTO setting (name, value) VALUES (?1, ?2)
 ON CONFLICT (name) DO UPDATE SET value = excluded.value";
