//! Draws the screen: the list on the left, the branches and the text on the right; one of them alone on a narrow terminal.

use chrono::Local;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Borders, Clear, Paragraph};
use talktree::{PieceKind, Snippet};

use super::app::{App, Pane, Typing};
use super::lines::{FAINT, MARK, PLAIN, STRONG, SUMMARY, role_style};
use super::list::{Found, place_of, title};
use crate::text::{cut, escape, one_line};
use crate::time::ago;

/// On fewer columns one pane is shown beside the text at most.
const WIDE: u16 = 120;
/// On fewer columns each pane has the screen alone.
const NARROW: u16 = 100;

const KEYS: &str =
    "j k move  l open  h back  / search  [ ] versions  b branches  ? all keys  q quit";

const HELP: &str = "\
  j k ↓ ↑         the next row or message, the one before
  space PgUp      a pane further, back
  g G             the start, the end
  l → Enter       open: a session, a hit, a summary, a tool, a long text
  h ← Esc         back to the list
  Tab             the next pane
  /               search as you type; Enter: to the hits, Esc: no search
  [ ]             other versions of the next message that has some
  b               the branches: each line shows its message
  r               as it was said, or as a model should see it
  y               copy the text
  o               open in the page, in a browser
  c m u           checkout, label, undo the checkout (with --write)
  q               quit";

pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    draw_top(frame, app, top);
    draw_panes(frame, app, middle);
    let notice = match app.notice.is_empty() {
        true => Line::styled(KEYS, FAINT),
        false => Line::styled(app.notice.clone(), MARK),
    };
    frame.render_widget(notice, bottom);
    if app.shows_help {
        let area = middle.centered(Constraint::Length(74), Constraint::Length(17));
        frame.render_widget(Clear, area);
        let block = Block::bordered().border_type(BorderType::Rounded).title(" keys ");
        frame.render_widget(Paragraph::new(HELP).block(block), area);
    }
    if !app.is_coloured {
        // What colour says, weight and inversion say, too.
        for cell in &mut frame.buffer_mut().content {
            (cell.fg, cell.bg) = Default::default();
        }
    }
}

fn draw_top(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let line = match (app.typing, &app.find) {
        (Some(Typing::Label), _) => field("label", &app.label, true),
        (typing, Some(find)) => {
            let mut line = field("search", &find.query, typing == Some(Typing::Query));
            line.push_span(Span::styled(format!("   {}", find.about), FAINT));
            line
        }
        _ => {
            let owner = app.owner.iter().map(|owner| format!("  of {}", one_line(owner)));
            let path = crate::text::shown(&app.path);
            Line::from(vec![
                Span::styled("talktree", STRONG),
                Span::styled(format!("  {path}{}", owner.collect::<String>()), FAINT),
            ])
        }
    };
    frame.render_widget(line, area);
}

fn field(name: &str, text: &str, is_typed: bool) -> Line<'static> {
    let mut spans =
        vec![Span::styled(format!("{name}: "), STRONG), Span::raw(escape(text).into_owned())];
    spans
        .extend(is_typed.then(|| Span::styled(" ", Style::new().add_modifier(Modifier::REVERSED))));
    Line::from(spans)
}

/// Divides the screen by its width.
fn draw_panes(frame: &mut Frame<'_>, app: &mut App, area: Rect) {
    let share = |percent| Constraint::Percentage(percent);
    let is_wide = area.width >= WIDE;
    if area.width < NARROW {
        return match app.pane {
            Pane::List => draw_list(frame, app, area),
            Pane::Branches => draw_branches(frame, app, area),
            Pane::Text => draw_text(frame, app, area),
        };
    }
    let list = if app.find.is_some() { share(40) } else { share(30) };
    if is_wide && app.pane == Pane::Branches {
        let [list, branches, text] =
            Layout::horizontal([share(20), share(40), share(40)]).areas(area);
        draw_list(frame, app, list);
        draw_branches(frame, app, branches);
        return draw_text(frame, app, text);
    }
    let [left, right] = Layout::horizontal([list, Constraint::Min(1)]).areas(area);
    match app.pane {
        Pane::Branches => draw_branches(frame, app, left),
        _ => draw_list(frame, app, left),
    }
    draw_text(frame, app, right);
}

