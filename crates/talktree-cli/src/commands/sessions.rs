//! `talktree sessions`: lists the sessions.

use chrono::{DateTime, Utc};
use serde::Serialize;
use talktree::{Session, SessionInfo};

use crate::context::Context;
use crate::failure::{Result, tell};
use crate::short_ids::ShortIds;
use crate::table::{Table, minute};
use crate::text::one_line;
use crate::{session_title, style};

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
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    info: &'a SessionInfo,
    path_length: u64,
    title: &'a str,
    last_message_at: DateTime<Utc>,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let infos = store.sessions()?;
    let short = ShortIds::new(infos.iter().map(|info| info.id.as_str()));
    let mut sessions: Vec<(DateTime<Utc>, Session, &SessionInfo)> = Vec::new();
    for info in &infos {
        let session = store.session(info.id.clone())?;
        sessions.push((last_message_at(&session, info)?, session, info));
    }
    // The sort is stable: of two with the same time, the one written last comes first, as in the library's list.
    sessions.sort_by_key(|(last, ..)| std::cmp::Reverse(*last));
    let mut table = Table::new([
        ("session", style::ID),
        ("path", style::PLAIN),
        ("last", style::FAINT),
        ("from", style::FAINT),
        ("name", style::STRONG),
    ])
    .shown_from("from", 100);
    for (last, session, info) in sessions.into_iter().take(args.limit.unwrap_or(usize::MAX)) {
        let path_length = session.path_length()?;
        let title = session_title::of(&session, info)?;
        if context.is_json {
            context.out.json(&Row { info, path_length, title: &title, last_message_at: last })?;
            continue;
        }
        table.push([
            short.of(info.id.as_str()).to_owned(),
            path_length.to_string(),
            minute(last),
            one_line(info.source.as_deref().unwrap_or_default()),
            title,
        ]);
    }
    match (context.is_json, infos.is_empty()) {
        (true, _) => {}
        (false, true) => tell("the store holds no sessions"),
        (false, false) => table.write(&mut context.out)?,
    }
    Ok(())
}

/// Returns the time of the message that was added last; without messages, that of the last write.
fn last_message_at(session: &Session, info: &SessionInfo) -> Result<DateTime<Utc>> {
    Ok(session.latest_leaf()?.map_or(info.updated_at, |message| message.created_at))
}
