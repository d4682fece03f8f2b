//! PostgreSQL's programs, where they are installed, and a server of a test's own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How long a server may take to start or to recover.
pub const START: Duration = Duration::from_secs(60);

/// Returns the folder of PostgreSQL's programs: the newest where Debian keeps them, or one of the search path.
pub fn programs() -> Option<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").ok();
    let mut installed: Vec<_> = installed.into_iter().flatten().flatten().collect();
    installed.sort_by_key(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    let mut found: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    found.extend(installed.into_iter().map(|entry| entry.path().join("bin")));
    found.retain(|folder| ["initdb", "postgres"].iter().all(|name| folder.join(name).is_file()));
    found.pop()
}

/// Returns a command that runs as a user of the system who may start a server: PostgreSQL refuses to run as root.
pub fn as_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(program);
    command
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    cfg!(unix) && id.is_ok_and(|id| id.stdout == b"0\n")
}

/// Makes the folder of a database of the user `talktree`.
pub fn make(programs: &Path, folder: &Path) -> Outcome<PathBuf> {
    let data = folder.join("data");
    if is_root() {
        Command::new("chown").arg("-R").arg("postgres").arg(folder).status()?;
    }
    let made = as_user(&programs.join("initdb"))
        .args(["--auth=trust", "--username=talktree", "--no-sync", "--locale=C", "--encoding=UTF8"])
        .arg("-D")
        .arg(&data)
        .current_dir(folder)
        .output()?;
    assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
    Ok(data)
}

/// A server on a socket and a port of its own, stopped when it is dropped.
pub struct Server {
    /// What starts it, also again.
    command: Command,
    process: Child,
    pub folder: tempfile::TempDir,
    pub port: u16,
}

impl Server {
    /// Starts a server; `None`, and a line about it, where PostgreSQL is not installed. `prepare` may put files into the folder, and change
    /// those in the folder of the database.
    pub fn start(
        settings: &[&str],
        prepare: impl FnOnce(&Path, &Path) -> Outcome,
    ) -> Outcome<Option<Self>> {
        let Some(programs) = programs() else {
            // Said also where the output of tests that pass is not shown.
            use std::io::Write;
            writeln!(std::io::stderr(), "skipped: PostgreSQL is not installed")?;
            return Ok(None);
        };
        // Not below TMPDIR: the path of a socket has at most 107 bytes.
        let folder = tempfile::Builder::new().prefix("talktree").tempdir_in("/tmp")?;
        let data = make(&programs, folder.path())?;
        prepare(folder.path(), &data)?;
        let settings = [&["listen_addresses=localhost"], settings].concat();
        let command = as_user(&programs.join("postgres"));
        Self::run(command, folder, &data, &settings).map(Some)
    }

    /// Starts the server of a database by a command. Its socket and its log are in the folder.
    pub fn run(
        mut command: Command,
        folder: tempfile::TempDir,
        data: &Path,
        settings: &[&str],
    ) -> Outcome<Self> {
        if is_root() {
            Command::new("chown").arg("-R").arg("postgres").arg(folder.path()).status()?;
        }
        let port = std::net::TcpListener::bind("localhost:0")?.local_addr()?.port();
        command.arg("-D").arg(data).arg("-k").arg(folder.path());
        command.args(["-p", &port.to_string(), "-c", "fsync=off"]);
        command.args(settings.iter().flat_map(|setting| ["-c", setting]));
        let log = std::fs::File::create(folder.path().join("log"))?;
        command.current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = command.spawn()?;
        let server = Self { command, process, folder, port };
        server.wait()?;
        Ok(server)
    }

    /// Waits until it has started or recovered.
    pub fn wait(&self) -> Outcome {
        let began = Instant::now();
        while !self.sql("talktree", "SELECT 1")?.status.success() {
            if began.elapsed() > START {
                return Err(std::fs::read_to_string(self.folder.path().join("log"))?.into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Stops it as a crash does, and starts it again.
    pub fn crash(&mut self) -> Outcome {
        self.stop();
        self.revive()
    }

    /// Starts it again if it has ended.
    pub fn revive(&mut self) -> Outcome {
        if self.process.try_wait()?.is_some() {
            self.process = self.command.spawn()?;
            self.wait()?;
        }
        Ok(())
    }

    fn stop(&mut self) {
        let id = self.process.id().to_string();
        let _ = Command::new("kill").args(["-QUIT", &id]).status();
        let _ = self.process.wait();
    }

    /// Returns the URL of the database for a role, by the socket, to which parameters can be added.
    pub fn url(&self, role: &str) -> String {
        let (folder, port) = (self.folder.path().display(), self.port);
        format!("postgresql://{role}@localhost:{port}/postgres?host={folder}&")
    }

    /// Runs SQL as a role.
    pub fn sql(&self, role: &str, sql: &str) -> Outcome<Output> {
        Ok(self.psql(role).args(["-c", sql]).output()?)
    }

    /// Returns the client of PostgreSQL's own.
    pub fn psql(&self, role: &str) -> Command {
        let mut command = Command::new(programs().unwrap_or_default().join("psql"));
        let url = self.url(role);
        command
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"])
            .arg(url.trim_end_matches('&'));
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
