//! Whatever two hosts do at once, the store and the answers are as if one had been first.
//!
//! The model is a store in a file, where the two verbs run in either order.

use std::collections::BTreeSet;
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::content::without_ids;
use crate::common::{Scratch, on_server};
use crate::proxy::Proxy;
use talktree::{
    Block, Erasure, ErasureExtent, Error, Message, MessageId, Result, Session, SessionChange,
    SessionDetails, SessionId, SessionManager, Store, Usage,
};

/// One of two hosts in a round, which has sessions, a key and an owner of its own.
pub(crate) struct Host {
    bot: SessionManager,
    chat: OnceLock<Session>,
    round: String,
    /// 1 or 2.
    number: u8,
}

impl Host {
    pub(crate) fn new(store: &Store, round: &str, number: u8) -> Result<Self> {
        let bot = SessionManager::builder(store)
            .block("notes", Block::stored())
            .block("memory", Block::stored().per_owner())
            .cached_prompt()
            .build()?;
        Ok(Self { bot, chat: OnceLock::new(), round: round.to_owned(), number })
    }

    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.round)
    }

    fn id(&self, name: &str) -> SessionId {
        self.name(name).into()
    }

    fn chat(&self) -> Result<Session> {
        self.chat.get().cloned().map_or_else(|| self.bot.session(self.id("s")), Ok)
    }

    /// Binds the host to the session that is there now: it writes to no other one of the same name.
    fn bind(&self) -> Result<()> {
        let chat = self.chat()?;
        chat.info()?;
        let _ = self.chat.set(chat);
        Ok(())
    }

    fn message(&self, id: &str) -> Message {
        Message::user(format!("{id} said by {}", self.number)).with_id(id)
    }

    /// Returns a message of this host alone.
    fn own(&self) -> Message {
        self.message(&format!("own{}", self.number))
    }

    fn change(&self, change: SessionChange) -> Result<String> {
        self.bot.store().change_session(&self.id("s"), &change).map(|()| String::new())
    }

    /// Creates the session, with a branch, a label, a tag, a summary and texts. The clock of who wrote to it last was ahead.
    pub(crate) fn prepare(&self) -> Result<()> {
        let chat = self
            .bot
            .resume(self.name("key"))
            .owner(self.name("owner"))
            .new_id(self.id("s"))
            .open()?;
        chat.append_all(
            "abcdef".chars().map(|c| Message::user(format!("text {c}")).with_id(c.to_string())),
        )?;
        chat.append_to(&"d".into(), Message::user("a branch").with_id("x"))?;
        chat.checkout(&"f".into())?;
        chat.label("here", &"b".into())?;
        chat.tag(&"c".into(), "kept")?;
        chat.add_compaction("first", &"a".into(), &"b".into())?;
        chat.context().set("notes", "begun")?;
        chat.context().set("memory", "begun")?;
        let updated_at = Some("2100-01-01T00:00:00Z".parse().expect("a time"));
        chat.set_details(&SessionDetails { updated_at, ..SessionDetails::default() })
    }

    /// Returns all that the verbs change.
    pub(crate) fn state(&self) -> Result<String> {
        let mut out = Vec::new();
        for name in ["s", "fork", "split", "new1", "new2"] {
            let Some(info) = self.bot.get(&self.id(name))? else { continue };
            out.push(format!("{name}: {:?} {:?} {:?}", info.name, info.owner, info.tags));
            out.push(format!("{:?} {:?}", info.parent_session, info.fork_point));
            out.push(format!("{:?} {}", info.end_reason, info.deleted_at.is_some()));
            let chat = self.bot.session(self.id(name))?;
            for message in chat.all_messages() {
                let message = message?;
                out.push(format!("{} < {:?}: {}", message.id, message.parent, message.text()));
            }
            let summaries =
                chat.compactions()?.into_iter().map(|it| (it.summary, it.first, it.last));
            out.push(format!("{:?}", summaries.collect::<Vec<_>>()));
            let texts = chat.history()?.iter().map(Message::text).collect::<Vec<_>>();
            out.push(format!("{texts:?} {}", chat.path_length()?));
            out.push(format!("{:?} {:?}", chat.labels()?, chat.all_tags()?));
            let log = chat.head_log()?.into_iter().map(|entry| (entry.id, entry.is_present));
            out.push(format!("{:?}", log.collect::<Vec<_>>()));
            for label in ["notes", "memory"] {
                out.push(format!("{:?}", chat.context().block(label)?.map(|block| block.content)));
            }
            out.push(format!("{:?}", chat.context().frozen_prompt()?));
            out.push(format!("{:?}", chat.usage()?.input));
        }
        for owner in ["owner", "other"] {
            let usage = self.bot.store().usage().owner(self.name(owner)).total()?;
            out.push(format!("{owner} used {}", usage.input));
        }
        let bindings = self.bot.bindings(self.name("key"))?.into_iter();
        out.push(format!("{:?}", bindings.map(|it| (it.session, it.end)).collect::<Vec<_>>()));
        Ok(without_ids(&out.join("\n").replace(&self.round, "")))
    }
}

