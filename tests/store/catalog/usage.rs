//! The usage of answers: sums by group, also after deletes.

use serde_json::json;

use talktree::{
    Cost, Error, Message, Result, Session, SessionChange, SessionDetails, Usage, UsageFilter,
    UsageGroup,
};

use super::{Probe, at, owned_by};

/// One day, in microseconds.
const DAY: i64 = 86_400_000_000;

/// The name, answers and output of a row.
type Sum = (Option<String>, u64, u64);

fn usage(model: &str, output: u64) -> Usage {
    let cost = Some(Cost { micros: output * 2, currency: "EUR".to_owned() });
    Usage { model: Some(model.to_owned()), input: 1, output, cost, ..Usage::default() }
}

fn answer(id: &str, model: &str, output: u64) -> Message {
    Message::assistant("text").with_id(id).with_usage(&usage(model, output)).at(at(0))
}

fn all() -> UsageFilter {
    UsageFilter::default()
}

fn sums(probe: &Probe, filter: &UsageFilter, group: UsageGroup) -> Result<Vec<Sum>> {
    let rows = probe.store.usage().filter(filter.clone()).by(group).run()?;
    Ok(rows.into_iter().map(|row| (row.group, row.answers, row.output)).collect())
}

/// Returns the output of the answers on the path to the head.
fn on_path(chat: &Session) -> Result<u64> {
    match chat.head()? {
        Some(head) => Ok(chat.at(&head).usage()?.output),
        None => Ok(0),
    }
}

/// Returns the answers and the output of all.
fn total(probe: &Probe) -> Result<(u64, u64)> {
    let sums = sums(probe, &all(), UsageGroup::All)?;
    Ok(sums.first().map_or((0, 0), |(_, answers, output)| (*answers, *output)))
}

#[track_caller]
fn is(found: &[Sum], expected: &[(&str, u64, u64)]) {
    let named =
        |(name, answers, output): &Sum| (name.clone().unwrap_or_default(), *answers, *output);
    let found: Vec<_> = found.iter().map(named).collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, answers, output)| ((*name).to_owned(), *answers, *output))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn usage_is_added_up_by_group() -> Result<()> {
    let probe = Probe::new()?;
    for (id, owner, source) in
        [("a", "ann", "mail"), ("b", "bob", "telegram"), ("c", "ann", "mail")]
    {
        let source = Some(source.to_owned());
        probe.create_as(&id.into(), &SessionDetails { source, ..owned_by(owner) })?;
    }
    // A session without an owner and a source.
    for (number, (session, model, output, day)) in [
        ("a", "small", 10, 0),
        ("a", "large", 200, 1),
        ("b", "small", 3_000, 1),
        ("c", "large", 40_000, 2),
        ("d", "small", 500_000, 2),
    ]
    .into_iter()
    .enumerate()
    {
        let message = answer(&format!("m{number}"), model, output).at(at(day * DAY));
        probe.append(session, &message)?;
    }
    probe.append("a", &Message::user("no usage").with_metadata(json!({"usage": {"output": 9}})))?;

    use UsageGroup::{All, Day, Model, Owner, Session, Source};
    let by = |group| sums(&probe, &all(), group);
    is(&by(All)?, &[("", 5, 543_210)]);
    is(&by(Model)?, &[("small", 3, 503_010), ("large", 2, 40_200)]);
    is(&by(Day)?, &[("2020-09-15", 2, 540_000), ("2020-09-14", 2, 3_200), ("2020-09-13", 1, 10)]);
    is(&by(Owner)?, &[("", 1, 500_000), ("ann", 3, 40_210), ("bob", 1, 3_000)]);
    is(&by(Session)?, &[("d", 1, 500_000), ("c", 1, 40_000), ("b", 1, 3_000), ("a", 2, 210)]);
    is(&by(Source)?, &[("", 1, 500_000), ("mail", 3, 40_210), ("telegram", 1, 3_000)]);

    let text = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (UsageFilter { session: Some("a".into()), ..all() }, Some((2, 210))),
        (UsageFilter { session: Some("nobody".into()), ..all() }, None),
        (UsageFilter { owner: text("ann"), ..all() }, Some((3, 40_210))),
        (UsageFilter { model: text("large"), ..all() }, Some((2, 40_200))),
        (UsageFilter { source: text("telegram"), ..all() }, Some((1, 3_000))),
        (UsageFilter { since: Some(at(DAY)), ..all() }, Some((4, 543_200))),
        (UsageFilter { until: Some(at(DAY)), ..all() }, Some((1, 10))),
        (
            UsageFilter {
                owner: text("ann"),
                model: text("large"),
                since: Some(at(2 * DAY)),
                ..all()
            },
            Some((1, 40_000)),
        ),
    ] {
        let found = sums(&probe, &filter, All)?;
        let found = found.first().map(|(_, answers, output)| (*answers, *output));
        assert_eq!(found, expected, "{filter:?}");
    }
    let rows = probe.store.usage().filter(all()).by(All).run()?;
    assert_eq!(rows[0].costs, [Cost { micros: 1_086_420, currency: "EUR".to_owned() }]);
    probe.is_sound()
}

