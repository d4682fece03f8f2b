//! What each command does and prints.
#![expect(clippy::disallowed_methods, reason = "only the command takes whole ids from people")]

use std::process::Command;

use crate::common::{Outcome, Rig, text};
use talktree::{Json, Store, TranscriptKey};

#[test]
fn tree_draws_branches_head_and_labels() {
    let rig = Rig::toured();
    let tree = rig.ok(["tree", "tour", "--labels"]);
    let lines: Vec<&str> = tree.lines().collect();
    assert_eq!(lines[0], "o user ask  We travel to Jena on Friday. What should we see?");
    assert!(lines[1].starts_with("├─o assistant answer-2"), "{tree}");
    assert!(lines[3].starts_with("│ o assistant how-far-answer"), "{tree}");
    assert!(lines[9].starts_with("* user thanks (head, plan)"), "{tree}");
    assert_eq!(lines[10], "plan  thanks");
    assert!(rig.ok(["tree", "tour", "--ascii"]).is_char_boundary(0));
    assert!(rig.ok(["tree", "tour", "--ascii"]).contains("|-o assistant answer-2"));
}

#[test]
fn log_prints_the_path_to_the_head_or_to_another_message() {
    let rig = Rig::toured();
    let log = rig.ok(["log", "tour"]);
    assert!(log.contains("user  2026-01-30T09:00:00Z  ask\n  We travel to Jena"), "{log}");
    assert!(log.contains("[calls opening_hours]"), "{log}");
    assert!(!log.contains("Jenzig"), "{log}");
    let other = rig.ok(["log", "tour", "--at", "how-far"]);
    assert!(other.contains("Jenzig") && !other.contains("planetarium"), "{other}");
    let newest = rig.ok(["log", "tour", "--limit", "1"]);
    assert!(newest.starts_with("user  2026-01-30T09:05:00Z  thanks  plan\n"), "{newest}");
}

#[test]
fn show_prints_a_message_with_its_parent_and_children() {
    let rig = Rig::toured();
    let shown = rig.ok(["show", "tour", "ask"]);
    assert!(shown.contains("children  answer-1 answer-2"), "{shown}");
    assert!(shown.contains("parent  none"), "{shown}");
    assert!(rig.ok(["show", "tour", "plan"]).contains("thanks  head, plan"));
    assert!(rig.ok(["show", "tour", "head"]).contains("museum on Saturday"));
}

#[test]
fn sessions_and_messages_are_found_by_id_part_of_id_name_and_label() {
    let rig = Rig::toured();
    for session in ["tour", "to", "A trip to Jena", "a TRIP", "jena", "-"] {
        assert!(rig.ok(["log", session]).contains("We travel to Jena"), "{session}");
    }
    assert!(rig.ok(["last"]).starts_with("tour (A trip to Jena)\n\nuser  "));
    // A name is a name for what is read, and never for what is destroyed.
    for args in [
        &["rm", "jena"][..],
        &["rm", "-"],
        &["erase", "jena", "--yes"],
        &["rm", "--name", "a trip"],
    ] {
        rig.fails(1, args);
    }
    rig.ok(["new", "A trip to Ulm"]);
    let printed = rig.fails(2, ["log", "trip"]);
    assert!(
        printed.contains("more than one session") && printed.contains("(A trip to Ulm)"),
        "{printed}"
    );
    assert!(rig.fails(1, ["log", "@x"]).contains("no session has the id, name or key"));
    for message in ["museum-answer", "museum-", "…um-answer", "um-answer"] {
        assert!(rig.ok(["show", "tour", message]).contains("光学博物馆"));
    }
}

#[test]
fn an_ambiguous_argument_is_an_error() {
    let rig = Rig::toured();
    let printed = rig.fails(2, ["show", "tour", "answer-"]);
    assert!(printed.contains("answer-1") && printed.contains("answer-2"), "{printed}");
    rig.ok(["fork", "tour", "look-up", "A trip to Jena"]);
    let printed = rig.fails(2, ["log", "A trip to Jena"]);
    assert!(
        printed.contains("more than one session") && printed.contains("tour (A trip to Jena)"),
        "{printed}"
    );
}

#[test]
fn checkout_moves_the_head_and_back() {
    let rig = Rig::toured();
    assert_eq!(
        rig.ok(["checkout", "tour", "how-far-answer"]),
        "tour (A trip to Jena): head is at how-far-answer\n"
    );
    assert!(rig.ok(["log", "tour"]).contains("Jenzig"));
    assert_eq!(
        rig.ok(["checkout", "tour", "--undo"]),
        "tour (A trip to Jena): head is at thanks\n"
    );
    assert_eq!(
        rig.ok(["checkout", "tour", "--redo"]),
        "tour (A trip to Jena): head is at how-far-answer\n"
    );
    rig.fails(1, ["checkout", "tour", "--redo"]);
    let start = rig.run(["checkout", "tour", "--start"]);
    assert_eq!(start.stderr, "talktree: `talktree checkout tour --undo` goes back\n");
    assert_eq!(rig.ok(["log", "tour"]), "");
}

