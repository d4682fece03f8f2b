//! `talktree tag`: adds, removes and lists the tags of a session.

use serde::Serialize;
use talktree::{SessionChange, SessionId};

use crate::context::Context;
use crate::failure::Result;
use crate::{lookup, style};

/// Add tags to a session, remove tags, or list them
///
/// `talktree sessions --tag TAG` lists the sessions with a tag.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "talktree tag [OPTIONS] <SESSION> [TAGS]...\n       talktree tag [OPTIONS] <SESSION> --remove <TAG>"
)]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// The tags to add; without any, and without --remove, the tags are listed.
    tags: Vec<String>,

    /// Remove this tag; may be given several times.
    #[arg(long, value_name = "TAG")]
    remove: Vec<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    session: &'a SessionId,
    tags: &'a [String],
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let is_list = args.tags.is_empty() && args.remove.is_empty();
    let store = if is_list { context.reader()? } else { context.writer()? };
    let session = lookup::session(&store, &args.session)?;
    let changes = args.tags.into_iter().map(SessionChange::Tag);
    for change in changes.chain(args.remove.into_iter().map(SessionChange::Untag)) {
        store.change_session(session.id(), &change)?;
    }
    let tags = session.info()?.map(|info| info.tags).unwrap_or_default();
    if context.is_json {
        return Ok(context.out.json(&Answer { session: session.id(), tags: &tags })?);
    }
    let title = lookup::title(&session)?;
    let named = if tags.is_empty() { "no tags".to_owned() } else { tags.join(", ") };
    Ok(context.out.line(&[(style::PLAIN, &title), (style::PLAIN, ": "), (style::LABEL, &named)])?)
}
