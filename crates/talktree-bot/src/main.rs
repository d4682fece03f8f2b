//! The command `talktree-bot`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use talktree::Store;
use talktree_bot::config::{EXAMPLE, LogFormat};
use talktree_bot::error::{Error, Result};
use talktree_bot::{Bot, Config, models, telegram, terminal};
use tracing_subscriber::EnvFilter;

/// The exit status after an error of the store that a later run may not have, as a full disk or a lock that another program holds
/// (`EX_TEMPFAIL`).
const TRY_AGAIN: u8 = 75;

/// How many reading connections of the store are kept, each with up to 2 MiB.
const IDLE_READERS: usize = 32;

/// A chat bot that forgets nothing until it is asked to
#[derive(Debug, Parser)]
#[command(name = "talktree-bot", version)]
struct Arguments {
    /// The configuration file; by default bot.toml, if it exists
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Chat in the terminal, or answer each line of a pipe
    Chat {
        /// Use the conversation of this name instead of the one without a name. A conversation has one chat at a time: a
        /// second one is refused
        #[arg(long, value_parser = name)]
        name: Option<String>,
    },
    /// Answer on Telegram, until SIGINT or SIGTERM
    Telegram,
    /// Print a configuration with every setting, its default and what it does
    Config,
}

fn main() -> ExitCode {
    match start(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If the error cannot be written either, there is nobody to tell.
            let _ = writeln!(io::stderr(), "talktree-bot: {error}");
            match error {
                Error::Store(error) if error.is_retryable() => ExitCode::from(TRY_AGAIN),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn start(arguments: &Arguments) -> Result<()> {
    if let Subcommands::Config = arguments.command {
        return io::stdout()
            .write_all(EXAMPLE.as_bytes())
            .map_err(|source| Error::System { what: "the output", source });
    }
    let config = Config::load(arguments.config.as_deref(), environment()?)?;
    match &arguments.command {
        Subcommands::Config => Ok(()),
        Subcommands::Chat { name } => {
            // The terminal shows the chat: lines of the log in it would disturb.
            let level = if config.log.level == "info" { "warn" } else { &config.log.level };
            start_log(&config, level)?;
            let store = Store::options().open_at(&config.store)?;
            let bot = Bot::new(&config, store, models::of(&config.agent)?)?;
            terminal::chat(&bot, &config.store, name.as_deref())
        }
        Subcommands::Telegram => {
            start_log(&config, &config.log.level)?;
            // Many chats read at once, and opening a connection costs more than most reads.
            let store = Store::options().idle_readers(IDLE_READERS).open_at(&config.store)?;
            telegram::run(&config, store, models::of(&config.agent)?)
        }
    }
}

/// Parses the name of a chat. It becomes a part of a file name, so it has no `/` and no dot, and its length is limited.
fn name(text: &str) -> Result<String, String> {
    let is_usual = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
    match (1..=40).contains(&text.len()) && text.chars().all(is_usual) {
        true => Ok(text.to_owned()),
        false => Err("expected 1 to 40 characters from a-z, A-Z, 0-9, `-` and `_`".to_owned()),
    }
}

/// Returns the variables of the environment. One that is no text does not matter, unless it is the bot's.
fn environment() -> Result<Vec<(String, String)>> {
    let mut variables = Vec::new();
    for (name, value) in std::env::vars_os() {
        let Ok(name) = name.into_string() else { continue };
        match value.into_string() {
            Ok(value) => variables.push((name, value)),
            Err(_) if name.starts_with("TALKTREE_BOT_") || name == "TELEGRAM_TOKEN" => {
                return Err(Error::Config(format!("the variable {name} is no text in UTF-8")));
            }
            Err(_) => {}
        }
    }
    Ok(variables)
}

fn start_log(config: &Config, level: &str) -> Result<()> {
    let filter = EnvFilter::try_new(level);
    let filter = filter.map_err(|why| Error::Config(format!("[log] level {level:?}: {why}")))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match config.log.format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}
