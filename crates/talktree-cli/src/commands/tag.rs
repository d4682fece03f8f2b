//! `talktree tag`: adds, removes and lists the tags of a session or of a message.

use serde::Serialize;
use talktree::{MessageId, SessionChange, SessionId};

use crate::context::Context;
use crate::failure::Result;
use crate::{lookup, style};

/// Add tags to a session or a message, remove tags, or list them
///
/// `talktree sessions --tag TAG` lists the sessions with a tag, and `talktree search --tag TAG` the messages.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "talktree tag [OPTIONS] <SESSION> [TAGS]...\n       talktree tag [OPTIONS] <SESSION> --remove <TAG>"
)]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// The tags to add; without any, and without --remove, the tags are listed.
    tags: Vec<String>,

    /// Add the tags to this message of the session, or remove or list its tags.
    #[arg(long, value_name = "MESSAGE")]
    message: Option<String>,

    /// Remove this tag; may be given several times.
    #[arg(long, value_name = "TAG")]
    remove: Vec<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    session: &'a SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a MessageId>,
    tags: &'a [String],
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let is_list = args.tags.is_empty() && args.remove.is_empty();
    let store = if is_list { context.reader()? } else { context.writer()? };
    let session = lookup::session(&store, &args.session)?;
    let message =
        args.message.as_deref().map(|given| lookup::message(&session, given)).transpose()?;
    let tags = match &message {
        Some(id) => {
            args.tags.iter().try_for_each(|tag| session.tag(id, tag))?;
            args.remove.iter().try_for_each(|tag| session.untag(id, tag))?;
            session.tags(id)?
        }
        None => {
            let changes = args.tags.into_iter().map(SessionChange::Tag);
            for change in changes.chain(args.remove.into_iter().map(SessionChange::Untag)) {
                store.change_session(session.id(), &change)?;
            }
            session.info()?.map(|info| info.tags).unwrap_or_default()
        }
    };
    if context.is_json {
        let (session, message) = (session.id(), message.as_ref());
        return Ok(context.out.json(&Answer { session, message, tags: &tags })?);
    }
    let title = lookup::title(&session)?;
    let named = if tags.is_empty() { "no tags".to_owned() } else { tags.join(", ") };
    let mut pieces = vec![(style::PLAIN, title.as_str()), (style::PLAIN, ": ")];
    if let Some(id) = &message {
        pieces.extend([(style::PLAIN, "message "), (style::ID, id.as_str()), (style::PLAIN, ": ")]);
    }
    pieces.push((style::LABEL, &named));
    Ok(context.out.line(&pieces)?)
}
