//! The chat on a terminal, or from a pipe: one message a line.
//!
//! On a terminal lines are edited, and earlier ones come back with the arrow keys; Ctrl-C stops an answer or ends the chat, and
//! Ctrl-D ends it. From a pipe each line is answered, and the chat ends with the input.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use signal_hook::consts::SIGINT;
use signal_hook::{flag, low_level};
use talktree::{Author, Budget, Message, Role, Session, Store};

use crate::commands::{Command, resolve, run};
use crate::core::{Bot, Place};
use crate::error::{Error, Result};
use crate::line::count;
use crate::models::Flow;
use crate::wrap::Wrap;

/// How many of the last messages are looked at for lines that come back with the arrow keys.
const REMEMBERED: u64 = 200;

const PROMPT: (&str, Style) = ("> ", AnsiColor::Green.on_default().bold());

/// What the program says, in contrast to the model.
const NOTE: Style = Style::new().dimmed();

/// The longest line, in bytes.
const MAX_LINE: usize = 64 << 10;

/// The status of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// The chat of this terminal.
struct Terminal<'a> {
    bot: &'a Bot,
    place: Place,
    output: Box<dyn Write>,
    /// Whether Ctrl-C was pressed.
    is_stopped: Arc<AtomicBool>,
    /// Whether nothing is under way, so that Ctrl-C ends the program.
    is_idle: Arc<AtomicBool>,
    /// The line that is written to a screen; none for a pipe.
    wrap: Option<Wrap>,
    is_coloured: bool,
    /// Why the last line of a pipe that has no answer has none.
    unanswered: Option<Error>,
}

/// Chats in the conversation of this name until the input ends. Chats without a name have one conversation.
///
/// # Errors
/// [`Error::Config`] if another chat uses the conversation; as every write. An error of the model is shown, and the chat
/// goes on.
pub fn chat(bot: &Bot, store: &Path, name: Option<&str>) -> Result<()> {
    let _lock = match Store::is_url(store) {
        // Chats on other machines would not see it.
        true => None,
        false => Some(lock(store, name)?),
    };
    let is_stopped = Arc::new(AtomicBool::new(false));
    let is_idle = Arc::new(AtomicBool::new(true));
    // In this order: the handlers run in the order of their registration, and the first one looks whether the program is idle.
    flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&is_idle))
        .and_then(|_| flag::register(SIGINT, Arc::clone(&is_stopped)))
        .map_err(|source| Error::System { what: "the handler of Ctrl-C", source })?;
    let mut person = Author::new("local");
    person.name = std::env::var("USER").ok();
    let place = Place {
        key: name.map_or_else(|| "terminal".to_owned(), |name| format!("terminal:{name}")),
        owner: Some("user:local".to_owned()),
        is_group: false,
        person,
    };
    let has_prompt = io::stdin().is_terminal() && io::stdout().is_terminal();
    // On a pipe the output has only answers to lines of the input, so the answer to a pending question goes to standard error.
    let output: Box<dyn Write> =
        if has_prompt { Box::new(io::stdout()) } else { Box::new(io::stderr()) };
    let columns = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let mut terminal = Terminal {
        bot,
        place,
        output,
        is_stopped,
        is_idle,
        wrap: columns.filter(|_| has_prompt).map(Wrap::new),
        is_coloured: has_prompt && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty()),
        unanswered: None,
    };
    let begun = if has_prompt { terminal.welcome() } else { terminal.answer_pending() };
    terminal.output = Box::new(io::stdout());
    let ended = begun.and_then(|()| match has_prompt {
        true => terminal.converse(),
        false => terminal.listen(io::stdin().lock()),
    });
    match ended {
        // The reader of the pipe has ended, such as `head`.
        Err(Error::System { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error @ Error::Store(_)) => {
            // If the output is closed, too, the status still says what happened to the store.
            let _ = terminal.write("The chat ends. The last message may not be stored.\n");
            Err(error)
        }
        ended => ended,
    }
}

