//! Folders of skills as people keep them: with files that cannot be read, that are no text, or that are no skills.
//!
//! A loop of links, a file without permission or a folder in place of a file made the whole prompt and every skill fail,
//! and the model was told where on the host they are. A pipe that came between the look and the opening was waited for.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use talktree::{Block, BoxError, Error, ReadProvider, SkillProvider, Store};
use talktree_skills::{FileNotice, SkillFolder};

type Outcome = Result<(), BoxError>;

/// A folder of these files, inside a folder with files that must not be read.
fn folder(files: &[(&str, &str)]) -> Result<(tempfile::TempDir, PathBuf), BoxError> {
    let outer = tempfile::tempdir()?;
    fs::write(outer.path().join("secret.md"), "secret")?;
    fs::write(outer.path().join("SKILL.md"), "secret")?;
    // The system's temporary folder may be behind a link.
    let skills = outer.path().canonicalize()?.join("skills");
    fs::create_dir(&skills)?;
    for (path, text) in files {
        let path = skills.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok((outer, skills))
}

/// Returns the notices of a folder as `name: why`, in order.
fn notices(skills: &SkillFolder) -> Result<Vec<String>, BoxError> {
    let mut notices = skills.notices()?;
    notices.sort();
    let told = |notice: &FileNotice| {
        let name = notice.path.file_name().unwrap_or_default().to_string_lossy();
        let kind = if notice.is_left_out { "" } else { "(listed) " };
        format!("{name}: {kind}{}", notice.why)
    };
    Ok(notices.iter().map(told).collect())
}

#[test]
fn a_folder_lists_its_skills_by_key_and_description() -> Outcome {
    let (_outer, path) = folder(&[
        ("pdf/SKILL.md", "---\nname: pdf\ndescription: >\n  Reads\n  PDFs\n---\n# PDF\n"),
        ("plain.md", "intro\n\n## How to *brew*\ntext"),
        ("line.md", "\n  just one line\nand another"),
        ("empty.md", ""),
        ("both/SKILL.md", "the folder"),
        ("notes.txt", "no skill"),
        ("no-skill/README.md", "no skill"),
        (".hidden.md", "no skill"),
        (".git/SKILL.md", "no skill"),
    ])?;
    let skills = SkillFolder::open(&path)?;
    let list = "- both: the folder\n- empty\n- line: just one line\n- pdf: Reads PDFs\n- plain: How to *brew*";
    assert_eq!(skills.get()?, list);
    assert_eq!(skills.load("pdf")?.as_deref(), Some("# PDF\n"));
    assert_eq!(skills.load("both")?.as_deref(), Some("the folder"));
    assert_eq!(skills.load("plain")?.as_deref(), Some("intro\n\n## How to *brew*\ntext"));
    assert_eq!(skills.load("nobody")?, None);
    assert_eq!(skills.load("no-skill")?, None);
    assert!(!SkillProvider::is_writable(&skills));
    assert!(skills.notices()?.is_empty());
    Ok(())
}

#[test]
fn what_is_edited_is_seen_at_the_next_reading() -> Outcome {
    let (_outer, path) = folder(&[("a.md", "one")])?;
    let skills = SkillFolder::open(&path)?;
    assert_eq!(skills.get()?, "- a: one");
    fs::write(path.join("a.md"), "two")?;
    fs::write(path.join("b.md"), "three")?;
    assert_eq!(skills.get()?, "- a: two\n- b: three");
    fs::remove_dir_all(&path)?;
    assert!(skills.get().unwrap_err().to_string().contains("skills: "));
    assert!(skills.load("a").is_err());
    Ok(())
}

/// A link to itself failed the prompt of the session and the loading of every skill, and the model was told its path.
#[cfg(unix)]
#[test]
fn one_unreadable_file_leaves_the_prompt_and_the_other_skills() -> Outcome {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let (_outer, path) = folder(&[("a.md", "one"), ("closed.md", "two"), ("shut/SKILL.md", "x")])?;
    symlink("loop.md", path.join("loop.md"))?;
    symlink("circle", path.join("circle"))?;
    symlink("nowhere", path.join("broken.md"))?;
    fs::create_dir(path.join("turn"))?;
    symlink("SKILL.md", path.join("turn/SKILL.md"))?;
    for closed in ["closed.md", "shut"] {
        fs::set_permissions(path.join(closed), fs::Permissions::from_mode(0o000))?;
    }
    // A superuser reads it all the same.
    let is_super = fs::read(path.join("closed.md")).is_ok();

    let store = Store::open_in_memory()?;
    let skills = SkillFolder::open(&path)?;
    let chat = store.session_builder("s").block("skills", Block::skills(skills)).open()?;
    let prompt = chat.prompt();
    let load = |key| chat.tools().call("load_context", json!({"label": "skills", "key": key}));
    let loaded = load("a");
    let refused: Vec<_> = ["loop", "turn"].into_iter().map(load).collect();
    fs::set_permissions(path.join("shut"), fs::Permissions::from_mode(0o700))?;

    let list = if is_super { "\n- a: one\n- closed: two\n- shut: x" } else { "\n- a: one" };
    let prompt = prompt?;
    assert!(prompt.ends_with(list), "{prompt}");
    assert_eq!(loaded?, "one");
    for answer in refused {
        let answer = answer?;
        assert!(answer.starts_with("Error: ") && answer.contains("cannot be read"), "{answer}");
        assert!(!answer.contains(&path.display().to_string()), "a path of the host: {answer}");
    }
    Ok(())
}

#[cfg(unix)]
#[test]
fn the_handler_gets_each_notice_once_with_its_path() -> Outcome {
    use std::os::unix::fs::symlink;

    let (_outer, path) = folder(&[("a.md", "one")])?;
    symlink("loop.md", path.join("loop.md"))?;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&heard);
    let skills = SkillFolder::open(&path)?.on_notice(move |notice| {
        told.lock().unwrap_or_else(PoisonError::into_inner).push(notice.to_string());
        panic!("a handler that panics");
    });
    let hear = || std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
    for _ in 0..3 {
        assert_eq!(skills.get()?, "- a: one");
        assert!(skills.load("loop").is_err());
    }
    let notice = hear();
    let begin = format!("{}: left out: it cannot be read: ", path.join("loop.md").display());
    assert!(matches!(&notice[..], [one] if one.starts_with(&begin)), "{notice:?}");

    fs::remove_file(path.join("loop.md"))?;
    skills.get()?;
    assert!(hear().is_empty());
    symlink("loop.md", path.join("loop.md"))?;
    assert!(skills.load("loop").is_err());
    assert_eq!(hear(), notice, "it holds again");
    Ok(())
}

