//! Faults that lost the content of a block, or let wrong content through.
//!
//! Lost were: the marker of an unloaded skill when its message was updated, the title of a document when a model wrote
//! its text, and a write of another thread during an append. A key or a description could add a line to the prompt. A text
//! that was read under one owner was written under the next, and frozen in a prompt of the next.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::random;
use serde_json::json;
use talktree::{
    Block, BoxError, Document, Erasure, Error, Message, Part, ReadProvider, Result, Session,
    SessionDetails, Store, WriteProvider,
};

#[test]
fn an_unloaded_skill_stays_hidden_when_its_message_grows() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session_builder("s").block("skills", Block::stored_skills()).open()?;
    chat.context().set_document("skills", &Document::new("pdf", "Use pdftotext."))?;
    let call = |name: &str, id: &str| -> Result<Message> {
        let input = json!({"label": "skills", "key": "pdf"});
        let answer = chat.tools().call(name, &input)?;
        Ok(Message::assistant("")
            .with_part(Part::tool_call(name, id, input))
            .with_part(Part::tool_result(name, id, json!(answer))))
    };
    // A program that keeps a whole turn in one message updates it at each step.
    let mut turn = call("load_context", "1")?.with_id("turn");
    chat.append(turn.clone())?;
    turn.parts.extend(call("unload_context", "2")?.parts);
    chat.update(turn)?;

    let shown = serde_json::to_string(&chat.history()?).unwrap_or_default();
    assert!(shown.contains("[unloaded; ") && !shown.contains("pdftotext"), "{shown}");
    assert!(chat.context().loaded()?.is_empty());
    Ok(())
}

#[test]
fn a_model_that_rewrites_a_document_keeps_its_title() -> Result<()> {
    let store = Store::open_in_memory()?;
    let context = store
        .session_builder("s")
        .block("skills", Block::stored_skills())
        .open()?
        .context()
        .clone();
    let pdf = Document::new("pdf", "old").titled("PDF").described("Reads PDFs");
    context.set_document("skills", &pdf)?;
    let input = json!({"label": "skills", "content": "new", "metadata": {"key": "pdf"}});
    context.tools().call("set_context", &input)?;
    assert_eq!(context.load("skills", "pdf")?.as_deref(), Some("new"));
    let known = &context.documents("skills")?[0];
    let names = (known.title.as_deref(), known.description.as_deref());
    assert_eq!(names, (Some("PDF"), Some("Reads PDFs")));
    Ok(())
}

#[test]
fn a_list_of_skills_has_one_short_line_for_each() -> Result<()> {
    let store = Store::open_in_memory()?;
    let context = store
        .session_builder("s")
        .block("skills", Block::stored_skills())
        .open()?
        .context()
        .clone();
    context.set_document("skills", &Document::new("a", "x").described("é".repeat(100_000)))?;
    context.set_document("skills", &Document::new("b", "x").described("two\n- lines"))?;
    for key in ["c\n- d", "c\u{2028}d", "c\0", " "] {
        let documents = [Document::new("before", "x"), Document::new(key, "x")];
        let refused = context.set_documents("skills", documents);
        let is_refused = matches!(refused, Err(Error::InvalidValue { what: "document key", .. }));
        assert!(is_refused, "{key:?}: {refused:?}");
        let refused = context.append_document("skills", &Document::new(key, "x"));
        assert!(matches!(refused, Err(Error::InvalidValue { .. })), "{key:?}");
    }
    let list = context.block("skills")?.unwrap_or_default().content;
    assert_eq!(list, format!("- a: {}…\n- b: two - lines", "é".repeat(1_023)));
    Ok(())
}

#[test]
fn a_version_of_another_kind_of_block_is_not_restored() -> Result<()> {
    let store = Store::open_in_memory()?;
    let text =
        store.session_builder("s").block("memory", Block::stored()).open()?.context().clone();
    text.set("memory", "tea")?;
    let knowledge =
        store.session_builder("s").block("memory", Block::knowledge()).open()?.context().clone();
    knowledge.set_document("memory", &Document::new("shop", "Opens at nine."))?;

    let refused = knowledge.restore("memory", None, 1);
    assert!(matches!(refused, Err(Error::BlockKeyed { .. })), "{refused:?}");
    let refused = text.restore("memory", Some("shop"), 1);
    assert!(matches!(refused, Err(Error::BlockCannot { .. })), "{refused:?}");
    // Each would have changed the search results.
    assert_eq!(knowledge.search("memory", "nine", 10)?.len(), 1);
    assert_eq!(knowledge.search("memory", "tea", 10)?.len(), 0);
    for version in [0, 2, u64::MAX] {
        let unknown = text.restore("memory", None, version).unwrap_err();
        assert!(unknown.is_unknown(), "{unknown}");
    }
    assert!(text.version("memory", None, 2).is_err_and(|error| error.is_unknown()));
    Ok(())
}

