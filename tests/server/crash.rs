//! A server that crashes while several hosts write: what is acknowledged is there, once.
//!
//! After a crash a server gives the numbers of transactions that were lost to others. So its answer that a number was committed may be
//! about another transaction: an append that was lost was acknowledged.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::on_server;
use crate::proxy::client;
use talktree::{Message, MessageId, Result, Store, Usage};

/// A server of the test's own.
struct Server {
    /// The script that started it, and stops it.
    script: Child,
    /// The server that was started again.
    again: Option<Child>,
    url: String,
    folder: PathBuf,
}

impl Server {
    fn start() -> std::io::Result<Self> {
        let mut script = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.ci/postgres"))
            .args(["sh", "-c", "echo \"$TALKTREE_TEST_POSTGRES\"; cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        BufReader::new(script.stdout.take().expect("a pipe")).read_line(&mut url)?;
        let url = url.trim_end().to_owned();
        let folder = url.split(['?', '&']).find_map(|part| part.strip_prefix("host="));
        let folder = PathBuf::from(folder.expect("a socket"));
        Ok(Self { script, again: None, url, folder })
    }

    /// Kills the process of a connection: the server stops all the others and recovers.
    fn kill_one(&self) {
        let pid = "SELECT pid FROM pg_stat_activity
            WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1";
        let row = client(&self.url, async |client| client.query_opt(pid, &[]).await);
        if let Some(row) = row.expect("an answer") {
            kill("-KILL", row.get::<_, i32>(0));
        }
    }

    /// Restarts the server in the mode `immediate`, in which it must recover.
    fn restart(&mut self) -> std::io::Result<()> {
        let data = self.folder.join("data");
        let pid = std::fs::read_to_string(data.join("postmaster.pid"))?;
        let pid: i32 = pid.lines().next().and_then(|pid| pid.parse().ok()).expect("a number");
        let process = PathBuf::from(format!("/proc/{pid}"));
        let program = std::fs::read_link(process.join("exe"))?;
        let line = std::fs::read_to_string(process.join("cmdline"))?;
        let owner = std::fs::metadata(&data)?;
        kill("-QUIT", pid);
        match &mut self.again {
            Some(again) => drop(again.wait()?),
            None => {
                while process.join("exe").exists() {
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
        let again = Command::new(program)
            .args(line.trim_end_matches('\0').split('\0').skip(1))
            .current_dir(&self.folder)
            .uid(owner.uid())
            .gid(owner.gid())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        self.again = Some(again);
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(again) = &mut self.again {
            kill("-QUIT", again.id().cast_signed());
            let _ = again.wait();
        }
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}

fn kill(signal: &str, pid: i32) {
    let killed = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
}

/// What a host did.
#[derive(Debug, Default)]
struct Done {
    acknowledged: Vec<MessageId>,
    /// How many usages were acknowledged, and how many were not.
    usages: [u64; 2],
}

/// Appends and adds usage until it is told to stop. An append that fails is tried again.
fn write(store: &Store, name: &str, is_over: &AtomicBool) -> Result<Done> {
    let (chat, mut done) = (store.session(name)?, Done::default());
    while !is_over.load(Ordering::Relaxed) {
        let message = Message::user("hello");
        loop {
            match chat.append(message.clone()) {
                Ok(appended) => break done.acknowledged.push(appended.id),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
        let added = chat.add_usage(None, &Usage { input: 1, ..Usage::default() });
        done.usages[usize::from(added.is_err())] += 1;
    }
    Ok(done)
}

#[test]
fn what_is_acknowledged_survives_crashes_of_the_server() -> Result<()> {
    if on_server().is_none() {
        return Ok(());
    }
    let mut server = Server::start().expect("a server");
    let url = format!("{}schema=crash", server.url);
    let names = ["0", "1", "2", "3", "4", "5", "6", "7"];
    let stores = names.iter().map(|_| Store::connect(&url)).collect::<Result<Vec<_>>>()?;
    let is_over = AtomicBool::new(false);
    let is_over = &is_over;
    let done = thread::scope(|scope| {
        let hosts: Vec<_> = names
            .iter()
            .zip(&stores)
            .map(|(name, store)| scope.spawn(move || write(store, name, is_over)))
            .collect();
        for round in 0..8 {
            thread::sleep(Duration::from_millis(700));
            match round % 2 {
                0 => server.kill_one(),
                _ => server.restart().expect("a server that starts again"),
            }
        }
        thread::sleep(Duration::from_millis(700));
        is_over.store(true, Ordering::Relaxed);
        let hosts = hosts.into_iter().map(|host| host.join().expect("no panic"));
        hosts.collect::<Result<Vec<Done>>>()
    })?;
    let store = Store::connect(&url)?;
    for (name, done) in names.iter().zip(&done) {
        let chat = store.session(*name)?;
        let mut stored: BTreeMap<MessageId, usize> = BTreeMap::new();
        for message in chat.raw_history()? {
            *stored.entry(message.id).or_default() += 1;
        }
        for id in &done.acknowledged {
            assert_eq!(stored.remove(id), Some(1), "{id} of {name}");
        }
        assert!(stored.is_empty(), "{stored:?}");
        let [added, failed] = done.usages;
        let sum = chat.usage()?.input;
        assert!((added..=added + failed).contains(&sum), "{added} and {failed}: {sum}");
    }
    let count: usize = done.iter().map(|done| done.acknowledged.len()).sum();
    assert!(count > 500 && done.iter().any(|done| done.usages[1] > 0), "{done:?}");
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}