#[test]
fn an_answer_counts_once() -> Result<()> {
    let probe = Probe::new()?;
    let chat = probe.chat("s")?;
    probe.append("s", &answer("m", "small", 10))?;
    probe.append("s", &answer("m", "small", 10))?;
    assert_eq!(total(&probe)?, (1, 10), "a known message is a no-op");
    chat.update(answer("m", "large", 30))?;
    is(&sums(&probe, &all(), UsageGroup::Model)?, &[("large", 1, 30)]);
    chat.add_usage(Some(&"m".into()), &usage("small", 50))?;
    is(&sums(&probe, &all(), UsageGroup::Model)?, &[("small", 1, 50)]);
    chat.add_usage(None, &usage("small", 5))?;
    chat.add_usage(None, &usage("small", 5))?;
    assert_eq!(total(&probe)?, (3, 60));
    let unknown = chat.add_usage(Some(&"nobody".into()), &usage("small", 1));
    assert!(matches!(unknown, Err(Error::UnknownMessage { .. })), "{unknown:?}");
    // One answer in several messages, each with the usage of all of it so far.
    for (id, output) in [("p1", 100), ("p2", 700), ("p3", 400)] {
        let about = json!({"id": "msg_1", "model": "small", "usage": {"output_tokens": output}});
        let part = Message::assistant("text").with_id(id).with_metadata(json!({"message": about}));
        probe.append("s", &part)?;
    }
    assert_eq!(total(&probe)?, (4, 760));
    assert_eq!((chat.usage()?.answers, chat.usage()?.output), (4, 760));
    probe.is_sound()
}

#[test]
fn usage_is_that_of_the_sessions_owner_and_source() -> Result<()> {
    let probe = Probe::new()?;
    let chat = probe.chat("s")?;
    probe.append("s", &answer("a", "small", 1))?;
    chat.add_usage(None, &Usage { output: 20, ..Usage::default() })?;
    let by = |group| sums(&probe, &all(), group);
    is(&by(UsageGroup::Model)?, &[("", 1, 20), ("small", 1, 1)]);
    let text = |text: &str| Some(text.to_owned());
    for (owner, source, model) in [("ann", "mail", "large"), ("bob", "telegram", "huge")] {
        let (source_text, model) = (text(source), text(model));
        chat.set_details(&SessionDetails { source: source_text, model, ..owned_by(owner) })?;
        is(&by(UsageGroup::Owner)?, &[(owner, 2, 21)]);
        is(&by(UsageGroup::Source)?, &[(source, 2, 21)]);
        // An answer that names no model is one of the first model that the session has.
        is(&by(UsageGroup::Model)?, &[("large", 1, 20), ("small", 1, 1)]);
    }
    probe.store.remove(&"s".into())?;
    is(&by(UsageGroup::Owner)?, &[("bob", 2, 21)]);
    is(&by(UsageGroup::Source)?, &[("telegram", 2, 21)]);
    probe.is_sound()
}

#[test]
fn the_usage_of_removed_messages_stays_in_the_totals() -> Result<()> {
    let probe = Probe::new()?;
    probe.create_as(&"s".into(), &owned_by("ann"))?;
    for (id, output) in [("a", 1), ("b", 20), ("c", 300)] {
        probe.append("s", &answer(id, "small", output))?;
    }
    let chat = probe.chat("s")?;
    assert_eq!(on_path(&chat)?, 321);
    assert_eq!(chat.at(&"b".into()).usage()?.output, 21);
    chat.delete([&"b".into()])?;
    assert_eq!((total(&probe)?, on_path(&chat)?), ((3, 321), 301));
    // A new message of the id is another one.
    probe.append("s", &answer("b", "small", 4_000))?;
    assert_eq!((total(&probe)?, on_path(&chat)?), ((4, 4_321), 4_301));
    chat.clear()?;
    assert_eq!((total(&probe)?, on_path(&chat)?), ((4, 4_321), 0));
    probe.store.change_session(&"s".into(), &SessionChange::Owner(Some("bob".to_owned())))?;
    is(&sums(&probe, &all(), UsageGroup::Owner)?, &[("bob", 4, 4_321)]);
    probe.store.change_session(&"s".into(), &SessionChange::Delete)?;
    assert_eq!(total(&probe)?, (4, 4_321));
    probe.store.remove(&"s".into())?;
    is(&sums(&probe, &all(), UsageGroup::Owner)?, &[("bob", 4, 4_321)]);
    is(&sums(&probe, &all(), UsageGroup::Session)?, &[("", 4, 4_321)]);
    // A new session of the id begins with nothing.
    probe.append("s", &answer("a", "small", 9))?;
    assert_eq!((probe.chat("s")?.usage()?.output, total(&probe)?), (9, (5, 4_330)));
    probe.is_sound()
}
