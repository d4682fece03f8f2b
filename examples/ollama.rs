//! The conversation of `long_chat` with summaries written by a model of any server with the API of Ollama or OpenAI.
//!
//! talktree needs only a function from a prompt to a text, with its own time limit. Requests and errors differ between
//! servers, so this example contains them.
//!
//! ```console
//! $ cargo run --example ollama -- http://localhost:11434 llama3.2
//! $ cargo run --example ollama -- https://api.openai.com/v1 gpt-4o-mini --key-env OPENAI_API_KEY
//! ```

mod talk;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use talk::{Window, spaced};
use talktree::{Store, Summary};

const USAGE: &str = "usage: ollama URL MODEL [--turns N] [--timeout SECONDS] [--key-env NAME]

URL is an Ollama server (http://localhost:11434) or a server with OpenAI's API (https://HOST/v1).
The key, if one is needed, is read from the environment variable NAME.";

/// Above this many tokens the conversation is compacted; the newest half of them is kept unchanged.
const THRESHOLD: u64 = 2_000;
/// The context size requested from the model: Ollama truncates prompts that exceed its default.
const CONTEXT: u64 = 4_096;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|arg| arg == "--help") {
        println!("{USAGE}");
        return Ok(());
    }
    let asked = Asked::read(std::env::args().skip(1))?;
    let turns = asked.turns;
    let model = Model::new(asked);
    // First of all: this reports a mistyped name at once, and loads a slow model.
    model.ask("Answer with one word: ready")?;

    let store = Store::open_in_memory()?;
    let chat = store
        .session_builder("workshop")
        .summarizer(move |prompt: &str| {
            model.ask(prompt).map(|text| Summary::new(text).by(&model.name))
        })
        .compact_after(THRESHOLD)
        .on_error(|error| println!("not compacted, will be retried: {error}"))
        .open()?;

    let _subscription = talk::print_compactions(&chat);
    for number in 1..=turns {
        for message in talk::turn(number) {
            chat.append(message)?; // waits for the model if it compacts
        }
        println!("turn {number:4}  {} of {}", Window::of(&chat)?, spaced(THRESHOLD));
    }

    if !talk::is_complete(&chat, turns)? {
        return Err("the stored messages differ from the script".into());
    }
    println!("\nAll {} messages are stored unchanged.", spaced(chat.path_length()?));
    if let Some(last) = chat.compactions()?.pop() {
        println!("\nThe last summary:\n\n{}", last.summary);
    }
    Ok(())
}

/// The command line.
struct Asked {
    url: String,
    model: String,
    turns: usize,
    timeout: Duration,
    key: Option<String>,
}

impl Asked {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let (mut turns, mut timeout, mut key) = (200, Duration::from_secs(120), None);
        let mut names = Vec::new();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value\n\n{USAGE}"));
            match arg.as_str() {
                "--turns" => turns = value()?.parse().map_err(|_| "--turns takes a number")?,
                "--timeout" => {
                    let seconds = value()?.parse().ok();
                    let seconds = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
                    timeout = seconds.ok_or("--timeout takes a number of seconds")?;
                }
                "--key-env" => {
                    let name = value()?;
                    let found = std::env::var(&name);
                    key = Some(found.map_err(|_| {
                        format!("the environment variable {name} is not set or not exported")
                    })?);
                }
                _ if arg.starts_with('-') => {
                    return Err(format!("unknown option {arg}\n\n{USAGE}").into());
                }
                _ => names.push(arg),
            }
        }
        let Ok([url, model]) = <[String; 2]>::try_from(names) else { return Err(USAGE.into()) };
        Ok(Self { url, model, turns, timeout, key })
    }
}

/// A model behind a URL.
struct Model {
    agent: ureq::Agent,
    url: String,
    form: Form,
    name: String,
    timeout: Duration,
    key: Option<String>,
}

/// The API of a server: it decides the request, and the path of the text in the response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `/api/chat`
    Ollama,
    /// `/v1/chat/completions`
    OpenAi,
}

impl Model {
    fn new(asked: Asked) -> Self {
        let url = asked.url.trim_end_matches('/');
        let (url, form) = match url {
            _ if url.ends_with("/chat/completions") => (url.to_owned(), Form::OpenAi),
            _ if url.ends_with("/v1") => (format!("{url}/chat/completions"), Form::OpenAi),
            _ if url.ends_with("/api/chat") => (url.to_owned(), Form::Ollama),
            _ => (format!("{url}/api/chat"), Form::Ollama),
        };
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(asked.timeout))
            .http_status_as_error(false) // the body describes the error
            .build()
            .into();
        Self { agent, url, form, name: asked.model, timeout: asked.timeout, key: asked.key }
    }

    /// Returns the model's answer to a prompt.
    ///
    /// # Errors
    /// A description of the error, with advice.
    fn ask(&self, prompt: &str) -> Result<String, String> {
        let mut body = json!({
            "model": self.name,
            "messages": [{"role": "user", "content": prompt}],
            "stream": false,
        });
        let pointer = match self.form {
            Form::Ollama => {
                body["options"] = json!({"num_ctx": CONTEXT});
                "/message/content"
            }
            Form::OpenAi => "/choices/0/message/content",
        };
        let (status, text) = self.post(&body).map_err(|error| self.unanswered(&error))?;
        if status != 200 {
            return Err(self.refused(status, &text));
        }
        let answer: Option<Value> = serde_json::from_str(&text).ok();
        let content = answer.as_ref().and_then(|answer| answer.pointer(pointer)?.as_str());
        content.map(str::to_owned).ok_or_else(|| {
            let url = &self.url;
            format!(
                "{url} answered without a chat message: {}; is it the right URL?",
                start_of(&text)
            )
        })
    }

    /// Returns the status and the body of the response.
    fn post(&self, body: &Value) -> Result<(u16, String), ureq::Error> {
        let mut request = self.agent.post(&self.url).content_type("application/json");
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let mut answer = request.send(body.to_string())?;
        Ok((answer.status().as_u16(), answer.body_mut().read_to_string()?))
    }

    fn unanswered(&self, error: &ureq::Error) -> String {
        let (url, seconds) = (&self.url, self.timeout.as_secs_f64());
        let advice = match error {
            ureq::Error::Timeout(_) => {
                return format!(
                    "{url} did not answer within {seconds} s: raise --timeout, or use a smaller model"
                );
            }
            ureq::Error::Http(_) | ureq::Error::BadUri(_) => {
                "a URL begins with http:// or https://"
            }
            _ => "is the host right, and the server running? (Ollama: `ollama serve`)",
        };
        format!("cannot reach {url}: {error}; {advice}")
    }

    fn refused(&self, status: u16, text: &str) -> String {
        let advice = match status {
            401 | 403 => "name the environment variable with the key by --key-env",
            404 => "check the URL and the name of the model (Ollama: `ollama pull MODEL`)",
            429 => "too many requests, or the credit is used up",
            500.. => "check the server's log",
            _ => "the server refuses the request",
        };
        format!("{} answered {status} {}: {advice}", self.url, start_of(text))
    }
}

/// Returns the start of a response on one line.
fn start_of(text: &str) -> String {
    let start: String = text.chars().take(200).collect();
    format!("{start:?}")
}
