//! Stores on a server: who may do what, encrypted connections, limits, versions; and what a server has no room for in an index.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use talktree::{Block, Erasure, Error, Json, Message, Store, TranscriptKey};

use crate::common::server::{Outcome, Server};

fn plain() -> Outcome<Option<Server>> {
    Server::start(&[], |_, _| Ok(()))
}

/// Runs SQL as the owner of everything, which succeeds.
fn sql(server: &Server, sql: &str) -> Outcome<String> {
    let output = server.sql("talktree", sql)?;
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn found(store: &Store, query: &str) -> talktree::Result<usize> {
    Ok(store.search(query).run()?.hits.len())
}

#[test]
fn of_hosts_that_begin_at_once_one_creates_the_store() -> Outcome {
    let Some(server) = plain()? else { return Ok(()) };
    let (url, together) = (server.url("talktree") + "schema=new", Barrier::new(8));
    std::thread::scope(|scope| {
        let hosts: Vec<_> = (0..8)
            .map(|host| {
                let (url, together) = (&url, &together);
                scope.spawn(move || -> talktree::Result<()> {
                    together.wait();
                    let store = Store::connect(url)?;
                    store.session("s")?.append(Message::user(format!("host {host}")))?;
                    Ok(())
                })
            })
            .collect();
        hosts.into_iter().try_for_each(|host| host.join().unwrap())
    })?;
    assert_eq!(Store::connect(&url)?.session("s")?.raw_history()?.len(), 8);
    assert_eq!(sql(&server, "SELECT count(*) FROM new.setting WHERE name = 'store'")?, "1");
    Ok(())
}

/// They waited for each other's locks, and for as many vacuums.
#[test]
fn hosts_that_erase_at_once_are_not_busy_and_share_vacuums() -> Outcome {
    let Some(server) = plain()? else { return Ok(()) };
    let url = server.url("talktree") + "schema=s";
    let store = Store::connect(&url)?;
    for number in 0..96 {
        store.session(format!("{number}"))?.append(Message::user(format!("secret {number}")))?;
    }
    std::thread::scope(|scope| {
        let hosts: Vec<_> = (0..16)
            .map(|host| {
                let url = &url;
                scope.spawn(move || -> talktree::Result<()> {
                    let store = Store::connect(url)?;
                    let own = (0..96).filter(|number| number % 16 == host);
                    own.map(|number| store.erase(&Erasure::session(format!("{number}"))))
                        .try_for_each(|erased| erased.map(drop))
                })
            })
            .collect();
        hosts.into_iter().try_for_each(|host| host.join().unwrap())
    })?;
    assert_eq!(sql(&server, "SELECT count(*) FROM s.leftover")?, "0");
    let vacuums = "SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'leftover'";
    let vacuums: u32 = sql(&server, vacuums)?.parse()?;
    assert!(vacuums < 96, "{vacuums} vacuums");
    Ok(())
}

#[test]
fn a_build_neither_opens_nor_writes_a_store_of_a_newer_version() -> Outcome {
    let Some(server) = plain()? else { return Ok(()) };
    let url = server.url("talktree") + "schema=s";
    let store = Store::connect(&url)?;
    let chat = store.session("s")?;
    chat.append(Message::user("hello"))?;
    sql(&server, "UPDATE s.setting SET value = '7' WHERE name = 'schema_version'")?;
    for error in [
        Store::connect(&url).map(drop).unwrap_err(),
        chat.append(Message::user("again")).map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, Error::NewerStore { found: 7, supported: 1 }), "{error}");
    }
    sql(&server, "UPDATE s.setting SET value = '1' WHERE name = 'schema_version'")?;
    chat.append(Message::user("again"))?;
    sql(&server, "UPDATE s.setting SET value = 'x' WHERE name = 'schema_version'")?;
    let error = Store::connect(&url).map(drop).unwrap_err().to_string();
    assert!(error.contains("tables are those of another program"), "{error}");
    Ok(())
}

