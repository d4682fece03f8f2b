//! `talktree show`: prints one message in full.

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
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let session = lookup::session(&store, &args.session)?;
    let id = lookup::message(&session, &args.message)?;
    let message = session.message(&id)?;
    // Another process may have deleted it since the lookup.
    let message =
        message.ok_or_else(|| Failure::NotFound(format!("message {id:?} was deleted")))?;
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
        "parent",
        message.parent.as_ref().map_or("none", |parent| parent.as_str()).to_owned(),
    )];
    let next: Vec<String> =
        session.branches(&id)?.into_iter().map(|child| child.id.to_string()).collect();
    about.push(("children", if next.is_empty() { "none".to_owned() } else { next.join(" ") }));
    if let Some(metadata) = &message.metadata {
        about.push(("metadata", metadata.as_str().to_owned()));
    }
    about.push(("tokens", format!("about {}", message.tokens())));
    for (what, value) in about {
        context.out.line(&[
            (style::FAINT, what),
            (style::PLAIN, "  "),
            (style::PLAIN, &crate::text::one_line(&value)),
        ])?;
    }
    Ok(())
}
