//! Screens after keys, at two widths.

use std::path::PathBuf;

use chrono::{DateTime, TimeDelta, Utc};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;
use talktree::{Message, Part, Role, Session, Store};

use super::app::App;
use super::{Browsed, draw};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Somebody at a terminal of this size.
struct Person(App, Terminal<TestBackend>);

impl Person {
    fn at(store: &Store, session: Option<Session>, width: u16, height: u16) -> Self {
        Self::who(true, store, session, width, height)
    }

    /// Somebody who may write and sees colours, or neither.
    fn who(may: bool, store: &Store, session: Option<Session>, width: u16, height: u16) -> Self {
        let (path, owner, store) = (PathBuf::from("chats.db"), None, store.clone());
        let browsed = Browsed { store, path, owner, session, can_write: may, is_coloured: may };
        let Ok(app) = App::new(browsed) else { panic!("the store cannot be read") };
        Self(app, Terminal::new(TestBackend::new(width, height)).unwrap())
    }

    /// Presses keys and returns the screen. `\n` is Enter, `\t` Tab, `\u{1b}` Esc.
    fn press(&mut self, keys: &str) -> String {
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\u{1b}' => KeyCode::Esc,
                '\u{8}' => KeyCode::Backspace,
                key => KeyCode::Char(key),
            };
            self.0.press(KeyEvent::new(code, KeyModifiers::NONE));
            self.screen();
        }
        while self.0.patience().is_some() {
            self.0.idle();
        }
        self.screen()
    }

    fn screen(&mut self) -> String {
        self.1.draw(|frame| draw::draw(frame, &mut self.0)).unwrap();
        let buffer = self.1.backend().buffer();
        let rows = buffer.content.chunks(usize::from(buffer.area.width));
        let rows = rows.map(|row| {
            // A wide character is in its first cell; the one after it is empty.
            let mut text = String::new();
            let mut hidden = 0;
            for cell in row {
                if hidden > 0 {
                    hidden -= 1;
                    continue;
                }
                text += cell.symbol();
                hidden = unicode_width::UnicodeWidthStr::width(cell.symbol()).saturating_sub(1);
            }
            text.trim_end().to_owned() + "\n"
        });
        rows.collect()
    }
}

fn time(hours: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::hours(hours)
}

/// A conversation with two answers in March, a summary, a tool and a hidden message.
fn example() -> Result<(Store, Session), talktree::Error> {
    let store = Store::open_in_memory()?;
    let chat = store.create_session("Trip to Kyoto")?;
    let say = |message: Message, hours| message.at(time(hours));
    let ask = chat.append(say(Message::user("Where should we stay in March?"), 0))?.id;
    chat.append(say(Message::assistant("The ryokan by the river has a garden."), 1))?;
    chat.append(say(Message::user("Too expensive, something else?"), 2))?;
    chat.append_to(&ask, say(Message::assistant("The hostel 京都旅館 near the station."), 3))?;
    chat.append(say(Message::user("Good, what is the weather?"), 4))?;
    let call = Part::tool_call("weather", "call-1", json!({"city": "Kyoto"}));
    chat.append(say(Message::new(Role::Assistant, vec![call]), 5))?;
    chat.append(say(Message::assistant("Cherry blossom, 14 degrees."), 6).hidden())?;
    chat.append(say(Message::user("Then pack light."), 7))?;
    let other = store.create_session("Shopping")?;
    other.append(say(Message::user("Milk and rice"), -10))?;
    Ok((store, chat))
}

#[test]
fn sessions_are_beside_the_text_of_the_selected_one() -> Outcome {
    let (store, _) = example()?;
    let mut person = Person::at(&store, None, 100, 14);
    let screen = person.screen();
    assert!(screen.starts_with("talktree  chats.db\n"));
    assert!(screen.contains("Trip to Kyoto") && screen.contains("Then pack light."), "{screen}");
    let screen = person.press("j");
    assert!(screen.contains("Milk and rice"), "{screen}");
    Ok(())
}

#[test]
fn the_answer_that_was_left_behind_is_found_in_few_keys() -> Outcome {
    let (store, _) = example()?;
    for width in [80, 140] {
        let mut person = Person::at(&store, None, width, 20);
        let screen = person.press("/ryokan");
        assert!(screen.contains("on another branch") && screen.contains("1 message"), "{screen}");
        let screen = person.press("\n\n");
        assert!(screen.contains("The ryokan by the river has a garden."), "{screen}");
        assert!(screen.contains("‹ 1/2 ›") && screen.contains("Too expensive"), "{screen}");
        let screen = person.press("]");
        assert!(screen.contains("‹ 2/2 ›") && screen.contains("▌ The hostel 京都旅館"), "{screen}");
    }
    Ok(())
}

#[test]
fn summaries_tools_and_hidden_messages_are_opened() -> Outcome {
    let (store, chat) = example()?;
    let raw = chat.raw_history()?;
    chat.add_compaction("They look for a bed.", &raw[0].id, &raw[2].id)?;
    let mut person = Person::at(&store, Some(chat), 100, 30);
    let screen = person.screen();
    assert!(screen.contains("▸ summary of 3 messages") && screen.contains("They look for a bed."));
    assert!(!screen.contains("Where should") && !screen.contains("Cherry blossom"), "{screen}");
    let screen = person.press("g\n");
    assert!(screen.contains("▾ summary") && screen.contains("│ Where should we stay"), "{screen}");
    let screen = person.press("\njjj");
    assert!(!screen.contains("Where should"), "{screen}");
    let screen = person.press("k\n");
    assert!(
        screen.contains("▾ calls weather") && screen.contains("\"city\": \"Kyoto\""),
        "{screen}"
    );
    let screen = person.press("r");
    assert!(screen.contains("as it was said") && screen.contains("Cherry blossom"), "{screen}");
    assert!(screen.contains("hidden") && screen.contains("Where should we stay"), "{screen}");
    Ok(())
}

