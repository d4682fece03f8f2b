//! Keys of documents that are given none: readable, and the same document for the same title.
//!
//! A key had a hash whenever the title was not itself a key: `how-to-deploy-2jozfmccxitxh`. A model had to copy that, and
//! words of Indian scripts and of Thai fell to pieces.

use std::sync::Barrier;

use crate::common::Scratch;
use serde_json::json;
use talktree::{Block, Context, Document, Result, Store};

fn open(store: &Store) -> Result<Context> {
    let builder = store.session_builder("s").block("skills", Block::stored_skills());
    Ok(builder.block("facts", Block::knowledge()).open()?.context().clone())
}

fn titled(title: &str, content: &str) -> Document {
    Document::new("", content).titled(title)
}

fn keys(context: &Context) -> Result<Vec<String>> {
    Ok(context.documents("skills")?.into_iter().map(|document| document.key).collect())
}

#[test]
fn a_key_is_the_title_in_any_script() -> Result<()> {
    let context = open(&Store::open_in_memory()?)?;
    for (title, key) in [
        ("Guide", "guide"),
        ("How to deploy", "how-to-deploy"),
        ("C++", "c"),
        ("Größe ändern!", "größe-ändern"),
        ("हिन्दी गाइड", "हिन्दी-गाइड"),
        ("คู่มือ", "คู่มือ"),
        ("記憶の使い方", "記憶の使い方"),
    ] {
        assert_eq!(context.set_document("skills", &titled(title, "text"))?, key);
        assert_eq!(context.load("skills", key)?.as_deref(), Some("text"));
    }
    assert_eq!(context.set_document("facts", &Document::new("", "Likes tea."))?, "likes-tea");
    Ok(())
}

#[test]
fn a_hash_follows_only_if_the_key_is_taken() -> Result<()> {
    let mut scratch = Scratch::new()?;
    let context = open(&scratch.store)?;
    let put = |context: &Context, title| context.set_document("skills", &titled(title, title));
    assert_eq!(put(&context, "Guide")?, "guide");
    let other = put(&context, "guide!")?;
    assert!(other.starts_with("guide-") && other.len() == "guide-".len() + 13, "{other}");
    // The same title writes the same document again, also after a restart and when the other one is gone.
    scratch.reopen()?;
    let context = open(&scratch.store)?;
    for _ in 0..2 {
        assert_eq!(put(&context, "guide!")?, other);
        assert_eq!(put(&context, "Guide")?, "guide");
    }
    assert!(context.remove_document("skills", "guide")?);
    assert_eq!(put(&context, "guide!")?, other);
    assert_eq!(keys(&context)?, [other.as_str()]);
    assert_eq!(put(&context, "Guide")?, "guide");

    // A document that the program named is its own, unless it is named by just this title.
    context.set_document("skills", &Document::new("menu", "of the program"))?;
    assert!(put(&context, "Menu")?.starts_with("menu-"));
    assert_eq!(put(&context, "menu")?, "menu");
    // One that was renamed since is another one.
    let renamed = Document::new("guide", "x").titled("Handbook");
    context.set_document("skills", &renamed)?;
    let again = put(&context, "Guide")?;
    assert!(again.starts_with("guide-") && again != other, "{again}");
    assert_eq!(put(&context, "Guide")?, again);
    Ok(())
}

/// Earlier versions gave a hash to every title that was not itself a key.
#[test]
fn a_document_with_a_key_of_an_earlier_version_is_found() -> Result<()> {
    let context = open(&Store::open_in_memory()?)?;
    let old = "how-to-deploy-2jozfmccxitxh";
    context.set_document("skills", &Document::new(old, "one").titled("How to deploy"))?;
    assert_eq!(context.set_document("skills", &titled("How to deploy", "two"))?, old);
    let old = "likes-coffee-1lnbx5vm8a3us";
    context.set_document("skills", &Document::new(old, "Likes coffee."))?;
    assert_eq!(context.set_document("skills", &Document::new("", "Likes coffee."))?, old);
    assert_eq!(keys(&context)?.len(), 2);
    Ok(())
}

#[test]
fn documents_that_are_written_together_get_keys_of_their_own() -> Result<()> {
    let context = open(&Store::open_in_memory()?)?;
    let all = [
        titled("Guide", "1"),
        titled("guide", "2"),
        Document::new("menu", "3"),
        titled("Guide", "4"),
        titled("Menu", "5"),
        Document::new("", "Likes tea."),
        Document::new("", "Likes tea!"),
        titled("!!!", "6"),
    ];
    let made = context.set_documents("skills", all.clone())?;
    assert_eq!((&*made[0], &*made[2], &*made[5]), ("guide", "menu", "likes-tea"));
    assert_eq!(made[3], made[0], "the same title");
    let distinct: std::collections::BTreeSet<_> = made.iter().collect();
    assert_eq!(distinct.len(), 7, "{made:?}");
    assert_eq!(context.load("skills", "guide")?.as_deref(), Some("4"));
    assert_eq!(context.set_documents("skills", all)?, made);
    Ok(())
}

#[test]
fn two_writers_of_one_key_do_not_overwrite_each_other() -> Result<()> {
    const ROUNDS: usize = 40;
    const WRITERS: usize = 4;
    let scratch = Scratch::new()?;
    let title = |round: usize, writer: usize| format!("Guide {round}{}", "!".repeat(writer));
    let all_at_once = Barrier::new(WRITERS);
    std::thread::scope(|scope| {
        let write = |writer: usize| -> Result<()> {
            let context = open(&scratch.store)?;
            for round in 0..ROUNDS {
                let document = titled(&title(round, writer), &title(round, writer));
                all_at_once.wait();
                match writer % 2 {
                    0 => context.set_document("skills", &document)?,
                    _ => context.append_document("skills", &document)?,
                };
            }
            Ok(())
        };
        let writers = (0..WRITERS).map(|writer| scope.spawn(move || write(writer)));
        let writers: Vec<_> = writers.collect();
        writers.into_iter().try_for_each(|writer| writer.join().unwrap())
    })?;
    let context = open(&scratch.store)?;
    let documents = context.documents("skills")?;
    assert_eq!(documents.len(), ROUNDS * WRITERS);
    for document in documents {
        assert_eq!(context.load("skills", &document.key)?, document.title, "{}", document.key);
    }
    Ok(())
}

#[test]
fn a_model_writes_by_title_and_gets_the_key() -> Result<()> {
    let context = open(&Store::open_in_memory()?)?;
    let tools = context.tools();
    let write = |title: &str, action: &str| {
        let metadata = json!({"title": title});
        let input = json!({"label": "skills", "content": "Use it.", "action": action, "metadata": metadata});
        tools.call("set_context", input)
    };
    for action in ["replace", "append"] {
        let answer = write("How to brew", action)?;
        assert!(
            answer.starts_with("Written to \"skills\" under the key \"how-to-brew\": "),
            "{answer}"
        );
    }
    assert_eq!(context.load("skills", "how-to-brew")?.as_deref(), Some("Use it.\nUse it."));
    let thai = "Written to \"skills\" under the key \"คู่มือ\": ";
    assert!(write("คู่มือ", "replace")?.starts_with(thai));
    Ok(())
}