pub(crate) type Verb = (&'static str, fn(&Host) -> Result<String>);

pub(crate) const VERBS: [Verb; 32] = [
    ("append", |host| Ok(host.chat()?.append(host.own())?.is_new.to_string())),
    ("append the same", |host| Ok(host.chat()?.append(host.message("same"))?.is_new.to_string())),
    ("append all", |host| {
        let both = [host.own(), host.message(&format!("next{}", host.number))];
        host.chat()?.append_all(both).map(|_| String::new())
    }),
    ("append to", |host| Ok(host.chat()?.append_to(&"c".into(), host.own())?.is_new.to_string())),
    ("append if head", |host| {
        let answer = host.chat()?.append_if_head(Some(&"f".into()), host.own());
        answer.map(|appended| appended.is_new.to_string())
    }),
    ("update", |host| Ok(host.chat()?.update(host.message("c"))?.is_changed.to_string())),
    ("upsert", |host| Ok(host.chat()?.upsert(host.message("same"))?.is_new.to_string())),
    ("delete", |host| Ok(host.chat()?.delete([&"c".into()])?.messages.len().to_string())),
    ("delete the head", |host| Ok(host.chat()?.delete([&"f".into()])?.messages.len().to_string())),
    ("delete a branch", |host| {
        Ok(host.chat()?.delete_branch(&"d".into())?.messages.len().to_string())
    }),
    ("clear", |host| host.chat()?.clear().map(|()| String::new())),
    ("checkout", |host| {
        let at = MessageId::from(["x", "e"][usize::from(host.number) - 1]);
        host.chat()?.checkout(&at).map(|()| String::new())
    }),
    ("undo", |host| Ok(host.chat()?.undo_head()?.to_string())),
    ("label", |host| {
        let at = MessageId::from(["c", "e"][usize::from(host.number) - 1]);
        host.chat()?.label("here", &at).map(|()| String::new())
    }),
    ("tag", |host| {
        host.chat()?.tag(&"c".into(), &format!("tag{}", host.number)).map(|()| String::new())
    }),
    ("compact", |host| {
        let summary = format!("summary {}", host.number);
        host.chat()?.add_compaction(summary, &"c".into(), &"d".into()).map(|_| String::new())
    }),
    ("remove a compaction", |host| {
        let chat = host.chat()?;
        let first = chat.compactions()?.into_iter().find(|it| it.summary == "first");
        let Some(first) = first else { return Ok("there is none".to_owned()) };
        match chat.remove_compaction(&first.id) {
            Err(error) if error.is_unknown() || matches!(error, Error::SessionRemoved { .. }) => {
                Ok("there is none".to_owned())
            }
            answer => answer.map(|()| String::new()),
        }
    }),
    ("fork", |host| {
        let name = format!("fork {}", host.number);
        host.chat()?.fork_as(&host.id("fork"), &"d".into(), &name).map(|_| String::new())
    }),
    ("split", |host| {
        let summary = format!("split by {}", host.number);
        let answer = host.chat()?.compact_and_split_as(&host.id("split"), summary);
        answer.map(|_| String::new())
    }),
    ("append to notes", |host| {
        let text = format!("noted by {}", host.number);
        Ok(host.chat()?.context().append("notes", &text)?.content)
    }),
    ("append to memory", |host| {
        let text = format!("known by {}", host.number);
        Ok(host.chat()?.context().append("memory", &text)?.content)
    }),
    ("set memory", |host| {
        let text = format!("set by {}", host.number);
        Ok(host.chat()?.context().set("memory", &text)?.content)
    }),
    ("add usage", |host| {
        let usage = Usage { input: u64::from(host.number), ..Usage::default() };
        host.chat()?.add_usage(None, &usage).map(|()| String::new())
    }),
    ("resume", |host| {
        let new = host.id(&format!("new{}", host.number));
        let resumed =
            host.bot.resume(host.name("key")).owner(host.name("owner")).new_id(new).run()?;
        Ok(format!("{} {}", resumed.session.id(), resumed.is_new).replace(&host.round, ""))
    }),
    ("unbind", |host| {
        Ok(format!("{:?}", host.bot.unbind(&host.name("key"))?).replace(&host.round, ""))
    }),
    ("rename", |host| host.change(SessionChange::Name(Some(format!("by {}", host.number))))),
    ("put into the trash", |host| host.change(SessionChange::Delete)),
    ("give to another owner", |host| host.change(SessionChange::Owner(Some(host.name("other"))))),
    ("freeze", |host| host.chat()?.refresh_prompt()),
    ("thaw", |host| host.chat()?.context().thaw_prompt().map(|()| String::new())),
    ("erase", |host| {
        let extent = match host.bot.store().erase(&Erasure::session(host.id("s")).with_forks()) {
            Ok(erased) => erased.extent,
            // One that another erasure has marked and not finished counts as erased.
            Err(Error::UnknownSession { .. }) => ErasureExtent::default(),
            Err(error) => return Err(error),
        };
        let ErasureExtent { messages, texts, prompts, usage, copies_left, .. } = extent;
        Ok(format!("{messages} {texts} {prompts} {usage} {}", copies_left.len()))
    }),
    ("index", |host| host.bot.store().index(|_| {}).map(|()| String::new())),
];

/// Runs a verb; the answer is text, that of a refusal its kind.
pub(crate) fn run(host: &Host, verb: Verb) -> Result<String> {
    match verb.1(host) {
        Err(error @ (Error::Storage { .. } | Error::Busy { .. } | Error::Corrupt { .. })) => {
            Err(error)
        }
        Err(error) => {
            let text = format!("{error:?}");
            Ok(text.split([' ', '(']).next().unwrap_or_default().to_owned())
        }
        answer => answer,
    }
}

/// Returns the answers and the state after two verbs, one after the other; the first host's answer first.
fn in_order(model: &Store, round: &str, verbs: [Verb; 2], is_turned: bool) -> Result<[String; 3]> {
    let hosts = [Host::new(model, round, 1)?, Host::new(model, round, 2)?];
    hosts[1].prepare()?;
    hosts.iter().try_for_each(Host::bind)?;
    let mut answers = [String::new(), String::new()];
    for at in if is_turned { [1, 0] } else { [0, 1] } {
        answers[at] = run(&hosts[at], verbs[at])?;
    }
    let [first, second] = answers;
    Ok([first, second, hosts[0].state()?])
}

/// Returns the same if the second host begins when the first one is about to commit.
fn at_once(
    proxy: &Proxy,
    stores: &[Store; 2],
    round: &str,
    verbs: [Verb; 2],
) -> Result<[String; 3]> {
    let hosts = [Host::new(&stores[0], round, 1)?, Host::new(&stores[1], round, 2)?];
    hosts[1].prepare()?;
    hosts.iter().try_for_each(Host::bind)?;
    let (first, second) = thread::scope(|scope| {
        let gate = proxy.hold();
        let first = scope.spawn(|| run(&hosts[0], verbs[0]));
        // A refused verb commits nothing.
        while !proxy.is_done() && !first.is_finished() {
            thread::sleep(Duration::from_micros(100));
        }
        proxy.clear();
        let second = scope.spawn(|| run(&hosts[1], verbs[1]));
        // It waits for the first one, or it does not and ends soon.
        let began = Instant::now();
        while !second.is_finished() && began.elapsed() < Duration::from_millis(20) {
            thread::sleep(Duration::from_micros(100));
        }
        drop(gate);
        (first.join().expect("no panic"), second.join().expect("no panic"))
    });
    Ok([first?, second?, hosts[1].state()?])
}

/// Returns what is wrong after each of some verbs with each other one.
fn compare(url: &str, proxy: &Proxy, verbs: impl Iterator<Item = Verb>) -> Result<Vec<String>> {
    let stores = [Store::connect(&proxy.url)?, Store::connect(url)?];
    let model = Scratch::in_file()?;
    let (mut round, mut wrong) = (0, Vec::new());
    let mut name = || {
        round += 1;
        format!("round{round}-")
    };
    for one in verbs {
        for other in VERBS {
            let verbs = [one, other];
            let expected = [
                in_order(&model.store, &name(), verbs, false)?,
                in_order(&model.store, &name(), verbs, true)?,
            ];
            let seen = at_once(proxy, &stores, &name(), verbs);
            if !seen.as_ref().is_ok_and(|seen| expected.contains(seen)) {
                wrong.push(format!("{} and {}: {seen:#?}, not {expected:#?}", one.0, other.0));
            }
        }
    }
    wrong.extend(stores[1].verify(|_| {})?.damages.iter().map(|damage| format!("{damage:?}")));
    Ok(wrong)
}

#[test]
fn two_verbs_at_once_are_as_if_one_was_first() -> Result<()> {
    let compare = |part| {
        let proxy = Proxy::start(on_server()).expect("a proxy");
        let Some(proxy) = proxy else { return Ok(Vec::new()) };
        compare(&proxy.direct, &proxy, VERBS.into_iter().skip(part).step_by(4))
    };
    let wrong = thread::scope(|scope| {
        let parts: Vec<_> = (0..4).map(|part| scope.spawn(move || compare(part))).collect();
        parts.into_iter().map(|part| part.join().expect("no panic")).collect::<Result<Vec<_>>>()
    })?;
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} pairs:\n{}", wrong.len(), wrong.join("\n\n"));
    Ok(())
}

