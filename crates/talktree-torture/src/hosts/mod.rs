//! Several hosts on one PostgreSQL server, while hosts, network and server fail.
//!
//! Each host plays people as `soak` does, and its part of a crowd: many clients in one session. Between times a host is cut off,
//! stopped or killed, also in the middle of an erasure; the server crashes, its disk is full, a deadlock is provoked. The clock of one
//! host is an hour behind. At the end the store holds what was acknowledged, once and in its place, and nothing that was erased.
//!
//! Hosts are network namespaces, if the system permits them; otherwise processes, which are not cut off.

mod crowd;
mod server;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use talktree::{SessionManager, Store};

use crate::process::Worker;
use crate::scarce::Disk;
use crate::soak::journal::{Journal, path_of, written};
use crate::soak::{Size, check, name_of, worker};
use crate::{Report, Result};
use server::{Network, Server, ask, kill};

const SOAK: &str = "hosts";
const CROWD: &str = "crowd";
/// A longer one is given up by the server and by the host.
const LONGEST_CUT_MS: u64 = 14_000;
/// What makes a clock run an hour late, if it is installed.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// How much is played.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The small form, with the same checks, which takes a minute.
    #[arg(long)]
    pub quick: bool,
    /// How many hosts there are.
    #[arg(long, default_value_t = 3)]
    pub hosts: u32,
    /// How many messages the people write; the crowd writes until they are done.
    #[arg(long, default_value_t = 60_000)]
    pub messages: u64,
    /// How many clients the crowd has.
    #[arg(long, default_value_t = 32)]
    pub clients: u32,
    /// How often something fails.
    #[arg(long, default_value_t = 100)]
    pub troubles: u32,
    /// The program to start as a host, if it is not this one.
    #[arg(long, hide = true)]
    pub program: Option<PathBuf>,
}

impl Args {
    /// Returns the quick form.
    #[must_use]
    pub fn quick() -> Self {
        Self { quick: true, hosts: 2, messages: 1_500, clients: 32, troubles: 10, program: None }
    }

    fn size(&self) -> Size {
        let erasures = u64::from(self.troubles) * 4;
        // So many that chats are long enough to be compacted.
        let chats = u32::try_from(self.messages / 50).unwrap_or(u32::MAX);
        Size {
            processes: self.hosts,
            threads: 4,
            messages: self.messages,
            erasures,
            chats,
            owners: chats,
            ..Size::quick()
        }
    }
}

/// What one host plays.
#[derive(Debug, Clone, clap::Args)]
pub struct HostArgs {
    #[command(flatten)]
    people: worker::Args,
    /// The store of the crowd.
    #[arg(long)]
    crowd: String,
    /// How many clients the crowd has, on all hosts.
    #[arg(long)]
    clients: u32,
    #[arg(long)]
    hosts: u32,
}

/// Plays one host.
///
/// # Errors
/// If a verb fails for a reason other than the server and the network.
pub fn play(args: &HostArgs, seed: u64) -> Result<()> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let own = (0..args.clients).filter(|client| client % args.hosts == args.people.process);
        let clients: Vec<_> = own
            .map(|client| {
                let is_over = &is_over;
                scope.spawn(move || crowd::play(&args.crowd, &args.people.folder, client, is_over))
            })
            .collect();
        let played = worker::run(&args.people, seed);
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().map_err(|_| "a client panicked")??;
        }
        played
    })
}

/// Something that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// A host is killed, and started again.
    Kill,
    /// The same, while it erases.
    KillErasing,
    /// A host is cut off for some time, and the server may crash meanwhile.
    Cut,
    /// A host does nothing for some time.
    Stop,
    /// The server crashes.
    Crash,
    /// A process of the server is killed: it recovers by itself.
    KillBackend,
    /// The same, while it erases.
    KillErasingBackend,
    /// The server ends all connections.
    Terminate,
    /// The disk of the server is full for some time.
    FullDisk,
    /// Another client locks what the crowd locks, in the other order.
    Deadlock,
}

const TROUBLES: [Trouble; 10] = [
    Trouble::Kill,
    Trouble::Cut,
    Trouble::Deadlock,
    Trouble::KillErasing,
    Trouble::FullDisk,
    Trouble::Crash,
    Trouble::Stop,
    Trouble::KillErasingBackend,
    Trouble::Terminate,
    Trouble::KillBackend,
];

