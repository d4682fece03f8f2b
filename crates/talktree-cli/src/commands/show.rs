//! `talktree show`: prints one message in full, and the messages around it.

use talktree::{CompactionId, Message, MessageId, Session};

use super::message::{self, Extent};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::{lookup, style};

/// Print one message in full
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree show [OPTIONS] <SESSION> <MESSAGE>")]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// The message: its id, the start or the end of its id, a label, or `head`.
    message: String,

    /// Also print N messages before it and N after it: towards the head, or on the newest branch if it is off its path.
    #[arg(long, value_name = "N", default_value_t = 0)]
    around: usize,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let session = lookup::session(&store, &args.session)?;
    let id = lookup::message(&session, &args.message)?;
    let message = session.message(&id)?;
    // Another process may have deleted it since the lookup.
    let message =
        message.ok_or_else(|| Failure::NotFound(format!("message {id:?} was deleted")))?;
    let (before, after) = surroundings(&session, &id, args.around)?;
    let tags = message::tags(&session)?;
    if context.is_json {
        let mut all = before.iter().chain([&message]).chain(&after);
        let out = &mut context.out;
        return Ok(all.try_for_each(|message| message::write_json(out, message, &tags))?);
    }
    let labels = message::notes(&session)?;
    let brief = |context: &mut Context, message: &Message| {
        let note = labels.get(&message.id).map_or("", String::as_str);
        message::write(&mut context.out, message, note, Extent::Brief)
    };
    before.iter().try_for_each(|message| brief(context, message))?;
    let mut notes: Vec<&str> = labels.get(&id).map(String::as_str).into_iter().collect();
    if session.head()?.as_ref() == Some(&id) {
        notes.insert(0, "head");
    }
    if args.around > 0 {
        notes.insert(0, "this message");
    }
    message::write(&mut context.out, &message, &notes.join(", "), Extent::Full)?;
    let mut about = vec![(
        "parent",
        message.parent.as_ref().map_or("none", |parent| parent.as_str()).to_owned(),
    )];
    let next: Vec<String> =
        session.branches(&id)?.into_iter().map(|child| child.id.to_string()).collect();
    about.push(("children", if next.is_empty() { "none".to_owned() } else { next.join(" ") }));
    if let Some(metadata) = &message.metadata {
        about.push(("metadata", metadata.as_str().to_owned()));
    }
    if let Some(tags) = tags.get(&id) {
        about.push(("tags", tags.join(", ")));
    }
    about.push(("tokens", format!("about {}", message.tokens())));
    for (what, value) in about {
        context.out.line(&[
            (style::FAINT, what),
            (style::PLAIN, "  "),
            (style::PLAIN, &crate::text::one_line(&value)),
        ])?;
    }
    if !after.is_empty() {
        context.out.line(&[])?;
    }
    Ok(after.iter().try_for_each(|message| brief(context, message))?)
}

/// Returns the messages before and after one, oldest first: after it towards the head, or if it is off the path to the
/// head, on the newest branch.
fn surroundings(
    session: &Session,
    id: &MessageId,
    count: usize,
) -> Result<(Vec<Message>, Vec<Message>)> {
    if count == 0 {
        return Ok((Vec::new(), Vec::new()));
    }
    // A summary is only in a history; a message may be hidden in one.
    let is_summary = CompactionId::from_message(id).is_some();
    let path = if is_summary { session.path() } else { session.path().raw() };
    let before = path.page().before(id).limit(count).run()?.messages;
    let mut after = Vec::new();
    match path.page().after(id).limit(count).run() {
        Ok(page) => after = page.messages,
        // It is on another branch. A summary of one has no branches of its own.
        Err(error) if error.is_unknown() => {
            let mut last = id.clone();
            while after.len() < count && !is_summary {
                let Some(next) = session.branches(&last)?.pop() else { break };
                last = next.id.clone();
                after.push(next);
            }
        }
        Err(error) => return Err(error.into()),
    }
    Ok((before, after))
}
