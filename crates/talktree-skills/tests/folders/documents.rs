//! Folders of documents and text files, as they are edited while a program runs.

use std::fs;
use std::path::Path;

use talktree::{Block, BoxError, Context, Error, Store};
use talktree_skills::{DocumentFolder, FolderChanges, TextFile};

type Outcome = Result<(), BoxError>;

fn context(store: &Store) -> talktree::Result<Context> {
    let builder = store.session_builder("files");
    let files = builder.block("knowledge", Block::knowledge().across_sessions()).open()?;
    Ok(files.context().clone())
}

fn keys(context: &Context) -> Result<Vec<String>, BoxError> {
    Ok(context.documents("knowledge")?.into_iter().map(|entry| entry.key).collect())
}

/// Returns what is left out as `name: why`.
fn left_out(changes: &FolderChanges) -> Vec<String> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut all: Vec<String> = changes
        .left_out
        .iter()
        .map(|notice| format!("{}: {}", name(&notice.path), notice.why))
        .collect();
    all.sort();
    all
}

#[test]
fn an_update_stores_what_changed_and_removes_what_is_gone() -> Outcome {
    let dir = tempfile::tempdir()?;
    let store = Store::open_in_memory()?;
    let context = context(&store)?;
    for (name, text) in
        [("a.md", "apples"), ("b.txt", "pears"), ("c.rs", "code"), (".hidden.md", "no")]
    {
        fs::write(dir.path().join(name), text)?;
    }
    fs::create_dir(dir.path().join("folder.md"))?;
    let folder = DocumentFolder::open(dir.path())?;
    assert_eq!(folder.update(&context, "knowledge")?.written, ["a.md", "b.txt"]);
    assert_eq!(folder.update(&context, "knowledge")?, FolderChanges::default());

    fs::write(dir.path().join("a.md"), "apples and plums")?;
    fs::remove_file(dir.path().join("b.txt"))?;
    let changes = folder.update(&context, "knowledge")?;
    assert_eq!(
        (changes.written, changes.removed),
        (vec!["a.md".to_owned()], vec!["b.txt".to_owned()])
    );
    assert_eq!(context.load("knowledge", "a.md")?.as_deref(), Some("apples and plums"));

    // A restart writes no version of what is the same.
    let again = DocumentFolder::open(dir.path())?;
    assert_eq!(again.update(&context, "knowledge")?, FolderChanges::default());
    assert_eq!(context.versions("knowledge", Some("a.md"))?.len(), 2);
    Ok(())
}

#[test]
fn a_document_that_someone_removed_comes_back_when_the_folder_changes() -> Outcome {
    let dir = tempfile::tempdir()?;
    let store = Store::open_in_memory()?;
    let context = context(&store)?;
    fs::write(dir.path().join("a.md"), "apples")?;
    let folder = DocumentFolder::open(dir.path())?;
    folder.update(&context, "knowledge")?;
    context.remove_document("knowledge", "a.md")?;
    context.set_document("knowledge", &talktree::Document::new("foreign", "x"))?;
    fs::write(dir.path().join("b.md"), "pears")?;
    let changes = folder.update(&context, "knowledge")?;
    assert_eq!((changes.written.len(), changes.removed), (2, vec!["foreign".to_owned()]));
    assert_eq!(keys(&context)?, ["a.md", "b.md"]);
    Ok(())
}

#[test]
fn a_bad_file_affects_no_other_one() -> Outcome {
    let dir = tempfile::tempdir()?;
    let store = Store::open_in_memory()?;
    let context = context(&store)?;
    fs::write(dir.path().join("a.md"), "apples")?;
    fs::write(dir.path().join("binary.md"), b"\xFF\xD8\xFF")?;
    fs::write(dir.path().join("large.txt"), vec![b'x'; (1 << 20) + 1])?;
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc/hostname", dir.path().join("out.md"))?;
        std::os::unix::fs::symlink("loop.md", dir.path().join("loop.md"))?;
        assert!(
            std::process::Command::new("mkfifo")
                .arg(dir.path().join("pipe.md"))
                .status()?
                .success()
        );
    }
    let folder = DocumentFolder::open(dir.path())?;
    let changes = folder.update(&context, "knowledge")?;
    assert_eq!(changes.written, ["a.md"]);
    let left_out = left_out(&changes);
    assert!(
        left_out.contains(&"binary.md: it is not a text in UTF-8, from byte 0 on".to_owned()),
        "{left_out:?}"
    );
    assert!(
        left_out.contains(&"large.txt: it has 1048577 bytes, over the limit of 1048576".to_owned())
    );
    if cfg!(unix) {
        assert!(
            left_out.contains(&"out.md: it leads out of the folder".to_owned()),
            "{left_out:?}"
        );
        assert!(left_out.iter().any(|line| line.starts_with("loop.md: it cannot be read")));
        assert_eq!(left_out.len(), 4); // the pipe is no document
    }
    // A file that becomes unreadable keeps its document.
    fs::write(dir.path().join("a.md"), b"\xFF\xFF")?;
    assert_eq!(folder.update(&context, "knowledge")?.removed, Vec::<String>::new());
    assert_eq!(context.load("knowledge", "a.md")?.as_deref(), Some("apples"));
    Ok(())
}

#[test]
fn a_folder_that_is_missing_is_an_error_that_names_it() -> Outcome {
    let dir = tempfile::tempdir()?;
    let missing = dir.path().join("missing");
    assert!(
        matches!(DocumentFolder::open(&missing), Err(Error::Io { path, .. }) if path == missing)
    );
    let store = Store::open_in_memory()?;
    let context = context(&store)?;
    fs::create_dir(&missing)?;
    fs::write(missing.join("a.md"), "apples")?;
    let folder = DocumentFolder::open(&missing)?;
    folder.update(&context, "knowledge")?;
    fs::rename(&missing, dir.path().join("elsewhere"))?;
    assert!(matches!(folder.update(&context, "knowledge"), Err(Error::Io { .. })));
    assert_eq!(keys(&context)?, ["a.md"]); // nothing is removed
    Ok(())
}

#[test]
fn a_text_file_is_shown_as_it_is_now() -> Outcome {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("soul.md");
    assert!(matches!(TextFile::open(&path), Err(Error::Io { .. })));
    fs::write(&path, "Be brief.")?;
    let store = Store::open_in_memory()?;
    let chat = store
        .session_builder("s")
        .block("soul", Block::read(TextFile::open(&path)?))
        .cached_prompt()
        .open()?;
    assert!(chat.prompt()?.contains("Be brief."));
    assert!(chat.drift()?.is_empty());
    fs::write(&path, "Be long.")?;
    assert_eq!(chat.drift()?.len(), 1);
    assert!(chat.refresh_prompt()?.contains("Be long."));
    // An editor writes a new file and renames it; for a moment there is none.
    fs::remove_file(&path)?;
    assert!(chat.drift()?.is_empty());
    fs::write(&path, b"\xFF")?;
    assert!(chat.refresh_prompt()?.contains("Be long."));
    fs::write(&path, "Be brief.")?;
    assert!(chat.refresh_prompt()?.contains("Be brief."));
    Ok(())
}
