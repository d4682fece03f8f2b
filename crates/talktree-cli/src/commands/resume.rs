//! `talktree resume-command`: how a session goes on in the program that it came from.

use talktree::SessionInfo;
use talktree::records::fields::Fields;

use crate::prelude::*;

/// Print the command that goes on with a session in its own program
///
/// The program must still have the session; otherwise `talktree export --format` writes it for some of them.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,
}

/// The programs that take a session up again, by the source of their sessions, with the words before its id.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("claude-code", &["claude", "--resume"]),
    ("codex", &["codex", "resume"]),
    ("gemini-cli", &["gemini", "--resume"]),
    ("qwen-code", &["qwen", "--resume"]),
    ("opencode", &["opencode", "-s"]),
    ("pi", &["pi", "--session"]),
    ("copilot-cli", &["copilot", "--resume"]),
    ("goose", &["goose", "session", "--resume", "--session-id"]),
];

/// The programs with a page for each conversation.
const PAGES: &[(&str, &str)] =
    &[("chatgpt", "https://chatgpt.com/c/"), ("claude-ai", "https://claude.ai/chat/")];

pub(crate) fn run(args: ResumeArgs, context: &mut Context) -> Result<()> {
    let (_store, session) = context.read(&args.session)?;
    let info = session.info()?;
    let Some(info) = info else { return Err(Failure::NotFound("the session is gone".to_owned())) };
    let words = words(&info).map_err(Failure::Usage)?;
    let command = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
    let folder = info.metadata.as_ref().and_then(Fields::of).and_then(|about| about.text("cwd"));
    let line = match &folder {
        Some(folder) => format!("cd {} && {command}", quote(folder)),
        None => command,
    };
    let json =
        json!({"session": session.id(), "source": info.source, "folder": folder, "command": words});
    context.answer(&json, &[(PLAIN, &line)])
}

/// Returns the words of the command, or why there is none.
fn words(info: &SessionInfo) -> Result<Vec<String>, String> {
    let id = info.id.as_str();
    let source = info.source.as_deref().unwrap_or("no program");
    if let Some((_, page)) = PAGES.iter().find(|(known, _)| *known == source) {
        return Err(format!("a conversation of {source} goes on in the browser: {page}{id}"));
    }
    let export = command(&verb("export", &[id], "--format claude-code"));
    let Some((_, words)) = PROGRAMS.iter().find(|(known, _)| *known == source) else {
        return Err(format!(
            "it comes from {source}, which takes up no session; `{export}` writes it for Claude Code"
        ));
    };
    if let Some(parent) =
        info.parent_session.as_ref().filter(|parent| id.starts_with(&format!("{parent}/")))
    {
        return Err(format!("it is what a subagent of session {parent:?} said; resume that one"));
    }
    Ok(words.iter().copied().chain([id]).map(str::to_owned).collect())
}
