//! The methods of the Bot API.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::chats::{Draft, MAX_TEXT, Shown, entities};
use super::form::Form;
use super::{Call, Options, Outcome, State, Telegram};

/// An error of the API.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: u16,
    description: String,
    retry_after: Option<u64>,
}

impl Refusal {
    pub(super) fn new(code: u16, description: impl Into<String>) -> Self {
        Self { code, description: description.into(), retry_after: None }
    }

    pub(super) fn bad(what: &str) -> Self {
        Self::new(400, format!("Bad Request: {what}"))
    }

    pub(super) fn too_many(seconds: u64) -> Self {
        let description = format!("Too Many Requests: retry after {seconds}");
        Self { code: 429, description, retry_after: Some(seconds) }
    }

    pub(super) fn body(&self) -> String {
        let mut body =
            json!({"ok": false, "error_code": self.code, "description": self.description});
        if let Some(seconds) = self.retry_after {
            body["parameters"] = json!({"retry_after": seconds});
        }
        body.to_string()
    }
}

/// Runs a method that returns at once, and completes the record of its call.
pub(super) fn run(
    options: &Options,
    state: &mut State,
    form: Form,
    call: &mut Call,
) -> Result<Value, Refusal> {
    match call.method.as_str() {
        "getMe" => Ok(options.me(true)),
        "setMyCommands" => match form.object("commands") {
            Some(Value::Array(commands)) if commands.len() <= 100 => {
                state.commands = commands;
                Ok(true.into())
            }
            _ => Err(Refusal::bad("commands must be a list of at most 100")),
        },
        "deleteWebhook" | "setMyDescription" | "setMyShortDescription" => Ok(true.into()),
        "getWebhookInfo" => Ok(json!({"url": "", "has_custom_certificate": false,
            "pending_update_count": state.updates.waiting()})),
        "sendChatAction" => state.write(options, call, |_, _| Ok(true.into())),
        "sendMessage" => state.write(options, call, |state, call| send(options, state, form, call)),
        "sendDocument" => {
            state.write(options, call, |state, call| document(options, state, form, call))
        }
        "editMessageText" => state.write(options, call, edit),
        "deleteMessage" => state.write(options, call, |state, call| {
            let id = call.message.unwrap_or_default();
            match state.chat(call)?.remove(id) {
                true => Ok(true.into()),
                false => Err(Refusal::bad("message to delete not found")),
            }
        }),
        _ => Err(Refusal::new(404, "Not Found")),
    }
}

impl State {
    /// Runs a method that writes to a chat, if the limits allow it.
    fn write(
        &mut self,
        options: &Options,
        call: &mut Call,
        effect: impl FnOnce(&mut Self, &mut Call) -> Result<Value, Refusal>,
    ) -> Result<Value, Refusal> {
        let chat = call.chat.ok_or_else(|| Refusal::bad("chat_id is empty"))?;
        // An action is no message.
        let limits = options.limits.as_ref().filter(|_| call.method != "sendChatAction");
        if let Some(limits) = limits
            && let Some(wait) = self.recent.note(limits, chat, Instant::now())
        {
            return Err(Refusal::too_many(wait.as_secs_f64().ceil() as u64));
        }
        self.chat(call)?;
        effect(self, call)
    }

    fn chat(&mut self, call: &Call) -> Result<&mut super::chats::Chat, Refusal> {
        let chat = call.chat.and_then(|id| self.chats.get_mut(&id));
        chat.ok_or_else(|| Refusal::bad("chat not found"))
    }
}

/// Returns a text as Telegram stores it.
fn checked(text: Option<&str>) -> Result<&str, Refusal> {
    let text = text.unwrap_or_default().trim();
    if text.is_empty() {
        return Err(Refusal::bad("message text is empty"));
    }
    if text.encode_utf16().count() > MAX_TEXT {
        return Err(Refusal::bad("message is too long"));
    }
    Ok(text)
}

