//! A PostgreSQL server of the test's own, and the network to its hosts.

use std::fs::{File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Result;
pub(super) use installed::programs;
use installed::{as_user, make};

#[path = "../../../../tests/common/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "the tests of the library start other servers")]
mod installed;

/// How long the server may take to recover.
const START: Duration = Duration::from_secs(60);
/// Small logs and short waits, so that what happens rarely happens often.
const SETTINGS: &[&str] = &[
    "fsync=off",
    "max_connections=300",
    "deadlock_timeout=200ms",
    "min_wal_size=32MB",
    "max_wal_size=64MB",
    "checkpoint_timeout=30s",
    "shared_buffers=64MB",
];

/// A running server, which ends when it is dropped.
pub(super) struct Server {
    programs: PathBuf,
    data: PathBuf,
    /// Of the socket and of what the server says.
    folder: tempfile::TempDir,
    network: Option<String>,
    process: Child,
}

impl Server {
    /// Creates a server with its data in a folder, on a network.
    pub(super) fn start(disk: &Path, network: Option<&Network>) -> Result<Self> {
        let programs = programs().ok_or("PostgreSQL is not installed")?;
        // The path of a socket has at most 107 bytes.
        let folder = tempfile::tempdir_in("/tmp")?;
        for folder in [disk, folder.path()] {
            std::fs::set_permissions(folder, Permissions::from_mode(0o777))?;
        }
        let data = make(&programs, disk).map_err(|error| error.to_string())?;
        let mut who = OpenOptions::new().append(true).open(data.join("pg_hba.conf"))?;
        writeln!(who, "host all all all trust")?;
        let network = network.map(Network::server);
        let process = begin(&programs, &data, folder.path(), network.as_deref())?;
        let server = Self { programs, data, folder, network, process };
        server.wait()?;
        Ok(server)
    }

    /// Returns the URL by which this process reaches a store.
    pub(super) fn url(&self, schema: &str) -> String {
        let folder = self.folder.path().display();
        format!("postgresql://talktree@localhost/postgres?host={folder}&schema={schema}")
    }

    /// Stops the server as a crash does, and starts it again.
    pub(super) fn crash(&mut self) -> Result<()> {
        kill("-QUIT", self.process.id())?;
        self.process.wait()?;
        self.begin_again()
    }

    /// Starts the server if it has ended by itself.
    pub(super) fn revive(&mut self) -> Result<()> {
        match self.process.try_wait()? {
            Some(_) => self.begin_again(),
            None => Ok(()),
        }
    }

    fn begin_again(&mut self) -> Result<()> {
        let network = self.network.as_deref();
        self.process = begin(&self.programs, &self.data, self.folder.path(), network)?;
        self.wait()
    }

    /// Waits until the server has recovered.
    pub(super) fn wait(&self) -> Result<()> {
        let began = Instant::now();
        while self.ask("SELECT 1").is_err() {
            if began.elapsed() > START {
                return Err("the server does not start".into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Waits until no transaction is open.
    pub(super) fn wait_for_silence(&self) -> Result<()> {
        let began = Instant::now();
        let open = "SELECT count(*) FROM pg_stat_activity
            WHERE pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)";
        while self.ask(open)? != "0" {
            if began.elapsed() > START {
                return Err("a transaction does not end".into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Runs a statement outside talktree.
    pub(super) fn ask(&self, sql: &str) -> Result<String> {
        let began = Instant::now();
        loop {
            let mut psql = self.client("psql");
            psql.args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-d", "postgres", "-c", sql]);
            match run(&mut psql) {
                // It starts again, as after a full disk.
                Err(error)
                    if error.to_string().contains("FATAL:  the database system is")
                        && began.elapsed() < START =>
                {
                    std::thread::sleep(Duration::from_millis(100));
                }
                answer => return answer,
            }
        }
    }

    /// Writes the rows of a store into a file.
    pub(super) fn dump(&self, schema: &str, path: &Path) -> Result<()> {
        let mut dump = self.client("pg_dump");
        run(dump.args(["-n", schema, "-d", "postgres", "-f"]).arg(path)).map(drop)
    }

    fn client(&self, program: &str) -> Command {
        let mut client = Command::new(self.programs.join(program));
        client.arg("-h").arg(self.folder.path()).args(["-U", "talktree"]);
        client
    }

    /// Returns how often the server has said something.
    pub(super) fn said(&self, what: &str) -> Result<usize> {
        let log = std::fs::read(self.folder.path().join("log"))?;
        Ok(String::from_utf8_lossy(&log).matches(what).count())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails only if the server has ended.
        let _ = kill("-QUIT", self.process.id());
        let _ = self.process.wait();
    }
}

fn begin(programs: &Path, data: &Path, folder: &Path, network: Option<&str>) -> Result<Child> {
    let server = as_user(&programs.join("postgres"));
    // Each program replaces the one before it: the process is the server's.
    let mut command = Command::new("env");
    // Anybody may connect, so only from the network of its own.
    let mut addresses = "listen_addresses=";
    if let Some(network) = network {
        command.args(["ip", "netns", "exec", network]);
        addresses = "listen_addresses=*";
    }
    command.arg(server.get_program()).args(server.get_args());
    command.arg("-D").arg(data).arg("-k").arg(folder).args(["-c", addresses]);
    command.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
    let log = OpenOptions::new().create(true).append(true).open(folder.join("log"))?;
    let log = [Stdio::from(File::try_clone(&log)?), Stdio::from(log)];
    let [out, err] = log;
    Ok(command.current_dir("/").stdin(Stdio::null()).stdout(out).stderr(err).spawn()?)
}

/// Sends a signal to a process.
pub(super) fn kill(signal: &str, process: u32) -> Result<()> {
    run(Command::new("kill").args([signal, &process.to_string()])).map(drop)
}

/// Runs a program, and returns what it printed.
fn run(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// A server and its hosts in network namespaces, with a cable to each host.
pub(super) struct Network {
    name: String,
    hosts: u32,
}

impl Network {
    /// Creates the network. It is an error if the system does not permit that.
    pub(super) fn new(hosts: u32) -> Result<Self> {
        let network = Self { name: format!("talktree{}", std::process::id()), hosts };
        let server = network.server();
        ip(&["netns", "add", &server])?;
        ip(&["-n", &server, "link", "set", "lo", "up"])?;
        for host in 0..hosts {
            let (name, cable) = (network.host(host), format!("host{host}"));
            ip(&["netns", "add", &name])?;
            let link = ["link", "add", &cable, "type", "veth", "peer", "name", "cable", "netns"];
            ip(&[&["-n", &*server][..], &link, &[&*name]].concat())?;
            for (space, cable, end) in [(&server, &*cable, 1), (&name, "cable", 2)] {
                let address = format!("10.213.{host}.{end}/30");
                ip(&["-n", space, "address", "add", &address, "dev", cable])?;
                ip(&["-n", space, "link", "set", cable, "up"])?;
            }
        }
        Ok(network)
    }

    fn server(&self) -> String {
        format!("{}-server", self.name)
    }

    /// Returns the name of a host's namespace.
    pub(super) fn host(&self, host: u32) -> String {
        format!("{}-{host}", self.name)
    }

    /// Returns the URL by which a host reaches a store.
    pub(super) fn url(host: u32, schema: &str) -> String {
        format!("postgresql://talktree@10.213.{host}.1/postgres?schema={schema}")
    }

    /// Pulls the cable of a host, or plugs it in again.
    pub(super) fn set(&self, host: u32, state: &str) -> Result<()> {
        ip(&["-n", &self.server(), "link", "set", &format!("host{host}"), state])
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let hosts = (0..self.hosts).map(|host| self.host(host));
        for name in hosts.chain([self.server()]) {
            // One that could not be made is not there.
            let _ = ip(&["netns", "delete", &name]);
        }
    }
}

fn ip(args: &[&str]) -> Result<()> {
    run(Command::new("ip").args(args)).map(drop)
}
