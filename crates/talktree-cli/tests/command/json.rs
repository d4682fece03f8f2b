//! The JSON of each command: one object per line, with the field names that docs/command.md documents.

use crate::common::{Rig, fields, text};

#[test]
fn stats_is_one_object() {
    let rig = Rig::toured();
    let stats = &rig.json(["stats"])[0];
    assert_eq!(
        fields(stats),
        [
            "branching_messages",
            "bytes",
            "compactions",
            "context_entries",
            "context_versions",
            "elisions",
            "hidden",
            "inbox_items",
            "max_children",
            "max_depth",
            "messages",
            "sessions",
            "transcript_entries",
            "transcripts"
        ]
    );
    assert_eq!(
        (&stats["sessions"], &stats["messages"], &stats["max_depth"]),
        (&1.into(), &10.into(), &7.into())
    );
}

#[test]
fn import_is_one_object_per_file() {
    let rig = Rig::empty();
    let one = text(&rig.file("one.json", r#"[{"role":"user","content":"hi"},7]"#));
    let two = text(&rig.file("two.json", r#"[{"role":"user","content":"ho"}]"#));
    let reports = rig.json(["import", &one, &two]);
    assert_eq!(
        fields(&reports[0]),
        [
            "added",
            "converted",
            "dropped",
            "erased",
            "format",
            "kept",
            "known",
            "notes",
            "notes_left_out",
            "path",
            "records",
            "redacted",
            "sessions"
        ]
    );
    assert_eq!(
        (&reports[0]["records"], &reports[0]["kept"], &reports[0]["dropped"]),
        (&2.into(), &1.into(), &1.into())
    );
    assert_eq!(fields(&reports[0]["notes"][0]), ["is_fault", "line", "why"]);
    assert_eq!(reports[1]["path"], two);
}

#[test]
fn sessions_is_one_object_per_session() {
    let rig = Rig::toured();
    rig.ok(["fork", "tour", "look-up", "What if"]);
    let sessions = rig.json(["sessions"]);
    assert_eq!(
        fields(&sessions[0]),
        [
            "created_at",
            "deleted_at",
            "end_reason",
            "ended_at",
            "fork_point",
            "id",
            "is_pinned",
            "last_message_at",
            "messages",
            "metadata",
            "model",
            "name",
            "owner",
            "parent_session",
            "path_length",
            "preview",
            "source",
            "tags",
            "title",
            "updated_at"
        ]
    );
    assert_eq!(
        (&sessions[0]["name"], &sessions[1]["name"]),
        (&"A trip to Jena".into(), &"What if".into())
    );
    assert_eq!(rig.json(["sessions", "--limit", "1"]).len(), 1);
}

#[test]
fn log_and_show_are_the_messages_as_stored() {
    let rig = Rig::toured();
    rig.ok(["compact", "tour", "--summary", "s", "--from", "ask", "--to", "look-up"]);
    let log = rig.json(["log", "tour"]);
    assert_eq!(log[0]["parts"][0]["text"], "s");
    assert_eq!(fields(&log[0]), ["created_at", "id", "metadata", "parent", "parts", "role"]);
    let raw = rig.json(["log", "tour", "--raw"]);
    assert_eq!(raw.len(), 7);
    assert_eq!(raw[3]["parts"][0]["output"]["tickets"], "online");
    assert_eq!(rig.json(["show", "tour", "look-up"]), raw[3..4]);
}

#[test]
fn tree_is_one_object_of_segments() {
    let rig = Rig::toured();
    rig.ok(["compact", "tour", "--summary", "s", "--from", "answer-1", "--to", "look-up"]);
    let tree = &rig.json(["tree", "tour"])[0];
    assert_eq!(fields(tree), ["head", "messages", "roots", "segments"]);
    let segment = &tree["segments"][1];
    assert_eq!(
        fields(segment),
        ["children", "compactions", "count", "first", "hidden", "landmarks", "last", "parent"]
    );
    assert_eq!(
        fields(&segment["landmarks"][0]),
        ["at", "created_at", "head", "hidden", "id", "labels", "preview", "role"]
    );
    assert_eq!(
        fields(&segment["compactions"][0]),
        ["count", "ends_at", "first", "id", "last", "preview", "starts_at"]
    );
}

#[test]
fn search_is_one_object_per_hit() {
    let rig = Rig::toured();
    let hits = rig.json(["search", "planetarium tickets"]);
    assert_eq!(
        fields(&hits[0]),
        [
            "created_at",
            "id",
            "matched",
            "on_path",
            "role",
            "score",
            "session",
            "sessions",
            "snippet",
            "under_compaction"
        ]
    );
    assert_eq!((&hits[0]["matched"], &hits[0]["on_path"]), (&"all".into(), &true.into()));
    let conversations = rig.json(["search", "planetarium", "--sessions"]);
    assert_eq!(fields(&conversations[0]), ["hits", "name", "score", "session"]);
}

#[test]
fn writing_commands_print_what_they_changed() {
    let rig = Rig::toured();
    assert_eq!(
        fields(&rig.json(["compact", "tour", "--summary", "s", "--from", "ask", "--to", "ask"])[0]),
        ["count", "created_at", "first", "id", "last", "summary", "tokens_after", "tokens_before"]
    );
    assert_eq!(fields(&rig.json(["checkout", "tour", "ask"])[0]), ["head", "session"]);
    assert_eq!(fields(&rig.json(["label", "tour", "l", "ask"])[0]), ["id", "name"]);
    assert_eq!(fields(&rig.json(["label", "tour", "--list"])[0]), ["id", "name"]);
    assert_eq!(
        fields(&rig.json(["fork", "tour", "ask", "f"])[0]),
        ["fork_point", "name", "parent_session", "path_length", "session"]
    );
    assert_eq!(fields(&rig.json(["rename", "f", "g"])[0]), ["name", "session"]);
    assert_eq!(
        fields(&rig.json(["rm", "--name", "g", "--forever", "--yes"])[0]),
        [
            "compactions_back",
            "compactions_gone",
            "covered_by",
            "in_trash",
            "messages",
            "removed",
            "session"
        ]
    );
    assert_eq!(fields(&rig.json(["verify"])[0]), ["damages", "messages"]);
    assert_eq!(fields(&rig.json(["backup", &text(&rig.path("b.db"))])[0]), ["bytes", "path"]);
    assert_eq!(
        fields(&rig.json(["export", "tour", "-o", &text(&rig.path("e.jsonl"))])[0]),
        ["bytes", "format", "path"]
    );
}

#[test]
fn failures_are_text_on_stderr_with_json_too() {
    let rig = Rig::toured();
    let answer = rig.run(["log", "nobody", "--json"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (1, ""));
    assert!(
        answer.stderr.starts_with("talktree: no session has the id, name or key \"nobody\""),
        "{}",
        answer.stderr
    );
}
