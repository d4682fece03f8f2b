//! What is erased is in no byte of the file, of its log, of its shared memory, or of a later backup; on a server, in no row of any
//! table, and no word of it in the index.
//!
//! Every text has a mark of its own, which is looked for in the bytes. A deleted text used to stay in free pages, in
//! gaps between rows, in segments of the search index, in the write-ahead log, and in every later backup: 842 times in
//! a store of 15 MB.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::process::{Other, task};
use crate::tables::{Tables, is_on_server, prove};
use talktree::{
    Block, CompactionOptions, Document, Erased, Erasure, Error, Json, Message, MessageId, Result,
    Session, SessionChange, SessionDetails, SessionFilter, SessionManager, SessionState, Store,
    TranscriptFilter, TranscriptKey, Usage, UsageGroup,
};
use talktree_claude::SessionStore;
use talktree_import::export::export_jsonl;
use talktree_import::{ImportOptions, import_reader};
use tempfile::TempDir;

/// Returns how often a mark is in the bytes of a file, in any case.
///
/// Another process reads the file: to close a descriptor of it here would drop SQLite's locks.
fn count_in(path: &Path, mark: &str) -> usize {
    let read = Command::new("cat").arg(path).output().unwrap();
    let bytes = read.stdout.to_ascii_lowercase();
    let mark = mark.to_ascii_lowercase();
    bytes.windows(mark.len()).filter(|window| *window == mark.as_bytes()).count()
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns how often a mark is in the files of a store, or in the rows of a server.
#[track_caller]
fn count(path: &Path, mark: &str) -> usize {
    if let Some(rows) = Tables::of(path).rows() {
        return rows.to_lowercase().matches(&mark.to_lowercase()).count();
    }
    ["", "-wal", "-shm"].iter().map(|suffix| count_in(&beside(path, suffix), mark)).sum()
}

/// Checks that a mark is in no byte of a store, nor in a backup that is made now; or in no row of a server.
#[track_caller]
fn assert_gone(store: &Store, path: &Path, mark: &str) {
    assert_eq!(count(path, mark), 0, "{mark} is still stored");
    if is_on_server() {
        return;
    }
    let backup = path.with_extension("backup");
    store.backup(&backup, |_| {}).unwrap();
    assert_eq!(count_in(&backup, mark), 0, "{mark} is in a backup");
    std::fs::remove_file(backup).unwrap();
}

#[track_caller]
fn assert_sound(store: &Store) {
    assert_eq!(store.verify(|_| {}).unwrap().damages, []);
}

fn open() -> Result<(TempDir, PathBuf, Store)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bot.db");
    let store = Store::open(&path)?;
    Ok((folder, path, store))
}

/// Returns a text with a mark, of about so many words.
fn text(mark: &str, words: usize) -> String {
    let words: Vec<String> = (0..words).map(|n| format!("word{}", n % 700)).collect();
    format!("{mark} {} {mark}", words.join(" "))
}

fn append(chat: &Session, mark: &str) -> Result<MessageId> {
    Ok(chat.append(Message::user(text(mark, 20)))?.id)
}

/// Erases something and stops after so many messages.
fn interrupt(store: &Store, erasure: &Erasure, after: u64) {
    let handle = store.interrupt_handle();
    let stopped = store.erase_with_progress(erasure, |at| {
        if at.done >= after {
            handle.interrupt();
        }
    });
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    assert!(store.has_unfinished_erasure().unwrap());
}

/// There was one note for all erasures: one that ended removed that of another one.
#[test]
fn each_interrupted_erasure_is_finished_and_nothing_else_is_erased() -> Result<()> {
    for (rewritten_up_to, by_another) in [(u64::MAX, false), (0, false), (0, true)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bot.db");
        let store = Store::options().erasure_rewrites_up_to(rewritten_up_to).open(&path)?;
        let fill = |id: &str, count: usize| -> Result<Vec<MessageId>> {
            let messages = (0..count).map(|n| Message::user(format!("hq4z{id}{n:04}x hello")));
            let stored = store.session(id)?.append_all(messages)?;
            Ok(stored.into_iter().map(|it| it.id).collect())
        };
        let ids = fill("some", 700)?;
        let some = Erasure::messages(&"some".into(), &ids[..600]);
        fill("whole", 600)?;
        fill("short", 3)?;
        interrupt(&store, &some, 200);
        interrupt(&store, &Erasure::session("whole").forbid_import(), 200);
        assert_eq!(store.session("some")?.raw_history()?.len(), 100);
        assert_eq!(store.session("whole")?.info()?, None);
        assert!(count(&path, "hq4zsome") > 100 && count(&path, "hq4zwhole") > 0);
        // What is stored since is not erased.
        store.session("some")?.append(Message::user("hq4zsomenew"))?;

        match by_another {
            true => {
                let erased = store.erase(&Erasure::session("short"))?;
                assert!(erased.is_rewritten || is_on_server());
            }
            false => assert!(store.finish_erasure()?),
        }
        assert!(!store.has_unfinished_erasure()?);
        assert_eq!(store.session("some")?.raw_history()?.len(), 101);
        assert!(store.is_import_forbidden(&"whole".into())?);
        assert_gone(&store, &path, "hq4zwhole");
        for n in [0, 300, 599] {
            assert_gone(&store, &path, &format!("hq4zsome{n:04}x"));
        }
        assert!(count(&path, "hq4zsome0600x") > 0 && count(&path, "hq4zsomenew") > 0);
        assert_sound(&store);
    }
    Ok(())
}

/// A tombstone kept its place although its last child was erased, and `verify` called it damage.
#[test]
fn an_interrupted_erasure_leaves_no_tombstone_without_children() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    let root = append(&chat, "mk7qroot")?;
    let leaf = append(&chat, "mk7qleaf")?;
    let branch = (0..600).map(|n| Message::user(format!("hq4z{n:04}x hello")));
    chat.checkout(&root)?;
    chat.append_all(branch)?;
    chat.append_to(&leaf, Message::user("its only child, and the newest message"))?;
    chat.delete([&leaf])?;
    assert_sound(&store);
    interrupt(&store, &Erasure::session("s"), 200);
    assert_sound(&store);
    assert!(store.finish_erasure()?);
    assert_gone(&store, &path, "hq4z");
    assert_sound(&store);
    Ok(())
}

#[test]
fn an_erasure_also_finishes_others_of_which_nothing_is_left() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    let messages = (0..600).map(|n| Message::user(format!("hq4z{n:04}x hello")));
    let ids: Vec<MessageId> = chat.append_all(messages)?.into_iter().map(|it| it.id).collect();
    interrupt(&store, &Erasure::messages(chat.id(), &ids), 200);
    // Not the same one: it names all that is left, and more. What is unknown still counts as erased.
    let erased = store.erase(&Erasure::session("s").and(Erasure::session("unknown")))?;
    // The texts that the other one deleted are not known any more.
    assert!(matches!(erased.prove(), Err(Error::NotProved)) || is_on_server());
    assert!(!store.has_unfinished_erasure()?);
    assert!(matches!(store.erase(&Erasure::session("s")), Err(Error::UnknownSession { .. })));
    assert_gone(&store, &path, "hq4z");
    Ok(())
}

/// A proof looked for the texts that its own erasure had deleted, also if these were none.
#[test]
fn an_erasure_that_another_process_finishes_is_proved() -> Result<()> {
    for after in [0, 200] {
        let (_folder, path, store) = open()?;
        let chat = store.session("s")?;
        chat.append_all((0..600).map(|n| Message::user(format!("hq4z{n:04}x hello"))))?;
        let mut is_left = true;
        let erased = store.erase_with_progress(&Erasure::session("s"), |at| {
            if at.done >= after && std::mem::take(&mut is_left) {
                let other = Store::open(&path).unwrap();
                other.finish_erasure().unwrap();
            }
        })?;
        let proof = prove(&erased);
        assert!(!is_left && proof.is_none_or(|proof| proof.texts >= 600));
        assert!(!store.has_unfinished_erasure()?);
        assert_gone(&store, &path, "hq4z");
    }
    Ok(())
}

