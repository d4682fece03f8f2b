//! `talktree new`, `rename`, `tag`, `pin`, `end` and `restore`: make a session, and change its details.

use talktree::{SessionChange, SessionDetails, SessionId};

use crate::prelude::*;

/// Create a session, and the store if there is none
#[derive(Debug, clap::Args)]
pub(crate) struct NewArgs {
    /// The name.
    name: Option<String>,

    /// The id [default: a random one].
    #[arg(long)]
    id: Option<String>,

    /// The person or tenant whose data it is.
    #[arg(long)]
    owner: Option<String>,

    /// The program that it comes from.
    #[arg(long)]
    source: Option<String>,

    /// The model.
    #[arg(long)]
    model: Option<String>,

    /// A tag; may be given several times.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

pub(crate) fn new(args: NewArgs, context: &mut Context) -> Result<()> {
    let path = context.store_path()?;
    let is_new = context.is_missing()?;
    let store = context.maker()?;
    let details = SessionDetails {
        name: args.name.clone(),
        owner: args.owner,
        source: args.source,
        model: args.model,
        tags: args.tags,
        ..SessionDetails::default()
    };
    let id = args.id.map_or_else(SessionId::new, SessionId::from);
    let session = store.create_session_as(id, details)?;
    if is_new {
        tell(&format!("created a new store: {}", shown(&path)));
    }
    let gap = if args.name.is_some() { "  " } else { "" };
    let line =
        [(ID, session.id().as_str()), (PLAIN, gap), (STRONG, args.name.as_deref().unwrap_or(""))];
    context.answer(&json!({"session": session.id(), "name": args.name}), &line)
}

/// Give a session a name
#[derive(Debug, clap::Args)]
pub(crate) struct RenameArgs {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// The new name.
    name: String,
}

pub(crate) fn rename(args: RenameArgs, context: &mut Context) -> Result<()> {
    let (store, session) = context.write(&args.session)?;
    let (id, name) = (session.id().as_str(), &*args.name);
    let before = session.info()?.and_then(|info| info.name);
    store.rename(session.id(), name)?;
    let json = json!({"session": id, "name": name});
    let short = ShortIds::of_sessions(&store)?;
    context.answer(&json, &[(ID, short.of(id)), (PLAIN, "  "), (STRONG, name)])?;
    let Some(before) = before.filter(|before| *before != name) else { return Ok(()) };
    let undo = command(&verb("rename", &[id, &before], ""));
    context.advise(&format!("`{undo}` names it as before"))
}

/// Add tags to a session or a message, remove tags, or list them
///
/// `talktree sessions --tag TAG` lists the sessions with a tag, and `talktree search --tag TAG` the messages.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "talktree tag [OPTIONS] <SESSION> [TAGS]...\n       talktree tag [OPTIONS] <SESSION> --remove <TAG>"
)]
pub(crate) struct TagArgs {
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

pub(crate) fn tag(args: TagArgs, context: &mut Context) -> Result<()> {
    let is_list = args.tags.is_empty() && args.remove.is_empty();
    let given = &args.session;
    let (store, session) = if is_list { context.read(given)? } else { context.write(given)? };
    let message = args.message.as_deref().map(|given| lookup::message(&session, given));
    let message = message.transpose()?;
    let mut json = json!({"session": session.id()});
    let mut of = format!("{}: ", lookup::title(&store, &session)?);
    let tags = match &message {
        Some(id) => {
            args.tags.iter().try_for_each(|tag| session.tag(id, tag))?;
            args.remove.iter().try_for_each(|tag| session.untag(id, tag))?;
            json["message"] = json!(id);
            of += "message ";
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
    json["tags"] = json!(tags);
    let ids = ShortIds::of_messages(&session)?;
    let (id, gap) = message.as_ref().map_or(("", ""), |id| (ids.of(id.as_str()), ": "));
    let named = if tags.is_empty() { "no tags".to_owned() } else { tags.join(", ") };
    context.answer(&json, &[(PLAIN, &of), (ID, id), (PLAIN, gap), (LABEL, &named)])
}

/// Pin a session, so that no retention rule discards it, or remove the pin
#[derive(Debug, clap::Args)]
pub(crate) struct PinArgs {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// Remove the pin.
    #[arg(long)]
    remove: bool,
}

pub(crate) fn pin(args: PinArgs, context: &mut Context) -> Result<()> {
    let (store, session) = context.write(&args.session)?;
    let is_pinned = !args.remove;
    store.change_session(session.id(), &SessionChange::Pin(is_pinned))?;
    let state = if is_pinned { ": pinned" } else { ": not pinned" };
    let json = json!({"session": session.id(), "is_pinned": is_pinned});
    context.answer(&json, &[(PLAIN, &lookup::title(&store, &session)?), (PLAIN, state)])
}

/// End a session: keys do not lead to it any more. It can still be read and written
#[derive(Debug, clap::Args)]
pub(crate) struct EndArgs {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// Why it is ended.
    #[arg(default_value = "ended by hand", conflicts_with = "reopen")]
    reason: String,

    /// Reopen the session.
    #[arg(long)]
    reopen: bool,
}

pub(crate) fn end(args: EndArgs, context: &mut Context) -> Result<()> {
    let (store, session) = context.write(&args.session)?;
    let change = if args.reopen { SessionChange::Reopen } else { SessionChange::End(args.reason) };
    store.change_session(session.id(), &change)?;
    let (ended_at, end_reason) =
        session.info()?.map(|info| (info.ended_at, info.end_reason)).unwrap_or_default();
    let state = end_reason.as_ref().map_or("open".to_owned(), |why| format!("ended: {why}"));
    let json = json!({"session": session.id(), "ended_at": ended_at, "end_reason": end_reason});
    context.answer(&json, &[(PLAIN, &format!("{}: {state}", lookup::title(&store, &session)?))])
}

/// Take a session out of the trash
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// The session in the trash: its id, the start or the end of its id, or its name.
    session: String,
}

pub(crate) fn restore(args: RestoreArgs, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let session = lookup::in_trash(&store, &args.session)?;
    store.change_session(session.id(), &SessionChange::Restore)?;
    let json = json!({"session": session.id(), "name": session.info()?.and_then(|info| info.name)});
    let title = lookup::title(&store, &session)?;
    context.answer(&json, &[(PLAIN, "session "), (ID, &title), (PLAIN, " restored")])
}