/// Two whole ids did not fit a line, and those of one day began alike.
#[test]
fn a_confirmation_has_short_ids() -> Outcome {
    let rig = Rig::empty();
    let chat = Store::open(rig.store())?.session("019c1000-aaaa-7000-8000-111122223333")?;
    let ids = ["019c1000-aaaa-7000-8000-444455556666", "019c1000-aaaa-7000-8000-444477778888"];
    chat.append_all(ids.map(|id| talktree::Message::user("x").with_id(id)))?;
    assert_eq!(rig.ok(["checkout", "22223333", "55556666"]), "22223333: head is at 55556666\n");
    assert_eq!(
        rig.ok(["label", "22223333", "l", "head"]),
        "22223333: label l points at 55556666\n"
    );
    assert!(rig.ok(["log", "22223333"]).contains("  55556666  l\n"));
    // The whole id is for what destroys.
    assert!(
        rig.ok(["show", "22223333", "l"]).contains(&format!("\nid  {}\nparent  none\n", ids[0]))
    );
    assert!(
        rig.fails(1, ["rm", "22223333"])
            .contains("talktree rm 019c1000-aaaa-7000-8000-111122223333")
    );
    Ok(())
}

#[test]
fn labels_are_set_moved_listed_and_removed() {
    let rig = Rig::toured();
    let set = "tour (A trip to Jena): label best points at museum\n";
    assert_eq!(rig.ok(["label", "tour", "best", "museum"]), set);
    let moved = rig.run(["label", "tour", "best", "museum-answer"]);
    assert_eq!(moved.stderr, "talktree: `talktree label tour best museum` sets it as before\n");
    assert_eq!(rig.ok(["label", "tour", "--list"]), "best  museum-answer\nplan  thanks\n");
    let bare = "{\"format\":\"talktree\",\"version\":2}\n{\"type\":\"session\",\"id\":\"bare\"}\n";
    rig.ok(["import", &text(&rig.file("bare.jsonl", bare))]);
    let none = rig.run(["label", "bare", "--list"]);
    assert_eq!(
        (none.code, &*none.stdout, &*none.stderr),
        (0, "", "talktree: the session has no labels\n")
    );
    let removed = "tour (A trip to Jena): label plan removed\n";
    let answer = rig.run(["label", "tour", "--remove", "plan"]);
    let undo = "talktree: `talktree label tour plan thanks` sets it as before\n";
    assert_eq!((&*answer.stdout, &*answer.stderr), (removed, undo));
    assert_eq!(rig.ok(["label", "tour", "--list"]), "best  museum-answer\n");
    rig.fails(1, ["label", "tour", "--remove", "plan"]);
}

#[test]
fn head_and_message_ids_cannot_be_labels() {
    let rig = Rig::toured();
    let printed = rig.fails(2, ["label", "tour", "head", "ask"]);
    assert!(printed.contains("always means the head"), "{printed}");
    let printed = rig.fails(2, ["label", "tour", "ask", "museum"]);
    assert!(printed.contains("the id of a message"), "{printed}");
    assert!(rig.ok(["show", "tour", "head"]).contains("museum on Saturday"));
}

#[test]
fn head_means_the_head_even_if_a_message_has_that_id() {
    let rig = Rig::empty();
    let file = concat!(
        "{\"format\":\"talktree\",\"version\":2}\n{\"type\":\"session\",\"id\":\"s\"}\n",
        "{\"type\":\"message\",\"message\":{\"id\":\"head\",\"parent\":null,\"role\":\"user\",\"parts\":[]}}\n",
        "{\"type\":\"message\",\"message\":{\"id\":\"b\",\"parent\":\"head\",\"role\":\"user\",\"parts\":[]}}\n",
    );
    rig.ok(["import", &text(&rig.file("s.jsonl", file))]);
    rig.ok(["checkout", "s", "b"]);
    assert_eq!(rig.json(["show", "s", "head"])[0]["id"], "b");
}

#[test]
fn a_name_that_is_part_of_another_id_is_ambiguous() {
    let rig = Rig::toured();
    rig.ok(["fork", "tour", "look-up", "to"]);
    let printed = rig.fails(2, ["pin", "to"]);
    assert!(printed.contains("tour (A trip to Jena)") && printed.contains("(to)"), "{printed}");
    rig.ok(["rename", "tour", "x"]);
    rig.fails(2, ["log", "to"]);
    assert_eq!(rig.ok(["rm", "tour", "--yes"]), "session tour (x) put into the trash\n");
    rig.ok(["log", "to"]);
}

