//! What a bot writes for each turn, offline: its model is a script that answers in the format of the Anthropic API.
//!
//! ```console
//! $ cargo run -p talktree-model --example turns [STORE]
//! ```

use serde_json::{Value, json};
use talktree::{Author, AuthorLine, Block, BoxError, Message, Session, Store, ToolCall, Usage};
use talktree_model::{Provider, Request, append_answer, validate_for};

fn main() -> Result<(), BoxError> {
    let store = match std::env::args_os().nth(1) {
        Some(path) => Store::open(path)?,
        None => Store::open_in_memory()?,
    };
    let chat = store
        .session_builder("telegram:4711")
        .block("soul", Block::text("You are the assistant of a group that hikes."))
        .block("memory", Block::stored().describe("What you know of the group").max_tokens(500))
        .cached_prompt()
        .open()?;
    let ada = Author::new("42").named("Ada");

    let question = Message::user("I walk slowly. Is it warm in Jena tomorrow?").from(&ada);
    let question = chat.append(question)?.id;
    turn(&chat)?;

    println!("\n──── another answer ────");
    chat.retry()?;
    turn(&chat)?;

    println!("\n──── another question ────");
    chat.edit(&question, Message::user("Is it warm in Oslo tomorrow?").from(&ada))?;
    turn(&chat)?;

    println!("\n{}", chat.tree()?);
    let all = chat.all_messages().collect::<talktree::Result<Vec<Message>>>()?;
    let usage: Vec<Usage> = all.iter().filter_map(Usage::of).collect();
    let tokens = |of: fn(&Usage) -> u64| usage.iter().map(of).sum::<u64>();
    println!(
        "{} answers, {} tokens in, {} out",
        usage.len(),
        tokens(|it| it.input),
        tokens(|it| it.output)
    );
    println!("memory: {}", chat.block("memory")?.map(|block| block.content).unwrap_or_default());
    Ok(())
}

/// Answers the newest message: calls the model, runs what it asks for, and calls it again until it asks for nothing.
fn turn(chat: &Session) -> Result<(), BoxError> {
    let weather = json!({
        "name": "weather", "description": "Returns the weather of tomorrow.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
    });
    loop {
        let request = Request::of(chat)
            .tools([weather.clone()])
            .authors(AuthorLine::Name)
            .cached_history()
            .anthropic()?;
        let answer = append_answer(chat, send(request)?)?;
        if !answer.text().is_empty() {
            println!("assistant  {}", answer.text());
        }
        let Some(results) = chat.tools().answer(&answer, run)? else { return Ok(()) };
        println!("tools      {}", serde_json::to_string(&results.parts)?);
    }
}

/// Runs a tool of this program; those of the memory run by themselves.
fn run(call: &ToolCall) -> Result<Value, BoxError> {
    match (call.name.as_str(), call.input["city"].as_str()) {
        ("weather", Some("Jena")) => Ok(json!({"celsius": 24})),
        ("weather", Some(city)) => Err(format!("no station in {city}").into()),
        (name, _) => Err(format!("there is no tool {name:?}").into()),
    }
}

/// Returns the model's response; in a real program, an HTTP call.
fn send(mut request: Value) -> Result<Value, BoxError> {
    request["model"] = json!("script");
    request["max_tokens"] = json!(1024);
    if let Some(problem) = validate_for(Provider::Anthropic, &request).first() {
        return Err(problem.to_string().into());
    }
    let messages = request["messages"].as_array().ok_or("no messages")?;
    let (asked, last) = (messages[0].to_string(), messages[messages.len() - 1].to_string());
    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let say = |text: &str| json!({"type": "text", "text": text});
    let content = match last.contains("tool_result") {
        true if last.contains("24") => vec![say("Yes, Ada: 24 degrees.")],
        true => vec![say("I cannot tell: there is no station in Oslo.")],
        false if asked.contains("Oslo") => vec![call("c1", "weather", json!({"city": "Oslo"}))],
        false => vec![
            say("One moment."),
            call("c1", "set_context", json!({"label": "memory", "content": "Ada walks slowly."})),
            call("c2", "weather", json!({"city": "Jena"})),
        ],
    };
    let stop = if content.iter().any(|block| block["type"] == "tool_use") {
        "tool_use"
    } else {
        "end_turn"
    };
    Ok(json!({
        "type": "message", "role": "assistant", "model": "script", "stop_reason": stop,
        "content": content,
        "usage": {"input_tokens": 20, "cache_read_input_tokens": 100, "output_tokens": 10},
    }))
}