#[test]
fn an_erased_message_is_in_no_byte_and_the_others_are_as_they_were() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    let mut ids = Vec::new();
    for n in 0..200 {
        ids.push(append(&chat, &format!("mk7q{n:04}x"))?);
    }
    // Long enough for overflow pages.
    ids.push(chat.append(Message::user(text("mk7qlongx", 9_000)))?.id);
    ids.push(append(&chat, "mk7qlastx")?);
    assert_eq!(store.search("mk7q0100x").run()?.hits.len(), 1);

    let chosen: Vec<&MessageId> = ids.iter().skip(50).step_by(3).collect();
    let erased = chat.erase(chosen.iter().copied())?;
    assert_eq!(erased.extent.messages, chosen.len() as u64);
    assert!(erased.is_complete());
    prove(&erased);
    for n in 0..200 {
        let mark = format!("mk7q{n:04}x");
        let is_erased = n >= 50 && (n - 50) % 3 == 0;
        assert_eq!(store.search(&mark).run()?.hits.len(), usize::from(!is_erased), "{mark}");
        if is_erased {
            assert_eq!(count(&path, &mark), 0, "{mark}");
        }
    }
    assert_gone(&store, &path, "mk7qlongx");
    assert!(count(&path, "mk7qlastx") > 0);
    assert_eq!(chat.raw_history()?.len(), ids.len() - chosen.len());
    assert_sound(&store);
    Ok(())
}

#[test]
fn former_contents_of_a_message_are_erased_with_it() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    append(&chat, "mk7qfirst")?;
    let streamed = chat.append(Message::assistant("mk7qstart"))?.id;
    for n in 0..60 {
        let so_far = text(&format!("mk7qpart{n:03}"), 10 * n);
        chat.update(Message::assistant(so_far).with_id(streamed.clone()))?;
        store.search("word7").run()?;
    }
    append(&chat, "mk7qafter")?;
    let _ = chat.erase([&streamed])?;
    for n in 0..60 {
        assert_eq!(count(&path, &format!("mk7qpart{n:03}")), 0, "{n}");
    }
    assert_gone(&store, &path, "mk7qstart");
    assert_sound(&store);
    Ok(())
}

#[test]
fn erased_words_are_gone_from_the_terms_and_others_stay() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    let former = chat.append(Message::user("mk7qforms mk7qforming"))?.id;
    let erased = chat.append(Message::user("mk7qsecret shared"))?.id;
    chat.append(Message::user("shared mk7qform"))?;
    let other = Store::open(&path)?;
    assert_eq!(other.search("shared").run()?.hits.len(), 2);
    chat.update(Message::user("mk7qform").with_id(former))?;
    let erased = chat.erase([&erased])?;
    prove(&erased);
    for mark in ["mk7qsecret", "mk7qforms", "mk7qforming"] {
        assert_gone(&store, &path, mark);
    }
    // Both handles record a word again that they had recorded before.
    for handle in [&store, &other] {
        handle.session("s")?.append(Message::user("mk7qsecret"))?;
        assert_eq!(handle.search("mk7qsecret").run()?.hits.len(), 1);
        assert!(count(&path, "mk7qsecret") > 0);
        let _ = handle.session("s")?.erase(&[handle.session("s")?.head()?.expect("a head")])?;
        assert_gone(handle, &path, "mk7qsecret");
    }
    assert_sound(&store);
    Ok(())
}

#[test]
fn an_erased_session_is_in_no_byte() -> Result<()> {
    let (_folder, path, store) = open()?;
    append(&store.session("kept")?, "mk7qkeptx")?;
    let chat = store
        .session_builder("mk7qidxx")
        .block("memory", Block::stored())
        .block("knowledge", Block::knowledge())
        .cached_prompt()
        .open()?;
    let first = append(&chat, "mk7qfirst")?;
    for n in 0..1_000 {
        append(&chat, &format!("mk7qmess{n}x"))?;
    }
    let last = append(&chat, "mk7qlastx")?;
    for n in 0..30 {
        chat.context().set("memory", &text(&format!("mk7qmemo{n:02}"), 30))?;
    }
    let document = Document::new("mk7qdockey", text("mk7qdocument", 50));
    chat.context().set_document("knowledge", &document)?;
    chat.prompt()?;
    chat.label("mk7qlabel", &first)?;
    chat.add_compaction(text("mk7qsummary", 10), &first, &last)?;
    store.rename(chat.id(), "mk7qnamex")?;
    store.change_session(chat.id(), &talktree::SessionChange::Tag("mk7qtagxx".into()))?;
    store.search("word7").run()?;

    let erased = store.erase(&Erasure::session("mk7qidxx"))?;
    assert_eq!(erased.extent.messages, 1_002);
    assert_eq!((erased.extent.summaries, erased.extent.texts, erased.extent.prompts), (1, 2, 0));
    prove(&erased);
    assert_gone(&store, &path, "mk7qidxx");
    for mark in
        ["first", "mess", "last", "memo", "dockey", "document", "label", "summary", "name", "tag"]
    {
        assert_eq!(count(&path, &format!("mk7q{mark}")), 0, "{mark}");
    }
    assert!(count(&path, "mk7qkeptx") > 0);
    assert!(matches!(chat.append(Message::user("hi")), Err(Error::SessionRemoved { .. })));
    let again = store.erase(&Erasure::session("mk7qidxx"));
    assert!(matches!(again, Err(Error::UnknownSession { .. })), "{again:?}");
    assert_sound(&store);
    Ok(())
}

#[test]
fn copies_are_named_and_erased_on_request() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    let secret = append(&chat, "mk7qsecret")?;
    let after = append(&chat, "mk7qafter")?;
    let fork = chat.fork(&after, "Fork")?;
    let of_fork = fork.fork(&after, "Fork of the fork")?;
    append(&of_fork, "mk7qownx")?;

    let erased = chat.erase([&secret])?;
    let mut left: Vec<_> =
        erased.extent.copies_left.iter().map(|it| (&it.session, it.messages)).collect();
    left.sort();
    let mut expected = vec![(fork.id(), 1), (of_fork.id(), 1)];
    expected.sort();
    assert_eq!(left, expected);
    assert_eq!(fork.raw_history()?.len(), 2);
    assert!(prove(&erased).is_none_or(|proof| proof.kept > 0));

    // The original is deleted, and then the session that was forked: the copies are still found.
    store.remove(fork.id())?;
    let erasure = Erasure::messages(of_fork.id(), [&secret, &after]).with_forks();
    let erased = store.erase(&erasure)?;
    assert_eq!((erased.extent.messages, erased.extent.copies_left.len()), (3, 0));
    assert_gone(&store, &path, "mk7qsecret");
    assert_gone(&store, &path, "mk7qafter");
    assert_eq!(of_fork.raw_history()?.len(), 1);
    assert_eq!(chat.raw_history()?.len(), 0);
    assert_sound(&store);
    Ok(())
}

