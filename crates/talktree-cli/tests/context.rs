//! `talktree context`: output and exit codes.

mod common;

use std::io::Write;
use std::process::Stdio;

use common::{Answer, Outcome, Rig, fields, text};
use serde_json::{Value, json};
use talktree::{Block, Context, Document, SessionDetails, Store};

/// Returns the context of a program: a text, skills and knowledge of the session, and a shared text.
fn program(store: &Store) -> Context {
    let open = store
        .context("tour")
        .cached_prompt()
        .block("soul", Block::text("You plan trips."))
        .block("memory", Block::stored().describe("Learned facts").max_tokens(100))
        .block("skills", Block::stored_skills())
        .block("knowledge", Block::knowledge())
        .block("house rules", Block::shared());
    open.open().unwrap()
}

/// Returns a rig whose session `tour` has content under each label.
fn filled() -> Rig {
    let rig = Rig::toured();
    let store = Store::open(rig.store()).unwrap();
    let context = program(&store);
    context.set("memory", "Likes tea.\nLives in Bern.").unwrap();
    context.set("memory", "Likes coffee.\nLives in Bern.").unwrap();
    let pdf = Document::new("pdf", "Use pdftotext.").titled("PDF").described("Reads PDFs");
    context.set_document("skills", &pdf).unwrap();
    for (key, fact) in [("shop", "The shop opens at nine."), ("bus", "The bus stops at the shop.")]
    {
        context.set_document("knowledge", &Document::new(key, fact)).unwrap();
    }
    context.set("house rules", "Be brief.").unwrap();
    rig
}

fn feed(rig: &Rig, args: &[&str], input: &str) -> Answer {
    let mut command = rig.command(args);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A refused command does not read stdin.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    Answer::of(child.wait_with_output().unwrap())
}

fn show(rig: &Rig, label: &str) -> String {
    rig.ok(["context", "show", "tour", label])
}

#[test]
fn list_shows_the_content_of_each_label() {
    let rig = filled();
    let list = rig.ok(["context", "list", "tour"]);
    let rows: Vec<Vec<&str>> = list.lines().map(|line| line.split("  ").collect()).collect();
    assert_eq!(rows.len(), 5, "{list}");
    assert!(
        list.starts_with("label        kind       documents  tokens  versions  changed"),
        "{list}"
    );
    assert!(list.contains("memory       text                  7       2         20"), "{list}");
    assert!(list.contains("skills       skills     1          6       1         20"), "{list}");
    assert!(list.contains("knowledge    knowledge  2          "), "{list}");
    assert!(list.lines().last().unwrap().ends_with("all sessions"), "{list}");

    let rows = rig.json(["context", "list", "tour"]);
    assert_eq!(
        fields(&rows[0]),
        ["changed_at", "documents", "kind", "label", "owner", "shared", "tokens", "versions"]
    );
    let brief = |row: &Value| [&row["label"], &row["kind"], &row["shared"]].map(Clone::clone);
    assert_eq!(
        rows.iter().map(brief).collect::<Vec<_>>(),
        [
            [json!("knowledge"), json!("knowledge"), json!(false)],
            [json!("memory"), json!("text"), json!(false)],
            [json!("skills"), json!("skills"), json!(false)],
            [json!("house rules"), json!("text"), json!(true)],
        ]
    );
    assert_eq!((&rows[0]["documents"], &rows[0]["versions"]), (&json!(2), &json!(2)));
}

#[test]
fn shared_texts_need_no_session() {
    let rig = filled();
    let rows = rig.json(["context", "list", "nobody", "--shared"]);
    assert_eq!(rows.len(), 1);
    assert_eq!(rig.ok(["context", "show", "nobody", "house rules", "--shared"]), "Be brief.\n");
    assert_eq!(
        rig.ok(["context", "set", "nobody", "house rules", "Be kind.", "--append", "--shared"]),
        "all sessions: house rules holds 6 tokens, version 2\n"
    );
    assert_eq!(show(&rig, "house rules"), "Be brief.\nBe kind.\n");
    let page = rig.ok(["context", "export", "nobody", "--shared"]);
    assert_eq!(page, "# house rules\n\nBe brief.\nBe kind.\n");
    rig.ok(["context", "restore", "nobody", "house rules", "1", "--shared"]);
    assert_eq!(show(&rig, "house rules"), "Be brief.\n");
    assert_eq!(rig.json(["sessions"]).len(), 1, "no session came into being");
}

