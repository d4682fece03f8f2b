//! The answers of the model.

use serde_json::{Map, Value, json};

use super::Kind;
use super::request::{Said, Tool};

/// An answer.
pub(super) enum Answer {
    Text(String),
    Call { name: String, input: Value },
}

impl Answer {
    /// Returns the tokens of the answer, by talktree's estimate.
    pub(super) fn tokens(&self) -> u64 {
        match self {
            Self::Text(text) => talktree::estimate_tokens(text),
            Self::Call { input, .. } => talktree::estimate_tokens(&input.to_string()),
        }
    }

    pub(super) fn kind(&self, said: &Said) -> Kind {
        match self {
            Self::Call { .. } => Kind::Tool,
            Self::Text(_) if said.is_summary => Kind::Summary,
            Self::Text(_) => Kind::Text,
        }
    }
}

/// How many lines an answer has.
pub(crate) const LINES: u32 = 6;

/// How many lines a long answer has; together they are longer than a message of Telegram.
pub(crate) const LONG_LINES: u32 = 75;

/// The words that ask for a long answer.
pub(crate) const AT_LENGTH: &str = "at length";

/// Returns the answer to a request.
pub(super) fn answer(said: &Said) -> Answer {
    if said.is_summary {
        return Answer::Text(summary(said));
    }
    let mark = said.mark.map_or_else(|| "without-mark".to_owned(), |mark| mark.to_string());
    if said.result.is_none()
        && let Some(call) = call(said, &mark)
    {
        return call;
    }
    let mut text = format!("answer {mark}\n");
    if let Some(result) = &said.result {
        let said: String = result.chars().take(200).collect();
        text.push_str(&format!("The tool said: {}\n", said.replace('\n', " ")));
    }
    for (chat, (first, last)) in &said.chats {
        text.push_str(&format!("I see chat {chat}, turns {first} to {last}.\n"));
    }
    let turn = said.mark.map_or(0, |mark| mark.turn);
    let lines = if said.text.contains(AT_LENGTH) { LONG_LINES } else { LINES };
    for line in 0..lines {
        text.push_str(&format!("Line {line} of {mark} is about the {}.\n", thing(turn + line)));
    }
    Answer::Text(text + &format!("end {mark}"))
}

fn thing(number: u32) -> &'static str {
    const THINGS: [&str; 8] = [
        "river that bends behind the mill",
        "lamp on the table by the window",
        "letter that came on a Tuesday",
        "garden with the crooked pear tree",
        "road to the harbour in the north",
        "clock that stopped at half past nine",
        "kettle, which sings when it is cold",
        "bridge of eleven arches",
    ];
    THINGS[number as usize % THINGS.len()]
}

fn summary(said: &Said) -> String {
    let chats: Vec<String> = said
        .chats
        .iter()
        .map(|(chat, (first, last))| {
            format!("from chat{chat}-turn{first} to chat{chat}-turn{last}")
        })
        .collect();
    format!(
        "## Topic\nA talk {}.\n\n## Key Points\nEach message had its mark, and each answer repeated it.\n\n\
         ## Current State\nAll messages were answered.\n\n## Open Items\nNone",
        chats.join(", ")
    )
}

/// Returns the call that the words of a person ask for, if the tool is offered.
fn call(said: &Said, mark: &str) -> Option<Answer> {
    let tool = |name| said.tools.iter().find(|tool| tool.name == name);
    if said.text.contains("remember this") {
        let tool = tool("set_context")?;
        let content = format!("{mark}: they want this to be remembered.");
        let fields = [("label", json!(label(tool)?)), ("content", json!(content))];
        return Some(tool.call(fields));
    }
    let (_, rest) = said.text.split_once("search for ")?;
    let words = rest.lines().next().unwrap_or_default();
    Some(tool("session_search")?.call([("query", json!(words))]))
}

/// Returns the block to write to: the memory, or the first.
fn label(tool: &Tool) -> Option<&str> {
    let labels = tool.schema["properties"]["label"]["enum"].as_array()?;
    let mut labels = labels.iter().filter_map(Value::as_str);
    let first = labels.next()?;
    Some(if first == "memory" {
        first
    } else {
        labels.find(|label| *label == "memory").unwrap_or(first)
    })
}

impl Tool {
    /// Returns a call with these fields, and null for what a strict schema requires besides.
    fn call<const N: usize>(&self, fields: [(&str, Value); N]) -> Answer {
        let mut input: Map<String, Value> =
            fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        for name in self.schema["required"].as_array().into_iter().flatten() {
            if let Some(name) = name.as_str().filter(|name| !input.contains_key(*name)) {
                input.insert(name.to_owned(), Value::Null);
            }
        }
        Answer::Call { name: self.name.clone(), input: input.into() }
    }
}

/// Returns a text in pieces, as a model streams it.
pub(super) fn pieces(text: &str) -> Vec<&str> {
    /// About how many bytes a piece has: longer than a word, so that a long answer has not thousands.
    const PIECE: usize = 48;
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.len() > PIECE {
        let at = (PIECE..rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        let (piece, later) = rest.split_at(at);
        pieces.push(piece);
        rest = later;
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}
