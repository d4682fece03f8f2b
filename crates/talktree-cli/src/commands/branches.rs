//! `talktree tree`, `checkout`, `label`, `fork` and `lineage`: the branches of a session, and its forks.

use std::collections::HashSet;

use talktree::{
    DrawOptions, MessageId, Session, SessionFilter, SessionId, SessionInfo, SessionState, Store,
};

use crate::prelude::*;

/// Draw the branches of a session
///
/// Messages follow each other downwards; branches are indented to the right. Where messages or
/// branches are left out, the line says how many.
#[derive(Debug, clap::Args)]
#[command(after_help = LEGEND)]
pub(crate) struct TreeArgs {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// List the labels below the tree, with their messages.
    #[arg(long)]
    labels: bool,

    /// Draw every branch; long runs of messages are still shortened.
    #[arg(long)]
    all: bool,

    /// Use only ASCII characters.
    #[arg(long)]
    ascii: bool,
}

const LEGEND: &str = "\
Legend:
  *       the head
  o       a message
  ·       a compacted message (`.` with --ascii)
  -       a hidden message
  (..)    labels
  [compaction ..]  the summary that replaces the compacted messages above it";

pub(crate) fn tree(args: TreeArgs, context: &mut Context) -> Result<()> {
    let (_, session) = context.read(&args.session)?;
    let tree = session.tree()?;
    if context.is_json {
        return Ok(context.out.json(&tree)?);
    }
    if tree.segments.is_empty() {
        tell("the session has no messages");
    }
    let mut options = if args.all { DrawOptions::everything() } else { DrawOptions::default() };
    options.is_ascii = args.ascii;
    for line in tree.lines(&options) {
        let pieces = line.pieces.iter().map(|(kind, text)| (piece_style(*kind), text.as_str()));
        context.out.line_cut(&pieces.collect::<Vec<_>>())?;
    }
    if args.labels {
        let ids = ShortIds::of_messages(&session)?;
        for label in session.labels()? {
            put!(context.out; LABEL &label.name, PLAIN "  ", ID ids.of(label.id.as_str()))?;
        }
    }
    Ok(())
}

/// Move the head, the message to which the next one is appended
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree checkout [OPTIONS] <SESSION> <MESSAGE|--undo|--redo|--start>")]
#[command(group(clap::ArgGroup::new("where").required(true)))]
pub(crate) struct CheckoutArgs {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// The message to move to.
    #[arg(group = "where")]
    message: Option<String>,

    /// Undo the last move of the head.
    #[arg(long, group = "where")]
    undo: bool,

    /// Redo the last undone move.
    #[arg(long, group = "where")]
    redo: bool,

    /// Move the head before the first message; the next message starts a new tree.
    #[arg(long, group = "where")]
    start: bool,
}

pub(crate) fn checkout(args: CheckoutArgs, context: &mut Context) -> Result<()> {
    let (store, session) = context.write(&args.session)?;
    if args.undo && !session.undo_head()? {
        let why = "nothing to undo: the head has no earlier position";
        return Err(Failure::NotFound(why.to_owned()));
    }
    if args.redo && !session.redo_head()? {
        let why = "nothing to redo: the last move of the head was not an undo";
        return Err(Failure::NotFound(why.to_owned()));
    }
    if args.start {
        session.checkout_start()?;
    }
    if let Some(message) = &args.message {
        session.checkout(&lookup::message(&session, message)?)?;
    }
    let (head, ids) = (session.head()?, ShortIds::of_messages(&session)?);
    let (text, id) = match &head {
        Some(id) => (": head is at ", ids.of(id.as_str())),
        None => (": head is before the first message", ""),
    };
    let title = lookup::title(&store, &session)?;
    let json = json!({"session": session.id(), "head": head});
    context.answer(&json, &[(PLAIN, &title), (PLAIN, text), (ID, id)])?;
    if args.undo || args.redo || context.is_tour {
        return Ok(());
    }
    let undo = command(&verb("checkout", &[session.id().as_str()], "--undo"));
    context.advise(&format!("`{undo}` goes back"))
}

/// Set a label on a message, remove a label, or list all labels
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "talktree label [OPTIONS] <SESSION> <NAME> <MESSAGE>\n       talktree label [OPTIONS] <SESSION> --remove <NAME>\n       talktree label [OPTIONS] <SESSION> --list"
)]
pub(crate) struct LabelArgs {
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

pub(crate) fn label(args: LabelArgs, context: &mut Context) -> Result<()> {
    let given = &args.session;
    let (store, session) = if args.list { context.read(given)? } else { context.write(given)? };
    let (labels, ids) = (session.labels()?, ShortIds::of_messages(&session)?);
    let title = lookup::title(&store, &session)?;
    if args.list {
        if labels.is_empty() && !context.is_json {
            tell("the session has no labels");
        }
        for label in labels {
            // Only another program stores a label without a name.
            let name = if label.name.is_empty() { "\"\"" } else { &*label.name };
            let line = [(LABEL, name), (PLAIN, "  "), (ID, ids.of(label.id.as_str()))];
            context.answer(&label, &line)?;
        }
    } else if let Some(name) = &args.remove {
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
        let line = [(PLAIN, &*title), (PLAIN, ": label "), (LABEL, name), (PLAIN, " removed")];
        context.answer(label, &line)?;
        tell_undo(&session, name, Some(&label.id), context);
    } else if let (Some(name), Some(message)) = (&args.name, &args.message) {
        let before = session.labelled(name)?;
        session.label(name, &lookup::message(&session, message)?)?;
        // The id of a summary names the last message that it covers.
        if let Some(label) = session.labels()?.iter().find(|label| label.name == *name) {
            let (head, id) = (format!("{title}: label "), ids.of(label.id.as_str()));
            context.answer(
                label,
                &[(PLAIN, &head), (LABEL, name), (PLAIN, " points at "), (ID, id)],
            )?;
            tell_undo(
                &session,
                name,
                before.as_ref().filter(|before| **before != label.id),
                context,
            );
        }
    }
    Ok(())
}

/// Says how to set a label as it was before.
fn tell_undo(session: &Session, name: &str, before: Option<&MessageId>, context: &Context) {
    if let Some(before) = before.filter(|_| !context.is_json) {
        let undo = command(&verb("label", &[session.id().as_str(), name, before.as_str()], ""));
        tell(&format!("`{undo}` sets it as before"));
    }
}

/// Create a session that starts with a copy of the path to a message
#[derive(Debug, clap::Args)]
pub(crate) struct ForkArgs {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// The last message to copy.
    at: String,

