//! An assistant that plays one turn per run, offline: its model is a script.
//!
//! Run it twice: the second run continues where the first stopped, with what the first one stored in memory.
//!
//! ```console
//! $ cargo run --example assistant [STORE]
//! ```

use std::error::Error;
use std::path::PathBuf;

use serde_json::{Value, json};
use talktree::{Block, Document, Message, Part, Role, Session, Store};
use talktree_skills::SkillFolder;

/// One step of the model; in a real program, a response of its provider.
enum Act {
    Call(&'static str, Value),
    Say(&'static str),
}

/// A turn: what the user says, and the steps of the model.
struct Turn {
    user: &'static str,
    acts: Vec<Act>,
}

fn script() -> Vec<Turn> {
    use Act::{Call, Say};
    let report = || json!({"label": "skills", "key": "report"});
    vec![
        Turn {
            user: "I'm Ada, and I like my reports short. What did we sell in May?",
            acts: vec![
                Call(
                    "set_context",
                    json!({"label": "memory", "content": "The user is Ada. Likes short reports."}),
                ),
                Call("load_context", report()),
                Call("search_context", json!({"label": "knowledge", "query": "sold may"})),
                Call("unload_context", report()),
                Say("120 kettles, Ada."),
            ],
        },
        Turn {
            user: "And in June?",
            acts: vec![
                Call("search_context", json!({"label": "knowledge", "query": "sold june"})),
                Call("load_context", json!({"label": "skills", "key": "reprot"})), // mistyped
                Call(
                    "set_context",
                    json!({"label": "memory", "action": "append", "content": "Asks for sales figures."}),
                ),
                Say("80 kettles."),
            ],
        },
        Turn {
            user: "Thanks. What did I ask first?",
            acts: vec![
                Call("history_search", json!({"query": "reports"})),
                Say("What was sold in May."),
            ],
        },
    ]
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).map_or_else(default_path, PathBuf::from);
    let skills = skill_folder()?;
    let store = Store::open(&path)?;
    let chat = store
        .session_builder("ada")
        .block("soul", Block::text("You are the assistant of a small shop."))
        .block(
            "memory",
            Block::stored().describe("What you know of the user").max_tokens(200).remind(),
        )
        .block("skills", Block::skills(SkillFolder::open(skills.path())?))
        .block("knowledge", Block::knowledge().describe("Sales by month"))
        .cached_prompt()
        .history_tools()
        .open()?;
    for (title, text) in
        [("May", "In May we sold 120 kettles."), ("June", "In June we sold 80 kettles.")]
    {
        chat.context().set_document("knowledge", &Document::new("", text).titled(title))?;
    }

    let turns = script();
    let played = chat.raw_history()?.iter().filter(|message| message.role == Role::User).count();
    let Some(turn) = turns.get(played) else {
        println!("All turns have been played. Remove {} to start over.", path.display());
        return Ok(());
    };
    println!("Turn {} of {}, in {}", played + 1, turns.len(), path.display());
    if played > 0 {
        // Between two runs there is no provider cache that a changed prompt would invalidate.
        chat.refresh_prompt()?;
    }
    chat.append(Message::user(turn.user))?;
    show(&chat, "the user has written")?;
    for (number, act) in turn.acts.iter().enumerate() {
        play(&chat, act, &format!("call-{played}-{number}"))?;
    }
    if played + 1 < turns.len() {
        println!("\nRun it again to play the next turn.");
    }
    Ok(())
}

/// Stores the model's answer, or its tool call with the result.
fn play(chat: &Session, act: &Act, call_id: &str) -> Result<(), Box<dyn Error>> {
    match act {
        Act::Say(text) => {
            chat.append(Message::assistant(*text))?;
            show(chat, "the model has answered")?;
        }
        Act::Call(name, input) => {
            let call = Part::tool_call(*name, call_id, input.clone());
            chat.append(Message::new(Role::Assistant, vec![call]))?;
            let answer = chat.tools().call(name, input)?;
            let result = Part::tool_result(*name, call_id, Value::from(answer));
            chat.append(Message::new("tool", vec![result]))?;
            show(chat, &format!("the model has called {name}"))?;
        }
    }
    Ok(())
}

/// Prints what the model would see now.
fn show(chat: &Session, what: &str) -> talktree::Result<()> {
    println!("\n──── {what} ────\n");
    println!("{}", chat.prompt()?);
    if let Some(reminder) = chat.reminder()? {
        println!("\n[reminder] {reminder}");
    }
    println!();
    for message in chat.history()? {
        for part in &message.parts {
            match part {
                Part::Tool(tool) => {
                    let text = tool.input.as_ref().or(tool.output.as_ref());
                    let text = text.map(ToString::to_string).unwrap_or_default();
                    println!("{:9} {} {text}", message.role.as_str(), tool.name);
                }
                _ => println!("{:9} {}", message.role.as_str(), message.text()),
            }
        }
    }
    Ok(())
}

fn default_path() -> PathBuf {
    std::env::temp_dir().join("talktree-assistant.db")
}

/// Creates a folder with one skill; a real program ships its own.
fn skill_folder() -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let skill = "---\nname: report\ndescription: How to report figures\n---\n\
                 Give the number first. One sentence. Name the unit.\n";
    std::fs::create_dir(folder.path().join("report"))?;
    std::fs::write(folder.path().join("report/SKILL.md"), skill)?;
    Ok(folder)
}