/// Plays, and checks what is left.
///
/// # Errors
/// If a host or the server cannot be started.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let args = match args.quick {
        true => Args { program: args.program.clone(), ..Args::quick() },
        false => args.clone(),
    };
    let size = args.size();
    if server::programs().is_none() {
        report.fact("SKIPPED", "PostgreSQL is not installed");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let network = permitted(report, "network namespaces", Network::new(args.hosts));
    let disk = permitted(report, "disk of its own", Disk::mount(1_024));
    let path = disk.as_ref().map_or(folder.path(), |disk| disk.folder.path());
    let server = server::start(path, network.as_ref())?;
    for schema in [SOAK, CROWD] {
        Store::connect(&(server.url("talktree") + "schema=" + schema))?;
    }
    let rng = Rng::with_seed(report.seed());
    let mut game = Game {
        args: &args,
        size: &size,
        folder: folder.path(),
        network,
        disk,
        server,
        rng,
        hosts: Vec::new(),
        happened: [0; TROUBLES.len()],
        faults: Vec::new(),
    };
    let began = Instant::now();
    game.play()?;
    let seconds = began.elapsed().as_secs_f64();
    game.check(report, seconds)
}

/// Returns what the system permits, and reports if it does not.
fn permitted<T, E: std::fmt::Display>(
    report: &mut Report,
    what: &str,
    made: std::result::Result<T, E>,
) -> Option<T> {
    let why = made.as_ref().err().map(|error| error.to_string());
    let line = why.as_deref().and_then(|why| why.lines().next());
    report.fact(what, line.map_or("yes".to_owned(), |line| format!("no: {line}")));
    made.ok()
}

struct Game<'a> {
    args: &'a Args,
    size: &'a Size,
    folder: &'a Path,
    // Before the network and the disk that it uses: fields are dropped in their order.
    hosts: Vec<(u32, Worker)>,
    server: Server,
    network: Option<Network>,
    disk: Option<Disk>,
    rng: Rng,
    happened: [u32; TROUBLES.len()],
    faults: Vec<String>,
}

