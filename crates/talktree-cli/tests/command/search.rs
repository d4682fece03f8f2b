//! What `talktree search` says besides the hits: why they are hits, where there are more, and how to read on.

use std::process::Command;

use crate::common::{Answer, Outcome, Rig, text};
use talktree::{Author, Message, Store};

/// A store of three conversations: the first has five messages on compaction, the others have one.
fn rig() -> Result<Rig, talktree::Error> {
    let rig = Rig::empty();
    let store = Store::open(rig.store())?;
    let chat = store.session("first")?;
    for number in 0..5 {
        chat.append(
            Message::user(format!("A compaction of part {number}")).with_id(format!("c{number}")),
        )?;
    }
    for id in ["second", "telegram:4711"] {
        store.session(id)?.append(Message::user("One compaction of everything"))?;
    }
    store.rename(&"second".into(), "Holiday plans")?;
    Ok(rig)
}

/// Runs a command that a line proposes, as a shell does.
fn proposed(rig: &Rig, line: &str) -> Answer {
    let command = line.split_once(": talktree ").map(|line| line.1).unwrap_or_default();
    let shell = format!("{} {command}", env!("CARGO_BIN_EXE_talktree"));
    let run = Command::new("sh").args(["-c", &shell]).env("TALKTREE_STORE", rig.store()).output();
    Answer::of(run.unwrap())
}

#[test]
fn a_page_says_how_to_see_the_next_one() -> Outcome {
    let rig = rig()?;
    let mut answer = rig.run(["search", "compaction", "of", "--limit", "3", "--json"]);
    let (mut pages, mut ids) = (0, Vec::new());
    loop {
        pages += 1;
        for line in answer.stdout.lines() {
            let hit: serde_json::Value = serde_json::from_str(line)?;
            ids.push(format!("{} {}", hit["session"], hit["id"]));
        }
        let Some(more) = answer.stderr.lines().find(|line| line.contains("there is more: ")) else {
            break;
        };
        assert!(
            more.ends_with(&format!("search --limit 3 --page {} compaction of", pages + 1)),
            "{more}"
        );
        answer = proposed(&rig, &format!("{more} --json"));
    }
    ids.sort();
    ids.dedup();
    assert_eq!((pages, ids.len()), (3, 7));
    rig.fails(2, ["search", "compaction", "--page", "0"]);
    rig.fails(2, ["search", "compaction", "--page", "2", "--offset", "3"]);
    let more = rig.run(["search", "compaction", "--limit", "2", "--offset", "1"]).stderr;
    assert!(more.contains("search --limit 2 --offset 3 compaction"), "{more}");
    Ok(())
}

/// A page after the last result said that nothing was found after the results before it, although these do not exist.
#[test]
fn a_page_after_the_last_one_says_how_many_results_there_are() -> Outcome {
    let rig = rig()?;
    for (args, says) in [
        (&["--page", "999"][..], "nothing on page 999: the search finds 7 messages, on 1 page"),
        (
            &["--page", "18446744073709551615", "--limit", "3"],
            "nothing on page 18446744073709551615: the search finds 7 messages, on 3 pages",
        ),
        (&["--offset", "7"], "nothing after the first 7 results: the search finds 7 messages"),
        (&["--offset", "99"], "nothing after the first 99 results: the search finds 7 messages"),
        (&["--page", "2", "--group"], "nothing on page 2: the search finds 3 sessions, on 1 page"),
        (
            &["--page", "5", "--sessions"],
            "nothing on page 5: the search finds 3 sessions, on 1 page",
        ),
    ] {
        let said = rig.fails(1, [&["search", "compaction"], args].concat());
        assert_eq!(said, format!("talktree: {says}\n"), "{args:?}");
    }
    // If there is no first page either, the search proposes another one.
    let said = rig.fails(1, ["search", "compaction role:tool", "--page", "9"]);
    assert!(said.contains("this finds something:"), "{said}");
    Ok(())
}

/// The error was that of a conversion of numbers.
#[test]
fn a_timeout_that_is_no_number_of_seconds_is_refused() -> Outcome {
    let rig = rig()?;
    for given in ["soon", "nan", "1e400", "1e30"] {
        let said = rig.fails(2, ["search", "compaction", "--timeout", given]);
        assert!(said.contains("a number of seconds was expected"), "{said}");
    }
    Ok(())
}

