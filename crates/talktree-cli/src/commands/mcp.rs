//! `talktree mcp`: a server for models, and how clients start it.

use std::io::{self, BufReader};

use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use talktree::{Record, Store};
use talktree_mcp::{Access, serve};

use crate::prelude::*;

/// Let a model search and read the store: a Model Context Protocol server on standard input and output
///
/// A client such as Claude Code, Codex or Cursor starts it; --print-config prints what to paste there. The model sees all sessions,
/// or those that --owner and --source name, but none in the trash and no hidden message.
#[derive(Debug, clap::Args)]
pub(crate) struct McpArgs {
    /// Show only the sessions of this owner.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    owner: Option<String>,

    /// Show only the sessions from this program or file; repeat it for several.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    source: Vec<String>,

    /// Replace what looks like a key or a token in what the model gets.
    #[arg(long)]
    redact: bool,

    /// Also offer the tools that write notes and labels.
    #[arg(long)]
    write: bool,

    /// Print what to paste into the configuration of this client, and end.
    #[arg(long, value_name = "CLIENT")]
    print_config: Option<Client>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Client {
    /// Claude Code.
    Claude,
    ClaudeDesktop,
    Codex,
    Cursor,
    Gemini,
    /// Visual Studio Code.
    Vscode,
}

pub(crate) fn run(args: McpArgs, context: &mut Context) -> Result<()> {
    if let Some(client) = args.print_config {
        return print_config(client, &args, context);
    }
    let store = if args.write { context.writer()? } else { context.unpaged()? };
    let access = Access {
        owner: args.owner,
        sources: args.source,
        can_write: args.write,
        redact: args.redact.then_some(talktree_import::redact as fn(&mut Record)),
    };
    Ok(serve(&store, access, BufReader::new(io::stdin()), io::stdout().lock())?)
}

/// Prints how a client starts this command; where it belongs goes to standard error.
fn print_config(client: Client, args: &McpArgs, context: &mut Context) -> Result<()> {
    let store = context.store_path()?;
    let mut words = vec!["mcp".to_owned()];
    // Others on a machine can see the arguments of a command, and a URL may have a password.
    let env = match Store::is_url(&store) {
        true => json!({"TALKTREE_STORE": store.to_string_lossy()}),
        false => {
            let path = std::path::absolute(&store)?.to_string_lossy().into_owned();
            words.extend(["--store".to_owned(), path]);
            json!({})
        }
    };
    let owner = args.owner.iter().map(|owner| ("--owner", owner));
    for (option, value) in owner.chain(args.source.iter().map(|source| ("--source", source))) {
        words.extend([option.to_owned(), value.clone()]);
    }
    words.extend(args.redact.then(|| "--redact".to_owned()));
    words.extend(args.write.then(|| "--write".to_owned()));
    let program = std::env::current_exe()?.to_string_lossy().into_owned();
    let mut server = json!({"command": program, "args": words});
    if env != json!({}) {
        server["env"] = env.clone();
    }
    let (place, key) = match client {
        Client::Claude => (".mcp.json of a project", "mcpServers"),
        Client::ClaudeDesktop => ("claude_desktop_config.json", "mcpServers"),
        Client::Codex => ("~/.codex/config.toml", ""),
        Client::Cursor => ("~/.cursor/mcp.json", "mcpServers"),
        Client::Gemini => ("~/.gemini/settings.json", "mcpServers"),
        Client::Vscode => (".vscode/mcp.json", "servers"),
    };
    let mut text = format!("{:#}", json!({key: {"talktree": server}}));
    if key.is_empty() {
        // Texts and lists of JSON are those of TOML, too.
        let (command, url) = (&server["command"], &env["TALKTREE_STORE"]);
        text = format!("[mcp_servers.talktree]\ncommand = {command}\nargs = {}\n", server["args"]);
        text.extend((!url.is_null()).then(|| format!("env = {{ TALKTREE_STORE = {url} }}")));
    }
    if !Store::is_url(&store) && !store.exists() {
        tell(&format!("there is no store at {} yet", crate::text::shown(&store)));
    }
    tell(&format!("paste this into {place}:"));
    text.lines().try_for_each(|line| put!(context.out; PLAIN line))?;
    Ok(())
}
