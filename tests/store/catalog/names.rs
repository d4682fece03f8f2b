//! Names: any text, up to a length.

use talktree::{
    BindingFilter, Error, MAX_ID_BYTES, Result, SessionChange, SessionDetails, SessionFilter,
    SessionId,
};

use super::{Probe, ResumeRequest, now, owned_by};

/// Control characters, a change of direction, quotes, scripts without spaces.
const ODD: &str = "\0\n\t\u{1b}[31m\u{202e}'\"; DROP TABLE session; -- %_重";

#[test]
fn names_are_any_texts_that_are_not_too_long() -> Result<()> {
    let probe = Probe::new()?;
    let odd = || Some(ODD.to_owned());
    let details = SessionDetails {
        name: odd(),
        owner: odd(),
        source: odd(),
        model: odd(),
        end_reason: odd(),
        tags: vec![ODD.to_owned()],
        ..SessionDetails::default()
    };
    probe.create_as(&ODD.into(), &details)?;
    let info = probe.info(ODD)?;
    assert_eq!((info.name, info.owner, info.source), (odd(), odd(), odd()));
    assert_eq!((info.model, info.end_reason, info.tags), (odd(), odd(), vec![ODD.to_owned()]));
    let all = SessionFilter::default;
    for filter in [
        SessionFilter { owner: odd(), ..all() },
        SessionFilter { source: odd(), ..all() },
        SessionFilter { model: odd(), ..all() },
        SessionFilter { tag: odd(), ..all() },
        SessionFilter { name: odd(), ..all() },
    ] {
        assert_eq!(probe.listed(&filter)?, [ODD]);
    }
    probe.say(ODD, now())?;
    let resumed = probe.resumed(&ResumeRequest::new(ODD))?;
    assert_eq!(probe.resumed(&ResumeRequest::new(ODD))?.session, resumed.session);
    let filter = BindingFilter { key: odd(), ..BindingFilter::default() };
    assert_eq!(probe.store.bindings(&filter, None, 9)?[0].key, ODD);
    assert_eq!(probe.bot.unbind(ODD)?, Some(resumed.session));
    probe.is_sound()
}

#[test]
fn a_name_that_is_too_long_is_refused_and_nothing_is_done() -> Result<()> {
    let probe = Probe::new()?;
    let fits = "x".repeat(MAX_ID_BYTES);
    probe.create_as(&fits.as_str().into(), &owned_by(&fits))?;
    probe.resumed(&ResumeRequest::new(fits.as_str()))?;
    probe.store.change_session(&fits.as_str().into(), &SessionChange::Tag(fits.clone()))?;
    let (before, count) = (probe.info(&fits)?, probe.listed(&SessionFilter::default())?.len());

    let long = ["x".repeat(MAX_ID_BYTES + 1), "x".repeat(1 << 20)];
    for given in ["", &long[0], &long[1]] {
        let text = || Some(given.to_owned());
        let none = SessionDetails::default;
        let mut answers = vec![
            probe.create_as(&given.into(), &none()),
            probe.create_as(&"n".into(), &SessionDetails { name: text(), ..none() }),
            probe.create_as(&"n".into(), &SessionDetails { owner: text(), ..none() }),
            probe.create_as(&"n".into(), &SessionDetails { tags: vec![given.into()], ..none() }),
            probe.resumed(&ResumeRequest::new(given)).map(drop),
        ];
        let request = || ResumeRequest::new("key");
        for request in [
            ResumeRequest { new_id: SessionId::from(given), ..request() },
            ResumeRequest { owner: text(), ..request() },
            ResumeRequest { details: SessionDetails { name: text(), ..none() }, ..request() },
        ] {
            answers.push(probe.resumed(&request).map(drop));
        }
        for change in [
            SessionChange::Name(text()),
            SessionChange::Owner(text()),
            SessionChange::Tag(given.to_owned()),
            SessionChange::Untag(given.to_owned()),
            SessionChange::End(given.to_owned()),
        ] {
            answers.push(probe.store.change_session(&fits.as_str().into(), &change));
        }
        if !given.is_empty() {
            for details in [
                SessionDetails { model: text(), ..none() },
                SessionDetails { source: text(), ..none() },
                SessionDetails { end_reason: text(), ..none() },
                SessionDetails { parent_session: Some(given.into()), ..none() },
            ] {
                answers.push(probe.create_as(&"n".into(), &details));
            }
        }
        for (number, answer) in answers.into_iter().enumerate() {
            let length = given.len();
            let is_refused = matches!(answer, Err(Error::InvalidValue { .. }));
            assert!(is_refused, "answer {number} for a name of {length} bytes: {answer:?}");
        }
    }
    assert_eq!(probe.info(&fits)?, before);
    assert_eq!(probe.listed(&SessionFilter::default())?.len(), count);
    assert_eq!(probe.store.bindings(&BindingFilter::default(), None, 9)?.len(), 1);
    probe.is_sound()
}
