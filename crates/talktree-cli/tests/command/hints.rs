//! What an error advises: commands that can be copied, and reasons that are the true ones.

use crate::common::{self, Outcome, Rig, text};

/// A suggested command used to ask the default store, whatever store was asked before.
#[test]
fn a_suggested_command_names_the_store_that_was_named() {
    let rig = Rig::toured();
    let other = text(&rig.path("other store.db"));
    rig.ok(["--store", &other, "import", &text(&rig.path("sample.jsonl"))]);
    let named = format!("talktree --store '{other}' ");
    for (code, args, rest) in [
        (1, &["search", "role:tool planetarium"][..], "search planetarium"),
        (1, &["log", "nobody"], "sessions`"),
        (1, &["show", "tour", "nobody"], "tree tour`"),
        (1, &["expand", "tour", "nobody"], "compact tour --list`"),
        (1, &["label", "tour", "--remove", "nothing"], "label tour --list`"),
        (1, &["context", "show", "tour", "memory"], "context list tour`"),
    ] {
        let why = rig.fails(code, [&["--store", &*other], args].concat());
        assert!(why.contains(&format!("{named}{rest}")), "{args:?}: {why}");
        // The environment names the store for a copied command, too.
        let why = rig.fails(code, args);
        assert!(why.contains(&format!("talktree {rest}")), "{args:?}: {why}");
    }
}

#[test]
fn a_proposed_search_says_where_it_searches() {
    let rig = Rig::toured();
    // A condition of the query goes; the option stays.
    let why = rig.fails(1, ["search", "session:nobody friday", "--session", "tour"]);
    assert!(why.contains("without `session:`: talktree search --session tour friday"), "{why}");
    assert!(!why.contains("in all sessions"), "{why}");
}

#[test]
fn a_missing_store_is_named_by_what_is_wrong() -> Outcome {
    let rig = Rig::empty();
    let path = |name: &str| text(&rig.path(name));
    rig.file("empty", "");
    for (store, why) in [
        ("", "is a folder, not a store"),
        ("empty", "is empty, not a store"),
        ("nowhere/talk.db", "nowhere/talk.db: there is no folder "),
        ("other.db", "other.db; create one with `talktree --store "),
    ] {
        let said = rig.fails(3, ["--store", &path(store), "sessions"]);
        assert!(said.contains(why), "{store}: {said}");
        assert_eq!(said.contains("create one"), store == "other.db", "{store}: {said}");
    }
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_to_nowhere_is_named() -> Outcome {
    let rig = Rig::toured();
    let link = text(&rig.path("link"));
    std::os::unix::fs::symlink("nowhere", &link)?;
    for (code, args) in [
        (3, &["--store", &*link, "sessions"][..]),
        (3, &["--store", &link, "import", "x.jsonl"]),
        (5, &["import", &link]),
        (5, &["context", "import", "tour", &link]),
        (5, &["compact", "tour", "--summary-file", &link]),
    ] {
        rig.file("x.jsonl", "");
        let mut command = rig.command(args);
        let answer = common::Answer::of(command.current_dir(rig.path("")).output()?);
        assert_eq!(answer.code, code, "{args:?}: {answer:?}");
        let why = "link: it is a symbolic link to nowhere, which does not exist";
        let other = "from ".to_owned() + &link + ": it is a symbolic link to nowhere";
        assert!(
            answer.stderr.contains(why) || answer.stderr.contains(&other),
            "{args:?}: {answer:?}"
        );
    }
    Ok(())
}

/// `verify` used to say only that the image is malformed.
#[test]
fn verify_says_that_a_file_is_cut_off() -> Outcome {
    let rig = Rig::toured();
    rig.ok(["backup", &text(&rig.path("whole.db"))]);
    let whole = std::fs::read(rig.path("whole.db"))?;
    for (length, why) in [
        (50, "it has 50 bytes, less than a header".to_owned()),
        (20_000, format!("it has 20000 bytes, and {} by its header", whole.len())),
    ] {
        let cut = text(&rig.file("cut.db", &whole[..length]));
        let said = rig.fails(4, ["--store", &cut, "verify"]);
        assert!(said.contains(&format!("the file is cut off: {why}")), "{said}");
    }
    Ok(())
}
