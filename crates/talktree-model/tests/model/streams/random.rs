//! Random responses: they come out of a stream as they went in.

use super::*;

/// A random generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }

    fn text(&mut self) -> String {
        const WORDS: [&str; 10] =
            ["It", " is", " 4.", "\n", "\r\n", "\"", "\\u00e9", "é", "👩‍👧", "data: x\n\n"];
        let count = 1 + self.below(6);
        (0..count).map(|_| WORDS[self.below(WORDS.len())]).collect()
    }

    fn input(&mut self) -> Value {
        match self.below(3) {
            0 => json!({}),
            1 => json!({ self.text(): self.text(), "n": self.below(100) }),
            _ => json!({"list": [self.text(), {"deep": [null, true, 1.5]}]}),
        }
    }

    /// Splits a text into pieces, which may be empty.
    fn pieces(&mut self, text: &str) -> Vec<String> {
        let (mut pieces, mut piece) = (Vec::new(), String::new());
        for c in text.chars() {
            piece.push(c);
            while self.below(3) == 0 {
                pieces.push(std::mem::take(&mut piece));
            }
        }
        pieces.push(piece);
        pieces
    }

    /// Returns a body with these events, in one of the ways in which bodies are written.
    fn body(&mut self, events: Vec<Value>) -> String {
        let mut body = String::new();
        for event in events {
            match self.below(8) {
                0 => body.push_str(": ping\n\n"),
                1 => body.push_str("event: tomorrow\ndata: {\"type\":\"tomorrow\"}\n\n"),
                _ => {}
            }
            let text = match self.below(4) {
                0 => format!("{event:#}").replace('\n', "\ndata: "),
                _ => event.to_string(),
            };
            body.push_str(&format!("data: {text}\n\n"));
        }
        if self.below(3) == 0 { body.replace('\n', "\r\n") } else { body }
    }

    fn anthropic(&mut self) -> (Value, Vec<Value>) {
        let mut blocks = Vec::new();
        let mut events = vec![message_start()];
        for index in 0..1 + self.below(4) {
            let mut deltas = Vec::new();
            let (start, block) = match self.below(5) {
                0 => {
                    let thinking = self.text();
                    for piece in self.pieces(&thinking) {
                        deltas.push(json!({"type": "thinking_delta", "thinking": piece}));
                    }
                    deltas.push(json!({"type": "signature_delta", "signature": "S"}));
                    (
                        json!({"type": "thinking", "thinking": "", "signature": ""}),
                        json!({"type": "thinking", "thinking": thinking, "signature": "S"}),
                    )
                }
                1 => {
                    let input = self.input();
                    if input != json!({}) {
                        for piece in self.pieces(&input.to_string()) {
                            deltas.push(json!({"type": "input_json_delta", "partial_json": piece}));
                        }
                    }
                    let of = |input: &Value| json!({"type": "tool_use", "id": format!("t{index}"), "name": "get", "input": input});
                    (of(&json!({})), of(&input))
                }
                2 => {
                    let block = json!({"type": "web_search_tool_result", "content": [self.text()]});
                    (block.clone(), block)
                }
                _ => {
                    let text = self.text();
                    for piece in self.pieces(&text) {
                        deltas.push(json!({"type": "text_delta", "text": piece}));
                    }
                    (json!({"type": "text", "text": ""}), json!({"type": "text", "text": text}))
                }
            };
            events.push(
                json!({"type": "content_block_start", "index": index, "content_block": start}),
            );
            events.extend(deltas.into_iter().map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ));
            events.push(json!({"type": "content_block_stop", "index": index}));
            blocks.push(block);
        }
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 50}}));
        events.push(json!({"type": "message_stop"}));
        let mut whole = message_start()["message"].take();
        whole["content"] = Value::Array(blocks);
        whole["stop_reason"] = json!("end_turn");
        whole["usage"]["output_tokens"] = json!(50);
        (whole, events)
    }

    fn chat(&mut self) -> (Value, Vec<Value>) {
        let mut message = json!({"role": "assistant", "content": null});
        let mut deltas = vec![json!({"role": "assistant"})];
        for field in ["reasoning_content", "content", "refusal"] {
            if self.below(3) > 0 {
                let text = self.text();
                for piece in self.pieces(&text) {
                    deltas.push(json!({ field: piece }));
                }
                message[field] = json!(text);
            }
        }
        for index in 0..self.below(4) {
            let input = self.input().to_string();
            let id = format!("call_{index}");
            let call =
                |function: Value| json!({"id": id, "type": "function", "function": function});
            let mut first = call(json!({"name": "get", "arguments": ""}));
            first["index"] = json!(index);
            deltas.push(json!({"tool_calls": [first]}));
            for piece in self.pieces(&input) {
                deltas.push(
                    json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
                );
            }
            let list = &mut message["tool_calls"];
            if list.is_null() {
                *list = json!([]);
            }
            list.as_array_mut().unwrap().push(call(json!({"name": "get", "arguments": input})));
        }
        let usage = json!({"prompt_tokens": 3, "completion_tokens": 4});
        let whole = json!({"id": "c1", "object": "chat.completion", "created": 7, "model": "small",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage});
        let mut events: Vec<Value> = deltas.into_iter().map(chunk).collect();
        events.push(
            json!({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        );
        events.push(json!({"id": "c1", "choices": [], "usage": usage}));
        (whole, events)
    }

    fn responses(&mut self) -> (Value, Vec<Value>) {
        let (mut output, mut events) = (Vec::new(), Vec::new());
        events.push(json!({"type": "response.created", "response": {"id": "r1", "status": "in_progress", "output": []}}));
        for index in 0..1 + self.below(4) {
            let mut event = |mut event: Value| {
                event["output_index"] = json!(index);
                events.push(event);
            };
            let item = match self.below(3) {
                0 => {
                    let input = self.input().to_string();
                    let of = |input: &str| json!({"type": "function_call", "call_id": "a", "name": "get", "arguments": input});
                    event(json!({"type": "response.output_item.added", "item": of("")}));
                    for piece in self.pieces(&input) {
                        event(
                            json!({"type": "response.function_call_arguments.delta", "delta": piece}),
                        );
                    }
                    of(&input)
                }
                1 => {
                    let text = self.text();
                    event(
                        json!({"type": "response.output_item.added", "item": {"type": "reasoning", "summary": []}}),
                    );
                    event(
                        json!({"type": "response.reasoning_summary_part.added", "summary_index": 0, "part": {"type": "summary_text", "text": ""}}),
                    );
                    for piece in self.pieces(&text) {
                        event(
                            json!({"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": piece}),
                        );
                    }
                    json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]})
                }
                _ => {
                    let of = |content: &[Value]| json!({"type": "message", "id": format!("msg_{index}"), "role": "assistant", "content": content});
                    event(json!({"type": "response.output_item.added", "item": of(&[])}));
                    let mut content = Vec::new();
                    for part in 0..1 + self.below(2) {
                        let (kind, field, name) = match self.below(4) {
                            0 => ("refusal", "refusal", "response.refusal.delta"),
                            _ => ("output_text", "text", "response.output_text.delta"),
                        };
                        let text = self.text();
                        event(
                            json!({"type": "response.content_part.added", "content_index": part, "part": {"type": kind, field: ""}}),
                        );
                        for piece in self.pieces(&text) {
                            event(json!({"type": name, "content_index": part, "delta": piece}));
                        }
                        content.push(json!({"type": kind, field: text}));
                    }
                    of(&content)
                }
            };
            if self.below(2) == 0 {
                event(json!({"type": "response.output_item.done", "item": item.clone()}));
            }
            output.push(item);
        }
        let whole = json!({"id": "r1", "status": "completed", "output": output, "usage": {"output_tokens": 4}});
        let mut last = whole.clone();
        if self.below(3) == 0 {
            last["output"] = json!([]);
        }
        events.push(json!({"type": "response.completed", "response": last}));
        (whole, events)
    }
}

#[test]
fn a_streamed_response_is_the_whole_one_and_its_pieces_are_the_text() {
    for seed in 0..600 {
        let mut random = Random(seed);
        for (new, (whole, events)) in [
            (PROVIDERS[0], random.anthropic()),
            (PROVIDERS[1], random.chat()),
            (PROVIDERS[2], random.responses()),
        ] {
            let mut body = random.body(events);
            if random.below(2) == 0 {
                body.push_str("data: [DONE]\n\n");
            }
            let (response, shown) = read(new, &body).unwrap();
            assert_eq!(response, whole, "seed {seed}");
            assert_eq!(shown, from_response(&whole).unwrap().text(), "seed {seed}");
            // Cut anywhere, it is an error or the same answer.
            let cut = body.char_indices().map(|(at, _)| at).nth(random.below(body.len()));
            if let Ok((response, _)) = read(new, &body[..cut.unwrap_or_default()]) {
                assert_eq!(
                    from_response(&response).unwrap().parts,
                    from_response(&whole).unwrap().parts,
                    "seed {seed}"
                );
            }
        }
    }
}
