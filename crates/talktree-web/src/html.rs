//! The page: one document with its script and style inside, and, for a file that opens without a network, a session.

use std::io::Write;

use serde_json::{Map, Value, json};
use talktree::{Error, Record, Result, Session};

use crate::server::random;
use crate::view::{self, Extent};

const PAGE: &str = include_str!("../page/page.html");
const STYLE: &str = include_str!("../page/style.css");

/// The modules, each after those that it imports.
const SCRIPTS: [&str; 8] = [
    include_str!("../page/dom.js"),
    include_str!("../page/markdown.js"),
    include_str!("../page/api.js"),
    include_str!("../page/sessions.js"),
    include_str!("../page/conversation.js"),
    include_str!("../page/tree.js"),
    include_str!("../page/usage.js"),
    include_str!("../page/app.js"),
];

/// A document, in which script and style have a nonce.
pub(crate) struct Html<'a> {
    pub(crate) nonce: &'a str,
    /// The session inside, as JSON; none if a server is asked.
    pub(crate) data: Option<&'a str>,
}

impl Html<'_> {
    /// Returns what the document may load.
    pub(crate) fn policy(&self, more: &str) -> String {
        let nonce = self.nonce;
        format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; {more} data:; \
             base-uri 'none'; form-action 'none'"
        )
    }

    pub(crate) fn text(&self) -> String {
        let [before, after] = self.halves();
        before + self.data.unwrap_or("null") + &after
    }

    /// Returns what comes before and after the data.
    fn halves(&self) -> [String; 2] {
        // One script, so that the document is one request or one file: the modules lose what connects them.
        let lines = SCRIPTS.iter().flat_map(|module| module.lines());
        let lines = lines.filter(|line| !line.starts_with("import "));
        let script: Vec<&str> =
            lines.map(|line| line.strip_prefix("export ").unwrap_or(line)).collect();
        let policy = match self.data {
            Some(_) => format!(
                r#"<meta http-equiv="Content-Security-Policy" content="{}">"#,
                self.policy("img-src")
            ),
            None => String::new(),
        };
        let page = PAGE.replace("{policy}", &policy).replace("{nonce}", self.nonce);
        let page = page.replace("{style}", STYLE).replace("{script}", &script.join("\n"));
        let (before, after) = page.split_once("{data}").unwrap_or((&page, ""));
        [before, after].map(str::to_owned)
    }
}

/// Writes a session with all its branches and summaries as one HTML file, which opens in a browser without a network.
///
/// `change` may change each record before it is written, to take out what others should not see.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_web::export_html;
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("</script> is a text here"))?;
/// let mut file = Vec::new();
/// export_html(&chat, &mut file, |_| {})?;
/// let file = String::from_utf8(file).unwrap();
/// assert!(file.contains(r"\u003c/script> is a text here"));
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// [`Error::UnknownSession`] if the session was never written to; [`Error::Io`] of `output`; as every read.
pub fn export_html(
    session: &Session,
    output: &mut impl Write,
    mut change: impl FnMut(&mut Record),
) -> Result<()> {
    let io_error = |source| Error::Io { path: "the output".into(), source };
    let nonce = random().map_err(io_error)?;
    let [before, after] = Html { nonce: &nonce, data: Some("") }.halves();
    session.export(output, |session, output| {
        output.write_all(before.as_bytes()).map_err(io_error)?;
        let mut write = |text: &str| output.write_all(text.as_bytes()).map_err(io_error);
        write(r#"{"messages":["#)?;
        let (mut rest, mut is_first) = (Rest::default(), true);
        session.records(|mut record| {
            change(&mut record);
            if let Record::Message { message, .. } = &record {
                write(if std::mem::take(&mut is_first) { "\n" } else { ",\n" })?;
                return write(&escaped(&view::message(message, Extent::Whole)));
            }
            rest.take(record);
            Ok(())
        })?;
        // Its previews are texts, too: the page makes them of the messages.
        let mut tree = json!(session.tree()?);
        previews(&mut tree, "");
        rest.fields.insert("tree".to_owned(), tree);
        write("]")?;
        for (name, value) in rest.fields {
            write(&format!(",\n{}:{}", json!(name), escaped(&value)))?;
        }
        write("}")?;
        output.write_all(after.as_bytes()).map_err(io_error)
    })?;
    output.flush().map_err(io_error)
}

/// Replaces every preview in an outline.
fn previews(value: &mut Value, by: &str) {
    match value {
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(name, value)| match name.as_str() {
                "preview" => *value = by.into(),
                _ => previews(value, by),
            });
        }
        Value::Array(values) => values.iter_mut().for_each(|value| previews(value, by)),
        _ => {}
    }
}

/// The records of a session that are no messages: details, summaries, elisions, labels, tags, the head.
#[derive(Default)]
struct Rest {
    fields: Map<String, Value>,
}

impl Rest {
    fn take(&mut self, record: Record) {
        let mut push = |list: &str, value: Value| {
            let list = self.fields.entry(list).or_insert_with(|| json!([]));
            list.as_array_mut().into_iter().for_each(|list| list.push(value.clone()));
        };
        match record {
            Record::Session { .. } => drop(self.fields.insert("info".to_owned(), json!(record))),
            Record::Compaction { compaction, .. } => push("compactions", json!(compaction)),
            Record::Elision { message, call, marker } => {
                push("elisions", json!({"message": message, "call": call, "marker": marker}));
            }
            Record::Label(label) => push("labels", json!(label)),
            Record::Tag(tag) => push("tags", json!(tag)),
            Record::Head { id } => drop(self.fields.insert("head".to_owned(), json!(id))),
            _ => {}
        }
    }
}

/// Returns JSON that cannot end the element that it is in.
fn escaped(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_asks_for_nothing_outside() {
        let page = Html { nonce: "n", data: None }.text();
        assert!(page.len() < 300_000, "{}", page.len());
        for outside in ["http://", "https://", "@import", "url("] {
            // What names another place is a test of a link, or the namespace of SVG.
            let found = page.lines().filter(|line| line.contains(outside));
            let found: Vec<&str> = found.filter(|line| !line.contains("www.w3.org")).collect();
            assert!(found.is_empty(), "{outside}: {found:?}");
        }
        assert!(!page.contains("innerHTML") && !page.contains("eval("));
    }
}