/// The parser of arguments took `-coffee` for the option `-c`, and proposed `-- -c`.
#[test]
fn a_query_that_begins_with_a_minus_is_searched_or_gets_the_command_to_type() -> Outcome {
    let rig = rig()?;
    for (args, line) in [
        (&["-holiday"][..], "talktree search -- -holiday"),
        (&["-coffee", "--limit", "5"], "talktree search --limit 5 -- -coffee"),
        (&["-blue", "--json", "--page", "2"], "talktree search --page 2 --json -- -blue"),
        (&["compaction", "-blue"], "talktree search -- compaction -blue"),
        (&["ls", "-la"], "talktree search -- ls -la"),
        (&["-\"red\"", "compaction"], "talktree search -- '-\"red\"' compaction"),
    ] {
        let said = rig.fails(2, [&["search"], args].concat());
        let ends = format!("; if it is part of the query, type: {line}\n");
        assert!(said.starts_with("talktree: ") && said.ends_with(&ends), "{args:?}: {said}");
    }
    let said = rig.fails(2, ["search", "compaction", "-everything"]);
    assert_eq!(proposed(&rig, said.trim_end()).stdout.matches("  A compaction").count(), 5);
    // No option has a blank in it.
    for query in ["-everything compaction", "- compaction -everything"] {
        assert_eq!(rig.json(["search", query, "--limit", "9"]).len(), 5, "{query}");
    }
    // What is not a word of the query stays the error that it is.
    for args in [&["--limit", "-5", "x"][..], &["--role", "-x", "y"], &["--limti", "3", "x"]] {
        let said = rig.fails(2, [&["search"], args].concat());
        assert!(said.starts_with("error: "), "{args:?}: {said}");
    }
    assert!(rig.ok(["search", "-h"]).contains("Usage: talktree search"));
    Ok(())
}

#[test]
fn groups_have_the_best_hit_of_each_conversation_and_count_the_others() -> Outcome {
    let rig = rig()?;
    let groups = rig.json(["search", "compaction", "--group"]);
    let first =
        groups.iter().find(|group| group["best"]["session"] == "first").ok_or("no group")?;
    assert_eq!((groups.len(), first["more"].as_u64()), (3, Some(4)));
    let found = rig.ok(["search", "compaction", "--group"]);
    let line =
        found.lines().find(|line| line.contains("more in this conversation")).ok_or("no line")?;
    assert!(
        line.starts_with("  4 more in this conversation: talktree search --session first"),
        "{line}"
    );
    assert_eq!(proposed(&rig, line).stdout.matches("  A compaction").count(), 5);
    // Pages are of conversations.
    let answer = rig.run(["search", "compaction", "--group", "--limit", "2", "--json"]);
    let more =
        answer.stderr.lines().find(|line| line.contains("there is more: ")).ok_or("no more")?;
    let rest = proposed(&rig, &format!("{more} --json"));
    assert_eq!((answer.stdout.lines().count(), rest.stdout.lines().count()), (2, 1), "{more}");
    rig.fails(2, ["search", "compaction", "--group", "--sessions"]);
    Ok(())
}

#[test]
fn a_hit_is_shown_in_its_surroundings_on_its_path() -> Outcome {
    let rig = Rig::toured();
    let ids = |args: &[&str]| -> Vec<String> {
        let shown = rig.json([&["show", "tour"], args].concat());
        shown.iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect()
    };
    // The head's branch goes on below `ask`, although the other one is newer.
    assert_eq!(ids(&["ask", "--around", "2"]), ["ask", "answer-1", "tickets"]);
    assert_eq!(ids(&["tickets", "--around", "1"]), ["answer-1", "tickets", "look-up"]);
    assert_eq!(
        ids(&["answer-2", "--around", "9"]),
        ["ask", "answer-2", "how-far", "how-far-answer"]
    );
    assert_eq!(ids(&["thanks", "--around", "1"]), ["museum-answer", "thanks"]);
    assert_eq!(ids(&["thanks"]), ["thanks"]);
    let by = ["compact", "tour", "--summary", "s", "--from", "answer-1", "--to", "tickets"];
    let summary = format!("compaction_{}", rig.json(by)[0]["id"].as_str().ok_or("no id")?);
    assert_eq!(ids(&[&summary, "--around", "1"]), ["ask", &*summary, "look-up"]);
    // What a summary replaces is shown as it was said.
    assert_eq!(ids(&["tickets", "--around", "1"]), ["answer-1", "tickets", "look-up"]);

    let printed = rig.ok(["show", "tour", "tickets", "--around", "1"]);
    let at = |part: &str| printed.find(part).unwrap_or_else(|| panic!("{part}: {printed}"));
    assert!(at("answer-1") < at("this message") && at("parent  ") < at("look-up"), "{printed}");

    let answer = rig.run(["search", "jenzig"]);
    let open = answer.stderr.lines().find(|line| line.contains("show tour")).ok_or("no line")?;
    assert!(proposed(&rig, open).stdout.contains("How far is the walk?"), "{open}");
    // Of several hits a reader chooses one.
    assert_eq!(rig.run(["search", "planetarium"]).stderr, "");
    Ok(())
}