impl Terminal<'_> {
    /// Answers each line of a pipe. The error is that of the last line without an answer.
    fn listen(&mut self, mut input: impl BufRead) -> Result<()> {
        loop {
            let line = read_line(&mut input);
            let line = line.map_err(|source| Error::System { what: "the input", source })?;
            if line.is_empty() {
                return self.unanswered.take().map_or(Ok(()), Err);
            }
            self.take(&line)?;
        }
    }

    /// Answers each line that a person types.
    fn converse(&mut self) -> Result<()> {
        let failed = |error| Error::System { what: "the input", source: io::Error::other(error) };
        let mut editor = DefaultEditor::new().map_err(failed)?;
        let chat = self.bot.chat(&self.place, &"terminal".into())?;
        for message in chat.recent(Budget::messages(REMEMBERED))?.messages {
            if message.role == Role::User {
                editor.add_history_entry(message.text()).map_err(failed)?;
            }
        }
        loop {
            let (prompt, style) = PROMPT;
            match editor.readline(&(prompt, self.styled(style, prompt))) {
                Ok(line) => {
                    self.take(line.as_bytes())?;
                    match Command::parse(&line, None) {
                        // Of what is erased nothing comes back with the arrow keys.
                        Some(Command::Forget) => editor.clear_history().map_err(failed)?,
                        _ => drop(editor.add_history_entry(line).map_err(failed)?),
                    }
                }
                Err(ReadlineError::Eof) => return Ok(()),
                // The editor reads Ctrl-C as a key.
                Err(ReadlineError::Interrupted) => low_level::raise(SIGINT)
                    .map_err(|source| Error::System { what: "the end by Ctrl-C", source })?,
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Answers a line, unless it is too long.
    fn take(&mut self, line: &[u8]) -> Result<()> {
        if line.len() > MAX_LINE {
            let text = "This line is ignored: it is over the limit of 64 KiB (65536 bytes).\n";
            return self.note(text);
        }
        let line = String::from_utf8_lossy(line);
        if line.trim().is_empty() {
            return Ok(());
        }
        self.busy(|terminal| terminal.hear(line.trim()))
    }

    fn welcome(&mut self) -> Result<()> {
        let chat = self.bot.chat(&self.place, &"terminal".into())?;
        let model = self.bot.model().name();
        let messages = count(chat.path_length()?, "message", "messages");
        let text = format!("talktree-bot, model {model}, {messages} so far. /help; Ctrl-D ends.\n");
        self.note(&text)?;
        self.answer_pending()
    }

    /// Answers the question that was not answered before the program ended.
    fn answer_pending(&mut self) -> Result<()> {
        let chat = self.bot.chat(&self.place, &"terminal".into())?;
        match chat.recent(Budget::messages(1))?.messages.pop() {
            // The program was killed before it answered.
            Some(last) if last.role == Role::User => {
                self.note(&format!("Not answered yet: {}\n", last.text()))?;
                self.busy(|terminal| terminal.reply(&chat))
            }
            _ => Ok(()),
        }
    }

    /// Runs work that Ctrl-C stops. An error of the model is shown.
    fn busy(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.is_stopped.store(false, Ordering::Relaxed);
        self.is_idle.store(false, Ordering::Relaxed);
        let done = work(self);
        self.is_idle.store(true, Ordering::Relaxed);
        match done {
            Err(error @ (Error::Model { .. } | Error::TooManyTurns { .. } | Error::Stopped)) => {
                let told = self.note(&format!("{error}; /retry asks again.\n"));
                self.unanswered = Some(error);
                told
            }
            done => done,
        }
    }

    // quote: terminal
    /// Runs the command of a line, or answers it.
    fn hear(&mut self, line: &str) -> Result<()> {
        let message = Message::user(line).from(&self.place.person);
        let chat = self.bot.chat(&self.place, &message.id)?;
        let Some(command) = Command::parse(line, None) else {
            chat.append(message)?;
            return self.reply(&chat);
        };
        let step = resolve(&chat, &command)?;
        let done = run(self.bot, &self.place, &chat, &step)?;
        if !done.text.is_empty() {
            self.write(&format!("{}\n", done.text.trim_end()))?;
        }
        if let Some((name, content)) = &done.file {
            let name = save(name, content)?;
            self.write(&format!("{name}\n"))?;
        }
        if done.then_reply { self.reply(&chat) } else { Ok(()) }
    }
    // quote end

    /// Answers the message at the head, and shows the answer while it arrives.
    fn reply(&mut self, chat: &Session) -> Result<()> {
        let (bot, is_stopped) = (self.bot, Arc::clone(&self.is_stopped));
        let mut shown = String::new();
        let mut written = Ok(());
        let answer = bot.reply(chat, &Message::assistant("").id, None, &mut |text| {
            if written.is_ok() && text != shown {
                // A text that begins again, after a tool or a failed try, gets a line of its own.
                let (new, from) = match text.strip_prefix(shown.as_str()) {
                    Some(new) => (new, ""),
                    None => (text, "\n"),
                };
                written = self.write(&format!("{from}{new}"));
                shown = text.to_owned();
            }
            match is_stopped.load(Ordering::Relaxed) || written.is_err() {
                true => Flow::Stop,
                false => Flow::Continue,
            }
        });
        let ended = if shown.is_empty() { Ok(()) } else { self.write("\n") };
        let answer = match answer {
            Err(error @ Error::Store(_)) => return Err(error), // whatever the output is
            answer => written.and(ended).and(answer)?,
        };
        if shown.is_empty() { self.write(&format!("{}\n", answer.text())) } else { Ok(()) }
    }

    /// Writes what the program itself says.
    fn note(&mut self, text: &str) -> Result<()> {
        let text = self.shown(text);
        let text = self.styled(NOTE, &text);
        self.put(&text)
    }

    /// Writes a text.
    fn write(&mut self, text: &str) -> Result<()> {
        let text = self.shown(text);
        self.put(&text)
    }

    /// Returns a text as it is written: in lines that fit, and without the characters by which a model or a file could control
    /// the terminal.
    fn shown(&mut self, text: &str) -> String {
        let text = text.replace(|it: char| it.is_control() && it != '\n' && it != '\t', "");
        match &mut self.wrap {
            Some(wrap) => wrap.push(&text),
            None => text,
        }
    }

    fn styled(&self, style: Style, text: &str) -> String {
        if self.is_coloured { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    fn put(&mut self, text: &str) -> Result<()> {
        let written = self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush());
        written.map_err(|source| Error::System { what: "the output", source })
    }
}

/// Reads a line with its end; an empty one at the end of the input. Of a line over the limit only the start is kept.
fn read_line(input: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    input.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line)?;
    if line.len() > MAX_LINE && line.last() != Some(&b'\n') {
        input.skip_until(b'\n')?;
    } else if line.len() > MAX_LINE {
        line.pop(); // the line break does not count
    }
    Ok(line)
}

/// Locks the conversation of this name until the file is closed: of two chats at once, one could get the answers to the other.
fn lock(store: &Path, name: Option<&str>) -> Result<File> {
    // One store may have several paths.
    let mut path = store.canonicalize().unwrap_or_else(|_| store.to_owned()).into_os_string();
    path.push("-chat");
    if let Some(name) = name {
        path.push(format!("-{name}"));
    }
    let path = PathBuf::from(path);
    let file = private()
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|source| Error::File { path: path.clone(), source })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(source)) => Err(Error::File { path, source }),
        Err(TryLockError::WouldBlock) => Err(Error::Config(
            "another chat uses this conversation; `talktree-bot chat --name NAME` has another one"
                .to_owned(),
        )),
    }
}

