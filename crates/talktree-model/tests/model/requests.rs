//! Requests that are ready to send, and the answers to them.

use proptest::prelude::*;
use serde_json::{Value, json};
use talktree::{
    Author, AuthorLine, Block, Error, Message, Part, Result, Role, Session, SessionChange, Store,
    Usage,
};
use talktree_model::{
    Conversation, Provider, Request, Stream, TruncateOptions, anthropic_request, append_answer,
    openai_chat_request, openai_responses_request, stream, validate_for,
};

fn chat() -> Result<Session> {
    let store = Store::open_in_memory()?;
    let soul = Block::text("Be brief.");
    let memory = Block::stored().remind();
    store.session_builder("s").block("soul", soul).block("memory", memory).cached_prompt().open()
}

/// Returns the request for each provider, checked.
fn requests(request: &Request<'_>) -> Result<[Value; 3]> {
    let requests = [request.anthropic()?, request.openai_chat()?, request.openai_responses()?];
    let providers = [Provider::Anthropic, Provider::OpenAiChat, Provider::OpenAiResponses];
    for (provider, request) in providers.into_iter().zip(&requests) {
        assert_eq!(validate_for(provider, request), [], "{request}");
    }
    Ok(requests)
}

fn fields(request: &Value) -> Vec<&str> {
    request.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_request_has_prompt_messages_and_tools() -> Result<()> {
    let chat = chat()?;
    chat.append(Message::user("2 + 2?"))?;
    let prompt = chat.prompt()?;
    let [anthropic, openai, responses] = requests(&Request::of(&chat))?;
    assert_eq!(anthropic, anthropic_request(&chat)?);
    assert_eq!(openai, openai_chat_request(&chat)?);
    assert_eq!(responses, openai_responses_request(&chat)?);

    let cache = json!({"type": "ephemeral"});
    assert_eq!(fields(&anthropic), ["messages", "system", "tools"]);
    assert_eq!(
        anthropic["system"],
        json!([{"type": "text", "text": prompt, "cache_control": cache}])
    );
    let mut tools = chat.tools().anthropic();
    tools[0]["cache_control"] = cache;
    assert_eq!(anthropic["tools"], tools);

    assert_eq!(fields(&openai), ["messages", "tools"]);
    assert_eq!(openai["messages"][0], json!({"role": "system", "content": prompt}));
    assert_eq!(openai["messages"][1]["content"], "2 + 2?");
    assert_eq!(openai["tools"], chat.tools().openai_chat());

    assert_eq!(fields(&responses), ["input", "instructions", "tools"]);
    assert_eq!(responses["instructions"], prompt);
    assert_eq!(responses["tools"], chat.tools().openai_responses());
    Ok(())
}

#[test]
fn what_a_conversation_lacks_is_left_out() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let [anthropic, openai, responses] = requests(&Request::of(&chat))?;
    assert_eq!(fields(&anthropic), ["messages"]);
    assert_eq!(fields(&openai), ["messages"]);
    assert_eq!(fields(&responses), ["input"]);
    Ok(())
}

#[test]
fn system_messages_and_the_reminder_are_sent_where_the_provider_takes_them() -> Result<()> {
    let chat = chat()?;
    let prompt = chat.prompt()?;
    chat.append(Message::user("2 + 2?"))?;
    chat.append(Message::system("It is noon."))?;
    chat.append(Message::user("Well?"))?;
    chat.context().set("memory", "Likes tea.")?;
    let reminder = chat.reminder()?.unwrap();
    let [anthropic, openai, responses] = requests(&Request::of(&chat))?;
    let system: Vec<_> = anthropic["system"].as_array().unwrap().iter().collect();
    let texts: Vec<_> = system.iter().map(|block| block["text"].as_str().unwrap()).collect();
    assert_eq!(texts, [&prompt, &reminder, "It is noon."]);
    // What changes comes after the breakpoint.
    assert!(system[0]["cache_control"].is_object() && system[1]["cache_control"].is_null());

    let both = format!("{prompt}\n\n{reminder}");
    assert_eq!(openai["messages"][0]["content"], both);
    assert_eq!(openai["messages"][2], json!({"role": "system", "content": "It is noon."}));
    assert_eq!(responses["instructions"], both);
    assert_eq!(responses["input"][1]["role"], "system");
    Ok(())
}