/// Forks and continuations kept blocks, documents and metadata of an erased session, and neither an outcome nor a proof said so.
#[test]
fn what_relatives_have_besides_messages_is_named_and_erased_on_request() -> Result<()> {
    for with_forks in [false, true] {
        let (_folder, path, store) = open()?;
        let open_as = |id: &str| {
            let chat = store.session_builder(id).block("memory", Block::stored());
            chat.block("facts", Block::knowledge()).cached_prompt().open()
        };
        let chat = open_as("s")?;
        let first = append(&chat, "mk7qtalk")?;
        chat.context().set("memory", "mk7qmemory of old")?;
        chat.context().set_document("facts", &Document::new("k", "mk7qdocument of old"))?;
        let about = Json::parse(r#"{"about":"mk7qmetadata of old"}"#)?;
        store.change_session(chat.id(), &SessionChange::Metadata(Some(about)))?;
        store
            .change_session(chat.id(), &SessionChange::Name(Some("mk7qname of old".to_owned())))?;
        let fork = chat.fork_as(&"fork".into(), &first, "Fork")?;
        let of_fork = fork.fork_as(&"fork of fork".into(), &first, "Fork of the fork")?;
        let next = chat.compact_and_split_as(&"next".into(), "In brief.")?;
        let again = next.compact_and_split_as(&"again".into(), "In brief.")?;
        // A later version and a text of its own.
        fork.context().append("memory", "and more")?;
        of_fork.context().set("memory", "unlike the other")?;
        next.context().remove_document("facts", "k")?;
        let stranger = open_as("stranger")?;
        stranger.context().set("memory", "kept of somebody else")?;
        again.prompt()?;
        // What leads from the last ones to the first is gone.
        let _ = store.erase(&Erasure::session(fork.id()).and(Erasure::session(next.id())))?;

        let mut erasure = Erasure::session("s").with_summaries();
        if with_forks {
            erasure = erasure.with_forks();
        }
        let mut expected = store.erasure_extent(&erasure)?;
        let erased = store.erase(&erasure)?;
        expected.prompts = erased.extent.prompts;
        assert_eq!(erased.extent, expected);
        let mut left: Vec<_> = erased
            .extent
            .copies_left
            .iter()
            .map(|it| {
                let (blocks, details) = (it.blocks.join(" "), it.details.join(" "));
                (it.session.to_string(), it.messages, blocks, details)
            })
            .collect();
        left.sort();
        let copies = |session: &str, messages, blocks: &str, details: &str| {
            (session.to_owned(), messages, blocks.to_owned(), details.to_owned())
        };
        match with_forks {
            false => assert_eq!(
                left,
                [
                    copies("again", 0, "facts memory", "metadata name"),
                    copies("fork of fork", 1, "facts memory", "metadata"),
                ]
            ),
            true => assert_eq!(left, []),
        }
        assert_eq!(erased.extent.left() == 0, with_forks);
        assert!(prove(&erased).is_none_or(|proof| proof.left == erased.extent.left()));
        for mark in ["memory", "document", "metadata", "name", "talk"] {
            let mark = format!("mk7q{mark}");
            match with_forks {
                true => assert_gone(&store, &path, &mark),
                false => assert!(count(&path, &mark) > 0, "{mark}"),
            }
        }
        let memory = |chat: &Session| Ok::<_, Error>(chat.block("memory")?.unwrap().content);
        assert_eq!(memory(&stranger)?, "kept of somebody else");
        assert_sound(&store);
    }
    Ok(())
}

/// It stayed when the message was erased, also in the session that continues this one, and came back with the next import.
#[test]
fn a_name_made_from_a_message_goes_with_it() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    let title = chat.append(Message::user("mk7qsecret is the word\nof the day"))?.id;
    append(&chat, "mk7qafter")?;
    let name = |chat: &Session| Ok::<_, Error>(chat.info()?.unwrap().name);
    let set = |id: &str, name: &str| {
        store.change_session(&id.into(), &SessionChange::Name(Some(name.to_owned())))
    };
    set("s", "mk7qsecret is the word")?;
    let mut export = Vec::new();
    export_jsonl(&store, &mut export)?;
    let next = chat.compact_and_split_as(&"next".into(), "In brief.")?;
    let fork = chat.fork_as(&"fork".into(), &title, "A name of its own")?;
    assert_eq!(name(&next)?, name(&chat)?);

    let erasure = Erasure::messages(chat.id(), [&title]).with_forks();
    assert_eq!(store.erasure_extent(&erasure)?.details, 2);
    let erased = store.erase(&erasure)?;
    assert_eq!(erased.extent.details, 2);
    assert_eq!((name(&chat)?, name(&next)?), (None, None));
    assert_eq!(name(&fork)?.as_deref(), Some("A name of its own"));
    assert_gone(&store, &path, "mk7qsecret");

    // A given name stays.
    set("s", "Words")?;
    let last = append(&chat, "mk7qlast")?;
    assert_eq!(chat.erase([&last])?.extent.details, 0);
    assert_eq!(name(&chat)?.as_deref(), Some("Words"));
    assert_sound(&store);

    let (_folder, path, store) = open()?;
    let import = || {
        let options = ImportOptions::default();
        import_reader(&store, "export", std::io::Cursor::new(&export), &options, |_| {})
    };
    let _ = import()?;
    let chat = store.session("s")?;
    assert_eq!(name(&chat)?.as_deref(), Some("mk7qsecret is the word"));
    let _ = chat.erase([&title])?;
    assert_eq!(import()?.added, 0);
    assert_eq!((name(&chat)?, chat.raw_history()?.len()), (None, 1));
    assert_gone(&store, &path, "mk7qsecret");
    Ok(())
}

#[test]
fn a_session_and_its_copies_in_forks_are_erased_together() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("mk7qorigin")?;
    for n in 0..300 {
        append(&chat, &format!("mk7qshared{n}x"))?;
    }
    let head = chat.head()?.unwrap();
    let fork = chat.fork(&head, "Fork")?;
    append(&fork, "mk7qownx")?;
    let erased = store.erase(&Erasure::session(chat.id()).with_forks())?;
    assert_eq!(erased.extent.messages, 600);
    assert_gone(&store, &path, "mk7qshared");
    assert_gone(&store, &path, "mk7qorigin");
    assert_eq!(fork.raw_history()?.len(), 1);
    assert_eq!(fork.info()?.unwrap().parent_session, None);
    assert_sound(&store);
    Ok(())
}

/// The copy in a fork was erased with a session that had deleted the message before.
#[test]
fn a_message_that_an_erased_session_had_deleted_stays_in_its_forks() -> Result<()> {
    let (_folder, _path, store) = open()?;
    let chat = store.session("s")?;
    let ids = ["a", "b", "c"].map(|id| append(&chat, &format!("mk7q{id}")).unwrap());
    let fork = chat.fork_as(&"fork".into(), &ids[2], "Fork")?;
    let again = fork.fork_as(&"again".into(), &ids[2], "Again")?;
    chat.delete([&ids[0]])?;
    fork.delete([&ids[1]])?;
    let extent = store.erase(&Erasure::session("s").with_forks())?.extent;
    assert_eq!(extent.messages, 2 + 1 + 2);
    let left = |chat: &Session| chat.raw_history().map(|history| history.len());
    assert_eq!((left(&fork)?, left(&again)?), (1, 1));
    assert_sound(&store);
    Ok(())
}

#[test]
fn summaries_are_named_and_erased_on_request_with_those_that_took_them_in() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    let ids = ["a", "b", "c", "d", "e"].map(|id| append(&chat, &format!("mk7qmess{id}")).unwrap());
    chat.add_compaction(text("mk7qinner", 3), &ids[0], &ids[1])?;
    chat.add_compaction(text("mk7qouter", 3), &ids[0], &ids[2])?;
    chat.add_compaction(text("mk7qother", 3), &ids[3], &ids[3])?;

    let erased = chat.erase([&ids[1]])?;
    assert_eq!((erased.extent.summaries, erased.extent.summaries_left.len()), (0, 2));
    let erasure = Erasure::messages(chat.id(), [&ids[0]]).with_summaries();
    let erased = store.erase(&erasure)?;
    assert_eq!((erased.extent.summaries, erased.extent.summaries_left.len()), (2, 0));
    assert_gone(&store, &path, "mk7qinner");
    assert_gone(&store, &path, "mk7qouter");
    assert_eq!(chat.compactions()?.len(), 1);
    assert_sound(&store);
    Ok(())
}

#[test]
fn a_session_that_continues_an_erased_one_is_named_and_loses_its_summary_on_request() -> Result<()>
{
    let (_folder, path, store) = open()?;
    for is_with_summaries in [false, true] {
        let chat = store.create_session("Talk")?;
        append(&chat, "mk7qbefore")?;
        let next = chat.compact_and_split(text("mk7qsummary", 5))?;
        append(&next, "mk7qnext")?;
        let last = next.compact_and_split(text("mk7qagain", 5))?;
        append(&last, "mk7qlast")?;
        let mut erasure = Erasure::session(chat.id());
        if is_with_summaries {
            erasure = erasure.with_summaries();
        }
        let erased = store.erase(&erasure)?;
        assert_gone(&store, &path, "mk7qbefore");
        match is_with_summaries {
            false => {
                for session in [&next, &last] {
                    let opening = &session.history()?[0].id;
                    let mut left = erased.extent.summaries_left.iter();
                    assert!(left.any(|it| it.session == *session.id() && it.id == *opening));
                }
                assert_eq!(erased.extent.summaries_left.len(), 2);
                assert!(count(&path, "mk7qsummary") > 0);
                let _ =
                    store.erase(&Erasure::session(next.id()).and(Erasure::session(last.id())))?;
            }
            true => {
                assert_eq!(erased.extent.summaries_left, []);
                assert_gone(&store, &path, "mk7qagain");
                assert!(count(&path, "mk7qnext") > 0);
            }
        }
        assert_gone(&store, &path, "mk7qsummary");
        assert_sound(&store);
    }
    Ok(())
}

#[test]
fn a_branch_is_erased_with_all_below_it() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    let root = append(&chat, "mk7qroot")?;
    let top = append(&chat, "mk7qtop")?;
    for n in 0..700 {
        append(&chat, &format!("mk7qbelow{n}x"))?;
    }
    chat.append_to(&top, Message::assistant(text("mk7qsibling", 5)))?;
    chat.append_to(&root, Message::assistant(text("mk7qkept", 5)))?;
    let erased = store.erase(&Erasure::branch(chat.id(), &top))?;
    assert_eq!(erased.extent.messages, 702);
    for mark in ["mk7qtop", "mk7qbelow", "mk7qsibling"] {
        assert_gone(&store, &path, mark);
    }
    assert_eq!(chat.raw_history()?.len(), 2);
    assert_sound(&store);
    Ok(())
}

