//! What is requested: what the server is, its tools, resources and prompts.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};
use talktree::SessionFilter;
use talktree::search::parse_date;
use talktree_text::foreign::short_line;

use crate::access::{View, last_at};
use crate::answer::{self, Refused, minute, quoted};
use crate::find::{stamp, title};
use crate::protocol::{Answer, MODERN, NO_METHOD, WRONG_PARAMS, fault};
use crate::tools::{OFFERS, call, instructions, tools};

/// How many sessions are listed as resources at a time.
const PAGE: usize = 50;

/// The longest text of a resource or prompt, in tokens.
const READ: u64 = 6_000;

const SESSIONS: &str = "talktree://session/";

/// What is not written as it is in an address.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn server() -> Value {
    json!({"name": "talktree", "version": env!("CARGO_PKG_VERSION")})
}

/// Returns the result of a request.
pub(crate) fn result(view: &View, method: &str, params: &Value) -> Answer {
    let mut result = match method {
        "ping" => json!({}),
        "initialize" | "server/discover" => json!({
            "serverInfo": server(), "supportedVersions": [MODERN], "instructions": instructions(view),
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
        }),
        "tools/list" => json!({"tools": tools(view).collect::<Vec<_>>()}),
        "tools/call" => called(view, params)?,
        "resources/list" => resources(view, &params["cursor"])?,
        "resources/templates/list" => json!({"resourceTemplates": OFFERS["resourceTemplates"]}),
        "resources/read" => resource(view, &params["uri"])?,
        "prompts/list" => json!({"prompts": OFFERS["prompts"]}),
        "prompts/get" => prompt(view, &params["name"], &params["arguments"])?,
        _ => return Err(fault(NO_METHOD, &format!("there is no method {}", quoted(method)))),
    };
    result["resultType"] = "complete".into();
    result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": server()});
    // What a client keeps is out of date at once.
    (result["ttlMs"], result["cacheScope"]) = (0.into(), "private".into());
    Ok(result)
}

fn wrong(why: impl AsRef<str>) -> Value {
    fault(WRONG_PARAMS, why.as_ref())
}

fn called(view: &View, params: &Value) -> Answer {
    let name = params["name"].as_str().ok_or_else(|| wrong("a call has the \"name\" of a tool"))?;
    let called = call(view, name, &params["arguments"]);
    let (text, is_error) =
        match called.ok_or_else(|| wrong(format!("there is no tool {}", quoted(name))))? {
            Ok(text) => (text, false),
            Err(Refused(why)) => (short_line(&why, 1_000), true),
        };
    Ok(json!({"content": [{"type": "text", "text": text}], "isError": is_error}))
}

/// Calls a tool that is always offered.
fn tool(view: &View, name: &str, arguments: &Value) -> answer::Result<String> {
    call(view, name, arguments).unwrap_or_else(|| Err(Refused(format!("there is no tool {name}"))))
}

fn resources(view: &View, cursor: &Value) -> Answer {
    let until = cursor.as_str().map(|cursor| {
        let time = parse_date(cursor, chrono::Utc::now());
        time.ok_or_else(|| wrong("the cursor is none of this server"))
    });
    let filter = SessionFilter { until: until.transpose()?, ..SessionFilter::default() };
    let found = view.newest(&filter, PAGE).map_err(|Refused(why)| wrong(why))?;
    let listed = found.iter().take(PAGE).map(|session| {
        let info = &session.info;
        let name = info.name.as_ref().or(session.preview.as_ref());
        let last = minute(last_at(info));
        json!({
            "uri": format!("{SESSIONS}{}", utf8_percent_encode(info.id.as_str(), ESCAPED)),
            "name": short_line(info.id.as_str(), 80), "title": name.map(|name| title(view, name)).unwrap_or_default(),
            "description": format!("{} messages, the last on {last}", info.messages),
            "mimeType": "text/plain",
        })
    });
    let mut result = json!({"resources": listed.collect::<Vec<_>>()});
    if let Some(last) = found.get(PAGE - 1).filter(|_| found.len() > PAGE) {
        result["nextCursor"] = stamp(last_at(&last.info)).into();
    }
    Ok(result)
}

fn resource(view: &View, uri: &Value) -> Answer {
    let uri = uri.as_str().ok_or_else(|| wrong("\"uri\" is missing"))?;
    let unknown = |why: &str| wrong(format!("there is no resource {}{why}", quoted(uri)));
    let path = uri.strip_prefix(SESSIONS).ok_or_else(|| unknown(""))?;
    let parts = path.split('/').map(|part| percent_decode_str(part).decode_utf8());
    let parts = parts.collect::<Result<Vec<_>, _>>().map_err(|_| unknown(""))?;
    let (name, arguments) = match &parts[..] {
        [session] => ("read", json!({"session": session, "max_tokens": READ})),
        [session, tree] if tree == "tree" => {
            ("tree", json!({"session": session, "max_tokens": READ}))
        }
        [session, of, message] if of == "message" => {
            ("read", json!({"session": session, "message": message, "max_tokens": READ}))
        }
        _ => return Err(unknown("")),
    };
    let text = tool(view, name, &arguments).map_err(|Refused(why)| unknown(&format!(": {why}")))?;
    Ok(json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}))
}

fn prompt(view: &View, name: &Value, arguments: &Value) -> Answer {
    let given = |name: &str| arguments[name].as_str().filter(|text| !text.trim().is_empty());
    let refused = |Refused(why)| wrong(why);
    let text = match name.as_str() {
        Some("decided") => {
            let topic = given("topic").ok_or_else(|| wrong("\"topic\" is missing"))?;
            let found = tool(
                view,
                "search",
                &json!({"query": format!("What did we decide about {topic}?")}),
            )
            .map_err(refused)?;
            format!(
                "What did we decide about {topic}?\n\nAnswer from stored conversations. This is a first search; `search` finds more, \
                 and `read` shows what was said around a hit. A later decision replaces an earlier one; say so. Cite sessions and \
                 messages by their ids. If nothing was decided, say that.\n\n{found}"
            )
        }
        Some("continue") => {
            let newest = view.newest(&SessionFilter::default(), 1).map_err(refused)?;
            let newest = newest.first().map(|session| session.info.id.as_str());
            let session =
                given("session").or(newest).ok_or_else(|| wrong("there is no session"))?;
            let arguments = json!({"session": session, "max_tokens": READ});
            let read = tool(view, "read", &arguments).map_err(refused)?;
            format!(
                "Let us go on where this conversation stopped. Say in a few lines what was done, what was decided and what is open; \
                 then propose the next step, and wait for me. `read` shows what came before.\n\n{read}"
            )
        }
        _ => return Err(wrong("the prompts are `decided` and `continue`")),
    };
    Ok(json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}))
}