/// Returns options for a file that only its owner may read, like the store.
fn private() -> OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Writes a file into the current folder, never over another one, and returns its name.
fn save(name: &str, content: &str) -> Result<String> {
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, "txt"));
    let mut options = private();
    options.create_new(true);
    let mut number = 1_u32;
    loop {
        let name = if number == 1 { name.to_owned() } else { format!("{stem}-{number}.{end}") };
        let written = options.open(&name).and_then(|mut file| file.write_all(content.as_bytes()));
        match written {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1_000 => {
                number += 1
            }
            Err(source) => return Err(Error::File { path: Path::new(&name).to_owned(), source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::models::{Model, Turn};

    /// An output whose reader has ended.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A model that removes the session before its answer is stored.
    #[derive(Debug)]
    struct Removing;

    impl Model for Removing {
        fn name(&self) -> &str {
            "removing"
        }

        fn answer(&self, turn: Turn<'_>, on_text: &mut dyn FnMut(&str) -> Flow) -> Result<Message> {
            turn.sessions.store().remove(turn.chat.id())?;
            on_text("Hello");
            Ok(Message::assistant("Hello"))
        }

        fn summarize(&self, _: &str) -> Result<String> {
            Ok(String::new())
        }
    }

    #[test]
    fn a_closed_output_hides_no_error_of_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { store: folder.path().join("bot.db"), ..Config::default() };
        let store = Store::open(&config.store).unwrap();
        let bot = Bot::new(&config, store, Arc::new(Removing)).unwrap();
        let place = Place { key: "terminal".to_owned(), ..Place::default() };
        let (is_stopped, is_idle) = (Arc::default(), Arc::default());
        let output = Box::new(Closed);
        let (wrap, is_coloured, unanswered) = (None, false, None);
        let mut terminal = Terminal {
            bot: &bot,
            place,
            output,
            is_stopped,
            is_idle,
            wrap,
            is_coloured,
            unanswered,
        };
        let ended = terminal.listen(&b"hello\n"[..]);
        assert!(
            matches!(&ended, Err(Error::Store(talktree::Error::SessionRemoved { .. }))),
            "{ended:?}"
        );
    }
}