/// Runs work on 32 hosts at once, and returns its answers.
fn on_32_hosts<T: Send>(url: &str, work: impl Fn(&Host) -> Result<T> + Sync) -> Result<Vec<T>> {
    let stores = (0..32).map(|_| Store::connect(url)).collect::<Result<Vec<_>>>()?;
    let barrier = Barrier::new(stores.len());
    let start = |number, store| {
        let host = Host::new(store, "", number)?;
        barrier.wait();
        work(&host)
    };
    thread::scope(|scope| {
        let start = &start;
        let hosts =
            (0_u8..).zip(&stores).map(|(number, store)| scope.spawn(move || start(number, store)));
        let hosts: Vec<_> = hosts.collect();
        hosts.into_iter().map(|host| host.join().expect("a verb does not panic")).collect()
    })
}

#[test]
fn appends_of_32_hosts_to_one_session_are_one_chain() -> Result<()> {
    let Some(url) = on_server() else { return Ok(()) };
    let ids = on_32_hosts(&url, |host| {
        let chat = host.chat()?;
        let append = |n| chat.append(host.message(&format!("{}-{n}", host.number))).map(|it| it.id);
        (0..10).map(append).collect::<Result<Vec<_>>>()
    })?;
    let chat = Store::connect(&url)?.session("s")?;
    let stored: Vec<MessageId> = chat.raw_history()?.into_iter().map(|it| it.id).collect();
    assert_eq!(stored.len(), 320);
    assert_eq!(BTreeSet::from_iter(&stored), ids.iter().flatten().collect());
    // Those of one host are in its order.
    for of_one in &ids {
        let places = of_one.iter().map(|id| stored.iter().position(|it| it == id));
        assert!(places.collect::<Vec<_>>().is_sorted());
    }
    Ok(())
}