    /// The name of the new session.
    name: String,
}

pub(crate) fn fork(args: ForkArgs, context: &mut Context) -> Result<()> {
    let (_, session) = context.write(&args.session)?;
    let at = lookup::message(&session, &args.at)?;
    let fork = session.fork(&at, &args.name)?;
    let length = fork.path_length()?;
    let json = json!({
        "session": fork.id(), "name": args.name, "parent_session": session.id(), "fork_point": at, "path_length": length,
    });
    let length = format!("  {length} messages");
    let line = [(ID, fork.id().as_str()), (PLAIN, "  "), (STRONG, &args.name), (FAINT, &length)];
    context.answer(&json, &line)
}

/// Show the sessions that a session was forked from, and those that were forked from it
///
/// The first line is the oldest ancestor; each fork is indented. `*` is the session itself.
#[derive(Debug, clap::Args)]
pub(crate) struct LineageArgs {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,
}

/// A session of the chain, or `None` if it was removed.
struct Row(SessionId, Option<SessionInfo>, usize);

pub(crate) fn lineage(args: LineageArgs, context: &mut Context) -> Result<()> {
    let (store, session) = context.read(&args.session)?;
    let Some(info) = session.info()? else { return Ok(()) };
    let mut rows = ancestors(&store, &info)?;
    let mut seen: HashSet<SessionId> = rows.iter().map(|row| row.0.clone()).collect();
    seen.insert(info.id.clone());
    // A stack, so that the forks of a fork follow it.
    let depth = rows.len();
    let mut left = vec![(info, depth)];
    while let Some((info, depth)) = left.pop() {
        for fork in forks(&store, &info.id)? {
            if seen.insert(fork.id.clone()) {
                left.push((fork, depth + 1));
            }
        }
        rows.push(Row(info.id.clone(), Some(info), depth));
    }
    let short = ShortIds::of_sessions(&store)?;
    context.keep_list(rows.iter().map(|row| &row.0));
    for Row(id, info, depth) in &rows {
        let is_in_store = info.is_some();
        let info = info.as_ref();
        let is_named = id == session.id();
        let is_in_trash = info.is_some_and(|info| info.deleted_at.is_some());
        let fork_point = info.and_then(|info| info.fork_point.as_ref());
        let name = info.and_then(|info| info.name.as_deref());
        let json = json!({
            "session": id,
            "name": name,
            "parent_session": info.and_then(|info| info.parent_session.as_ref()),
            "fork_point": fork_point,
            "depth": depth,
            "messages": info.map_or(0, |info| info.messages),
            "is_named": is_named,
            "is_in_store": is_in_store,
            "is_in_trash": is_in_trash,
        });
        let parent = info.and_then(|info| info.parent_session.clone());
        let ids = parent.map(|parent| ShortIds::of_messages(&store.session(parent)?));
        let ids = ids.transpose()?.unwrap_or_default();
        let state = match (is_in_store, is_in_trash, fork_point) {
            (false, ..) => "  removed".to_owned(),
            (_, true, _) => "  in the trash".to_owned(),
            (.., Some(at)) => format!("  at {}", ids.of(at.as_str())),
            _ => String::new(),
        };
        let name = name.map(|name| format!("  {}", one_line(name))).unwrap_or_default();
        let (indent, mark) = ("  ".repeat(*depth), if is_named { "* " } else { "" });
        let id = short.of(id.as_str());
        let line = [(PLAIN, &*indent), (MATCH, mark), (ID, id), (STRONG, &name), (FAINT, &state)];
        context.answer(&json, &line)?;
    }
    Ok(())
}

/// Returns the sessions that a session descends from, the oldest first.
fn ancestors(store: &Store, of: &SessionInfo) -> Result<Vec<Row>> {
    let (mut chain, mut seen) = (Vec::new(), HashSet::from([of.id.clone()]));
    let mut parent = of.parent_session.clone();
    // A program may set any parent, so a circle is possible.
    while let Some(id) = parent.filter(|id| seen.insert(id.clone())) {
        match store.session(id.clone())?.info()? {
            Some(info) => {
                parent = info.parent_session.clone();
                chain.push(Row(id, Some(info), 0));
            }
            None => {
                chain.push(Row(id, None, 0));
                break;
            }
        }
    }
    chain.reverse();
    chain.iter_mut().enumerate().for_each(|(depth, row)| row.2 = depth);
    Ok(chain)
}

/// Returns the sessions that were forked from a session, the one with the newest message first.
fn forks(store: &Store, id: &SessionId) -> Result<Vec<SessionInfo>> {
    let mut forks = Vec::new();
    for state in [SessionState::Trash, SessionState::Present] {
        let parent_session = Some(id.clone());
        let filter = SessionFilter { parent_session, state, ..SessionFilter::default() };
        let listed = lookup::listed(store, &filter, usize::MAX)?;
        // They go onto a stack.
        forks.extend(listed.into_iter().rev().map(|listed| listed.info));
    }
    Ok(forks)
}
