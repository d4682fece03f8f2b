//! `talktree context`: the frozen prompt, and pages with the texts of all labels.

use crate::common::context::{feed, filled, program, show};
use crate::common::{Outcome, Rig, fields, text};
use serde_json::{Value, json};
use talktree::{Block, Store};

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
    let blocks = store.session_builder("tour").block("Notes", Block::stored());
    let blocks = blocks.block("soul", Block::text("Be brief.")).open()?.context().clone();
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
