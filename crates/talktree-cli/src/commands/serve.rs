//! `talktree serve`: a page in the browser.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};

use clap::builder::NonEmptyStringValueParser;
use talktree_web::{Options, Server};
use tempfile::TempPath;

use crate::prelude::*;

/// Browse the store in a web browser, until Ctrl-C
///
/// Prints the address of a page that only this machine can open, and only with the token in it. The page searches as you type, shows
/// branches and summaries, and what a model saw; it loads nothing from elsewhere. Without --write it only reads.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Open the page in the browser.
    #[arg(long)]
    open: bool,

    /// Listen on this port instead of a free one.
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// Let the page change labels, heads, names, pins and summaries, and use the trash.
    #[arg(long)]
    write: bool,

    /// Show only the sessions of this owner.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    owner: Option<String>,
}

pub(crate) fn run(args: ServeArgs, context: &mut Context) -> Result<()> {
    let store = if args.write { context.writer()? } else { context.unpaged()? };
    let signals = Signals::catch()?;
    let options = Options { owner: args.owner, can_write: args.write, port: args.port };
    let cannot = |error| Failure::Usage(format!("port {}: {error}", args.port));
    let server = Server::bind(&store, options).map_err(cannot)?;
    let address = server.address();
    context.answer(&json!({"address": address}), &[(PLAIN, &address)])?;
    context.out.flush()?;
    tell("stop with Ctrl-C");
    // It is removed at the end.
    let _page = if args.open { Some(open(&address)?) } else { None };
    server.run(|| signals.check().is_err());
    Ok(())
}

/// Opens an address in the browser, by a file that leads there: others on a machine can see the arguments of a command, and the
/// address has a token.
fn open(address: &str) -> Result<TempPath> {
    let (mut file, path): (File, TempPath) =
        tempfile::Builder::new().prefix("talktree").suffix(".html").tempfile()?.into_parts();
    write!(file, r#"<!doctype html><meta http-equiv="refresh" content="0;url={address}">"#)?;
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let opened =
        Command::new(program).arg(&path).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Err(error) = opened {
        tell(&format!("{program} cannot be started: {error}; open the address yourself"));
    }
    Ok(path)
}
