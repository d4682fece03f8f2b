//! Streams whose lines are unusual, that end badly, or that are no streams.

use super::*;

#[test]
fn lines_end_in_any_way_and_comments_and_unknown_fields_are_skipped() {
    let plain = "data: {\"choices\":[{\"delta\":{\"content\":\"It is\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\" 4.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let (whole, _) = read(Stream::openai_chat, plain).unwrap();
    for body in [
        plain.replace('\n', "\r\n"),
        plain.replace("data: ", "data:"),
        plain.replace("data: ", ": keep-alive\n: OPENROUTER PROCESSING\ndata: "),
        plain.replace("data: ", "id: 7\nevent: message\nretry: 10\nunknown: x\ndata: "),
        plain.replace("\n\n", "\n\n\n\n: ping\n\n"),
        plain.replace("{\"delta\"", "\ndata: {\ndata:   \"delta\""),
        plain.trim_end().to_owned(),
        plain.replace("\n\n", "\n"),
        plain.replace("data: [DONE]\n\n", ""),
        plain.replace("data: [DONE]\n\n", "").trim_end().to_owned(),
        format!("\u{FEFF}{plain}"),
        format!(
            "{plain}data: {{\"choices\":[{{\"delta\":{{\"content\":\"after the end\"}}}}]}}\n\nrubbish\n\n"
        ),
    ] {
        let (response, shown) = read(Stream::openai_chat, &body).unwrap();
        assert_eq!((&response, shown.as_str()), (&whole, "It is 4."), "{body}");
    }
    // Lines with their breaks, and several at once.
    let mut stream = Stream::openai_chat();
    let shown: String =
        plain.split_inclusive('\n').filter_map(|line| stream.line(line).unwrap()).collect();
    assert_eq!((shown.as_str(), stream.is_complete()), ("It is 4.", true));
    let mut stream = Stream::openai_chat();
    assert_eq!(stream.line(plain).unwrap().as_deref(), Some("It is 4."));
    assert_eq!(stream.finish().unwrap(), whole);
}

#[test]
fn an_error_in_a_stream_is_named_and_stays() {
    let start = body(&[message_start()]);
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    assert_eq!(why(Stream::anthropic, &(start.clone() + &body(&[overloaded]))), "Overloaded");
    for (new, body, expected) in [
        (
            Stream::openai_chat as New,
            body(&[
                json!({"error": {"message": "no\nluck"}, "choices": [{"delta": {}, "finish_reason": "error"}]}),
            ]),
            "no luck",
        ),
        (
            Stream::openai_chat,
            body(&[json!({"choices": [{"error": {"message": "cut by the provider"}}]})]),
            "cut by the provider",
        ),
        (
            Stream::openai_chat,
            "event: error\ndata: {\"message\": \"too busy\"}\n\n".to_owned(),
            "too busy",
        ),
        (
            Stream::openai_chat,
            "event: error\ndata: upstream is down\n\n".to_owned(),
            "upstream is down",
        ),
        (
            Stream::openai_chat,
            "data: <html>\n\n".to_owned(),
            "an event of the stream is no JSON object; it has 6 bytes",
        ),
        (
            Stream::openai_chat,
            "data: [1]\n\n".to_owned(),
            "an event of the stream is no JSON object; it has 3 bytes",
        ),
        (
            Stream::openai_responses,
            body(&[json!({"type": "error", "code": "rate_limit", "message": "slow down"})]),
            "slow down",
        ),
        (
            Stream::openai_responses,
            body(&[
                json!({"type": "response.failed", "response": {"status": "failed", "error": {"message": "too long"}}}),
            ]),
            "too long",
        ),
        (
            Stream::openai_responses,
            body(&[
                json!({"type": "response.failed", "response": {"status": "failed", "error": null}}),
            ]),
            "its status is failed",
        ),
    ] {
        assert_eq!(why(new, &body), expected);
    }
    let mut stream = Stream::openai_chat();
    stream.line("data: {\"choices\":[{\"delta\":{\"content\":\"It\"}}]}").unwrap();
    stream.line("").unwrap();
    assert!(stream.line("data: {\"error\":\"gone\"}").is_err());
    for line in
        ["", "data: {\"choices\":[{\"delta\":{\"content\":\" is\"}}]}", "", "data: [DONE]", ""]
    {
        let error = stream.line(line).unwrap_err().to_string();
        assert_eq!(error, "the response holds no answer of a model: gone");
    }
    assert_eq!((stream.text(), stream.is_complete()), ("It", false));
    assert!(matches!(stream.finish(), Err(Error::NoAnswer { why }) if why == "gone"));
}

