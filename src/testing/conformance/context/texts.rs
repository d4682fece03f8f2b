//! Texts and their versions.

use super::Contexts;
use crate::error::{Error, Result};
use crate::id::MAX_ID_BYTES;
use crate::storage::context::{BlockScope, ContextStore, MAX_VERSIONS, NewEntry};

pub(super) fn empty(contexts: &Contexts) -> Result<()> {
    let (free, label) = (&contexts.free, contexts.label.as_str());
    for scope in [BlockScope::Session, BlockScope::Owner] {
        assert_eq!(free.labels(scope)?, []);
        assert_eq!(free.entry(scope, label, "")?, None);
        assert_eq!(free.documents(scope, label)?, []);
        assert_eq!(free.count(scope, label)?, 0);
        assert_eq!(free.versions(scope, label, "")?, []);
        assert_eq!(free.version(scope, label, "", 1)?, None);
        assert_eq!(free.search(scope, label, "word", 9)?.0, []);
    }
    assert_eq!((free.frozen()?, free.elisions()?), (None, Vec::new()));
    assert!(!free.remove(BlockScope::Session, label, "")?);
    free.set_frozen(None)?;
    free.write(&mut |_| Ok(()))?;
    assert_eq!(free.labels(BlockScope::Session)?, []);
    Ok(())
}

pub(super) fn round_trip(contexts: &Contexts) -> Result<()> {
    let (one, label) = (&contexts.one, contexts.label.as_str());
    for scope in BlockScope::ALL {
        for key in ["", "key"] {
            let content = format!("{scope:?} of {key:?}\0\n\u{202e}重");
            let new = NewEntry {
                title: Some("A title"),
                description: Some("What it is about"),
                ..NewEntry::new(key, &content)
            };
            one.put(scope, label, &[new], false)?;
            let entry = one.entry(scope, label, key)?;
            let entry = entry.unwrap_or_else(|| panic!("{scope:?} has no text of {key:?}"));
            assert_eq!((entry.key.as_str(), entry.version), (key, 1));
            assert_eq!(entry.content, content);
            assert_eq!(entry.title.as_deref(), Some("A title"));
            assert_eq!(entry.description.as_deref(), Some("What it is about"));

            let plain = NewEntry::new(key, "plain");
            one.put(scope, label, &[plain], false)?;
            let versions = one.versions(scope, label, key)?;
            assert_eq!(versions.len(), 2);
            assert_eq!(versions[0].title.as_deref(), Some("A title"));
            assert_eq!((&versions[1].title, &versions[1].description), (&None, &None));
            for version in &versions {
                assert_eq!(
                    one.version(scope, label, key, version.version)?.as_ref(),
                    Some(version),
                    "one version is read as in the list of all"
                );
            }
            for unknown in [0, 3, u64::MAX] {
                assert_eq!(one.version(scope, label, key, unknown)?, None);
            }
        }
    }
    Ok(())
}

pub(super) fn unchanged(contexts: &Contexts) -> Result<()> {
    let (one, label, scope) = (&contexts.one, contexts.label.as_str(), BlockScope::Session);
    let new = NewEntry { title: Some("t"), ..NewEntry::new("k", "fox") };
    for is_searchable in [true, true, false] {
        one.put(scope, label, &[new], is_searchable)?;
        assert_eq!(one.versions(scope, label, "k")?.len(), 1);
        let found = one.search(scope, label, "fox", 9)?.0.len();
        assert_eq!(found, usize::from(is_searchable), "the last put says what is searchable");
    }
    for changed in [NewEntry { title: None, ..new }, NewEntry { description: Some("d"), ..new }] {
        let before = one.versions(scope, label, "k")?.len();
        one.put(scope, label, &[changed], true)?;
        assert_eq!(one.versions(scope, label, "k")?.len(), before + 1);
    }
    one.put(scope, label, &[], true)?;
    Ok(())
}

