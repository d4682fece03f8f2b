//! `talktree context list`, `show`, `search`, `prompt` and `export`: read stored texts.

use std::io::Write;

use super::scope::{self, Kind, OnlyScopeArgs, Scope, ScopeArgs, StoredLabel};
use crate::output::Exact;
use crate::prelude::*;

/// List what is stored: texts, skills, knowledge
///
/// `tokens` is the size in a prompt, `versions` counts the versions of the texts.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    scope: OnlyScopeArgs,
}

pub(super) fn list(args: ListArgs, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let styles = [LABEL, PLAIN, PLAIN, PLAIN, PLAIN, FAINT, FAINT];
    let mut table = Table::new("label kind documents tokens versions changed of", styles);
    for held in Scope::of_only(&store, &args.scope)?.seen()? {
        let documents = held.documents()?;
        let count = documents.len() as u64;
        let (versions, changed_at) = match held.kind {
            Kind::Text => held.last_version()?,
            _ => (
                documents.iter().map(|document| document.version).sum(),
                documents.iter().map(|document| document.changed_at).max(),
            ),
        };
        let mut json = held.json();
        for (name, count) in [("documents", count), ("tokens", held.tokens), ("versions", versions)]
        {
            json[name] = json!(count);
        }
        json["changed_at"] = json!(changed_at);
        let cells = [
            held.label.clone(),
            held.kind.as_str().to_owned(),
            if held.kind == Kind::Text { String::new() } else { count.to_string() },
            held.tokens.to_string(),
            versions.to_string(),
            changed_at.map(|at| context.out.ago(at)).unwrap_or_default(),
            match (&held.scope.owner, held.scope.is_shared) {
                (Some(owner), _) => format!("owner {owner}"),
                (None, true) => "all sessions".to_owned(),
                (None, false) => "this session".to_owned(),
            },
        ];
        context.row(&mut table, &json, cells)?;
    }
    context.write_list(&table, None, || Ok("nothing is stored here".to_owned()))
}

/// Read the text under a label, or a document of it
///
/// Without a KEY, the documents of skills and knowledge are listed.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    scope: ScopeArgs,

    /// The label of the text.
    label: String,

    /// The key of a document.
    #[arg(value_parser = scope::key())]
    key: Option<String>,
}

pub(super) fn show(args: ShowArgs, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let held = Scope::of(&store, &args.scope)?.read(&args.label)?;
    let mut json = held.json();
    let content = match &args.key {
        None if held.kind != Kind::Text => return documents(context, &held),
        None => {
            let (version, changed_at) = held.last_version()?;
            json["tokens"] = json!(held.tokens);
            (json["version"], json["changed_at"]) = (json!(version), json!(changed_at));
            (json["title"], json["description"]) = (json!(null), json!(null));
            held.content.clone()
        }
        Some(key) => {
            held.check_keyed()?;
            let (known, content) = held.document(key)?.ok_or_else(|| held.unknown_document(key))?;
            json["tokens"] = json!(talktree::estimate_tokens(&content));
            (json["version"], json["changed_at"]) = (json!(known.version), json!(known.changed_at));
            (json["title"], json["description"]) = (json!(known.title), json!(known.description));
            content
        }
    };
    (json["key"], json["content"]) = (json!(args.key), json!(content));
    match context.is_json {
        true => context.out.json(&json)?,
        false => context.out.block(PLAIN, "", &content)?,
    }
    Ok(())
}

fn documents(context: &mut Context, held: &StoredLabel<'_>) -> Result<()> {
    let styles = [ID, PLAIN, FAINT, STRONG, PLAIN];
    let mut table = Table::new("key version changed title description", styles);
    for document in held.documents()? {
        let cells = [
            document.key.clone(),
            document.version.to_string(),
            context.out.ago(document.changed_at),
            one_line(document.title.as_deref().unwrap_or_default()),
            one_line(document.description.as_deref().unwrap_or_default()),
        ];
        context.row(&mut table, &document, cells)?;
    }
    if !context.is_json {
        table.write(&mut context.out)?;
    }
    Ok(())
}

/// Find documents of knowledge, best first
///
/// The query is in the language of `talktree search`. If no document has all words, documents with
/// any of them are found.
#[derive(Debug, clap::Args)]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    scope: ScopeArgs,

    /// The label of the documents.
    label: String,

    /// What to look for.
    #[arg(required = true)]
    query: Vec<String>,

    /// Show at most this many.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

