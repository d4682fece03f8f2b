//! Chats in which words are spoken, thoughts are summaries, siblings have no order, parts are of an older version, or ids cannot
//! be told apart as text.

use crate::common::import;
use serde_json::json;
use talktree::{Message, Part, Result, Session, Store};

fn only(file: &str) -> Result<Session> {
    let store = Store::open_in_memory()?;
    let report = import(&store, file);
    assert_eq!(report.first_fault(), None);
    store.session(report.sessions[0].clone())
}

fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(Message::text).collect()
}

/// A ChatGPT export of messages `id parent role seconds`, each with its content.
fn chatgpt(messages: &[(&str, serde_json::Value)]) -> String {
    let mut mapping = serde_json::Map::new();
    for (drawn, content) in messages {
        let [id, parent, role, seconds] = drawn.split(' ').collect::<Vec<_>>()[..] else {
            panic!()
        };
        let parent = Some(parent).filter(|parent| *parent != "-");
        let message = json!({"id": id, "author": {"role": role}, "content": content, "weight": 1.0,
            "create_time": seconds.parse::<f64>().unwrap()});
        mapping.insert(id.to_owned(), json!({"id": id, "parent": parent, "message": message}));
    }
    json!([{"id": "c", "title": "Owls", "mapping": mapping}]).to_string()
}

#[test]
fn what_was_spoken_is_text_and_an_image_has_the_words_it_was_made_from() -> Result<()> {
    let spoken = |text: &str| {
        json!({"content_type": "multimodal_text", "parts": [
            {"content_type": "audio_transcription", "text": text, "direction": "in"},
            {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://1"}]})
    };
    let image = json!({"content_type": "multimodal_text", "parts": [
        {"content_type": "image_asset_pointer", "asset_pointer": "sediment://2",
         "metadata": {"dalle": {"prompt": "an owl in a barn"}}}]});
    let chat = only(&chatgpt(&[
        ("q - user 1", spoken("What eats mice?")),
        ("a q assistant 2", spoken("Owls do.")),
        ("i a tool 3", image),
    ]))?;
    assert_eq!(texts(&chat.history()?), ["What eats mice?", "Owls do.", "an owl in a barn"]);
    let question = &chat.history()?[0];
    assert!(
        matches!(&question.parts[0], Part::Text(text) if text.extra["direction"].as_str() == "\"in\"")
    );
    assert!(matches!(&chat.history()?[2].parts[1], Part::File(file) if file.url == "sediment://2"));
    Ok(())
}

#[test]
fn a_thought_without_a_text_is_its_summary() -> Result<()> {
    let thoughts = json!({"content_type": "thoughts", "thoughts": [
        {"summary": "Looking", "content": "It has a beak."}, {"summary": "Deciding", "content": ""},
        {"summary": "", "content": ""}]});
    let chat = only(&chatgpt(&[("t - assistant 1", thoughts)]))?;
    let thoughts = chat.history()?.remove(0).parts;
    let [Part::Reasoning(first), Part::Reasoning(second)] = &thoughts[..] else {
        panic!("{thoughts:?}")
    };
    assert_eq!((first.text.as_str(), second.text.as_str()), ("It has a beak.", "Deciding"));
    assert_eq!(first.extra["summary"].as_str(), "\"Looking\"");
    Ok(())
}

#[test]
fn siblings_without_an_order_come_by_time() -> Result<()> {
    let said = |text: &str| json!({"content_type": "text", "parts": [text]});
    let lines = [
        ("q - user 1", said("Which owl?")),
        ("late q assistant 9", said("A tawny owl.")),
        ("early q assistant 2", said("A barn owl.")),
    ];
    let mut turned = lines.clone();
    turned.reverse();
    for lines in [lines, turned] {
        let branches = only(&chatgpt(&lines))?.branches(&"q".into())?;
        assert_eq!(texts(&branches), ["A barn owl.", "A tawny owl."]);
    }
    Ok(())
}

#[test]
fn messages_of_anthropic_and_a_spoken_answer_are_read_as_chats() -> Result<()> {
    let chat = only(
        r#"{"id":"c","messages":[{"role":"user","content":"Open it."},
        {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"open_hatch","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"opened"}]},
        {"role":"assistant","content":null,"audio":{"id":"x","transcript":"Aye aye."}},
        {"role":"assistant","content":[{"type":"server_tool_use","id":"w","name":"web_search","input":{"query":"gulls"}}]}]}"#,
    )?;
    let history = chat.history()?;
    assert!(matches!(&history[2].parts[0], Part::Tool(tool) if tool.name == "open_hatch"));
    assert_eq!((history[2].role.as_str(), history[3].text().as_str()), ("tool", "Aye aye."));
    assert_eq!(chat.path().search("in:tools gulls").run()?.hits.len(), 1);
    Ok(())
}

#[test]
fn parts_of_an_older_sdk_become_parts_of_today() -> Result<()> {
    let chat = only(
        r#"{"id":"c","messages":[{"id":"1","role":"assistant","content":"Done.","parts":[{"type":"step-start"},
        {"type":"reasoning","reasoning":"Two cups.","details":[]},
        {"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"t","toolName":"brew","args":{"cups":2},"result":"hot"}},
        {"type":"text","text":"Done."}]}]}"#,
    )?;
    let parts = &chat.history()?[0].parts;
    assert!(matches!(&parts[1], Part::Reasoning(thought) if thought.text == "Two cups."));
    assert!(matches!(&parts[2], Part::Tool(tool) if tool.name == "brew"
        && tool.state.as_deref() == Some("output-available") && tool.output.as_ref().unwrap().as_str() == "\"hot\""));
    assert_eq!((parts.len(), chat.history()?[0].text().as_str()), (4, "Done."));
    Ok(())
}

#[test]
fn ids_that_differ_in_a_lone_surrogate_are_two_messages() -> Result<()> {
    let chat = only(
        r#"{"id":"c","messages":[{"id":"x\ud800","role":"user","parts":[{"type":"text","text":"one"}]},
        {"id":"x\ud801","role":"user","parent":"x\ud800","parts":[{"type":"text","text":"two"}]}]}"#,
    )?;
    assert_eq!(texts(&chat.history()?), ["one", "two"]);
    Ok(())
}

#[test]
fn a_head_on_an_inner_message_moves_to_its_leaf() -> Result<()> {
    let said = |id: &str, parent: &str| {
        let parent = if parent == "-" { json!(null) } else { json!(parent) };
        json!({"id": id, "role": "user", "parent": parent, "parts": [{"type": "text", "text": id}]})
            .to_string()
    };
    let chat = only(&[said("a", "-"), said("c", "b"), said("b", "a")].join("\n"))?;
    assert_eq!(texts(&chat.history()?), ["a", "b", "c"]);
    assert_eq!(chat.head()?, Some("c".into()));
    Ok(())
}