#[test]
fn a_schema_with_tables_of_another_program_is_left_as_it_is() -> Outcome {
    let Some(server) = plain()? else { return Ok(()) };
    for (schema, table) in [
        ("a", "users (id INT)"),
        ("b", "message (id INT)"),
        ("c", "setting (id INT)"),
        ("d", "setting (name TEXT, value TEXT)"),
    ] {
        sql(&server, &format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.{table}"))?;
        let error = Store::connect(&format!("{}schema={schema}", server.url("talktree")));
        assert!(matches!(error, Err(Error::NotAStore { .. })), "{table}: {error:?}");
        let count = format!("SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'");
        assert_eq!(sql(&server, &count)?, "1");
    }
    Ok(())
}

/// The roles of `docs/postgres.md`.
#[test]
fn a_role_needs_no_more_than_it_does() -> Outcome {
    let Some(server) = plain()? else { return Ok(()) };
    sql(
        &server,
        "CREATE ROLE owner LOGIN; CREATE ROLE bot LOGIN; CREATE ROLE reader LOGIN; CREATE SCHEMA s AUTHORIZATION owner",
    )?;
    let connect = |role: &str| Store::connect(&(server.url(role) + "schema=s"));

    // Nobody else creates the tables. The owner may not create schemas.
    let refused = connect("bot").map(drop).unwrap_err().to_string();
    assert!(refused.contains("permission denied"), "{refused}");
    let owner = connect("owner")?;
    sql(
        &server,
        "GRANT USAGE ON SCHEMA s TO bot, reader;
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA s TO bot;
         GRANT SELECT ON ALL TABLES IN SCHEMA s TO reader",
    )?;

    let bot = connect("bot")?;
    let chat = bot.session("s")?;
    let first = chat.append(Message::user("the first deploy"))?.id;
    chat.append_all((0..100).map(|n| Message::user(format!("number {n}"))))?;
    assert_eq!(found(&bot, "deploy")?, 1);
    let fork = chat.fork(&first, "fork")?;
    bot.remove(fork.id())?;

    // What is not in the index yet is found by who may not write, too.
    chat.append(Message::user("the second deploy"))?;
    let reader = connect("reader")?;
    assert_eq!(found(&reader, "deploy")?, 2);
    assert_eq!(found(&reader, "deploy session:s")?, 2);
    assert_eq!(reader.session("s")?.history()?.len(), 102);
    let refused = reader.session("s")?.append(Message::user("no")).map(drop);
    assert!(matches!(refused, Err(Error::ReadOnly)), "{refused:?}");
    chat.append(Message::user("the third deploy"))?;
    assert_eq!(found(&reader, "deploy")?, 3);
    assert_eq!(found(&owner, "deploy")?, 3);

    // Only the owner vacuums.
    let refused = bot.erase(&Erasure::session("s")).map(drop).unwrap_err().to_string();
    assert!(refused.contains("the owner of the tables finishes it"), "{refused}");
    assert_eq!(found(&bot, "deploy")?, 0);
    assert!(owner.finish_erasure()? && !owner.has_unfinished_erasure()?);
    Ok(())
}

#[test]
fn a_write_waits_for_another_hosts_lock_as_long_as_it_was_told() -> Outcome {
    let Some(server) = plain()? else { return Ok(()) };
    let url = server.url("talktree") + "schema=s";
    let store = Store::options().busy_timeout(Duration::from_millis(300)).connect(&url)?;
    let chat = store.session("s")?;
    chat.append(Message::user("hello"))?;
    let other = server
        .psql("talktree")
        .args(["-c", "BEGIN; UPDATE s.session SET name = 'held'; SELECT pg_sleep(60)"])
        .stdout(Stdio::null())
        .spawn()?;
    let until = Instant::now() + Duration::from_secs(20);
    let is_held = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)' AND wait_event = 'PgSleep'";
    while sql(&server, is_held)? != "1" {
        assert!(Instant::now() < until);
    }
    let began = Instant::now();
    let refused = chat.append(Message::user("no")).map(drop);
    assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
    assert!((300..5_000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    // Reads do not wait, nor does another session.
    assert_eq!(chat.history()?.len(), 1);
    store.session("t")?.append(Message::user("yes"))?;
    let mut other = other;
    other.kill()?;
    other.wait()?;
    sql(
        &server,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)' AND pid <> pg_backend_pid()",
    )?;
    chat.append(Message::user("yes"))?;
    Ok(())
}

/// An entry of an index has at most 2 700 bytes, and a text of a server no byte 0.
#[test]
fn keys_of_any_bytes_and_length_are_found() -> Outcome {
    let Some(server) = plain()? else { return Ok(()) };
    let store = Store::connect(&(server.url("talktree") + "schema=s"))?;
    // What cannot be compressed.
    let long = |seed: u64| {
        let mut state = seed;
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{:08x}", state >> 32)
        };
        (0..5_000 / 8).map(next).collect::<String>()
    };
    let transcripts = store.transcripts();
    for seed in [1, 2] {
        let key = TranscriptKey::new(long(seed), long(seed + 10)).subpath(long(seed + 20));
        let entry = format!(r#"{{"type": "user", "uuid": "{}"}}"#, long(seed + 30));
        let entry = Json::parse(&entry)?;
        assert_eq!(transcripts.append(&key, std::slice::from_ref(&entry))?.added, 1);
        assert_eq!(transcripts.append(&key, &[entry])?.known, 1);
        assert_eq!(transcripts.load(&key)?.map(|all| all.len()), Some(1));
    }
    let chat = store.session("s")?;
    let message = chat.append(Message::user("hello"))?.id;
    let tags = ["a\u{0}b", "\u{1}", "\u{0}", "12:\u{1}\u{2}"];
    for tag in tags {
        chat.tag(&message, tag)?;
    }
    let mut sorted = tags;
    sorted.sort_unstable();
    assert_eq!(chat.tags(&message)?, sorted);
    Ok(())
}

/// A deleted row stays in its page until a vacuum, and its words stay in the index.
#[test]
fn what_is_erased_is_in_no_tuple_and_no_entry_of_the_index() -> Outcome {
    let Some(server) = plain()? else { return Ok(()) };
    let available = "SELECT count(*) FROM pg_available_extensions WHERE name = 'pageinspect'";
    if sql(&server, available)? == "0" {
        eprintln!("skipped: the extension pageinspect is not installed");
        return Ok(());
    }
    sql(&server, "CREATE EXTENSION pageinspect")?;
    let store = Store::connect(&(server.url("talktree") + "schema=s"))?;
    // A vacuum leaves the entries of few dead rows among many where they are.
    for n in 0..3_000 {
        store.session(format!("other {n}"))?.append(Message::user("kept"))?;
    }
    let chat = store.session("mk7q")?;
    let context = store.session_builder("mk7q").block("memory", Block::stored()).open()?;
    let mut secrets = Vec::new();
    for n in 0..200 {
        chat.append(Message::user(format!("kept {n}")))?;
        secrets.push(chat.append(Message::user(format!("mk7q{n} hello")))?.id);
        context.context().set("memory", &format!("mk7qmemory {n}"))?;
    }
    store.index(|_| {})?;
    for id in &secrets[..50] {
        chat.update(Message::user("mk7qlater").with_id(id.clone()))?;
    }
    assert_eq!(found(&store, "mk7q100")?, 1);
    // Each tuple, whether it is visible or dead; each page of an index of words; each entry of the others.
    let marks = |server: &Server| -> Outcome<(u64, u64)> {
        let tuples = "SELECT format($$SELECT count(*) FROM generate_series(0, pg_relation_size('s.%1$I') / 8192 - 1) AS page, heap_page_items(get_raw_page('s.%1$I', page::INT)) WHERE strpos(encode(t_data, 'escape'), 'mk7q') > 0$$, relname) FROM pg_class WHERE relnamespace = 's'::regnamespace AND relkind = 'r' \\gexec";
        let entries = "SELECT format($$SELECT count(*) FROM generate_series(0, pg_relation_size('s.%1$I') / 8192 - 1) AS page WHERE strpos(encode(get_raw_page('s.%1$I', page::INT), 'escape'), 'mk7q') > 0$$, relname) FROM pg_class WHERE relname IN ('search_terms', 'context_search_terms') \\gexec
            SELECT format($$SELECT count(*) FROM generate_series(1, pg_relation_size('s.%1$I') / 8192 - 1) AS page, bt_page_items('s.%1$I', page) WHERE strpos(data, '6d 6b 37 71') > 0$$, relname) FROM pg_class JOIN pg_am ON pg_am.oid = relam WHERE relnamespace = 's'::regnamespace AND amname = 'btree' \\gexec";
        let count = |query: &str| -> Outcome<u64> {
            let mut psql = server.psql("talktree");
            let mut psql = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
            psql.stdin.take().unwrap().write_all(query.as_bytes())?;
            let output = psql.wait_with_output()?;
            assert!(output.status.success());
            let counts = String::from_utf8(output.stdout)?;
            Ok(counts.lines().map(|count| count.parse::<u64>().unwrap()).sum())
        };
        Ok((count(tuples)?, count(entries)?))
    };
    let (tuples, entries) = marks(&server)?;
    assert!(tuples > 400 && entries > 0, "{tuples} {entries}");
    let erased = store.erase(&Erasure::messages(chat.id(), &secrets))?;
    assert!(erased.is_complete());
    let (tuples, _) = marks(&server)?;
    assert!(tuples > 0, "the text of the block stays");
    drop((chat, context));
    let _ = store.erase(&Erasure::session("mk7q"))?;
    assert_eq!(marks(&server)?, (0, 0));
    Ok(())
}

/// Each transaction may have another connection to the server, which others have used.
#[test]
fn behind_a_pooler_every_transaction_stands_alone() -> Outcome {
    let Some(pgbouncer) = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"]
        .iter()
        .find(|path| std::path::Path::new(path).exists())
    else {
        return Ok(());
    };
    let Some(server) = plain()? else { return Ok(()) };
    let (folder, port) = (server.folder.path(), server.port);
    let listen = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    std::fs::write(
        folder.join("pgbouncer.ini"),
        format!(
            "[databases]\npostgres = host={0} port={port} user=talktree\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {listen}
             auth_type = any\npool_mode = transaction\ndefault_pool_size = 2\nunix_socket_dir =\nlogfile = {0}/pgbouncer.log\n",
            folder.display()
        ),
    )?;
    let mut pooler = crate::common::server::as_user(std::path::Path::new(pgbouncer))
        .arg("-q")
        .arg(folder.join("pgbouncer.ini"))
        .stderr(Stdio::null())
        .spawn()?;
    let url = format!("postgresql://talktree@127.0.0.1:{listen}/postgres?schema=s");
    let until = Instant::now() + Duration::from_secs(10);
    let store = loop {
        match Store::connect(&url) {
            Ok(store) => break store,
            Err(error) if Instant::now() > until => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|client| {
                let store = &store;
                scope.spawn(move || -> talktree::Result<()> {
                    for n in 0..20 {
                        let chat = store.session(format!("{}", n % 5))?;
                        chat.append(Message::user(format!("client {client}, number {n}")))?;
                        assert!(!chat.history()?.is_empty());
                    }
                    Ok(())
                })
            })
            .collect();
        clients.into_iter().try_for_each(|client| client.join().unwrap())
    })?;
    assert_eq!(found(&store, "client")?.min(10), 10);
    assert_eq!(sql(&server, "SELECT count(*) FROM s.message")?, "160");
    assert_eq!(
        sql(&server, "SELECT count(*) < 4 FROM pg_stat_activity WHERE client_port = -1")?,
        "t"
    );
    let _ = Command::new("kill").arg(pooler.id().to_string()).status();
    pooler.wait()?;
    Ok(())
}

