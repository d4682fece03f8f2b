//! README.md and docs/ say what the command does: its verbs, flags, JSON fields and exit codes.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::common::{Outcome, Rig, text};
use serde_json::Value;
use talktree::{Block, Store};

/// The flags of each command: `["context", "set"]` has `append`, `key`, ..
type Flags = BTreeMap<Vec<String>, BTreeSet<String>>;

const GLOBAL: [&str; 3] = ["store", "json", "color"];

fn document(name: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::fs::read_to_string(format!("{root}/{name}")).unwrap()
}

/// Returns the rows of the table that begins with this line, cut into cells.
#[track_caller]
fn table(page: &str, head: &str) -> Vec<Vec<String>> {
    let (_, rows) = page.split_once(head).unwrap_or_else(|| panic!("there is no table {head}"));
    let rows = rows.lines().skip(2).take_while(|line| line.starts_with('|'));
    // A bar inside a cell is written `\|`.
    let cells =
        |row: &str| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    rows.map(cells).collect()
}

/// Returns the texts between backquotes.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

/// Returns the names of the flags that are written in a text: `[--at MESSAGE] --undo|--redo`.
fn flags(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '-'));
    words.filter_map(|word| word.strip_prefix("--")).filter(|name| is_name(name)).map(str::to_owned)
}

/// Returns every command of the program with its own flags, as `--help` lists them.
fn helped(rig: &Rig, path: &[String], all: &mut Flags) {
    let help = rig.ok(path.iter().map(String::as_str).chain(["--help"]));
    let listed = |heading: &str| -> Vec<String> {
        let lines = help.lines().skip_while(|line| *line != heading).skip(1);
        lines
            .take_while(|line| line.is_empty() || line.starts_with(' '))
            .map(str::to_owned)
            .collect()
    };
    let lines = [listed("Options:"), listed("Global options:")].concat();
    let options = lines.into_iter().filter_map(|line| {
        let line = line.trim_start();
        let line = if line.get(2..4) == Some(", ") { &line[4..] } else { line };
        flags(line).next().filter(|_| line.starts_with("--"))
    });
    let is_own = |flag: &String| match path {
        [] => flag != "help" && flag != "version",
        _ => flag != "help" && !GLOBAL.contains(&flag.as_str()),
    };
    all.insert(path.to_vec(), options.filter(is_own).collect());
    for line in listed("Commands:") {
        let indent = line.len() - line.trim_start().len();
        let name = line.split_whitespace().next().unwrap_or_default();
        if indent == 2 && name != "help" {
            helped(rig, &[path, &[name.to_owned()]].concat(), all);
        }
    }
}

/// Returns the longest path of words that is a command of the program.
fn command_of(words: &str, all: &Flags) -> Vec<String> {
    let mut path = Vec::new();
    for word in words.split_whitespace() {
        let longer = [&path[..], &[word.to_owned()]].concat();
        if !all.contains_key(&longer) {
            break;
        }
        path = longer;
    }
    path
}

#[test]
fn every_verb_and_every_flag_has_its_line() {
    let rig = Rig::empty();
    let mut real = Flags::new();
    helped(&rig, &[], &mut real);
    assert!(real.len() > 25, "{real:?}");

    let page = document("docs/command.md");
    let mut documented = Flags::new();
    for fence in page.split("```text\n").skip(1) {
        let fence = fence.split("```").next().unwrap_or_default();
        for line in fence.replace("\n    ", " ").lines() {
            let words = line.strip_prefix("talktree ").unwrap_or_else(|| panic!("{line}"));
            let named = words.split_whitespace().take_while(|word| is_name(word));
            let named: Vec<String> = named.map(str::to_owned).collect();
            // What follows a command's name may be a value: `completions bash|..`.
            let path = if named.is_empty() { named } else { command_of(words, &real) };
            assert!(
                line == "talktree" || !path.is_empty() || words.starts_with('['),
                "no such verb: {line}"
            );
            documented.entry(path).or_default().extend(flags(words));
        }
    }
    // These only have subcommands.
    for verb in ["context", "trash", "retention"] {
        real.remove(&vec![verb.to_owned()]);
    }
    let heads: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    for (path, flags) in &real {
        assert_eq!(documented.get(path), Some(flags), "the flags of {path:?} in docs/command.md");
        if let Some(verb) = path.first() {
            assert!(heads.contains(&verb.as_str()), "{verb} has no section");
        }
    }
    for path in documented.keys() {
        assert!(
            real.contains_key(path),
            "docs/command.md documents {path:?}, which does not exist"
        );
    }
    for head in heads {
        assert!(
            real.keys().any(|path| path.first().is_some_and(|verb| verb == head)),
            "{head} is no verb"
        );
    }
}