impl Game<'_> {
    fn play(&mut self) -> Result<()> {
        for host in 0..self.args.hosts {
            let worker = self.start(host)?;
            self.hosts.push((host, worker));
        }
        let (mut done, mut told) = (0, Instant::now());
        while !self.hosts.is_empty() {
            std::thread::sleep(Duration::from_millis(20));
            let written = written(self.folder, self.size.slots());
            if told.elapsed() > Duration::from_secs(30) {
                told = Instant::now();
                eprintln!("hosts: {written} messages written, {done} troubles");
            }
            let troubles = u64::from(self.args.troubles);
            let due = written * (troubles + 1) / self.args.messages.max(1);
            if done < due.min(troubles) {
                done += 1;
                let kind = (done as usize - 1) % TROUBLES.len();
                if self.make(TROUBLES[kind])? {
                    self.happened[kind] += 1;
                }
            }
            if done == troubles && written >= self.args.messages {
                for host in 0..self.args.hosts {
                    std::fs::write(self.folder.join(format!("stop-{host}")), "")?;
                }
            }
            self.server.revive()?;
            let mut left = Vec::new();
            for (host, mut worker) in std::mem::take(&mut self.hosts) {
                match worker.has_ended()? {
                    true => drop(worker.wait()?),
                    false => left.push((host, worker)),
                }
            }
            self.hosts = left;
        }
        for host in 0..self.args.hosts {
            let noted = self.folder.join(format!("faults-{host}.log"));
            let text = std::fs::read_to_string(noted).unwrap_or_default();
            self.faults.extend(text.lines().take(20).map(str::to_owned));
        }
        Ok(())
    }

    /// Makes a trouble; returns whether it could be made.
    fn make(&mut self, trouble: Trouble) -> Result<bool> {
        self.server.revive()?;
        self.server.wait()?;
        let at = self.rng.usize(..self.hosts.len());
        let (host, process) = (self.hosts[at].0, self.hosts[at].1.id());
        let long = Duration::from_millis(self.rng.u64(100..LONGEST_CUT_MS));
        let moment = Duration::from_micros(self.rng.u64(..50_000));
        let crashes = self.rng.u32(..3) == 0;
        match trouble {
            Trouble::Kill => {
                std::thread::sleep(moment);
                self.kill(at)?;
            }
            Trouble::KillErasing => {
                let Some((_, host)) = self.erasing()? else { return Ok(false) };
                let found = self.hosts.iter().position(|(it, _)| format!("host{it}") == host);
                let Some(at) = found else { return Ok(false) };
                self.kill(at)?;
            }
            Trouble::Cut => {
                let Some(network) = &self.network else { return Ok(false) };
                network.set(host, "down")?;
                std::thread::sleep(long / 2);
                if crashes {
                    self.server.crash()?;
                }
                std::thread::sleep(long / 2);
                network.set(host, "up")?;
            }
            Trouble::Stop => {
                kill("-STOP", process)?;
                std::thread::sleep(long);
                kill("-CONT", process)?;
            }
            Trouble::Crash => {
                std::thread::sleep(moment);
                self.server.crash()?;
            }
            Trouble::KillBackend => {
                let one = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'host%'
                    ORDER BY random() LIMIT 1";
                let Ok(pid) = ask(&self.server, one).unwrap_or_default().parse() else {
                    return Ok(false);
                };
                return Ok(kill("-KILL", pid).is_ok());
            }
            Trouble::KillErasingBackend => {
                let Some((pid, _)) = self.erasing()? else { return Ok(false) };
                return Ok(kill("-KILL", pid).is_ok());
            }
            Trouble::Terminate => {
                let all = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                      WHERE application_name LIKE 'host%'";
                return Ok(ask(&self.server, all).is_ok());
            }
            Trouble::FullDisk => {
                let Some(disk) = &self.disk else { return Ok(false) };
                let path = disk.folder.path().join("filler");
                let mut file = std::fs::File::create(&path)?;
                // It ends with the error that the disk is full.
                let _ = std::io::copy(&mut std::io::repeat(0), &mut file);
                std::thread::sleep(long / 4);
                drop(file);
                std::fs::remove_file(path)?;
            }
            Trouble::Deadlock => {
                // It waits longest, so that it is not the one that the server gives up.
                let locks = format!(
                    "BEGIN; SET LOCAL deadlock_timeout = '30s'; SET LOCAL search_path TO {CROWD};
                     SELECT count(*) FROM (SELECT 1 FROM context_block FOR UPDATE) AS locked;
                     SELECT pg_sleep(0.4);
                     SELECT count(*) FROM (SELECT 1 FROM session FOR UPDATE) AS locked; COMMIT"
                );
                return Ok(ask(&self.server, &locks).is_ok());
            }
        }
        Ok(true)
    }

    fn kill(&mut self, at: usize) -> Result<()> {
        let (host, mut worker) = self.hosts.swap_remove(at);
        worker.kill()?;
        let worker = self.start(host)?;
        self.hosts.push((host, worker));
        Ok(())
    }

    /// Waits until a host erases; returns the process of the server, and the name of the host.
    fn erasing(&self) -> Result<Option<(u32, String)>> {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(5) {
            let found = ask(
                &self.server,
                "SELECT pid || ' ' || application_name FROM pg_stat_activity
                  WHERE application_name LIKE 'host%' AND state = 'active'
                    AND (query LIKE 'VACUUM%' OR query LIKE '%REINDEX%' OR query LIKE 'DELETE%')
                  LIMIT 1",
            )
            // It recovers from the trouble before.
            .unwrap_or_default();
            if let Some((pid, host)) = found.split_once(' ') {
                return Ok(Some((pid.parse()?, host.to_owned())));
            }
        }
        Ok(None)
    }

    fn start(&mut self, host: u32) -> Result<Worker> {
        let seed = self.rng.u32(..);
        let [people, crowd] = [SOAK, CROWD].map(|schema| {
            let url = match &self.network {
                Some(_) => Network::url(host, &self.server),
                None => self.server.url("talktree"),
            };
            format!("{url}schema={schema}&application_name=host{host}")
        });
        let program = self.args.program.clone().map_or_else(std::env::current_exe, Ok)?;
        let folder = self.folder.to_str().ok_or("the path is not UTF-8")?;
        let mut command = Vec::new();
        // Each program replaces the one before it: the process is the host's.
        if let Some(network) = &self.network {
            command.extend(["ip", "netns", "exec", &network.host(host)].map(str::to_owned));
        }
        if host == 1 && Path::new(FAKETIME).exists() {
            let clock = [format!("LD_PRELOAD={FAKETIME}"), "FAKETIME=-1h".to_owned()];
            command.push("env".to_owned());
            command.extend(clock.into_iter().chain(["FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned()]));
        }
        command.push(program.to_string_lossy().into_owned());
        let rest = [
            ("--seed", seed.to_string()),
            ("--folder", folder.to_owned()),
            ("--process", host.to_string()),
            ("--url", people),
            ("--crowd", crowd),
            ("--clients", self.args.clients.to_string()),
            ("--hosts", self.args.hosts.to_string()),
        ];
        command.push("host".to_owned());
        command.extend(rest.into_iter().flat_map(|(name, value)| [name.to_owned(), value]));
        command.extend(self.size.args());
        Worker::start(Some(Path::new("env")), command.iter().map(String::as_str))
    }

    fn check(self, report: &mut Report, seconds: f64) -> Result<()> {
        let Self { args, size, folder, server, happened, mut faults, .. } = self;
        let journals = (0..size.slots())
            .map(|slot| Journal::read(&path_of(folder, slot)))
            .collect::<Result<Vec<_>>>()?;
        let dump = folder.join("dump.sql");
        let store = Store::connect(&(server.url("talktree") + "schema=" + SOAK))?;
        let findings = check::run(store.clone(), &journals, || {
            server::dump(&server, SOAK, &dump)?;
            Ok(vec![dump.clone()])
        })?;
        // Nobody writes now, and nobody reads what an erasure removes. Its own mark in `leftover`, a number, goes last.
        ask(&server, "ALTER SYSTEM SET autovacuum = off")?;
        ask(&server, "SELECT pg_reload_conf()")?;
        server::wait_for_silence(&server)?;
        drop(SessionManager::builder(&store).build()?.erase_owner(name_of(0))?);
        let dead = format!(
            "CREATE EXTENSION IF NOT EXISTS pgstattuple;
             SELECT relname || ' ' || (pgstattuple(oid)).dead_tuple_count FROM pg_class
              WHERE relkind = 'r' AND relnamespace = '{SOAK}'::regnamespace AND relname <> 'leftover'
                AND (pgstattuple(oid)).dead_tuple_count > 0"
        );
        match ask(&server, &dead) {
            Ok(dead) if dead.is_empty() => report.fact("dead tuples after an erasure", 0),
            Ok(dead) => faults.push(format!("dead tuples are left after an erasure: {dead}")),
            Err(error) => report.fact("dead tuples after an erasure", error),
        }
        let store = Store::connect(&(server.url("talktree") + "schema=" + CROWD))?;
        let crowd = crowd::check(&store, folder, args.clients)?;
        faults.extend(store.verify(|_| {})?.damages.iter().map(|it| format!("crowd: {}", it.what)));

        let sum = |of: fn(&Journal) -> u64| journals.iter().map(of).sum::<u64>();
        let [messages, texts, usages] = crowd.acknowledged;
        let acknowledged = sum(|journal| journal.acknowledged);
        report.fact("messages acknowledged", acknowledged);
        report
            .fact("of the crowd", format!("{messages}, {texts} texts of a block, {usages} usages"));
        let unknown = sum(Journal::unknown);
        report.fact("not acknowledged", format!("{unknown}, {} of the crowd", crowd.unknown));
        report
            .fact("a second", format!("{:.0}", (acknowledged + messages as u64) as f64 / seconds));
        report.fact("messages at the end", findings.messages);
        report.fact("summaries at the end", findings.summaries);
        report.fact("erasures", sum(|journal| journal.erasures));
        for (trouble, count) in TROUBLES.iter().zip(happened) {
            report.fact(format!("{trouble:?}"), count);
        }
        for what in
            ["deadlock detected", "could not serialize", "No space left", "PANIC", "redo done"]
        {
            report.fact(format!("the server said: {what}"), server::said(&server, what)?);
        }
        report.fact("clock an hour behind", Path::new(FAKETIME).exists());
        faults.extend(journals.iter().flat_map(|journal| journal.faults.clone()));
        faults.extend(findings.faults);
        faults.extend(crowd.faults);
        report.fact("faults found", faults.len());
        let mut replay = format!("just torture hosts --seed {}", report.seed());
        replay.push_str(&match args.quick {
            true => " --quick".to_owned(),
            false => format!(
                " --hosts {} --messages {} --clients {} --troubles {}",
                args.hosts, args.messages, args.clients, args.troubles
            ),
        });
        for fault in faults {
            report.failure(fault, &replay);
        }
        Ok(())
    }
}
