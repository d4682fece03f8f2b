//! A store into which another program wrote: each command that meets such a row exits with 4 and names it, `verify` lists
//! it, and the others can be saved.

use crate::common::{Outcome, Rig, text};
use rusqlite::Connection;
use talktree::Store;

/// A store with the session `tour`, whose key is 1, and another one.
fn rig() -> Rig {
    let rig = Rig::toured();
    let other =
        "{\"format\":\"talktree\",\"version\":2}\n{\"type\":\"session\",\"id\":\"other\"}\n";
    let other = rig.file("other.jsonl", other);
    rig.ok(["import", other.to_str().unwrap()]);
    rig
}

fn write(rig: &Rig, sql: &str) -> Outcome {
    Ok(Connection::open(rig.store())?.execute_batch(sql)?)
}

#[test]
fn a_command_that_meets_a_foreign_row_exits_with_4_and_names_it() -> Outcome {
    for (sql, offender, commands) in [
        ("UPDATE session SET id = '' WHERE key = 1", "session key 1", &[&["sessions"][..], &["search", "planetarium"]][..]),
        (
            "UPDATE session SET id = printf('%.2000c', 'x') WHERE key = 1",
            "session key 1",
            &[&["sessions"], &["search", "planetarium"], &["rm", "xxx"]],
        ),
        (
            "UPDATE session SET deleted_at = 9223372036854775807 WHERE key = 1",
            "session \"tour\"",
            &[&["trash", "list"], &["restore", "tour"], &["trash", "empty", "--yes"]],
        ),
        (
            "INSERT INTO binding (key, session, bound_at) VALUES ('k', 1, 9223372036854775807)",
            "binding 1",
            &[&["bindings"]],
        ),
        (
            "INSERT INTO context_block (session, label) VALUES (1, '');
             INSERT INTO context_entry (address, block, key, present, version, searchable, changed_at, content)
             VALUES (1 << 32 | 1, 1, '', 1, 1, 0, 0, 'x')",
            "context block 1",
            &[&["context", "list", "tour"]],
        ),
    ] {
        let rig = rig();
        write(&rig, sql)?;
        for command in commands {
            let said = rig.fails(4, *command);
            assert!(said.contains("damaged") && said.contains(offender), "{command:?}: {said}");
        }
        let answer = rig.run(["verify"]);
        assert_eq!(answer.code, 4, "{sql}: {answer:?}");
        assert!(answer.stdout.contains(offender), "{sql}: {answer:?}");
    }
    Ok(())
}

/// The rescue failed because of the id of one session.
#[test]
fn the_readable_sessions_of_such_a_store_can_be_saved() -> Outcome {
    let rig = rig();
    write(&rig, "UPDATE session SET id = printf('%.2000c', 'x') WHERE key = 1")?;
    let saved = text(&rig.path("saved.jsonl"));
    let said = rig.fails(4, ["export", "--all", "--skip-damaged", "-o", &saved]);
    assert!(said.contains("is skipped: session key 1") && said.len() < 1000, "{said}");
    let new = text(&rig.path("new.db"));
    rig.ok(["--store", &new, "import", &saved]);
    assert!(rig.ok(["--store", &new, "sessions"]).contains("other"));
    Ok(())
}

#[test]
fn the_usage_of_impossible_rows_is_added_up() -> Outcome {
    let rig = rig();
    write(
        &rig,
        "INSERT INTO usage (session, input, used_at) VALUES (1, 9223372036854775807, 0), (1, 9223372036854775807, 0)",
    )?;
    assert!(rig.ok(["usage"]).contains("18446744073709551614"));
    let answer = rig.run(["verify"]);
    assert_eq!(answer.code, 4, "{answer:?}");
    assert!(answer.stdout.contains("row 2 of the usage"), "{answer:?}");
    Ok(())
}

#[test]
fn a_label_without_a_name_is_shown_and_removed() -> Outcome {
    let rig = rig();
    write(
        &rig,
        "INSERT INTO label (session, name, address) SELECT 1, '', max(address) FROM message",
    )?;
    assert!(rig.ok(["label", "tour", "--list"]).contains("\"\"  "));
    let answer = rig.run(["verify"]);
    assert!(answer.stdout.contains("remedy: remove the label"), "{answer:?}");
    rig.ok(["label", "tour", "--remove", ""]);
    rig.ok(["verify"]);
    Ok(())
}

#[test]
fn a_compaction_without_text_is_named_and_removed() -> Outcome {
    let rig = rig();
    let chat = Store::open(rig.store())?.session("tour")?;
    let ids: Vec<_> = chat.history()?.into_iter().map(|message| message.id).collect();
    let id = chat.add_compaction("They planned.", &ids[0], &ids[1])?.id.to_string();
    write(&rig, "UPDATE compaction SET summary = ''")?;
    assert!(rig.fails(4, ["compact", "tour", "--list"]).contains(&id));
    rig.ok(["compact", "tour", "--remove", &id]);
    rig.ok(["verify"]);
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_loop_of_links_is_named() -> Outcome {
    let rig = rig();
    std::os::unix::fs::symlink("loop2", rig.path("loop1"))?;
    std::os::unix::fs::symlink("loop1", rig.path("loop2"))?;
    let link = text(&rig.path("loop1"));
    for command in [&["sessions"][..], &["new", "x"]] {
        let said = rig.fails(3, ["--store", &link].iter().chain(command));
        assert!(said.contains("it is a loop of symbolic links"), "{said}");
    }
    Ok(())
}
