//! The command itself: from a pipe each line is answered, and the chat ends with the input.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::Duration;

use crate::tables::{Tables, is_on_server};
use talktree_bot_rig::Limit;

/// How long a run may take; one asks a model in vain, with retries.
const LIMIT: Duration = Duration::from_secs(90);

fn bot(folder: &Path, arguments: &[&str], input: impl AsRef<[u8]>) -> Output {
    output(Command::new(env!("CARGO_BIN_EXE_talktree-bot")).args(arguments), folder, input)
}

fn output(command: &mut Command, folder: &Path, input: impl AsRef<[u8]>) -> Output {
    let output = talktree_bot_rig::process::output;
    output(command.current_dir(folder), input.as_ref(), LIMIT).unwrap()
}

fn lines(output: &Output) -> Vec<&str> {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).unwrap().lines().collect()
}

#[test]
fn a_pipe_is_answered_line_by_line_and_remembered_by_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let first =
        bot(folder.path(), &["chat"], "my cat is Mozart\n\nthe boat leaves at nine\n/undo\n");
    let said = lines(&first);
    assert!(said[0].starts_with("Noted: “my cat is Mozart”"), "{said:?}");
    assert!(said.iter().any(|line| line.starts_with("Noted: “the boat")), "{said:?}");
    assert!(first.stderr.is_empty(), "{first:?}");

    let second = bot(folder.path(), &["chat"], "what is my cat called?\nwhat is my dog called?");
    let said = lines(&second);
    assert!(
        said[0].starts_with("You told me on ") && said[0].contains("“my cat is Mozart”"),
        "{said:?}"
    );
    assert!(said[1].starts_with("I do not know"), "{said:?}");
    assert_eq!(said.len(), 2);
}

/// The numbers were left out of the question, so the first room was the answer to every question.
#[test]
fn numbers_and_single_capitals_tell_one_fact_from_another() {
    let folder = tempfile::tempdir().unwrap();
    let facts = "room 3 is the kitchen\nroom 7 is the bath\nbox A is red\nbox B is blue\n";
    bot(folder.path(), &["chat"], facts);
    for (question, answer) in [
        ("what is room 7?", "room 7 is the bath"),
        ("what is room 3?", "room 3 is the kitchen"),
        ("what is box B?", "box B is blue"),
        ("what is box A?", "box A is red"),
    ] {
        let said = bot(folder.path(), &["chat"], question);
        assert!(lines(&said)[0].contains(&format!("“{answer}”")), "{question} {said:?}");
    }
}

#[test]
fn a_question_that_was_not_answered_is_answered_at_the_next_start_and_not_as_another_one() {
    let folder = tempfile::tempdir().unwrap();
    bot(folder.path(), &["chat"], "my cat is Mozart\n");
    let store = talktree::Store::open(folder.path().join("bot.db")).unwrap();
    let chat = store.sessions().unwrap().remove(0).id;
    let question = talktree::Message::user("what is my cat called?");
    store.session(chat).unwrap().append(question).unwrap();
    drop(store);
    let next = bot(folder.path(), &["chat"], "my dog is Bello\n");
    assert_eq!(lines(&next).len(), 1);
    let told = String::from_utf8_lossy(&next.stderr);
    assert!(told.starts_with("Not answered yet: what is my cat called?\n"), "{told}");
    assert!(told.contains("“my cat is Mozart”"), "{told}");
    assert!(bot(folder.path(), &["chat"], "").stderr.is_empty());
}

#[test]
fn a_command_that_takes_nothing_refuses_what_follows_it() {
    let folder = tempfile::tempdir().unwrap();
    let said = bot(folder.path(), &["chat"], "my cat is Mozart\n/undo 3\n/new now\n/tree\n");
    let said = lines(&said);
    // The second line is the hint of the first answer.
    assert_eq!(said[2], "Nothing is done: /undo takes no words after it.");
    assert_eq!(said[3], "Nothing is done: /new takes no words after it.");
    assert!(said[4].contains("my cat is Mozart"), "{said:?}");
}

