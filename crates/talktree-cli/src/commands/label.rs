//! `talktree label`: names for messages.

use talktree::{Label, MessageId, Session};

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::{find, paint};

/// Point a label at a message, take one away, or list them
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "talktree label [OPTIONS] <SESSION> <NAME> <MESSAGE>\n       talktree label [OPTIONS] <SESSION> --remove <NAME>\n       talktree label [OPTIONS] <SESSION> --list"
)]
pub(crate) struct Args {
    /// The conversation: its id, the beginning or the end of it, or its name.
    session: String,

    /// The label; it is moved if it stands.
    #[arg(requires = "message", required_unless_present_any = ["remove", "list"])]
    name: Option<String>,

    /// The message it is to point at.
    message: Option<String>,

    /// Take this label away.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "list"])]
    remove: Option<String>,

    /// List the labels.
    #[arg(long, conflicts_with = "name")]
    list: bool,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = if args.list { context.reader()? } else { context.writer()? };
    let session = find::session(&store, &args.session)?;
    if args.list {
        for label in session.labels()? {
            write(&mut context.out, &label, context.is_json)?;
        }
        return Ok(());
    }
    if let Some(name) = &args.remove {
        let labels = session.labels()?;
        let label = labels.iter().find(|label| label.name == *name);
        let label = label.ok_or_else(|| {
            Failure::NotFound(format!("session {:?} has no label {name:?}", session.id()))
        })?;
        session.unlabel(name)?;
        if context.is_json {
            return Ok(context.out.json(label)?);
        }
        let title = find::title(&session)?;
        return Ok(context.out.line(&[
            (paint::PLAIN, &title),
            (paint::PLAIN, ": label "),
            (paint::LABEL, &label.name),
            (paint::PLAIN, " removed"),
        ])?);
    }
    if let (Some(name), Some(message)) = (&args.name, &args.message) {
        refuse_taken(&session, name)?;
        let id = find::message(&session, message)?;
        session.label(name, &id)?;
        if context.is_json {
            let labels = session.labels()?;
            if let Some(label) = labels.iter().find(|label| label.name == *name) {
                context.out.json(label)?;
            }
            return Ok(());
        }
        let title = find::title(&session)?;
        context.out.line(&[
            (paint::PLAIN, &title),
            (paint::PLAIN, ": label "),
            (paint::LABEL, name),
            (paint::PLAIN, " points at "),
            (paint::ID, id.as_str()),
        ])?;
    }
    Ok(())
}

/// Refuses a label that would never be looked up: these words mean a message already.
fn refuse_taken(session: &Session, name: &str) -> Result<()> {
    if name == find::HEAD {
        return Err(Failure::Usage("the label \"head\" is kept for the head".to_owned()));
    }
    if session.message(&MessageId::from(name))?.is_some() {
        return Err(Failure::Usage(format!(
            "the label {name:?} is the id of a message of this session"
        )));
    }
    Ok(())
}

fn write(out: &mut Output, label: &Label, is_json: bool) -> Result<()> {
    if is_json {
        return Ok(out.json(label)?);
    }
    let pieces =
        [(paint::LABEL, &*label.name), (paint::PLAIN, "  "), (paint::ID, label.id.as_str())];
    Ok(out.line(&pieces)?)
}
