//! The configuration: a TOML file, and the environment.
//!
//! `bot.toml` describes every setting and has its default. A file and variables of the environment replace values in it.
#![allow(missing_docs, reason = "the example describes every setting")]

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Table, Value};
use tracing::level_filters::LevelFilter;

use crate::error::{Error, Result};
use crate::health::loopback;

/// The documented example, as `talktree-bot config` prints it: every setting with its default.
pub const EXAMPLE: &str = include_str!("../bot.toml");

/// The longest wait for a server that can be set, in seconds. Much longer ones overflow the clock.
const MAX_SECONDS: u64 = 3_600;

/// The configuration; [`EXAMPLE`] describes the settings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Config {
    pub store: PathBuf,
    pub agent: Agent,
    pub telegram: Telegram,
    pub http: Http,
    pub log: Log,
}

/// `[agent]`: the model, and the texts that it sees.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Agent {
    pub provider: Provider,
    pub model: String,
    pub base_url: String,
    pub api_key_env: String,
    pub api_timeout: u64,
    pub max_turns: u32,
    pub max_tokens: u32,
    pub compact_after: u64,
    pub system_file: PathBuf,
    pub skills_dir: PathBuf,
    pub knowledge_dir: PathBuf,
    pub session: SessionSettings,
}

/// Who offers the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    Offline,
    Anthropic,
    OpenAi,
    Ollama,
}

/// `[agent.session]`: how long a conversation lasts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SessionSettings {
    pub enabled: bool,
    pub expire_seconds: u64,
}

/// `[telegram]`: the front end for Telegram.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Telegram {
    pub api_url: String,
    pub token: Secret,
    pub poll_seconds: u64,
    pub edit_interval_ms: u64,
    pub group_edit_interval_ms: u64,
    pub max_parallel: usize,
    pub calls_per_second: u32,
    pub allowed_users: Vec<i64>,
}

/// `[http]`: `/health` and `/metrics`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Http {
    pub listen: String,
}

/// `[log]`: the log.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Log {
    pub level: String,
    pub format: LogFormat,
    pub bodies: bool,
}

/// How a line of the log is written: for people or for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Text,
    Json,
}

/// A token or key. `Debug` does not show it, so that it gets into no log.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Returns a secret.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "none" } else { "***" })
    }
}

impl Default for Config {
    #[expect(clippy::expect_used, reason = "a test reads the example")]
    fn default() -> Self {
        toml::from_str(EXAMPLE).expect("the example has every setting")
    }
}