#[test]
fn a_request_does_not_end_with_an_answer_unless_the_program_wants_it() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append(Message::user("Count."))?;
    chat.append(Message::assistant("1, 2,"))?;
    let last = |request: &Value, list: &str| request[list].as_array().unwrap().last().cloned();
    let [anthropic, openai, responses] = requests(&Request::of(&chat))?;
    let go_on = json!({"role": "user", "content": [{"type": "text", "text": "[Go on.]"}]});
    assert_eq!(last(&anthropic, "messages"), Some(go_on));
    let go_on = json!({"role": "user", "content": "[Go on.]"});
    assert_eq!(last(&openai, "messages"), Some(go_on));
    assert_eq!(last(&responses, "input").unwrap()["content"], "[Go on.]");

    let [anthropic, openai, responses] = requests(&Request::of(&chat).prefill())?;
    for (request, list) in [(anthropic, "messages"), (openai, "messages"), (responses, "input")] {
        assert_eq!(last(&request, list).unwrap()["role"], "assistant");
    }
    // A system message is not among the messages of Anthropic.
    chat.append(Message::system("Go on."))?;
    let [anthropic, openai, _] = requests(&Request::of(&chat))?;
    assert_eq!(last(&anthropic, "messages").unwrap()["content"][0]["text"], "[Go on.]");
    assert_eq!(last(&openai, "messages").unwrap()["role"], "system");
    Ok(())
}

#[test]
fn a_paused_turn_is_sent_back_as_it_is() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append(Message::user("What is new?"))?;
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
        "input": {"query": "news"}});
    let response = |stop: &str| {
        json!({"type": "message", "role": "assistant", "stop_reason": stop, "content": [
            {"type": "text", "text": "Let me look."}, search,
        ]})
    };
    append_answer(&chat, response("pause_turn"))?;
    let [anthropic, openai, _] = requests(&Request::of(&chat))?;
    assert_eq!(anthropic["messages"][1]["role"], "assistant");
    assert_eq!(anthropic["messages"].as_array().unwrap().len(), 2);
    // Another provider cannot go on.
    assert_eq!(openai["messages"][2]["content"], "[Go on.]");
    Ok(())
}

