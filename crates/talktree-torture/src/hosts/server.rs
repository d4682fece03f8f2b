//! A PostgreSQL server of the test's own, and the network to its hosts.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Result;
use installed::{START, as_user, make};
pub(super) use installed::{Server, programs};

#[path = "../../../../tests/common/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "the tests of the library start other servers")]
mod installed;

/// Small logs and short waits, so that what happens rarely happens often.
const SETTINGS: &[&str] = &[
    "max_connections=300",
    "deadlock_timeout=200ms",
    "min_wal_size=32MB",
    "max_wal_size=64MB",
    "checkpoint_timeout=30s",
    "shared_buffers=64MB",
];

/// Starts a server with its data in a folder, on a network.
pub(super) fn start(disk: &Path, network: Option<&Network>) -> Result<Server> {
    let programs = programs().ok_or("PostgreSQL is not installed")?;
    // The path of a socket has at most 107 bytes.
    let folder = tempfile::tempdir_in("/tmp")?;
    let data = make(&programs, disk)?;
    let mut who = OpenOptions::new().append(true).open(data.join("pg_hba.conf"))?;
    writeln!(who, "host all all all trust")?;
    let server = as_user(&programs.join("postgres"));
    // Each program replaces the one before it: the process is the server's.
    let mut command = Command::new("env");
    // Anybody may connect, so only from the network of its own.
    let mut addresses = "listen_addresses=";
    if let Some(network) = network {
        command.args(["ip", "netns", "exec", &network.server()]);
        addresses = "listen_addresses=*";
    }
    command.arg(server.get_program()).args(server.get_args());
    Server::run(command, folder, &data, &[SETTINGS, &[addresses]].concat())
}

/// Waits until no transaction is open.
pub(super) fn wait_for_silence(server: &Server) -> Result<()> {
    let began = Instant::now();
    let open = "SELECT count(*) FROM pg_stat_activity
        WHERE pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)";
    while ask(server, open)? != "0" {
        if began.elapsed() > START {
            return Err("a transaction does not end".into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Runs a statement outside talktree.
pub(super) fn ask(server: &Server, sql: &str) -> Result<String> {
    let began = Instant::now();
    loop {
        match run(server.psql("talktree").args(["-c", sql])) {
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
pub(super) fn dump(server: &Server, schema: &str, path: &Path) -> Result<()> {
    let mut dump = Command::new(programs().unwrap_or_default().join("pg_dump"));
    let url = server.url("talktree");
    run(dump.args(["-n", schema, "-d", url.trim_end_matches('&'), "-f"]).arg(path)).map(drop)
}

/// Returns how often the server has said something.
pub(super) fn said(server: &Server, what: &str) -> Result<usize> {
    let log = std::fs::read(server.folder.path().join("log"))?;
    Ok(String::from_utf8_lossy(&log).matches(what).count())
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

    /// Returns the URL by which a host reaches the database of the server.
    pub(super) fn url(host: u32, server: &Server) -> String {
        format!("postgresql://talktree@10.213.{host}.1:{}/postgres?", server.port)
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
