//! The content of a message: it is read back unchanged, and can be updated.

use super::probe::{Probe, ids, message, read};
use crate::error::{Error, Result};
use crate::message::{Json, Message, Part};
use crate::view::{ExpectedHead, Parent};

pub(super) fn round_trip(probe: &Probe) -> Result<()> {
    let call = serde_json::json!({"city": "Jena", "n": 1.5, "deep": [[[null, true]]]});
    let other = r#"{"type": "data-x", "mark": "\ud800", "n": 123456789012345678901234567890}"#;
    let other = serde_json::from_str::<Part>(other)
        .map_err(|source| Error::Json { what: "a part", source })?;
    let mut rich = Message::new("critic", vec![Part::text("It's \"so\" \0 \u{1F600}\n")])
        .with_id("quote ' and \0 and \u{1F600}")
        .with_part(Part::reasoning("hm"))
        .with_part(Part::tool_call("weather", "call-1", call.clone()))
        .with_part(Part::tool_result("weather", "call-1", call))
        .with_part(Part::file("image/png", "data:,"))
        .with_part(other)
        .with_metadata(serde_json::json!({"a": null}))
        .at(crate::message::now() - chrono::TimeDelta::days(400));
    rich.extra.insert("further".to_owned(), Json::from(serde_json::json!([1, "x"])));
    let blank = Message::new("user", Vec::new()).with_id("blank");
    let answers =
        probe.provider.append(&Parent::Head, &ExpectedHead::Any, &[rich.clone(), blank.clone()])?;
    assert!(answers.iter().all(|answer| answer.is_new && !answer.differs));
    let blank = Message { parent: Some(rich.id.clone()), ..blank };
    assert_eq!(probe.provider.raw_history(None)?, [rich.clone(), blank.clone()]);
    assert_eq!(probe.provider.history(None)?, [rich.clone(), blank]);
    assert_eq!(probe.provider.message(&rich.id)?, Some(rich));
    Ok(())
}

pub(super) fn updates(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    probe.draw("a- ba cb")?;
    let before = read(probe, "b")?;
    let mut changed =
        Message::assistant("changed").with_id("b").with_metadata(serde_json::json!(true));
    changed.is_hidden = true;
    let updated = provider.update(&changed)?;
    assert!(updated.is_changed && updated.covered_by.is_empty());
    let after = read(probe, "b")?;
    assert_eq!((after.text(), after.role.as_str()), ("changed".into(), "assistant"));
    assert_eq!(after.metadata, changed.metadata);
    assert!(!after.is_hidden, "an update leaves the hidden flag as it is");
    assert_eq!((after.parent, after.created_at), (before.parent, before.created_at));
    assert!(!provider.update(&changed)?.is_changed);
    probe.compact("s", "a", "b")?;
    assert_eq!(ids(&provider.update(&message("b"))?.covered_by), "s");
    assert_eq!(probe.head()?, "a b c");
    Ok(())
}
