//! Sessions as a whole: making, tagging, ending, the trash, forks, owners, keys and usage.

use crate::common::{Outcome, Rig, text};
use serde_json::{Value, json};
use talktree::{Author, Cost, Message, SessionDetails, SessionManager, Store, Usage};

/// Returns the ids of `sessions` or `trash list`.
fn ids(rig: &Rig, args: &[&str]) -> Vec<String> {
    let field = |row: &Value| row["id"].as_str().unwrap().to_owned();
    rig.json(args).iter().map(field).collect()
}

#[test]
fn new_creates_a_session_and_a_store() {
    let rig = Rig::empty();
    let answer = rig.run(["new", "Deployment", "--id", "s", "--owner", "ann", "--tag", "work"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (0, "s  Deployment\n"));
    assert!(answer.stderr.contains("created a new store"), "{answer:?}");
    let listed = &rig.json(["sessions"])[0];
    assert_eq!((&listed["owner"], &listed["tags"]), (&json!("ann"), &json!(["work"])));
    assert!(rig.fails(2, ["new", "--id", "s"]).contains("already has a session"));
    rig.fails(2, ["new", ""]);
    rig.ok(["new"]);
    assert_eq!(rig.json(["sessions"]).len(), 2);
}

#[test]
fn tags_are_added_listed_and_removed() {
    let rig = Rig::toured();
    assert_eq!(rig.ok(["tag", "tour"]), "tour (A trip to Jena): no tags\n");
    assert_eq!(rig.ok(["tag", "tour", "b", "a"]), "tour (A trip to Jena): a, b\n");
    assert_eq!(ids(&rig, &["sessions", "--tag", "a"]), ["tour"]);
    assert_eq!(rig.ok(["tag", "tour", "c", "--remove", "a"]), "tour (A trip to Jena): b, c\n");
    rig.fails(2, ["tag", "tour", ""]);
}

#[test]
fn a_session_is_pinned_and_ended() {
    let rig = Rig::toured();
    rig.ok(["pin", "tour"]);
    assert_eq!(ids(&rig, &["sessions", "--pinned"]), ["tour"]);
    rig.ok(["pin", "tour", "--remove"]);
    assert_eq!(ids(&rig, &["sessions", "--pinned"]), [""; 0]);

    assert_eq!(rig.ok(["end", "tour", "over"]), "tour (A trip to Jena): ended: over\n");
    assert_eq!(ids(&rig, &["sessions", "--state", "ended"]), ["tour"]);
    assert_eq!(rig.ok(["end", "tour", "--reopen"]), "tour (A trip to Jena): open\n");
    rig.fails(2, ["end", "tour", "over", "--reopen"]);
}

#[test]
fn a_session_goes_to_the_trash_and_comes_back() {
    let rig = Rig::toured();
    let answer = rig.run(["rm", "tour"]);
    assert_eq!(answer.stdout, "session tour (A trip to Jena) put into the trash\n");
    assert_eq!(answer.stderr, "talktree: `talktree restore tour` takes it out of the trash\n");
    assert_eq!(ids(&rig, &["sessions"]), [""; 0]);
    assert_eq!(ids(&rig, &["trash", "list"]), ["tour"]);
    assert!(rig.ok(["trash", "list"]).contains("A trip to Jena"));
    // It can still be read by its id, and not be written.
    assert!(rig.ok(["log", "tour"]).contains("We travel"));
    let told = rig.fails(2, ["rename", "tour", "x"]);
    assert!(told.contains("in the trash") && told.contains("talktree restore tour"), "{told}");
    assert_eq!(rig.ok(["restore", "A trip to Jena"]), "session tour (A trip to Jena) restored\n");
    assert_eq!(ids(&rig, &["sessions"]), ["tour"]);
    assert!(rig.fails(1, ["restore", "tour"]).contains("talktree trash list"));
}

/// `trash list` shows a part of an id; `tag`, `rename` and others said that no session has it.
#[test]
fn a_session_in_the_trash_is_found_by_its_short_id() {
    let rig = Rig::empty();
    let id = "7f3a0c12-1111-4222-8333-444455556666";
    rig.ok(["new", "A talk", "--id", id]);
    rig.ok(["rm", id]);
    let listed = rig.ok(["trash", "list"]);
    assert!(listed.contains("\n55556666  "), "{listed}");
    for arguments in [
        &["tag", "55556666", "x"][..],
        &["rename", "55556666", "x"],
        &["pin", "7f3a0c12"],
        &["end", "A talk"],
        &["context", "set", "7f3a0c12", "memory", "x"],
    ] {
        let told = rig.fails(2, arguments);
        assert!(told.contains(&format!("talktree restore {id}")), "{arguments:?} {told}");
    }
    assert_eq!(rig.json(["tag", "7f3a0c12"])[0]["session"], id);
    assert_eq!(rig.ok(["log", "7f3a0c12"]), "");
}

/// Both were said to fit, also the id of one that was restored already.
#[test]
fn restore_takes_a_whole_id_before_the_start_of_another() {
    let rig = Rig::empty();
    for id in ["x1", "x10"] {
        rig.ok(["new", "--id", id]);
        rig.ok(["rm", id]);
    }
    rig.ok(["restore", "x1"]);
    let told = rig.fails(1, ["restore", "x1"]);
    assert!(told.contains("session \"x1\" is not in the trash"), "{told}");
    assert_eq!(ids(&rig, &["trash", "list"]), ["x10"]);
}

#[test]
fn a_name_means_the_session_that_is_not_in_the_trash() {
    let rig = Rig::empty();
    rig.ok(["new", "Deployment", "--id", "11111111-old"]);
    rig.ok(["rm", "11111111-old"]);
    rig.ok(["new", "Deployment", "--id", "22222222-new"]);
    assert_eq!(rig.json(["tag", "Deployment"])[0]["session"], "22222222-new");
    assert_eq!(rig.json(["restore", "Deployment"])[0]["session"], "11111111-old");
    rig.fails(2, ["tag", "Deployment"]);
}

#[test]
fn a_session_is_removed_for_good_on_demand() {
    let rig = Rig::toured();
    assert!(
        rig.fails(2, ["rm", "tour", "--forever"]).contains("pass --yes to delete session tour")
    );
    rig.fails(2, ["rm", "tour", "ask", "--forever"]);
    // A session in the trash is found, too, by its name.
    rig.ok(["rm", "tour"]);
    let removed = rig.ok(["rm", "--name", "A trip to Jena", "--forever", "--yes"]);
    assert_eq!(removed, "session tour (A trip to Jena) removed for good\n");
    assert_eq!(ids(&rig, &["trash", "list"]), [""; 0]);
    rig.fails(1, ["log", "tour"]);
}

#[test]
fn the_trash_is_emptied() {
    let rig = Rig::toured();
    for id in ["a", "b"] {
        rig.ok(["new", "--id", id]);
    }
    rig.ok(["pin", "b"]);
    for id in ["tour", "a", "b"] {
        rig.ok(["rm", id]);
    }
    assert!(rig.fails(2, ["trash", "empty"]).contains("pass --yes to remove 2 sessions"));
    let none = &rig.json(["trash", "empty", "--older-than", "1d"])[0];
    assert_eq!((&none["sessions"], &none["left"]), (&json!(0), &json!(3)));
    rig.fails(2, ["trash", "empty", "--older-than", "soon"]);
    let answer = rig.run(["trash", "empty", "--yes"]);
    assert!(answer.stdout.starts_with("2 sessions removed: 10 messages, "), "{answer:?}");
    assert!(
        answer.stderr.contains("left in the trash: 1 session, which is pinned or has not"),
        "{answer:?}"
    );
    assert_eq!(ids(&rig, &["trash", "list"]), ["b"]);
}

#[test]
fn lineage_shows_forks_up_and_down() {
    let rig = Rig::toured();
    let fork = |of: &str, name: &str| {
        rig.json(["fork", of, "ask", name])[0]["session"].as_str().unwrap().to_owned()
    };
    let one = fork("tour", "One");
    let two = fork(&one, "Two");
    let three = fork(&two, "Three");
    let other = fork(&two, "Other");
    rig.ok(["rm", &other]);
    let rows = |args: &[&str]| -> Vec<(String, u64)> {
        let rows = rig.json(args);
        let row = |row: &Value| {
            (row["session"].as_str().unwrap().to_owned(), row["depth"].as_u64().unwrap())
        };
        rows.iter().map(row).collect()
    };
    let all = |ids: &[(&str, u64)]| -> Vec<(String, u64)> {
        ids.iter().map(|(id, depth)| ((*id).to_owned(), *depth)).collect()
    };
    assert_eq!(
        rows(&["lineage", &two]),
        all(&[("tour", 0), (&one, 1), (&two, 2), (&three, 3), (&other, 3)])
    );
    let printed = rig.ok(["lineage", "Two"]);
    assert!(printed.starts_with("tour  A trip to Jena\n"), "{printed}");
    let end = |id: &str| id[id.len() - 8..].to_owned();
    let line = format!("\n    * {}  Two  at ask\n", end(&two));
    assert!(printed.contains(&line), "{printed}");
    let line = format!("\n      {}  Other  in the trash\n", end(&other));
    assert!(printed.contains(&line), "{printed}");
    // An ancestor that was removed is still named.
    rig.ok(["rm", "tour", "--forever", "--yes"]);
    assert!(rig.ok(["lineage", "One"]).starts_with("tour  removed\n"));
}

/// A program may set any parent.
#[test]
fn lineage_ends_in_a_circle() -> Outcome {
    let rig = Rig::empty();
    let store = Store::open(rig.store())?;
    for (id, parent) in [("a", "b"), ("b", "a"), ("c", "c")] {
        let parent_session = Some(parent.into());
        let details = SessionDetails { parent_session, ..SessionDetails::default() };
        store.create_session_as(id, details)?;
    }
    drop(store);
    assert_eq!(rig.ok(["lineage", "a"]), "b\n  * a\n");
    assert_eq!(rig.ok(["lineage", "c"]), "* c\n");
    Ok(())
}

#[test]
fn owners_keys_and_usage_are_listed() -> Outcome {
    let rig = Rig::empty();
    let store = Store::open(rig.store())?;
    let bot = SessionManager::builder(&store).build()?;
    let usage = |model: &str, output| Usage {
        model: Some(model.to_owned()),
        input: 100,
        output,
        cost: Some(Cost { micros: 1_250_000, currency: "USD".to_owned() }),
        ..Usage::default()
    };
    for (owner, output) in [("ann", 5), ("bob", 7)] {
        let chat = bot.resume(format!("telegram:{owner}")).owner(owner).new_id(owner).open()?;
        chat.append(Message::assistant("4").with_usage(&usage("small", output)))?;
        chat.append(Message::assistant("5").with_usage(&usage("large", 1_000)))?;
    }
    bot.unbind("telegram:bob")?;
    drop((store, bot));

    let owners = rig.json(["owners"]);
    assert_eq!((&owners[0]["owner"], &owners[1]["messages"]), (&json!("ann"), &json!(2)));
    assert_eq!(rig.json(["owners", "--limit", "1"]).len(), 1);

    assert_eq!(rig.json(["bindings"]).len(), 2);
    assert_eq!(rig.json(["bindings", "--limit", "1"])[0]["key"], "telegram:bob");
    assert_eq!(rig.json(["bindings", "--open"])[0]["session"], "ann");
    assert_eq!(rig.json(["bindings", "telegram:bob"])[0]["end"], "unbound");
    assert_eq!(rig.json(["bindings", "--session", "ann"]).len(), 1);

    assert_eq!(rig.json(["usage"])[0]["output"], 2_012);
    assert_eq!(rig.json(["usage", "ann"])[0]["output"], 1_005);
    let by_model = rig.json(["usage", "--by", "model"]);
    assert_eq!((&by_model[0]["group"], &by_model[1]["output"]), (&json!("large"), &json!(12)));
    let table = rig.ok(["usage", "--by", "owner"]);
    assert!(table.lines().nth(1).unwrap_or_default().ends_with("2.50 USD"), "{table}");
    assert_eq!(rig.json(["usage", "--owner", "bob", "--model", "small"])[0]["output"], 7);
    assert_eq!(rig.json(["usage", "--since", "1d"]).len(), 1);
    let none = rig.run(["usage", "--before", "2020"]);
    assert_eq!((none.code, none.stderr.as_str()), (0, "talktree: no usage is stored\n"));
    rig.fails(2, ["usage", "--after", "someday"]);
    rig.fails(2, ["usage", "--by", "colour"]);
    rig.fails(1, ["usage", "nobody"]);
    Ok(())
}

/// Writes a file of rules.
fn rules(rig: &Rig, content: &str) -> String {
    text(&rig.file("rules.toml", content))
}

#[test]
fn retention_discards_what_its_dry_run_lists() {
    let rig = Rig::toured();
    for (id, tag) in [("a", "keep"), ("b", "old"), ("c", "old")] {
        rig.ok(["new", "--id", id, "--tag", tag]);
    }
    rig.ok(["pin", "c"]);
    let file = rules(
        &rig,
        "empty_trash_after = \"30d\"\n[[rule]]\nname = \"old\"\ntag = \"old\"\n[[rule]]\nname = \"long\"\n\
         more_messages_than = 9\naction = \"remove\"\n",
    );
    let show = rig.ok(["retention", "show", &file]);
    assert_eq!(
        show,
        "old  with tag \"old\": put into the trash\nlong  of more than 9 messages: removed\ntrash  in the trash for 30d: removed\n"
    );
    let expected = rig.json(["retention", "run", &file, "--dry-run"]).remove(0);
    assert_eq!(
        (&expected["sessions"][0]["id"], &expected["sessions"][1]["id"]),
        (&json!("b"), &json!("tour"))
    );
    assert_eq!(expected["is_dry_run"], true);
    assert_eq!(ids(&rig, &["sessions"]).len(), 4);
    let printed = rig.ok(["retention", "run", &file, "--dry-run"]);
    assert!(printed.contains("long  1 session would be removed: 10 messages, "), "{printed}");

    let done = rig.json(["retention", "run", &file]);
    assert_eq!((done.len(), &done[0]["sessions"]), (1, &expected["sessions"]));
    assert_eq!(
        (ids(&rig, &["sessions"]).len(), ids(&rig, &["trash", "list"])),
        (2, vec!["b".to_owned()])
    );
    let again = rig.run(["retention", "run", &file]);
    assert_eq!((again.code, again.stderr.as_str()), (0, "talktree: no session meets a rule\n"));
}

#[test]
fn a_rule_that_all_sessions_meet_needs_a_flag() {
    let rig = Rig::toured();
    let file = rules(&rig, "[[rule]]\nname = \"idle ones\"\nidle_for = \"1d\"\n");
    for args in [&["retention", "run", &*file][..], &["retention", "run", &file, "--dry-run"]] {
        let why = rig.fails(2, args);
        assert!(
            why.contains("the only session that is not pinned meets retention rule \"idle ones\"")
                && why.contains("--all"),
            "{why}"
        );
    }
    rig.ok(["retention", "run", &file, "--all"]);
    assert_eq!(ids(&rig, &["trash", "list"]), ["tour"]);
}

#[test]
fn a_file_of_rules_is_read_strictly() {
    let rig = Rig::toured();
    for (content, why) in [
        (
            "[[rule]]\nname = \"r\"\nidel_for = \"1d\"\n",
            "unknown field `idel_for`, expected one of `name`, `owner`",
        ),
        (
            "empty_trash = \"1d\"\n",
            "unknown field `empty_trash`, expected `empty_trash_after` or `rule`",
        ),
        (
            "[[rule]]\nname = \"r\"\nidle_for = \"soon\"\n",
            "\"soon\" is no span of time such as 30d",
        ),
        ("[[rule]]\nname = \"r\"\nidle_for = 30\n", "expected a string"),
        (
            "[[rule]]\nname = \"r\"\naction = \"burn\"\n",
            "unknown variant `burn`, expected one of `trash`, `remove`, `erase`",
        ),
        ("[[rule]]\nname = \"r\"\nkeep_bytes = -1\n", "line 3"),
        ("[[rule]]\nidle_for = \"1d\"\n", "missing field `name`"),
        ("[[rule]]\nname = \"r\"\n", "retention rule \"r\" cannot be used: it has no condition"),
        ("[[rule]]\nname = \"r\"\nkeep_bytes = 1\nkeep_sessions = 1\n", "more than one of"),
        ("", "there is no rule"),
        ("rule = ", "line 1"),
    ] {
        let file = rules(&rig, content);
        for verb in ["run", "show"] {
            let told = rig.fails(5, ["retention", verb, &file]);
            assert!(told.contains(why) && told.contains("rules.toml"), "{content}: {told}");
        }
    }
    assert_eq!(ids(&rig, &["sessions"]), ["tour"]);
    rig.fails(5, ["retention", "show", "nowhere.toml"]);
}

#[test]
fn messages_are_tagged_and_found_by_tag() {
    let rig = Rig::toured();
    let tag =
        |rest: &[&'static str]| rig.ok(["tag", "tour", "--message", "ask"].iter().chain(rest));
    assert_eq!(tag(&[]), "tour (A trip to Jena): message ask: no tags\n");
    assert_eq!(tag(&["spam", "seen"]), "tour (A trip to Jena): message ask: seen, spam\n");
    let answer = &rig.json(["tag", "tour", "--message", "ask", "--remove", "seen"])[0];
    assert_eq!(answer, &json!({"session": "tour", "message": "ask", "tags": ["spam"]}));
    // The session itself has none.
    assert_eq!(rig.ok(["tag", "tour"]), "tour (A trip to Jena): no tags\n");
    assert_eq!(rig.json(["show", "tour", "ask"])[0]["tags"], json!(["spam"]));
    assert!(rig.ok(["show", "tour", "ask"]).contains("\ntags  spam\n"));
    let tagged: Vec<Value> = rig.json(["log", "tour", "--raw"]);
    assert_eq!(tagged.iter().filter(|message| message.get("tags").is_some()).count(), 1);
    let found = |args: &[&str]| -> Vec<String> {
        rig.json(args).iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(found(&["search", "--tag", "spam"]), ["ask"]);
    assert_eq!(found(&["search", "tag:spam"]), ["ask"]);
    rig.fails(1, ["search", "--tag", "spam", "--tag", "seen"]);
    rig.fails(2, ["search", "--tag", ""]);
    rig.fails(2, ["search"]);
}

#[test]
fn what_an_author_wrote_is_listed_exported_and_erased() -> Outcome {
    let rig = Rig::empty();
    let store = Store::open(rig.store())?;
    for (session, authors) in [("a", ["ann", "bob"]), ("b", ["bob", "bob"])] {
        let group = store.session(session)?;
        for author in authors {
            group.append(Message::user(format!("{author} said")).from(&Author::new(author)))?;
            let usage = Usage { output: 7, ..Usage::default() };
            group.append(Message::assistant("yes").with_usage(&usage))?;
        }
    }
    drop(store);
    assert_eq!(ids(&rig, &["sessions", "--author", "ann"]), ["a"]);
    assert_eq!(rig.json(["search", "said", "--author", "bob"]).len(), 3);
    assert_eq!(rig.json(["search", "--author", "ann"]).len(), 1);
    assert_eq!(
        rig.json(["search", "--role", "user", "--after", "2000", "--limit", "100"]).len(),
        rig.json(["search", "role:user", "--limit", "100"]).len()
    );
    assert_eq!(rig.json(["usage", "--author", "bob"])[0]["output"], 21);
    assert_eq!(rig.json(["usage", "--by", "author"])[1]["group"], "ann");
    let written = rig.ok(["export", "--author", "ann"]);
    assert!(written.contains("ann said") && !written.contains("bob said"), "{written}");
    let why = rig.fails(1, ["export", "--author", "an"]);
    assert!(why.contains("no data of author \"an\""), "{why}");
    rig.fails(2, ["export", "--author", "ann", "--format", "openai"]);

    // Only the whole id is taken where something is destroyed.
    let why = rig.fails(1, ["erase", "--author", "an", "--yes"]);
    assert!(why.contains("no data of author \"an\""), "{why}");
    let would = rig.ok(["erase", "--author", "ann", "--dry-run"]);
    assert_eq!(would, "would be erased: 1 message, 1 usage row\n");
    assert!(
        rig.ok(["erase", "--author", "ann", "--yes", "--prove"]).starts_with("erased: 1 message, ")
    );
    rig.fails(1, ["erase", "--author", "ann", "--yes"]);
    assert_eq!(rig.json(["search", "said"]).len(), 3);
    Ok(())
}