#[test]
fn a_session_cannot_hide_a_shared_text() {
    let rig = filled();
    let page = text(&rig.file("page.md", "# memory\n\nx\n\n# house rules\n\nShout.\n"));
    for (code, args) in [
        (2, &["set", "tour", "house rules", "Shout."][..]),
        (2, &["rm", "tour", "house rules", "x"]),
        (2, &["restore", "tour", "house rules", "1"]),
        (2, &["import", "tour", &page]),
    ] {
        let told = rig.fails(code, ["context"].iter().chain(args));
        assert!(told.contains("--shared"), "{told}");
    }
    assert_eq!(show(&rig, "house rules"), "Be brief.\n");
    assert_eq!(show(&rig, "memory"), "Likes coffee.\nLives in Bern.\n");
}

#[test]
fn the_texts_of_an_owner_are_reached_through_any_of_its_sessions() -> Outcome {
    let rig = filled();
    rig.fails(1, ["context", "list", "nobody", "--owner", "user:42"]);
    let store = Store::open(rig.store())?;
    for id in ["tour", "another"] {
        let owner = Some("user:42".to_owned());
        store.session(id)?.set_details(&SessionDetails { owner, ..SessionDetails::default() })?;
    }
    let of_owner = |verb: &str, rest: &[&'static str]| -> Vec<String> {
        let args = ["context", verb, "nobody"].into_iter().chain(rest.iter().copied());
        args.chain(["--owner", "user:42"]).map(str::to_owned).collect()
    };
    assert_eq!(
        rig.ok(of_owner("set", &["person", "Likes tea."])),
        "owner user:42: person holds 3 tokens, version 1\n"
    );
    rig.ok(of_owner("set", &["facts", "Is 30.", "--key", "age", "--kind", "knowledge"]));
    rig.ok(of_owner("set", &["house rules", "Be loud."]));
    assert_eq!(show(&rig, "person"), "Likes tea.\n");
    assert_eq!(
        show(&rig, "house rules"),
        "Be loud.\n",
        "the owner's texts come before those of all"
    );
    let rows = rig.json(["context", "list", "tour"]);
    let of = |label: &str| rows.iter().filter(|row| row["label"] == label).collect::<Vec<_>>();
    assert_eq!(
        (&of("person")[0]["owner"], &of("person")[0]["shared"]),
        (&json!("user:42"), &json!(false))
    );
    assert_eq!(of("house rules").len(), 2);
    let told = rig.fails(2, ["context", "set", "tour", "person", "Likes coffee."]);
    assert!(told.contains("--owner \"user:42\""), "{told}");
    let found = rig.ok(of_owner("search", &["facts", "30"]));
    assert!(found.contains("age"), "{found}");
    assert_eq!(rig.json(of_owner("list", &[])).len(), 3);
    let page = rig.ok(of_owner("export", &[]));
    assert_eq!(page, "# house rules\n\nBe loud.\n\n# person\n\nLikes tea.\n");
    rig.ok(of_owner("rm", &["house rules"]));
    assert_eq!(show(&rig, "house rules"), "Be brief.\n");
    let told = rig.ok(of_owner("history", &["house rules"]));
    assert!(told.contains("removed"), "{told}");
    Ok(())
}

/// For such a label the library returns only the session's own content.
#[test]
fn a_label_with_session_and_shared_texts_is_listed_twice() -> Outcome {
    let rig = filled();
    let store = Store::open(rig.store())?;
    let shared = Block::knowledge().across_sessions();
    let other = store.context("other").block("memory", shared).block("skills", Block::shared());
    let other = other.open()?;
    other.set_document("memory", &Document::new("k", "Of all."))?;
    other.set("skills", "None.")?;
    let rows = rig.json(["context", "list", "tour"]);
    let of = |label: &str| -> Vec<(Value, Value)> {
        let rows = rows.iter().filter(|row| row["label"] == label);
        rows.map(|row| (row["kind"].clone(), row["shared"].clone())).collect()
    };
    assert_eq!(of("memory"), [(json!("text"), json!(false)), (json!("knowledge"), json!(true))]);
    assert_eq!(of("skills"), [(json!("skills"), json!(false)), (json!("text"), json!(true))]);
    assert_eq!(show(&rig, "memory"), "Likes coffee.\nLives in Bern.\n");
    assert_eq!(rig.ok(["context", "show", "tour", "memory", "k", "--shared"]), "Of all.\n");
    Ok(())
}