#[test]
fn a_key_that_32_hosts_resume_points_to_one_session() -> Result<()> {
    let Some(url) = on_server() else { return Ok(()) };
    let resumed = on_32_hosts(&url, |host| {
        let resumed = host.bot.resume("telegram:1").owner("ada").run()?;
        resumed.session.append(host.own())?;
        Ok((resumed.session.id().clone(), resumed.is_new))
    })?;
    assert_eq!(resumed.iter().map(|(id, _)| id).collect::<BTreeSet<_>>().len(), 1);
    assert_eq!(resumed.iter().filter(|(_, is_new)| *is_new).count(), 1);
    let store = Store::connect(&url)?;
    assert_eq!(store.sessions()?.len(), 1);
    assert_eq!(store.session(&resumed[0].0)?.path_length()?, 32);
    Ok(())
}

#[test]
fn nothing_that_32_hosts_add_to_the_memory_of_one_owner_is_lost() -> Result<()> {
    let Some(url) = on_server() else { return Ok(()) };
    let answers = on_32_hosts(&url, |host| {
        let key = format!("telegram:{}", host.number);
        let chat = host.bot.resume(key).owner("ada").open()?;
        for n in 0..3 {
            chat.context().append("memory", &format!("fact {}-{n}.", host.number))?;
        }
        Ok(chat.id().clone())
    })?;
    let store = Store::connect(&url)?;
    let host = Host::new(&store, "", 1)?;
    let memory = host.bot.session(answers[0].clone())?.context().block("memory")?;
    let memory = memory.map(|block| block.content).unwrap_or_default();
    for fact in (0..32).flat_map(|host| (0..3).map(move |n| format!("fact {host}-{n}."))) {
        assert_eq!(memory.matches(&fact).count(), 1, "{fact} in {memory}");
    }
    Ok(())
}

