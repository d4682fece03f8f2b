//! `talktree sessions`: lists the sessions.

use serde::Serialize;
use talktree::SessionInfo;

use crate::context::Context;
use crate::failure::{Result, tell};
use crate::short_ids::ShortIds;
use crate::style;
use crate::table::{Table, minute};
use crate::text::one_line;

/// List the sessions, last written first
///
/// `path` is the number of messages on the path to the head; other branches are not counted.
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
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let sessions = store.sessions()?;
    let short = ShortIds::new(sessions.iter().map(|info| info.id.as_str()));
    let mut table = Table::new([
        ("session", style::ID),
        ("path", style::PLAIN),
        ("written", style::FAINT),
        ("from", style::FAINT),
        ("name", style::STRONG),
    ]);
    for info in sessions.iter().take(args.limit.unwrap_or(usize::MAX)) {
        let path_length = store.session(&info.id)?.path_length()?;
        if context.is_json {
            context.out.json(&Row { info, path_length })?;
            continue;
        }
        table.push([
            short.of(info.id.as_str()).to_owned(),
            path_length.to_string(),
            minute(info.updated_at),
            one_line(info.source.as_deref().unwrap_or_default()),
            one_line(info.name.as_deref().unwrap_or_default()),
        ]);
    }
    match (context.is_json, sessions.is_empty()) {
        (true, _) => {}
        (false, true) => tell("the store holds no sessions"),
        (false, false) => table.write(&mut context.out)?,
    }
    Ok(())
}
