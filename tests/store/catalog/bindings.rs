//! Bindings: which session a key leads to.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use talktree::{
    Binding, BindingEnd, BindingFilter, Error, Message, Result, SessionChange, SessionDetails,
    SessionFilter, SessionId,
};

use super::{Probe, ResumeRequest, Resumed, at, owned_by};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// So short that a session expires as soon as the clock moves.
const MOMENT: Duration = Duration::from_micros(1);

impl Probe {
    fn resume(&self, key: &str) -> Result<Resumed> {
        self.resumed(&ResumeRequest::new(key))
    }

    /// Returns the bindings of a key, oldest first.
    fn bound(&self, key: &str) -> Result<Vec<Binding>> {
        let filter = BindingFilter { key: Some(key.to_owned()), ..BindingFilter::default() };
        let mut found = self.store.bindings(&filter, None, 99)?;
        found.reverse();
        Ok(found)
    }

    fn ends(&self, key: &str) -> Result<Vec<Option<BindingEnd>>> {
        Ok(self.bound(key)?.into_iter().map(|binding| binding.end).collect())
    }
}

/// Checks that a resume created a session because of what became of the former one.
#[track_caller]
fn assert_replaced(resumed: &Resumed, former: &SessionId, why: BindingEnd) {
    assert!(resumed.is_new && resumed.session != *former, "{resumed:?}");
    assert_eq!(resumed.former, Some((former.clone(), why)));
}

#[test]
fn a_key_leads_to_one_session_until_that_must_not_be_resumed() -> Result<()> {
    let probe = Probe::new()?;
    let details = SessionDetails { name: Some("Chat".to_owned()), ..SessionDetails::default() };
    let request = ResumeRequest { new_id: "first".into(), details, ..ResumeRequest::new("key") };
    let first = probe.resumed(&request)?;
    assert_eq!((first.session.as_str(), first.is_new, &first.former), ("first", true, &None));
    assert_eq!(probe.info("first")?.name.as_deref(), Some("Chat"));
    probe.say("first", at(0))?;
    for _ in 0..2 {
        let again = probe.resume("key")?;
        assert_eq!(
            (again.session, again.is_new, again.former),
            (first.session.clone(), false, None)
        );
    }
    assert_ne!(probe.resume("another key")?.session, first.session);
    assert_eq!(probe.bound("key")?.len(), 1);

    probe.store.change_session(&first.session, &SessionChange::End("over".to_owned()))?;
    let second = probe.resume("key")?;
    assert_replaced(&second, &first.session, BindingEnd::Ended);
    probe.store.change_session(&first.session, &SessionChange::Reopen)?;
    assert_eq!(probe.resume("key")?.session, second.session, "it leads to the new session now");

    probe.store.change_session(&second.session, &SessionChange::Delete)?;
    let third = probe.resume("key")?;
    assert_replaced(&third, &second.session, BindingEnd::Deleted);
    probe.store.change_session(&second.session, &SessionChange::Restore)?;
    assert_eq!(probe.resume("key")?.session, third.session);

    // A session that is restored before its key is used keeps it.
    probe.store.change_session(&third.session, &SessionChange::Delete)?;
    probe.store.change_session(&third.session, &SessionChange::Restore)?;
    assert_eq!(probe.resume("key")?.session, third.session);
    let ends = probe.ends("key")?;
    assert_eq!(ends, [Some(BindingEnd::Ended), Some(BindingEnd::Deleted), None]);
    let bound = probe.bound("key")?;
    assert!(bound.iter().all(|binding| binding.ended_at.is_some() == binding.end.is_some()));
    assert!(bound.is_sorted_by(|one, next| one.number < next.number));

    // A removed session takes its bindings with it.
    probe.store.remove(&third.session)?;
    assert_eq!(probe.ends("key")?.len(), 2);
    let fourth = probe.resume("key")?;
    assert!(fourth.is_new, "{fourth:?}");
    assert_eq!(probe.resume("key")?.session, fourth.session);
    probe.is_sound()
}