#[test]
fn a_compaction_is_added_listed_shown_and_removed() -> Outcome {
    let rig = Rig::toured();
    let before = rig.ok(["log", "tour"]);
    rig.ok([
        "compact",
        "tour",
        "--summary",
        "They greeted.",
        "--from",
        "answer-1",
        "--to",
        "look-up",
    ]);
    let log = rig.ok(["log", "tour"]);
    assert!(log.contains("[summary]\n  They greeted."), "{log}");
    assert!(!log.contains("book them online"), "{log}");
    assert_eq!(rig.ok(["log", "tour", "--raw"]), before);
    let tree = rig.ok(["tree", "tour"]);
    assert!(tree.contains("3 messages] They greeted."), "{tree}");

    let listed = rig.json(["compact", "tour", "--list"]);
    let id = listed[0]["id"].as_str().ok_or("no id")?;
    assert!(rig.ok(["show", "tour", &format!("compaction_{id}")]).contains("They greeted."));
    let why = rig.fails(1, ["compact", "tour", "--remove", &id[id.len() - 8..]]);
    assert!(why.ends_with(&format!("  talktree compact tour --remove {id}\n")), "{why}");
    rig.ok(["compact", "tour", "--remove", id]);
    assert_eq!(rig.ok(["log", "tour"]), before);
    assert_eq!(rig.json(["compact", "tour", "--list"]), Vec::<serde_json::Value>::new());
    Ok(())
}

#[test]
fn a_range_that_is_not_on_one_path_is_refused() {
    let rig = Rig::toured();
    let printed =
        rig.fails(2, ["compact", "tour", "--summary", "x", "--from", "how-far", "--to", "look-up"]);
    assert!(printed.contains("\"how-far\"") && printed.contains("\"look-up\""), "{printed}");
    rig.fails(2, ["compact", "tour", "--summary", " ", "--from", "ask", "--to", "look-up"]);
    rig.fails(2, ["compact", "tour", "--summary", "x", "--from", "ask"]);
    rig.fails(2, ["compact", "tour", "--summary", "x", "--to", "ask"]);
    rig.fails(1, ["compact", "tour", "--remove", "nobody"]);
}

#[test]
fn a_fork_is_a_new_session() {
    let rig = Rig::toured();
    rig.ok(["fork", "tour", "look-up", "What if"]);
    let log = rig.ok(["log", "What if"]);
    assert!(log.contains("book them online") && !log.contains("Wonderful"), "{log}");
    let renamed = rig.run(["rename", "What if", "Another day"]);
    assert!(renamed.stderr.ends_with(" 'What if'` names it as before\n"), "{renamed:?}");
    assert!(rig.ok(["sessions"]).contains("Another day"));
    rig.fails(1, ["log", "What if"]);
}

#[test]
fn rm_deletes_messages_branches_and_sessions() {
    let rig = Rig::toured();
    assert_eq!(rig.ok(["rm", "tour", "tickets"]), "tour (A trip to Jena): 1 message deleted\n");
    let log = rig.ok(["log", "tour"]);
    assert!(!log.contains("Do we need tickets") && log.contains("We travel"), "{log}");
    assert_eq!(
        rig.ok(["rm", "tour", "answer-2", "--branch", "--yes"]),
        "tour (A trip to Jena): 3 messages deleted\n"
    );

    let printed = rig.fails(2, ["rm", "tour", "ask", "--branch"]);
    assert!(printed.contains("--yes"), "{printed}");
    let printed = rig.fails(2, ["rm", "tour", "--forever"]);
    assert!(printed.contains("--yes"), "{printed}");
    rig.ok(["rm", "tour", "--forever", "--yes"]);
    rig.fails(1, ["log", "tour"]);
}

#[test]
fn search_marks_matches_in_any_language() {
    let rig = Rig::toured();
    let found = rig.ok(["search", "planetarium", "tickets"]);
    assert!(found.contains("Do we need tickets for the planetarium?"), "{found}");
    let found = rig.ok(["search", "博物馆", "--color", "always"]);
    assert!(found.contains("光学\u{1b}[1m\u{1b}[31m博物馆\u{1b}[0m很适合孩子"), "{found}");
}

#[test]
fn a_query_may_start_with_a_minus_after_two_dashes() {
    let rig = Rig::toured();
    let count = |args: &[&str]| rig.json(args).len();
    let some = count(&["search", "planetarium -tickets"]);
    assert!(some < count(&["search", "planetarium"]));
    let after = ["search", "--limit", "9", "--", "-tickets", "planetarium"];
    let found = rig.ok([&["--json"][..], &after].concat());
    assert_eq!(found.lines().count(), some);
    assert!(rig.run(["search", "--", "-blue"]).code < 2);
    assert!(rig.ok(["search", "--help"]).contains("talktree search -- -blue"));
}

