//! Random appends and deletes: a store and a plain list end equal, also after reopening; a summary equals
//! what its rules say of all entries, however they came in batches; so does the session that shows a transcript.

use crate::claude;
use crate::common::Scratch;
use crate::common::random::{cases, check_all};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use talktree::{
    AppendedEntries, Json, Result, Store, TranscriptFilter, TranscriptKey, Transcripts,
};
use talktree_claude::{Projection, SessionStore, fold_summary};
use talktree_import::export::session_hash;

#[derive(Debug, Clone)]
enum Op {
    Append { key: usize, entries: Vec<Value>, owner: Option<&'static str> },
    Delete { key: usize },
    DeleteOwner(&'static str),
    Reopen,
}

fn keys() -> Vec<TranscriptKey> {
    let key = TranscriptKey::new;
    vec![
        key("p", "s"),
        key("p", "s").subpath("subagents/agent-1"),
        key("p", "s").subpath("subagents/agent-1/x"),
        key("p", "t"),
        key("q", "s"),
        key("p/s", "").subpath("x"),
    ]
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{0,2}",
        "[a-z é\n\u{3000}]{0,4}",
        Just("<command-name>/x</command-name>".to_owned())
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => word().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => (0..3).prop_map(|n: i32| json!(n)),
        1 => Just(json!([1])),
    ]
}

/// An entry with a few of the members that a summary asks for.
fn entry() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "customTitle",
        "aiTitle",
        "lastPrompt",
        "summary",
        "gitBranch",
        "cwd",
        "isSidechain",
        "tag",
        "isMeta",
    ]);
    let kind = prop::sample::select(vec!["user", "user", "assistant", "tag", "x"]);
    let members = prop::collection::vec((names, any_value()), 0..3);
    let time = proptest::option::of(0..10_000_i64);
    (kind, members, proptest::option::of(0..12_u8), time, any_value()).prop_map(
        |(kind, members, uuid, time, content)| {
            let mut entry = Map::new();
            entry.insert("type".to_owned(), kind.into());
            entry.extend(members.into_iter().map(|(name, value)| (name.to_owned(), value)));
            if let Some(uuid) = uuid {
                entry.insert("uuid".to_owned(), uuid.to_string().into());
            }
            if let Some(time) = time {
                let time = chrono::DateTime::from_timestamp_millis(time).unwrap_or_default();
                entry.insert("timestamp".to_owned(), time.to_rfc3339().into());
            }
            entry.insert("message".to_owned(), json!({"content": content}));
            Value::Object(entry)
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let owner = || prop::sample::select(vec!["ann", "bob"]);
    let append = (0..6_usize, prop::collection::vec(entry(), 0..5), proptest::option::of(owner()));
    prop_oneof![
        12 => append.prop_map(|(key, entries, owner)| Op::Append { key, entries, owner }),
        2 => (0..6_usize).prop_map(|key| Op::Delete { key }),
        1 => owner().prop_map(Op::DeleteOwner),
        1 => Just(Op::Reopen),
    ]
}

/// A transcript as the model keeps it.
#[derive(Clone)]
struct Kept {
    key: TranscriptKey,
    owner: Option<&'static str>,
    entries: Vec<Value>,
    /// Its place in the order of the last appends.
    written: usize,
}

/// All transcripts, in order of creation.
#[derive(Default)]
struct Model {
    kept: Vec<Kept>,
    appends: usize,
}

impl Model {
    /// Returns how many entries are added, known and differing; `None` if the transcript has another owner.
    fn append(
        &mut self,
        key: &TranscriptKey,
        entries: &[Value],
        owner: Option<&'static str>,
    ) -> Option<(u64, u64, u64)> {
        let known = self.kept.iter().position(|kept| kept.key == *key);
        let new = Kept { key: key.clone(), owner: None, entries: Vec::new(), written: 0 };
        let mut kept = known.map_or(new, |at| self.kept[at].clone());
        if !entries.is_empty() && kept.owner.is_some() && owner.is_some() && kept.owner != owner {
            return None;
        }
        let mut answer = (0, 0, 0);
        for entry in entries {
            let is_it =
                |other: &&Value| entry["uuid"].is_string() && other["uuid"] == entry["uuid"];
            match kept.entries.iter().find(is_it) {
                Some(other) => {
                    answer.1 += 1;
                    answer.2 += u64::from(other != entry);
                }
                None => {
                    answer.0 += 1;
                    kept.entries.push(entry.clone());
                }
            }
        }
        if answer.0 > 0 {
            self.appends += 1;
            kept.owner = kept.owner.or(owner);
            kept.written = self.appends;
            match known {
                Some(at) => self.kept[at] = kept,
                None => self.kept.push(kept),
            }
        }
        Some(answer)
    }

    fn retain(&mut self, is_kept: impl Fn(&Kept) -> bool) -> u64 {
        let before = self.kept.len();
        self.kept.retain(is_kept);
        (before - self.kept.len()) as u64
    }

    fn delete(&mut self, key: &TranscriptKey) -> u64 {
        self.retain(|kept| match is_main(key) {
            true => (&kept.key.project, &kept.key.session) != (&key.project, &key.session),
            false => kept.key != *key,
        })
    }

    fn delete_of_owner(&mut self, owner: &str) -> u64 {
        let is_owned = |kept: &Kept| kept.owner == Some(owner);
        let main: Vec<TranscriptKey> = self
            .kept
            .iter()
            .filter(|kept| is_main(&kept.key) && is_owned(kept))
            .map(|kept| kept.key.clone())
            .collect();
        let is_below = |kept: &Kept| {
            main.iter()
                .any(|key| (&kept.key.project, &kept.key.session) == (&key.project, &key.session))
        };
        self.retain(|kept| !is_owned(kept) && !is_below(kept))
    }

    fn shown(&self) -> Result<String> {
        let json = |entries: &[Value]| entries.iter().cloned().map(Json::from).collect::<Vec<_>>();
        let mut text = String::new();
        for key in keys() {
            let kept = self.kept.iter().find(|kept| kept.key == key);
            text += &format!("{key:?}: {:?}\n", kept.map(|kept| json(&kept.entries)));
        }
        for project in ["p", "q", "p/s"] {
            let of_project: Vec<&Kept> =
                self.kept.iter().filter(|kept| kept.key.project == project).collect();
            let mut main: Vec<&Kept> =
                of_project.iter().copied().filter(|kept| is_main(&kept.key)).collect();
            main.sort_by_key(|kept| kept.written);
            text +=
                &format!("{:?}\n", main.iter().map(|kept| &kept.key.session).collect::<Vec<_>>());
            main.sort_by_key(|kept| &kept.key.session);
            let mut summaries = Vec::new();
            for kept in main {
                let data = fold_summary(None, &json(&kept.entries));
                summaries.push((&kept.key.session, data.value()));
            }
            text += &format!("{summaries:?}\n");
            for session in ["s", "t", ""] {
                let of_session = of_project.iter().filter(|kept| kept.key.session == session);
                let mut subpaths: Vec<&String> = of_session
                    .map(|kept| &kept.key.subpath)
                    .filter(|subpath| !subpath.is_empty())
                    .collect();
                subpaths.sort();
                text += &format!("{subpaths:?}\n");
            }
        }
        for owner in [None, Some("ann")] {
            for kept in self.kept.iter().filter(|kept| owner.is_none() || kept.owner == owner) {
                text += &format!("{:?} {:?} {}\n", kept.key, kept.owner, kept.entries.len());
            }
        }
        Ok(text)
    }
}

fn is_main(key: &TranscriptKey) -> bool {
    key.subpath.is_empty()
}

/// What a store shows, without times.
fn shown(storage: &Transcripts) -> Result<String> {
    let mut text = String::new();
    for key in keys() {
        text += &format!("{key:?}: {:?}\n", storage.load(&key)?);
    }
    for project in ["p", "q", "p/s"] {
        let mut sessions = storage.of_project(project)?;
        sessions.sort_by_key(|session| session.mtime);
        text += &format!("{:?}\n", sessions.iter().map(|it| &it.key.session).collect::<Vec<_>>());
        sessions.sort_by(|a, b| a.key.cmp(&b.key));
        let summary = |it: &Option<Json>| it.as_ref().map(Json::value).unwrap_or_default();
        let summaries: Vec<_> =
            sessions.iter().map(|it| (&it.key.session, summary(&it.summary))).collect();
        text += &format!("{summaries:?}\n");
        for session in ["s", "t", ""] {
            let mut subpaths = storage.subpaths(project, session)?;
            subpaths.sort();
            text += &format!("{subpaths:?}\n");
        }
    }
    for owner in [None, Some("ann".to_owned())] {
        let filter = TranscriptFilter { owner, ..TranscriptFilter::default() };
        for stored in storage.list(&filter, None, 100)? {
            text += &format!("{:?} {:?} {}\n", stored.key, stored.owner.as_deref(), stored.entries);
        }
    }
    Ok(text)
}

#[test]
fn a_store_equals_a_list_of_entries() {
    let strategy = prop::collection::vec(op(), 1..25);
    check_all(cases(60), &strategy, |ops| {
        let mut scratch = Scratch::new()?;
        let mut model = Model::default();
        let keys = keys();
        for op in ops {
            let store = SessionStore::new(&scratch.store);
            match op {
                Op::Append { key, entries, owner } => {
                    let expected = model.append(&keys[key], &entries, owner);
                    let entries: Vec<Json> = entries.into_iter().map(Json::from).collect();
                    let store = owner.map_or(store.clone(), |owner| store.owned_by(owner));
                    let figures = |it: AppendedEntries| (it.added, it.known, it.differing);
                    assert_eq!(store.append(&keys[key], &entries).ok().map(figures), expected);
                }
                Op::Delete { key } => {
                    assert_eq!(store.log().delete(&keys[key])?, model.delete(&keys[key]))
                }
                Op::DeleteOwner(owner) => {
                    assert_eq!(store.log().delete_of_owner(owner)?, model.delete_of_owner(owner));
                }
                Op::Reopen => scratch.reopen()?,
            }
            assert_eq!(shown(&scratch.store.transcripts())?, model.shown()?);
        }
        assert_eq!(scratch.store.verify(|_| {})?.damages, []);
        Ok(())
    })
    .unwrap();
}

/// Returns what the rules of a summary say of entries, read as values.
fn by_rules(entries: &[Value]) -> Value {
    let mut data = Map::new();
    let first = |name: &str| {
        entries.iter().filter_map(move |entry| entry[name].as_str()).find(|text| !text.is_empty())
    };
    if let Some(entry) = entries.first() {
        data.insert("is_sidechain".to_owned(), (entry["isSidechain"] == true).into());
    }
    if let Some(cwd) = first("cwd") {
        data.insert("cwd".to_owned(), cwd.into());
    }
    if let Some(time) = first("timestamp") {
        let time = chrono::DateTime::parse_from_rfc3339(time).unwrap();
        // The SDK multiplies a binary fraction of seconds, and cuts the product.
        let millis = (time.timestamp_micros() as f64 / 1e6 * 1000.0) as i64;
        data.insert("created_at".to_owned(), millis.into());
    }
    for (from, to) in [
        ("customTitle", "custom_title"),
        ("aiTitle", "ai_title"),
        ("lastPrompt", "last_prompt"),
        ("summary", "summary_hint"),
        ("gitBranch", "git_branch"),
    ] {
        let last = entries.iter().rev().find_map(|entry| entry[from].as_str());
        data.extend(last.map(|text| (to.to_owned(), text.into())));
    }
    let tags = entries.iter().rev().find(|entry| entry["type"] == "tag");
    let tag = tags.and_then(|entry| entry["tag"].as_str()).filter(|tag| !tag.is_empty());
    data.extend(tag.map(|tag| ("tag".to_owned(), tag.into())));
    for entry in entries.iter().filter(|entry| entry["type"] == "user" && entry["isMeta"] != true) {
        let words = entry["message"]["content"].as_str().unwrap_or_default().replace('\n', " ");
        match words.trim() {
            "" => {}
            "<command-name>/x</command-name>" => {
                data.insert("command_fallback".to_owned(), "/x".into());
            }
            prompt => {
                data.insert("first_prompt".to_owned(), prompt.into());
                data.insert("first_prompt_locked".to_owned(), true.into());
                break;
            }
        }
    }
    Value::Object(data)
}

#[test]
fn a_summary_is_what_its_rules_say_however_entries_come() {
    let strategy = (prop::collection::vec(entry(), 0..20), 1..6_usize);
    check_all(cases(1_000), &strategy, |(entries, size)| {
        let mut data = None;
        for batch in entries.chunks(size) {
            let batch: Vec<Json> = batch.iter().cloned().map(Json::from).collect();
            data = Some(fold_summary(data.as_ref(), &batch));
        }
        let data = data.map_or_else(|| json!({}), |data| data.value());
        assert_eq!(data, by_rules(&entries));
        Ok(())
    })
    .unwrap();
}

/// Returns the content of the session that shows a transcript.
fn projected(store: &Store, key: &TranscriptKey) -> Result<(Option<Projection>, String)> {
    let found = SessionStore::new(store).projection(key)?;
    let hash = found.as_ref().map(|it| session_hash(&store.session(&it.session)?)).transpose()?;
    Ok((found, hash.unwrap_or_default()))
}

#[test]
fn a_session_is_what_all_entries_say_however_they_come() {
    let sizes = prop::collection::vec((1..8_usize, any::<bool>()), 1..6);
    check_all(cases(12), &(claude::entries(40), sizes), |(entries, sizes)| {
        let mut scratch = Scratch::new()?;
        let key = TranscriptKey::new("p", "s");
        let entries: Vec<Json> = entries.into_iter().map(Json::from).collect();
        let (mut left, mut sizes) = (&entries[..], sizes.into_iter().cycle());
        while !left.is_empty() {
            let (size, reopens) = sizes.next().unwrap_or_default();
            let (batch, rest) = left.split_at(size.min(left.len()));
            SessionStore::new(&scratch.store).projecting().append(&key, batch)?;
            left = rest;
            if reopens {
                scratch.reopen()?;
            }
        }
        let whole = Store::open_in_memory()?;
        SessionStore::new(&whole).append(&key, &entries)?;
        SessionStore::new(&whole).project(&key)?;
        assert_eq!(projected(&scratch.store, &key)?, projected(&whole, &key)?);
        assert_eq!(scratch.store.verify(|_| {})?.damages, []);
        // Projecting again changes nothing.
        let before = projected(&scratch.store, &key)?;
        SessionStore::new(&scratch.store).project(&key)?;
        assert_eq!(projected(&scratch.store, &key)?, before);
        assert!(before.0.is_none_or(|it| it.waiting == 0));
        Ok(())
    })
    .unwrap();
}

/// The parent that was said to be missing was the link at which the cycle was entered first.
#[test]
fn entries_below_a_cycle_of_links_are_shown_alike_however_they_come() -> Result<()> {
    let message = |uuid: &str, parent: &str| {
        json!({"type": "user", "uuid": uuid, "parentUuid": parent, "cwd": "/work",
               "timestamp": "2026-01-01T00:00:00Z", "message": {"content": "hi"}})
    };
    let link =
        |uuid: &str, parent: &str| json!({"type": "progress", "uuid": uuid, "parentUuid": parent});
    let root = json!({"type": "user", "uuid": "r", "parentUuid": null, "cwd": "/work",
                      "timestamp": "2026-01-01T00:00:00Z", "message": {"content": "hi"}});
    let chained = message("c", "r");
    let entries =
        [root, chained, message("a", "l"), link("l", "m"), link("m", "l"), message("b", "m")];
    let entries = entries.map(Json::from);
    let key = TranscriptKey::new("p", "s");
    let (whole, parts) = (Store::open_in_memory()?, Store::open_in_memory()?);
    SessionStore::new(&whole).projecting().append(&key, &entries)?;
    for two in entries.chunks(2) {
        SessionStore::new(&parts).projecting().append(&key, two)?;
    }
    assert_eq!(projected(&parts, &key)?, projected(&whole, &key)?);
    Ok(())
}
