//! The bot as a process, which can be killed.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::Result;

/// The variable with the key of the model.
const KEY: &str = "RIG_MODEL_KEY";

/// The key of the model, which must not be in the log.
pub(crate) const SECRET: &str = "rig-model-secret";

/// How long a bot may take to end when it is told to.
pub const ENDING: Duration = Duration::from_secs(10);

/// Which API of models the bot uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Anthropic messages.
    Anthropic,
    /// `OpenAI` chat completions.
    Openai,
}

/// How a bot is started.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program.
    pub program: PathBuf,
    /// Where its store, its configuration and its log are.
    pub folder: PathBuf,
    /// The address of Telegram.
    pub telegram: String,
    /// The token for it.
    pub token: String,
    /// The address of the model.
    pub model: String,
    /// The tokens of a request over which it compacts.
    pub compact_after: u64,
    /// The shortest time between two edits in a chat, in milliseconds.
    pub edit_interval_ms: u64,
}

impl Settings {
    /// Returns the path of the store.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.folder.join("bot.db")
    }

    /// Returns the path of the log, which all processes extend.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder.join("bot.log")
    }

    fn write(&self, api: Api) -> Result<PathBuf> {
        let Self { telegram, model, compact_after, edit_interval_ms, .. } = self;
        let provider = if api == Api::Openai { "openai" } else { "anthropic" };
        let store = self.store();
        let store = store.to_str().ok_or("the path of the store is not UTF-8")?;
        let text = format!(
            "store = {store:?}\n\
             [agent]\nprovider = {provider:?}\nmodel = \"scripted\"\nbase_url = {model:?}\n\
             api_key_env = {KEY:?}\napi_timeout = 20\ncompact_after = {compact_after}\n\
             [agent.session]\nexpire_seconds = 0\n\
             [telegram]\napi_url = {telegram:?}\npoll_seconds = 5\ncalls_per_second = 1000000\n\
             edit_interval_ms = {edit_interval_ms}\ngroup_edit_interval_ms = {edit_interval_ms}\n\
             [http]\nlisten = \"\"\n\
             [log]\nlevel = \"info\"\n"
        );
        let path = self.folder.join("bot.toml");
        std::fs::write(&path, text)?;
        Ok(path)
    }
}

/// A running bot; killed when it is dropped.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts a bot. It polls a little later.
    ///
    /// # Errors
    /// If the configuration cannot be written or the program cannot be started.
    pub fn start(settings: &Settings, api: Api) -> Result<Self> {
        let config = settings.write(api)?;
        let log: File = OpenOptions::new().create(true).append(true).open(settings.log())?;
        let child = Command::new(&settings.program)
            .args(["telegram", "--config"])
            .arg(config)
            .env("TELEGRAM_TOKEN", &settings.token)
            .env(KEY, SECRET)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Self(child))
    }

    /// Returns the exit status, if the bot has ended by itself.
    ///
    /// # Errors
    /// If the system cannot tell.
    pub fn has_ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.0.try_wait()?)
    }

    /// Kills it; when this returns, the process is gone.
    ///
    /// # Errors
    /// If it has ended before.
    pub fn kill(&mut self) -> Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }

    /// Tells it to end by SIGTERM, and returns how long that took. After 15 seconds it is killed.
    ///
    /// # Errors
    /// If it cannot be told, or ends with an error.
    pub fn end(&mut self) -> Result<Duration> {
        let began = Instant::now();
        let id = self.0.id().to_string();
        let status = Command::new("kill").args(["-TERM", &id]).status()?;
        if !status.success() {
            return Err(format!("the bot cannot be told to end: {status}").into());
        }
        while began.elapsed() < ENDING + Duration::from_secs(5) {
            if let Some(status) = self.0.try_wait()? {
                return match status.success() {
                    true => Ok(began.elapsed()),
                    false => Err(format!("the bot was told to end, and did with {status}").into()),
                };
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill()?;
        Ok(began.elapsed())
    }

    /// Returns the memory that it holds now, and the most that it held, in bytes; `None` where the system cannot tell.
    #[must_use]
    pub fn memory(&self) -> Option<(u64, u64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).ok()?;
        let figure = |name: &str| {
            let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? << 10)
        };
        Some((figure("VmRSS:")?, figure("VmHWM:")?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails only if it has already ended.
        let _ = self.kill();
    }
}