#[test]
fn show_prints_texts_documents_and_lists_of_documents() {
    let rig = filled();
    assert_eq!(show(&rig, "memory"), "Likes coffee.\nLives in Bern.\n");
    assert_eq!(rig.ok(["context", "show", "tour", "skills", "pdf"]), "Use pdftotext.\n");
    let list = show(&rig, "skills");
    assert!(list.starts_with("key  version  changed"), "{list}");
    assert!(list.ends_with("  PDF    Reads PDFs\n"), "{list}");
    assert_eq!(show(&rig, "knowledge").lines().count(), 3);

    let memory = &rig.json(["context", "show", "tour", "memory"])[0];
    assert_eq!(
        fields(memory),
        [
            "changed_at",
            "content",
            "description",
            "key",
            "kind",
            "label",
            "owner",
            "shared",
            "title",
            "tokens",
            "version"
        ]
    );
    assert_eq!(memory["content"], "Likes coffee.\nLives in Bern.");
    assert_eq!((&memory["version"], &memory["key"]), (&json!(2), &Value::Null));
    let pdf = &rig.json(["context", "show", "tour", "skills", "pdf"])[0];
    assert_eq!((&pdf["title"], &pdf["key"]), (&json!("PDF"), &json!("pdf")));
    let listed = &rig.json(["context", "show", "tour", "skills"])[0];
    assert_eq!(fields(listed), ["changed_at", "description", "key", "title", "version"]);
}

#[test]
fn set_writes_and_appends_to_texts() {
    let rig = filled();
    assert_eq!(
        rig.ok(["context", "set", "tour", "memory", "Likes water."]),
        "tour (A trip to Jena): memory holds 3 tokens, version 3\n"
    );
    rig.ok(["context", "set", "tour", "memory", "--append", "--", "- Runs."]);
    assert_eq!(show(&rig, "memory"), "Likes water.\n- Runs.\n");
    let answer = feed(&rig, &["context", "set", "tour", "memory", "-"], "from stdin\n\n");
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(
        rig.json(["context", "show", "tour", "memory"])[0]["content"],
        "from stdin\n",
        "one line break is the end of what was typed"
    );
    feed(&rig, &["context", "set", "tour", "memory", "--append"], "\r\nmore\r\n");
    assert_eq!(
        rig.json(["context", "show", "tour", "memory"])[0]["content"],
        "from stdin\n\n\r\nmore"
    );
    rig.ok(["context", "set", "tour", "memory", ""]);
    assert_eq!(show(&rig, "memory"), "");

    let told = &rig.json(["context", "set", "tour", "notes", "A first one."])[0];
    assert_eq!(fields(told), ["key", "label", "owner", "session", "shared", "tokens", "version"]);
    assert_eq!(
        *told,
        json!({"key": null, "label": "notes", "owner": null, "session": "tour", "shared": false, "tokens": 4, "version": 1})
    );
}

#[test]
fn an_empty_stdin_empties_nothing() {
    let rig = filled();
    for args in [&["memory"][..], &["memory", "-"], &["skills", "--key", "pdf"]] {
        let told = rig.fails(2, ["context", "set", "tour"].iter().chain(args));
        assert!(told.contains("nothing came by stdin"), "{told}");
    }
    assert_eq!(show(&rig, "memory"), "Likes coffee.\nLives in Bern.\n");
}

