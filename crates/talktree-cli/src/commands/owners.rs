//! `talktree owners`: whose sessions the store has.

use talktree::OwnerInfo;

use crate::context::Context;
use crate::failure::Result;
use crate::style;
use crate::table::{Table, minute};
use crate::text::one_line;

/// How many owners are read at a time.
const PAGE: usize = 1_000;

/// List the owners of sessions and transcripts, by name
///
/// Sessions in the trash are not counted. `last` is the time (UTC) of the message that was added last.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree owners [OPTIONS]")]
pub(crate) struct Args {
    /// List at most N owners [default: all].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let limit = args.limit.unwrap_or(usize::MAX);
    let mut owners: Vec<OwnerInfo> = Vec::new();
    loop {
        let after = owners.last().map(|last| last.owner.as_str());
        let page = store.owners(after, PAGE.min(limit - owners.len()))?;
        if page.is_empty() {
            break;
        }
        owners.extend(page);
    }
    let mut table = Table::new([
        ("owner", style::STRONG),
        ("sessions", style::PLAIN),
        ("messages", style::PLAIN),
        ("last", style::FAINT),
        ("transcripts", style::PLAIN),
    ]);
    for owner in &owners {
        if context.is_json {
            context.out.json(owner)?;
            continue;
        }
        table.push([
            one_line(&owner.owner),
            owner.sessions.to_string(),
            owner.messages.to_string(),
            owner.last_message_at.map(minute).unwrap_or_default(),
            if owner.transcripts == 0 { String::new() } else { owner.transcripts.to_string() },
        ]);
    }
    context.write_list(&table, args.limit, || {
        Ok("no session and no transcript has an owner".to_owned())
    })
}