/// Returns the message that a new one replies to, if it is there.
fn reply_to(state: &mut State, form: &Form, call: &Call) -> Result<Option<i64>, Refusal> {
    let parameters = form.object("reply_parameters").unwrap_or_default();
    let Some(id) = parameters["message_id"].as_i64() else { return Ok(None) };
    if state.chat(call)?.get(id).is_some() {
        return Ok(Some(id));
    }
    match parameters["allow_sending_without_reply"] == true {
        true => Ok(None),
        false => Err(Refusal::bad("message to be replied not found")),
    }
}

fn send(
    options: &Options,
    state: &mut State,
    form: Form,
    call: &mut Call,
) -> Result<Value, Refusal> {
    let text = checked(call.text.as_deref())?.to_owned();
    let reply_to = reply_to(state, &form, call)?;
    let draft = Draft {
        from: options.me(false),
        text: &text,
        topic: form.number("message_thread_id"),
        reply_to,
        file: None,
        entities: entities(&text),
    };
    let message = state.chat(call)?.add(draft);
    call.message = message["message_id"].as_i64();
    Ok(message)
}

fn document(
    options: &Options,
    state: &mut State,
    mut form: Form,
    call: &mut Call,
) -> Result<Value, Refusal> {
    let Some(file) = form.file.take().filter(|file| !file.bytes.is_empty()) else {
        return Err(Refusal::bad("there is no document in the request"));
    };
    let reply_to = reply_to(state, &form, call)?;
    let draft = Draft {
        from: options.me(false),
        text: form.text("caption").unwrap_or_default(),
        topic: form.number("message_thread_id"),
        reply_to,
        file: Some((file.name, file.bytes)),
        entities: Vec::new(),
    };
    let message = state.chat(call)?.add(draft);
    call.message = message["message_id"].as_i64();
    Ok(message)
}

fn edit(state: &mut State, call: &mut Call) -> Result<Value, Refusal> {
    let id = call.message.ok_or_else(|| Refusal::bad("message identifier is not specified"))?;
    let text = checked(call.text.as_deref())?;
    let chat = state.chat(call)?;
    match chat.get(id) {
        None => Err(Refusal::bad("message to edit not found")),
        Some(Shown { is_bots: false, .. }) => Err(Refusal::bad("message can't be edited")),
        Some(shown) if shown.text == text => Err(Refusal::bad(
            "message is not modified: specified new message content and reply markup are exactly \
             the same as a current content and reply markup of the message",
        )),
        Some(_) => {
            let message = chat.edit(id, text, entities(text));
            message.ok_or_else(|| Refusal::bad("message to edit not found"))
        }
    }
}

/// Waits for updates, as long as the caller wants to.
pub(super) fn get_updates(server: &Telegram, form: &Form) -> Result<Value, Refusal> {
    let shared = &server.shared;
    let mut state = shared.lock();
    state.poll += 1;
    let poll = state.poll;
    // The newest poll ends the others.
    shared.changed.notify_all();
    state.updates.confirm(form.number("offset").unwrap_or(0));
    let limit = form.number("limit").unwrap_or(100).clamp(1, 100);
    let seconds = form.number("timeout").unwrap_or(0).clamp(0, 50);
    let until = Instant::now() + Duration::from_secs(seconds.unsigned_abs());
    loop {
        if state.is_closed {
            return Err(Refusal::new(502, "Bad Gateway"));
        }
        if state.poll != poll {
            return Err(Refusal::new(
                409,
                "Conflict: terminated by other getUpdates request; make sure that only one bot \
                 instance is running",
            ));
        }
        let State { updates, chance, .. } = &mut *state;
        let batch = updates.batch(usize::try_from(limit).unwrap_or(100), chance);
        let left = until.saturating_duration_since(Instant::now());
        if !batch.is_empty() || left.is_zero() {
            return Ok(batch.into());
        }
        state = shared.wait(state, left);
    }
}

impl Outcome {
    pub(super) fn of(result: &Result<Value, Refusal>) -> Self {
        match result {
            Ok(_) => Self::Done,
            Err(refusal) => Self::Refused(refusal.code),
        }
    }
}