/// The answer was cut off while the provider's own tool ran. `[Go on.]` came right after the open call, which is refused.
#[test]
fn an_open_call_of_the_provider_is_not_sent_before_words_of_a_user() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append(Message::user("What is new?"))?;
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
        "input": {"query": "news"}});
    let response = json!({"type": "message", "role": "assistant", "stop_reason": "max_tokens",
        "content": [{"type": "text", "text": "Let me look."}, search]});
    append_answer(&chat, response)?;
    let [anthropic, ..] = requests(&Request::of(&chat).cached_history())?;
    let messages = anthropic["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[1]["content"].as_array().unwrap().len(), 1, "{anthropic:#}");
    assert_eq!(messages[2]["content"][0]["text"], "[Go on.]");
    assert!(messages[1]["content"][0]["cache_control"].is_object());
    // The same with nothing but the call.
    chat.retry()?;
    let response = json!({"type": "message", "role": "assistant", "stop_reason": "max_tokens",
        "content": [search]});
    append_answer(&chat, response)?;
    requests(&Request::of(&chat).cached_history())?;
    Ok(())
}

#[test]
fn the_options_change_the_messages() -> Result<()> {
    let chat = chat()?;
    let ada = Author::new("42").named("Ada");
    chat.append(Message::user("word ".repeat(9_000)).from(&ada))?;
    for n in 0..6 {
        chat.append(Message::user(format!("{n}")).from(&ada))?;
    }
    let own = json!({"name": "weather", "input_schema": {"type": "object"}});
    let request = Request::of(&chat)
        .truncated(TruncateOptions::default())
        .authors(AuthorLine::Name)
        .tools([own])
        .cached_history();
    let anthropic = request.anthropic()?;
    assert_eq!(validate_for(Provider::Anthropic, &anthropic), []);
    let content = anthropic["messages"][0]["content"].as_array().unwrap();
    assert_eq!(content[0]["text"], "[from Ada (id 42)]");
    assert!(content[1]["text"].as_str().unwrap().len() < 20_000);
    assert!(content.last().unwrap()["cache_control"].is_object());
    assert_eq!(content.iter().filter(|block| !block["cache_control"].is_null()).count(), 1);
    assert_eq!(anthropic["tools"][0]["name"], "weather");
    assert!(anthropic["tools"][0]["cache_control"].is_null());
    assert!(anthropic["tools"][1]["cache_control"].is_object());
    // Without the option a model sees no author.
    assert!(!anthropic_request(&chat)?.to_string().contains("Ada"));
    Ok(())
}

#[test]
fn a_path_is_requested_without_moving_the_head() -> Result<()> {
    let chat = chat()?;
    let question = chat.append(Message::user("2 + 2?"))?.id;
    chat.append(Message::assistant("5"))?;
    let request = openai_chat_request(&chat.at(&question))?;
    assert_eq!(request["messages"].as_array().unwrap().len(), 2);
    assert_eq!(request["messages"][0]["content"], chat.prompt()?);
    let unknown = anthropic_request(&chat.at(&"nobody".into()));
    assert!(matches!(unknown, Err(Error::UnknownMessage { .. })));
    Ok(())
}

#[test]
fn an_answer_is_stored_with_its_usage() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append(Message::user("2 + 2?"))?;
    let response = json!({
        "model": "small", "choices": [{"finish_reason": "stop", "message": {"content": "4"}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 8}},
    });
    let answer = append_answer(&chat, &response)?;
    let stored = chat.message(&answer.id)?.unwrap();
    assert_eq!((stored.text(), chat.head()?), ("4".to_owned(), Some(answer.id)));
    let model = Some("small".to_owned());
    let usage = Usage { model, input: 9, output: 2, cache_read: 8, ..Usage::default() };
    assert_eq!(Usage::of(&stored), Some(usage));

    let refused = append_answer(&chat, json!({"error": {"message": "no credit"}}));
    assert!(matches!(refused, Err(Error::NoAnswer { .. })));
    assert_eq!(chat.path_length()?, 2);
    Ok(())
}

/// A conversation of any messages.
struct Any(Vec<Message>);

impl Conversation for Any {
    fn prompt(&self) -> Result<String> {
        Ok(" \n".to_owned())
    }

    fn reminder(&self) -> Result<Option<String>> {
        Ok(Some(String::new()))
    }

    fn history(&self) -> Result<Vec<Message>> {
        Ok(self.0.clone())
    }
}

proptest! {
    #[test]
    fn no_conversation_makes_a_request_that_breaks_a_rule(
        words in prop::collection::vec("[uas]|[cr][12]|e", 0..12), options in 0..16_u8,
    ) {
        let ada = Author::new("42").named("A\nda");
        let message = |word: &String| {
            let id = &word[1..];
            match &word[..1] {
                "u" => Message::user("[from Bob]\nhi").from(&ada),
                "a" => Message::assistant("hello  "),
                "s" => Message::system("be brief"),
                "c" => Message::new(Role::Assistant, vec![Part::tool_call("t", id, json!({}))]),
                "r" => Message::new(Role::Tool, vec![Part::tool_result("t", id, json!(1))]),
                _ => Message::assistant(" "),
            }
        };
        let any = Any(words.iter().map(message).collect());
        let mut request = Request::of(&any);
        if options & 1 > 0 { request = request.authors(AuthorLine::NameAndTime); }
        if options & 2 > 0 { request = request.truncated(TruncateOptions::default()); }
        if options & 4 > 0 { request = request.cached_history(); }
        let is_prefilled = options & 8 > 0;
        if is_prefilled { request = request.prefill(); }
        let [anthropic, openai, responses] = requests(&request).unwrap();
        for (request, list) in [(anthropic, "messages"), (openai, "messages"), (responses, "input")] {
            let last = request[list].as_array().unwrap().last().unwrap().clone();
            prop_assert!(is_prefilled || last["role"] != "assistant", "{}", request);
            prop_assert!(request.get("system").is_none() || words.iter().any(|word| word == "s"));
        }
    }
}