/// Draws the frame of a pane, and returns what is in it.
fn pane(frame: &mut Frame<'_>, name: Line<'static>, has_keys: bool, area: Rect) -> Rect {
    let style = if has_keys { MARK } else { FAINT };
    let name = name.style(if has_keys { STRONG } else { FAINT });
    let block = Block::new().borders(Borders::TOP | Borders::RIGHT).border_style(style).title(name);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

fn draw_list(frame: &mut Frame<'_>, app: &mut App, area: Rect) {
    let has_keys = app.pane == Pane::List;
    let name = if app.find.is_some() { " hits " } else { " sessions " };
    let area = pane(frame, Line::from(name), has_keys, area);
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let now = Local::now();
    let mut rows = Vec::with_capacity(height);
    match &mut app.find {
        Some(find) => {
            // A hit has two lines.
            let top = find.place.seen(height / 2);
            for (at, row) in find.rows.iter().enumerate().skip(top).take(height) {
                match row {
                    Found::Session(title) => {
                        rows.push(Line::styled(cut(title, width).into_owned(), STRONG));
                    }
                    Found::Hit(hit) => {
                        let role = Span::styled(one_line(hit.role.as_str()), role_style(&hit.role));
                        let time = Span::styled(format!("  {}", ago(hit.created_at, &now)), FAINT);
                        // Before the time, which may be cut.
                        let place = Span::styled(place_of(hit), SUMMARY);
                        rows.push(Line::from(vec![Span::raw("  "), role, place, time]));
                        select(&mut rows, at == find.place.selected, has_keys);
                        rows.push(snippet(&hit.snippet, width));
                    }
                }
            }
        }
        None => {
            let sessions = &mut app.sessions;
            let top = sessions.place.seen(height);
            for (at, listed) in sessions.rows.iter().enumerate().skip(top).take(height) {
                let time = ago(listed.info.last_message_at.unwrap_or(listed.info.created_at), &now);
                let about = format!("  {time}");
                let title = title(listed);
                let room = width.saturating_sub(Span::raw(&*about).width());
                let title = Span::raw(cut(&title, room).into_owned());
                let gap = " ".repeat(room.saturating_sub(title.width()));
                rows.push(Line::from(vec![title, Span::raw(gap), Span::styled(about, FAINT)]));
                select(&mut rows, at == sessions.place.selected, has_keys);
            }
            if rows.is_empty() {
                rows.push(Line::styled("the store holds no sessions", FAINT));
            }
        }
    }
    frame.render_widget(Paragraph::new(rows), area);
}

/// Returns the line of a snippet that begins so near before its first match that one sees the match.
fn snippet(snippet: &Snippet, width: usize) -> Line<'static> {
    let mut spans = vec![Span::raw("    ")];
    for (number, (text, is_match)) in snippet.pieces().enumerate() {
        let text = escape(text).replace(['\n', '\t'], " ");
        let most = if number == 0 && !is_match { width / 2 } else { usize::MAX };
        let from = text.char_indices().rev().take(most).last().map_or(0, |(at, _)| at);
        let dots = if from > 0 { "…" } else { "" };
        let style = if is_match { MARK } else { PLAIN };
        spans.push(Span::styled(format!("{dots}{}", &text[from..]), style));
    }
    Line::from(spans)
}

/// Marks the last row if it is the selected one.
fn select(rows: &mut [Line<'static>], is_selected: bool, has_keys: bool) {
    if let Some(row) = rows.last_mut().filter(|_| is_selected) {
        let how = if has_keys { Modifier::REVERSED } else { Modifier::UNDERLINED };
        *row = std::mem::take(row).patch_style(Style::new().add_modifier(how));
    }
}

fn draw_branches(frame: &mut Frame<'_>, app: &mut App, area: Rect) {
    let has_keys = app.pane == Pane::Branches;
    let area = pane(frame, Line::from(" branches "), has_keys, area);
    let Some(chat) = &mut app.chat else { return };
    let height = usize::from(area.height);
    let top = chat.at_branch.seen(height);
    let mut rows = Vec::with_capacity(height);
    for (at, line) in chat.branches.iter().enumerate().skip(top).take(height) {
        let pieces = line.pieces.iter().filter(|(kind, _)| *kind != PieceKind::Id);
        let spans =
            pieces.map(|(kind, text)| Span::styled(escape(text).into_owned(), piece_style(*kind)));
        rows.push(Line::from_iter(spans));
        select(&mut rows, at == chat.at_branch.selected, has_keys);
    }
    frame.render_widget(Paragraph::new(rows), area);
}

fn piece_style(kind: PieceKind) -> Style {
    match kind {
        PieceKind::Head | PieceKind::Label => MARK,
        PieceKind::Role => STRONG,
        PieceKind::Compaction => SUMMARY,
        PieceKind::Faded | PieceKind::More | PieceKind::Graph => FAINT,
        _ => PLAIN,
    }
}

fn draw_text(frame: &mut Frame<'_>, app: &mut App, area: Rect) {
    let has_keys = app.pane == Pane::Text;
    let name = match &app.chat {
        Some(chat) => {
            let raw = if chat.is_raw { "  as it was said " } else { "" };
            let title = cut(&chat.title, usize::from(area.width).saturating_sub(24)).into_owned();
            Line::from(vec![Span::raw(format!(" {title} ")), Span::styled(raw, SUMMARY)])
        }
        None => Line::default(),
    };
    let area = pane(frame, name, has_keys, area);
    let Some(chat) = &mut app.chat else { return };
    // A mark and a space before each line.
    let width = usize::from(area.width).saturating_sub(3);
    let lines =
        chat.seen(width, usize::from(area.height)).into_iter().map(|(line, is_selected)| {
            let mark = if is_selected { Span::styled("▌ ", MARK) } else { Span::raw("  ") };
            Line::from_iter([mark].into_iter().chain(line.spans))
        });
    let lines: Vec<Line<'_>> = lines.collect();
    match lines.is_empty() {
        true => frame.render_widget(Line::styled("  no messages", FAINT), area),
        false => frame.render_widget(Paragraph::new(lines), area),
    }
}