#[test]
fn usage_shows_the_arguments_in_order() {
    let rig = Rig::toured();
    for (verb, usage) in [
        ("checkout", "talktree checkout [OPTIONS] <SESSION> <MESSAGE|--undo|--redo|--start>"),
        ("label", "talktree label [OPTIONS] <SESSION> <NAME> <MESSAGE>"),
        ("compact", "talktree compact [OPTIONS] <SESSION> --summarizer-cmd <COMMAND>"),
        ("export", "talktree export [OPTIONS] --all"),
    ] {
        let printed = rig.fails(2, [verb]);
        assert!(printed.contains(usage) && !printed.contains("--store"), "{printed}");
    }
}

#[test]
fn search_is_narrowed_by_options() {
    let rig = Rig::toured();
    let ids = |args: &[&str]| -> Vec<String> {
        let hits = rig.json([&["search", "friday"], args].concat());
        let mut ids: Vec<String> =
            hits.iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&[]), ["ask", "look-up", "thanks"]);
    assert_eq!(ids(&["--role", "user"]), ["ask", "thanks"]);
    assert_eq!(ids(&["--session", "tour", "--branch", "how-far"]), ["ask"]);
    assert_eq!(ids(&["--session", "tour", "--branch", "head", "--role", "assistant"]), ["look-up"]);
    assert_eq!(ids(&["--after", "2026-01-30T09:05:00Z"]), ["thanks"]);
    assert_eq!(ids(&["--before", "2026-01-31", "--limit", "1"]).len(), 1);
    rig.fails(1, ["search", "friday", "--after", "2026-01-31"]);
    assert!(rig.ok(["search", "opening 15:00", "--in", "tools"]).contains("look-up"));
    // An unclosed quote does not swallow the filters.
    assert_eq!(rig.json(["search", "\"on friday", "--role", "assistant"]).len(), 1);
}

/// A date was a full day or an instant, and a list of dates in a query another parser's.
#[test]
fn dates_are_written_as_people_write_them() {
    let rig = Rig::toured();
    let count = |args: &[&str]| rig.json([&["search", "friday"], args].concat()).len();
    let all = count(&[]);
    for args in [
        &["--after", "2026"][..],
        &["--after", "2026-01", "--before", "2026-02"],
        &["--after", "2026-01-30 08:00"],
        &["--after", "99y", "--before", "today"],
        &["after:2026-01"],
    ] {
        assert_eq!(count(args), all, "{args:?}");
    }
    for date in ["2026", "2026-01", "1000y"] {
        let printed = rig.run(["search", "friday", "--before", date]).stdout;
        assert_eq!(printed, "", "{date}");
    }
}

/// A search with no hit said no more than that.
#[test]
fn a_search_with_no_hit_says_what_would_have_some() {
    let rig = Rig::toured();
    let unrelated =
        "{\"format\":\"talktree\",\"version\":2}\n{\"type\":\"session\",\"id\":\"Unrelated\"}\n";
    rig.ok(["import", &text(&rig.file("unrelated.jsonl", unrelated))]);
    for (args, expected) in [
        (&["kilometres", "--role", "user"][..], "for any role: talktree search kilometres"),
        (&["friday", "--before", "2025"], "at any time: talktree search friday"),
        (
            &["kilometres", "--session", "tour", "--branch", "ask"],
            "in the whole session: talktree search --session tour kilometres",
        ),
        (
            &["planetarium", "--session", "Unrelated"],
            "in all sessions: talktree search planetarium",
        ),
        (&["planetarium -planetarium", "--sessions"], "talktree search --sessions planetarium"),
    ] {
        let told = rig.fails(1, [&["search"], args].concat());
        assert!(told.contains("nothing found; this finds something:"), "{args:?} {told}");
        assert!(told.contains(expected), "{args:?} {told}");
        // Each proposal is true.
        for line in told.lines().filter_map(|line| line.split_once(": talktree ")) {
            let shell = format!("{} {}", env!("CARGO_BIN_EXE_talktree"), line.1);
            let run =
                Command::new("sh").args(["-c", &shell]).env("TALKTREE_STORE", rig.store()).output();
            let run = run.unwrap();
            assert!(run.status.success() && !run.stdout.is_empty(), "{shell}");
        }
    }
    // A misspelled word is found at once, and the step is named; so is one that only a tool has.
    for (word, step) in
        [("planetarum", "searched for \"planetarium\" instead of \"planetarum\""), ("opening", "")]
    {
        let answer = rig.run(["search", word]);
        assert!(answer.code == 0 && answer.stderr.contains(step), "{word} {}", answer.stderr);
    }
    assert_eq!(rig.fails(1, ["search", "xylophone"]), "talktree: nothing found\n");
    // A program reads hits, and nothing else.
    let answer = rig.run(["search", "kilometres", "--role", "user", "--json"]);
    assert!(answer.stdout.is_empty() && answer.stderr.contains("for any role"), "{answer:?}");
    assert!(rig.json(["search", "planetarum"]).iter().all(|hit| hit["id"].is_string()));
}