impl Config {
    /// Returns the configuration of a file and of the variables of the environment, which win. Without a file, `bot.toml`
    /// is read if there is one.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read, [`Error::Config`] if a setting is unknown or cannot be used; its text
    /// names the setting.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self> {
        let path = file.unwrap_or(Path::new("bot.toml"));
        let text = match std::fs::read_to_string(path) {
            Err(_) if file.is_none() && !path.exists() => String::new(),
            text => text.map_err(|source| Error::File { path: path.to_owned(), source })?,
        };
        let in_file = |why: String| Error::Config(format!("{}: {why}", path.display()));
        // Not the text of the line: it may contain the token.
        let in_line = |error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            in_file(format!("line {}: {}", before.matches('\n').count() + 1, error.message()))
        };
        let given: Table = toml::from_str(&text).map_err(in_line)?;
        let mut settings = toml::from_str(EXAMPLE).map_err(|error| in_file(error.to_string()))?;
        replace(&mut settings, given, "").map_err(in_file)?;
        let mut config = Self::checked(settings.clone()).map_err(in_file)?;
        for (name, value) in environment {
            let in_variable = |why| Error::Config(format!("the variable {name}: {why}"));
            let Some(given) = variable(&settings, &name, &value) else { continue };
            replace(&mut settings, given, "").map_err(in_variable)?;
            config = Self::checked(settings.clone()).map_err(in_variable)?;
        }
        Ok(config)
    }

    fn checked(settings: Table) -> Result<Self, String> {
        let in_one_line = |error: toml::de::Error| error.to_string().trim().replace('\n', " ");
        let config: Self = settings.try_into().map_err(in_one_line)?;
        if config.store.as_os_str().is_empty() {
            return Err("store is empty; it has to be a file or a URL".to_owned());
        }
        let agent = &config.agent;
        let positive = [
            ("[agent] api_timeout", agent.api_timeout),
            ("[agent] max_turns", agent.max_turns.into()),
            ("[agent] max_tokens", agent.max_tokens.into()),
            ("[agent] compact_after", agent.compact_after),
            ("[telegram] max_parallel", config.telegram.max_parallel as u64),
            ("[telegram] calls_per_second", config.telegram.calls_per_second.into()),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(format!("{name} is 0; it has to be 1 or more"));
        }
        let seconds = [
            ("[agent] api_timeout", agent.api_timeout),
            ("[telegram] poll_seconds", config.telegram.poll_seconds),
        ];
        if let Some((name, value)) = seconds.iter().find(|(_, value)| *value > MAX_SECONDS) {
            return Err(format!("{name} is {value}, over the limit of {MAX_SECONDS}"));
        }
        let urls = [
            ("[agent] base_url", &agent.base_url),
            ("[telegram] api_url", &config.telegram.api_url),
        ];
        // An empty base_url stands for the default of the provider.
        if let Some((name, url)) =
            urls.iter().skip(agent.base_url.is_empty().into()).find(is_no_url)
        {
            // There may be a password or a key in it.
            let url = if url.contains(['@', '?', '#']) { "***" } else { url };
            return Err(format!(
                "{name} is {url:?}; expected an address such as https://host/path"
            ));
        }
        let listen = &config.http.listen;
        if !listen.is_empty() {
            loopback(listen)?;
        }
        // A filter of one word that is no level would log nothing.
        let level = &config.log.level;
        if !level.contains(['=', ',']) && level.parse::<LevelFilter>().is_err() {
            return Err(format!("[log] level is {level:?}; it has to be a level or a filter"));
        }
        Ok(config)
    }
}

/// Returns whether a setting is not the address of a server. It has no query and no fragment, because the path of a call is
/// appended to it.
fn is_no_url((_, url): &&(&str, &String)) -> bool {
    let parsed =
        url.parse::<http::Uri>().ok().filter(|it| it.host().is_some_and(|it| !it.is_empty()));
    let is_usual = |it: &http::Uri| matches!(it.scheme_str(), Some("http" | "https"));
    url.contains('#') || !parsed.is_some_and(|it| is_usual(&it) && it.query().is_none())
}

/// Replaces settings; an unknown one is an error.
fn replace(settings: &mut Table, given: Table, section: &str) -> Result<(), String> {
    for (name, value) in given {
        let path = if section.is_empty() { name.clone() } else { format!("{section}.{name}") };
        match (settings.get_mut(&name), value) {
            (None, _) => return Err(format!("there is no setting {path}")),
            (Some(Value::Table(settings)), Value::Table(given)) => replace(settings, given, &path)?,
            (Some(setting), value) if setting.same_type(&value) => *setting = value,
            (Some(setting), value) => {
                let (is, kind) = (value.type_str(), setting.type_str());
                return Err(format!("{path} is of the type {is}; it has to be {kind}"));
            }
        }
    }
    Ok(())
}

/// Returns the setting of a variable of the environment; `None` if the variable is not one of the bot's.
fn variable(settings: &Table, name: &str, value: &str) -> Option<Table> {
    let path = match name {
        "TELEGRAM_TOKEN" => "telegram__token".to_owned(),
        _ => name.strip_prefix("TALKTREE_BOT_")?.to_lowercase(),
    };
    let mut parts = path.split("__");
    let known = parts.next().and_then(|part| settings.get(part));
    let known = known.and_then(|known| parts.try_fold(known, |at, part| at.get(part)));
    let text = || Value::String(value.to_owned());
    let value = match known {
        Some(Value::String(_)) => text(),
        _ => toml::from_str::<Table>(&format!("it = {value}"))
            .ok()
            .and_then(|mut it| it.remove("it"))
            .unwrap_or_else(text),
    };
    let nest = |value, part: &str| Value::Table(Table::from_iter([(part.to_owned(), value)]));
    match path.rsplit("__").fold(value, nest) {
        Value::Table(table) => Some(table),
        _ => None,
    }
}
