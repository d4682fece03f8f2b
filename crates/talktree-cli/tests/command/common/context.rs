//! A session with content under labels of each kind.

use std::io::Write;
use std::process::Stdio;

use talktree::{Block, Context, Document, Store};

use super::{Answer, Rig};

/// Returns the context of a program: a text, skills and knowledge of the session, and a shared text.
pub(crate) fn program(store: &Store) -> Context {
    let open = store
        .session_builder("tour")
        .cached_prompt()
        .block("soul", Block::text("You plan trips."))
        .block("memory", Block::stored().describe("Learned facts").max_tokens(100))
        .block("skills", Block::stored_skills())
        .block("knowledge", Block::knowledge())
        .block("house rules", Block::shared());
    open.open().unwrap().context().clone()
}

/// Returns a rig whose session `tour` has content under each label.
pub(crate) fn filled() -> Rig {
    let rig = Rig::toured();
    let store = Store::open(rig.store()).unwrap();
    let context = program(&store);
    context.set("memory", "Likes tea.\nLives in Bern.").unwrap();
    context.set("memory", "Likes coffee.\nLives in Bern.").unwrap();
    let pdf = Document::new("pdf", "Use pdftotext.").titled("PDF").described("Reads PDFs");
    context.set_document("skills", &pdf).unwrap();
    for (key, fact) in [("shop", "The shop opens at nine."), ("bus", "The bus stops at the shop.")]
    {
        context.set_document("knowledge", &Document::new(key, fact)).unwrap();
    }
    context.set("house rules", "Be brief.").unwrap();
    rig
}

pub(crate) fn feed(rig: &Rig, args: &[&str], input: &str) -> Answer {
    let mut command = rig.command(args);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A refused command does not read stdin.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    Answer::of(child.wait_with_output().unwrap())
}

pub(crate) fn show(rig: &Rig, label: &str) -> String {
    rig.ok(["context", "show", "tour", label])
}
