//! What reaches a terminal: no control characters of stored text, and colour only where it is wanted.

use std::io::Read;
use std::process::Stdio;

use crate::common::{Outcome, Rig, text};

/// A conversation with control characters in every field.
const HOSTILE: &str = concat!(
    r#"{"id":"s\u001b[2J","messages":["#,
    r#"{"id":"m\u009b1","role":"us\u001ber","parts":[{"type":"text","text":"clear \u001b[2J bell \u0007 turn \u202e back \u009b1A word"}]},"#,
    r#"{"id":"m2","role":"assistant","parts":[{"type":"reasoning","text":"hm \u001b]0;title\u0007"},"#,
    r#"{"type":"tool-ba\u001bsh","toolCallId":"c","input":{"a":"\u202eb"},"output":"\u001b[31mred\r\nnext"},"#,
    r#"{"type":"file","mediaType":"image/\u001bpng","url":"x:\u0007","filename":"f\u202egnp"},{"type":"data-\u001bx","data":"\u0085"}]}]}"#
);

fn is_hostile(c: char) -> bool {
    (c.is_control() && c != '\n') || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[test]
fn no_control_character_of_stored_text_is_printed() {
    let rig = Rig::empty();
    let file = text(&rig.file("hostile.json", HOSTILE));
    let session = rig.json(["import", &file, "--format", "ui-message"])[0]["sessions"][0]
        .as_str()
        .unwrap()
        .to_owned();
    rig.ok(["label", &session, "l\u{1b}[1m", "m2"]);
    rig.ok(["rename", &session, "n\u{9b}31m\u{202e}"]);
    let summary = ["compact", &session, "--summary", "s\u{1b}[8m", "--model", "m\u{9b}2J"];
    let added = rig.json([&summary[..], &["--from", "m2", "--to", "m2"]].concat());
    let summary = added[0]["id"].as_str().unwrap();
    for args in [
        &["sessions"][..],
        &["log", &session],
        &["log", &session, "--raw", "--full"],
        &["tree", &session, "--labels"],
        &["show", &session, "m2"],
        &["search", "word"],
        &["search", "word", "--sessions"],
        &["label", &session, "--list"],
        &["compact", &session, "--list"],
        &["compact", &session, "--plan"],
        &["expand", &session, summary, "--full"],
        &["show", &session, "nobody"],
        &["rm", &session],
    ] {
        for json in [&[][..], &["--json"]] {
            let answer = rig.run([args, json].concat());
            assert!(answer.code <= 2, "{args:?}: {answer:?}");
            let printed = answer.stdout + &answer.stderr;
            let found = printed.chars().find(|c| is_hostile(*c));
            assert_eq!(found, None, "{args:?} {json:?}: {printed}");
        }
    }
    let log = rig.ok(["log", &session, "--raw"]);
    assert!(log.contains(r"clear \u{1b}[2J bell \u{7} turn \u{202e} back"), "{log}");
}

/// Marks of direction in an argument were printed as they are, and on a terminal escape codes, too.
#[test]
fn no_control_character_of_an_argument_is_printed() {
    let rig = Rig::empty();
    let hostile = "\u{202e}a\u{1b}[31mb\u{7}\nc";
    for args in [
        &["sessions", "--limit", hostile][..],
        &["sessions", "--state", hostile],
        &["sessions", hostile],
        &["import", "x", "--format", hostile],
        &["search", "x", "--timeout", hostile],
        &[hostile],
        &["--color", "always", "sessions", "--limit", hostile],
    ] {
        let said = rig.fails(2, args);
        // Those of the colours are the command's own.
        let said = said.replace("\u{1b}[", "");
        assert_eq!(said.chars().find(|c| is_hostile(*c)), None, "{args:?}: {said}");
        let escaped = r"\u{202e}a\u{1b}[31mb\u{7}\u{a}c";
        assert!(said.contains(escaped), "{args:?}: {said}");
    }
}

#[test]
fn json_holds_stored_text_unchanged() {
    let rig = Rig::empty();
    let file = text(&rig.file("hostile.json", HOSTILE));
    let session = rig.json(["import", &file, "--format", "ui-message"])[0]["sessions"][0]
        .as_str()
        .unwrap()
        .to_owned();
    let log = rig.json(["log", &session, "--raw"]);
    assert_eq!(
        log[0]["parts"][0]["text"],
        "clear \u{1b}[2J bell \u{7} turn \u{202e} back \u{9b}1A word"
    );
    assert_eq!(log[1]["parts"][1]["output"], "\u{1b}[31mred\r\nnext");
}

#[test]
fn colour_is_only_for_terminals_unless_requested() -> Outcome {
    let rig = Rig::toured();
    for args in
        [&["log", "tour"][..], &["tree", "tour"], &["sessions"], &["stats"], &["search", "friday"]]
    {
        assert!(!rig.ok(args).contains('\u{1b}'), "{args:?}");
        let coloured = rig.ok([args, &["--color", "always"]].concat());
        assert!(coloured.contains('\u{1b}'), "{args:?}");
        let forced = rig.command(args).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output()?;
        assert!(!String::from_utf8(forced.stdout)?.contains('\u{1b}'), "{args:?}");
    }
    let found = rig.ok(["search", "friday", "--color", "always"]);
    assert!(!found.contains("**"), "{found}");
    Ok(())
}

/// The parser of the arguments did not know `--color`.
#[test]
fn help_and_errors_of_usage_have_the_colour_that_is_asked_for() -> Outcome {
    let rig = Rig::empty();
    for args in [&["nosuch"][..], &["sessions", "--limit", "x"], &["search", "--nosuch", "x"]] {
        assert!(!rig.fails(2, args).contains('\u{1b}'), "{args:?}");
        for colour in [&["--color", "always"][..], &["--color=always"]] {
            let said = rig.fails(2, [colour, args].concat());
            assert!(said.contains('\u{1b}'), "{args:?}: {said}");
        }
        // As on a terminal.
        let args = [&["--color", "never"], args].concat();
        let said = rig.command(&args).env("CLICOLOR_FORCE", "1").output()?;
        assert!(!String::from_utf8(said.stderr)?.contains('\u{1b}'), "{args:?}");
    }
    assert!(rig.ok(["--color", "always", "sessions", "--help"]).contains('\u{1b}'));
    Ok(())
}

/// Before the total was known it was a full bar, of `0/0`.
#[cfg(target_os = "linux")]
#[test]
fn a_progress_bar_is_not_full_at_the_start() {
    let rig = Rig::toured();
    let Some(printed) = rig.on_terminal("cat", "verify") else { return };
    assert!(printed.contains("the store is sound") && !printed.contains("0/0"), "{printed}");
}

/// A list of all sessions was 1 582 lines, and its start was gone.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_shows_the_newest_and_a_pager_the_rest() -> Outcome {
    let rig = Rig::empty();
    let mut file = "{\"format\":\"talktree\",\"version\":2}\n".to_owned();
    for number in 10..40 {
        file += &format!("{{\"type\":\"session\",\"id\":\"s{number}\"}}\n");
        file += &format!(
            "{{\"type\":\"message\",\"message\":{{\"id\":\"m{number}\",\"parent\":null,\"role\":\"user\",\"parts\":[{{\"type\":\"text\",\"text\":\"text {number}\"}}],\"created_at\":\"2025-03-02T10:{number}:00Z\"}}}}\n"
        );
    }
    rig.ok(["import", &text(&rig.file("s.jsonl", file))]);
    let Some(shown) = rig.on_terminal("sed s/^/paged:/", "sessions") else { return Ok(()) };
    assert!(shown.starts_with("session  path  last              name\ns39 "), "{shown}");
    assert!(shown.contains("2025-03-02 13:39") && !shown.contains("paged:"), "{shown}");
    assert!(shown.ends_with("\nthe newest 20; --all lists all\n"), "{shown}");
    assert_eq!(shown.lines().count(), 22, "{shown}");
    let all = rig.on_terminal("sed s/^/paged:/", "sessions --all").ok_or("no terminal")?;
    assert_eq!(all.matches("paged:").count(), 31, "{all}");
    for pager in ["cat", "no-such-pager -x"] {
        let all = rig.on_terminal(pager, "sessions --all").ok_or("no terminal")?;
        assert!(all.starts_with("session  path") && all.lines().count() == 31, "{all}");
    }
    // A pipe gets everything.
    assert_eq!(rig.ok(["sessions"]).lines().count(), 31);
    // The list that was shown last has numbers.
    assert_eq!(rig.json(["log", "@1"])[0]["id"], "m39");
    rig.on_terminal("cat", "search 12");
    assert_eq!(rig.json(["log", "@1"])[0]["id"], "m12");
    assert_eq!(rig.json(["log", "-"])[0]["id"], "m39");
    for place in ["@2", "@0"] {
        assert!(rig.fails(1, ["log", place]).contains("has no session @"), "{place}");
    }
    assert!(rig.fails(1, ["rm", "@1"]).contains("no session has the id"));
    rig.ok(["erase", "s12", "--yes"]);
    rig.fails(1, ["log", "@1"]);
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_shows_times_as_people_say_them_and_marks_matches() -> Outcome {
    let rig = Rig::toured();
    rig.ok(["new", "Today"]);
    let Some(log) = rig.on_terminal("cat", "log tour") else { return Ok(()) };
    assert!(log.starts_with("user  2026-01-30 12:00:00  ask\n"), "{log}");
    let listed = rig.on_terminal("cat", "sessions").ok_or("no terminal")?;
    assert!(listed.contains("just now          Today\n"), "{listed}");
    let found = rig.on_terminal("cat", "search planetarium").ok_or("no terminal")?;
    assert!(found.contains("**planetarium**"), "{found}");
    Ok(())
}

#[test]
fn a_closed_pipe_is_not_a_failure() -> Outcome {
    let rig = Rig::empty();
    let messages: Vec<String> =
        (0..20_000).map(|n| format!(r#"{{"role":"user","content":"message {n}"}}"#)).collect();
    let file = text(
        &rig.file("long.json", format!(r#"{{"id":"long","messages":[{}]}}"#, messages.join(","))),
    );
    rig.ok(["import", &file]);
    for args in [
        &["log", "long"][..],
        &["log", "long", "--json"],
        &["export", "long"],
        &["export", "long", "--format", "markdown"],
    ] {
        let mut child = rig.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut stdout = child.stdout.take().ok_or("no stdout")?;
        stdout.read_exact(&mut [0; 64])?;
        drop(stdout);
        let output = child.wait_with_output()?;
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8(output.stderr)?, "", "{args:?}");
    }
    Ok(())
}

#[test]
fn every_command_has_a_help_text() {
    let rig = Rig::empty();
    let help = rig.ok(["--help"]);
    assert!(help.contains("Exit codes:\n  0 "), "{help}");
    let verbs: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        // A long description goes on in the next line.
        .filter_map(|line| line.strip_prefix("  ")?.split_once(' '))
        .map(|(verb, _)| verb)
        .filter(|verb| !verb.is_empty())
        .collect();
    assert_eq!(
        verbs,
        [
            "import",
            "watch",
            "new",
            "sessions",
            "log",
            "last",
            "tree",
            "show",
            "search",
            "browse",
            "checkout",
            "label",
            "compact",
            "expand",
            "context",
            "fork",
            "lineage",
            "rename",
            "tag",
            "pin",
            "end",
            "rm",
            "erase",
            "restore",
            "trash",
            "owners",
            "bindings",
            "usage",
            "retention",
            "export",
            "resume-command",
            "serve",
            "mcp",
            "stats",
            "verify",
            "backup",
            "copy",
            "tour",
            "completions",
            "help",
        ]
    );
    for verb in verbs {
        assert!(rig.ok(["help", verb]).contains("Usage: talktree"), "{verb}");
    }
}

/// A heart with its variation selector is wider than the sum of its characters; a column of hearts
/// used to crash the command.
#[test]
fn a_table_can_hold_text_wider_or_narrower_than_its_characters() {
    let rig = Rig::empty();
    for (name, source) in [("s", "\u{2764}\u{fe0f}".repeat(21)), ("t", "\u{200b}".repeat(99))] {
        let file = format!(
            "{{\"format\":\"talktree\",\"version\":2}}\n{{\"type\":\"session\",\"id\":\"{name}\",\"source\":\"{source}\"}}\n"
        );
        rig.ok(["import", rig.file(&format!("{name}.jsonl"), file).to_str().unwrap()]);
    }
    let table = rig.ok(["sessions"]);
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.lines().next().unwrap().contains("path"), "{table}");
}
