//! `talktree show`: one message, whole.

use super::message::{self, Extent};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::{find, paint};

/// Show one message, whole
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree show [OPTIONS] <SESSION> <MESSAGE>")]
pub(crate) struct Args {
    /// The conversation: its id, the beginning or the end of it, or its name.
    session: String,

    /// The message, or a summary by its id.
    message: String,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let session = find::session(&store, &args.session)?;
    let id = find::message(&session, &args.message)?;
    let message = session.message(&id)?;
    // Found a moment ago: another process may have deleted it since.
    let message = message.ok_or_else(|| Failure::NotFound(format!("message {id:?} is gone")))?;
    if context.is_json {
        return Ok(context.out.json(&message)?);
    }
    let labels = session.labels()?.into_iter().filter(|label| label.id == id);
    let mut notes: Vec<String> = labels.map(|label| label.name).collect();
    if session.head()?.as_ref() == Some(&id) {
        notes.insert(0, "head".to_owned());
    }
    message::write(&mut context.out, &message, &notes.join(", "), Extent::Full)?;
    let mut about = vec![(
        "follows",
        message.parent.as_ref().map_or("nothing", |parent| parent.as_str()).to_owned(),
    )];
    if talktree::CompactionId::from_message(&id).is_none() {
        let next: Vec<String> =
            session.branches(&id)?.into_iter().map(|child| child.id.to_string()).collect();
        about.push((
            "followed by",
            if next.is_empty() { "nothing".to_owned() } else { next.join(" ") },
        ));
    }
    if let Some(metadata) = &message.metadata {
        about.push(("metadata", metadata.as_str().to_owned()));
    }
    about.push(("tokens", format!("about {}", message.tokens())));
    for (what, value) in about {
        context.out.line(&[
            (paint::FAINT, what),
            (paint::PLAIN, "  "),
            (paint::PLAIN, &crate::clean::one_line(&value)),
        ])?;
    }
    Ok(())
}
