//! Transcripts as sessions: what is shown, found, removed with them, and never changed.

use serde_json::{Value, json};
use talktree::{
    Json, Message, MessageId, Result, Retention, RetentionRule, Role, Session, SessionDetails,
    Store, TranscriptFilter, TranscriptKey,
};
use talktree_claude::{SessionStore, TranscriptFork};

use crate::common::{Scratch, drawn};
use crate::tables::Tables;

/// Entries from a drawing: each word an entry under the one after the letter, `-` a root; capitals are the model's.
fn entries(tree: &str) -> Vec<Json> {
    let entry = |word: &str| {
        let (uuid, parent) = word.split_at(1);
        let kind = if uuid == uuid.to_lowercase() { "user" } else { "assistant" };
        let parent = Some(parent).filter(|parent| *parent != "-");
        let message = json!({"role": kind, "content": format!("said {uuid}")});
        let time = "2026-01-02T03:04:05Z";
        Json::from(json!({"type": kind, "uuid": uuid, "parentUuid": parent, "message": message,
                          "timestamp": time}))
    };
    tree.split_whitespace().map(entry).collect()
}

fn key(session: &str) -> TranscriptKey {
    TranscriptKey::new("project", session)
}

/// Returns the paths to the leaves of a session, oldest leaf first.
fn paths(store: &Store, session: &str) -> Result<Vec<String>> {
    let session = store.session(session)?;
    let path = |leaf: &MessageId| Ok(drawn(&session.at(leaf).raw_history()?));
    session.leaves()?.iter().map(path).collect()
}