/// The list showed when an import had written a session, in that order, and nothing for a session without a name.
#[test]
fn sessions_are_dated_by_their_last_message_and_all_have_a_name() {
    let rig = Rig::empty();
    let session = |id: &str, day: u32, text: &str| {
        let head = format!("{{\"type\":\"session\",\"id\":\"{id}\"}}\n");
        let role = if id == "silent" { "assistant" } else { "user" };
        let message = format!(
            "{{\"type\":\"message\",\"message\":{{\"id\":\"{id}1\",\"parent\":null,\"role\":\"{role}\",\"parts\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"created_at\":\"2025-03-{day:02}T10:00:00Z\"}}}}\n"
        );
        head + &message
    };
    let file = [
        "{\"format\":\"talktree\",\"version\":2}\n".to_owned(),
        session("old", 2, "\\n  What shall we do?\\nSecond line"),
        session("new", 9, "<command>x</command>"),
        session("silent", 5, "Welcome"),
    ];
    rig.ok(["import", &text(&rig.file("s.jsonl", file.concat()))]);
    rig.ok(["rename", "new", "A name"]);
    let listed = rig.ok(["sessions"]);
    let lines: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split("  ").filter(|cell| !cell.is_empty()).map(str::trim).collect())
        .collect();
    let rows: Vec<(&str, &str, &str)> =
        lines[1..].iter().map(|row| (row[0], row[2], row[row.len() - 1])).collect();
    assert_eq!(
        rows,
        [
            ("new", "2025-03-09T10:00:00Z", "A name"),
            ("silent", "2025-03-05T10:00:00Z", "\"Welcome\""),
            ("old", "2025-03-02T10:00:00Z", "\"What shall we do?\""),
        ],
        "{listed}"
    );
    let json = rig.json(["sessions", "--limit", "1"]);
    assert_eq!(json[0]["last_message_at"], "2025-03-09T10:00:00Z");
    assert!(rig.ok(["search", "shall"]).starts_with("old  \"What shall we do?\"  user"));
}

#[test]
fn search_marks_hits_on_other_branches_and_in_compactions() {
    let rig = Rig::toured();
    assert!(rig.ok(["search", "kilometres"]).contains("on another branch"));
    rig.ok(["compact", "tour", "--summary", "x", "--from", "answer-1", "--to", "look-up"]);
    assert!(rig.ok(["search", "tickets"]).contains("in compaction "));
}

#[test]
fn an_export_can_be_imported_into_another_store() {
    let rig = Rig::toured();
    let file = text(&rig.path("out.jsonl"));
    rig.ok(["export", "tour", "--output", &file]);
    let elsewhere = Rig::empty();
    let report = &elsewhere.json(["import", &file])[0];
    assert_eq!((&report["added"], &report["notes"]), (&10.into(), &serde_json::json!([])));
    assert_eq!(elsewhere.ok(["tree", "tour"]), rig.ok(["tree", "tour"]));
    assert_eq!(
        elsewhere.ok(["export", "--all"]).lines().count(),
        rig.ok(["export", "tour"]).lines().count()
    );
    rig.fails(2, ["export", "tour", "--output", &file]);
}

#[test]
fn an_export_can_be_markdown_or_openai() {
    let rig = Rig::toured();
    let page = rig.ok(["export", "tour", "--format", "markdown"]);
    assert!(page.contains("We travel to Jena") && !page.contains("Jenzig"), "{page}");
    let other = rig.ok(["export", "tour", "--format", "openai", "--at", "how-far"]);
    let messages: serde_json::Value = serde_json::from_str(&other).unwrap();
    assert_eq!(messages["messages"][2]["content"], "How far is the walk?");
}

#[test]
fn a_backup_is_a_store() {
    let rig = Rig::toured();
    let copy = text(&rig.path("copy.db"));
    rig.ok(["backup", &copy]);
    assert_eq!(rig.ok(["--store", &copy, "tree", "tour"]), rig.ok(["tree", "tour"]));
    let printed = rig.fails(2, ["backup", &copy]);
    assert!(printed.contains("already exists"), "{printed}");
}

#[test]
fn verify_reports_a_sound_store() {
    let rig = Rig::toured();
    assert_eq!(rig.ok(["verify"]), "10 messages checked: the store is sound\n");
    for repair in ["--rebuild-index", "--recount-tokens"] {
        assert_eq!(rig.ok(["verify", repair]), "10 messages checked: the store is sound\n");
    }
}

#[test]
fn each_shell_has_completions() {
    let rig = Rig::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = rig.ok(["completions", shell]);
        assert!(script.contains("talktree -- ") || shell == "powershell", "{shell}: {script}");
        assert!(script.contains("TALKTREE_COMPLETE"), "{shell}: {script}");
    }
    assert!(!rig.store().exists());
}

