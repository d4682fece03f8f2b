//! `talktree serve`: a page in the browser.

use std::fs::File;
use std::io::{self, Write};
use std::process::{Command, Stdio};

use clap::builder::NonEmptyStringValueParser;
use talktree::Store;
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
    // The file is removed at the end.
    let opened = args.open.then(|| open(&address));
    if let Some(Err(error)) = &opened {
        tell(&format!("{error}; open the address yourself"));
    }
    server.run(|| signals.check().is_err());
    Ok(())
}

/// Opens an address in the browser, by a file that leads there: others on a machine can see the arguments of a command, and the
/// address has a token.
pub(crate) fn open(address: &str) -> io::Result<TempPath> {
    let (mut file, path): (File, TempPath) =
        tempfile::Builder::new().prefix("talktree").suffix(".html").tempfile()?.into_parts();
    let address = address.replace('&', "&amp;");
    write!(file, r#"<!doctype html><meta http-equiv="refresh" content="0;url={address}">"#)?;
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let opened =
        Command::new(program).arg(&path).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let failed = |error| io::Error::other(format!("{program} cannot be started: {error}"));
    opened.map(|_| path).map_err(failed)
}

/// A page beside a program that goes on; it ends with the process.
pub(crate) struct Page {
    address: String,
    /// They are removed at the end.
    opened: Vec<TempPath>,
}

impl Page {
    pub(crate) fn serve(store: &Store, owner: Option<String>) -> io::Result<Self> {
        let server = Server::bind(store, Options { owner, ..Options::default() })?;
        let page = Self { address: server.address(), opened: Vec::new() };
        std::thread::spawn(move || server.run(|| false));
        Ok(page)
    }

    /// Opens a message in the browser, and returns its address; without a browser somebody opens that.
    pub(crate) fn open(&mut self, session: &str, message: &str) -> String {
        let [session, message] = [session, message].map(encoded);
        let address = format!("{}#s={session}&m={message}", self.address);
        self.opened.extend(open(&address).ok());
        address
    }
}

fn encoded(text: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let encode = |byte: u8| match is_plain(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}
