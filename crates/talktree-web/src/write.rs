//! What the page may write, with `--write`.

use serde_json::{Value, json};
use talktree::SessionChange;

use crate::routes::{Query, Refused, Result};
use crate::server::Page;

pub(crate) fn write(page: &Page, given: &Query) -> Result<Value> {
    let (session, info) = page.session(given)?;
    let message = || given.required("message").map(Into::into);
    let change = |change| page.store.change_session(&info.id, &change);
    match given.required("verb")? {
        "checkout" => session.checkout(&message()?)?,
        "undo" => {
            if !session.undo_head()? {
                return Err(Refused(400, "there is nothing to undo".to_owned()));
            }
        }
        "label" => session.label(given.required("name")?, &message()?)?,
        "unlabel" => session.unlabel(given.required("name")?)?,
        "rename" => change(SessionChange::Name(given.owned("name")))?,
        "pin" => change(SessionChange::Pin(true))?,
        "unpin" => change(SessionChange::Pin(false))?,
        "trash" => change(SessionChange::Delete)?,
        "restore" => change(SessionChange::Restore)?,
        "compact" => {
            let (mut first, mut last) =
                (given.required("first")?.into(), given.required("last")?.into());
            // The ends may be named in either order.
            if session.is_ancestor(&last, &first)? {
                std::mem::swap(&mut first, &mut last);
            }
            session.add_compaction(given.required("summary")?, &first, &last)?;
        }
        "uncompact" => session.remove_compaction(&given.required("compaction")?.into())?,
        _ => return Err(Refused(400, "there is no such verb".to_owned())),
    }
    Ok(json!({"done": true}))
}