#[test]
fn set_writes_documents_and_keeps_their_titles() {
    let rig = filled();
    let set = |args: &[&str]| rig.ok(["context", "set", "tour"].iter().chain(args));
    let pdf = || rig.json(["context", "show", "tour", "skills", "pdf"]).remove(0);
    assert_eq!(
        set(&["skills", "--key", "pdf", "Use mutool."]),
        "tour (A trip to Jena): skills pdf holds 3 tokens, version 2\n"
    );
    assert_eq!(
        (pdf()["title"].clone(), pdf()["description"].clone()),
        (json!("PDF"), json!("Reads PDFs"))
    );
    set(&["skills", "--key", "pdf", "--append", "Or ask.", "--title", "", "--description", "All"]);
    assert_eq!(pdf()["content"], "Use mutool.\nOr ask.");
    assert_eq!((pdf()["title"].clone(), pdf()["description"].clone()), (Value::Null, json!("All")));

    set(&["facts", "--key", "sea", "--kind", "knowledge", "--title", "Sea", "It is salty."]);
    set(&["facts", "--key", "sky", "It is blue."]);
    let found = rig.ok(["context", "search", "tour", "facts", "blue"]);
    assert_eq!(found, "sky\n  It is blue.\n\n");
    set(&["ways", "--key", "k", "--kind", "skills", "x"]);
    assert_eq!(rig.json(["context", "list", "tour"]).len(), 6);
}

#[test]
fn set_refuses_a_write_that_does_not_fit_the_label() {
    let rig = filled();
    let long = "l".repeat(81);
    for (args, why) in [
        (&["memory", "--key", "k", "x"][..], "holds no documents"),
        (&["memory", "--key", "k", "--kind", "skills", "x"], "holds no documents"),
        (&["skills", "x"], "--key"),
        (&["skills", "--key", "k", "--kind", "knowledge", "x"], "holds skills already"),
        (&["new", "--key", "k", "x"], "--kind"),
        (&["new", "--key", "k", "--kind", "text", "x"], "text"),
        (&["new", "--key", "", "--kind", "skills", "x"], "key"),
        (&["memory", "--title", "t", "x"], "--key"),
        (&["memory", "--kind", "skills", "x"], "--key"),
        (&[&long, "x"], "81 characters, over the limit of 80"),
        (&["a\nb", "x"], "line break"),
        (&["", "x"], "blank"),
        (&["new", "--key", &"k".repeat(5_000), "--kind", "skills", "x"], "over the limit"),
    ] {
        let told = rig.fails(2, ["context", "set", "tour"].iter().chain(args));
        assert!(told.contains(why), "{args:?}: {told}");
    }
    assert_eq!(rig.json(["context", "list", "tour"]).len(), 4);
}

#[test]
fn a_document_is_removed_and_restored() {
    let rig = filled();
    assert_eq!(
        rig.ok(["context", "rm", "tour", "knowledge", "bus"]),
        "tour (A trip to Jena): knowledge bus is removed, version 2\n"
    );
    rig.fails(1, ["context", "show", "tour", "knowledge", "bus"]);
    rig.fails(1, ["context", "search", "tour", "knowledge", "bus"]);
    let history = rig.ok(["context", "history", "tour", "knowledge", "bus"]);
    assert!(history.ends_with("0       (removed)\n"), "{history}");
    let told = &rig.json(["context", "restore", "tour", "knowledge", "1", "--key", "bus"])[0];
    assert_eq!((&told["version"], &told["key"]), (&json!(3), &json!("bus")));
    assert_eq!(rig.json(["context", "search", "tour", "knowledge", "bus"]).len(), 1);

    let told = &rig.json(["context", "rm", "tour", "skills", "pdf"])[0];
    assert_eq!((&told["version"], &told["tokens"]), (&json!(2), &json!(0)));
    rig.fails(1, ["context", "rm", "tour", "skills", "pdf"]);
    let told = rig.fails(2, ["context", "rm", "tour", "memory", "k"]);
    assert!(told.contains("is one text"), "{told}");
}

/// Only documents could be removed; a text could at most be emptied.
#[test]
fn a_text_is_removed_and_restored() {
    let rig = filled();
    let told = rig.ok(["context", "rm", "tour", "memory"]);
    assert_eq!(told, "tour (A trip to Jena): memory is removed, version 3\n");
    rig.fails(1, ["context", "show", "tour", "memory"]);
    assert!(!rig.ok(["context", "list", "tour"]).contains("memory"));
    rig.fails(1, ["context", "rm", "tour", "memory"]);
    let told = &rig.json(["context", "restore", "tour", "memory", "2"])[0];
    assert_eq!((&told["version"], &told["key"]), (&json!(4), &json!(null)));
    assert!(rig.ok(["context", "show", "tour", "memory"]).contains("Likes coffee."));
    let told = rig.fails(2, ["context", "rm", "tour", "knowledge"]);
    assert!(told.contains("name the key of one"), "{told}");
}

