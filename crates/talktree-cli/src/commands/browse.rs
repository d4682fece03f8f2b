//! `talktree browse`: walk through the sessions and their branches on a terminal.

use std::io::{self, IsTerminal};

use clap::builder::NonEmptyStringValueParser;

use crate::browse::{self, Browsed};
use crate::prelude::*;

/// Walk through sessions, branches and texts on a terminal, and search as you type
///
/// `?` lists the keys. Nothing is changed unless --write is given.
#[derive(Debug, clap::Args)]
pub(crate) struct BrowseArgs {
    /// The session to open: its id, the start or the end of its id, or its name.
    session: Option<String>,

    /// Show only the sessions of this owner.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    owner: Option<String>,

    /// Also offer to checkout and label messages.
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(args: BrowseArgs, context: &mut Context) -> Result<()> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let why = "this needs a terminal; `talktree sessions`, `log` and `search` print";
        return Err(Failure::Usage(why.to_owned()));
    }
    let store = if args.write { context.writer()? } else { context.unpaged()? };
    let session = args.session.map(|given| lookup::session(&store, &given)).transpose()?;
    let (path, is_coloured) = (context.store_path()?, context.out.is_coloured());
    let (owner, can_write) = (args.owner, args.write);
    browse::run(Browsed { store, path, owner, session, can_write, is_coloured })
}
