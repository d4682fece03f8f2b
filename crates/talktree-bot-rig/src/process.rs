//! The bot as a process, which can be killed. Every wait for a process has a limit.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use crate::Result;
use crate::lock::lock;

/// The variable with the key of the model.
const KEY: &str = "RIG_MODEL_KEY";

/// The key of the model, which must not be in the log.
pub(crate) const SECRET: &str = "rig-model-secret";

/// How long a bot may take to end after a SIGTERM.
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

/// A running program, such as a bot. It is killed when this is dropped, and when a test exceeds its [limit](crate::Limit).
#[derive(Debug)]
pub struct Process(Arc<Mutex<Child>>);

/// The running programs.
static RUNNING: Mutex<Vec<Weak<Mutex<Child>>>> = Mutex::new(Vec::new());

impl Process {
    /// Starts a bot. It polls a little later.
    ///
    /// # Errors
    /// If the configuration cannot be written or the program cannot be started.
    pub fn start(settings: &Settings, api: Api) -> Result<Self> {
        let config = settings.write(api)?;
        let log: File = OpenOptions::new().create(true).append(true).open(settings.log())?;
        let mut command = Command::new(&settings.program);
        command.args(["telegram", "--config"]).arg(config);
        command.env("TELEGRAM_TOKEN", &settings.token).env(KEY, SECRET);
        Self::spawn(&mut command, log)
    }

    /// Starts a program that reads nothing and writes its output and its errors to this file: a program that outlives a
    /// test must not hold the output of the test open.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn spawn(command: &mut Command, log: File) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(Self::of(command.spawn()?))
    }

    fn of(child: Child) -> Self {
        let child = Arc::new(Mutex::new(child));
        let mut running = lock(&RUNNING);
        running.retain(|child| child.strong_count() > 0);
        running.push(Arc::downgrade(&child));
        Self(child)
    }

    /// Returns the exit status, if it has ended by itself.
    ///
    /// # Errors
    /// If the system cannot tell.
    pub fn has_ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(lock(&self.0).try_wait()?)
    }

    /// Waits until it ends by itself; `None` if it does not in time.
    ///
    /// # Errors
    /// If the system cannot tell.
    pub fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>> {
        let until = Instant::now() + limit;
        loop {
            let status = self.has_ended()?;
            if status.is_some() || Instant::now() >= until {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it; when this returns, the process is gone.
    ///
    /// # Errors
    /// If it has ended before.
    pub fn kill(&mut self) -> Result<()> {
        let mut child = lock(&self.0);
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Tells it to end by SIGTERM, and returns how long that took. After 15 seconds it is killed.
    ///
    /// # Errors
    /// If it cannot be told, or ends with an error.
    pub fn end(&mut self) -> Result<Duration> {
        let began = Instant::now();
        let id = lock(&self.0).id().to_string();
        let mut kill = Command::new("kill");
        kill.args(["-TERM", &id]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let told = Self::of(kill.spawn()?).wait(ENDING)?;
        if !told.is_some_and(|told| told.success()) {
            return Err(format!("the bot cannot be told to end: {told:?}").into());
        }
        match self.wait(ENDING + Duration::from_secs(5))? {
            Some(status) if status.success() => Ok(began.elapsed()),
            Some(status) => Err(format!("the bot was told to end, and did with {status}").into()),
            None => {
                self.kill()?;
                Ok(began.elapsed())
            }
        }
    }

    /// Returns the memory that it holds now, and the most that it held, in bytes; `None` where the system cannot tell.
    #[must_use]
    pub fn memory(&self) -> Option<(u64, u64)> {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", lock(&self.0).id())).ok()?;
        let figure = |name: &str| {
            let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? << 10)
        };
        Some((figure("VmRSS:")?, figure("VmHWM:")?))
    }
}

/// Returns the CPU time of all processes that this one has started and that have ended, also of those that were killed; `None`
/// where the system cannot tell.
pub(crate) fn children_cpu() -> Option<Duration> {
    /// The unit of the figures; Linux has the same one on all computers.
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in brackets may have spaces. The 14th and 15th field after it are the times in the program and in the system.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(13);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    Some(TICK * (ticks()? + ticks()?))
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails only if it has already ended.
        let _ = self.kill();
    }
}

/// Kills all running programs.
pub(crate) fn kill_all() {
    for child in lock(&RUNNING).iter().filter_map(Weak::upgrade) {
        // Fails only if it has already ended.
        let _ = lock(&child).kill();
    }
}

/// Runs a program with this input until it ends, and returns what it wrote.
///
/// # Errors
/// If it cannot be started, or does not end in time; then it is killed, and the error has what it wrote.
pub fn output(command: &mut Command, input: &[u8], limit: Duration) -> Result<Output> {
    // Files: a pipe that nobody reads would stop the program, and one that somebody else holds open would never end.
    let (mut out, mut err) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(Stdio::piped()).stdout(out.try_clone()?).stderr(err.try_clone()?);
    let mut child = command.spawn()?;
    let stdin = child.stdin.take();
    let mut process = Process::of(child);
    let input = input.to_owned();
    std::thread::spawn(move || {
        // Fails if the program does not read to the end, as one that refuses its settings.
        let _ = stdin.map(|mut stdin| stdin.write_all(&input));
    });
    let status = process.wait(limit)?;
    drop(process);
    let read = |file: &mut File| -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let (stdout, stderr) = (read(&mut out)?, read(&mut err)?);
    match status {
        Some(status) => Ok(Output { status, stdout, stderr }),
        None => {
            let [stdout, stderr] =
                [stdout, stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
            Err(format!("not ended after {limit:?}; output: {stdout}; errors: {stderr}").into())
        }
    }
}