/// What two of them clean at the same time, each waits for the other at, and gives up.
#[test]
fn erasures_of_8_hosts_at_once_all_end() -> Result<()> {
    let Some(url) = on_server() else { return Ok(()) };
    let connect = |_| Store::options().busy_timeout(Duration::from_secs(1)).connect(&url);
    let stores = (0..8).map(connect).collect::<Result<Vec<_>>>()?;
    let erase = |store: &Store, name: String| -> Result<()> {
        let began = Instant::now();
        for round in 0..4 {
            store.session(&*name)?.append(Message::user(format!("in round {round}")))?;
            loop {
                match store.erase(&Erasure::session(&*name)) {
                    Err(Error::Busy { .. }) if began.elapsed() < Duration::from_secs(60) => {}
                    // What an attempt has marked is gone.
                    Err(Error::UnknownSession { .. }) => break,
                    erased => break drop(erased?),
                }
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let hosts = stores.iter().enumerate();
        let hosts: Vec<_> =
            hosts.map(|(at, store)| scope.spawn(move || erase(store, at.to_string()))).collect();
        hosts.into_iter().try_for_each(|host| host.join().expect("no panic"))
    })?;
    assert!(stores[0].finish_erasure()?);
    assert!(stores[0].sessions()?.is_empty());
    Ok(())
}
