//! `talktree sessions`: what conversations there are.

use serde::Serialize;
use talktree::SessionInfo;

use crate::clean::one_line;
use crate::context::Context;
use crate::failure::{Result, tell};
use crate::find::ShortIds;
use crate::paint;
use crate::table::{Table, minute};

/// List the conversations, the one written to last first
///
/// `path` is how many messages lead to the head; other branches are not in it.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree sessions [OPTIONS]")]
pub(crate) struct Args {
    /// List this many at the most.
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
        ("session", paint::ID),
        ("path", paint::PLAIN),
        ("written", paint::FAINT),
        ("from", paint::FAINT),
        ("name", paint::STRONG),
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