#[test]
fn the_last_document_of_a_label_can_be_restored() {
    let rig = filled();
    for key in ["shop", "bus"] {
        rig.ok(["context", "rm", "tour", "knowledge", key]);
    }
    rig.fails(1, ["context", "show", "tour", "knowledge"]);
    assert_eq!(rig.json(["context", "history", "tour", "knowledge", "bus"]).len(), 2);
    let told = rig.fails(2, ["context", "restore", "tour", "knowledge", "1", "--key", "bus"]);
    assert!(told.contains("--kind"), "{told}");
    let restore = ["context", "restore", "tour", "knowledge", "1", "--key", "bus"];
    rig.ok(restore.iter().chain(&["--kind", "knowledge"]));
    assert_eq!(rig.json(["context", "search", "tour", "knowledge", "bus"]).len(), 1);
    rig.fails(
        2,
        ["context", "restore", "tour", "knowledge", "1", "--key", "shop", "--kind", "skills"],
    );
}

#[test]
fn history_lists_versions_and_what_each_changed() {
    let rig = filled();
    let history = rig.ok(["context", "history", "tour", "memory"]);
    let lines: Vec<&str> = history.lines().collect();
    assert!(lines[0].starts_with("version  changed"), "{history}");
    assert!(lines[1].starts_with("1  ") && lines[1].ends_with("  Likes tea."), "{history}");
    assert!(
        lines[2].starts_with("2  ") && lines[2].ends_with("7       Likes coffee."),
        "{history}"
    );

    let diff = rig.ok(["context", "history", "tour", "memory", "--diff"]);
    let first = "@@ -0,0 +1,2 @@\n+Likes tea.\n+Lives in Bern.\n\\ No newline at end of text\n\nversion 2  20";
    assert!(diff.starts_with("version 1  20") && diff.contains(first), "{diff}");
    let second = "@@ -1,2 +1,2 @@\n-Likes tea.\n+Likes coffee.\n Lives in Bern.\n";
    assert!(diff.contains(second), "{diff}");
    let newest = rig.ok(["context", "history", "tour", "memory", "--diff", "--limit", "1"]);
    assert!(newest.starts_with("version 2") && newest.contains(second), "{newest}");

    let history = ["context", "history", "tour", "memory", "--diff"];
    let coloured = rig.ok(history.iter().chain(&["--color", "always"]));
    assert!(coloured.contains("\u{1b}[32m+Likes coffee.\u{1b}[0m"), "{coloured}");
    assert!(coloured.contains("\u{1b}[31m-Likes tea.\u{1b}[0m"), "{coloured}");

    let versions = rig.json(["context", "history", "tour", "memory"]);
    let known = ["changed_at", "content", "description", "title", "tokens", "version"];
    assert_eq!(fields(&versions[1]), known);
    assert_eq!(versions[1]["content"], "Likes coffee.\nLives in Bern.");
    assert_eq!(
        rig.json(history)[1]["diff"].as_str().unwrap().lines().next(),
        Some("@@ -1,2 +1,2 @@")
    );
    assert_eq!(rig.json(["context", "history", "tour", "skills", "pdf"])[0]["title"], "PDF");
}

#[test]
fn a_difference_shows_a_changed_line_ending() {
    let rig = Rig::toured();
    feed(&rig, &["context", "set", "tour", "memory"], "a\nb\n\n");
    feed(&rig, &["context", "set", "tour", "memory"], "a\r\nb\n\n");
    let diff = rig.ok(["context", "history", "tour", "memory", "--diff"]);
    assert!(diff.contains("-a\n+a\\u{d}\n b\n"), "{diff}");
}

#[test]
fn restore_makes_an_old_version_the_newest() {
    let rig = filled();
    assert_eq!(
        rig.ok(["context", "restore", "tour", "memory", "1"]),
        "tour (A trip to Jena): memory holds 7 tokens, version 3\n"
    );
    assert_eq!(show(&rig, "memory"), "Likes tea.\nLives in Bern.\n");
    let told = rig.fails(1, ["context", "restore", "tour", "memory", "9"]);
    assert!(told.contains("has no version 9"), "{told}");
    let told = rig.fails(1, ["context", "restore", "tour", "skills", "9", "--key", "pdf"]);
    assert!(told.contains("of document \"pdf\""), "{told}");
    rig.fails(1, ["context", "restore", "tour", "skills", "1", "--key", "nobody"]);
    rig.fails(2, ["context", "restore", "tour", "memory", "one"]);
    rig.fails(2, ["context", "restore", "tour", "skills", "1"]);
    rig.fails(2, ["context", "restore", "tour", "memory", "1", "--key", "k"]);
}

