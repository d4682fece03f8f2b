//! The parameters of a call: JSON, or a form with files.

use serde_json::{Map, Value};

use crate::http::Incoming;

/// A file that was sent.
pub(super) struct File {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// The parameters of a call.
#[derive(Default)]
pub(super) struct Form {
    fields: Map<String, Value>,
    pub(super) file: Option<File>,
}

impl Form {
    /// Reads the parameters; `Err` says what is wrong with them.
    pub(super) fn read(incoming: &Incoming) -> Result<Self, String> {
        let kind = incoming.header("content-type").unwrap_or_default();
        if let Some(boundary) = boundary(kind) {
            return multipart(&incoming.body, boundary);
        }
        if incoming.body.is_empty() {
            return Ok(Self::default());
        }
        let fields = serde_json::from_slice(&incoming.body)
            .map_err(|error| format!("can't parse parameters as JSON: {error}"))?;
        Ok(Self { fields, file: None })
    }

    /// Returns a number; a form has numbers as texts.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        let value = self.fields.get(name)?;
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str()
    }

    /// Returns an object; a form has objects as texts.
    pub(super) fn object(&self, name: &str) -> Option<Value> {
        let value = self.fields.get(name)?;
        match value.as_str() {
            Some(text) => serde_json::from_str(text).ok(),
            None => Some(value.clone()),
        }
    }
}

fn boundary(kind: &str) -> Option<&str> {
    let rest = kind.strip_prefix("multipart/form-data")?;
    let value = rest.split(';').find_map(|field| field.trim().strip_prefix("boundary="))?;
    Some(value.trim_matches('"'))
}

fn multipart(body: &[u8], boundary: &str) -> Result<Form, String> {
    let mut form = Form::default();
    let mark = format!("--{boundary}");
    let mut rest = body;
    let mut is_first = true;
    while let Some(at) = position(rest, mark.as_bytes()) {
        let part = &rest[..at];
        rest = &rest[at + mark.len()..];
        if !std::mem::take(&mut is_first) {
            take(&mut form, part)?;
        }
    }
    match rest.starts_with(b"--") {
        true => Ok(form),
        false => Err("a form without its end".to_owned()),
    }
}

/// Takes a part, between two marks.
fn take(form: &mut Form, part: &[u8]) -> Result<(), String> {
    let part = part.strip_prefix(b"\r\n").and_then(|part| part.strip_suffix(b"\r\n"));
    let split = part.and_then(|part| Some((part, position(part, b"\r\n\r\n")?)));
    let (part, at) = split.ok_or("a part of a form without head or end")?;
    let head = String::from_utf8_lossy(&part[..at]);
    let bytes = &part[at + 4..];
    let name = quoted(&head, " name=").ok_or("a part of a form without a name")?;
    match quoted(&head, "filename=") {
        Some(file) => form.file = Some(File { name: file.to_owned(), bytes: bytes.to_vec() }),
        None => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            form.fields.insert(name.to_owned(), text.into());
        }
    }
    Ok(())
}

/// Returns the quoted value after `name=`.
fn quoted<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let rest = head[head.find(name)? + name.len()..].strip_prefix('"')?;
    rest.split('"').next()
}

fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_fields_and_a_file() {
        let body = "--x\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n-7\r\n\
                    --x\r\nContent-Disposition: form-data; name=\"document\"; filename=\"a.md\"\r\n\
                    Content-Type: text/markdown\r\n\r\nline\r\n\r\n--y\r\n--x--\r\n";
        let form = multipart(body.as_bytes(), "x").unwrap();
        assert_eq!(form.number("chat_id"), Some(-7));
        let file = form.file.unwrap();
        assert_eq!((file.name.as_str(), file.bytes.as_slice()), ("a.md", &b"line\r\n\r\n--y"[..]));
        assert!(multipart(&body.as_bytes()[..body.len() - 4], "x").is_err());
    }
}