/// A branch summary is a message, and was not found by the messages that it summarizes.
#[test]
fn summaries_of_branches_are_named_and_erased_on_request() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    let options = CompactionOptions::default();
    let checkout = |chat: &Session, to: &MessageId, mark: &str| -> Result<MessageId> {
        let plan = chat.plan_branch_summary(to, &options)?.expect("there is a branch");
        Ok(chat.checkout_with_summary(plan, text(mark, 3))?.id)
    };
    let task = append(&chat, "mk7qtask")?;
    let tried = append(&chat, "mk7qtried")?;
    append(&chat, "mk7qfailed")?;
    // The second summary is of a branch with the first one.
    let first = checkout(&chat, &task, "mk7qfirst")?;
    append(&chat, "mk7qagain")?;
    let second = checkout(&chat, &task, "mk7qsecond")?;
    let last = append(&chat, "mk7qlast")?;
    let fork = chat.fork(&last, "Fork")?;

    let left = |erasure: &Erasure| -> Result<Vec<MessageId>> {
        let extent = store.erasure_extent(erasure)?;
        Ok(extent.summaries_left.into_iter().map(|summary| summary.id).collect())
    };
    assert!(left(&Erasure::messages(chat.id(), [&last]))?.is_empty());
    // What both paths share is not summarized.
    assert!(left(&Erasure::messages(chat.id(), [&task]))?.is_empty());
    assert_eq!(left(&Erasure::messages(chat.id(), [&first]))?, std::slice::from_ref(&second));
    let erasure = Erasure::messages(chat.id(), [&tried]);
    assert_eq!(left(&erasure)?, std::slice::from_ref(&first));
    let erasure = erasure.with_summaries().with_forks();
    let extent = store.erasure_extent(&erasure)?;
    // The message, both summaries, and the copy of the second one.
    assert_eq!((extent.messages, extent.summaries_left.len()), (4, 0));
    let erased = store.erase(&erasure)?;
    assert_eq!(erased.extent, extent);
    for mark in ["mk7qtried", "mk7qfirst", "mk7qsecond"] {
        assert_gone(&store, &path, mark);
    }
    assert_eq!((chat.raw_history()?.len(), fork.raw_history()?.len()), (2, 2));
    assert!(count(&path, "mk7qfailed") > 0);
    assert_sound(&store);
    Ok(())
}

/// The lists of what is left were empty before an erasure.
/// The summary of a copy that was deleted stayed, and was not listed.
#[test]
fn summaries_of_deleted_copies_are_named_and_erased_on_request() -> Result<()> {
    for is_in_fork in [true, false] {
        let (_folder, path, store) = open()?;
        let chat = store.session("s")?;
        let ids = ["a", "b"].map(|id| append(&chat, &format!("mk7qmess{id}")).unwrap());
        let fork = chat.fork(&ids[1], "Fork")?;
        let again = fork.fork(&ids[1], "Again")?;
        let (with, without) = if is_in_fork { (&fork, &chat) } else { (&chat, &again) };
        let id = with.add_compaction(text("mk7qsummary", 3), &ids[0], &ids[1])?.id;
        with.delete([&ids[0]])?;
        let copy = with.fork(&ids[1], "Later")?;
        let erasure = Erasure::messages(without.id(), [&ids[0]]).with_forks();
        let extent = store.erasure_extent(&erasure)?;
        let left: Vec<_> = extent.summaries_left.iter().map(|it| (&it.session, &it.id)).collect();
        assert_eq!(left.len(), 2);
        assert!(left.contains(&(with.id(), &id.as_message())), "{left:?}");
        let erasure = erasure.with_summaries();
        let extent = store.erasure_extent(&erasure)?;
        assert_eq!((extent.summaries, extent.summaries_left.len()), (2, 0));
        let erased = store.erase(&erasure)?;
        assert_eq!(erased.extent, extent);
        prove(&erased);
        assert_gone(&store, &path, "mk7qmessa");
        assert_gone(&store, &path, "mk7qsummary");
        assert_eq!(with.history()?.len() + copy.history()?.len(), 2);
        assert_sound(&store);
    }
    Ok(())
}

/// Only those that cover an erased message were counted.
#[test]
fn summaries_that_end_at_tombstones_above_an_erased_branch_are_counted_before() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    let ids = ["a", "b", "c", "d", "e"].map(|id| append(&chat, id).unwrap());
    chat.append_to(&ids[0], Message::user("another branch"))?;
    chat.add_compaction("one", &ids[1], &ids[1])?;
    chat.add_compaction("two", &ids[0], &ids[2])?;
    chat.delete([&ids[2]])?;
    chat.add_compaction("three", &ids[3], &ids[4])?;
    let erasure = Erasure::branch(chat.id(), &ids[3]);
    let extent = store.erasure_extent(&erasure)?;
    let erased = store.erase(&erasure)?;
    assert_eq!(erased.extent.summaries, 2);
    assert_eq!(erased.extent, extent);
    assert_sound(&store);
    Ok(())
}

#[test]
fn what_will_be_left_is_known_before() -> Result<()> {
    let (_folder, _path, store) = open()?;
    let chat = store.session("s")?;
    let ids = ["a", "b", "c", "d"].map(|id| append(&chat, &format!("mk7qmess{id}")).unwrap());
    chat.add_compaction(text("mk7qinner", 3), &ids[0], &ids[1])?;
    chat.add_compaction(text("mk7qother", 3), &ids[3], &ids[3])?;
    chat.fork(&ids[2], "Fork")?;
    for erasure in [
        Erasure::messages(chat.id(), [&ids[1]]),
        // This summary goes with its only message.
        Erasure::messages(chat.id(), [&ids[3]]),
        Erasure::messages(chat.id(), [&ids[0]]).with_forks(),
        Erasure::messages(chat.id(), [&ids[2]]).with_summaries(),
    ] {
        let extent = store.erasure_extent(&erasure)?;
        let erased = store.erase(&erasure)?;
        assert_eq!(erased.extent, extent, "{erasure:?}");
    }
    let next = chat.compact_and_split(text("mk7qsplit", 5))?;
    chat.append(Message::user("one more"))?;
    chat.fork(&chat.head()?.unwrap(), "Another")?;
    for erasure in [Erasure::session(chat.id()), Erasure::session(next.id())] {
        let extent = store.erasure_extent(&erasure)?;
        assert_eq!(
            extent.copies_left.iter().map(|it| it.ids.len()).sum::<usize>() > 0,
            extent.sessions[0] == *chat.id()
        );
        assert_eq!(store.erase(&erasure)?.extent, extent, "{erasure:?}");
    }
    Ok(())
}

fn bot(store: &Store) -> Result<SessionManager> {
    SessionManager::builder(store)
        .block("memory", Block::stored().per_owner())
        .cached_prompt()
        .build()
}

#[test]
fn an_owner_is_erased_with_memory_keys_and_usage_and_no_other_owner_is() -> Result<()> {
    let (_folder, path, store) = open()?;
    let bot = bot(&store)?;
    for owner in ["mk7qowner", "other"] {
        for key in ["one", "two"] {
            let chat = bot.resume(format!("{owner}:key{key}")).owner(owner).open()?;
            append(&chat, &format!("{owner}text"))?;
            chat.context().set("memory", &text(&format!("{owner}memo"), 20))?;
            chat.prompt()?;
            let usage = Usage { input: 10, model: Some("large".into()), ..Usage::default() };
            chat.add_usage(None, &usage)?;
            let source = Some(format!("{owner}.json"));
            chat.set_details(&SessionDetails { source, ..SessionDetails::default() })?;
        }
    }
    let trashed = bot.resume("mk7qowner:trash").owner("mk7qowner").open()?;
    append(&trashed, "mk7qownertrash")?;
    bot.delete(trashed.id())?;
    let extent = store.erasure_extent(&Erasure::owner("mk7qowner"))?;
    assert_eq!((extent.sessions.len(), extent.messages, extent.texts), (3, 3, 1));

    let erased = bot.store().erase(&Erasure::owner("mk7qowner").keep_totals())?;
    assert_eq!((erased.extent.sessions.len(), erased.extent.messages), (3, 3));
    assert_eq!((erased.extent.bindings, erased.extent.usage, erased.extent.texts), (3, 2, 1));
    prove(&erased);
    assert_gone(&store, &path, "mk7qowner");
    assert_eq!(bot.store().list().owner("other").run()?.sessions.len(), 2);
    let totals = store.usage().by(UsageGroup::Model).run()?;
    assert_eq!(totals[0].input, 40);

    let erased = bot.erase_owner("other")?;
    assert_eq!(erased.extent.usage, 2);
    assert_gone(&store, &path, "other:key");
    let totals = store.usage().by(UsageGroup::Model).run()?;
    assert_eq!(totals[0].input, 20);
    assert_eq!(bot.erase_owner("nobody")?.extent.messages, 0);
    assert!(matches!(bot.erase_owner(""), Err(Error::InvalidValue { .. })));
    assert_sound(&store);
    Ok(())
}

