//! Content in the form of APIs: a string, or a list of typed blocks.

use std::collections::HashMap;

use super::fields::{self, Fields, data_part, text_part, text_part_with};
use crate::message::{Extra, File, Json, Part, Reasoning, Tool};

/// The names of tools, by the id of the call.
pub type ToolNames = HashMap<String, String>;

/// Returns the parts of a message's content.
pub fn parts(content: Option<&Json>, names: &ToolNames) -> Vec<Part> {
    let Some(content) = content else { return Vec::new() };
    match fields::list(content) {
        Some(blocks) => blocks.iter().map(|block| part(block, names)).collect(),
        None if content.as_str() == "\"\"" => Vec::new(),
        None => vec![text_part(content)],
    }
}

/// Returns whether all parts are results of tools.
pub fn are_results(parts: &[Part]) -> bool {
    let is_result = |part: &Part| match part {
        Part::Tool(tool) => tool.input.is_none(),
        _ => false,
    };
    !parts.is_empty() && parts.iter().all(is_result)
}

/// Records the names of the tools that a message calls.
pub fn collect_names(content: Option<&Json>, names: &mut ToolNames) {
    let blocks = content.and_then(fields::list).unwrap_or_default();
    for block in blocks.iter().filter_map(Fields::of) {
        let kind = block.text("type");
        if matches!(kind.as_deref(), Some("tool_use" | "toolCall"))
            && let (Some(id), Some(name)) = (block.id("id"), block.text("name"))
        {
            names.insert(id, name);
        }
    }
}

/// Returns the name of the tool of a call.
pub fn name_of(names: &ToolNames, call: &str) -> String {
    names.get(call).cloned().unwrap_or_else(|| "unknown".to_owned())
}

/// Returns the part of one block.
pub fn part(json: &Json, names: &ToolNames) -> Part {
    let Some(block) = Fields::of(json) else { return text_part(json) };
    let kind = block.text("type").unwrap_or_default();
    let typed = match kind.as_str() {
        "text" | "input_text" | "output_text" => {
            block.get("text").map(|text| text_part_with(text, block.except(&["type", "text"])))
        }
        "refusal" => refused(block.text("refusal"), extra(&block, &["type", "refusal"])),
        "thinking" => reasoning(&block, "thinking"),
        "reasoning" => reasoning(&block, "text"),
        "tool_use" => call(&block, "input"),
        "toolCall" => call(&block, "arguments"),
        "tool_result" => Some(result_block(&block, names)),
        "image" | "document" => file(&block),
        "image_url" | "input_image" => image_url(&block),
        "file" => openai_file(&block),
        // Also the calls of tools that the provider ran itself, with their results: the program has no such tools, and the
        // provider takes back only its own blocks.
        _ => None,
    };
    // A block with an extra field that has the name of a field of the part is kept unchanged.
    typed.filter(|part| part.reserved_field().is_none()).unwrap_or_else(|| match kind.is_empty() {
        true => data_part("value", json),
        false => Part::Other(json.clone()),
    })
}

/// Returns the words with which a model of OpenAI refuses, as answers of the Responses API have them.
pub fn refused(words: Option<String>, mut extra: Extra) -> Option<Part> {
    let mut part = Part::text(words.filter(|words| !words.is_empty())?);
    if let Part::Text(text) = &mut part {
        extra.insert("refusal".to_owned(), Json::from(serde_json::Value::Bool(true)));
        text.extra = extra;
    }
    Some(part)
}

fn reasoning(block: &Fields, field: &str) -> Option<Part> {
    let (text, extra) = (block.text(field)?, extra(block, &["type", field]));
    Some(Part::Reasoning(Reasoning { text, extra }))
}

fn call(block: &Fields, input: &str) -> Option<Part> {
    let empty = || Json::from(serde_json::Value::Object(serde_json::Map::new()));
    let mut part = Part::tool_call(
        block.text("name")?,
        block.id("id")?,
        block.get(input).cloned().unwrap_or_else(empty),
    );
    if let Part::Tool(tool) = &mut part {
        // `partialJson` is the incomplete call during streaming.
        tool.extra = extra(block, &["type", "id", "name", input, "partialJson"]);
    }
    Some(part)
}

fn result_block(block: &Fields, names: &ToolNames) -> Part {
    let id = block.id("tool_use_id").unwrap_or_default();
    result(name_of(names, &id), id, block.get("content"), block.is_true("is_error"))
}

/// Returns the result of a tool; content of one text block becomes its text.
pub fn result(name: String, id: String, content: Option<&Json>, is_error: bool) -> Part {
    let output = content.map_or_else(|| Json::from(serde_json::Value::from("")), plain);
    if !is_error {
        return Part::tool_result(name, id, output);
    }
    let mut tool = Tool::default();
    (tool.name, tool.call_id) = (name, id);
    tool.state = Some("output-error".to_owned());
    tool.error_text = Some(fields::text(&output).unwrap_or_else(|| output.to_string()));
    Part::Tool(tool)
}

/// Returns the text if the content is one text block, else the content.
fn plain(content: &Json) -> Json {
    let blocks = fields::list(content).unwrap_or_default();
    if let [block] = blocks.as_slice()
        && let Some(block) = Fields::of(block)
        && matches!(block.text("type").as_deref(), Some("text" | "input_text"))
        && let Some(text) = block.get("text")
    {
        return text.clone();
    }
    content.clone()
}

/// Returns an image or document of the Anthropic or the Pi shape.
fn file(block: &Fields) -> Option<Part> {
    if let (Some(data), Some(media)) = (block.text("data"), block.text("mimeType")) {
        return Some(data_url(&media, &data));
    }
    let source = block.object("source")?;
    match (source.text("media_type"), source.text("data"), source.text("url")) {
        (Some(media), Some(data), _) if source.text("type").as_deref() == Some("base64") => {
            Some(data_url(&media, &data))
        }
        (media, _, Some(url)) => {
            let any =
                || format!("{}/*", if url.ends_with(".pdf") { "application" } else { "image" });
            Some(Part::file(media.unwrap_or_else(any), url))
        }
        _ => None,
    }
}

fn data_url(media: &str, data: &str) -> Part {
    Part::file(media, format!("data:{media};base64,{data}"))
}

fn image_url(block: &Fields) -> Option<Part> {
    let (url, extra) = match block.object("image_url") {
        Some(image) => (image.text("url")?, extra(&image, &["url"])),
        None => (block.text("image_url")?, Extra::new()),
    };
    let media_type = media_of(&url).unwrap_or("image/*").to_owned();
    Some(Part::File(File { media_type, url, extra, ..File::default() }))
}

fn openai_file(block: &Fields) -> Option<Part> {
    let given = block.object("file")?;
    let mut file = File::default();
    file.url = given.text("file_data")?;
    file.media_type = media_of(&file.url)?.to_owned();
    file.filename = given.text("filename");
    Some(Part::File(file))
}

fn media_of(url: &str) -> Option<&str> {
    url.strip_prefix("data:")?.split([';', ',']).next().filter(|media| !media.is_empty())
}

fn extra(block: &Fields, known: &[&str]) -> Extra {
    block.except(known).into_iter().collect()
}

/// Returns the ids of the calls whose results a message has.
pub fn answered(content: Option<&Json>) -> Vec<String> {
    let blocks = content.and_then(fields::list).unwrap_or_default();
    let results = blocks.iter().filter_map(Fields::of);
    results
        .filter(|block| block.text("type").as_deref() == Some("tool_result"))
        .filter_map(|block| block.id("tool_use_id"))
        .collect()
}