pub(super) fn search(args: SearchArgs, context: &mut Context) -> Result<()> {
    let query = args.query.join(" ");
    if query.trim().is_empty() {
        return Err(Failure::Usage("the query is empty: there is nothing to find".to_owned()));
    }
    let store = context.searcher()?;
    let held = Scope::of(&store, &args.scope)?.read(&args.label)?;
    if held.kind != Kind::Knowledge {
        let is = if held.kind == Kind::Text { "a text" } else { "skills" };
        let why = format!("{:?} holds {is}; only knowledge is searched", args.label);
        return Err(Failure::Usage(why));
    }
    let found = held.context.search(&args.label, &query, args.limit)?;
    if found.is_empty() {
        let why = match args.limit {
            0 => "no documents are printed with --limit 0",
            _ => "nothing found",
        };
        return Err(Failure::NotFound(why.to_owned()));
    }
    for document in &found {
        let (title, description) = (&document.title, &document.description);
        let (key, content) = (&*document.key, &*document.content);
        if context.is_json {
            context.out.json(&json!({
                "key": key, "title": title, "description": description, "content": content,
            }))?;
            continue;
        }
        let title = title.as_deref().map(one_line).filter(|title| !title.is_empty());
        let title = title.map(|title| format!("  {title}")).unwrap_or_default();
        context.out.line_cut(&[(ID, key), (STRONG, &title)])?;
        if let Some(description) = description {
            context.out.line_cut(&[(PLAIN, "  "), (FAINT, &one_line(description))])?;
        }
        let first = content.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        context.out.line_cut(&[(PLAIN, "  "), (PLAIN, &one_line(first))])?;
        context.out.line(&[])?;
    }
    Ok(())
}

/// Read the frozen prompt
///
/// This is the prompt as a program froze it, with its fixed texts; nothing is rendered again.
#[derive(Debug, clap::Args)]
pub(crate) struct PromptArgs {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,
}

pub(super) fn prompt(args: PromptArgs, context: &mut Context) -> Result<()> {
    let (store, session) = context.read(&args.session)?;
    let scope = Scope::session(&store, &session)?;
    let frozen = scope.context([])?.frozen_prompt()?;
    let prompt = frozen.ok_or_else(|| not_frozen(&scope))?;
    if context.is_json {
        let tokens = talktree::estimate_tokens(&prompt);
        let json = json!({"session": session.id(), "prompt": prompt, "tokens": tokens});
        return Ok(context.out.json(&json)?);
    }
    Ok(context.out.block(PLAIN, "", &prompt)?)
}

pub(super) fn not_frozen(scope: &Scope<'_>) -> Failure {
    Failure::NotFound(format!("{}: no prompt is frozen", escape(&scope.name)))
}

/// Write the texts as one Markdown page, a heading for each label
///
/// `talktree context import` reads it. Documents of skills and knowledge are left out.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    scope: OnlyScopeArgs,
}

pub(super) fn export(args: ExportArgs, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let scope = Scope::of_only(&store, &args.scope)?;
    let (texts, keyed): (Vec<_>, Vec<_>) =
        scope.held()?.into_iter().partition(|held| held.kind == Kind::Text);
    for held in &keyed {
        let documents = plural(held.documents()?.len() as u64, "document");
        tell(&format!("{}: {documents} left out; a page holds texts", held.label));
    }
    if texts.is_empty() {
        return Err(Failure::NotFound(format!("{}: no text is stored", escape(&scope.name))));
    }
    if context.is_json {
        let (owner, shared) = (&scope.owner, scope.is_shared);
        return Ok(texts.iter().try_for_each(|held| {
            let (label, content) = (&held.label, &held.content);
            context.out.json(
                &json!({"label": label, "owner": owner, "shared": shared, "content": content}),
            )
        })?);
    }
    let blocks = texts.iter().map(|held| (held.label.clone(), scope.block(Kind::Text)));
    let page = scope.context(blocks)?.to_markdown()?;
    let mut out = Exact::new(&mut context.out, false);
    out.write_all(page.as_bytes())?;
    Ok(out.flush()?)
}
