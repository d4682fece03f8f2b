//! `talktree sessions`: lists the sessions.

use serde::Serialize;
use talktree::{ListedSession, SessionFilter, SessionState};

use crate::context::Context;
use crate::failure::Result;
use crate::short_ids::ShortIds;
use crate::suggestion::command;
use crate::table::{Table, minute};
use crate::text::one_line;
use crate::{date, lookup, session_title, style};

/// List the sessions, the one with the newest message first
///
/// `path` is the number of messages on the path to the head; other branches are not counted. `last` is the time (UTC) of
/// the message that was added last. A session without a name shows the first line of a user, in quotes.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree sessions [OPTIONS]")]
pub(crate) struct Args {
    /// List at most N sessions [default: all].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
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

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    listed: &'a ListedSession,
    path_length: u64,
    title: &'a str,
}

impl Args {
    fn filter(&self) -> Result<SessionFilter> {
        Ok(SessionFilter {
            owner: self.owner.clone(),
            author: self.author.clone(),
            source: self.source.clone(),
            model: self.model.clone(),
            tag: self.tag.clone(),
            since: date::time("after", self.after.as_deref())?,
            until: date::time("before", self.before.as_deref())?,
            name: self.name.clone(),
            parent_session: None,
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

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let filter = args.filter()?;
    let sessions = lookup::listed(&store, &filter, args.limit.unwrap_or(usize::MAX))?;
    // A short id names one session of all.
    let ids = store.sessions()?;
    let short = ShortIds::new(ids.iter().map(|info| info.id.as_str()));
    let mut table = Table::new([
        ("session", style::ID),
        ("path", style::PLAIN),
        ("last", style::FAINT),
        ("from", style::FAINT),
        ("name", style::STRONG),
    ])
    .shown_from("from", 100);
    for listed in &sessions {
        let info = &listed.info;
        let session = store.session(info.id.clone())?;
        let path_length = session.path_length()?;
        let title = session_title::of(&session, info)?;
        if context.is_json {
            context.out.json(&Row { listed, path_length, title: &title })?;
            continue;
        }
        table.push([
            short.of(info.id.as_str()).to_owned(),
            path_length.to_string(),
            minute(info.last_message_at.unwrap_or(info.created_at)),
            one_line(info.source.as_deref().unwrap_or_default()),
            title,
        ]);
    }
    context.write_list(&table, args.limit, || {
        if filter != SessionFilter::default() {
            return Ok("no session is like that".to_owned());
        }
        let in_trash = SessionFilter { state: SessionState::Trash, ..SessionFilter::default() };
        Ok(match lookup::listed(&store, &in_trash, 1)?.is_empty() {
            true => "the store holds no sessions".to_owned(),
            false => {
                let trash = command("trash list");
                format!("all sessions are in the trash; `{trash}` lists them")
            }
        })
    })
}