#[test]
fn every_command_that_is_shown_exists() {
    let rig = Rig::empty();
    let mut real = Flags::new();
    helped(&rig, &[], &mut real);
    let pages = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")).unwrap();
    let names = pages.map(|page| format!("docs/{}", page.unwrap().file_name().to_str().unwrap()));
    let names = names.filter(|name| name.ends_with(".md"));
    let mut shown = 0;
    for name in names.chain(["README.md".to_owned(), "CONTRIBUTING.md".to_owned()]) {
        let page = document(&name);
        let fenced = page.lines().filter_map(|line| line.strip_prefix("$ talktree "));
        let inline = code(&page).filter_map(|code| code.strip_prefix("talktree "));
        for words in fenced.chain(inline.filter(|words| !words.contains('\n'))) {
            // Stop at a pipe or a comment.
            let words = words.split([';', '#']).next().unwrap_or_default();
            let words = words.split(" | ").next().unwrap_or_default();
            let path = command_of(words, &real);
            assert!(!path.is_empty(), "{name} shows `talktree {words}`: there is no such verb");
            let quoted: String = words.split(['\'', '"']).step_by(2).collect();
            for flag in flags(&quoted) {
                let is_known = real[&path].contains(&flag) || GLOBAL.contains(&flag.as_str());
                assert!(is_known, "{name} shows `talktree {words}`: {path:?} has no --{flag}");
            }
            shown += 1;
        }
    }
    assert!(shown > 10, "only {shown} were found");
}

/// A field of an object: whether it may be missing, and the fields of the objects in it.
struct Field {
    name: String,
    is_optional: bool,
    inner: Vec<Field>,
}

/// Reads `id, hidden?, notes[line, why]`.
fn parse(text: &mut &str) -> Vec<Field> {
    let mut fields = Vec::new();
    loop {
        let end = text.find(|c: char| !(c.is_ascii_lowercase() || c == '_')).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        assert!(!name.is_empty(), "a name was expected at {text:?}");
        *text = rest;
        let is_optional = skip(text, "?");
        let inner = if skip(text, "[") { parse(text) } else { Vec::new() };
        fields.push(Field { name: name.to_owned(), is_optional, inner });
        if !skip(text, ", ") {
            assert!(skip(text, "]") || text.is_empty(), "{text:?}");
            return fields;
        }
    }
}

fn skip(text: &mut &str, start: &str) -> bool {
    let rest = text.strip_prefix(start);
    *text = rest.unwrap_or(text);
    rest.is_some()
}

/// Adds to `wrong` the differences between the documented and the printed fields of objects.
fn compare(place: &str, fields: &[Field], objects: &[&Value], wrong: &mut Vec<String>) {
    if objects.is_empty() {
        wrong.push(format!("{place}: nothing was printed to compare with"));
    }
    for object in objects {
        for name in object.as_object().unwrap_or_else(|| panic!("{place}: {object}")).keys() {
            if fields.iter().all(|field| field.name != *name) {
                wrong.push(format!("{place}: `{name}` is printed and not documented"));
            }
        }
    }
    for Field { name, is_optional, inner } in fields {
        let values: Vec<&Value> = objects.iter().filter_map(|object| object.get(name)).collect();
        if values.is_empty() {
            wrong.push(format!("{place}: `{name}` is documented and not printed"));
        } else if *is_optional == (values.len() == objects.len()) {
            let is = if *is_optional { "always printed" } else { "not always printed" };
            wrong.push(format!("{place}: `{name}` is {is}"));
        }
        if !inner.is_empty() {
            let list = |value: &'_ Value| value.as_array().is_some();
            let objects = values.iter().flat_map(|value| match list(value) {
                true => value.as_array().into_iter().flatten().collect(),
                false => vec![*value],
            });
            compare(&format!("{place} {name}"), inner, &objects.collect::<Vec<_>>(), wrong);
        }
    }
}