/// Completes the last word of a line as bash does, and returns what is proposed.
fn completed(rig: &Rig, words: &[&str]) -> Answer {
    let mut command = rig.command([&["--", "talktree"], words].concat());
    Answer::of(command.env("TALKTREE_COMPLETE", "bash").output().unwrap())
}

#[test]
fn sessions_and_the_filters_of_a_query_are_completed() -> Outcome {
    let rig = rig()?;
    let long = "019c1000-aaaa-7000-8000-111122223333";
    rig.ok(["new", "Plans for work", "--id", long]);
    for (words, expected) in [
        (&["search", "r"][..], &["role:"][..]),
        (&["search", "role:"], &["role:user", "role:assistant", "role:system", "role:tool"]),
        (&["search", "fox", "role:us"], &["role:user"]),
        (&["search", "in:t"], &["in:text", "in:tools"]),
        (&["search", "after:y"], &["after:yesterday"]),
        (&["search", "session:fi"], &["session:first"]),
        (&["search", "session:telegram:4"], &["session:telegram:4711"]),
        (&["search", "session:holi"], &["session:second"]),
        (&["search", "session:work"], &["session:22223333"]),
        (&["search", "session:nobody"], &[]),
        (&["search", "nothing:"], &[]),
        (&["log", "fi"], &["first"]),
        (&["log", "holi"], &["Holiday plans"]),
        (&["log", "PLANS"], &["Plans for work", "Holiday plans"]),
        (&["tag", "2222"], &["22223333"]),
        (&["search", "--session", "work"], &["Plans for work"]),
        // What destroys takes whole ids.
        (&["rm", "work"], &[long]),
        (&["context", "show", "holi"], &["Holiday plans"]),
        (&["tree", ""], &["Plans for work", "telegram:4711", "Holiday plans", "first"]),
        (&["tr"], &["tree", "trash"]),
        (&["search", "--gr"], &["--group"]),
    ] {
        let printed = completed(&rig, words).stdout;
        let mut found = printed.lines().collect::<Vec<_>>();
        let mut expected = expected.to_vec();
        // Sessions are listed by the time of their last message, which may be the same.
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{words:?}");
    }
    let store = text(&rig.store());
    let elsewhere = Rig::empty();
    assert_eq!(completed(&elsewhere, &["--store", &store, "log", "fi"]).stdout, "first\n");
    // Without a store there is nothing to complete, and nothing to say.
    let answer = completed(&elsewhere, &["search", "session:x"]);
    assert_eq!((answer.code, answer.stdout + &answer.stderr), (0, String::new()));
    Ok(())
}

/// Bash breaks words at colons, and a name with blanks needs quotes.
#[cfg(unix)]
#[test]
fn bash_completes_what_the_command_proposes() -> Outcome {
    let rig = rig()?;
    let file = rig.file("completions.bash", rig.ok(["completions", "bash"]));
    let folder =
        std::path::Path::new(env!("CARGO_BIN_EXE_talktree")).parent().ok_or("no folder")?;
    let path = format!("{}:{}", folder.display(), std::env::var("PATH")?);
    for (words, expected) in [
        ("talktree search fox role : us", "user"),
        ("talktree search ro", "role:"),
        ("talktree search session : telegram : 4", "4711"),
        ("talktree search session : telegram :", "4711"),
        ("talktree search --role us", ""),
        ("talktree log 'Holi'", "Holiday plans"),
        ("talktree log holiday'\\ 'p", "Holiday plans"),
        ("talktree tr", "tree trash"),
    ] {
        let run = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _talktree 2>/dev/null; echo \"${{COMPREPLY[*]}}\"",
            file.display()
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &run])
            .env("PATH", &path)
            .env("TALKTREE_STORE", rig.store())
            .output()?;
        assert_eq!(String::from_utf8(output.stdout)?.trim_end(), expected, "{words}");
    }
    Ok(())
}

