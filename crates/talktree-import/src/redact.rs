//! Keys and tokens in texts: found by the beginnings and lengths that their issuers document, and replaced before they are stored.
//!
//! Only what has a form of its own is found. A password that is only a word is not, unless it is in the address of a server.

use std::borrow::Cow;
use std::collections::BTreeMap;

use talktree::{Extra, Json, Message, Part, Record, SessionDetails};

use crate::fields;

/// How many secrets of each kind were replaced.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// The kind of a token that begins in a way of its own, its beginnings, and how many characters follow at least, and which.
type Rule = (&'static str, &'static [&'static str], usize, fn(u8) -> bool);

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn url_safe(byte: u8) -> bool {
    word(byte) || byte == b'-'
}

fn dotted(byte: u8) -> bool {
    url_safe(byte) || byte == b'.'
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

/// Of two that begin alike, the longer one is first.
const RULES: &[Rule] = &[
    ("anthropic-key", &["sk-ant-"], 20, url_safe),
    ("openrouter-key", &["sk-or-v1-"], 32, alphanumeric),
    ("openai-key", &["sk-"], 20, url_safe),
    ("stripe-key", &["sk_live_", "sk_test_", "rk_live_"], 16, alphanumeric),
    ("github-token", &["github_pat_"], 22, word),
    ("github-token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], 30, alphanumeric),
    ("gitlab-token", &["glpat-"], 20, dotted),
    ("slack-token", &["xoxb-", "xoxp-", "xoxa-", "xoxe-", "xoxs-", "xapp-"], 10, url_safe),
    ("aws-key", &["AKIA", "ASIA"], 16, upper),
    ("google-key", &["AIza"], 35, url_safe),
    ("google-token", &["ya29."], 20, url_safe),
    ("google-secret", &["GOCSPX-"], 20, url_safe),
    ("npm-token", &["npm_"], 36, alphanumeric),
    ("pypi-token", &["pypi-"], 50, url_safe),
    ("hugging-face-token", &["hf_"], 30, alphanumeric),
    ("groq-key", &["gsk_"], 40, alphanumeric),
    ("xai-key", &["xai-"], 40, alphanumeric),
    ("sendgrid-key", &["SG."], 40, dotted),
    ("digitalocean-token", &["dop_v1_"], 60, alphanumeric),
    ("shopify-token", &["shpat_"], 32, alphanumeric),
    ("atlassian-token", &["ATATT3"], 50, |byte| url_safe(byte) || byte == b'='),
    ("age-key", &["AGE-SECRET-KEY-1"], 50, upper),
];

/// How many letters after its beginning tell a token from a name. A text may consist of beginnings: none is read further.
const LOOKED_AT: usize = 100;
/// The length of a Telegram bot's token after its colon.
const TELEGRAM: usize = 35;

/// A secret in a text.
struct Found {
    kind: &'static str,
    start: usize,
    end: usize,
}

/// Returns the text without its keys and tokens, and counts them.
fn redacted<'t>(text: &'t str, counts: &mut Counts) -> Cow<'t, str> {
    let (mut clean, mut kept, mut at, mut settled) = (String::new(), 0, 0, 0);
    while at < text.len() {
        let found = secret_at(text, at, &mut settled);
        let Some(found) = found.filter(|found| found.start >= kept) else {
            at += 1;
            continue;
        };
        *counts.entry(found.kind).or_default() += 1;
        clean.extend([&text[kept..found.start], "[redacted ", found.kind, "]"]);
        (kept, at) = (found.end, found.end.max(at + 1));
    }
    if kept == 0 {
        return text.into();
    }
    clean.push_str(&text[kept..]);
    clean.into()
}

/// Returns the secret that begins at a byte, or whose mark is there. Before `settled` no web token begins.
fn secret_at(text: &str, at: usize, settled: &mut usize) -> Option<Found> {
    let bytes = text.as_bytes();
    // In a string of JSON that is itself JSON a line ends with `\n` in letters.
    let is_escaped = at > 1 && bytes[at - 2] == b'\\';
    let begins_word = at == 0 || !word(bytes[at - 1]) || is_escaped;
    match bytes[at] {
        b':' if text[at..].starts_with("://") => return password(text, at + 3),
        b':' => return telegram(bytes, at),
        b'-' if text[at..].starts_with("-----BEGIN ") => return private_key(text, at),
        b'e' if begins_word && text[at..].starts_with("eyJ") => {
            return (at >= *settled).then(|| web_token(bytes, at, settled)).flatten();
        }
        byte if !begins_word || !byte.is_ascii_alphabetic() => return None,
        _ => {}
    }
    let begins = |start: &&&str| bytes[at..].starts_with(start.as_bytes());
    let (start, &(kind, _, least, letters)) =
        RULES.iter().find_map(|rule| Some((rule.1.iter().find(begins)?, rule)))?;
    let body = at + start.len();
    let looked_at = run(&bytes[..bytes.len().min(body + LOOKED_AT)], body, letters);
    // A name such as `sk-loading-circle-large` has no digit.
    let is_random = bytes[body..looked_at].iter().any(u8::is_ascii_digit);
    let is_token = looked_at - body >= least && is_random;
    is_token.then(|| Found { kind, start: at, end: run(bytes, body, letters) })
}

/// Returns where the bytes of a kind end.
fn run(bytes: &[u8], start: usize, letters: fn(u8) -> bool) -> usize {
    let length = bytes[start..].iter().position(|byte| !letters(*byte));
    length.map_or(bytes.len(), |length| start + length)
}

/// Returns the password of an address such as `postgres://user:password@host`.
fn password(text: &str, start: usize) -> Option<Found> {
    let rest = &text[start..];
    let end = rest.find(|c: char| c.is_whitespace() || "/?#\"'<>`\\".contains(c));
    let (user, _) = rest[..end.unwrap_or(rest.len())].rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    // A variable or a blank to fill in.
    let is_blank = password.is_empty() || password.starts_with(['$', '{', '[', '*', '%']);
    let at = start + name.len() + 1;
    (!is_blank).then_some(Found { kind: "url-password", start: at, end: at + password.len() })
}

/// Returns the token of a Telegram bot, by its colon.
fn telegram(bytes: &[u8], colon: usize) -> Option<Found> {
    let digits = bytes[..colon].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let end = run(bytes, colon + 1, url_safe);
    let is_token = (8..=10).contains(&digits) && end - colon - 1 == TELEGRAM;
    is_token.then_some(Found { kind: "telegram-token", start: colon - digits, end })
}

/// Returns a JSON web token: three parts, of which two are JSON objects in base64.
fn web_token(bytes: &[u8], start: usize, settled: &mut usize) -> Option<Found> {
    let header = run(bytes, start, url_safe);
    // Whatever begins in this part, what follows it is the same.
    *settled = header;
    let body = bytes[header..].starts_with(b".eyJ").then(|| run(bytes, header + 1, url_safe))?;
    let signature = (bytes.get(body) == Some(&b'.')).then_some(body + 1)?;
    let is_token = run(bytes, signature, url_safe) - signature >= 10;
    is_token.then(|| Found { kind: "json-web-token", start, end: run(bytes, signature, dotted) })
}

/// Returns a private key in PEM; one that is cut off goes to the end of the text.
fn private_key(text: &str, start: usize) -> Option<Found> {
    let rest = &text[start..];
    let (heading, body) = rest["-----".len()..].split_once("-----")?;
    if !heading.ends_with("PRIVATE KEY") && !heading.ends_with("PRIVATE KEY BLOCK") {
        return None;
    }
    let end = body.find("-----END ").and_then(|end| {
        let closing = &body[end + "-----END ".len()..];
        closing.find("-----").map(|dashes| end + "-----END ".len() + dashes + "-----".len())
    });
    let body_start = text.len() - body.len();
    Some(Found { kind: "private-key", start, end: end.map_or(text.len(), |end| body_start + end) })
}

/// Replaces the secrets of a text.
fn text(text: &mut String, counts: &mut Counts) {
    if let Cow::Owned(clean) = redacted(text, counts) {
        *text = clean;
    }
}

/// Replaces the secrets in the strings of a value; all else of it stays as it is written.
fn json(value: &mut Json, counts: &mut Counts) {
    let written = value.as_str();
    let (mut clean, mut kept, mut at) = (String::new(), 0, 0);
    while let Some(open) = written[at..].find('"').map(|open| at + open) {
        let Some(close) = end_of_string(&written[open..]).map(|length| open + length) else {
            break;
        };
        at = close;
        let said = Json::parse(&written[open..close]).ok().and_then(|said| fields::text(&said));
        let Some(said) = said else { continue };
        if let Cow::Owned(said) = redacted(&said, counts) {
            clean.push_str(&written[kept..open]);
            clean.push_str(&serde_json::Value::from(said).to_string());
            kept = close;
        }
    }
    if kept > 0 {
        clean.push_str(&written[kept..]);
        *value = Json::parse(&clean).unwrap_or_else(|_| value.clone());
    }
}

/// Returns the length of the string that a text begins with.
fn end_of_string(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().enumerate().skip(1).find_map(|(at, byte)| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end.then_some(at + 1)
    })
}

fn extra(fields: &mut Extra, counts: &mut Counts) {
    fields.values_mut().for_each(|value| json(value, counts));
}

fn part(part: &mut Part, counts: &mut Counts) {
    match part {
        Part::Text(it) => {
            text(&mut it.text, counts);
            extra(&mut it.extra, counts);
        }
        Part::Reasoning(it) => {
            text(&mut it.text, counts);
            extra(&mut it.extra, counts);
        }
        Part::Tool(tool) => {
            let values = [&mut tool.input, &mut tool.output].into_iter().flatten();
            values.for_each(|value| json(value, counts));
            tool.error_text.iter_mut().for_each(|error| text(error, counts));
            extra(&mut tool.extra, counts);
        }
        Part::File(file) => {
            // The bytes of a file are no text.
            if !file.url.starts_with("data:") {
                text(&mut file.url, counts);
            }
            file.filename.iter_mut().for_each(|name| text(name, counts));
            extra(&mut file.extra, counts);
        }
        Part::Other(value) => json(value, counts),
        _ => {}
    }
}

/// Replaces the secrets of a message.
pub(crate) fn message(message: &mut Message, counts: &mut Counts) {
    message.parts.iter_mut().for_each(|it| part(it, counts));
    message.metadata.iter_mut().for_each(|metadata| json(metadata, counts));
    extra(&mut message.extra, counts);
}

/// Replaces what looks like a key or a token by `[redacted KIND]`, in the texts of a record.
///
/// ```
/// use talktree::{Message, Record};
/// use talktree_import::redact;
///
/// let message = Message::user(format!("My key is ghp_{}", "x1".repeat(18)));
/// let mut record = Record::Message { below: None, message, name: None };
/// redact(&mut record);
/// let Record::Message { message, .. } = record else { unreachable!() };
/// assert_eq!(message.text(), "My key is [redacted github-token]");
/// ```
pub fn redact(record: &mut Record) {
    self::record(record, &mut Counts::new());
}

/// Replaces the secrets of a record.
pub(crate) fn record(record: &mut Record, counts: &mut Counts) {
    match record {
        Record::Message { message: it, .. } => message(it, counts),
        Record::Session { details, .. } => session(details, counts),
        Record::Compaction { compaction, .. } => {
            text(&mut compaction.summary, counts);
            compaction.details.iter_mut().for_each(|details| json(details, counts));
        }
        Record::Elision { marker, .. } => text(marker, counts),
        _ => {}
    }
}

/// Replaces the secrets of a session's details. Its name repeats a message, so it is not counted.
fn session(details: &mut SessionDetails, counts: &mut Counts) {
    details.name.iter_mut().for_each(|name| text(name, &mut Counts::new()));
    details.metadata.iter_mut().for_each(|metadata| json(metadata, counts));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A made-up token: the beginning, and so many letters after it.
    fn token(start: &str, length: usize) -> String {
        let letters = "aB3dE6gH9jK2mN5pQ8sT".chars().cycle();
        start.chars().chain(letters.take(length)).collect()
    }

    fn clean(text: &str) -> (String, Counts) {
        let mut counts = Counts::new();
        let clean = redacted(text, &mut counts).into_owned();
        (clean, counts)
    }

    #[test]
    fn every_rule_finds_a_token_and_passes_over_a_shorter_one() {
        let rules = RULES.iter().flat_map(|rule| rule.1.iter().map(move |start| (start, rule)));
        for (start, (kind, _, least, letters)) in rules {
            let given: String = token(start, least * 3)
                .bytes()
                .filter(|byte| letters(*byte))
                .map(char::from)
                .collect();
            let given = format!("{start}{}", &given[given.len() - least..]);
            let (text, counts) = clean(&format!("key={given}, and more"));
            assert_eq!(text, format!("key=[redacted {kind}], and more"), "{given}");
            assert_eq!(counts[kind], 1);
            assert!(clean(&given[..given.len() - 1]).1.is_empty(), "{given}");
            assert!(clean(&format!("x{given}")).1.is_empty(), "{given}");
        }
    }

    #[test]
    fn secrets_without_a_beginning_of_their_own_are_found_by_their_form() {
        let bot = format!("123456789:{}", token("", TELEGRAM));
        let web = format!("{}.{}.{}", token("eyJ", 20), token("eyJ", 20), token("", 30));
        for (given, expected) in [
            ("postgres://ann:s3cret@db/x", "postgres://ann:[redacted url-password]@db/x"),
            ("redis://:p@w:d@db:1/0", "redis://:[redacted url-password]@db:1/0"),
            ("https://db/x:y@z", "https://db/x:y@z"),
            ("postgres://ann:$PASSWORD@db/x", "postgres://ann:$PASSWORD@db/x"),
            ("https://example.org:80/", "https://example.org:80/"),
            (&format!("bot {bot}!"), "bot [redacted telegram-token]!"),
            (&format!("Bearer {web}"), "Bearer [redacted json-web-token]"),
            ("eyJhbGciOiJI.not.one", "eyJhbGciOiJI.not.one"),
            (&format!("{}.{web}", token("eyJ", 5_000)), "[redacted json-web-token]"),
            (&format!(r"said\n{bot}"), r"said\n[redacted telegram-token]"),
            (&format!(r"said\n{}", token("ghp_", 30)), r"said\n[redacted github-token]"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nafter",
                "[redacted private-key]\nafter",
            ),
            ("-----BEGIN PRIVATE KEY-----\nMII", "[redacted private-key]"),
            ("-----BEGIN CERTIFICATE-----\nMII", "-----BEGIN CERTIFICATE-----\nMII"),
            ("class sk-loading-circle-for-large-pages", "class sk-loading-circle-for-large-pages"),
            ("日本 é: naïve 钥匙", "日本 é: naïve 钥匙"),
        ] {
            assert_eq!(clean(given).0, expected);
        }
    }

    /// Each beginning was read to the end of the text: these would take hours.
    #[test]
    fn a_text_of_many_beginnings_is_read_in_linear_time() {
        for beginning in ["sk-", "eyJ-", "eyJ.", "xoxb-sk-", "://", "1:", "-----BEGIN "] {
            let text = beginning.repeat((2 << 20) / beginning.len());
            assert_eq!(clean(&text).1, Counts::new(), "{beginning}");
        }
    }

    #[test]
    fn all_of_a_message_is_cleaned_and_the_rest_of_its_json_stays_as_it_is() {
        let key = token("sk-ant-", 30);
        let value = r#"{"n":1.50,"a\"b":"KEY","deep":["\ud800","x KEY"]}"#.replace("KEY", &key);
        let (mut it, mut counts) = (Message::assistant(key.as_str()), Counts::new());
        it.parts.push(Part::tool_call("t", "c", Json::parse(&value).unwrap()));
        it.parts.push(Part::tool_error("t", "c", key.as_str()));
        it.parts.push(Part::reasoning(key.as_str()));
        it.metadata = Some(Json::parse(&value).unwrap());
        message(&mut it, &mut counts);
        let written = serde_json::to_string(&it).unwrap();
        assert!(!written.contains("sk-ant-"), "{written}");
        assert!(
            written.contains(r#"{"n":1.50,"a\"b":"[redacted anthropic-key]","deep":["\ud800","#),
            "{written}"
        );
        assert_eq!(counts, Counts::from([("anthropic-key", 7)]));
    }
}
