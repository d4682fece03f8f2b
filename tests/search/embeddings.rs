//! Vectors beside messages: they follow every change of a message, and a search by meaning leaves no filter out.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::tables::{Tables, prove};
use talktree::{
    BoxError, Embedder, Embedding, Erasure, Error, Matched, Message, MessageId, Result, Role, Store,
};

/// Knows three topics by their words, as a model knows what words mean.
struct Topics;

const TOPICS: [&[&str]; 3] = [
    &["doctor", "Dr.", "clinic", "fever"],
    &["song", "tune", "melody", "choir"],
    &["deploy", "release", "rollout"],
];

impl Embedder for Topics {
    fn name(&self) -> &str {
        "topics-1"
    }

    fn embed(&self, texts: &[&str]) -> std::result::Result<Vec<Vec<f32>>, BoxError> {
        let count = |text: &str, words: &[&str]| {
            words.iter().map(|word| text.matches(word).count()).sum::<usize>() as f32
        };
        Ok(texts.iter().map(|text| TOPICS.map(|words| count(text, words)).to_vec()).collect())
    }
}

/// A store with one session of these messages by users, embedded.
fn embedded(texts: &[&str]) -> Result<(Store, Vec<MessageId>)> {
    let store = Store::open_in_memory()?;
    let messages: Vec<Message> = texts.iter().map(|text| Message::user(*text)).collect();
    let ids = messages.iter().map(|message| message.id.clone()).collect();
    store.session("s")?.append_all(messages)?;
    store.embed(&Topics, |_| {})?;
    Ok((store, ids))
}

/// The texts of the hits, best first.
fn found(store: &Store, query: &str) -> Result<Vec<String>> {
    let found = store.search(query).by_meaning(Topics).run()?;
    Ok(found.hits.into_iter().map(|hit| hit.snippet.text).collect())
}

fn figures(embedding: &Embedding) -> (u64, u64) {
    (embedding.embedded, embedding.pending)
}

#[test]
fn messages_are_found_by_other_words_and_say_so() -> Result<()> {
    let (store, ids) = embedded(&["I see Dr. Patel", "a tune for the choir", "nothing of this"])?;
    assert_eq!(store.search("doctor").run()?.hits, []);

    let result = store.search("doctor").by_meaning(Topics).run()?;
    assert_eq!(result.matched, Matched::Meaning);
    let hits: Vec<_> = result.hits.iter().map(|hit| (&hit.id, hit.matched)).collect();
    assert_eq!(hits, [(&ids[0], Matched::Meaning)]);
    Ok(())
}

#[test]
fn words_and_meaning_add_up() -> Result<()> {
    let (store, ids) =
        embedded(&["the clinic", "doctor is a word of this song, tune, melody", "my doctor said"])?;
    let hits = store.search("doctor").by_meaning(Topics).run()?.hits;
    let order: Vec<_> = hits.iter().map(|hit| (&hit.id, hit.matched)).collect();
    assert_eq!(order[0], (&ids[2], Matched::All), "has the word, and means it");
    assert_eq!(order.len(), 3);
    let clinic = hits.iter().find(|hit| hit.id == ids[0]).unwrap();
    assert_eq!(clinic.matched, Matched::Meaning);
    Ok(())
}

#[test]
fn sessions_are_found_by_meaning() -> Result<()> {
    let store = Store::open_in_memory()?;
    for (id, text) in [("a", "a tune"), ("b", "fever again"), ("c", "nothing")] {
        store.session(id)?.append(Message::user(text))?;
    }
    store.embed(&Topics, |_| {})?;
    let found = store.search("doctor").by_meaning(Topics).run_by_session()?;
    let ids: Vec<&str> = found.hits.iter().map(|hit| hit.session.as_str()).collect();
    assert_eq!(ids, ["b"]);
    assert_eq!(found.hits[0].hits.len(), 1);
    Ok(())
}

