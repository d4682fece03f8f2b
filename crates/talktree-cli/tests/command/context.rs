//! `talktree context`: what each verb prints and refuses, and its exit codes.

use crate::common::context::{feed, filled, show};
use crate::common::{Outcome, Rig, fields, text};
use serde_json::{Value, json};
use talktree::{Block, Document, SessionDetails, Store};

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
        (2, &["restore", "tour", "house rules", "1"]),
        (2, &["import", "tour", &page]),
    ] {
        let told = rig.fails(code, ["context"].iter().chain(args));
        assert!(told.contains("--shared"), "{told}");
    }
    // The option would remove it from all sessions.
    let told = rig.fails(1, ["context", "rm", "tour", "house rules"]);
    assert!(!told.contains("--shared"), "{told}");
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
    assert_eq!(rig.json(["context", "list", "--owner", "user:42"]).len(), 3);
    assert_eq!(rig.json(["context", "export", "--owner", "user:42"]).len(), 2);
    assert_eq!(rig.json(["context", "list", "--shared"]).len(), 1);
    rig.fails(2, ["context", "list"]);
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
    let other =
        store.session_builder("other").block("memory", shared).block("skills", Block::shared());
    let other = other.open()?.context().clone();
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
        let session = if ["list", "export"].contains(&verb) { "[SESSION]" } else { "<SESSION>" };
        let usage = format!("Usage: talktree context {verb} [OPTIONS] {session}");
        assert!(rig.ok(["context", verb, "--help"]).contains(&usage), "{verb}");
        let usage = format!("Usage: talktree context {verb} ");
        assert!(rig.fails(2, ["context", verb]).contains(&usage), "{verb}");
    }
    rig.fails(2, ["context"]);
    rig.fails(2, ["context", "frobnicate"]);
}

#[test]
fn no_control_character_of_a_context_is_printed() -> Outcome {
    let rig = Rig::toured();
    let store = Store::open(rig.store())?;
    let hostile = "word \u{1b}[2J \u{7} \u{202e} \u{9b}1A\u{85}";
    let label = "l\u{202e}";
    let context = store
        .session_builder("tour")
        .cached_prompt()
        .block("text", Block::stored())
        .block(label, Block::knowledge())
        .open()?
        .context()
        .clone();
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