#[test]
fn an_export_is_written_into_the_folder_and_never_over_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let said = bot(folder.path(), &["chat"], "my cat is Mozart\n/export\n/export\n");
    let said: Vec<&str> = lines(&said).into_iter().filter(|line| line.ends_with(".md")).collect();
    assert_eq!(said.len(), 2);
    for name in said {
        let path = folder.path().join(name);
        assert!(std::fs::read_to_string(&path).unwrap().contains("Mozart"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}

#[test]
fn the_example_is_printed_and_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let example = bot(folder.path(), &["config"], "");
    std::fs::write(folder.path().join("bot.toml"), lines(&example).join("\n")).unwrap();
    assert_eq!(lines(&bot(folder.path(), &["chat"], "/remember\n")).len(), 1);
}

#[test]
fn a_wrong_setting_ends_the_program_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bot.toml"), "[agent]\nmodle = 'x'").unwrap();
    let refused = bot(folder.path(), &["chat"], "hello\n");
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("modle"));
    assert!(!folder.path().join("bot.db").exists());
    std::fs::write(folder.path().join("bot.toml"), "[agent]\nsystem_file = 'me.md'").unwrap();
    let refused = bot(folder.path(), &["chat"], "hello\n");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("me.md: it does not exist"));
}

#[test]
fn input_that_is_no_text_is_answered_too() {
    let folder = tempfile::tempdir().unwrap();
    let said = bot(folder.path(), &["chat"], b"\xff\xfe tea\nhello\n");
    assert_eq!(lines(&said).last().map(|line| line.starts_with("Hello")), Some(true));
}

#[test]
fn a_model_that_cannot_be_reached_ends_no_chat_and_is_told_by_the_status_of_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    // The socket is closed, so nobody listens on its port.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = format!(
        "[agent]\nprovider = 'ollama'\nmodel = 'm'\nbase_url = 'http://127.0.0.1:{port}/v1'"
    );
    std::fs::write(folder.path().join("bot.toml"), settings).unwrap();
    let ended = bot(folder.path(), &["chat"], "hello\n/help\n");
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let why = String::from_utf8_lossy(&ended.stderr);
    assert!(why.contains("\ntalktree-bot: the model m gave no answer"), "{why}");
    let said: Vec<&str> = std::str::from_utf8(&ended.stdout).unwrap().lines().collect();
    assert!(said[0].contains("/retry asks again"), "{said:?}");
    assert!(said.iter().any(|line| line.starts_with("/branches")), "{said:?}");
}

#[test]
fn no_text_controls_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let said = bot(
        folder.path(),
        &["chat"],
        "my cat \u{1b}[2Jis\u{9b}K Mozart\u{7}\n/export\n/branches\n",
    );
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("Mozart") && said.contains(".md"), "{said:?}");
    assert!(!said.contains(|it: char| it.is_control() && it != '\n'), "{said:?}");
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_matters_only_if_it_is_the_bots() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let with = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_talktree-bot"));
        command.arg("chat").env(name, OsStr::from_bytes(b"/\xff"));
        output(&mut command, folder.path(), "hello\n")
    };
    assert!(lines(&with("SOMETHING"))[0].starts_with("Hello"));
    let refused = with("TALKTREE_BOT_STORE");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("TALKTREE_BOT_STORE"));
}

#[test]
fn a_key_with_a_line_break_is_refused_and_not_told() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "[agent]\nprovider = 'ollama'\nmodel = 'm'\nbase_url = 'http://127.0.0.1:1/v1'";
    std::fs::write(folder.path().join("bot.toml"), settings).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_talktree-bot"));
    let refused =
        output(command.arg("chat").env("OLLAMA_API_KEY", "sk-secret\n"), folder.path(), "");
    let why = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{why}");
    assert!(why.contains("OLLAMA_API_KEY") && !why.contains("secret"), "{why}");
}

/// A chat that goes on until it is told to end.
struct Chat {
    _limit: Limit,
    child: Child,
    input: Option<ChildStdin>,
}

impl Chat {
    fn new(folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_talktree-bot"));
        command.arg("chat").current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        Self { _limit: Limit::new(LIMIT), child, input }
    }