pub(super) fn one_write(contexts: &Contexts) -> Result<()> {
    let (one, label) = (&contexts.one, contexts.label.as_str());
    let refused = || Error::Unsupported { what: "this" };
    for scope in BlockScope::ALL {
        one.write(&mut |texts| {
            assert_eq!(texts.entry(scope, label, "a")?, None);
            texts.put(scope, label, &NewEntry::new("a", "1"), false)?;
            let entry = texts.entry(scope, label, "a")?;
            assert_eq!(entry.map(|entry| entry.content).as_deref(), Some("1"), "it sees its puts");
            texts.put(scope, label, &NewEntry::new("b", "1"), false)?;
            texts.put(scope, label, &NewEntry::new("a", "2"), false)?;
            assert_eq!((texts.count(scope, label)?, texts.documents(scope, label)?.len()), (2, 2));
            assert_eq!(texts.versions(scope, label, "a")?.len(), 2);
            let first = texts.version(scope, label, "a", 1)?;
            assert_eq!(first.and_then(|version| version.content).as_deref(), Some("1"));
            Ok(())
        })?;
        let frozen = one.frozen()?;
        let failed = one.write(&mut |texts| {
            texts.set_frozen(Some(&[]))?;
            texts.put(scope, label, &NewEntry::new("a", "3"), false)?;
            texts.put(scope, label, &NewEntry::new("c", "3"), false)?;
            assert!(texts.remove(scope, label, "b")?);
            assert_eq!(texts.entry(scope, label, "b")?, None);
            Err(refused())
        });
        assert!(matches!(failed, Err(Error::Unsupported { .. })), "{failed:?}");
        let [a, b, c] = ["a", "b", "c"].map(|key| contexts.read(&**one, scope, key));
        assert_eq!((a?.as_str(), b?.as_str(), c?.as_str()), ("2", "1", ""), "all or none");
        assert_eq!(one.frozen()?, frozen, "the prompt, too");
    }
    Ok(())
}

pub(super) fn removed(contexts: &Contexts) -> Result<()> {
    let (one, label) = (&contexts.one, contexts.label.as_str());
    for scope in BlockScope::ALL {
        contexts.put(scope, &[("k", "red fox"), ("other", "fox")])?;
        assert!(one.remove(scope, label, "k")?);
        assert!(!one.remove(scope, label, "k")?);
        assert!(!one.remove(scope, label, "unknown")?);
        assert!(!one.remove(scope, &format!("{label}, unknown"), "k")?);
        assert_eq!(one.entry(scope, label, "k")?, None);
        assert_eq!((one.count(scope, label)?, one.search(scope, label, "red", 9)?.0.len()), (1, 0));
        assert_eq!(contexts.versions(scope, "k")?, [Some("red fox".to_owned()), None]);
        contexts.put(scope, &[("k", "red fox")])?;
        assert_eq!(one.entry(scope, label, "k")?.map(|entry| entry.version), Some(3));
        assert!(one.remove(scope, label, "k")? && one.remove(scope, label, "other")?);
        let labels = one.labels(scope)?;
        assert!(labels.iter().all(|found| found.label != label), "it has no text");
    }
    Ok(())
}

pub(super) fn many_versions(contexts: &Contexts) -> Result<()> {
    let last = MAX_VERSIONS + 3;
    for number in 1..=last {
        let content = number.to_string();
        let new = [NewEntry::new("", &content)];
        contexts.one.put(BlockScope::Session, &contexts.label, &new, false)?;
    }
    let versions = contexts.one.versions(BlockScope::Session, &contexts.label, "")?;
    assert!(versions.len() as u64 >= MAX_VERSIONS, "{} versions", versions.len());
    for (version, number) in versions.iter().rev().zip((1..=last).rev()) {
        assert_eq!(
            (version.version, version.content.as_deref()),
            (number, Some(&*number.to_string()))
        );
    }
    Ok(())
}