mod tls {
    use std::path::Path;

    use super::*;

    fn openssl(folder: &Path, args: &str) -> Outcome {
        let output = Command::new("openssl").args(args.split(' ')).current_dir(folder).output()?;
        assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Makes two issuers, and a certificate for `localhost` by the first one.
    fn certificates(folder: &Path, data: &Path) -> Outcome {
        for name in ["ours", "others"] {
            openssl(
                folder,
                &format!(
                    "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -out {name}.pem -days 2 -subj /CN={name}"
                ),
            )?;
        }
        openssl(
            folder,
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -out server.csr -subj /CN=localhost",
        )?;
        std::fs::write(folder.join("names"), "subjectAltName=DNS:localhost\n")?;
        openssl(
            folder,
            "x509 -req -in server.csr -CA ours.pem -CAkey ours.key -CAcreateserial -days 2 -extfile names -out server.pem",
        )?;
        keep_secret(&folder.join("server.key"))?;
        allow_encrypted(data)
    }

    /// Makes a certificate for `localhost` that signs itself.
    fn own_certificate(folder: &Path, data: &Path) -> Outcome {
        openssl(
            folder,
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -out server.pem -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost",
        )?;
        keep_secret(&folder.join("server.key"))?;
        allow_encrypted(data)
    }

    fn keep_secret(key: &Path) -> Outcome {
        let mut rights = std::fs::metadata(key)?.permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut rights, 0o600);
        Ok(std::fs::set_permissions(key, rights)?)
    }