#[test]
fn branches_are_walked_through_and_checked_out() -> Outcome {
    let (store, chat) = example()?;
    for width in [80, 130] {
        let mut person = Person::at(&store, Some(chat.clone()), width, 20);
        let screen = person.press("b");
        assert!(screen.contains("├─o assistant  The ryokan"), "{screen}");
        let screen = person.press("jj\n");
        assert!(screen.contains("The ryokan by the river has a garden."), "{screen}");
        assert!(screen.contains("Too expensive"), "{screen}");
    }
    let mut person = Person::at(&store, Some(chat.clone()), 100, 20);
    let before = chat.head()?;
    let screen = person.press("bjj\nc");
    assert!(screen.contains("the head is at this message"), "{screen}");
    assert_ne!(chat.head()?, before);
    let screen = person.press("u");
    assert!(screen.contains("the head is where it was before"), "{screen}");
    assert_eq!(chat.head()?, before);
    person.press("mbest\n");
    assert!(chat.labels()?.iter().any(|label| label.name == "best"));
    Ok(())
}

#[test]
fn nothing_is_written_unless_that_was_asked_for() -> Outcome {
    let (store, chat) = example()?;
    let before = chat.info()?;
    let mut person = Person::who(false, &store, Some(chat.clone()), 100, 20);
    for key in ["kc", "m", "u"] {
        let screen = person.press(key);
        assert!(key == "u" || screen.contains("begin with --write"), "{screen}");
    }
    assert_eq!(chat.info()?, before);
    let coloured = |cell: &ratatui::buffer::Cell| cell.fg != ratatui::style::Color::Reset;
    assert!(!person.1.backend().buffer().content.iter().any(coloured));
    Ok(())
}

#[test]
fn a_long_conversation_is_read_as_one_scrolls() -> Outcome {
    let store = Store::open_in_memory()?;
    let chat = store.create_session("Long")?;
    chat.append_all((1..=1_000).map(|n| Message::user(format!("number {n}."))))?;
    let mut person = Person::at(&store, Some(chat.clone()), 100, 20);
    assert!(person.screen().contains("number 1000."));
    let mut up = 0;
    while !person.screen().contains("number 850.") {
        person.press("k");
        up += 1;
        assert!(up < 160, "{}", person.screen());
    }
    let screen = person.press("gjjj");
    assert!(screen.contains("▌ number 4."), "{screen}");
    let screen = person.press(&"j".repeat(150));
    assert!(screen.contains("▌ number 154."), "{screen}");
    chat.append(Message::user("And one more."))?;
    let screen = person.press("G");
    assert!(screen.contains("And one more."), "{screen}");
    chat.append(Message::user("It goes on."))?;
    person.0.idle();
    assert!(person.screen().contains("▌ It goes on."), "{}", person.screen());
    Ok(())
}

#[test]
fn a_long_summary_is_read_as_one_scrolls() -> Outcome {
    let store = Store::open_in_memory()?;
    let chat = store.create_session("Long")?;
    let ids = (1..=1_000).map(|n| format!("m{n}"));
    chat.append_all(ids.map(|id| Message::user(format!("number {id}.")).with_id(id)))?;
    chat.add_compaction("Some.", &"m101".into(), &"m110".into())?;
    chat.add_compaction("All of it.", &"m1".into(), &"m999".into())?;
    let mut person = Person::at(&store, Some(chat), 100, 20);
    let screen = person.press("g\n");
    assert!(screen.contains("▾ summary of 999") && screen.contains("│ number m4."), "{screen}");
    let screen = person.press(&"j".repeat(101));
    assert!(screen.contains("▌ │ user") || screen.contains("▸ summary of 10"), "{screen}");
    let screen = person.press(&format!("\n{}", "j".repeat(12)));
    assert!(screen.contains("│ │ number m110.") && screen.contains("▌ │ number m112."), "{screen}");
    let screen = person.press(&"j".repeat(887));
    assert!(screen.contains("▌ │ number m999."), "{screen}");
    let screen = person.press("j");
    assert!(screen.contains("▌ number m1000."), "{screen}");
    Ok(())
}

#[test]
fn texts_that_control_a_terminal_are_shown_as_escapes() -> Outcome {
    let store = Store::open_in_memory()?;
    let chat = store.create_session("n\u{1b}[2J\u{202e}")?;
    let text = format!("bell \u{7} turn \u{202e} {} end", "x".repeat(2 << 20));
    chat.append(Message::new(Role::from("us\u{1b}er"), vec![Part::text(text)]))?;
    let mut person = Person::at(&store, None, 80, 24);
    for keys in ["", "l", "\n", "b", "\u{1b}", "/bell", "\n\n"] {
        let screen = person.press(keys);
        let found = screen.chars().find(|c| crate::text::is_unsafe(*c) && *c != '\n');
        assert_eq!(found, None, "{keys:?}: {screen}");
    }
    Ok(())
}

#[test]
fn help_is_shown_until_the_next_key() -> Outcome {
    let (store, _) = example()?;
    let mut person = Person::at(&store, None, 80, 24);
    assert!(person.press("?").contains("other versions of the next message that has some "));
    assert!(!person.press("j").contains("other versions"));
    person.press("q");
    assert!(person.0.is_done);
    Ok(())
}