/// The row of a block was deleted although a text had been stored in it since it was emptied: nobody could read the text, and
/// no erasure found it.
#[test]
fn memory_that_is_written_while_its_owner_is_erased_stays_and_is_erased_later() -> Result<()> {
    let (_folder, path, store) = open()?;
    let bot = bot(&store)?;
    let chat = bot.resume("before").owner("mk7qowner").open()?;
    for version in 0..3 {
        chat.context().set("memory", &text(&format!("mk7qmemo{version}x"), 20))?;
    }
    let mut since = 0;
    let erased = bot.store().erase_with_progress(&Erasure::owner("mk7qowner"), |_| {
        since += 1;
        let chat = bot.resume("since").owner("mk7qowner").open().unwrap();
        chat.context().set("memory", &format!("mk7qsince{since}x")).unwrap();
    })?;
    assert!(erased.is_complete());
    assert_gone(&store, &path, "mk7qmemo");
    assert_sound(&store);
    let chat = bot.resume("since").owner("mk7qowner").open()?;
    let memory = chat.block("memory")?.map(|block| block.content);
    assert_eq!(memory, Some(format!("mk7qsince{since}x")));
    assert!(!store.has_unfinished_erasure()?);
    prove(&bot.erase_owner("mk7qowner")?);
    assert_gone(&store, &path, "mk7q");
    assert_sound(&store);
    Ok(())
}

#[test]
fn an_interrupted_erasure_of_an_owner_leaves_memory_that_is_written_since() -> Result<()> {
    let (_folder, path, store) = open()?;
    let bot = bot(&store)?;
    let chat = bot.resume("before").owner("mk7qowner").open()?;
    chat.context().set("memory", &text("mk7qmemo", 20))?;
    let handle = store.interrupt_handle();
    let mut is_written = false;
    let stopped = bot.store().erase_with_progress(&Erasure::owner("mk7qowner"), |_| {
        let chat = bot.resume("since").owner("mk7qowner").open().unwrap();
        // As soon as the old text is gone.
        if !is_written && chat.block("memory").unwrap().is_none_or(|block| block.content.is_empty())
        {
            chat.context().set("memory", "mk7qsince").unwrap();
            is_written = true;
            handle.interrupt();
        }
    });
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    assert!(store.finish_erasure()?);
    assert!(!store.has_unfinished_erasure()?);
    assert_gone(&store, &path, "mk7qmemo");
    let chat = bot.resume("since").owner("mk7qowner").open()?;
    assert_eq!(chat.block("memory")?.map(|block| block.content).as_deref(), Some("mk7qsince"));
    assert_sound(&store);
    Ok(())
}

/// The byte before a text in a row is the end of a number, and may be any letter.
#[test]
fn the_beginning_of_a_text_that_stays_is_not_what_an_erased_text_quoted() -> Result<()> {
    let (_folder, _path, store) = open()?;
    let bot = bot(&store)?;
    let kept = "Remembers what was quoted";
    for n in 0..60 {
        let chat = bot.resume(format!("key:{n}")).owner(format!("owner:{n}")).open()?;
        chat.context().set("memory", kept)?;
        std::thread::sleep(Duration::from_millis(3));
    }
    let quotes = (b' '..=b'~').map(|letter| format!("{}{kept}", char::from(letter)));
    let chat = store.session("quotes")?;
    chat.append(Message::user(quotes.collect::<String>()))?;
    let erased = store.erase(&Erasure::session(chat.id()))?;
    let proof = erased.prove()?;
    assert_eq!((proof.found, proof.kept > 0), (0, true));
    Ok(())
}

#[test]
fn a_key_is_erased_with_all_sessions_that_it_led_to() -> Result<()> {
    let (_folder, path, store) = open()?;
    let bot = SessionManager::builder(&store).build()?;
    let first = bot.resume("mk7qkeyx").open()?;
    append(&first, "mk7qfirst")?;
    bot.end(first.id(), "done")?;
    append(&bot.resume("mk7qkeyx").open()?, "mk7qsecond")?;
    append(&bot.resume("another").open()?, "mk7qother")?;
    let erased = bot.store().erase(&Erasure::key("mk7qkeyx"))?;
    assert_eq!((erased.extent.sessions.len(), erased.extent.bindings), (2, 2));
    for mark in ["mk7qkeyx", "mk7qfirst", "mk7qsecond"] {
        assert_gone(&store, &path, mark);
    }
    assert!(count(&path, "mk7qother") > 0);
    assert_sound(&store);
    Ok(())
}

#[test]
fn imports_of_an_erased_session_are_refused_on_request() -> Result<()> {
    let (_folder, path, store) = open()?;
    let message = || Message::user("mk7qtext and more").with_id("mk7qm1");
    for is_forbidden in [false, true] {
        store.session("mk7qid")?.import_message(None, message())?;
        let erasure = Erasure::session("mk7qid");
        let _ = store.erase(&if is_forbidden { erasure.forbid_import() } else { erasure })?;
        assert_gone(&store, &path, "mk7q");
        assert_eq!(store.is_import_forbidden(&"mk7qid".into())?, is_forbidden);
    }
    let again = store.session("mk7qid")?.import_message(None, message());
    assert!(matches!(again, Err(Error::SessionErased { .. })), "{again:?}");
    assert!(store.sessions()?.is_empty());
    assert!(store.session("another")?.import_message(None, message()).is_ok());
    // Only imports are: a bot may go on under the same key.
    append(&store.session("mk7qid")?, "mk7qnew")?;
    Ok(())
}

#[test]
fn an_unknown_message_erases_nothing() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    let known = append(&chat, "mk7qknown")?;
    for erasure in [
        Erasure::messages(chat.id(), [&known, &"nobody".into()]),
        Erasure::branch(chat.id(), &"nobody".into()),
        Erasure::messages(chat.id(), [&known]).and(Erasure::session("nobody")),
    ] {
        let refused = store.erase(&erasure);
        assert!(matches!(
            refused,
            Err(Error::UnknownMessage { .. } | Error::UnknownSession { .. })
        ));
    }
    chat.delete([&known])?;
    assert!(matches!(chat.erase([&known]), Err(Error::UnknownMessage { .. })));
    drop((chat, store));
    let store = Store::open_read_only(&path)?;
    assert!(matches!(store.erase(&Erasure::session("s")), Err(Error::ReadOnly)));
    Ok(())
}

#[test]
fn a_log_that_someone_reads_is_named_and_emptied_later() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bot.db");
    let store = Store::options().busy_timeout(Duration::from_millis(100)).open(&path)?;
    let chat = store.session("s")?;
    append(&chat, "mk7qkept")?;
    let secret = append(&chat, "mk7qsecret")?;
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM message;").unwrap();

    let erased: Erased = chat.erase([&secret])?;
    assert!(erased.is_log_in_use && !erased.is_complete());
    assert!(matches!(erased.prove(), Err(Error::NotErased { .. })));
    assert!(!store.finish_erasure()?);
    reader.execute_batch("COMMIT").unwrap();
    assert!(store.finish_erasure()?);
    assert_gone(&store, &path, "mk7qsecret");
    assert_eq!(erased.prove()?.found, 0);
    drop(reader);
    Ok(())
}

#[test]
fn erasing_again_finishes_what_was_interrupted() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    for n in 0..2_000 {
        append(&chat, &format!("mk7qmess{n}x"))?;
    }
    append(&store.session("kept")?, "mk7qkept")?;
    let handle = store.interrupt_handle();
    let is_interrupted = AtomicBool::new(false);
    let stopped = store.erase_with_progress(&Erasure::session("s"), |at| {
        if at.done >= 500 && !is_interrupted.swap(true, Ordering::Relaxed) {
            handle.interrupt();
        }
    });
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    assert_sound(&store);
    assert!(matches!(chat.append(Message::user("hi")), Err(Error::SessionRemoved { .. })));
    assert!(count(&path, "mk7qmess") > 0);
    let erased = store.erase(&Erasure::session("s"))?;
    assert_eq!(erased.extent.messages, 0);
    assert_gone(&store, &path, "mk7qmess");
    assert!(count(&path, "mk7qkept") > 0);
    assert_sound(&store);
    Ok(())
}

