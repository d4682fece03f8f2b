//! A URL of PostgreSQL's in place of a file.

use talktree::Message;

use crate::common::context::feed;
use crate::common::{Outcome, Rig, text};

#[test]
fn a_url_needs_the_feature_and_its_password_is_not_shown() {
    let rig = Rig::empty();
    let url = "postgresql://bot:s3cret@127.0.0.1:1/chats?schema=x";
    let (code, why) = match cfg!(feature = "postgres") {
        true => (3, "error connecting to server"),
        false => (2, "the cargo feature `postgres`"),
    };
    for args in [
        &["sessions"][..],
        &["log", "x"],
        &["new", "a chat"],
        &["search", "x"],
        &["copy", "--to", url],
    ] {
        let said = match args[0] {
            "copy" => rig.fails(3, args),
            _ => rig.fails(code, [&["--store", url], args].concat()),
        };
        assert!(!said.contains("s3cret"), "{args:?}: {said}");
        assert!(args[0] == "copy" || said.contains(why), "{args:?}: {said}");
    }
}

#[test]
fn a_copy_is_equal_and_is_continued() -> Outcome {
    let rig = Rig::toured();
    let server =
        std::env::var("TALKTREE_TEST_POSTGRES").ok().filter(|_| cfg!(feature = "postgres"));
    let server = server.map(|server| format!("{server}schema=copy{}", std::process::id()));
    let from = text(&rig.store());
    // To a file, and to a server where there is one.
    for to in [Some(text(&rig.path("copied.db"))), server].into_iter().flatten() {
        let copy = ["copy", "--from", &from, "--to", &to];
        let printed = rig.json(copy);
        assert_eq!((&printed[0]["sessions"], &printed[0]["unchanged"]), (&1.into(), &0.into()));
        for read in [&["log", "tour"][..], &["tree", "tour", "--labels"]] {
            assert_eq!(rig.ok([&["--store", &to], read].concat()), rig.ok(read));
        }
        assert_eq!(
            rig.ok(copy),
            "0 sessions, 0 texts and 0 bindings copied; 1 session unchanged\n"
        );
        let there = talktree::Store::options().open_at(&to)?.session("tour")?;
        there.append(Message::user("Added there."))?;
        let said = rig.fails(5, copy);
        assert!(said.contains("session \"tour\" is another one there, or was changed"), "{said}");
    }
    Ok(())
}

#[test]
fn a_model_searches_a_store_on_a_server() -> Outcome {
    let server =
        std::env::var("TALKTREE_TEST_POSTGRES").ok().filter(|_| cfg!(feature = "postgres"));
    let Some(server) = server else { return Ok(()) };
    let (rig, url) = (Rig::empty(), format!("{server}schema=mcp{}", std::process::id()));
    talktree::Store::options()
        .open_at(&url)?
        .session("s")?
        .append(Message::user("We deploy on Friday."))?;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"deploy"}}}"#;
    let answer = feed(&rig, &["--store", &url, "mcp"], call);
    assert!(answer.stdout.contains("> We **deploy** on Friday."), "{answer:?}");
    Ok(())
}
