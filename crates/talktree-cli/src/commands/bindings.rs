//! `talktree bindings`: the outside keys that lead to sessions.

use talktree::{Binding, BindingFilter};

use crate::context::Context;
use crate::failure::Result;
use crate::table::{Table, minute};
use crate::text::one_line;
use crate::{lookup, style};

/// How many bindings are read at a time.
const PAGE: usize = 1_000;

/// List the outside keys, such as `telegram:4711`, and their sessions
///
/// The newest binding comes first. `until` and `end` say when and why a binding ended.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree bindings [OPTIONS] [KEY]")]
pub(crate) struct Args {
    /// The key [default: all].
    key: Option<String>,
    /// List the keys of this session.
    #[arg(long)]
    session: Option<String>,
    /// List only the present bindings.
    #[arg(long)]
    open: bool,
    /// List at most N bindings [default: all].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let session = args.session.as_ref().map(|given| lookup::session(&store, given)).transpose()?;
    let filter = BindingFilter {
        key: args.key,
        session: session.map(|session| session.id().clone()),
        is_open: args.open,
    };
    let limit = args.limit.unwrap_or(usize::MAX);
    let mut bindings: Vec<Binding> = Vec::new();
    loop {
        let before = bindings.last().map(|last| last.number);
        let page = store.bindings(&filter, before, PAGE.min(limit - bindings.len()))?;
        if page.is_empty() {
            break;
        }
        bindings.extend(page);
    }
    let mut table = Table::new([
        ("key", style::STRONG),
        ("bound", style::FAINT),
        ("until", style::FAINT),
        ("end", style::FAINT),
        ("session", style::ID),
    ]);
    for binding in &bindings {
        if context.is_json {
            context.out.json(binding)?;
            continue;
        }
        table.push([
            one_line(&binding.key),
            minute(binding.bound_at),
            binding.ended_at.map(minute).unwrap_or_default(),
            binding.end.map(|end| end.to_string()).unwrap_or_default(),
            binding.session.to_string(),
        ]);
    }
    context.write_list(&table, args.limit, || Ok("no binding is listed".to_owned()))
}