    fn say(&mut self, line: &str) {
        self.input.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Says something, and waits for the first line of the answer.
    fn ask(&mut self, line: &str) -> String {
        self.say(line);
        let mut answer = String::new();
        BufReader::new(self.child.stdout.as_mut().unwrap()).read_line(&mut answer).unwrap();
        answer
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended by itself
        let _ = self.child.wait();
    }
}

/// A chat on a terminal of 40 columns; `None` if there are no terminals here.
#[cfg(target_os = "linux")]
struct OnTerminal(Chat, std::sync::mpsc::Receiver<Vec<u8>>, String, usize);

#[cfg(target_os = "linux")]
impl OnTerminal {
    fn new(folder: &Path) -> Option<Self> {
        let line = format!("stty cols 40 rows 24; '{}' chat", env!("CARGO_BIN_EXE_talktree-bot"));
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(folder);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let (input, mut output) = (child.stdin.take(), child.stdout.take()?);
        let (sent, received) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = std::io::Read::read(&mut output, &mut bytes) {
                let _ = sent.send(bytes[..count].to_vec());
            }
        });
        let chat = Chat { _limit: Limit::new(LIMIT), child, input };
        Some(Self(chat, received, String::new(), 0))
    }

    /// Waits until the chat asks for a line, and presses keys.
    fn press(&mut self, keys: &str) {
        self.3 += 1;
        // The code by which a terminal marks what is pasted.
        assert!(self.shows("\u{1b}[?2004h", self.3), "{}", self.2);
        self.0.input.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the chat ends, and returns its status.
    fn end(&mut self) -> Option<i32> {
        while self.1.recv().is_ok() {}
        self.0.child.wait().unwrap().code()
    }

    /// Waits until the text was written this many times, or the chat ends; returns whether it was.
    fn shows(&mut self, text: &str, times: usize) -> bool {
        while self.2.matches(text).count() < times {
            let Ok(bytes) = self.1.recv() else { return false };
            self.2 += &String::from_utf8_lossy(&bytes);
        }
        true
    }
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_lines_are_edited_and_come_back_and_words_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut chat) = OnTerminal::new(folder.path()) else { return };
    if !chat.shows("Ctrl-D ends.", 1) {
        return; // no terminals here
    }
    assert!(
        chat.2.contains("\u{1b}[2mtalktree-bot, model offline, 0 messages\r\nso far."),
        "{}",
        chat.2
    );
    // Back over a wrong letter, and the line again.
    chat.press("my cat is Mozarz\u{7f}t\r");
    assert!(
        chat.shows("“my cat is Mozart” Ask me about\r\nit whenever you like.", 1),
        "{}",
        chat.2
    );
    chat.press("\u{1b}[A\r");
    assert!(
        chat.shows("“my cat is Mozart” Ask me about\r\nit whenever you like.", 2),
        "{}",
        chat.2
    );
    chat.press("/forget\r");
    assert!(chat.shows("I know of you: 4 messages", 1), "{}", chat.2);
    chat.press("\u{4}");
    assert_eq!(chat.end(), Some(0), "{}", chat.2);
    // A later chat knows the lines of the conversation.
    let mut chat = OnTerminal::new(folder.path()).unwrap();
    chat.press("\u{1b}[A\r");
    assert!(chat.shows("“my cat is Mozart” Ask me about", 1), "{}", chat.2);
    // Ctrl-C at the prompt ends it.
    chat.press("\u{3}");
    assert_eq!(chat.end(), Some(130), "{}", chat.2);
}

#[test]
fn the_offline_model_has_another_answer_or_says_that_it_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let facts = "my cat is Mozart\n/retry\nthe cat eats tuna\n";
    bot(folder.path(), &["chat"], facts);
    let said = bot(folder.path(), &["chat"], "what about my cat?\n/retry\n/retry\n");
    let said = lines(&said);
    assert!(said[0].contains("“my cat is Mozart”") && said[1].starts_with("(1 more;"), "{said:?}");
    assert!(said[2].contains("“the cat eats tuna”"), "{said:?}");
    assert!(said[3].starts_with("I have no other answer."), "{said:?}");
}

