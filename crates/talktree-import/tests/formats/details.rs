//! The name and times of imported sessions. All once had the time of the import, and no name.

use std::io::Cursor;

use talktree::{Result, SessionInfo, Store};
use talktree_import::export::content_hash;
use talktree_import::{ImportOptions, import_reader};

fn import(store: &Store, file: &str) -> Result<SessionInfo> {
    let report = import_reader(store, "f", Cursor::new(file), &ImportOptions::default(), |_| {})?;
    Ok(store.session(&report.sessions[0])?.info()?.expect("a session"))
}

fn times(info: &SessionInfo) -> (String, String) {
    (info.created_at.to_rfc3339(), info.updated_at.to_rfc3339())
}

fn pi(messages: &[(&str, &str, &str)]) -> String {
    let mut file = String::from(r#"{"type":"session","version":3,"id":"s"}"#);
    for (n, (time, role, text)) in messages.iter().enumerate() {
        let parent = if n == 0 { "null".to_owned() } else { format!("\"m{}\"", n - 1) };
        file.push_str(&format!(
            "\n{{\"type\":\"message\",\"id\":\"m{n}\",\"parentId\":{parent},\"timestamp\":\"2026-01-{time}T00:00:00Z\",\"message\":{{\"role\":\"{role}\",\"content\":\"{text}\"}}}}"
        ));
    }
    file
}

#[test]
fn a_session_has_the_times_of_its_messages() -> Result<()> {
    let store = Store::open_in_memory()?;
    let mut said = vec![("02", "user", "hi"), ("04", "assistant", "ho"), ("03", "user", "so")];
    let at = |day: &str| format!("2026-01-{day}T00:00:00+00:00");
    assert_eq!(times(&import(&store, &pi(&said))?), (at("02"), at("04")));
    // Again: nothing is written.
    assert_eq!(times(&import(&store, &pi(&said))?), (at("02"), at("04")));
    // Grown: the newest message counts.
    said.push(("07", "user", "more"));
    assert_eq!(times(&import(&store, &pi(&said))?), (at("02"), at("07")));

    // Written to since: the last write counts.
    let chat = store.session("s")?;
    chat.append(talktree::Message::user("now"))?;
    let now = chat.info()?.expect("a session").updated_at;
    said.push(("08", "user", "and more"));
    assert_eq!(import(&store, &pi(&said))?.updated_at, now);

    let chatgpt = r#"{"conversation_id":"g","mapping":{"a":{"parent":null,"message":{"author":{"role":"user"},"create_time":1767323045,"content":{"parts":["hi"]}}},"b":{"parent":"a","message":{"author":{"role":"assistant"},"create_time":1767323055,"content":{"parts":["ho"]}}}}}"#;
    let info = import(&store, chatgpt)?;
    let expected = ("2026-01-02T03:04:05+00:00", "2026-01-02T03:04:15+00:00");
    assert_eq!(times(&info), (expected.0.to_owned(), expected.1.to_owned()));
    Ok(())
}

#[test]
fn a_session_without_a_title_is_named_by_the_first_line_of_its_user() -> Result<()> {
    let (long, words) = ("x".repeat(300), "seven ab ".repeat(30));
    for (said, name) in [
        (vec![("02", "assistant", "Hello."), ("02", "user", "\\n  Fix it \\nnow")], Some("Fix it")),
        (vec![("02", "user", "<note>a</note>"), ("02", "user", "Fix it")], Some("Fix it")),
        (vec![("02", "user", "<note>a</note>")], Some("<note>a</note>")),
        (vec![("02", "assistant", "Hello.")], None),
        (vec![("02", "user", long.as_str())], Some(&long[..80])),
        (vec![("02", "user", words.as_str())], Some(words[..77].trim_end())),
    ] {
        let store = Store::open_in_memory()?;
        assert_eq!(import(&store, &pi(&said))?.name.as_deref(), name);
        store.rename(&"s".into(), "mine")?;
        assert_eq!(import(&store, &pi(&said))?.name.as_deref(), Some("mine"));
    }
    Ok(())
}

/// The name was left when the message was erased, and after that came back with the next import.
#[test]
fn a_name_made_from_an_erased_message_does_not_come_back() -> Result<()> {
    let store = Store::open_in_memory()?;
    let mut said = vec![("02", "user", "My pin is 7194"), ("02", "user", "Thanks")];
    assert_eq!(import(&store, &pi(&said))?.name.as_deref(), Some("My pin is 7194"));
    let erased = store.session("s")?.erase([&"m0".into()])?;
    assert_eq!((erased.extent.messages, erased.extent.details), (1, 1));
    for _ in 0..2 {
        assert_eq!(import(&store, &pi(&said))?.name, None);
        said.push(("03", "user", "More"));
    }
    // As a title of the source.
    let chatgpt = r#"{"conversation_id":"g","title":"My pin is 7194","mapping":{"a":{"parent":null,"message":{"author":{"role":"user"},"create_time":1767323045,"content":{"parts":["My pin is 7194"]}}},"b":{"parent":"a","message":{"author":{"role":"assistant"},"create_time":1767323055,"content":{"parts":["ho"]}}}}}"#;
    assert_eq!(import(&store, chatgpt)?.name.as_deref(), Some("My pin is 7194"));
    let _ = store.session("g")?.erase([&"a".into()])?;
    assert_eq!(import(&store, chatgpt)?.name, None);
    Ok(())
}

/// They once had the time of the import, so a session was as young as its last import.
#[test]
fn entries_of_claude_code_without_a_time_have_that_of_their_neighbour() -> Result<()> {
    let file = r#"{"type":"mode","mode":"plan","sessionId":"s"}
{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","timestamp":"2026-01-02T00:00:00Z","message":{"role":"user","content":"hi"}}
{"type":"assistant","uuid":"b","parentUuid":"a","sessionId":"s","message":{"role":"assistant","content":"ho"}}
{"type":"user","uuid":"c","parentUuid":"b","sessionId":"s","timestamp":"2026-01-04T00:00:00Z","message":{"role":"user","content":"so"}}
{"type":"last-prompt","lastPrompt":"so","sessionId":"s"}"#;
    let store = Store::open_in_memory()?;
    let info = import(&store, file)?;
    assert_eq!(times(&info).1, "2026-01-04T00:00:00+00:00");
    let days = |day: &str| -> Result<usize> {
        let all = store.session("s")?.all_messages().collect::<Result<Vec<_>>>()?;
        Ok(all.iter().filter(|it| it.created_at.to_rfc3339().starts_with(day)).count())
    };
    assert_eq!((days("2026-01-02")?, days("2026-01-04")?), (3, 2));

    let other = Store::open_in_memory()?;
    import(&other, file)?;
    assert_eq!(content_hash(&store)?, content_hash(&other)?);
    Ok(())
}