#[test]
fn filters_scopes_and_excluded_words_apply() -> Result<()> {
    let (store, _) = embedded(&["fever in May", "fever in June"])?;
    let other = store.session("t")?;
    let asked = other.append(Message::user("clinic"))?.id;
    other.append(Message::assistant("the clinic, once more"))?;
    other.append_to(&asked, Message::assistant("another clinic"))?;
    store.embed(&Topics, |_| {})?;

    assert_eq!(found(&store, "doctor")?.len(), 5);
    assert_eq!(found(&store, "doctor -June")?.len(), 4);
    assert_eq!(found(&store, "doctor role:assistant")?.len(), 2);
    assert_eq!(found(&store, "doctor session:s")?.len(), 2);
    assert_eq!(found(&store, "doctor before:2020")?.len(), 0);
    let on_path = store.session("t")?.search("doctor").by_meaning(Topics).on_path().run()?;
    assert_eq!(on_path.hits.len(), 2);
    talktree::SessionManager::builder(&store).build()?.delete(&"t".into())?;
    assert_eq!(found(&store, "doctor")?.len(), 2, "the trash is not searched");
    Ok(())
}

#[test]
fn a_query_with_operators_or_for_tools_asks_for_its_words() -> Result<()> {
    let (store, _) = embedded(&["fever", "my doctor"])?;
    for query in ["\"my doctor\"", "doct*", "doctor OR nurse"] {
        assert_eq!(found(&store, query)?, ["my doctor"], "{query}");
    }
    assert_eq!(found(&store, "in:tools doctor")?, [""; 0]);
    Ok(())
}

#[test]
fn many_filtered_messages_do_not_hide_the_rest() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all((0..3_000).map(|_| Message::assistant("fever")))?;
    chat.append(Message::user("fever with a tune and a song"))?;
    store.embed(&Topics, |_| {})?;
    assert_eq!(found(&store, "doctor role:user")?.len(), 1);
    Ok(())
}

#[test]
fn pages_do_not_overlap() -> Result<()> {
    let store = Store::open_in_memory()?;
    let texts = (0..150).map(|n| ["doctor", "fever", "clinic tune"][n % 3]).map(Message::user);
    store.session("s")?.append_all(texts)?;
    store.embed(&Topics, |_| {})?;
    let search = store.search("doctor").by_meaning(Topics);
    let whole: Vec<_> =
        search.clone().limit(150).run()?.hits.into_iter().map(|hit| hit.id).collect();
    let mut pages = Vec::new();
    for offset in (0..150).step_by(30) {
        pages.extend(search.clone().limit(30).offset(offset).run()?.hits.into_iter().map(|h| h.id));
    }
    assert_eq!((whole.len(), &pages), (150, &whole));
    Ok(())
}

#[test]
fn vectors_follow_every_change_of_a_message() -> Result<()> {
    let (store, ids) = embedded(&["fever", "a tune", "a release"])?;
    let chat = store.session("s")?;

    let mut changed = chat.message(&ids[1])?.unwrap();
    changed.parts = Message::user("the clinic").parts;
    chat.update(changed)?;
    assert_eq!(found(&store, "doctor")?, ["fever"], "a changed message is pending");
    assert_eq!(figures(&store.embeddings()?[0]), (2, 1));
    store.embed(&Topics, |_| {})?;
    assert_eq!(found(&store, "doctor")?.len(), 2);

    chat.append(Message::user("Dr. Patel"))?;
    assert_eq!(figures(&store.embeddings()?[0]), (3, 1));
    chat.delete([&ids[0]])?; // becomes a tombstone
    chat.clear()?;
    assert_eq!(figures(&store.embeddings()?[0]), (0, 0));
    Ok(())
}