#[test]
fn a_resumed_session_has_the_owner_that_was_asked_for() -> Result<()> {
    let probe = Probe::new()?;
    let of =
        |owner: &str| ResumeRequest { owner: Some(owner.to_owned()), ..ResumeRequest::new("key") };
    let unowned = probe.resume("key")?;
    assert_eq!(probe.info(unowned.session.as_str())?.owner, None);
    let again = probe.resumed(&of("ann"))?;
    assert_eq!((&again.session, again.is_new), (&unowned.session, false));
    assert_eq!(probe.info(unowned.session.as_str())?.owner.as_deref(), Some("ann"));
    assert_eq!(probe.listed(&SessionFilter::owned_by("ann"))?, [unowned.session.as_str()]);
    for request in [ResumeRequest::new("key"), of("ann")] {
        assert_eq!(probe.resumed(&request)?.session, unowned.session);
    }
    let other = probe.resumed(&of("bob"))?;
    assert_replaced(&other, &unowned.session, BindingEnd::OtherOwner);
    assert_eq!(probe.info(other.session.as_str())?.owner.as_deref(), Some("bob"));
    assert_eq!(probe.info(unowned.session.as_str())?.owner.as_deref(), Some("ann"));

    let details = owned_by("eve");
    let request = ResumeRequest { details: details.clone(), ..of("ann") };
    let asked = probe.resumed(&ResumeRequest { key: "asked".to_owned(), ..request })?;
    assert_eq!(probe.info(asked.session.as_str())?.owner.as_deref(), Some("ann"));
    let given = probe.resumed(&ResumeRequest { details, ..ResumeRequest::new("given") })?;
    assert_eq!(probe.info(given.session.as_str())?.owner.as_deref(), Some("eve"));
    probe.is_sound()
}

/// Waits until the clock has moved on from a time.
fn wait_after(time: DateTime<Utc>) {
    while Utc::now() < time + TimeDelta::microseconds(2) {
        std::thread::yield_now();
    }
}

#[test]
fn a_session_expires_when_nothing_was_written_for_long_enough() -> Result<()> {
    let probe = Probe::new()?;
    let after = |expire_after| ResumeRequest { expire_after, ..ResumeRequest::new("key") };
    let first = probe.resumed(&after(DAY))?;
    probe.say(first.session.as_str(), at(0))?;
    for request in [after(Duration::ZERO), after(DAY), after(Duration::MAX)] {
        // The last message is old, but the key was bound just now.
        assert_eq!(probe.resumed(&request)?.session, first.session);
    }
    wait_after(probe.bound("key")?[0].bound_at);
    assert_eq!(probe.resumed(&after(Duration::ZERO))?.session, first.session, "zero: never");
    let second = probe.resumed(&after(MOMENT))?;
    assert_replaced(&second, &first.session, BindingEnd::Expired);
    assert_eq!(probe.ends("key")?, [Some(BindingEnd::Expired), None]);
    assert_eq!(
        probe.info(first.session.as_str())?.ended_at,
        None,
        "the session itself is not ended"
    );

    // A new message starts the time again.
    wait_after(probe.bound("key")?[1].bound_at);
    let hour = after(Duration::from_secs(60 * 60));
    probe.append(second.session.as_str(), &Message::user("hello"))?;
    assert_eq!(probe.resumed(&hour)?.session, second.session);

    // After the clock was set back, the last write is in the future: that is not long ago.
    let created_at = Some(Utc::now() + TimeDelta::days(1));
    let details = SessionDetails { created_at, ..SessionDetails::default() };
    let request = ResumeRequest { key: "clock".to_owned(), details, ..after(MOMENT) };
    let early = probe.resumed(&request)?;
    wait_after(Utc::now());
    assert_eq!(probe.resumed(&request)?.session, early.session);
    probe.is_sound()
}

