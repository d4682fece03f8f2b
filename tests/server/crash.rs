//! A server that crashes while several hosts write: what is acknowledged is there, once.
//!
//! After a crash a server gives the numbers of transactions that were lost to others. So its answer that a number was committed may be
//! about another transaction: an append that was lost was acknowledged.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::on_server;
use crate::common::server::Server;
use crate::proxy::client;
use talktree::{Message, MessageId, Result, Store, Usage};

/// Kills the process of a connection: the server stops all the others and recovers.
fn kill_one(server: &Server) {
    let pid = "SELECT pid FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1";
    let url = server.url("talktree");
    let row = client(&url, async |client| client.query_opt(pid, &[]).await);
    if let Some(row) = row.expect("an answer") {
        let pid = row.get::<_, i32>(0).to_string();
        let killed = Command::new("kill").args(["-KILL", &pid]).status();
        assert!(killed.is_ok_and(|status| status.success()));
    }
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
    let started = Server::start(&[], |_, _| Ok(())).expect("a server");
    let Some(mut server) = started else { return Ok(()) };
    let url = server.url("talktree") + "schema=crash";
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
                0 => kill_one(&server),
                _ => server.crash().expect("a server that starts again"),
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