/// A list of sessions prints parts of ids, and `session:` with one of them found nothing.
#[test]
fn the_session_of_a_query_may_be_named_by_a_part_of_its_id() -> Outcome {
    let rig = rig()?;
    for (query, hits) in [
        ("session:first compaction", 5),
        ("session:fir compaction", 5),
        ("compaction session:sec", 1),
        ("session:4711 compaction", 1),
        ("session:fir session:sec compaction", 6),
    ] {
        assert_eq!(rig.json(["search", query]).len(), hits, "{query}");
    }
    assert_eq!(rig.run(["search", "session:nobody compaction"]).code, 1);
    Ok(())
}

/// `session:` said that no session is called so, also if several were or if it was in the trash.
#[test]
fn a_session_that_cannot_be_searched_is_named_with_the_reason() -> Outcome {
    let rig = rig()?;
    let store = Store::open(rig.store())?;
    for (id, name) in [("answer-01", "one"), ("answer-02", "two"), ("gone", "Old plans")] {
        store.session(id)?.append(Message::user("One compaction more"))?;
        store.rename(&id.into(), name)?;
    }
    store.change_session(&"gone".into(), &talktree::SessionChange::Delete)?;
    for args in [&["session:answer"][..], &["--session", "answer"]] {
        let said = rig.fails(2, [&["search", "compaction"], args].concat());
        assert!(said.contains("\"answer\" matches more than one session:\n"), "{said}");
    }
    for args in [&["session:gone"][..], &["session:gon"], &["--session", "gone"]] {
        let said = rig.fails(1, [&["search", "compaction"], args].concat());
        let expected =
            "session \"gone\" is in the trash, which is not searched: `talktree restore gone`";
        assert_eq!(said, format!("talktree: {expected}\n"), "{args:?}");
    }
    let said = rig.fails(1, ["search", "--session", "Old plans", "compaction"]);
    assert!(said.contains("talktree restore gone"), "{said}");
    // The others are searched.
    let found = rig.run(["search", "session:gone session:first compaction"]);
    assert!(found.stdout.contains("compaction") && found.code == 0, "{found:?}");
    assert!(found.stderr.contains("session \"gone\" is in the trash"), "{found:?}");
    Ok(())
}

/// They were left out: a list of a person's messages was proposed as `search ''`, and a search as one of what others wrote.
#[test]
fn a_proposal_keeps_the_author_and_the_tags() -> Outcome {
    let rig = rig()?;
    let chat = Store::open(rig.store())?.session("second")?;
    let hers = Message::user("A compaction, please").from(&Author::new("Nora Ek"));
    let hers = chat.append(hers)?.id;
    chat.tag(&hers, "urgent")?;
    for (given, proposal) in [
        (&["--author", "Nora Ek"][..], "--author 'Nora Ek'"),
        (&["--tag", "urgent"], "--tag urgent"),
        (&["--author", "Nora Ek", "compaction"], "--author 'Nora Ek' compaction"),
        (&["--tag", "urgent", "compaction"], "--tag urgent compaction"),
    ] {
        let said = rig.fails(1, [&["search", "--session", "first"], given].concat());
        let line = said.lines().last().unwrap_or_default();
        assert!(line.ends_with(&format!("in all sessions: talktree search {proposal}")), "{line}");
        let found = proposed(&rig, &format!("{line} --json")).stdout;
        assert!(found.contains(hers.as_str()) && found.lines().count() == 1, "{line}: {found}");
    }
    let said = rig.fails(1, ["search", "--author", "Nora Ek", "--role", "tool"]);
    assert!(said.ends_with("for any role: talktree search --author 'Nora Ek'\n"), "{said}");
    assert!(!rig.fails(1, ["search", "role:tool"]).contains("this finds something"));
    Ok(())
}