/// A text that is slow to read, and reports when reading begins.
struct Slow {
    text: Arc<Mutex<String>>,
    reading: Mutex<Sender<()>>,
}

impl ReadProvider for Slow {
    fn get(&self) -> std::result::Result<String, BoxError> {
        let text = self.text.lock().unwrap().clone();
        let _ = self.reading.lock().unwrap().send(());
        std::thread::sleep(Duration::from_millis(100));
        Ok(text)
    }
}

impl WriteProvider for Slow {
    fn set(&self, content: &str) -> std::result::Result<(), BoxError> {
        *self.text.lock().unwrap() = content.to_owned();
        Ok(())
    }
}

#[test]
fn a_text_set_while_another_thread_appends_is_not_lost() -> Result<()> {
    let text = Arc::new(Mutex::new("old".to_owned()));
    let (reading, is_reading) = channel();
    let slow = Slow { text: Arc::clone(&text), reading: Mutex::new(reading) };
    let store = Store::open_in_memory()?;
    let context =
        store.session_builder("s").block("memory", Block::write(slow)).open()?.context().clone();
    std::thread::scope(|scope| {
        let adding = scope.spawn(|| context.append("memory", "more").map(drop));
        is_reading.recv().unwrap();
        context.set("memory", "new")?;
        adding.join().unwrap()
    })?;
    assert_eq!(*text.lock().unwrap(), "new");
    Ok(())
}

fn own(chat: &Session, owner: &str) -> Result<()> {
    chat.set_details(&SessionDetails { owner: Some(owner.to_owned()), ..SessionDetails::default() })
}

/// The write was refused only if another version was stored by then, and both owners have a first one.
#[test]
fn a_text_that_is_added_to_stays_with_its_owner() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store
        .session_builder("s")
        .block("memory", Block::stored().per_owner())
        .block("skills", Block::stored_skills().per_owner())
        .open()?;
    let context = chat.context();
    let verbs: [&(dyn Fn() -> Result<()> + Sync); 3] = [
        &|| context.append("memory", "more").map(drop),
        &|| context.append_document("skills", &Document::new("pdf", "more")).map(drop),
        &|| context.restore("memory", None, 1),
    ];
    for (at, verb) in verbs.into_iter().enumerate() {
        for round in 0..random::cases(400) {
            let owners = ["ann", "bob"].map(|owner| format!("{owner} {at} {round}"));
            for owner in &owners {
                own(&chat, owner)?;
                context.set("memory", &format!("Of {owner}."))?;
                context.set_document("skills", &Document::new("pdf", format!("Of {owner}.")))?;
            }
            own(&chat, &owners[0])?;
            std::thread::scope(|scope| {
                let moving = scope.spawn(|| own(&chat, &owners[1]));
                for _ in 0..round % 20 {
                    std::hint::spin_loop();
                }
                verb()?;
                moving.join().unwrap()
            })?;
            let texts =
                [chat.block("memory")?.unwrap().content, context.load("skills", "pdf")?.unwrap()];
            for text in texts {
                assert!(!text.contains(&owners[0]), "{text:?} of {:?}", owners[1]);
            }
        }
    }
    Ok(())
}

#[test]
fn a_prompt_is_frozen_with_the_texts_of_the_owner_it_is_frozen_for() -> Result<()> {
    type Change = fn(&Store, &Session) -> Result<()>;
    let changes: [(&str, Change); 3] = [
        ("another owner", |_, chat| own(chat, "bob")),
        ("an erasure", |store, chat| {
            own(chat, "bob")?;
            store.erase(&Erasure::owner("ann")).map(drop)
        }),
        ("a removal", |_, chat| chat.context().remove_text("memory").map(drop)),
    ];
    for (what, change) in changes {
        for is_fresh in [false, true] {
            let store = Store::open_in_memory()?;
            let inner =
                store.session_builder("s").block("memory", Block::stored().per_owner()).open()?;
            own(&inner, "ann")?;
            inner.context().set("memory", "The vault opens with 7194.")?;
            let changing = {
                let (store, inner) = (store.clone(), inner.clone());
                Block::from_fn(move || {
                    change(&store, &inner)?;
                    Ok("now".to_owned())
                })
            };
            let chat = store
                .session_builder("s")
                .block("memory", Block::stored().per_owner())
                .block("time", changing)
                .cached_prompt()
                .open()?;
            let prompt = if is_fresh { chat.refresh_prompt()? } else { chat.prompt()? };
            let frozen = chat.context().frozen_prompt()?;
            assert_eq!(frozen.as_ref(), Some(&prompt), "{what}");
            assert!(!prompt.contains("7194"), "{what}: {prompt}");
        }
    }
    Ok(())
}