#[test]
fn a_copy_has_the_vector_of_its_original_while_it_is_the_same() -> Result<()> {
    let (store, ids) = embedded(&["fever", "a tune"])?;
    let chat = store.session("s")?;
    let first = chat.fork(&ids[1], "copy")?;
    assert_eq!(figures(&store.embeddings()?[0]), (4, 0));
    assert_eq!(first.search("doctor").by_meaning(Topics).run()?.hits.len(), 1);

    let mut changed = chat.message(&ids[0])?.unwrap();
    changed.parts = Message::user("a rollout").parts;
    chat.update(changed)?;
    store.embed(&Topics, |_| {})?;
    let second = first.fork(&ids[1], "copy")?;
    assert_eq!(second.search("rollout").by_meaning(Topics).run()?.hits, []);
    store.embed(&Topics, |_| {})?;
    assert_eq!(second.search("doctor").by_meaning(Topics).run()?.hits.len(), 1);
    Ok(())
}

#[test]
fn an_erased_message_leaves_no_vector() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = Store::open(&path)?;
    let chat = store.session("s")?;
    let secret = chat.append(Message::user("fever of the choir"))?.id;
    chat.append(Message::user("a tune"))?;
    store.embed(&Topics, |_| {})?;

    let erased = store.erase(&Erasure::messages(chat.id(), [&secret]))?;
    prove(&erased);
    assert!(Tables::of(&path).rows().is_none_or(|rows| !rows.contains("fever")));
    assert_eq!(figures(&store.embeddings()?[0]), (1, 0));
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn messages_without_text_are_done_and_not_found() -> Result<()> {
    let (store, _) = embedded(&["fever", " \n "])?;
    store.session("s")?.append(Message::new(Role::Assistant, Vec::new()))?;
    let embedding = store.embed(&Topics, |_| {})?;
    assert_eq!(figures(&embedding), (3, 0));
    assert_eq!(found(&store, "doctor")?, ["fever"]);
    assert_eq!(store.search(" ").by_meaning(Topics).run()?.hits, []);
    Ok(())
}

#[test]
fn a_store_without_vectors_says_so() -> Result<()> {
    let store = Store::open_in_memory()?;
    store.session("s")?.append(Message::user("doctor"))?;
    let found = store.search("doctor").by_meaning(Topics).run()?;
    assert_eq!(found.hits.len(), 1);
    assert_eq!(
        found.notices,
        ["the store has no vectors by \"topics-1\": only words are searched"]
    );
    assert!(store.embeddings()?.is_empty());
    Ok(())
}

#[test]
fn the_last_embedder_takes_the_tables_with_it() -> Result<()> {
    let (store, _) = embedded(&["fever"])?;
    assert!(store.remove_embedding("topics-1")?);
    assert!(!store.remove_embedding("topics-1")?);
    assert!(store.embeddings()?.is_empty());
    store.session("s")?.append(Message::user("after"))?;
    assert_eq!(figures(&store.embed(&Topics, |_| {})?), (2, 0));
    Ok(())
}

#[test]
fn vectors_of_other_dimensions_are_refused() -> Result<()> {
    struct Wider;
    impl Embedder for Wider {
        fn name(&self) -> &str {
            "topics-1"
        }
        fn embed(&self, texts: &[&str]) -> std::result::Result<Vec<Vec<f32>>, BoxError> {
            Ok(vec![vec![1.0; 4]; texts.len()])
        }
    }
    let (store, _) = embedded(&["fever"])?;
    store.session("s")?.append(Message::user("more"))?;
    let error = store.embed(&Wider, |_| {}).unwrap_err().to_string();
    assert!(error.contains("its vectors have 4 dimensions, those in the store 3"), "{error}");
    let found = store.search("more").by_meaning(Wider).run()?;
    assert!(found.notices[0].contains("have 3 dimensions in the store"), "{:?}", found.notices);
    assert_eq!(found.hits.len(), 1);
    Ok(())
}

/// Fails at one call, and counts them all.
struct FailsAt(usize, AtomicUsize);

impl Embedder for FailsAt {
    fn name(&self) -> &str {
        "topics-1"
    }

    fn embed(&self, texts: &[&str]) -> std::result::Result<Vec<Vec<f32>>, BoxError> {
        match self.1.fetch_add(1, Ordering::Relaxed) {
            call if call == self.0 => Err("no connection".into()),
            _ => Topics.embed(texts),
        }
    }
}