/// It was in the trash until all of it was deleted. So it could be restored, and was erased nevertheless.
#[test]
fn a_session_that_is_being_erased_is_found_by_no_read() -> Result<()> {
    let (_folder, _path, store) = open()?;
    let said = |n| Message::user(format!("mk7qmess{n}x")).from(&talktree::Author::new("ann"));
    let chat = store.session("s")?;
    let ids: Vec<_> = chat.append_all((0..600).map(said))?.into_iter().map(|it| it.id).collect();
    chat.tag(&ids[5], "mk7qtag")?;
    let usage = Usage { input: 7, ..Usage::default() };
    chat.add_usage(Some(&ids[3]), &usage)?;
    let fork = chat.fork_as(&"fork".into(), &ids[9], "Fork")?;
    assert_eq!(store.search("mk7qmess300x").run()?.hits.len(), 1);
    interrupt(&store, &Erasure::session("s"), 200);

    let ids = |filter: &SessionFilter| -> Result<Vec<String>> {
        let listed = store.list().filter(filter.clone()).run()?.sessions;
        Ok(listed.iter().map(|it| it.info.id.to_string()).collect())
    };
    assert_eq!(ids(&SessionFilter::default())?, ["fork"]);
    let trash = SessionFilter { state: SessionState::Trash, ..SessionFilter::default() };
    assert!(ids(&trash)?.is_empty());
    assert!(matches!(
        store.change_session(&"s".into(), &SessionChange::Restore),
        Err(Error::UnknownSession { .. })
    ));
    assert!(chat.raw_history()?.is_empty());
    assert!(store.search("mk7qmess300x").run()?.hits.is_empty());
    // The original of a copy is no reason to leave it out.
    assert_eq!(store.search("mk7qmess5x").run()?.hits.len(), 1);
    let written = talktree::MessageFilter::written_by("ann");
    assert_eq!(store.list_messages(&written, None, 50)?.messages.len(), 10);
    assert_eq!(store.usage().total()?.input, 0);
    assert_eq!((store.stats()?.messages, store.stats()?.sessions), (10, 1));
    assert!(chat.fork(&fork.head()?.unwrap(), "x").is_err());
    let mut export = Vec::new();
    export_jsonl(&store, &mut export)?;
    assert!(!String::from_utf8(export).unwrap().contains("mk7qmess300x"));
    assert_sound(&store);

    // The id is free, and what is stored under it stays.
    append(&store.session("s")?, "mk7qnew")?;
    assert!(store.finish_erasure()?);
    assert_eq!(store.session("s")?.raw_history()?.len(), 1);
    assert_sound(&store);
    Ok(())
}

/// A session that an interrupted erasure had not begun with could be written to, and that was erased when it was finished.
#[test]
fn all_sessions_of_an_interrupted_erasure_are_gone_at_once() -> Result<()> {
    let (_folder, path, store) = open()?;
    let bot = bot(&store)?;
    let [first, second] = ["a", "b"].map(|key| bot.resume(key).owner("mk7qowner").open());
    let (first, second) = (first?, second?);
    first.append_all((0..600).map(|n| Message::user(format!("mk7qmess{n}x"))))?;
    append(&second, "mk7qsecond")?;
    interrupt(&store, &Erasure::owner("mk7qowner"), 200);
    for session in [&first, &second] {
        assert_eq!(session.raw_history()?.len(), 0);
        let refused = session.append(Message::user("hi"));
        assert!(matches!(refused, Err(Error::SessionRemoved { .. })), "{refused:?}");
        let refused = bot.restore(session.id());
        assert!(matches!(refused, Err(Error::UnknownSession { .. })), "{refused:?}");
    }
    // Its key leads to a new session, which stays.
    let new = bot.resume("b").owner("mk7qowner").open()?;
    new.append(Message::user("mk7rnew"))?;
    assert!(store.finish_erasure()?);
    assert_gone(&store, &path, "mk7qmess");
    assert_gone(&store, &path, "mk7qsecond");
    assert_eq!(new.history()?.len(), 1);
    assert_sound(&store);
    Ok(())
}

/// An append to its transcript took it out of the trash, and it was erased nevertheless when the erasure was finished.
#[test]
fn a_transcript_that_is_being_erased_is_begun_anew() -> Result<()> {
    let (_folder, path, store) = open()?;
    let transcripts = SessionStore::new(&store).projecting();
    let [first, second] = ["first", "second"].map(|id| TranscriptKey::new("project", id));
    transcripts.owned_by("mk7qowner").append(&first, &entries("mk7qfirst", 600)?)?;
    transcripts.owned_by("mk7qowner").append(&second, &entries("mk7qsecond", 3)?)?;
    store.change_session(&"second".into(), &SessionChange::Delete)?;
    interrupt(&store, &Erasure::owner("mk7qowner"), 200);
    transcripts.append(&second, &entries("mk7qlater", 1)?)?;
    assert_eq!(store.session("second")?.raw_history()?.len(), 1);
    assert!(store.finish_erasure()?);
    assert_gone(&store, &path, "mk7qfirst");
    assert_gone(&store, &path, "mk7qsecond");
    assert_eq!(transcripts.log().load(&second)?, Some(entries("mk7qlater", 1)?));
    assert_eq!(store.session("second")?.raw_history()?.len(), 1);
    assert_sound(&store);
    Ok(())
}

#[test]
fn a_plan_over_an_erased_message_is_stale() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    let ids: Vec<MessageId> =
        (0..40).map(|n| append(&chat, &format!("mk7qmess{n}x")).unwrap()).collect();
    let options = CompactionOptions::default().keep_recent_tokens(100);
    let Ok(plan) = chat.plan_compaction(&options)? else { panic!("no plan") };
    let _ = chat.erase([&ids[5]])?;
    assert!(matches!(chat.commit(plan, "mk7qsummary"), Err(Error::Stale { .. })));
    assert_gone(&store, &path, "mk7qmess5x");
    Ok(())
}

#[test]
fn others_write_and_back_up_while_something_is_erased() -> Result<()> {
    let (folder, path, store) = open()?;
    let chat = store.session("erased")?;
    for n in 0..3_000 {
        append(&chat, &format!("mk7qmess{n}x"))?;
    }
    let is_done = AtomicBool::new(false);
    let written = std::thread::scope(|scope| -> Result<usize> {
        let writer = scope.spawn(|| -> Result<usize> {
            let other = Store::open(&path)?;
            let (mut written, mut backups) = (0, 0);
            while !is_done.load(Ordering::Relaxed) || written == 0 {
                append(&other.session("kept")?, &format!("mk7qkept{written}x"))?;
                written += 1;
                if written % 50 == 0 && !is_on_server() {
                    backups += 1;
                    other.backup(folder.path().join(format!("{backups}.copy")), |_| {})?;
                }
                if written % 50 == 0 {
                    other.search("word7").run()?;
                }
            }
            Ok(written)
        });
        let erased = store.erase(&Erasure::session("erased"));
        is_done.store(true, Ordering::Relaxed);
        assert!(erased?.is_complete());
        writer.join().unwrap()
    })?;
    assert_gone(&store, &path, "mk7qmess");
    assert_eq!(store.session("kept")?.raw_history()?.len(), written);
    assert_sound(&store);
    Ok(())
}

#[test]
fn a_plain_delete_overwrites_rows_and_free_pages() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    append(&chat, "mk7qfirst")?;
    let long = chat.append(Message::user(text("mk7qlong", 30_000)))?.id;
    let short = append(&chat, "mk7qshort")?;
    append(&chat, "mk7qlast")?;
    chat.delete([&long, &short])?;
    drop((chat, store));
    for (phrase, is_there) in [
        ("word100 word101 word102 word103", false),
        ("mk7qshort word0", false),
        ("mk7qlast word0", true),
    ] {
        assert_eq!(count(&path, phrase) > 0, is_there, "{phrase}");
    }
    Ok(())
}

