//! Reading the outline of a tree.

use rusqlite::Connection;

use super::catalog::SessionRow;
use super::fault::Outcome;
use crate::tree::Tree;

/// Returns the outline of a session.
pub(super) fn tree(_conn: &Connection, _session: &SessionRow) -> Outcome<Tree> {
    Ok(Tree::default())
}