    fn allow_encrypted(data: &Path) -> Outcome {
        // Over the network only with encryption.
        std::fs::write(
            data.join("pg_hba.conf"),
            "local all all trust\nhostssl all all all trust\n",
        )?;
        Ok(())
    }

    const SETTINGS: [&str; 3] =
        ["ssl=on", "ssl_cert_file=../server.pem", "ssl_key_file=../server.key"];

    /// `openssl req -x509` makes the certificate of an issuer.
    #[test]
    fn a_certificate_that_signs_itself_is_trusted_if_it_is_in_the_file() -> Outcome {
        if Command::new("openssl").arg("version").output().is_err() {
            return Ok(());
        }
        let Some(server) = Server::start(&SETTINGS, own_certificate)? else { return Ok(()) };
        let root = server.folder.path().join("server.pem");
        let connect = |host: &str, mode: &str| {
            Store::connect(&format!(
                "postgresql://talktree@{host}:{}/postgres?sslmode={mode}&sslrootcert={}",
                server.port,
                root.display()
            ))
        };
        connect("localhost", "verify-full")?;
        connect("127.0.0.1", "verify-ca")?;
        let error = connect("127.0.0.1", "verify-full").map(drop).unwrap_err().to_string();
        assert!(error.contains("not valid for name"), "{error}");
        Ok(())
    }