#[test]
fn erase_lists_what_goes_and_what_is_left_and_asks_first() {
    let rig = Rig::toured();
    rig.ok(["fork", "tour", "answer-1", "copy"]);
    let dry = rig.run(["erase", "tour", "ask", "--dry-run"]);
    assert!(dry.stdout.starts_with("would be erased: 1 message\n1 copy would be left in session "));
    let left = "talktree: 1 copy in other sessions will be left; --forks also erases them\n";
    assert_eq!(dry.stderr, left);
    assert!(rig.ok(["show", "tour", "ask"]).contains("We travel to Jena"));
    let printed = rig.fails(2, ["erase", "tour", "ask"]);
    assert!(printed.contains("pass --yes to erase 1 message"), "{printed}");

    let printed = rig.ok(["erase", "tour", "ask", "--yes", "--prove"]);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "erased: 1 message");
    assert!(lines[1].starts_with("1 copy left in session "), "{printed}");
    assert!(
        lines[2].starts_with("proof: all ") && lines[2].ends_with(" of 2 erased texts"),
        "{printed}"
    );
    let found =
        "found only in texts that stay and have the same words, as the copies and summaries above";
    assert!(lines[3].ends_with(found), "{printed}");
    rig.fails(1, ["show", "tour", "ask"]);
    assert!(
        rig.fails(2, ["erase", "copy", "--prove", "--dry-run"]).contains("cannot be used with")
    );

    let printed = rig.ok(["erase", "tour", "--yes", "--forks"]);
    assert!(printed.contains("session tour\n"), "{printed}");
    rig.fails(1, ["log", "tour"]);
    rig.ok(["rm", "--name", "copy", "--forever", "--yes"]);
    assert_eq!(rig.ok(["erase", "--deleted"]), "nothing of what was deleted is left\n");
    assert!(rig.fails(2, ["erase", "--deleted", "--finish"]).contains("cannot be used with"));
    assert_eq!(rig.ok(["erase", "--finish"]), "every erasure is complete\n");
    assert!(rig.fails(2, ["erase", "--finish", "--prove"]).contains("cannot be used with"));
    rig.fails(2, ["erase"]);
    rig.fails(2, ["erase", "tour", "--owner", "x"]);
}