/// The lines of a streamed answer.
fn lines(pieces: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = pieces
        .iter()
        .map(|piece| json!({"id": "1", "choices": [{"delta": {"content": piece}}]}))
        .chain([json!({"id": "1", "choices": [{"delta": {}, "finish_reason": "stop"}]})])
        .chain([json!({"id": "1", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}})])
        .flat_map(|event| [format!("data: {event}"), String::new()])
        .collect();
    lines.push("data: [DONE]".to_owned());
    lines
}

/// A fragment that was stored by `upsert` was the last message of the next request, and the model went on with it.
#[test]
fn a_reply_that_a_dead_process_left_is_in_no_request() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chat.db");
    let long = "word ".repeat(2_000);
    {
        let chat = Store::open(&path)?.session("s")?;
        chat.append(Message::user("Count."))?;
        let mut reply = stream(&chat, Stream::openai_chat())?;
        assert_eq!((chat.head()?, chat.unfinished()?.len()), (Some(reply.id().clone()), 1));
        for line in &lines(&["One, ", &long, "and so on"])[..5] {
            reply.push(line)?;
        }
        // Killed: nothing is finished, and what came last was not saved yet.
        std::mem::forget(reply);
    }
    let store = Store::open(&path)?;
    let chat = store.session("s")?;
    let [fragment] = <[Message; 1]>::try_from(chat.unfinished()?).unwrap();
    assert!(fragment.text().starts_with("One, word") && fragment.is_unfinished());
    assert_eq!((chat.history()?.len(), chat.raw_history()?.len()), (1, 2));
    for request in requests(&Request::of(&chat))? {
        assert!(!request.to_string().contains("One,"), "{request}");
    }
    assert_eq!(chat.search("word").run()?.hits.len(), 1);

    // The next reply answers the same question.
    let mut reply = stream(&chat, Stream::openai_chat())?;
    for line in lines(&["1, ", "2."]) {
        reply.push(&line)?;
    }
    let answer = reply.finish()?;
    assert_eq!(chat.message(&answer.id)?.unwrap().parent, fragment.parent);
    chat.discard(&fragment.id)?;
    assert_eq!((chat.unfinished()?.len(), chat.all_messages().count()), (0, 2));
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn a_finished_reply_is_the_answer_that_an_append_stores() -> Result<()> {
    let store = Store::open_in_memory()?;
    let (streamed, appended) = (store.session("a")?, store.session("b")?);
    let body = lines(&["It is", " 4."]);
    let mut whole = Stream::openai_chat();
    for chat in [&streamed, &appended] {
        chat.append(Message::user("2 + 2?"))?;
    }
    let mut reply = stream(&streamed, Stream::openai_chat())?;
    for line in &body {
        whole.line(line)?;
        reply.push(line)?;
    }
    assert_eq!(streamed.request_tokens()?.total, appended.request_tokens()?.total);
    let answer = reply.finish()?;
    let other = append_answer(&appended, whole.finish()?)?;
    let stored = |chat: &Session| -> Result<Message> { Ok(chat.history()?[1].clone()) };
    assert_eq!(stored(&streamed)?.parts, stored(&appended)?.parts);
    assert_eq!(stored(&streamed)?.metadata, other.metadata);
    assert_eq!(Usage::of(&stored(&streamed)?), Usage::of(&answer));
    assert_eq!(streamed.usage()?, appended.usage()?);
    assert_eq!(streamed.usage()?.answers, 1);
    assert_eq!(streamed.request_tokens()?.total, appended.request_tokens()?.total);
    Ok(())
}