#[test]
fn a_call_that_failed_is_continued_by_the_next() -> Result<()> {
    let store = Store::open_in_memory()?;
    store.session("s")?.append_all((0..200).map(|n| Message::user(format!("fever {n}"))))?;
    let embedder = FailsAt(2, AtomicUsize::new(0));
    let error = store.embed(&embedder, |_| {}).unwrap_err();
    assert!(matches!(error, Error::Embedder { .. }));
    assert_eq!(error.to_string(), "the embedder failed: no connection");
    assert_eq!(figures(&store.embeddings()?[0]), (128, 72));

    let mut calls = Vec::new();
    store.embed(&embedder, |progress| calls.push((progress.done, progress.total)))?;
    assert_eq!(calls, [(64, 72), (72, 72)]);
    assert_eq!(figures(&store.embeddings()?[0]), (200, 0));
    Ok(())
}

#[test]
fn an_embedder_may_use_the_store() -> Result<()> {
    struct Writes(Store);
    impl Embedder for Writes {
        fn name(&self) -> &str {
            "topics-1"
        }
        fn embed(&self, texts: &[&str]) -> std::result::Result<Vec<Vec<f32>>, BoxError> {
            self.0.session("log")?.append(Message::user("fever"))?;
            Topics.embed(texts)
        }
    }
    let (store, _) = embedded(&[])?;
    store.session("s")?.append(Message::user("tune"))?;
    let embedding = store.embed(&Writes(store.clone()), |_| {})?;
    assert_eq!(figures(&embedding), (1, 1), "what it appends is left to the next call");
    Ok(())
}

#[test]
fn a_text_that_changes_while_it_is_embedded_stays_pending() -> Result<()> {
    struct Changes(Store, MessageId);
    impl Embedder for Changes {
        fn name(&self) -> &str {
            "topics-1"
        }
        fn embed(&self, texts: &[&str]) -> std::result::Result<Vec<Vec<f32>>, BoxError> {
            let chat = self.0.session("s")?;
            let mut message = chat.message(&self.1)?.ok_or("no message")?;
            message.parts = Message::user("a tune").parts;
            chat.update(message)?;
            Topics.embed(texts)
        }
    }
    let store = Store::open_in_memory()?;
    let id = store.session("s")?.append(Message::user("fever"))?.id;
    assert_eq!(figures(&store.embed(&Changes(store.clone(), id), |_| {})?), (0, 1));
    store.embed(&Topics, |_| {})?;
    assert_eq!(found(&store, "song")?, ["a tune"]);
    assert_eq!(found(&store, "doctor")?, [""; 0]);
    Ok(())
}

#[test]
fn embedders_have_vectors_of_their_own() -> Result<()> {
    struct Other;
    impl Embedder for Other {
        fn name(&self) -> &str {
            "other"
        }
        fn embed(&self, texts: &[&str]) -> std::result::Result<Vec<Vec<f32>>, BoxError> {
            Ok(vec![vec![1.0; 5]; texts.len()])
        }
    }
    let (store, _) = embedded(&["fever", "tune"])?;
    store.embed(&Other, |_| {})?;
    let names: Vec<_> =
        store.embeddings()?.into_iter().map(|one| (one.embedder, one.dimensions)).collect();
    assert_eq!(names, [("other".to_owned(), Some(5)), ("topics-1".to_owned(), Some(3))]);
    assert_eq!(found(&store, "doctor")?, ["fever"]);
    assert_eq!(store.search("doctor").by_meaning(Other).run()?.hits.len(), 2);
    store.remove_embedding("other")?;
    assert_eq!(found(&store, "doctor")?, ["fever"]);
    Ok(())
}

#[test]
fn threads_that_embed_at_once_agree() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("store.db"))?;
    store.session("s")?.append_all((0..500).map(|n| Message::user(format!("fever {n}"))))?;
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| store.embed(&Topics, |_| {}))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect::<Result<Vec<_>>>()
    })?;
    assert_eq!(figures(&store.embeddings()?[0]), (500, 0));
    Ok(())
}