#[test]
fn branches_and_missing_parents_are_shown_and_repaired() -> Result<()> {
    let store = Store::open_in_memory()?;
    let transcripts = SessionStore::new(&store).projecting();
    transcripts.append(&key("s"), &entries("a- Ba ca Dc"))?;
    assert_eq!(paths(&store, "s")?, ["a B", "a c D"]);
    assert_eq!(drawn(&store.session("s")?.history()?), "a c D");

    // The parent of `e` comes later.
    transcripts.append(&key("s"), &entries("ex Fe"))?;
    assert_eq!(paths(&store, "s")?, ["a B", "a c D e F"]);
    let projection = transcripts.projection(&key("s"))?.expect("it is projected");
    let missing = &projection.missing_parents[0];
    assert_eq!((missing.message.as_str(), missing.parent.as_str()), ("e", "x"));
    let session = store.session("s")?;
    session.label("here", &MessageId::from("e"))?;

    transcripts.append(&key("s"), &entries("xB"))?;
    assert_eq!(paths(&store, "s")?, ["a c D", "a B x e F"]);
    assert_eq!(transcripts.projection(&key("s"))?.map(|it| it.missing_parents), Some(Vec::new()));
    assert_eq!(session.labels()?[0].id.as_str(), "e");
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn rewound_and_compacted_messages_are_found() -> Result<()> {
    let store = Store::open_in_memory()?;
    let transcripts = SessionStore::new(&store).projecting();
    transcripts.append(&key("s"), &entries("a- Ba ca Dc"))?;
    let boundary = json!({"type": "system", "subtype": "compact_boundary", "uuid": "cut", "parentUuid": null,
                          "logicalParentUuid": "D", "content": "Compacted"});
    let summary = json!({"type": "user", "uuid": "sum", "parentUuid": "cut", "isCompactSummary": true,
                         "message": {"role": "user", "content": "They talked."}});
    let rest =
        json!({"type": "user", "uuid": "e", "parentUuid": "sum", "message": {"content": "go on"}});
    transcripts.append(&key("s"), &[boundary, summary, rest].map(Json::from))?;
    let history = store.session("s")?.history()?;
    assert_eq!(history.len(), 2);
    assert!(history[0].text().contains("They talked.") && history[1].text() == "go on");
    let found = |text: &str| -> Result<(bool, bool)> {
        let hits = store.search(text).run()?.hits;
        Ok((hits[0].on_path, hits[0].under.is_some()))
    };
    assert_eq!((found("\"said B\"")?, found("\"said D\"")?), ((false, false), (true, true)));
    Ok(())
}

/// A copy had messages of its own, which were found and counted twice.
#[test]
fn a_copy_of_a_transcript_is_a_fork_of_its_session() -> Result<()> {
    let store = Store::open_in_memory()?;
    let transcripts = SessionStore::new(&store).projecting();
    transcripts.append(&key("s"), &entries("a- Ba cB Dc"))?;
    let copy = transcripts.fork("project", "s", &TranscriptFork::default())?;
    assert_eq!(drawn(&store.session(copy.as_str())?.history()?), "a B c D");
    let info = store.session(copy.as_str())?.info()?.expect("it is there");
    assert_eq!(info.parent_session, Some("s".into()));
    assert_eq!(info.fork_point, Some("D".into()));
    assert_eq!(store.search("\"said B\"").run()?.hits.len(), 1);
    // What comes next names the entries by the ids of the copy.
    let last = transcripts.messages("project", &copy)?.pop().expect("it has messages").uuid;
    let next =
        json!({"type": "user", "uuid": "e", "parentUuid": last, "message": {"content": "go on"}});
    transcripts.append(&key(&copy), &[Json::from(next)])?;
    assert_eq!(drawn(&store.session(copy.as_str())?.history()?), "a B c D e");
    // A copy of the copy has the messages under the ids that the copy's session has.
    let second = transcripts.fork("project", &copy, &TranscriptFork::default())?;
    let [of_copy, of_second] = [&copy, &second].map(|id| store.session(id.as_str()));
    let [of_copy, of_second] = [of_copy?.history()?, of_second?.history()?];
    assert!(of_second.iter().map(|it| &it.id).eq(of_copy.iter().map(|it| &it.id)));
    let info = store.session(second.as_str())?.info()?.expect("it is there");
    assert_eq!(info.parent_session, Some(copy.as_str().into()));
    assert_eq!(info.fork_point, Some("e".into()));
    assert_eq!(store.search("\"said B\"").run()?.hits.len(), 1);
    assert_eq!(store.search("\"go on\"").run()?.hits.len(), 1);
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn subagents_and_ids_in_use_get_sessions_of_their_own() -> Result<()> {
    let store = Store::open_in_memory()?;
    store.session("taken")?.append(Message::user("before"))?;
    let transcripts = SessionStore::new(&store).projecting();
    let session = |key: &TranscriptKey| -> Result<String> {
        transcripts.append(key, &entries("a-"))?;
        Ok(transcripts.projection(key)?.expect("it is projected").session.to_string())
    };
    assert_eq!(session(&key("s"))?, "s");
    assert_eq!(session(&key("s").subpath("subagents/agent-1"))?, "s/subagents/agent-1");
    assert_eq!(session(&key("taken"))?, "project/taken");
    assert_eq!(session(&TranscriptKey::new("other", "s"))?, "other/s");
    let long = session(&key(&"x".repeat(5_000)))?;
    assert!(long.parse::<talktree::SessionId>().is_ok());
    let info = store.session("s/subagents/agent-1")?.info()?.expect("it is there");
    assert_eq!(info.parent_session.as_ref().map(|id| id.as_str()), Some("s"));
    assert_eq!(store.session("taken")?.raw_history()?.len(), 1);
    Ok(())
}

#[test]
fn what_cannot_be_shown_is_stored_all_the_same() -> Result<()> {
    let store = Store::options().max_message_bytes(60_000).open_in_memory()?;
    let transcripts = SessionStore::new(&store).projecting();
    let deep = format!(
        r#"{{"type":"user","uuid":"deep","x":{}{}}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    let odd = [
        deep.as_str(),
        r#"{"type":"user","uuid":"key","\ud800":1}"#,
        r#"{"uuid":"role","type":"user","message":{"role":"RRR","content":[{"type":"text","text":7}]}}"#,
        r#"{"type":5,"uuid":6,"parentUuid":{},"message":[]}"#,
    ];
    let mut all: Vec<Json> = odd.iter().map(|text| Json::parse(text)).collect::<Result<_>>()?;
    // Longer as a message than as an entry.
    let long = json!({"type": "user", "uuid": "role", "message": {"role": "R".repeat(50_000), "content": ""}});
    all[2] = Json::from(long);
    for entry in &all {
        transcripts.append(&key("s"), std::slice::from_ref(entry))?;
    }
    transcripts.append(&key("s"), &entries("a-"))?;
    assert_eq!(transcripts.log().load(&key("s"))?.map(|entries| entries.len()), Some(5));
    let projection = transcripts.projection(&key("s"))?.expect("it is projected");
    assert_eq!((projection.entries, projection.left_out), (5, 2));
    assert_eq!(store.session("s")?.info()?.map(|info| info.messages), Some(3));
    Ok(())
}

#[test]
fn a_session_is_removed_with_its_transcript_and_the_other_way() -> Result<()> {
    let store = Store::open_in_memory()?;
    let transcripts = SessionStore::new(&store).projecting().owned_by("ann");
    let (main, below) = (key("s"), key("s").subpath("subagents/agent-1"));
    let fill = || -> Result<()> {
        transcripts.append(&main, &entries("a- Ba"))?;
        transcripts.append(&below, &entries("a- Ba")).map(drop)
    };
    fill()?;
    assert_eq!(store.session("s")?.info()?.and_then(|info| info.owner).as_deref(), Some("ann"));
    assert_eq!((transcripts.log().delete(&main)?, store.sessions()?.len()), (2, 0));
    fill()?;
    assert_eq!((transcripts.log().delete_of_owner("ann")?, store.sessions()?.len()), (2, 0));
    fill()?;
    store.remove(&"s".into())?;
    assert_eq!(transcripts.log().load(&main)?, None);
    assert!(transcripts.log().load(&below)?.is_some());
    store.session("other")?.append(Message::user("kept"))?;
    let rule = || RetentionRule::new("agents").source("claude-code").keep_sessions(0);
    store.retention(Retention::new().rule(rule().remove())).run()?;
    assert_eq!((transcripts.log().load(&below)?, store.sessions()?.len()), (None, 1));

    // One that goes on comes out of the trash.
    fill()?;
    store.retention(Retention::new().rule(rule())).run()?;
    assert_eq!(store.sessions()?.len(), 1);
    transcripts.append(&main, &entries("cB"))?;
    assert_eq!(store.sessions()?.len(), 2);
    assert_eq!(paths(&store, "s")?, ["a B c"]);
    Ok(())
}

#[test]
fn what_others_have_changed_is_not_written_again() -> Result<()> {
    let store = Store::open_in_memory()?;
    let transcripts = SessionStore::new(&store).projecting();
    transcripts.append(&key("s"), &entries("a- Bx"))?;
    let session = store.session("s")?;
    session.append(Message::user("mine").with_id("m"))?;
    session.set_details(&SessionDetails::named("my name"))?;
    transcripts.append(&key("s"), &entries("xa"))?;
    let title = json!({"type": "custom-title", "customTitle": "theirs"});
    transcripts.append(&key("s"), &[Json::from(title)])?;
    let projection = transcripts.project(&key("s"))?.expect("it is projected");
    assert!(projection.is_changed);
    assert_eq!(paths(&store, "s")?, ["a B m", "a x"]);
    assert_eq!(session.info()?.and_then(|info| info.name).as_deref(), Some("my name"));
    let report = transcripts.project_all(&TranscriptFilter::default())?;
    assert_eq!((report.sessions, report.without_session), (1, 0));
    Ok(())
}

#[test]
fn the_entries_stay_whatever_is_done_to_the_session() -> Result<()> {
    let writes: [fn(&Session) -> Result<()>; 5] = [
        |it| it.update(Message::assistant("mine").with_id("B")).map(drop),
        |it| it.delete([&"B".into()]).map(drop),
        |it| it.delete([&"a".into()]).map(drop),
        |it| it.clear(),
        |it| it.checkout(&"a".into()),
    ];
    for write in writes {
        let store = Store::open_in_memory()?;
        let transcripts = SessionStore::new(&store).projecting();
        transcripts.append(&key("s"), &entries("a- Ba"))?;
        let session = store.session("s")?;
        write(&session)?;
        assert_eq!(transcripts.log().load(&key("s"))?, Some(entries("a- Ba")));
        transcripts.append(&key("s"), &entries("cB Dc"))?;
        transcripts.append(&key("s"), &entries("ex x-"))?;
        assert_eq!(transcripts.log().load(&key("s"))?, Some(entries("a- Ba cB Dc ex x-")));
        assert_eq!(session.head()?, Some("e".into()));
        let shown = session.at(&MessageId::from("D")).raw_history()?;
        assert!(drawn(&shown).ends_with("c D"));
        assert!(transcripts.projection(&key("s"))?.is_some_and(|it| it.is_changed));
        assert_eq!(store.verify(|_| {})?.damages, []);
    }
    Ok(())
}

#[test]
fn entries_that_were_not_projected_are_shown_with_the_next_ones() -> Result<()> {
    let mut scratch = Scratch::new()?;
    let chain = |from: usize, to: usize| -> Vec<Json> {
        let entry = |n: usize| {
            let parent = n.checked_sub(1).map(|parent| parent.to_string());
            let message = json!({"role": "user", "content": n.to_string()});
            json!({"type": "user", "uuid": n.to_string(), "parentUuid": parent, "message": message})
        };
        (from..to).map(entry).map(Json::from).collect()
    };
    let sessions = |store: &Store| SessionStore::new(store);
    let waiting = |store: &Store| -> Result<_> {
        Ok(sessions(store).projection(&key("s"))?.map(|it| (it.entries, it.waiting)))
    };
    sessions(&scratch.store).append(&key("s"), &chain(0, 1_500))?;
    assert!(scratch.store.sessions()?.is_empty());
    assert_eq!(sessions(&scratch.store).project_all(&TranscriptFilter::default())?.sessions, 1);
    // By the rules of the SDK, and by none.
    sessions(&scratch.store).append(&key("s"), &chain(1_500, 1_550))?;
    scratch.store.transcripts().append(&key("s"), &chain(1_550, 1_600))?;
    assert_eq!(waiting(&scratch.store)?, Some((1_500, 100)));
    scratch.reopen()?;
    sessions(&scratch.store).projecting().append(&key("s"), &chain(1_600, 1_700))?;
    assert_eq!(waiting(&scratch.store)?, Some((1_700, 0)));
    let history = scratch.store.session("s")?.history()?;
    assert_eq!((history.len(), history[1_699].text().as_str()), (1_700, "1699"));

    let late = |uuid: &str, parent: &str| json!({"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"content": uuid}});
    let transcripts = sessions(&scratch.store).projecting();
    transcripts.append(&key("s"), &[Json::from(late("child", "late"))])?;
    transcripts.append(&key("s"), &[Json::from(late("late", "10"))])?;
    assert!(transcripts.projection(&key("s"))?.is_some_and(|it| it.missing_parents.is_empty()));
    let session = scratch.store.session("s")?;
    assert_eq!(session.at(&MessageId::from("child")).raw_history()?.len(), 13);
    Ok(())
}

#[test]
fn parallel_results_and_their_usage_are_stored_once() -> Result<()> {
    let store = Store::open_in_memory()?;
    let transcripts = SessionStore::new(&store).projecting();
    let call = |uuid: &str, parent: &str, id: &str| {
        json!({"type": "assistant", "uuid": uuid, "parentUuid": parent, "requestId": "r", "message": {
            "id": "msg", "role": "assistant", "model": "m", "usage": {"input_tokens": 5, "output_tokens": 7},
            "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {}}]}})
    };
    let result = |uuid: &str, parent: &str, id: &str| -> Value {
        let content = json!([{"type": "tool_result", "tool_use_id": id, "content": "ok"}]);
        json!({"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"role": "user", "content": content}})
    };
    transcripts.append(&key("s"), &entries("a-"))?;
    for entry in [
        call("B", "a", "1"),
        call("C", "B", "2"),
        // The result of a call that comes later.
        result("f", "C", "3"),
        result("d", "B", "1"),
        result("e", "C", "2"),
        call("G", "e", "3"),
    ] {
        transcripts.append(&key("s"), &[Json::from(entry)])?;
    }
    let session = store.session("s")?;
    let answered = session.message(&MessageId::from("f"))?.expect("it is stored");
    assert_eq!(answered.role, Role::Tool);
    assert!(answered.parts.iter().all(|part| format!("{part:?}").contains("Bash")));
    let usage = session.usage()?;
    assert_eq!((usage.answers, usage.input), (1, 5));
    Ok(())
}

#[test]
fn a_projection_without_its_session_is_damage() -> Result<()> {
    let scratch = Scratch::new()?;
    SessionStore::new(&scratch.store).projecting().append(&key("s"), &entries("a-"))?;
    Tables::of(&scratch.folder.path().join("talk.db")).run("UPDATE transcript SET shown_by = 77");
    let damages = scratch.store.verify(|_| {})?.damages;
    assert_eq!((damages.len(), damages[0].kind), (1, "stray-transcript"));
    // The entries are stored all the same.
    SessionStore::new(&scratch.store).projecting().append(&key("s"), &entries("Ba"))?;
    assert_eq!(scratch.store.transcripts().load(&key("s"))?.map(|all| all.len()), Some(2));
    assert_eq!(SessionStore::new(&scratch.store).projection(&key("s"))?, None);
    Ok(())
}
