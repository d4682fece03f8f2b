//! The example `assistant` plays one turn per run and continues where the previous run stopped.

use crate::common::example::printed;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn the_assistant_continues_where_it_stopped() -> Outcome {
    let folder = tempfile::tempdir()?;
    let store = folder.path().join("assistant.db");
    let run = || printed("assistant", [&store]);
    let first = run()?;
    for expected in [
        "the model has called set_context",
        r#"tool      set_context "Written to \"memory\": 5% (10/200 tokens)""#,
        "the model has called load_context",
        "Give the number first.",
        "the model has called search_context",
        "In May we sold 120 kettles.",
        "the model has called unload_context",
        r#"tool      load_context "[unloaded; "#,
        "[reminder] memory has changed since the prompt was written",
        "assistant 120 kettles, Ada.",
    ] {
        assert!(first.contains(expected), "{expected:?} is missing in:\n{first}");
    }
    let (_, last) = first.rsplit_once("────").ok_or("no step was shown")?;
    assert!(!last.contains("Give the number first."), "{last}");
    assert!(last.contains("MEMORY (What you know of the user) [0% — 0/200 tokens]"), "{last}");

    let second = run()?;
    assert!(second.starts_with("Turn 2 of 3"), "{second}");
    assert!(second.contains("MEMORY (What you know of the user) [5% — 10/200 tokens]"), "{second}");
    assert!(second.contains("user      I'm Ada"), "{second}");
    assert!(second.contains(r#"did you mean \"report\"?"#), "{second}");
    let third = run()?;
    assert!(third.contains("history_search"), "{third}");
    assert!(run()?.starts_with("All turns have been played."));
    Ok(())
}