/// Returns what each command of the table prints in real runs, under the first cell of its row.
fn printed() -> BTreeMap<&'static str, Vec<Value>> {
    let rig = Rig::toured();
    let mut all: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let mut add =
        |row: &'static str, values: Vec<Value>| all.entry(row).or_default().extend(values);
    let file = |name: &str| text(&rig.path(name));

    let own = concat!(
        "{\"format\":\"talktree\",\"version\":2}\n{\"type\":\"session\",\"id\":\"own\"}\n",
        "{\"type\":\"message\",\"message\":{\"id\":\"a\",\"parent\":null,\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"a long question\"}],\"metadata\":{\"k\":1}}}\n",
        "{\"type\":\"message\",\"message\":{\"id\":\"b\",\"parent\":\"a\",\"role\":\"user\",\"parts\":[],\"hidden\":true}}\n",
        "{\"type\":\"compaction\",\"id\":\"c\",\"first\":\"a\",\"last\":\"a\",\"count\":1,\"summary\":\"s\",\"details\":{\"k\":1},\"tokens_before\":8,\"tokens_after\":5,\"created_at\":\"2026-01-30T09:00:00Z\"}\n",
    );
    add("import", rig.json(["import", &text(&rig.file("own.jsonl", own))]));
    rig.file("home/.pi/agent/sessions/p.jsonl", "{\"type\":\"session\",\"id\":\"p\"}\n");
    let mut list = rig.command(["import", "--all", "--list", "--json"]);
    let list =
        list.env("HOME", rig.path("home")).env_remove("PI_CODING_AGENT_DIR").output().unwrap();
    add("import --list", vec![serde_json::from_slice(&list.stdout).unwrap()]);
    rig.ok(["new", "--id", "resumed", "--source", "pi"]);
    add("resume-command", rig.json(["resume-command", "resumed"]));
    add("compact --list", rig.json(["compact", "own", "--list"]));
    add("compact", rig.json(["compact", "own", "--remove", "c"]));
    add("log", rig.json(["log", "own", "--raw"]));
    add("log", rig.json(["show", "tour", "look-up"]));
    add("log", rig.json(["show", "tour", "look-up", "--seen"]));

    let by = |from, to| ["compact", "tour", "--summary", "s", "--from", from, "--to", to];
    let inner = rig.json(by("answer-1", "answer-1"));
    let inner_id = inner[0]["id"].as_str().unwrap().to_owned();
    add("compact", inner);
    add("compact", rig.json([&by("ask", "look-up")[..], &["--model", "m"]].concat()));
    add("compact --list", rig.json(["compact", "tour", "--list"]));
    add("log", rig.json(["expand", "tour", &inner_id]));
    add("tree", rig.json(["tree", "tour"]));
    add("search", rig.json(["search", "planetarium"]));
    add("search --group", rig.json(["search", "planetarium", "--group"]));
    add("search --sessions", rig.json(["search", "planetarium", "--sessions"]));
    add("compact --plan", rig.json(["compact", "tour", "--plan"]));
    add("compact --plan", {
        let plan = ["compact", "tour", "--plan", "--prompt", "--keep-recent-tokens", "0"];
        rig.json([&plan[..], &["--protect-head", "0", "--at", "how-far-answer"]].concat())
    });

    add("checkout", rig.json(["checkout", "tour", "ask"]));
    add("label", rig.json(["label", "tour", "l", "ask"]));
    add("label", rig.json(["label", "tour", "--list"]));
    add("fork", rig.json(["fork", "tour", "ask", "f"]));
    add("sessions", rig.json(["sessions"]));
    add("new", rig.json(["rename", "f", "g"]));
    rig.ok(["fork", "tour", "answer-1", "h"]);
    rig.ok(["compact", "h", "--summary", "s", "--from", "ask", "--to", "answer-1"]);
    add("erase", rig.json(["erase", "--name", "h", "ask", "--dry-run"]));
    {
        let transcripts = Store::open(rig.store()).unwrap().transcripts().owned_by("zoe");
        let entry = talktree::Json::parse("{}").unwrap();
        transcripts.append(&talktree::TranscriptKey::new("p", "s"), &[entry]).unwrap();
    }
    add("erase", rig.json(["erase", "--owner", "zoe", "--dry-run"]));
    add("erase", rig.json(["erase", "--name", "h", "ask", "--yes", "--prove"]));
    add("lineage", rig.json(["lineage", "g"]));
    add("rm", rig.json(["rm", "--name", "g"]));
    add("trash list", rig.json(["trash", "list"]));
    add("new", rig.json(["restore", "g"]));
    add("tag", rig.json(["tag", "g", "old"]));
    add("tag", rig.json(["tag", "g", "odd", "--message", "ask"]));
    add("log", rig.json(["log", "g"]));
    add("pin", rig.json(["pin", "tour"]));
    add("end", rig.json(["end", "g", "over"]));
    add("new", rig.json(["new", "--id", "n", "--owner", "ann", "--tag", "old"]));
    add("owners", rig.json(["owners"]));
    {
        let store = Store::open(rig.store()).unwrap();
        let bot = talktree::SessionManager::builder(&store).build().unwrap();
        bot.resume("telegram:4711").open().unwrap();
        let cost = Some(talktree::Cost { micros: 9, currency: "USD".to_owned() });
        let usage = talktree::Usage { cost, ..talktree::Usage::default() };
        store.session("n").unwrap().add_usage(None, &usage).unwrap();
    }
    add("bindings", rig.json(["bindings"]));
    add("usage", rig.json(["usage"]));
    let rules = "[[rule]]\nname = \"old\"\ntag = \"old\"\n[[rule]]\nname = \"copied\"\ntag = \"copied\"\naction = \"erase\"\n";
    let rules = text(&rig.file("rules.toml", rules));
    for (of, name) in [("tour", "i"), ("i", "j")] {
        rig.ok(["fork", of, "answer-1", name]);
    }
    rig.ok(["tag", "i", "copied"]);
    add("retention show", rig.json(["retention", "show", &rules]));
    add("retention run", rig.json(["retention", "run", &rules]));
    add("trash empty", rig.json(["trash", "empty", "--yes"]));
    add("export --output", rig.json(["export", "tour", "--output", &file("tour.jsonl")]));

    let set = ["context", "set", "tour"];
    add("context set", rig.json([&set[..], &["memory", "Likes tea."]].concat()));
    let store = Store::open(rig.store()).unwrap();
    let context = store.session_builder("tour").cached_prompt().block("memory", Block::stored());
    context.open().unwrap().prompt().unwrap();
    rig.ok([&set[..], &["memory", "Likes coffee."]].concat());
    for (label, kind) in [("skills", "skills"), ("knowledge", "knowledge")] {
        rig.ok([&set[..], &[label, "--key", "k", "--kind", kind, "The shop opens."]].concat());
    }
    add("context list", rig.json(["context", "list", "tour"]));
    add("context show", rig.json(["context", "show", "tour", "memory"]));
    add("context show", rig.json(["context", "show", "tour", "skills", "k"]));
    add("context show, of documents without KEY", rig.json(["context", "show", "tour", "skills"]));
    add("context history", rig.json(["context", "history", "tour", "memory"]));
    add("context history", rig.json(["context", "history", "tour", "memory", "--diff"]));
    add("context search", rig.json(["context", "search", "tour", "knowledge", "shop"]));
    add("context prompt", rig.json(["context", "prompt", "tour"]));
    add("context drift", rig.json(["context", "drift", "tour"]));
    add("context export", rig.json(["context", "export", "tour"]));
    add("context set", rig.json(["context", "restore", "tour", "memory", "1"]));
    add("context set", rig.json(["context", "rm", "tour", "skills", "k"]));
    add("context history", rig.json(["context", "history", "tour", "skills", "k"]));
    let page = text(&rig.file("page.md", "# memory\n\nLikes water.\n"));
    add("context set", rig.json(["context", "import", "tour", &page]));

    add("stats", rig.json(["stats"]));
    add("verify", rig.json(["verify"]));
    add("backup", rig.json(["backup", &file("copy.db")]));
    add("serve", vec![served(&rig)]);
    add("verify", vec![verify_damaged(&rig, &file("copy.db"))]);
    add("copy", rig.json(["copy", "--to", &file("copied.db")]));
    add("tour", rig.json(["tour"]));
    let broken = text(&rig.file("broken.json", r#"[{"role":"user","content":"hi"},7]"#));
    add("import", rig.json(["import", &broken]));
    all
}

/// Returns what `serve` prints before it serves.
fn served(rig: &Rig) -> Value {
    let mut server = rig.command(["serve", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    serde_json::from_str(&line).unwrap()
}

/// Returns what `verify` prints of a copy of the store in which the text of a message is overwritten.
fn verify_damaged(rig: &Rig, copy: &str) -> Value {
    let mut bytes = std::fs::read(copy).unwrap();
    let needle = b"Do we need tickets for the planetarium?";
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    bytes[at..at + 12].fill(b'"');
    std::fs::write(copy, bytes).unwrap();
    let answer = rig.run(["--store", copy, "verify", "--json"]);
    assert_eq!(answer.code, 4, "{answer:?}");
    serde_json::from_str(answer.stdout.lines().next().unwrap()).unwrap()
}

#[test]
fn the_documented_json_fields_are_those_that_are_printed() {
    let page = document("docs/command.md");
    let rows = table(&page, "| command | prints one object for | fields |");
    let mut printed = printed();
    let mut wrong = Vec::new();
    for row in &rows {
        let [commands, _, fields] = &row[..] else { panic!("{row:?}") };
        // `log`, `show` and `expand` print the same: their output is listed under the first.
        let first = code(commands).next().unwrap();
        let key = match commands {
            row if row.contains("without KEY") => "context show, of documents without KEY",
            _ => first,
        };
        let Some(objects) = printed.remove(key) else {
            wrong.push(format!("the row {commands} is compared with nothing"));
            continue;
        };
        let fields = parse(&mut code(fields).next().unwrap_or_else(|| panic!("{row:?}")));
        compare(key, &fields, &objects.iter().collect::<Vec<_>>(), &mut wrong);
    }
    let left: Vec<&str> = printed.into_keys().collect();
    assert_eq!(left, Vec::<&str>::new(), "these have no row in docs/command.md");
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "docs/command.md: {wrong:#?}");
}

/// Returns the code that a command ends with when it is sent a signal while it waits for a summary.
fn stopped_by(signal: &str) -> i32 {
    let rig = Rig::toured();
    let (pids, options) = (rig.path("pids"), ["--keep-recent-tokens", "0", "--protect-head", "0"]);
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; sleep 600", text(&pids));
    let words = ["compact", "tour", "--summarizer-cmd", &script];
    let mut command = rig.command([&words[..], &options].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !pids.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    child.wait().unwrap().code().unwrap()
}

#[test]
fn the_documented_exit_codes_are_those_that_come() -> Outcome {
    let rig = Rig::toured();
    let missing = text(&rig.path("missing.db"));
    let copy = text(&rig.path("copy.db"));
    rig.ok(["backup", &copy]);
    verify_damaged(&rig, &copy);
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut seen = BTreeSet::new();
    for args in [
        &["sessions"][..],
        &["search", "xylophone"],
        &["frobnicate"],
        &["--store", &missing, "sessions"],
        &["--store", &copy, "verify"],
        &["import", "not-there.jsonl"],
        &[
            "compact",
            "tour",
            "--summarizer-cmd",
            "false",
            "--keep-recent-tokens",
            "0",
            "--protect-head",
            "0",
        ],
    ] {
        seen.insert(rig.run(args).code);
    }
    // On a system without this device, code 6 is assumed.
    seen.insert(match full {
        Ok(full) => rig
            .command(["log", "tour"])
            .stdout(full)
            .stderr(Stdio::null())
            .status()?
            .code()
            .unwrap_or(-1),
        Err(_) => 6,
    });
    seen.extend([stopped_by("-INT"), stopped_by("-TERM")]);

    let rows = table(&document("docs/command.md"), "| code | means |");
    let documented: BTreeSet<i32> =
        rows.iter().map(|row| row[0].parse()).collect::<Result<_, _>>()?;
    assert_eq!(documented, seen, "docs/command.md, and what came");

    let help = rig.ok(["--help"]);
    let (_, codes) = help.split_once("Exit codes:").ok_or("--help lists no exit codes")?;
    let codes = codes.split(|c: char| !c.is_ascii_digit()).filter_map(|code| code.parse().ok());
    let unknown: BTreeSet<i32> = codes.filter(|code| !documented.contains(code)).collect();
    assert_eq!(unknown, BTreeSet::new(), "--help has codes that docs/command.md has not");
    Ok(())
}

#[test]
fn the_picture_shows_what_the_command_draws() {
    let rig = Rig::empty();
    rig.ok(["import", concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pictures/sample.jsonl")]);
    let picture = document("docs/pictures/tree.svg");
    let mut shown: Vec<String> = Vec::new();
    for line in picture.lines().filter(|line| line.starts_with("<text")) {
        let outside =
            line.split('<').map(|piece| piece.split_once('>').map_or("", |(_, text)| text));
        let line: String = outside.collect();
        shown.push(line.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"));
    }
    let drawn = rig.ok(["tree", "deploy"]);
    let drawn: Vec<&str> = ["$ talktree tree deploy"].into_iter().chain(drawn.lines()).collect();
    assert_eq!(shown, drawn, "draw it again: just picture");
}