#[test]
fn search_finds_knowledge_best_first() {
    let rig = filled();
    let found =
        rig.ok(["context", "search", "tour", "knowledge", "when", "does", "it", "open", "nine"]);
    assert!(found.starts_with("shop\n  The shop opens at nine.\n"), "{found}");
    let found = rig.json(["context", "search", "tour", "knowledge", "shop"]);
    assert_eq!(found.len(), 2);
    assert_eq!(fields(&found[0]), ["content", "description", "key", "title"]);
    assert_eq!(
        rig.json(["context", "search", "tour", "knowledge", "shop", "--limit", "1"]).len(),
        1
    );
    assert!(
        rig.fails(1, ["context", "search", "tour", "knowledge", "xylophone"]).contains("nothing")
    );
    rig.fails(2, ["context", "search", "tour", "knowledge", " "]);
    for label in ["memory", "skills"] {
        let told = rig.fails(2, ["context", "search", "tour", label, "tea"]);
        assert!(told.contains("only knowledge is searched"), "{told}");
    }
}

#[test]
fn the_frozen_prompt_and_its_drift_are_printed() -> Outcome {
    let rig = filled();
    for verb in ["prompt", "drift"] {
        assert!(rig.fails(1, ["context", verb, "tour"]).contains("no prompt is frozen"));
    }
    let store = Store::open(rig.store())?;
    let prompt = program(&store).prompt()?;
    assert_eq!(rig.ok(["context", "prompt", "tour"]), format!("{prompt}\n"));
    let answer = &rig.json(["context", "prompt", "tour"])[0];
    assert_eq!(fields(answer), ["prompt", "session", "tokens"]);
    assert_eq!(answer["prompt"], prompt);
    let answer = rig.run(["context", "drift", "tour"]);
    assert_eq!((answer.code, &*answer.stdout), (0, ""), "{answer:?}");
    assert!(answer.stderr.contains("differs from the frozen prompt"), "{answer:?}");
    assert_eq!(rig.json(["context", "drift", "tour"]).len(), 0);

    rig.ok(["context", "set", "tour", "memory", "Likes tea.\nLives in Bern."]);
    rig.ok(["context", "set", "tour", "notes", "--", "-- x"]);
    rig.ok(["context", "set", "tour", "house rules", "Be kind.", "--shared"]);
    rig.ok(["context", "set", "x", "of others", "Not in this prompt.", "--shared"]);
    let drift = rig.ok(["context", "drift", "tour"]);
    assert_eq!(
        drift,
        "--- memory (frozen)\n+++ memory (now)\n@@ -1,2 +1,2 @@\n-Likes coffee.\n+Likes tea.\n Lives in Bern.\n\\ No newline at end of text\n\
         --- (not frozen)\n+++ notes (now)\n@@ -0,0 +1 @@\n+-- x\n\\ No newline at end of text\n\
         --- house rules (frozen)\n+++ house rules (now)\n@@ -1 +1 @@\n-Be brief.\n\\ No newline at end of text\n+Be kind.\n\\ No newline at end of text\n"
    );
    let coloured = rig.ok(["context", "drift", "tour", "--color", "always"]);
    assert!(coloured.contains("\u{1b}[32m+Likes tea.\u{1b}[0m"), "{coloured}");
    let rows = rig.json(["context", "drift", "tour"]);
    assert_eq!(fields(&rows[0]), ["current", "diff", "frozen", "kind", "label"]);
    let kinds: Vec<&Value> = rows.iter().map(|row| &row["kind"]).collect();
    assert_eq!(kinds, ["changed", "added", "changed"]);
    Ok(())
}