#[test]
fn a_conversation_has_one_chat_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Chat::new(folder.path());
    assert!(first.ask("my cat is Mozart").starts_with("Noted"));
    let second = bot(folder.path(), &["chat"], "hello\n");
    let why = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{second:?}");
    assert!(why.contains("another chat") && why.contains("--name NAME"), "{why}");
    // One with a name has a conversation of its own, with the memory of the same person.
    let named = bot(folder.path(), &["chat", "--name", "work"], "what is my cat?\n/usage\n");
    let named = lines(&named);
    assert!(named[0].contains("in another conversation: “my cat is Mozart”"), "{named:?}");
    assert!(named[1].contains("This conversation: 2 messages"), "{named:?}");
    for name in ["", "a/b", &"x".repeat(41)] {
        let refused = bot(folder.path(), &["chat", "--name", name], "hello\n");
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    drop(first); // killed, which frees the conversation, too
    let usage = bot(folder.path(), &["chat"], "/usage\n");
    assert!(lines(&usage)[0].contains("This conversation: 2 messages"), "{usage:?}");
}

#[test]
fn a_line_over_the_limit_is_refused_and_the_chat_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(20 << 20);
    let longest = "y".repeat(64 << 10);
    let said = bot(folder.path(), &["chat"], format!("{long}\n{longest}y\n{longest}\nhello\n"));
    let said = lines(&said);
    assert!(said[0].contains("64 KiB") && said[1].contains("64 KiB"), "{said:?}");
    assert!(said[2].starts_with("Noted: “yyy"), "{said:?}");
    assert!(said.last().unwrap().starts_with("Hello"), "{said:?}");
    if !is_on_server() {
        assert!(std::fs::metadata(folder.path().join("bot.db")).unwrap().len() < 4 << 20);
    }
}

#[test]
fn a_store_that_is_moved_ends_the_chat() {
    let folder = tempfile::tempdir().unwrap();
    let mut chat = Chat::new(folder.path());
    assert!(chat.ask("my cat is Mozart").starts_with("Noted"));
    std::fs::rename(folder.path().join("bot.db"), folder.path().join("moved.db")).unwrap();
    chat.say("my dog is Bello");
    let status = chat.child.wait().unwrap();
    let read = |pipe: &mut dyn std::io::Read| {
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        text
    };
    let said = read(chat.child.stdout.as_mut().unwrap());
    let why = read(chat.child.stderr.as_mut().unwrap());
    assert_eq!(status.code(), Some(1), "{said} {why}");
    assert!(said.ends_with("The chat ends. The last message may not be stored.\n"), "{said}");
    assert!(why.contains("bot.db") && why.contains("it was moved"), "{why}");
}

#[test]
fn a_store_that_another_program_locks_is_status_75_also_without_an_output() {
    let folder = tempfile::tempdir().unwrap();
    assert!(lines(&bot(folder.path(), &["chat"], "hello\n"))[0].starts_with("Hello"));
    let mut other = Tables::of(&folder.path().join("bot.db")).locker();
    other.lock();
    let chat = |name| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_talktree-bot"));
        command.args(["chat", "--name", name]).current_dir(folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
        child
    };
    let _limit = Limit::new(LIMIT);
    let (open, mut closed) = (chat("open"), chat("closed"));
    drop(closed.stdout.take()); // its reader has ended, such as `head`
    let open = open.wait_with_output().unwrap();
    assert_eq!(open.status.code(), Some(75), "{open:?}");
    assert!(String::from_utf8_lossy(&open.stdout).starts_with("The chat ends."), "{open:?}");
    let closed = closed.wait_with_output().unwrap();
    assert_eq!(closed.status.code(), Some(75), "{closed:?}");
    // The figure is what each waited, which differs by a millisecond or two.
    let without_figures = |stderr: Vec<u8>| {
        String::from_utf8(stderr).unwrap().replace(|c: char| c.is_ascii_digit(), "")
    };
    assert_eq!(without_figures(closed.stderr), without_figures(open.stderr));
}