#[test]
fn a_resume_that_cannot_create_its_session_changes_nothing() -> Result<()> {
    let probe = Probe::new()?;
    let first = probe.resume("key")?;
    probe.store.change_session(&first.session, &SessionChange::End("over".to_owned()))?;
    probe.create("taken")?;
    probe.create("in the trash")?;
    probe.store.change_session(&"in the trash".into(), &SessionChange::Delete)?;
    for (key, id) in [("key", "taken"), ("new key", "taken"), ("key", "in the trash")] {
        let answer = probe.resumed(&ResumeRequest { new_id: id.into(), ..ResumeRequest::new(key) });
        match answer {
            Err(Error::SessionExists { id: taken }) => assert_eq!(taken, *id),
            other => panic!("it should be Error::SessionExists, not {other:?}"),
        }
    }
    assert_eq!((probe.ends("key")?, probe.ends("new key")?), (vec![None], Vec::new()));
    let too_many = (0..101).map(|number| number.to_string()).collect();
    let details = SessionDetails { tags: too_many, ..SessionDetails::default() };
    let request = ResumeRequest { new_id: "new".into(), details, ..ResumeRequest::new("key") };
    assert!(probe.resumed(&request).is_err());
    assert_eq!((probe.ends("key")?, probe.bot.get(&"new".into())?), (vec![None], None));
    assert_replaced(&probe.resume("key")?, &first.session, BindingEnd::Ended);
    probe.is_sound()
}

#[test]
fn a_session_that_continues_another_one_takes_over_its_keys() -> Result<()> {
    let probe = Probe::new()?;
    let first = probe.resume("key")?;
    let other = probe.resume("other")?;
    let chat = probe.chat(first.session.as_str())?;
    probe.say(first.session.as_str(), at(0))?;
    let next = chat.compact_and_split("They talked.")?;
    let resumed = probe.resume("key")?;
    assert_eq!((&resumed.session, resumed.is_new, resumed.former), (next.id(), false, None));
    assert_eq!(probe.ends("key")?, [Some(BindingEnd::Continued), None]);
    assert_eq!(probe.resume("other")?.session, other.session);
    probe.is_sound()
}

#[test]
fn an_unbound_key_leads_to_a_new_session() -> Result<()> {
    let probe = Probe::new()?;
    let first = probe.resume("key")?;
    assert_eq!(probe.bot.unbind("another")?, None);
    assert_eq!(probe.bot.unbind("key")?, Some(first.session.clone()));
    assert_eq!(probe.bot.unbind("key")?, None);
    let second = probe.resume("key")?;
    assert!(second.is_new && second.former.is_none(), "{second:?}");
    assert_eq!(probe.ends("key")?, [Some(BindingEnd::Unbound), None]);
    assert_eq!(probe.info(first.session.as_str())?.ended_at, None);
    probe.is_sound()
}

#[test]
fn bindings_are_listed_newest_first() -> Result<()> {
    let probe = Probe::new()?;
    for _ in 0..5 {
        for key in ["a", "b"] {
            probe.resume(key)?;
            probe.bot.unbind(key)?;
        }
    }
    let open = probe.resume("a")?;
    let all = BindingFilter::default();
    let of = |key: &str| BindingFilter { key: Some(key.to_owned()), ..BindingFilter::default() };
    let is_open = BindingFilter { is_open: true, ..all.clone() };
    let of_session = BindingFilter { session: Some(open.session.clone()), ..all.clone() };
    let of_both = BindingFilter { session: Some(open.session.clone()), ..of("b") };
    let everything = probe.store.bindings(&all, None, 99)?;
    assert_eq!(everything.len(), 11);
    assert!(everything.is_sorted_by(|one, next| one.number > next.number), "newest first");
    for filter in [all, of("a"), of("b"), of("c"), is_open, of_session, of_both] {
        let shown: Vec<_> =
            everything.iter().filter(|found| shows(&filter, found)).cloned().collect();
        for size in [1, 3, 99] {
            let (mut listed, mut before) = (Vec::new(), None);
            loop {
                let page = probe.store.bindings(&filter, before, size)?;
                assert!(page.len() <= size);
                let Some(last) = page.last() else { break };
                before = Some(last.number);
                listed.extend(page);
            }
            assert_eq!(listed, shown, "{filter:?} by {size}");
        }
    }
    assert_eq!(probe.store.bindings(&BindingFilter::default(), None, 0)?, []);
    assert_eq!(probe.store.bindings(&BindingFilter::default(), Some(0), 9)?, []);
    assert_eq!(probe.store.bindings(&BindingFilter::default(), Some(u64::MAX), 99)?.len(), 11);
    probe.is_sound()
}

fn shows(filter: &BindingFilter, binding: &Binding) -> bool {
    filter.key.as_ref().is_none_or(|key| *key == binding.key)
        && filter.session.as_ref().is_none_or(|session| *session == binding.session)
        && !(filter.is_open && binding.ended_at.is_some())
}