#[test]
fn replies_at_the_same_time_are_siblings_and_each_is_settled_once() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chat.db");
    let (one, two) = (Store::open(&path)?.session("s")?, Store::open(&path)?.session("s")?);
    let question = one.append(Message::user("Name a colour."))?.id;
    let mut replies = [stream(&one, Stream::openai_chat())?, stream(&two, Stream::openai_chat())?];
    let ids = replies.each_ref().map(|reply| reply.id().clone());
    for (reply, colour) in replies.iter_mut().zip(["red", "blue"]) {
        for line in lines(&[colour]) {
            reply.push(&line)?;
        }
    }
    // A person writes meanwhile; another process believes that the first reply was left, and finishes it.
    two.append(Message::user("Well?"))?;
    two.finish(Message::assistant("red?").with_id(ids[0].clone()))?;
    let [mut first, mut second] = replies;
    let late = first.finish();
    assert!(matches!(&late, Err(Error::Finished { id, .. }) if *id == ids[0]), "{late:?}");
    for late in [one.discard(&ids[0]), one.save(Message::assistant("re").with_id(ids[0].clone()))] {
        assert!(matches!(late, Err(Error::Finished { .. })), "{late:?}");
    }
    second.finish()?;
    let texts = |chat: &Session| -> Result<Vec<String>> {
        Ok(chat.history()?.iter().map(Message::text).collect())
    };
    assert_eq!(texts(&two)?, ["Name a colour.", "blue", "Well?"]);
    assert_eq!(one.branches(&question)?.len(), 2);
    assert_eq!(one.message(&ids[0])?.unwrap().text(), "red?");
    let unknown = one.discard(&"nobody".into());
    assert!(matches!(unknown, Err(Error::UnknownMessage { .. })), "{unknown:?}");

    // A stream that is cut stays, with all its text.
    let mut cut = stream(&one, Stream::openai_chat())?;
    cut.push(&lines(&["gre"])[0])?;
    cut.push("")?;
    assert!(matches!(cut.finish(), Err(Error::NoAnswer { .. })));
    assert_eq!(one.unfinished()?[0].text(), "gre");
    Ok(())
}

/// An update took the mark away: the message was hidden for good, and could neither be finished nor discarded.
#[test]
fn an_unfinished_message_that_is_updated_stays_unfinished() -> Result<()> {
    let chat = chat()?;
    let before = chat.history()?.len();
    let reply = chat.begin(Message::assistant(""))?.id;
    let content = |text: &str| Message::assistant(text).with_id(reply.clone());
    chat.update(content("It"))?;
    chat.upsert(content("It is").with_metadata(json!({"topic": 7})))?;
    let [stored] = <[Message; 1]>::try_from(chat.unfinished()?).unwrap();
    assert_eq!((stored.text().as_str(), stored.field("topic").is_some()), ("It is", true));
    assert_eq!(chat.history()?.len(), before);
    chat.finish(content("It is 4."))?;
    chat.update(content("It is four."))?;
    assert_eq!((chat.unfinished()?.len(), chat.history()?.len()), (0, before + 1));
    Ok(())
}

/// The reply was gone then, with all text that was not saved yet and with the usage.
#[test]
fn a_reply_that_could_not_be_finished_can_be_finished_again() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append(Message::user("2 + 2?"))?;
    let mut reply = stream(&chat, Stream::openai_chat())?;
    for line in lines(&["It is", " 4."]) {
        reply.push(&line)?;
    }
    store.change_session(chat.id(), &SessionChange::Delete)?;
    for _ in 0..2 {
        assert!(reply.finish().is_err());
    }
    store.change_session(chat.id(), &SessionChange::Restore)?;
    assert_eq!(reply.finish()?.text(), "It is 4.");
    assert_eq!((chat.history()?.len(), chat.usage()?.answers), (2, 1));
    for late in [reply.push("").map(drop), reply.finish().map(drop)] {
        assert!(matches!(late, Err(Error::Finished { .. })), "{late:?}");
    }
    Ok(())
}

#[test]
fn a_discarded_reply_leaves_the_head_at_the_question() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let question = chat.append(Message::user("Name a colour."))?.id;
    let (one, two) = (Message::assistant("red"), Message::assistant("blue"));
    let (one, two) = (chat.begin(one)?.id, chat.begin(two)?.id);
    chat.finish(Message::assistant("red").with_id(one.clone()))?;
    assert_eq!((chat.head()?, chat.history()?.len()), (Some(two.clone()), 1));
    chat.discard(&two)?;
    assert_eq!(chat.head()?, Some(question));
    assert!(matches!(chat.discard(&two), Err(Error::UnknownMessage { .. })));
    chat.checkout(&one)?;
    assert_eq!(chat.history()?.len(), 2);

    let usage = json!({"usage": {"input_tokens": 1, "output_tokens": 2}});
    let left = chat.begin(Message::assistant("").with_metadata(usage))?.id;
    assert_eq!(chat.usage()?.answers, 1);
    let next = chat.append(Message::user("Well?"))?.id;
    assert_eq!(chat.message(&next)?.unwrap().parent, Some(left));
    Ok(())
}
