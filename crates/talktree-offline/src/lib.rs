//! Answers from memory, without a model and without a network.
//!
//! A question is looked up in the messages of people in the conversations of the same owner, in the memory and in the
//! knowledge, and what is found is quoted, with the place and the time. If nothing is found, the answer says so. To anything
//! that is no question it says that it is noted: the message is stored anyway. Nothing is invented.
//!
//! ```
//! use talktree::{Message, SessionManager, Store};
//! use talktree_offline::{Place, answer};
//!
//! let store = Store::open_in_memory()?;
//! let sessions = SessionManager::builder(&store).build()?;
//! let chat = sessions.create("cats")?;
//! chat.append(Message::user("my cat is called Mozart"))?;
//! chat.append(Message::assistant("Noted."))?;
//! let question = Message::user("what is my cat called?");
//! chat.append(question.clone())?;
//! let place = Place { chat: &chat, sessions: &sessions, memory: "memory", knowledge: "knowledge" };
//! assert!(answer(place, &question)?.contains("“my cat is called Mozart”"));
//! # Ok::<(), talktree::Error>(())
//! ```

use talktree::{Author, Message, Result, Role, Session, SessionManager};

/// How many candidates for an answer are looked at.
const MAX_FOUND: usize = 24;

/// How many characters of a text an answer quotes.
const QUOTE: usize = 400;

/// A sentence that begins with one of these words is a question, also without a question mark.
const ASKING: &str = " what who whom whose when where why which how do does did is are am was were can could will would \
    should have has tell wer wann wo wie warum welche welcher welches hast habe ist sind ";

/// Stop words: they do not say what a question is about.
const EMPTY: &str = " the and for you your yours our his hers its their they them she him with that this these those there \
    here not but from about into than then any some all also just please know remember think remind called call name named \
    told said say again more much many old der die das und ein eine mein meine dein deine heißt heisst weißt ";

const KEEPS: &str = "\n(I am the offline model: I keep what you write and find it again. /help says what else I can do.)";

const NOTHING: &str = "I do not know: I find nothing about that in what you told me, nor in what I can look up. Tell me, and \
    I will remember it.";

/// What a retry says when every answer was given.
const NO_OTHER: &str = "I have no other answer. /branches lists those that I gave.";

/// Where an answer is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The conversation of the question, and of its other answers.
    pub chat: &'a Session,
    /// All sessions.
    pub sessions: &'a SessionManager,
    /// The label of the block with the memory.
    pub memory: &'a str,
    /// The label of the block with documents.
    pub knowledge: &'a str,
}

/// A candidate for an answer: its source, its text, and the share of the question's words that it has.
type Found = (String, String, f64);

/// Returns the answer to a message of the conversation; the next one to a question that has answers already. Answers name
/// commands of the bot: `/retry`, `/search`, `/branches`, `/help`.
///
/// # Errors
/// As every read.
pub fn answer(place: Place<'_>, message: &Message) -> Result<String> {
    let text = message.text();
    // A retry gets the next answer.
    let tried = place.chat.branches(&message.id)?.len();
    if !is_question(&text) && tried > 0 {
        return Ok(NO_OTHER.to_owned());
    }
    let first = text.split_whitespace().next().unwrap_or_default().to_lowercase();
    match first.trim_end_matches(|it: char| !it.is_alphanumeric()) {
        _ if text.split_whitespace().count() > 4 => {}
        "hi" | "hello" | "hey" | "hallo" | "moin" => return Ok(hello(Author::of(message))),
        "thanks" | "thank" | "danke" => return Ok("You are welcome.".to_owned()),
        _ => {}
    }
    if !is_question(&text) {
        let hint = if place.chat.path_length()? <= 1 { KEEPS } else { "" };
        let text = line(&text, QUOTE);
        return Ok(format!("Noted: “{text}” Ask me about it whenever you like.{hint}"));
    }
    let found = look_up(place, message, &text)?;
    let Some((from, text, share)) = found.get(tried) else {
        return Ok(if tried == 0 { NOTHING } else { NO_OTHER }.to_owned());
    };
    let doubt = if *share < 1.0 { "I am not sure; this is the closest that I find. " } else { "" };
    let more = match found.len() - 1 - tried {
        0 => String::new(),
        more => format!("\n({more} more; /retry shows another, /search WORDS all.)"),
    };
    Ok(format!("{doubt}{from}: “{text}”{more}"))
}

