//! The example `assistant` plays its turns, one a run, and goes on where the run before stopped.

use std::path::Path;
use std::process::Command;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Runs the example, which cargo builds with the tests.
fn run(store: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let test = std::env::current_exe()?;
    let built = test.parent().and_then(Path::parent).ok_or("tests are built somewhere else")?;
    let example = built.join("examples").join(format!("assistant{}", std::env::consts::EXE_SUFFIX));
    let output = Command::new(&example).arg(store).output();
    let output = output.map_err(|error| {
        format!("{}: {error}; build it by `cargo build --examples`", example.display())
    })?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn the_assistant_goes_on_where_it_stopped() -> Outcome {
    let folder = tempfile::tempdir()?;
    let store = folder.path().join("assistant.db");
    let first = run(&store)?;
    for said in [
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
        assert!(first.contains(said), "{said:?} is missing in:\n{first}");
    }
    let (_, last) = first.rsplit_once("────").ok_or("no step was shown")?;
    assert!(!last.contains("Give the number first."), "{last}");
    assert!(last.contains("MEMORY (What you know of the user) [0% — 0/200 tokens]"), "{last}");

    let second = run(&store)?;
    assert!(second.starts_with("Turn 2 of 3"), "{second}");
    assert!(second.contains("MEMORY (What you know of the user) [5% — 10/200 tokens]"), "{second}");
    assert!(second.contains("user      I'm Ada"), "{second}");
    assert!(second.contains(r#"did you mean \"report\"?"#), "{second}");
    let third = run(&store)?;
    assert!(third.contains("history_search"), "{third}");
    assert!(run(&store)?.starts_with("All turns are played."));
    Ok(())
}