#[test]
fn erase_lists_the_transcripts_of_an_owner() -> Outcome {
    let rig = Rig::empty();
    let store = Store::open(rig.store())?;
    let key = TranscriptKey::new("-home-ann", "s1").subpath("subagents/agent-1");
    let entry = Json::parse(r#"{"type":"user","text":"The vault opens with 7-1-9-4."}"#)?;
    store.transcripts().owned_by("ann").append(&key, &[entry])?;
    drop(store);
    let shown = "1 transcript, 1 transcript entry\ntranscript -home-ann s1 subagents/agent-1\n";
    let printed = rig.ok(["erase", "--owner", "ann", "--dry-run"]);
    assert_eq!(printed, format!("would be erased: {shown}"));
    let printed = rig.ok(["erase", "--owner", "ann", "--yes", "--prove"]);
    assert!(printed.starts_with(&format!("erased: {shown}proof: all ")), "{printed}");
    let left = rig.fails(1, ["erase", "--owner", "ann", "--dry-run"]);
    assert_eq!(left, "talktree: the store has no data of owner \"ann\"\n");
    Ok(())
}

#[test]
fn erase_says_how_to_erase_the_copies_that_are_left() {
    let rig = Rig::toured();
    rig.ok(["fork", "tour", "answer-1", "copy"]);
    let dry = &rig.json(["erase", "tour", "--dry-run"])[0];
    let copies = &dry["copies_left"][0];
    assert_eq!(copies["messages"], copies["ids"].as_array().unwrap().len());
    let erased = rig.run(["erase", "tour", "--yes"]);
    // The session is gone, so only the fork can be named.
    let proposed = erased.stdout.lines().last().unwrap().trim();
    let words: Vec<&str> = proposed.split_whitespace().skip(1).collect();
    assert_eq!((words[0], words.len()), ("erase", 3), "{erased:?}");
    let printed = rig.ok([&words[..], &["--yes"]].concat());
    assert!(printed.starts_with(&format!("erased: {} messages", copies["messages"])), "{printed}");
    assert_eq!(rig.json(["log", "copy"]).len(), 0);
}

/// The summaries were listed without their sessions, and with an option that finds nothing after the erasure.
#[test]
fn erase_says_how_to_erase_the_summaries_that_are_left() -> Outcome {
    let rig = Rig::empty();
    let chat = Store::open(rig.store())?.session("src")?;
    chat.append_all(["a", "b", "c", "d"].map(|id| talktree::Message::user(id).with_id(id)))?;
    chat.add_compaction("the secret summary", &"a".into(), &"c".into())?;
    chat.fork(&"d".into(), "copy")?;
    drop(chat);
    let erased = rig.ok(["erase", "src", "b", "--forks", "--yes"]);
    let (_, proposed) = erased.split_once("the summaries can be erased with:\n").ok_or("none")?;
    assert_eq!(proposed.lines().count(), 3, "{erased}");
    for line in proposed.lines() {
        rig.ok(line.split_whitespace().skip(1));
    }
    assert!(!std::fs::read(rig.store())?.windows(18).any(|text| text == b"the secret summary"));
    Ok(())
}

/// A transcript of an agent has such an id if its own is taken.
#[test]
fn proposed_commands_run_for_ids_that_begin_with_a_minus() -> Outcome {
    let rig = Rig::empty();
    let chat = Store::open(rig.store())?.session("-home-ann/s1")?;
    chat.append_all(["a planetarium", "a museum"].map(talktree::Message::user))?;
    drop(chat);
    let found = rig.run(["search", "planetarium"]).stderr;
    let removed = rig.run(["rm", "--yes", "--", "-home-ann/s1"]).stderr;
    for (printed, proposed) in [(removed, "restore"), (found, "show")] {
        let (_, command) = printed.split_once("talktree ").ok_or(printed.clone())?;
        let (_, command) = command.split_once(proposed).ok_or(command)?;
        let words = command.split_whitespace().map(|word| word.trim_end_matches('`'));
        let words: Vec<&str> = words.take_while(|word| *word != "takes").collect();
        rig.ok([&[proposed][..], &words].concat());
    }
    Ok(())
}

#[test]
fn the_same_erase_finishes_one_that_was_interrupted() -> Outcome {
    let rig = Rig::toured();
    let store = Store::open(rig.store())?;
    let long = store.session("long")?;
    long.append_all((0..1_000).map(|n| talktree::Message::user(format!("message {n}"))))?;
    store.rename(&"long".into(), "A long talk")?;
    let handle = store.interrupt_handle();
    let stopped = store.erase_with_progress(&talktree::Erasure::session("long"), |at| {
        if at.done >= 300 {
            handle.interrupt();
        }
    });
    assert!(stopped.is_err() && store.has_unfinished_erasure()?);
    drop((long, store));
    rig.fails(1, ["restore", "long"]);
    rig.fails(1, ["log", "long"]);
    let again = rig.run(["erase", "--name", "A long talk", "--yes", "--prove"]);
    assert!(again.code == 3 && again.stderr.contains("finished, but not proved"), "{again:?}");
    assert_eq!(again.stdout, "");
    assert!(
        again.stderr.contains("an erasure was interrupted, and is finished first"),
        "{again:?}"
    );
    rig.fails(1, ["erase", "--name", "A long talk", "--yes"]);
    rig.fails(1, ["erase", "long", "--yes"]);
    assert!(!Store::open(rig.store())?.has_unfinished_erasure()?);
    Ok(())
}

/// Returns all that a store holds.
fn everything(rig: &Rig) -> [String; 3] {
    let rows = "SELECT block, key, content FROM context_entry ORDER BY address";
    let texts = rusqlite::Connection::open(rig.store()).unwrap();
    let mut texts = texts.prepare(rows).unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok(format!("{:?}", row.get_ref(2)));
    let texts: Vec<String> = texts.query_map([], row).unwrap().map(Result::unwrap).collect();
    [rig.ok(["export", "--all"]), rig.ok(["trash", "list", "--json"]), texts.join("\n")]
}

/// Fills a store with session `x1` and another one, each with the messages a, m10, am1, m1, a compaction and a memory.
fn neighbours(rig: &Rig, other: &str, name: &str) -> Outcome {
    let store = Store::open(rig.store())?;
    for id in ["x1", other] {
        let chat = store.session_builder(id).block("memory", talktree::Block::stored()).open()?;
        let ids = ["a", "m10", "am1", "m1"];
        chat.append_all(ids.map(|id| talktree::Message::user("Hello").with_id(id)))?;
        chat.context().set("memory", "Likes coffee.")?;
        chat.add_compaction("short", &"m10".into(), &"am1".into())?;
    }
    store.rename(&other.into(), name)?;
    Ok(())
}

/// The same command, given again after its session or message was gone, went on with another one: whose id begins or ends so,
/// or whose name it is.
#[test]
fn a_command_that_destroys_finds_nothing_when_it_is_given_again() -> Outcome {
    for (other, name) in [("x10", "another"), ("0x1", "another"), ("other", "x1")] {
        for arguments in [
            "erase x1 --yes",
            "erase x1 m1 --yes",
            "erase x1 m1 --branch --yes",
            "erase x1 a..m1 --yes",
            "rm x1",
            "rm x1 --forever --yes",
            "rm x1 m1",
            "rm x1 m1 --branch --yes",
            "compact x1 --remove COMPACTION",
            "context rm x1 memory",
        ] {
            let rig = Rig::empty();
            neighbours(&rig, other, name)?;
            let id = Store::open(rig.store())?.session("x1")?.compactions()?[0].id.to_string();
            let arguments = arguments.replace("COMPACTION", &id);
            let arguments: Vec<&str> = arguments.split(' ').collect();
            rig.ok(&arguments);
            let left = everything(&rig);
            for _ in 0..2 {
                let why = rig.fails(1, &arguments);
                assert_eq!(everything(&rig), left, "{arguments:?} beside {other} ({name}): {why}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_command_that_destroys_answers_what_comes_near_with_what_to_type() -> Outcome {
    let rig = Rig::empty();
    neighbours(&rig, "telegram:4711", "A talk")?;
    Store::open(rig.store())?.session("x1")?.label("label", &"m10".into())?;
    let before = everything(&rig);
    for (arguments, typed) in [
        ("erase telegram:471 --forks --yes", "erase telegram:4711 --forks"),
        ("erase talk --yes", ""),
        ("erase x1 m --yes", "erase x1 m10"),
        ("erase x1 a..m --branch --yes", "erase x1 a..m10 --branch"),
        ("erase x1 a..head --yes", "erase x1 a..m1"),
        ("erase x1 a m1 head --yes", "erase x1 a m1 m1"),
        ("rm telegram:471", "rm telegram:4711"),
        ("rm …4711 m1", "rm telegram:4711 m1"),
        ("rm telegram:471 --forever --yes", "rm telegram:4711 --forever"),
        ("rm x1 label", "rm x1 m10"),
        ("rm x1 head", "rm x1 m1"),
        ("context rm x memory", "context rm x1 memory"),
        ("rm --name x1", ""),
        ("erase --name telegram:4711 --yes", ""),
    ] {
        let why = rig.fails(1, arguments.split(' '));
        let line = format!("\ntalktree:   talktree {typed}\n");
        assert!(
            if typed.is_empty() { !why.contains("type:") } else { why.contains(&line) },
            "{why}"
        );
    }
    assert_eq!(everything(&rig), before);
    // A name is not unique.
    rig.ok(["rename", "x1", "A talk"]);
    let why = rig.fails(2, ["rm", "--name", "A talk", "--forever", "--yes"]);
    for id in ["x1", "telegram:4711"] {
        assert!(why.contains(&format!("  talktree rm {id} --forever\n")), "{why}");
    }
    rig.ok(["rm", "x1", "--forever", "--yes"]);
    rig.ok(["rm", "--name", "A talk"]);
    assert_eq!(rig.json(["trash", "list"])[0]["id"], "telegram:4711");
    Ok(())
}

/// Once one is erased, the argument would mean the other.
#[test]
fn an_argument_that_is_a_message_and_a_range_is_refused() -> Outcome {
    let rig = Rig::empty();
    let chat = Store::open(rig.store())?.session("s")?;
    chat.append_all(["a", "b", "a..b"].map(|id| talktree::Message::user("x").with_id(id)))?;
    drop(chat);
    let why = rig.fails(2, ["erase", "s", "a..b", "--yes"]);
    assert!(why.contains("\"a..b\" is the id of a message, and also a range"), "{why}");
    rig.ok(["erase", "s", "a", "--yes"]);
    rig.ok(["erase", "s", "a..b", "--yes"]);
    assert_eq!(rig.json(["log", "s"])[0]["id"], "b");
    rig.fails(1, ["erase", "s", "a..b", "--yes"]);
    Ok(())
}

/// What is given finds nothing any more, or only a neighbour.
#[test]
fn an_erasure_that_was_interrupted_is_finished_before_anything_is_looked_up() -> Outcome {
    let rig = Rig::empty();
    neighbours(&rig, "x10", "x1")?;
    let store = Store::open(rig.store())?;
    store.session("z")?.append(talktree::Message::user("Hello"))?;
    let handle = store.interrupt_handle();
    let both = talktree::Erasure::session("x1").and(talktree::Erasure::session("z"));
    let stopped = store.erase_with_progress(&both, |_| {
        if store.session("x1").unwrap().info().unwrap().is_none() {
            handle.interrupt();
        }
    });
    assert!(stopped.is_err() && store.has_unfinished_erasure()?);
    drop(store);
    let left = everything(&rig)[0].clone();
    let answer = rig.run(["erase", "x1", "--yes"]);
    assert_eq!((answer.code, &*answer.stdout), (0, ""), "{answer:?}");
    assert!(answer.stderr.contains("are not listed"), "{answer:?}");
    assert!(!Store::open(rig.store())?.has_unfinished_erasure()?);
    rig.fails(1, ["erase", "x1", "--yes"]);
    assert_eq!(everything(&rig)[0], left);
    Ok(())
}

#[test]
fn show_prints_what_a_model_saw_and_how_sure_that_is() {
    let rig = Rig::toured();
    let told = rig.ok(["show", "tour", "head", "--seen"]);
    assert!(told.starts_with("reconstructed: "), "{told}");
    let rows = rig.json(["show", "tour", "head", "--seen"]);
    assert!(!rows.is_empty() && rows.iter().all(|row| row["seen"] == "reconstructed"), "{rows:?}");
}
