//! A verb whose connection is lost, or that is interrupted, happened once or not at all, and its answer says which.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Scratch, on_server};
use crate::hosts::{Host, VERBS, run};
use crate::proxy::{Cut, Proxy, client};
use serde_json::json;
use talktree::{
    Error, Json, Label, Message, MessageId, Record, Result, SessionDetails, Store, TranscriptKey,
};
use tokio_postgres::Client;

#[test]
fn a_verb_whose_connection_is_cut_tells_whether_it_happened() -> Result<()> {
    let Some(proxy) = Proxy::start(on_server()).expect("a proxy") else { return Ok(()) };
    let (direct, cut_off) = (Store::connect(&proxy.direct)?, Store::connect(&proxy.url)?);
    let model = Scratch::in_file()?;
    let (mut round, mut wrong) = (0, Vec::new());
    // An erasure that is cut after its first commit has erased, and is an error.
    for verb in VERBS.into_iter().filter(|verb| verb.0 != "erase") {
        let host = Host::new(&model.store, &format!("{}-", verb.0), 1)?;
        host.prepare()?;
        let before = host.state()?;
        let answer = run(&host, verb)?;
        let after = host.state()?;
        for cut in [Cut::First, Cut::Commit, Cut::During, Cut::Answer, Cut::After] {
            round += 1;
            let round = format!("round{round}-");
            let there = Host::new(&direct, &round, 1)?;
            there.prepare()?;
            let host = Host::new(&cut_off, &round, 1)?;
            proxy.cut(cut);
            let seen = run(&host, verb);
            let state = there.state()?;
            let is_right = match &seen {
                // A verb that only read has no commit.
                Ok(seen) => {
                    let may_succeed = !matches!(cut, Cut::First | Cut::Commit) || !proxy.is_done();
                    *seen == answer && state == after && may_succeed
                }
                // What follows in the same verb may meet the connection that is lost. What was sent together with the commit may be
                // cut before it.
                Err(Error::Storage { .. }) => {
                    state == before || cut == Cut::After && state == after
                }
                Err(_) => false,
            };
            proxy.clear();
            if !is_right {
                let happened = (state == before, state == after);
                wrong.push(format!("{}, {cut:?}: {seen:?}, {happened:?}", verb.0));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Of such a host, one that is stopped or behind a balancer, the system takes connections.
#[test]
fn a_host_that_says_nothing_is_given_up_and_the_next_one_is_tried() -> Result<()> {
    let Some(url) = on_server() else { return Ok(()) };
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = silent.local_addr().expect("an address");
    let alone = format!("postgresql://talktree@{silent}/postgres?connect_timeout=1");
    let began = Instant::now();
    let error = Store::connect(&alone).map(drop).expect_err("nobody answers");
    assert!(matches!(error, Error::Storage { .. }), "{error}");
    assert!(error.to_string().contains(&format!("{silent}: no answer")), "{error}");
    let both = url.replacen("@/", &format!("@{silent},localhost/"), 1);
    Store::connect(&format!("{both}&connect_timeout=1"))?
        .session("s")?
        .append(Message::user("hello"))?;
    assert!(began.elapsed() < Duration::from_secs(60));
    Ok(())
}

#[test]
fn long_work_is_interrupted_though_the_server_says_nothing() -> Result<()> {
    let Some(proxy) = Proxy::start(on_server()).expect("a proxy") else { return Ok(()) };
    let store = Store::connect(&proxy.url)?;
    store.session("s")?.append(Message::user("hello"))?;
    let interrupt = store.interrupt_handle();
    proxy.cut(Cut::Silent);
    thread::scope(|scope| {
        let began = Instant::now();
        let verified = scope.spawn(|| store.verify(|_| {}).map(drop));
        while !proxy.is_done() {
            thread::sleep(Duration::from_millis(1));
        }
        interrupt.interrupt();
        let verified = verified.join().expect("no panic");
        assert!(matches!(verified, Err(Error::Interrupted)), "{verified:?}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    });
    assert_eq!(store.session("s")?.path_length()?, 1);
    Ok(())
}

/// Appends a message after the other until it is told to stop; returns the ids that were acknowledged, and how many failed.
fn append(store: &Store, name: &str, is_over: &AtomicBool) -> Result<(Vec<MessageId>, usize)> {
    let chat = store.session(name)?;
    let (mut acknowledged, mut failed) = (Vec::new(), 0);
    while !is_over.load(Ordering::Relaxed) {
        match chat.append(Message::user("hello")) {
            Ok(appended) => acknowledged.push(appended.id),
            Err(Error::Storage { .. }) => failed += 1,
            Err(error) => return Err(error),
        }
    }
    Ok((acknowledged, failed))
}

#[test]
fn what_the_server_terminates_is_stored_if_and_only_if_it_is_acknowledged() -> Result<()> {
    let Some(url) = on_server() else { return Ok(()) };
    let store = Store::connect(&url)?;
    let victims = Store::connect(&format!("{url}&application_name=victim"))?;
    let is_over = AtomicBool::new(false);
    let (is_over, victims) = (&is_over, &victims);
    thread::scope(|scope| {
        let threads = ["0", "1", "2", "3"]
            .map(|name| (name, scope.spawn(move || append(victims, name, is_over))));
        client(&url, async |client| {
            for _ in 0..150 {
                tokio::time::sleep(Duration::from_millis(10)).await;
                let terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE application_name = 'victim' ORDER BY random() LIMIT 1";
                client.batch_execute(terminate).await.expect("a connection of its own");
            }
        });
        is_over.store(true, Ordering::Relaxed);
        let mut failures = 0;
        for (name, thread) in threads {
            let (acknowledged, failed) = thread.join().expect("an append does not panic")?;
            failures += failed;
            let stored = store.session(name)?.raw_history()?.into_iter().map(|message| message.id);
            assert_eq!(stored.collect::<Vec<_>>(), acknowledged);
            assert_eq!(BTreeSet::from_iter(&acknowledged).len(), acknowledged.len());
        }
        assert!(failures > 20, "{failures} appends met the end of their connection");
        Ok(())
    })
}

/// Calls a function while an import waits for a lock, and returns what the import says.
fn import_that_waits(
    url: &str,
    meanwhile: impl AsyncFnOnce(&Store, &Client),
) -> Result<(Store, Result<()>)> {
    let store = Store::connect(url)?;
    let message = |id: &str| Record::Message {
        below: None,
        message: Message::user("hello").with_id(id),
        name: None,
    };
    let records = [
        Record::Session { id: "s".into(), details: SessionDetails::default() },
        message("a"),
        Record::Label(Label::new("here", "a".into())),
        message("b"),
    ];
    let schema = url.split("schema=").nth(1).expect("a schema");
    let lock =
        format!("SET search_path TO {schema}; BEGIN; LOCK TABLE {schema}.label IN SHARE MODE");
    let waiting =
        format!("SELECT FROM pg_locks WHERE NOT granted AND relation = '{schema}.label'::regclass");
    let imported = thread::scope(|scope| {
        let import = || store.import(records.into_iter().map(Ok)).map(drop);
        client(url, async |client| {
            client.batch_execute(&lock).await.expect("the lock");
            let import = scope.spawn(import);
            while client.query(&waiting, &[]).await.expect("an answer").is_empty() {
                assert!(!import.is_finished());
            }
            meanwhile(&store, &client).await;
            import.join().expect("no panic")
        })
    });
    Ok((store, imported))
}

/// The record whose statement was cancelled was left out as one that the store refuses, and the others were stored.
#[test]
fn an_import_that_is_interrupted_while_it_waits_stores_nothing() -> Result<()> {
    let Some(url) = on_server() else { return Ok(()) };
    let interrupt = async |store: &Store, _: &Client| store.interrupt_handle().interrupt();
    let (store, imported) = import_that_waits(&url, interrupt)?;
    assert!(matches!(imported, Err(Error::Interrupted)), "{imported:?}");
    assert!(store.sessions()?.is_empty());
    Ok(())
}

#[test]
fn an_import_that_the_server_gives_up_stores_nothing_and_may_be_called_again() -> Result<()> {
    let Some(url) = on_server() else { return Ok(()) };
    // Each waits for the other now. The import finds it out, because it asks first.
    let deadlock = async |_: &Store, client: &Client| {
        let lock = "SET LOCAL deadlock_timeout = '1min'; LOCK TABLE message";
        client.batch_execute(lock).await.expect("the import is given up");
    };
    let (store, imported) = import_that_waits(&url, deadlock)?;
    assert!(matches!(imported, Err(Error::Busy { .. })), "{imported:?}");
    assert!(store.sessions()?.is_empty());
    Ok(())
}

/// Entries without ids would be there twice if they were sent again.
#[test]
fn entries_whose_connection_is_cut_are_there_once_or_not_at_all() -> Result<()> {
    let Some(proxy) = Proxy::start(on_server()).expect("a proxy") else { return Ok(()) };
    let there = Store::connect(&proxy.direct)?.transcripts();
    for cut in [Cut::First, Cut::Commit, Cut::During, Cut::Answer, Cut::After] {
        let transcripts = Store::connect(&proxy.url)?.transcripts();
        let key = TranscriptKey::new("p", format!("{cut:?}"));
        let mut acknowledged = Vec::new();
        // The first append reads what is there, and the next ones know it.
        for number in 0..3 {
            let entry = Json::from(json!({ "number": number }));
            proxy.cut(cut);
            match transcripts.append(&key, std::slice::from_ref(&entry)) {
                Ok(appended) => acknowledged.extend(vec![entry; appended.added as usize]),
                Err(Error::Storage { .. }) => {}
                Err(error) => return Err(error),
            }
            proxy.clear();
            assert_eq!(there.load(&key)?.unwrap_or_default(), acknowledged, "{cut:?}");
        }
    }
    Ok(())
}