    #[test]
    fn a_server_is_checked_as_far_as_the_address_says() -> Outcome {
        if Command::new("openssl").arg("version").output().is_err() {
            return Ok(());
        }
        let Some(server) = Server::start(&SETTINGS, certificates)? else { return Ok(()) };
        let root =
            |name: &str| format!("sslrootcert={}", server.folder.path().join(name).display());
        let (ours, others) = (root("ours.pem"), root("others.pem"));
        let connect = |host: &str, parameters: &str| {
            let url = format!("postgresql://talktree@{host}:{}/postgres?{parameters}", server.port);
            let store = Store::connect(&url)?;
            store.session("s")?.append(Message::user("hello")).map(drop)
        };
        for (host, parameters) in [
            ("localhost", "schema=s"),
            ("localhost", "sslmode=prefer"),
            ("localhost", "sslmode=require"),
            ("localhost", &format!("sslmode=verify-full&{ours}")),
            ("localhost", &*ours),
            ("127.0.0.1", "sslmode=require"),
            ("127.0.0.1", &format!("sslmode=verify-ca&{ours}")),
            ("127.0.0.1", &format!("sslmode=require&{ours}")),
        ] {
            connect(host, parameters).map_err(|error| format!("{host} {parameters}: {error}"))?;
        }
        for (host, parameters, why) in [
            ("127.0.0.1", format!("sslmode=verify-full&{ours}"), "certificate not valid for name"),
            ("localhost", format!("sslmode=verify-full&{others}"), "invalid peer certificate"),
            ("localhost", format!("sslmode=verify-ca&{others}"), "invalid peer certificate"),
            ("localhost", format!("sslmode=require&{others}"), "invalid peer certificate"),
            ("localhost", "sslmode=verify-full".to_owned(), "invalid peer certificate"),
            ("localhost", "sslmode=disable".to_owned(), "no encryption"),
        ] {
            let error = connect(host, &parameters).unwrap_err().to_string();
            assert!(error.contains(why), "{host} {parameters}: {error}");
        }
        let encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE client_port > 0";
        assert_ne!(sql(&server, encrypted)?, "f");
        Ok(())
    }
}