/// Greets someone, or nobody by name.
#[must_use]
pub fn hello(author: Option<Author>) -> String {
    let name =
        author.and_then(|author| author.name).map(|name| format!(", {}", line(&name, QUOTE)));
    format!(
        "Hello{}! I answer from memory, without a network. Tell me something, such as “my cat is Mozart”, and ask me about \
         it later, also tomorrow or after a restart. /help says what else I can do.",
        name.unwrap_or_default()
    )
}

/// Returns the candidates for an answer, the best first.
fn look_up(place: Place<'_>, question: &Message, text: &str) -> Result<Vec<Found>> {
    let asked = words(text);
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let share = |line: &str| {
        let known = words(line);
        let has = asked.iter().filter(|asked| known.iter().any(|known| is_same(known, asked)));
        has.count() as f64 / asked.len() as f64
    };
    // `max_by` returns the last of equals, so the lines are reversed: the first one counts.
    let best = |from: String, text: &str| -> Found {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).rev();
        let best =
            lines.max_by(|one, other| share(one).total_cmp(&share(other))).unwrap_or_default();
        (from, line(best.trim_start_matches("- "), QUOTE), share(best))
    };
    let mut found = Vec::new();
    if let Some(memory) = place.chat.block(place.memory)? {
        found.extend(memory.content.lines().map(|line| best("I remember".to_owned(), line)));
    }
    let query = asked.join(" ");
    if place.chat.block(place.knowledge)?.is_some() {
        for document in place.chat.context().search(place.knowledge, &query, MAX_FOUND)? {
            found.push(best(format!("From my knowledge, {}", document.key), &document.content));
        }
    }
    found.retain(|(_, _, share)| *share > 0.0);
    let search = match place.chat.info()?.and_then(|info| info.owner) {
        Some(owner) => place.sessions.store().search(&query).owner(owner),
        None => place.chat.search(&query),
    };
    for hit in search.plain().limit(2 * MAX_FOUND).run()?.hits {
        if hit.role != Role::User || hit.id == question.id || found.len() >= MAX_FOUND {
            continue;
        }
        let chat = place.sessions.session(hit.session)?;
        let Some(message) = chat.message(&hit.id)? else { continue };
        let said = message.text();
        if is_question(&said) {
            continue;
        }
        let (author, asks) = (Author::of(&message), Author::of(question));
        let who = match author {
            Some(Author { id, name, .. }) if asks.is_some_and(|asks| asks.id != id) => {
                format!("{} wrote", line(name.as_deref().unwrap_or("Somebody"), QUOTE))
            }
            _ => "You told me".to_owned(),
        };
        let elsewhere = if chat.id() == place.chat.id() { "" } else { ", in another conversation" };
        let time = message.created_at.format("%Y-%m-%d at %H:%M UTC");
        found.push(best(format!("{who} on {time}{elsewhere}"), &said));
    }
    // The sort is stable: among equals memory, then knowledge, then what the search finds best.
    found.sort_by(|one, other| other.2.total_cmp(&one.2));
    found.dedup_by(|one, other| one.1 == other.1);
    Ok(found)
}

/// Returns the words of a text without stop words. Of the short ones it keeps numbers and capitals, which are names: `room 7`,
/// `box B`.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|it: char| !it.is_alphanumeric()).filter(|word| !word.is_empty());
    let is_telling = |at: usize, word: &str| {
        let is_capital = at > 0 && word != "I" && word.chars().all(char::is_uppercase);
        let is_known = |list| is_in(list, &word.to_lowercase());
        is_capital || has_digit(word) || word.len() > 2 && !is_known(EMPTY) && !is_known(ASKING)
    };
    let words = words.enumerate().filter(|(at, word)| is_telling(*at, word));
    words.map(|(_, word)| word.to_lowercase()).collect()
}

/// Returns a text on one line, cut to this many characters.
fn line(text: &str, max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn has_digit(word: &str) -> bool {
    word.contains(|it: char| it.is_numeric())
}

fn is_in(list: &str, word: &str) -> bool {
    list.contains(&format!(" {word} "))
}

/// Returns whether two words differ by no more than an ending. Numbers and names of one or two letters have no endings.
fn is_same(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let longest = if short.len() < 3 || has_digit(long) { 0 } else { 3 };
    long.strip_prefix(short).is_some_and(|ending| ending.len() <= longest)
}

fn is_question(text: &str) -> bool {
    let first = text.split(|it: char| !it.is_alphanumeric()).find(|word| !word.is_empty());
    let is_asking = |word: &str| is_in(ASKING, &word.to_lowercase());
    text.trim_end().ends_with(['?', '？', '؟']) || first.is_some_and(is_asking)
}
