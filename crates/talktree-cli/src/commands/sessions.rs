//! `talktree sessions` and `talktree trash`: list the sessions, and empty the trash.

use std::time::Duration;

use talktree::{ListedSession, Retention, SessionFilter, SessionState};

use super::verbs;
use crate::prelude::*;
use crate::time::Span;

/// List the sessions, the one with the newest message first
///
/// `path` is the number of messages on the path to the head; other branches are not counted. `last` is the time of
/// the message that was added last. A session without a name shows the first line of a user, in quotes. Other commands take
/// `@1` for the first session of the list, `@2` for the second, and so on.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionsArgs {
    /// List at most N sessions [default: 20 on a terminal, else all].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// List all sessions, also on a terminal.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// List the sessions of this owner.
    #[arg(long)]
    owner: Option<String>,
    /// List the sessions in which this author wrote.
    #[arg(long)]
    author: Option<String>,
    /// List the sessions with this tag.
    #[arg(long)]
    tag: Option<String>,
    /// List the sessions from this program or file.
    #[arg(long)]
    source: Option<String>,
    /// List the sessions with this model.
    #[arg(long)]
    model: Option<String>,
    /// List the sessions with this text in their name, in any case.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// List the sessions whose last message is not older than this date.
    #[arg(long, value_name = "DATE")]
    after: Option<String>,
    /// List the sessions whose last message is older than this date.
    #[arg(long, value_name = "DATE")]
    before: Option<String>,
    /// List the sessions in this state [default: all that are not in the trash].
    #[arg(long, value_name = "STATE")]
    state: Option<State>,
    /// List pinned sessions.
    #[arg(long)]
    pinned: bool,
}
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum State {
    /// Neither ended nor in the trash.
    Open,
    /// Ended, and not in the trash.
    Ended,
    /// In the trash.
    Trash,
}

impl SessionsArgs {
    fn filter(&self) -> Result<SessionFilter> {
        Ok(SessionFilter {
            owner: self.owner.clone(),
            author: self.author.clone(),
            source: self.source.clone(),
            model: self.model.clone(),
            tag: self.tag.clone(),
            since: time_of("after", self.after.as_deref())?,
            until: time_of("before", self.before.as_deref())?,
            name: self.name.clone(),
            parent_session: None,
            created_at: None,
            is_pinned: self.pinned.then_some(true),
            state: match self.state {
                None => SessionState::Present,
                Some(State::Open) => SessionState::Open,
                Some(State::Ended) => SessionState::Ended,
                Some(State::Trash) => SessionState::Trash,
            },
        })
    }
}

/// A session of the list as JSON.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    listed: &'a ListedSession,
    path_length: u64,
    title: &'a str,
}

pub(crate) fn sessions(args: SessionsArgs, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let filter = args.filter()?;
    let limit = context.limit(args.limit, args.all);
    // One more, to know whether there are others.
    let mut sessions = lookup::listed(&store, &filter, limit.saturating_add(1))?;
    let has_more = sessions.len() > limit;
    sessions.truncate(limit);
    let short = ShortIds::of_sessions(&store)?;
    let styles = [ID, PLAIN, FAINT, FAINT, STRONG];
    let mut table = Table::new("session path last from name", styles).shown_from("from", 100);
    for listed in &sessions {
        let info = &listed.info;
        let session = store.session(info.id.clone())?;
        let path_length = session.path_length()?;
        let title = title_of(&session, info)?;
        let row = Row { listed, path_length, title: &title };
        let cells = [
            short.of(info.id.as_str()).to_owned(),
            path_length.to_string(),
            context.out.ago(info.last_message_at.unwrap_or(info.created_at)),
            one_line(info.source.as_deref().unwrap_or_default()),
            title.clone(),
        ];
        context.row(&mut table, &row, cells)?;
    }
    context.keep_list(sessions.iter().map(|listed| &listed.info.id));
    context.write_list(&table, args.limit, || {
        if filter != SessionFilter::default() {
            return Ok("no session is like that".to_owned());
        }
        Ok(match lookup::listed(&store, &in_trash(None), 1)?.is_empty() {
            true => "the store holds no sessions".to_owned(),
            false => {
                format!("all sessions are in the trash; `{}` lists them", command("trash list"))
            }
        })
    })?;
    if has_more && args.limit.is_none() {
        put!(context.out; FAINT &format!("the newest {limit}; --all lists all"))?;
    }
    Ok(())
}