#[test]
fn a_page_of_texts_can_be_imported_into_another_session() {
    let rig = filled();
    let answer = rig.run(["context", "export", "tour"]);
    assert_eq!(answer.stdout, "# memory\n\nLikes coffee.\nLives in Bern.\n");
    assert!(answer.stderr.contains("knowledge: 2 documents left out"), "{answer:?}");
    rig.ok(["fork", "tour", "ask", "Another trip"]);
    let page = format!("You plan trips.\n\n{}", answer.stdout.replace("coffee", "water"));
    let told = feed(&rig, &["context", "import", "Another trip", "-"], &page);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.stdout.contains("system holds 4 tokens, version 1\n"), "{told:?}");
    assert!(rig.ok(["context", "show", "Another trip", "memory"]).starts_with("Likes water."));
    assert!(show(&rig, "memory").starts_with("Likes coffee."), "the first session is as it was");

    let page = text(&rig.file("page.md", "# common\n\nOf all.\n"));
    let told = &rig.json(["context", "import", "x", &page, "--shared"])[0];
    assert_eq!(
        (&told["label"], &told["session"], &told["shared"]),
        (&json!("common"), &Value::Null, &json!(true))
    );
    assert_eq!(show(&rig, "common"), "Of all.\n");
    let rows = rig.json(["context", "export", "tour"]);
    assert_eq!(
        rows,
        [
            json!({"label": "memory", "owner": null, "shared": false, "content": "Likes coffee.\nLives in Bern."})
        ]
    );
}

#[test]
fn a_prompt_is_imported_under_the_known_labels() -> Outcome {
    let rig = Rig::toured();
    let store = Store::open(rig.store())?;
    let blocks = store.context("tour").block("Notes", Block::stored());
    let blocks = blocks.block("soul", Block::text("Be brief.")).open()?;
    blocks.set("Notes", "Old.")?;
    let prompt = blocks.prompt()?.replace("Old.", "New.");
    let answer = feed(&rig, &["context", "import", "tour", "-"], &prompt);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!((&*show(&rig, "Notes"), &*show(&rig, "soul")), ("New.\n", "Be brief.\n"));
    Ok(())
}

#[test]
fn a_refused_import_changes_nothing() {
    let rig = filled();
    let long = "l".repeat(81);
    for (page, why) in [
        ("", "no text"),
        ("# memory\n\nx\n\n# memory\n\ny\n", "memory"),
        ("# memory\n\nx\n\n# skills\n\ny\n", "holds documents"),
        (&*format!("# memory\n\nx\n\n# {long}\n\ny\n"), "81 characters"),
    ] {
        let file = text(&rig.file("page.md", page));
        let told = rig.fails(5, ["context", "import", "tour", &file]);
        assert!(told.contains(why) && told.contains("page.md"), "{told}");
    }
    rig.fails(5, ["context", "import", "tour", "not-there.md"]);
    let file = text(&rig.file("latin.md", b"caf\xe9"));
    rig.fails(5, ["context", "import", "tour", &file]);
    assert_eq!(show(&rig, "memory"), "Likes coffee.\nLives in Bern.\n");
}

#[test]
fn nothing_found_is_one() {
    let rig = filled();
    for args in [
        &["show", "tour", "nobody"][..],
        &["show", "tour", "skills", "nobody"],
        &["show", "tour", "memory", "--shared"],
        &["rm", "tour", "nobody", "k"],
        &["rm", "tour", "skills", "nobody"],
        &["history", "tour", "nobody"],
        &["history", "tour", "nobody", "k"],
        &["history", "tour", "skills", "nobody"],
        &["restore", "tour", "nobody", "1"],
        &["restore", "tour", "nobody", "1", "--key", "k"],
        &["search", "tour", "nobody", "x"],
    ] {
        rig.fails(1, ["context"].iter().chain(args));
    }
    let told = rig.fails(1, ["context", "show", "tour", "nobody"]);
    assert!(told.contains("talktree context list tour"), "{told}");
    for args in [
        &["list", "nobody"][..],
        &["show", "nobody", "memory"],
        &["set", "nobody", "memory", "x"],
        &["rm", "nobody", "skills", "pdf"],
        &["history", "nobody", "memory"],
        &["restore", "nobody", "memory", "1"],
        &["search", "nobody", "knowledge", "x"],
        &["prompt", "nobody"],
        &["drift", "nobody"],
        &["export", "nobody"],
        &["import", "nobody", "-"],
    ] {
        let told = rig.fails(1, ["context"].iter().chain(args));
        assert!(told.contains("talktree sessions"), "{args:?}: {told}");
    }
    assert_eq!(rig.json(["sessions"]).len(), 1);
}