#[test]
fn a_stream_that_is_cut_is_no_answer() {
    let cut = "the stream ended before the answer was complete";
    for new in PROVIDERS {
        assert_eq!(why(new, ""), cut);
        assert_eq!(why(new, ": keep-alive\n\n"), cut);
    }
    let responses = body(&responses_events());
    assert_eq!(why(Stream::openai_responses, &responses), cut);
    assert_eq!(
        why(Stream::openai_responses, &(responses + "data: {\"type\":\"response.comp")),
        cut
    );
    let chat = body(&[chunk(json!({"content": "It is"}))]);
    assert_eq!(why(Stream::openai_chat, &chat), cut);
    assert_eq!(
        why(Stream::openai_chat, &(chat.clone() + "data: {\"choices\":[{\"delta\":{\"con")),
        cut
    );
    // Servers that send an empty reason with each chunk.
    assert_eq!(
        why(
            Stream::openai_chat,
            &body(&[json!({"choices": [{"delta": {"content": "It"}, "finish_reason": ""}]})])
        ),
        cut
    );
    let anthropic = body(&[
        message_start(),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "It"}}),
        json!({"type": "content_block_stop", "index": 0}),
    ]);
    assert_eq!(why(Stream::anthropic, &anthropic), cut);
    // Only the end of the stream is missing: the answer is there.
    let stopping = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}});
    let (response, shown) = read(Stream::anthropic, &(anthropic + &body(&[stopping]))).unwrap();
    assert_eq!((shown.as_str(), &response["stop_reason"]), ("It", &json!("end_turn")));
}

#[test]
fn a_plain_body_is_the_response_or_its_error() {
    let whole = json!({"id": "c1", "choices": [{"message": {"content": "4"}}]});
    for body in
        [whole.to_string(), format!("{whole:#}"), format!("{whole:#}\r\n").replace('\n', "\r\n")]
    {
        let (response, shown) = read(Stream::openai_chat, &body).unwrap();
        assert_eq!((&response, shown.as_str()), (&whole, ""));
    }
    let error = json!({"error": {"message": "invalid key"}});
    for new in PROVIDERS {
        assert_eq!(why(new, &format!("{error:#}")), "invalid key");
        assert_eq!(why(new, "<html>502</html>"), "the body has no events; it has 16 bytes");
    }
}

#[test]
fn values_of_any_type_in_any_field_are_no_panic() {
    let values = [
        json!(null),
        json!(7),
        json!("x"),
        json!([1, "x", {}]),
        json!({"text": 1, "index": {}}),
        json!([[]]),
    ];
    let mut templates: Vec<Value> = responses_events();
    templates.extend([
        message_start(),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": 1}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "x"}, "usage": {"output_tokens": 1}}),
        chunk(json!({"content": [{"type": "text", "text": "a"}], "tool_calls": [{"index": 0, "id": "a", "function": {"name": "n", "arguments": "{}"}}], "audio": {"transcript": "t"}, "reasoning_details": [{"index": 0}]})),
    ]);
    for template in &templates {
        let Value::Object(fields) = template else { continue };
        for field in fields.keys() {
            for value in &values {
                let mut event = template.clone();
                event[field] = value.clone();
                for inner in ["content", "tool_calls", "choices", "delta", "function", "audio"] {
                    if let Some(choice) = event.pointer_mut("/choices/0/delta")
                        && choice.is_object()
                    {
                        choice[inner] = value.clone();
                    }
                    for new in PROVIDERS {
                        // Twice, so that what was stored meets it again.
                        let _ = read(
                            new,
                            &body(&[
                                template.clone(),
                                event.clone(),
                                event.clone(),
                                template.clone(),
                            ]),
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_stream_has_a_limit() {
    let mut stream = Stream::openai_chat();
    let line = format!(": {}", "x".repeat((64 << 20) - 2));
    for _ in 0..4 {
        assert_eq!(stream.line(&line).unwrap(), None);
    }
    let error = stream.line("x").unwrap_err().to_string();
    assert!(error.ends_with("the stream is over the limit of 268435456 bytes"), "{error}");
}