/// A message that `delete` or `remove` had deleted could not be named any more, so no erasure reached what was left of it.
#[test]
fn what_deletes_left_is_erased_and_the_trash_is_kept() -> Result<()> {
    for rewritten_up_to in [u64::MAX, 0] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bot.db");
        let store = Store::options().erasure_rewrites_up_to(rewritten_up_to).open(&path)?;
        let bot = SessionManager::builder(&store).build()?;
        let chat = store.session("s")?;
        let gone = append(&chat, "mk7qgone")?;
        append(&chat, "mk7qkept")?;
        append(&store.session("removed")?, "mk7qremoved")?;
        append(&store.session("trash")?, "mk7qtrash")?;
        assert_eq!(store.search("mk7qgone").run()?.hits.len(), 1);
        chat.delete([&gone])?;
        store.remove(&"removed".into())?;
        bot.delete(&"trash".into())?;
        assert!(count(&path, "mk7qgone") > 0 && count(&path, "mk7qremoved") > 0);

        let erased = store.erase(&Erasure::deleted())?;
        assert!(erased.is_complete() && erased.is_rewritten != is_on_server());
        assert_eq!(erased.extent, Default::default());
        assert_gone(&store, &path, "mk7qgone");
        assert_gone(&store, &path, "mk7qremoved");
        assert!(!store.has_unfinished_erasure()?);
        bot.restore(&"trash".into())?;
        for mark in ["mk7qkept", "mk7qtrash"] {
            assert_eq!(store.search(mark).run()?.hits.len(), 1);
        }
        assert_sound(&store);
    }
    Ok(())
}

/// To close a descriptor of the database drops all locks that the process holds on it.
#[test]
fn a_proof_keeps_the_locks_of_the_store() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    let secret = append(&chat, "mk7qsecret")?;
    append(&chat, "mk7qkept")?;
    let erased = chat.erase([&secret])?;
    erased.prove()?;
    // If the locks are lost, another process that closes the store removes the log.
    Other::start("append and delete", &path)?.wait();
    assert!(beside(&path, "-wal").exists());
    append(&chat, "mk7qlater")?;
    assert_eq!(Store::open(&path)?.session("s")?.raw_history()?.len(), 2);
    Ok(())
}

/// Appends a message, deletes it and closes the store.
#[test]
fn child() -> Result<()> {
    let Some((_, path)) = task() else { return Ok(()) };
    let chat = Store::open(path)?.session("s")?;
    let secret = append(&chat, "mk7qprocess")?;
    chat.delete([&secret])?;
    Ok(())
}

/// Returns entries with a mark each.
fn entries(mark: &str, count: usize) -> Result<Vec<Json>> {
    let entry = |n| {
        let said = text(&format!("{mark}{n}x"), 5);
        let message = serde_json::json!({"role": "user", "content": said});
        serde_json::json!({"type": "user", "uuid": format!("{mark}uuid{n}"), "message": message})
    };
    (0..count).map(|n| Json::parse(&entry(n).to_string())).collect()
}

#[test]
fn the_transcripts_of_an_owner_are_erased_with_their_summaries_and_no_others() -> Result<()> {
    let (_folder, path, store) = open()?;
    let all = SessionStore::new(&store);
    let main = TranscriptKey::new("mk7qproject", "mk7qsession-90c5-4dd7");
    let below = main.clone().subpath("subagents/agent-mk7qbelow");
    let alone = TranscriptKey::new("project", "shared").subpath("subagents/agent-mk7qalone");
    let kept = TranscriptKey::new("project", "shared");
    let own = all.owned_by("mk7qowner");
    // More than one transaction deletes.
    own.append(&main, &entries("mk7qmain", 700)?)?;
    all.append(&below, &entries("mk7qsub", 2)?)?;
    own.append(&alone, &entries("mk7qlone", 3)?)?;
    all.owned_by("other").append(&kept, &entries("mk7rkept", 4)?)?;
    let summary = all.log().of_project(&main.project)?.remove(0).summary;
    assert!(summary.is_some_and(|data| data.as_str().contains("mk7qmain0x")));
    let erasure = Erasure::owner("mk7qowner");
    let extent = store.erasure_extent(&erasure)?;
    assert_eq!((extent.transcripts.len(), extent.entries), (3, 705));

    let erased = store.erase(&erasure)?;
    let sorted = |mut keys: Vec<TranscriptKey>| {
        keys.sort();
        keys
    };
    assert_eq!(sorted(erased.extent.transcripts.clone()), sorted(vec![main, below, alone]));
    assert_eq!(erased.extent.entries, 705);
    assert!(prove(&erased).is_none_or(|proof| proof.texts > 1_400));
    assert_gone(&store, &path, "mk7q");
    assert_eq!(all.log().list(&TranscriptFilter::default(), None, 9)?.len(), 1);
    assert_eq!(all.log().load(&kept)?, Some(entries("mk7rkept", 4)?));
    assert_eq!(store.erase(&erasure)?.extent.entries, 0);
    assert_sound(&store);
    Ok(())
}

#[test]
fn one_transcript_is_erased_and_the_main_one_with_all_of_its_session() -> Result<()> {
    let (_folder, path, store) = open()?;
    let transcripts = store.transcripts();
    let main = TranscriptKey::new("project", "session");
    let [one, two] = ["a", "b"].map(|name| main.clone().subpath(format!("subagents/agent-{name}")));
    for (key, mark) in [(&main, "mk7qmain"), (&one, "mk7qone"), (&two, "mk7qtwo")] {
        transcripts.append(key, &entries(mark, 3)?)?;
    }
    let erased = store.erase(&Erasure::transcript(&one))?;
    assert_eq!((erased.extent.transcripts, erased.extent.entries), (vec![one.clone()], 3));
    assert_gone(&store, &path, "mk7qone");
    assert!(count(&path, "mk7qmain") > 0 && count(&path, "mk7qtwo") > 0);
    assert!(store.erase(&Erasure::transcript(&one))?.extent.transcripts.is_empty());

    let erased = store.erase(&Erasure::transcript(&main))?;
    assert_eq!(erased.extent.transcripts, [main, two]);
    assert_gone(&store, &path, "mk7q");
    assert_sound(&store);
    Ok(())
}

#[test]
fn a_transcript_and_the_session_that_shows_it_are_erased_with_each_other() -> Result<()> {
    let (_folder, path, store) = open()?;
    let transcripts = SessionStore::new(&store).projecting();
    let main = TranscriptKey::new("project", "mk7qsession");
    let below = main.clone().subpath("subagents/agent-mk7qone");
    for erasure in [
        Erasure::transcript(&main),
        Erasure::session("mk7qsession")
            .and(Erasure::session("mk7qsession/subagents/agent-mk7qone")),
        Erasure::owner("mk7qowner"),
    ] {
        transcripts.owned_by("mk7qowner").append(&main, &entries("mk7qmain", 300)?)?;
        transcripts.append(&below, &entries("mk7qbelow", 3)?)?;
        transcripts.append(&TranscriptKey::new("project", "kept"), &entries("mk7rkept", 3)?)?;
        // So that they are in the index.
        assert!(!store.search("mk7qmain0x").run()?.hits.is_empty());
        assert_eq!(store.sessions()?.len(), 3);
        let extent = store.erasure_extent(&erasure)?;
        assert_eq!((extent.sessions.len(), extent.transcripts.len()), (2, 2));
        let erased = store.erase(&erasure)?;
        assert_eq!((erased.extent.sessions.len(), erased.extent.transcripts.len()), (2, 2));
        assert_eq!((erased.extent.messages, erased.extent.entries), (303, 303));
        prove(&erased);
        assert_gone(&store, &path, "mk7q");
        assert_eq!(store.sessions()?.len(), 1);
        assert_sound(&store);
    }
    Ok(())
}

#[test]
fn a_message_of_a_projected_transcript_is_not_erased_alone() -> Result<()> {
    let (_folder, path, store) = open()?;
    let transcripts = SessionStore::new(&store).projecting();
    let key = TranscriptKey::new("project", "shown");
    transcripts.append(&key, &entries("mk7qmain", 2)?)?;
    let shown = store.session("shown")?;
    let last = MessageId::from("mk7qmainuuid1");
    let refused = shown.erase([&last]).unwrap_err().to_string();
    assert!(refused.contains("it shows a transcript"), "{refused}");
    // A copy is erased, and the message that it is a copy of is reported.
    let fork = shown.fork(&last, "a copy")?;
    let erasure = Erasure::messages(fork.id(), [&last]).with_forks();
    let erased = store.erase(&erasure)?;
    assert_eq!(erased.extent.copies_left[0].session, *shown.id());
    assert!(count(&path, "mk7qmain1x") > 0);
    let _ = store.erase(&Erasure::transcript(&key).with_forks())?;
    assert_gone(&store, &path, "mk7q");
    Ok(())
}