#[test]
fn a_list_of_an_empty_scope_is_empty() {
    let rig = Rig::toured();
    let answer = rig.run(["context", "list", "tour"]);
    assert_eq!((answer.code, &*answer.stdout), (0, ""), "{answer:?}");
    assert!(answer.stderr.contains("nothing is stored here"), "{answer:?}");
    assert_eq!(rig.json(["context", "list", "tour"]).len(), 0);
    rig.fails(1, ["context", "export", "tour"]);
    rig.fails(1, ["context", "show", "tour", "memory"]);
}

#[test]
fn no_verb_creates_a_store() {
    let rig = Rig::empty();
    for args in [
        &["list", "x"][..],
        &["list", "x", "--shared"],
        &["show", "x", "y"],
        &["set", "x", "y", "z"],
        &["set", "x", "y", "z", "--shared"],
        &["rm", "x", "y", "z"],
        &["history", "x", "y"],
        &["restore", "x", "y", "1"],
        &["search", "x", "y", "z"],
        &["prompt", "x"],
        &["drift", "x"],
        &["export", "x"],
        &["import", "x", "-"],
    ] {
        let told = rig.fails(3, ["context"].iter().chain(args));
        assert!(told.contains("there is no store at"), "{args:?}: {told}");
    }
    assert!(!rig.store().exists());
}

#[test]
fn every_verb_of_context_has_a_help_text() {
    let rig = Rig::empty();
    let help = rig.ok(["context", "--help"]);
    let verbs = [
        "list", "show", "set", "rm", "history", "restore", "search", "prompt", "drift", "export",
        "import",
    ];
    for verb in verbs {
        assert!(help.contains(&format!("\n  {verb} ")), "{help}");
        let usage = format!("Usage: talktree context {verb} [OPTIONS] <SESSION>");
        assert!(rig.ok(["context", verb, "--help"]).contains(&usage), "{verb}");
        assert!(rig.fails(2, ["context", verb]).contains(&usage), "{verb}");
    }
    rig.fails(2, ["context"]);
    rig.fails(2, ["context", "frobnicate"]);
    assert!(rig.ok(["completions", "bash"]).contains("talktree__subcmd__context"));
}

#[test]
fn no_control_character_of_a_context_is_printed() -> Outcome {
    let rig = Rig::toured();
    let store = Store::open(rig.store())?;
    let hostile = "word \u{1b}[2J \u{7} \u{202e} \u{9b}1A\u{85}";
    let label = "l\u{202e}";
    let context = store
        .context("tour")
        .cached_prompt()
        .block("text", Block::stored())
        .block(label, Block::knowledge())
        .open()?;
    context.set("text", hostile)?;
    context.prompt()?;
    context.set("text", &format!("{hostile}\r\nmore"))?;
    let document = Document::new("k\u{202e}", hostile).titled(hostile).described(hostile);
    context.set_document(label, &document)?;
    for args in [
        &["list", "tour"][..],
        &["show", "tour", "text"],
        &["show", "tour", label],
        &["show", "tour", label, "k\u{202e}"],
        &["show", "tour", label, "no\u{1b}"],
        &["history", "tour", "text"],
        &["history", "tour", "text", "--diff"],
        &["history", "tour", label, "k\u{202e}"],
        &["search", "tour", label, "word"],
        &["prompt", "tour"],
        &["drift", "tour"],
        &["restore", "tour", label, "1", "--key", "k\u{202e}"],
        &["rm", "tour", label, "k\u{202e}"],
    ] {
        for json in [&[][..], &["--json"]] {
            let answer = rig.run(["context"].iter().chain(args).chain(json));
            assert!(answer.code <= 1, "{args:?}: {answer:?}");
            let printed = answer.stdout + &answer.stderr;
            let is_hostile = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert_eq!(printed.chars().find(|c| is_hostile(*c)), None, "{args:?}: {printed}");
        }
    }
    let shown = rig.ok(["context", "show", "tour", "text"]);
    assert!(shown.starts_with(r"word \u{1b}[2J \u{7} \u{202e} \u{9b}1A\u{85}"), "{shown}");
    let json = &rig.json(["context", "show", "tour", "text"])[0];
    assert_eq!(json["content"], format!("{hostile}\r\nmore"));
    Ok(())
}
