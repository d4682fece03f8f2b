//! The numbers of tokens in imported answers are read as those of a provider's response.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use talktree::{Message, Result, SessionDetails, Store, Usage};
use talktree_import::export::export_jsonl;
use talktree_import::{ImportOptions, import_reader};

/// Returns a store with the sessions of a fixture.
fn imported(file: &str) -> Result<Store> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(file);
    let store = Store::open_in_memory()?;
    let reader = BufReader::new(File::open(path).unwrap());
    import_reader(&store, file, reader, &ImportOptions::default(), |_| {})?;
    Ok(store)
}

/// Returns the usage of all answers in a fixture.
fn usage(file: &str) -> Result<Vec<Usage>> {
    let store = imported(file)?;
    let mut found = Vec::new();
    for session in store.sessions()? {
        let messages = store.session(session.id)?.all_messages();
        for message in messages.collect::<Result<Vec<Message>>>()? {
            found.extend(Usage::of(&message));
        }
    }
    Ok(found)
}

#[test]
fn claude_code_and_pi_keep_the_usage_of_their_answers() -> Result<()> {
    let of = |model: &str, input, output| Usage {
        model: Some(model.to_owned()),
        input,
        output,
        ..Usage::default()
    };
    assert_eq!(usage("claude_code.jsonl")?, [of("claude-x", 9, 4)]);
    assert_eq!(usage("pi_v3.jsonl")?, [of("m-1", 1, 0)]);
    Ok(())
}

/// The source was set after the messages, and the ledger had none.
#[test]
fn the_usage_of_an_import_is_that_of_its_source() -> Result<()> {
    for (file, source) in [("pi_v3.jsonl", "pi"), ("claude_code.jsonl", "claude-code")] {
        let store = imported(file)?;
        let answers = |store: &Store, source: &str| -> Result<u64> {
            Ok(store.usage().source(source).total()?.answers)
        };
        assert_eq!(answers(&store, source)?, 1, "{file}");
        let mut text = Vec::new();
        export_jsonl(&store, &mut text)?;
        let copy = Store::open_in_memory()?;
        let options = ImportOptions::default();
        import_reader(&copy, "copy", std::io::Cursor::new(text), &options, |_| {})?;
        assert_eq!(answers(&copy, source)?, 1, "{file}");

        let id = store.sessions()?.remove(0).id;
        let details = SessionDetails { source: Some("archive".to_owned()), ..Default::default() };
        store.session(&id)?.set_details(&details)?;
        assert_eq!((answers(&store, source)?, answers(&store, "archive")?), (0, 1), "{file}");
        store.remove(&id)?;
        assert_eq!(answers(&store, "archive")?, 1, "{file}");
    }
    Ok(())
}
