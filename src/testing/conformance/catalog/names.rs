//! Names: any text, up to a length.

use super::{Probe, owned_by};
use crate::catalog::{BindingFilter, ResumeRequest, SessionChange, SessionFilter};
use crate::error::{Error, Result};
use crate::id::{MAX_ID_BYTES, SessionId};
use crate::message::now;
use crate::outcome::SessionDetails;

/// Control characters, a change of direction, quotes, scripts without spaces.
const ODD: &str = "\0\n\t\u{1b}[31m\u{202e}'\"; DROP TABLE session; -- %_重";

pub(super) fn odd(probe: &Probe) -> Result<()> {
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
    probe.catalog.create(&ODD.into(), &details)?;
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
    let resumed = probe.catalog.resume(&ResumeRequest::new(ODD))?;
    assert_eq!(probe.catalog.resume(&ResumeRequest::new(ODD))?.session, resumed.session);
    let filter = BindingFilter { key: odd(), ..BindingFilter::default() };
    assert_eq!(probe.catalog.bindings(&filter, None, 9)?[0].key, ODD);
    assert_eq!(probe.catalog.unbind(ODD)?, Some(resumed.session));
    Ok(())
}

pub(super) fn long(probe: &Probe) -> Result<()> {
    let fits = "x".repeat(MAX_ID_BYTES);
    probe.catalog.create(&fits.as_str().into(), &owned_by(&fits))?;
    probe.catalog.resume(&ResumeRequest::new(fits.as_str()))?;
    probe.catalog.change(&fits.as_str().into(), &SessionChange::Tag(fits.clone()))?;
    let (before, count) = (probe.info(&fits)?, probe.listed(&SessionFilter::default())?.len());

    let long = ["x".repeat(MAX_ID_BYTES + 1), "x".repeat(1 << 20)];
    for given in ["", &long[0], &long[1]] {
        let text = || Some(given.to_owned());
        let none = SessionDetails::default;
        let mut answers = vec![
            probe.catalog.create(&given.into(), &none()),
            probe.catalog.create(&"n".into(), &SessionDetails { name: text(), ..none() }),
            probe.catalog.create(&"n".into(), &SessionDetails { owner: text(), ..none() }),
            probe
                .catalog
                .create(&"n".into(), &SessionDetails { tags: vec![given.into()], ..none() }),
            probe.catalog.resume(&ResumeRequest::new(given)).map(drop),
        ];
        let request = || ResumeRequest::new("key");
        for request in [
            ResumeRequest { new_id: SessionId::from(given), ..request() },
            ResumeRequest { owner: text(), ..request() },
            ResumeRequest { details: SessionDetails { name: text(), ..none() }, ..request() },
        ] {
            answers.push(probe.catalog.resume(&request).map(drop));
        }
        for change in [
            SessionChange::Name(text()),
            SessionChange::Owner(text()),
            SessionChange::Tag(given.to_owned()),
            SessionChange::Untag(given.to_owned()),
            SessionChange::End(given.to_owned()),
        ] {
            answers.push(probe.catalog.change(&fits.as_str().into(), &change));
        }
        if !given.is_empty() {
            for details in [
                SessionDetails { model: text(), ..none() },
                SessionDetails { source: text(), ..none() },
                SessionDetails { end_reason: text(), ..none() },
                SessionDetails { parent_session: Some(given.into()), ..none() },
            ] {
                answers.push(probe.catalog.create(&"n".into(), &details));
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
    assert_eq!(probe.catalog.bindings(&BindingFilter::default(), None, 9)?.len(), 1);
    Ok(())
}