/// A session is written again when the entries of its transcript come in another order. Copies in forks named where the messages
/// had been, so an erasure did not find them.
#[test]
fn a_copy_of_a_message_of_a_rearranged_transcript_is_named_and_erased_on_request() -> Result<()> {
    for is_fork_of_fork in [false, true] {
        let (_folder, path, store) = open()?;
        let transcripts = SessionStore::new(&store).projecting();
        let key = TranscriptKey::new("project", "shown");
        let entry = |uuid: &str, parent: &str| {
            let message = serde_json::json!({"role": "user", "content": text(uuid, 5)});
            Json::from(
                serde_json::json!({"type": "user", "uuid": uuid, "parentUuid": parent, "message": message}),
            )
        };
        transcripts.append(&key, &[entry("mk7qroot", ""), entry("mk7qchild", "mk7qlate")])?;
        let shown = store.session("shown")?;
        let secret = MessageId::from("mk7qchild");
        let first = shown.fork(&secret, "First")?;
        let first = if is_fork_of_fork { first.fork(&secret, "Second")? } else { first };
        transcripts.append(&key, &[entry("mk7qlate", "mk7qroot")])?;
        assert_eq!(shown.at(&secret).raw_history()?.len(), 3);
        let last = shown.fork(&secret, "Last")?;

        let sessions = |extent: &talktree::ErasureExtent| {
            extent.copies_left.iter().map(|left| left.session.clone()).collect::<Vec<_>>()
        };
        let extent = store.erasure_extent(&Erasure::transcript(&key))?;
        assert!(sessions(&extent).contains(first.id()) && sessions(&extent).contains(last.id()));
        for session in [&first, &last] {
            let erasure = Erasure::messages(session.id(), [&secret]);
            let left = sessions(&store.erasure_extent(&erasure)?);
            let other = if session.id() == first.id() { &last } else { &first };
            assert!(left.contains(shown.id()) && left.contains(other.id()), "{left:?}");
        }
        let erased = store.erase(&Erasure::transcript(&key).with_forks())?;
        assert_eq!(erased.extent.left(), 0);
        assert_gone(&store, &path, "mk7q");
        assert_sound(&store);
    }
    Ok(())
}

#[test]
fn erasing_an_owner_again_finishes_its_transcripts() -> Result<()> {
    let (_folder, path, store) = open()?;
    let main = TranscriptKey::new("project", "session");
    let below = main.clone().subpath("subagents/agent-1");
    store.transcripts().owned_by("owner:1").append(&main, &entries("mk7qmain", 1_000)?)?;
    store.transcripts().append(&below, &entries("mk7qsub", 400)?)?;
    interrupt(&store, &Erasure::owner("owner:1"), 200);
    assert_sound(&store);
    assert_eq!(store.transcripts().list(&TranscriptFilter::default(), None, 9)?, []);
    assert_eq!(store.transcripts().load(&main)?, None);
    assert_eq!((store.stats()?.transcripts, store.stats()?.transcript_entries), (0, 0));
    assert!(count(&path, "mk7qmain") > 0);
    // What is written since is no part of what was named.
    store.transcripts().append(&main, &entries("mk7rnew", 2)?)?;
    let erased = store.erase(&Erasure::owner("owner:1"))?;
    assert_eq!(erased.extent.entries, 0);
    prove(&erased);
    assert_gone(&store, &path, "mk7q");
    assert_eq!(store.transcripts().load(&main)?, Some(entries("mk7rnew", 2)?));
    assert_sound(&store);
    Ok(())
}

/// Fills a group of ann, bob and a model, a fork of it, and a session of ann's own.
fn fill_group(store: &Store) -> Result<Session> {
    let says = |author: &str, mark: &str| {
        Message::user(text(mark, 20)).from(&talktree::Author::new(author))
    };
    let group = store.session("group")?;
    let first = group.append(says("mark-ann", "AnnsFirst"))?.id;
    let used = Usage { output: 5, ..Usage::default() };
    let answer = Message::assistant(text("AnswerToAnn", 20)).with_usage(&used);
    group.append(answer)?;
    group.append(says("bob", "BobsFirst"))?;
    let second = group.append(says("mark-ann", "AnnsSecond"))?.id;
    group.tag(&second, "TagOfAnns")?;
    let last = group.append(says("bob", "BobsLast"))?.id;
    group.add_compaction("SummaryOfAnn and more", &first, &first)?;
    store.session("own")?.append(says("mark-ann", "AnnsOwn"))?;
    group.fork_as(&"fork".into(), &last, "fork")?;
    Ok(group)
}

/// Only an owner could be erased, with the sessions; what a person wrote in those of others could not.
#[test]
fn what_an_author_wrote_is_in_no_byte_and_the_others_stay() -> Result<()> {
    let (_folder, path, store) = open()?;
    let group = fill_group(&store)?;
    let erasure = Erasure::author("mark-ann").with_summaries();
    let before = store.erasure_extent(&erasure)?;
    assert_eq!((before.messages, before.summaries, before.sessions.len()), (5, 2, 0));
    assert_eq!(store.usage().author("mark-ann").total()?.output, 5);
    let erased = store.erase(&erasure)?;
    assert_eq!(erased.extent, before);
    prove(&erased);
    for mark in ["AnnsFirst", "AnnsSecond", "AnnsOwn", "TagOfAnns", "SummaryOfAnn", "mark-ann"] {
        assert_gone(&store, &path, mark);
    }
    for chat in [&group, &store.session("fork")?] {
        let texts: Vec<String> = chat.history()?.iter().map(Message::text).collect();
        assert_eq!(texts.len(), 3);
        for (text, mark) in texts.iter().zip(["AnswerToAnn", "BobsFirst", "BobsLast"]) {
            assert!(text.starts_with(mark), "{text}");
        }
    }
    assert_eq!(store.usage().total()?.output, 5);
    assert_eq!(store.usage().author("mark-ann").total()?.output, 0);
    assert_sound(&store);
    // Again: nothing is left, and nobody else is erased.
    assert_eq!(store.erase(&Erasure::author("mark-ann"))?.extent.messages, 0);
    assert!(matches!(
        store.erase(&Erasure::author("")),
        Err(Error::InvalidValue { what: "author", .. })
    ));
    Ok(())
}

#[test]
fn a_summary_of_what_an_author_wrote_is_named_if_it_stays() -> Result<()> {
    let (_folder, _path, store) = open()?;
    let group = store.session("group")?;
    let says = |author: &str| Message::user("hello there").from(&talktree::Author::new(author));
    let first = group.append(says("ann"))?.id;
    let last = group.append(says("bob"))?.id;
    group.append(says("bob"))?;
    group.add_compaction("ann and bob greet", &first, &last)?;
    let erasure = Erasure::author("ann");
    let before = store.erasure_extent(&erasure)?;
    assert_eq!(before.summaries_left.len(), 1);
    assert_eq!(store.erase(&erasure)?.extent, before);
    Ok(())
}

#[test]
fn an_interrupted_erasure_of_an_author_is_finished() -> Result<()> {
    for after in 0..4 {
        let (_folder, path, store) = open()?;
        fill_group(&store)?;
        interrupt(&store, &Erasure::author("mark-ann").with_summaries(), after);
        // What is written since stays.
        let later = Message::user("later words").from(&talktree::Author::new("mark-ann"));
        store.session("group")?.append(later)?;
        assert!(store.finish_erasure()?);
        for mark in ["AnnsFirst", "AnnsSecond", "AnnsOwn", "TagOfAnns", "SummaryOfAnn"] {
            assert_gone(&store, &path, mark);
        }
        assert_eq!(store.usage().author("mark-ann").total()?.answers, 0);
        let written = talktree::MessageFilter::written_by("mark-ann");
        assert_eq!(store.list_messages(&written, None, 10)?.messages.len(), 1);
        assert_sound(&store);
    }
    Ok(())
}

/// A proof reads the files, then the rows. What another erasure deleted in between was in the files and in no row, and so were
/// the bytes that it had not overwritten yet.
#[test]
fn a_proof_beside_another_erasure_of_the_same_words_finds_nothing() -> Result<()> {
    let (_folder, path, store) = open()?;
    let chat = store.session("s")?;
    append(&chat, "mk7qkept")?;
    let secret = append(&chat, "mk7qsame")?;
    let erased = chat.erase([&secret])?;
    std::thread::scope(|scope| -> Result<()> {
        let others = scope.spawn(|| -> Result<()> {
            let other = Store::open(&path)?.session("other")?;
            for _ in 0..6 {
                let same = append(&other, "mk7qsame")?;
                std::thread::sleep(Duration::from_millis(30));
                let _ = other.erase([&same])?;
                std::thread::sleep(Duration::from_millis(30));
            }
            Ok(())
        });
        while !others.is_finished() {
            erased.prove()?;
        }
        others.join().unwrap()
    })?;
    assert_gone(&store, &path, "mk7qsame");
    Ok(())
}
