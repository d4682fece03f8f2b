//! `talktree trash list`: the sessions in the trash.

use talktree::{ListedSession, SessionFilter, SessionState};

use crate::context::Context;
use crate::failure::Result;
use crate::short_ids::ShortIds;
use crate::table::{Table, minute};
use crate::text::one_line;
use crate::{lookup, style};

/// List the sessions in the trash, the one with the newest message first
///
/// `deleted` is the time (UTC) at which a session was put there. A session without a name shows the first line of a user,
/// in quotes.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree trash list [OPTIONS]")]
pub(super) struct Args {
    /// List at most N sessions [default: all].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// List the sessions of this owner.
    #[arg(long)]
    owner: Option<String>,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let filter = SessionFilter {
        owner: args.owner.clone(),
        state: SessionState::Trash,
        ..SessionFilter::default()
    };
    let sessions = lookup::listed(&store, &filter, args.limit.unwrap_or(usize::MAX))?;
    let all = store.sessions()?;
    let ids = all.iter().chain(sessions.iter().map(|listed| &listed.info));
    let short = ShortIds::new(ids.map(|info| info.id.as_str()));
    let mut table = Table::new([
        ("session", style::ID),
        ("messages", style::PLAIN),
        ("deleted", style::FAINT),
        ("owner", style::FAINT),
        ("name", style::STRONG),
    ])
    .shown_from("owner", 100);
    for listed in &sessions {
        if context.is_json {
            context.out.json(listed)?;
            continue;
        }
        let info = &listed.info;
        table.push([
            short.of(info.id.as_str()).to_owned(),
            info.messages.to_string(),
            info.deleted_at.map(minute).unwrap_or_default(),
            one_line(info.owner.as_deref().unwrap_or_default()),
            title(listed),
        ]);
    }
    let why_empty = match args.owner {
        None => "the trash is empty",
        Some(_) => "no session of this owner is in the trash",
    };
    context.write_list(&table, args.limit, || Ok(why_empty.to_owned()))
}

fn title(listed: &ListedSession) -> String {
    match (&listed.info.name, &listed.preview) {
        (Some(name), _) => one_line(name),
        (None, Some(line)) => format!("\"{}\"", one_line(line)),
        (None, None) => String::new(),
    }
}
