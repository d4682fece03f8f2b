//! The numbers of tokens in imported answers are read as those of a provider's response.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use talktree::{Message, Result, Store, Usage};
use talktree_import::{ImportOptions, import_reader};

/// Imports a fixture and returns the usage of all its answers.
fn usage(file: &str) -> Result<Vec<Usage>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(file);
    let store = Store::open_in_memory()?;
    let reader = BufReader::new(File::open(path).unwrap());
    import_reader(&store, file, reader, &ImportOptions::default(), |_| {})?;
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
