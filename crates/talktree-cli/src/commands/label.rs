//! `talktree label`: sets, removes and lists the labels of a session.

use talktree::{Label, MessageId, Session};

use crate::context::Context;
use crate::failure::{Failure, Result, tell};
use crate::output::Output;
use crate::suggestion::{command, verb};
use crate::text::quoted;
use crate::{lookup, style};

/// Set a label on a message, remove a label, or list all labels
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "talktree label [OPTIONS] <SESSION> <NAME> <MESSAGE>\n       talktree label [OPTIONS] <SESSION> --remove <NAME>\n       talktree label [OPTIONS] <SESSION> --list"
)]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// The label; an existing label moves to the message.
    #[arg(requires = "message", required_unless_present_any = ["remove", "list"])]
    name: Option<String>,

    /// The message to label.
    message: Option<String>,

    /// Remove this label.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "list"])]
    remove: Option<String>,

    /// List all labels of the session.
    #[arg(long, conflicts_with = "name")]
    list: bool,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = if args.list { context.reader()? } else { context.writer()? };
    let session = lookup::session(&store, &args.session)?;
    if args.list {
        let labels = session.labels()?;
        if labels.is_empty() && !context.is_json {
            tell("the session has no labels");
        }
        for label in labels {
            write(&mut context.out, &label, context.is_json)?;
        }
        return Ok(());
    }
    if let Some(name) = &args.remove {
        let labels = session.labels()?;
        let label = labels.iter().find(|label| label.name == *name);
        let label = label.ok_or_else(|| {
            Failure::NotFound(format!(
                "session {:?} has no label {}; `{}` lists all",
                session.id(),
                quoted(name),
                command(&verb("label", &[session.id().as_str()], "--list"))
            ))
        })?;
        session.unlabel(name)?;
        if context.is_json {
            return Ok(context.out.json(label)?);
        }
        let title = lookup::title(&session)?;
        context.out.line(&[
            (style::PLAIN, &title),
            (style::PLAIN, ": label "),
            (style::LABEL, &label.name),
            (style::PLAIN, " removed"),
        ])?;
        tell_undo(&session, name, &label.id);
        return Ok(());
    }
    if let (Some(name), Some(message)) = (&args.name, &args.message) {
        let id = lookup::message(&session, message)?;
        let before = session.labelled(name)?;
        session.label(name, &id)?;
        // The id of a summary names the last message that it covers.
        let labels = session.labels()?;
        let label = labels.iter().find(|label| label.name == *name);
        if context.is_json {
            return label.map_or(Ok(()), |label| Ok(context.out.json(label)?));
        }
        let id = label.map_or(&id, |label| &label.id);
        let title = lookup::title(&session)?;
        context.out.line(&[
            (style::PLAIN, &title),
            (style::PLAIN, ": label "),
            (style::LABEL, name),
            (style::PLAIN, " points at "),
            (style::ID, id.as_str()),
        ])?;
        if let Some(before) = before.filter(|before| before != id) {
            tell_undo(&session, name, &before);
        }
    }
    Ok(())
}

/// Says how to set a label as it was before.
fn tell_undo(session: &Session, name: &str, before: &MessageId) {
    let undo = command(&verb("label", &[session.id().as_str(), name, before.as_str()], ""));
    tell(&format!("`{undo}` sets it as before"));
}

fn write(out: &mut Output, label: &Label, is_json: bool) -> Result<()> {
    if is_json {
        return Ok(out.json(label)?);
    }
    // Only another program stores a label without a name.
    let name = if label.name.is_empty() { "\"\"" } else { &*label.name };
    let pieces = [(style::LABEL, name), (style::PLAIN, "  "), (style::ID, label.id.as_str())];
    Ok(out.line(&pieces)?)
}