pub(super) fn labels(contexts: &Contexts) -> Result<()> {
    let one = &contexts.one;
    let label = |name: &str| format!("{}, {name}", contexts.label);
    for scope in BlockScope::ALL {
        let put = |name: &str, key: &str, is_searchable: bool| {
            one.put(scope, &label(name), &[NewEntry::new(key, "text")], is_searchable)
        };
        put("skills", "k", false)?;
        put("_both", "k", true)?;
        put("_both", "", false)?;
        put("Text", "", false)?;
        put("knowledge", "k", true)?;
        put("gone", "k", true)?;
        one.remove(scope, &label("gone"), "k")?;
        let mut found = one.labels(scope)?;
        found.retain(|found| found.label.starts_with(&contexts.label));
        let names: Vec<_> = found.iter().map(|found| found.label.clone()).collect();
        assert_eq!(names, ["Text", "_both", "knowledge", "skills"].map(label));
        let has: Vec<_> = found
            .iter()
            .map(|found| [found.has_text, found.has_documents, found.is_searchable])
            .collect();
        let expected =
            [[true, false, false], [true, true, true], [false, true, true], [false, true, false]];
        assert_eq!(has, expected);
    }
    Ok(())
}

pub(super) fn documents(contexts: &Contexts) -> Result<()> {
    let (one, label) = (&contexts.one, contexts.label.as_str());
    for scope in BlockScope::ALL {
        contexts.put(scope, &[("b", "2"), ("", "own"), ("a", "1"), ("Z", "3"), ("重", "4")])?;
        contexts.put(scope, &[("b", "5")])?;
        let documents = one.documents(scope, label)?;
        let keys: Vec<_> =
            documents.iter().map(|found| (found.key.as_str(), found.version)).collect();
        assert_eq!(keys, [("Z", 1), ("a", 1), ("b", 2), ("重", 1)]);
        assert_eq!(one.count(scope, label)?, 4);
    }
    Ok(())
}

pub(super) fn names(contexts: &Contexts) -> Result<()> {
    let (one, scope) = (&contexts.one, BlockScope::Session);
    let odd = "\0\n\u{1b}[31m\u{202e}'; --重";
    one.put(scope, odd, &[NewEntry::new(odd, odd)], true)?;
    assert_eq!(one.entry(scope, odd, odd)?.map(|entry| entry.content).as_deref(), Some(odd));
    let [fits, long, huge] =
        [MAX_ID_BYTES, MAX_ID_BYTES + 1, 1 << 20].map(|length| "x".repeat(length));
    one.put(scope, &fits, &[NewEntry::new(&fits, "text")], false)?;
    for (label, key) in [("", "k"), (&long, "k"), (&huge, "k"), (odd, &long), (odd, &huge)] {
        let entries = [NewEntry::new("fine", "text"), NewEntry::new(key, "text")];
        for answer in
            [one.put(scope, label, &entries, false).map(drop), one.check(label, &entries[1])]
        {
            assert!(matches!(answer, Err(Error::InvalidValue { .. })), "{answer:?}");
        }
        assert_eq!(one.entry(scope, label, "fine")?, None, "all or none");
        assert_eq!(one.entry(scope, label, key)?, None);
    }
    Ok(())
}

pub(super) fn threads(contexts: &Contexts) -> Result<()> {
    const EACH: u64 = 20;
    let (one, two, label) = (&contexts.one, &contexts.two, contexts.label.as_str());
    let count = |context: &dyn ContextStore| -> Result<()> {
        for _ in 0..EACH {
            context.write(&mut |texts| {
                let was = texts.entry(BlockScope::Owner, label, "")?;
                let count = was.and_then(|entry| entry.content.parse::<u64>().ok()).unwrap_or(0);
                let content = (count + 1).to_string();
                texts.put(BlockScope::Owner, label, &NewEntry::new("", &content), false)
            })?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            [one, two, one, two].map(|context| scope.spawn(move || count(&**context))).into();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(answer) => answer,
            Err(_) => panic!("a thread panicked"),
        })
    })?;
    let last = one.entry(BlockScope::Owner, label, "")?;
    let last = last.map(|entry| (entry.content, entry.version));
    assert_eq!(last, Some(((4 * EACH).to_string(), 4 * EACH)));
    Ok(())
}