#[test]
fn each_odd_file_has_a_notice_and_harms_no_other() -> Outcome {
    let (_outer, path) = folder(&[
        ("good.md", "\u{FEFF}---\r\ndescription: Good\r\n---\r\nBody\r\n---\r\nmore"),
        ("both.md", "the file"),
        ("both/SKILL.md", "the folder"),
        ("Case.md", "upper"),
        ("case.md", "lower"),
        ("group/pdf/SKILL.md", "nested"),
        ("lower/skill.md", "its name is in lower case"),
        ("LOUD.MD", "another ending"),
        ("long.markdown", "another ending"),
        ("list.md", "---\ndescription:\n- a\n- b\nname: x\n---\n# Title"),
        ("open.md", "---\nname: x\nno end"),
        ("rules.md", "---\nbetween two rules\n---\nand below"),
        ("late.md", "\n---\ndescription: Late\n---\nBody"),
    ])?;
    fs::write(path.join("binary.md"), b"\x7FELF\0\0\x01")?;
    fs::write(path.join("latin.md"), b"caf\xE9")?;
    fs::write(path.join("wide.md"), b"\xFF\xFEa\0")?;
    fs::write(path.join("huge.md"), "x".repeat((1 << 20) + 1))?;
    // The limit of what is read for a description is inside a character.
    fs::write(path.join("cut.md"), format!("{}é", "x".repeat((64 << 10) - 1)))?;
    fs::create_dir(path.join("folder.md"))?;
    let skills = SkillFolder::open(&path)?;
    let list = skills.get()?;
    let keys: Vec<_> = list.lines().map(|line| line.split(": ").next().unwrap_or(line)).collect();
    let expected =
        ["- Case", "- both", "- case", "- cut", "- good", "- late", "- list", "- open", "- rules"];
    assert_eq!(keys, expected);
    for line in ["- both: the folder", "- good: Good", "- late: Late", "- list: Title"] {
        assert!(list.lines().any(|other| other == line), "{line} in\n{list}");
    }
    assert_eq!(skills.load("good")?.as_deref(), Some("Body\r\n---\r\nmore"));
    assert_eq!(skills.load("late")?.as_deref(), Some("Body"));
    assert_eq!(skills.load("open")?.as_deref(), Some("---\nname: x\nno end"));
    assert_eq!(skills.load("rules")?.as_deref(), Some("---\nbetween two rules\n---\nand below"));
    let expected = [
        "LOUD.MD: only files whose names end in .md are skills",
        "binary.md: it is not a text",
        "both.md: both/SKILL.md is the document of this key",
        "case.md: (listed) its key differs from \"Case\" by case alone; a model may confuse them",
        "pdf: folders in folders are not read; move it one folder up",
        "huge.md: it has 1048577 bytes, over the limit of 1048576",
        "latin.md: it is not a text in UTF-8, from byte 3 on",
        "list.md: (listed) the description in its front matter is not one text; its first heading is shown",
        "long.markdown: only files whose names end in .md are skills",
        "skill.md: the document of a skill is named SKILL.md",
        "open.md: (listed) its front matter has no end, a line of ---; it is shown as part of the document",
        "wide.md: it is text in UTF-16; only UTF-8 is read",
    ];
    assert_eq!(notices(&skills)?, expected);
    for (key, why) in [
        ("binary", "skill \"binary\" cannot be loaded: it is not a text"),
        ("latin", "skill \"latin\" cannot be loaded: it is not a text in UTF-8, from byte 3 on"),
        (
            "huge",
            "skill \"huge\" cannot be loaded: it has 1048577 bytes, over the limit of 1048576",
        ),
    ] {
        assert_eq!(skills.load(key).unwrap_err().to_string(), why);
    }
    // Nothing is said of what nobody asks for.
    let few = skills.allow(["good", "binary", "missing"]);
    assert_eq!(few.get()?, "- good: Good");
    let expected =
        ["binary.md: it is not a text", "missing: it is allowed, but there is no such skill"];
    assert_eq!(notices(&few)?, expected);
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_cannot_be_keys_are_left_out() -> Outcome {
    use std::os::unix::ffi::OsStrExt;

    let (_outer, path) = folder(&[("a.md", "one"), ("two\nlines.md", "x"), ("c:d.md", "x")])?;
    fs::write(path.join(std::ffi::OsStr::from_bytes(b"caf\xE9.md")), "x")?;
    let skills = SkillFolder::open(&path)?;
    assert_eq!(skills.get()?, "- a: one");
    let expected = [
        "c:d.md: its name cannot be a key: it has a ':'; a key is the name of a skill, no path",
        "caf\u{FFFD}.md: its name is not Unicode",
        "two\nlines.md: its name cannot be a key: it has a line break or a control character",
    ];
    assert_eq!(notices(&skills)?, expected);
    Ok(())
}

#[test]
fn no_key_leaves_the_folder() -> Outcome {
    let (_outer, path) = folder(&[("a.md", "one"), ("in/b.md", "two")])?;
    let skills = SkillFolder::open(&path)?;
    let keys = [
        "",
        " ",
        ".",
        "..",
        "../secret",
        "..\\secret",
        "/etc/passwd",
        "C:secret",
        "C:\\secret",
        "in/b",
        "a\0",
        "a\n",
        ".hidden",
        "a.md::$DATA",
        &"k".repeat(256),
        "%2e%2e/secret",
    ];
    for key in keys {
        let error = skills.load(key).unwrap_err();
        let error = error.downcast_ref::<Error>();
        assert!(
            matches!(error, Some(Error::InvalidValue { what: "skill key", .. })),
            "{key:?}: {error:?}"
        );
    }
    assert_eq!(skills.load("%2e%2e")?, None);
    let error = skills.load("../secret").unwrap_err().to_string();
    let text = "skill key \"../secret\" cannot be used: it begins with a full stop";
    assert_eq!(error, text);
    let error = skills.load("in/b").unwrap_err().to_string();
    assert!(error.ends_with("it has a '/'; a key is the name of a skill, no path"), "{error}");
    Ok(())
}

#[test]
fn no_key_of_a_model_leaves_the_folder() -> Outcome {
    let (outer, path) = folder(&[("pdf.md", "Use pdftotext.")])?;
    fs::write(outer.path().join("secret.md"), "hidden")?;
    let store = Store::open_in_memory()?;
    let builder = store.session_builder("s").block("memory", Block::stored());
    let chat = builder.block("skills", Block::skills(SkillFolder::open(&path)?)).open()?;
    chat.context().set("memory", "Likes tea.")?;
    let absolute = outer.path().join("secret").display().to_string();
    let keys = [
        "../secret",
        "..\\secret",
        "./../secret",
        "skills/../../secret",
        "..",
        ".",
        "/etc/passwd",
        &absolute,
        "C:secret",
        "pdf\0",
        "../secret\0",
        "\0",
        "pdf.md/../../secret",
        &"x".repeat(100_000),
    ];
    for key in keys {
        let error = chat.context().load("skills", key).unwrap_err();
        assert!(matches!(error, Error::Provider { .. }), "{key:?}: {error}");
        assert!(error.to_string().contains("skill key"), "{key:?}: {error}");
        for tool in ["load_context", "unload_context"] {
            let answer = chat.tools().call(tool, json!({"label": "skills", "key": key}))?;
            assert!(answer.starts_with("Error: ") && !answer.contains("hidden"), "{answer}");
        }
    }
    assert_eq!(chat.context().load("skills", "secret")?, None);
    assert_eq!(chat.context().load("skills", "pdf")?.as_deref(), Some("Use pdftotext."));

    // The folder is removed: its block is an error, the others still work.
    let missing = SkillFolder::open(outer.path().join("missing")).unwrap_err();
    assert!(matches!(missing, Error::Io { .. }) && missing.to_string().contains("missing"));
    fs::remove_dir_all(&path)?;
    for answer in [chat.block("skills").map(drop), chat.context().load("skills", "pdf").map(drop)] {
        let error = answer.unwrap_err();
        assert!(matches!(error, Error::Provider { .. }), "{error}");
        assert!(error.to_string().contains("skills"), "{error}");
    }
    let answer = chat.tools().call("load_context", json!({"label": "skills", "key": "pdf"}))?;
    assert!(answer.starts_with("Error: the provider of context block \"skills\" "), "{answer}");
    assert_eq!(chat.block("memory")?.unwrap_or_default().content, "Likes tea.");
    fs::create_dir(&path)?;
    assert_eq!(chat.block("skills")?.unwrap_or_default().content, "");
    Ok(())
}

#[cfg(unix)]
#[test]
fn no_link_leaves_the_folder() -> Outcome {
    use std::os::unix::fs::symlink;

    let (outer, path) = folder(&[("a.md", "one"), ("real/SKILL.md", "two")])?;
    symlink(path.join("a.md"), path.join("inside.md"))?;
    symlink("real", path.join("folder"))?;
    let skills = SkillFolder::open(&path)?;
    assert_eq!(skills.get()?, "- a: one\n- folder: two\n- inside: one\n- real: two");

    symlink("../secret.md", path.join("file.md"))?;
    symlink(outer.path(), path.join("up"))?;
    fs::create_dir(path.join("dir"))?;
    symlink("../../secret.md", path.join("dir/SKILL.md"))?;
    for key in ["file", "up", "dir"] {
        let error = skills.load(key).unwrap_err().to_string();
        assert!(error.ends_with("it leads out of the folder"), "{error}");
    }
    assert_eq!(skills.get()?, "- a: one\n- folder: two\n- inside: one\n- real: two");
    assert_eq!(skills.notices()?.len(), 3);
    assert_eq!(skills.allow(["a", "real"]).get()?, "- a: one\n- real: two");

    // The folder itself may be reached by a link.
    let link = outer.path().join("link");
    symlink(&path, &link)?;
    assert_eq!(SkillFolder::open(&link)?.load("a")?.as_deref(), Some("one"));
    Ok(())
}

/// Swaps a file of the folder for something else and back while it is read, for a second. Returns all texts that were read.
#[cfg(unix)]
fn texts_while_swapped(
    make: impl Fn(&std::path::Path, &std::path::Path) -> io::Result<()> + Sync,
) -> Result<BTreeSet<String>, BoxError> {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    let (outer, path) = folder(&[("a.md", "one")])?;
    let (file, other) = (outer.path().join("file"), outer.path().join("other"));
    let (skills, is_done) = (SkillFolder::open(&path)?, AtomicBool::new(false));
    std::thread::scope(|scope| {
        let swapping = scope.spawn(|| -> io::Result<()> {
            while !is_done.load(Ordering::Relaxed) {
                make(outer.path(), &other)?;
                fs::rename(&other, path.join("a.md"))?;
                fs::write(&file, "one")?;
                fs::rename(&file, path.join("a.md"))?;
            }
            Ok(())
        });
        let end = Instant::now() + Duration::from_secs(1);
        let mut texts = BTreeSet::new();
        while Instant::now() < end {
            texts.extend(skills.load("a").ok().flatten());
        }
        // Before anything is judged: a panic would wait for the other thread.
        is_done.store(true, Ordering::Relaxed);
        swapping.join().map_err(|_| "the other thread panicked")??;
        Ok(texts)
    })
}

/// Between looking where a document truly lies and opening it, a link was put in its place, and followed.
#[cfg(unix)]
#[test]
fn no_link_that_comes_while_a_document_is_opened_leaves_the_folder() -> Outcome {
    let texts = texts_while_swapped(|outer, path| {
        std::os::unix::fs::symlink(outer.join("secret.md"), path)
    })?;
    assert_eq!(texts, BTreeSet::from(["one".to_owned()]));
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_document() -> Outcome {
    let (outer, path) = folder(&[("a.md", "one")])?;
    let pipe = outer.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status()?.success());
    fs::hard_link(&pipe, path.join("pipe.md"))?;
    let skills = SkillFolder::open(&path)?;
    assert_eq!(skills.get()?, "- a: one");
    assert_eq!(notices(&skills)?, ["pipe.md: it is not a file"]);
    Ok(())
}

#[test]
fn only_what_is_allowed_is_there() -> Outcome {
    let (_outer, path) = folder(&[("a.md", "one"), ("b.md", "two")])?;
    let skills = SkillFolder::open(&path)?.allow(["b", "missing"]);
    assert_eq!(skills.get()?, "- b: two");
    assert_eq!(skills.load("a")?, None);
    assert_eq!(SkillFolder::open(&path)?.allow([""; 0]).get()?, "");
    Ok(())
}

#[test]
fn a_missing_folder_is_a_clear_error() -> Outcome {
    let (_outer, path) = folder(&[("a.md", "one")])?;
    for missing in ["missing", "a.md"] {
        let error = SkillFolder::open(path.join(missing)).unwrap_err();
        assert!(error.to_string().contains(&format!("{missing}: ")), "{error}");
    }
    Ok(())
}

#[test]
fn a_description_is_short_whatever_the_document_is() -> Outcome {
    let (_outer, path) = folder(&[])?;
    fs::write(path.join("a.md"), "x".repeat(1 << 20))?;
    let skills = SkillFolder::open(&path)?;
    assert_eq!(skills.load("a")?.map(|text| text.len()), Some(1 << 20));
    assert_eq!(skills.get()?.chars().count(), "- a: ".len() + 1_024);
    Ok(())
}

/// One skill more than the limit failed all of them.
#[test]
fn the_first_1_000_skills_are_listed() -> Outcome {
    let (_outer, path) = folder(&[])?;
    for n in 0..1_000 {
        fs::write(path.join(format!("s{n}.md")), "x")?;
    }
    let skills = SkillFolder::open(&path)?;
    assert_eq!(skills.get()?.lines().count(), 1_000);
    assert!(skills.notices()?.is_empty());
    fs::write(path.join("first.md"), "x")?;
    let list = skills.get()?;
    assert_eq!(list.lines().count(), 1_000);
    assert!(list.starts_with("- first: x\n") && !list.contains("- s999:"));
    let expected =
        "skills: it holds over 1000 skills; those after the first 1000, by name, are left out";
    assert_eq!(notices(&skills)?, [expected]);
    assert_eq!(skills.allow(["s999"]).get()?, "- s999: x");
    Ok(())
}
