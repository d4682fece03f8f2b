//! Bindings: which session a key leads to.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{Probe, at, owned_by};
use crate::catalog::{
    Binding, BindingEnd, BindingFilter, ResumeRequest, Resumed, SessionChange, SessionFilter,
};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::message::Message;
use crate::outcome::SessionDetails;
use crate::testing::conformance::probe::supported;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// So short that a session expires as soon as the clock moves.
const MOMENT: Duration = Duration::from_micros(1);

impl Probe {
    fn resume(&self, key: &str) -> Result<Resumed> {
        self.catalog.resume(&ResumeRequest::new(key))
    }

    /// Returns the bindings of a key, oldest first.
    fn bound(&self, key: &str) -> Result<Vec<Binding>> {
        let filter = BindingFilter { key: Some(key.to_owned()), ..BindingFilter::default() };
        let mut found = self.catalog.bindings(&filter, None, 99)?;
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

pub(super) fn resumes(probe: &Probe) -> Result<()> {
    let details = SessionDetails { name: Some("Chat".to_owned()), ..SessionDetails::default() };
    let request = ResumeRequest { new_id: "first".into(), details, ..ResumeRequest::new("key") };
    let first = probe.catalog.resume(&request)?;
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

    probe.catalog.change(&first.session, &SessionChange::End("over".to_owned()))?;
    let second = probe.resume("key")?;
    assert_replaced(&second, &first.session, BindingEnd::Ended);
    probe.catalog.change(&first.session, &SessionChange::Reopen)?;
    assert_eq!(probe.resume("key")?.session, second.session, "it leads to the new session now");

    probe.catalog.change(&second.session, &SessionChange::Delete)?;
    let third = probe.resume("key")?;
    assert_replaced(&third, &second.session, BindingEnd::Deleted);
    probe.catalog.change(&second.session, &SessionChange::Restore)?;
    assert_eq!(probe.resume("key")?.session, third.session);

    // A session that is restored before its key is used keeps it.
    probe.catalog.change(&third.session, &SessionChange::Delete)?;
    probe.catalog.change(&third.session, &SessionChange::Restore)?;
    assert_eq!(probe.resume("key")?.session, third.session);
    let ends = probe.ends("key")?;
    assert_eq!(ends, [Some(BindingEnd::Ended), Some(BindingEnd::Deleted), None]);
    let bound = probe.bound("key")?;
    assert!(bound.iter().all(|binding| binding.ended_at.is_some() == binding.end.is_some()));
    assert!(bound.is_sorted_by(|one, next| one.number < next.number));

    // A removed session takes its bindings with it.
    probe.catalog.remove(&third.session)?;
    assert_eq!(probe.ends("key")?.len(), 2);
    let fourth = probe.resume("key")?;
    assert!(fourth.is_new, "{fourth:?}");
    assert_eq!(probe.resume("key")?.session, fourth.session);
    Ok(())
}

pub(super) fn owners(probe: &Probe) -> Result<()> {
    let of =
        |owner: &str| ResumeRequest { owner: Some(owner.to_owned()), ..ResumeRequest::new("key") };
    let unowned = probe.resume("key")?;
    assert_eq!(probe.info(unowned.session.as_str())?.owner, None);
    let again = probe.catalog.resume(&of("ann"))?;
    assert_eq!((&again.session, again.is_new), (&unowned.session, false));
    assert_eq!(probe.info(unowned.session.as_str())?.owner.as_deref(), Some("ann"));
    assert_eq!(probe.listed(&SessionFilter::owned_by("ann"))?, [unowned.session.as_str()]);
    for request in [ResumeRequest::new("key"), of("ann")] {
        assert_eq!(probe.catalog.resume(&request)?.session, unowned.session);
    }
    let other = probe.catalog.resume(&of("bob"))?;
    assert_replaced(&other, &unowned.session, BindingEnd::OtherOwner);
    assert_eq!(probe.info(other.session.as_str())?.owner.as_deref(), Some("bob"));
    assert_eq!(probe.info(unowned.session.as_str())?.owner.as_deref(), Some("ann"));

    let details = owned_by("eve");
    let request = ResumeRequest { details: details.clone(), ..of("ann") };
    let asked = probe.catalog.resume(&ResumeRequest { key: "asked".to_owned(), ..request })?;
    assert_eq!(probe.info(asked.session.as_str())?.owner.as_deref(), Some("ann"));
    let given = probe.catalog.resume(&ResumeRequest { details, ..ResumeRequest::new("given") })?;
    assert_eq!(probe.info(given.session.as_str())?.owner.as_deref(), Some("eve"));
    Ok(())
}

/// Waits until the clock has moved on from a time.
fn wait_after(time: DateTime<Utc>) {
    while Utc::now() < time + TimeDelta::microseconds(2) {
        std::thread::yield_now();
    }
}

pub(super) fn expires(probe: &Probe) -> Result<()> {
    let after = |expire_after| ResumeRequest { expire_after, ..ResumeRequest::new("key") };
    let first = probe.catalog.resume(&after(DAY))?;
    probe.say(first.session.as_str(), at(0))?;
    for request in [after(Duration::ZERO), after(DAY), after(Duration::MAX)] {
        // The last message is old, but the key was bound just now.
        assert_eq!(probe.catalog.resume(&request)?.session, first.session);
    }
    wait_after(probe.bound("key")?[0].bound_at);
    assert_eq!(probe.catalog.resume(&after(Duration::ZERO))?.session, first.session, "zero: never");
    let second = probe.catalog.resume(&after(MOMENT))?;
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
    assert_eq!(probe.catalog.resume(&hour)?.session, second.session);

    // After the clock was set back, the last write is in the future: that is not long ago.
    let created_at = Some(Utc::now() + TimeDelta::days(1));
    let details = SessionDetails { created_at, ..SessionDetails::default() };
    let request = ResumeRequest { key: "clock".to_owned(), details, ..after(MOMENT) };
    let early = probe.catalog.resume(&request)?;
    wait_after(Utc::now());
    assert_eq!(probe.catalog.resume(&request)?.session, early.session);
    Ok(())
}

pub(super) fn taken(probe: &Probe) -> Result<()> {
    let first = probe.resume("key")?;
    probe.catalog.change(&first.session, &SessionChange::End("over".to_owned()))?;
    probe.create("taken")?;
    probe.create("in the trash")?;
    probe.catalog.change(&"in the trash".into(), &SessionChange::Delete)?;
    for (key, id) in [("key", "taken"), ("new key", "taken"), ("key", "in the trash")] {
        let answer =
            probe.catalog.resume(&ResumeRequest { new_id: id.into(), ..ResumeRequest::new(key) });
        match answer {
            Err(Error::SessionExists { id: taken }) => assert_eq!(taken, *id),
            other => panic!("it should be Error::SessionExists, not {other:?}"),
        }
    }
    assert_eq!((probe.ends("key")?, probe.ends("new key")?), (vec![None], Vec::new()));
    let too_many = (0..101).map(|number| number.to_string()).collect();
    let details = SessionDetails { tags: too_many, ..SessionDetails::default() };
    let request = ResumeRequest { new_id: "new".into(), details, ..ResumeRequest::new("key") };
    assert!(probe.catalog.resume(&request).is_err());
    assert_eq!((probe.ends("key")?, probe.catalog.info(&"new".into())?), (vec![None], None));
    assert_replaced(&probe.resume("key")?, &first.session, BindingEnd::Ended);
    Ok(())
}

pub(super) fn continued(probe: &Probe) -> Result<()> {
    let first = probe.resume("key")?;
    let other = probe.resume("other")?;
    let chat = probe.chat(first.session.as_str());
    probe.say(first.session.as_str(), at(0))?;
    if supported(chat.split(&"next".into(), &Message::assistant("They talked."), "full"))?.is_none()
    {
        return Ok(());
    }
    let resumed = probe.resume("key")?;
    assert_eq!((resumed.session.as_str(), resumed.is_new, resumed.former), ("next", false, None));
    assert_eq!(probe.ends("key")?, [Some(BindingEnd::Continued), None]);
    assert_eq!(probe.resume("other")?.session, other.session);
    Ok(())
}

pub(super) fn unbinds(probe: &Probe) -> Result<()> {
    let first = probe.resume("key")?;
    assert_eq!(probe.catalog.unbind("another")?, None);
    assert_eq!(probe.catalog.unbind("key")?, Some(first.session.clone()));
    assert_eq!(probe.catalog.unbind("key")?, None);
    let second = probe.resume("key")?;
    assert!(second.is_new && second.former.is_none(), "{second:?}");
    assert_eq!(probe.ends("key")?, [Some(BindingEnd::Unbound), None]);
    assert_eq!(probe.info(first.session.as_str())?.ended_at, None);
    Ok(())
}

pub(super) fn lists(probe: &Probe) -> Result<()> {
    for _ in 0..5 {
        for key in ["a", "b"] {
            probe.resume(key)?;
            probe.catalog.unbind(key)?;
        }
    }
    let open = probe.resume("a")?;
    let all = BindingFilter::default();
    let of = |key: &str| BindingFilter { key: Some(key.to_owned()), ..BindingFilter::default() };
    let is_open = BindingFilter { is_open: true, ..all.clone() };
    let of_session = BindingFilter { session: Some(open.session.clone()), ..all.clone() };
    let of_both = BindingFilter { session: Some(open.session.clone()), ..of("b") };
    let everything = probe.catalog.bindings(&all, None, 99)?;
    assert_eq!(everything.len(), 11);
    assert!(everything.is_sorted_by(|one, next| one.number > next.number), "newest first");
    for filter in [all, of("a"), of("b"), of("c"), is_open, of_session, of_both] {
        let shown: Vec<_> =
            everything.iter().filter(|found| filter.shows(found)).cloned().collect();
        for size in [1, 3, 99] {
            let (mut listed, mut before) = (Vec::new(), None);
            loop {
                let page = probe.catalog.bindings(&filter, before, size)?;
                assert!(page.len() <= size);
                let Some(last) = page.last() else { break };
                before = Some(last.number);
                listed.extend(page);
            }
            assert_eq!(listed, shown, "{filter:?} by {size}");
        }
    }
    assert_eq!(probe.catalog.bindings(&BindingFilter::default(), None, 0)?, []);
    assert_eq!(probe.catalog.bindings(&BindingFilter::default(), Some(0), 9)?, []);
    assert_eq!(probe.catalog.bindings(&BindingFilter::default(), Some(u64::MAX), 99)?.len(), 11);
    Ok(())
}