/// Returns the filter of the sessions in the trash: all, or those of an owner.
fn in_trash(owner: Option<String>) -> SessionFilter {
    SessionFilter { owner, state: SessionState::Trash, ..SessionFilter::default() }
}

/// List the sessions in the trash, or remove them for good
///
/// `talktree rm SESSION` puts a session there, `talktree restore SESSION` takes it out.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct TrashArgs {
    #[command(subcommand)]
    verb: Verb,
}

verbs! { Verb:
    List(ListArgs) => list,
    Empty(EmptyArgs) => empty,
}

pub(crate) fn trash(args: TrashArgs, context: &mut Context) -> Result<()> {
    args.verb.run(context)
}

/// List the sessions in the trash, the one with the newest message first
///
/// `deleted` is the time at which a session was put there. A session without a name shows the first line of a user,
/// in quotes.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// List at most N sessions [default: all].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// List the sessions of this owner.
    #[arg(long)]
    owner: Option<String>,
}

fn list(args: ListArgs, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let filter = in_trash(args.owner.clone());
    let sessions = lookup::listed(&store, &filter, args.limit.unwrap_or(usize::MAX))?;
    let short = ShortIds::of_sessions(&store)?;
    let styles = [ID, PLAIN, FAINT, FAINT, STRONG];
    let mut table =
        Table::new("session messages deleted owner name", styles).shown_from("owner", 100);
    for listed in &sessions {
        let info = &listed.info;
        let title = match (&info.name, &listed.preview) {
            (Some(name), _) => one_line(name),
            (None, Some(line)) => format!("\"{}\"", one_line(line)),
            (None, None) => String::new(),
        };
        let cells = [
            short.of(info.id.as_str()).to_owned(),
            info.messages.to_string(),
            info.deleted_at.map(|at| context.out.ago(at)).unwrap_or_default(),
            one_line(info.owner.as_deref().unwrap_or_default()),
            title,
        ];
        context.row(&mut table, listed, cells)?;
    }
    context.keep_list(sessions.iter().map(|listed| &listed.info.id));
    let why_empty = match args.owner {
        None => "the trash is empty",
        Some(_) => "no session of this owner is in the trash",
    };
    context.write_list(&table, args.limit, || Ok(why_empty.to_owned()))
}

/// Remove the sessions in the trash for good; pinned ones stay
///
/// The command asks for confirmation; without a terminal it requires --yes.
#[derive(Debug, clap::Args)]
pub(crate) struct EmptyArgs {
    /// Remove those that have been there for this long, such as 30d or 12h [default: all].
    #[arg(long, value_name = "SPAN")]
    older_than: Option<Span>,

    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,
}

fn empty(args: EmptyArgs, context: &mut Context) -> Result<()> {
    let signals = Signals::catch()?;
    let store = context.writer()?;
    let term = args.older_than.map_or(Duration::ZERO, Span::length);
    let retention = Retention::new().empty_trash_after(term);
    let due = store.retention(retention.clone()).dry_run()?;
    let count = due.sessions.len() as u64;
    if count > 0 {
        let what = format!("{} in the trash", plural(count, "session"));
        confirm(args.yes, &format!("remove {what} for good"), "nothing was removed")?;
    }
    let report = signals.run(&store, "removing", |bar| {
        store.retention(retention).progress(|at| bar.show(at)).run()
    })?;
    let left = lookup::trash(&store)?.len() as u64;
    let (sessions, messages, bytes) =
        (report.sessions.len() as u64, report.messages(), report.bytes());
    let json = json!({"sessions": sessions, "messages": messages, "bytes": bytes, "left": left});
    let [sessions, messages] =
        [(sessions, "session"), (messages, "message")].map(|(n, noun)| plural(n, noun));
    let removed = format!("{sessions} removed: {messages}, {}", size(bytes));
    context.answer(&json, &[(PLAIN, &removed)])?;
    if left > 0 && !context.is_json {
        let are = if left == 1 { "is pinned or has" } else { "are pinned or have" };
        let left = plural(left, "session");
        tell(&format!("left in the trash: {left}, which {are} not been there for long enough"));
    }
    Ok(())
}
