//! Checks what a run left: in the chats, in the requests, in the store, in the log.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use talktree::{Message, Part, Role, SessionManager, Store};

use super::game::Played;
use super::talk::{FACT, Talk};
use super::{Args, PLACEHOLDER, Report, Size};
use crate::model::{Asked, Kind};
use crate::process::{SECRET, Settings};
use crate::spread::Spread;
use crate::telegram::{Call, Fault, Outcome};
use crate::{Mark, Model, Result, Telegram, marks_in};

/// How long a bot that was started may be busy with what came meanwhile.
const AFTER_START: Duration = Duration::from_secs(2);

/// With fewer times the p99 is nearly the longest one, so it is printed and not judged.
const ENOUGH: usize = 1_000;

pub(super) fn run(
    played: &Played,
    size: &Size,
    args: &Args,
    settings: &Settings,
    telegram: &Telegram,
    model: &Model,
    report: &mut Report,
) -> Result<()> {
    let calls = telegram.calls_from(0);
    let asked = model.asked_from(0);
    facts(played, size, report, &calls, &asked);
    chats(played, telegram, &calls, report);
    let (violations, count) = model.violations();
    report.fact("requests that break a rule", count);
    report.faults(violations);
    times(played, args, size, settings, telegram, &calls, &asked, report);
    memory(played, size, report);
    store(played, size, settings, report)?;
    log(settings, report)?;
    report.fact("whole run", format!("{:.0} s", report.elapsed().as_secs_f64()));
    Ok(())
}

fn facts(played: &Played, size: &Size, report: &mut Report, calls: &[Call], asked: &[Asked]) {
    let written: usize = played.talks.iter().map(|talk| talk.turns.len()).sum();
    let answers = || played.talks.iter().flat_map(|talk| &talk.turns);
    let answered = answers().filter(|turn| turn.done.is_some()).count();
    report.fact("messages written", written);
    report.fact("answers", answered);
    report.fact("answers a second", format!("{:.0}", answered as f64 / played.seconds));
    report.fact("pause before a message, on average", format!("{:?}", size.think));
    report.fact("turns a second, while all chats wrote", format!("{:.0}", rate(played)));
    if let Some(cpu) = played.cpu {
        let of_turn = cpu.as_secs_f64() * 1e3 / answered.max(1) as f64;
        let all = cpu.as_secs_f64();
        report.fact("CPU time of the bot", format!("{of_turn:.2} ms a turn, {all:.1} s in all"));
    }
    report.fact("killed", played.kills.len());
    report.fact("restarted", played.restarts.len());
    report.fact("slowest ending", format!("{:.2} s", played.slowest_ending.as_secs_f64()));
    report.fact("calls of Telegram", calls.len());
    let faults = calls.iter().filter(|call| matches!(call.outcome, Outcome::Fault(_))).count();
    let refused: BTreeMap<String, usize> = calls.iter().fold(BTreeMap::new(), |mut map, call| {
        if let Outcome::Refused(code) = call.outcome {
            *map.entry(format!("{} {code}", call.method)).or_default() += 1;
        }
        map
    });
    report.fact("of these went wrong on purpose", faults);
    report.fact("of these were refused", format!("{refused:?}"));
    let kinds = |kind| asked.iter().filter(|asked| asked.kind == kind).count();
    report.fact("requests for texts", kinds(Kind::Text));
    report.fact("requests that called tools", kinds(Kind::Tool));
    report.fact("requests for summaries", kinds(Kind::Summary));
    let faults = asked.iter().filter(|asked| asked.fault.is_some()).count();
    report.fact("requests that went wrong on purpose", faults);
    let most = |kind| {
        let tokens = asked.iter().filter(|asked| asked.kind == kind).map(|asked| asked.tokens);
        tokens.max().unwrap_or(0)
    };
    let least = asked.iter().map(|asked| asked.tokens).min().unwrap_or(0);
    report.fact("least tokens of a request", least);
    report.fact("most tokens of a request", most(Kind::Text));
    report.fact("most tokens for a summary", most(Kind::Summary));
    for talk in &played.talks {
        let open: Vec<usize> =
            (0..talk.turns.len()).filter(|turn| talk.turns[*turn].is_open()).collect();
        if !open.is_empty() {
            report.fault(format!("{:?}: no answer to the turns {open:?}", talk.place));
        }
    }
}

/// Returns how many messages were written in a second, until the first chat had written all of its messages.
fn rate(played: &Played) -> f64 {
    let turns = || played.talks.iter().flat_map(|talk| &talk.turns);
    let first = turns().map(|turn| turn.at).min();
    let last = played.talks.iter().filter_map(|talk| talk.turns.last()).map(|turn| turn.at).min();
    let Some((first, last)) = first.zip(last) else { return 0.0 };
    let count = turns().filter(|turn| turn.at <= last).count();
    count as f64 / (last - first).as_secs_f64().max(1e-3)
}

/// Checks what each chat shows.
fn chats(played: &Played, telegram: &Telegram, calls: &[Call], report: &mut Report) {
    let sends = sends(calls);
    let last = last_calls(calls);
    let (mut by_kill, mut by_cut) = (0, 0);
    let mut faults = Vec::new();
    for talk in &played.talks {
        let place = talk.place;
        let mut heads: HashMap<Mark, u32> = HashMap::new();
        let mut tails: HashMap<Mark, u32> = HashMap::new();
        let mut lines: HashMap<Mark, Vec<u32>> = HashMap::new();
        for shown in telegram.messages(place.chat()).into_iter().filter(|shown| shown.is_bots) {
            let name = || format!("{place:?}, message {}", shown.id);
            if shown.topic != place.topic() {
                faults.push(format!("{} is in topic {:?}", name(), shown.topic));
            }
            if let Some(mark) = marks_in(&shown.text).find(|mark| mark.chat != place.number) {
                faults.push(format!("{} has the mark {mark}", name()));
            }
            if shown.text == PLACEHOLDER {
                match sends.get(&(place.chat(), shown.id)) {
                    Some(call) if call.outcome == Outcome::Fault(Fault::CutAfter) => by_cut += 1,
                    Some(call) if is_orphan(call, &played.killed, &last) => by_kill += 1,
                    _ => faults.push(format!("{} is an orphaned placeholder", name())),
                }
                continue;
            }
            let mark = |line: &str, word: &str| marks_in(line.strip_prefix(word)?).next();
            let mut is_answer = false;
            for line in shown.text.lines() {
                if let Some(mark) = mark(line, "answer ") {
                    *heads.entry(mark).or_default() += 1;
                } else if let Some(mark) = mark(line, "end ") {
                    *tails.entry(mark).or_default() += 1;
                } else if let Some(mark) = mark(line, "Line ") {
                    let number = line.split(' ').nth(1).and_then(|word| word.parse::<u32>().ok());
                    lines.entry(mark).or_default().extend(number);
                } else {
                    continue;
                }
                is_answer = true;
            }
            if !is_answer {
                let text: String = shown.text.chars().take(60).collect();
                faults.push(format!("{} is no answer: {text:?}", name()));
            }
        }
        for (number, turn) in (0..).zip(&talk.turns) {
            let mark = place.mark(number);
            let count = |of: &HashMap<Mark, u32>| of.get(&mark).copied().unwrap_or(0);
            let expected = u32::from(turn.lines > 0);
            if (count(&heads), count(&tails)) != (expected, expected) {
                let (heads, tails) = (count(&heads), count(&tails));
                faults.push(format!("{mark} has {heads} answers that begin and {tails} that end"));
            }
            let mut found = lines.remove(&mark).unwrap_or_default();
            found.sort_unstable();
            if !found.iter().copied().eq(0..turn.lines) {
                faults.push(format!("the answer to {mark} has the lines {found:?}"));
            }
        }
    }
    report.fact("placeholders orphaned by a kill", by_kill);
    report.fact("placeholders whose sending was cut", by_cut);
    report.faults(faults);
}

/// Returns the calls that made messages.
fn sends(calls: &[Call]) -> HashMap<(i64, i64), &Call> {
    let sends = calls.iter().filter(|call| call.method == "sendMessage" && call.had_effect());
    sends.filter_map(|call| Some(((call.chat?, call.message?), call))).collect()
}

/// Returns the last call of each process in each chat, by process, chat and message.
fn last_calls(calls: &[Call]) -> HashSet<(u32, i64, i64)> {
    let named = calls.iter().filter_map(|call| Some(((call.process?, call.chat?), call.message)));
    let last: HashMap<(u32, i64), Option<i64>> = named.collect();
    last.into_iter()
        .filter_map(|((process, chat), message)| Some((process, chat, message?)))
        .collect()
}

/// Returns whether a kill came between the sending of a placeholder and its note: a process was killed whose last call in
/// this chat it was. After the note the next process would use it.
fn is_orphan(sent: &Call, killed: &HashSet<u32>, last: &HashSet<(u32, i64, i64)>) -> bool {
    match (sent.process, sent.chat, sent.message) {
        (Some(process), Some(chat), Some(message)) => {
            killed.contains(&process) && last.contains(&(process, chat, message))
        }
        _ => false,
    }
}

fn is_killed(kills: &[Instant], from: Instant, to: Instant) -> bool {
    kills.iter().any(|kill| (from..=to).contains(kill))
}

/// Prints how long the bot took, without the model.
#[allow(clippy::too_many_arguments, reason = "the times come from all of them")]
fn times(
    played: &Played,
    args: &Args,
    size: &Size,
    settings: &Settings,
    telegram: &Telegram,
    calls: &[Call],
    asked: &[Asked],
    report: &mut Report,
) {
    let mut asked_for: HashMap<Mark, Vec<&Asked>> = HashMap::new();
    for asked in asked.iter().filter(|asked| asked.kind != Kind::Summary) {
        if let Some(mark) = asked.mark {
            asked_for.entry(mark).or_default().push(asked);
        }
    }
    let mut faults: HashMap<i64, Vec<Instant>> = HashMap::new();
    for call in calls.iter().filter(|call| matches!(call.outcome, Outcome::Fault(_))) {
        faults.entry(call.chat.unwrap_or(0)).or_default().push(call.at);
    }
    let sends = sends(calls);
    let interval = Duration::from_millis(settings.edit_interval_ms);
    let (mut spread, mut placeholders) = (Spread::default(), Spread::default());
    // After a start the bot handles all that came meanwhile at once, so these times are apart.
    let (mut after_start, mut all) = (Spread::default(), Spread::default());
    let mut slowest = Vec::new();
    let (mut killed, mut failed) = (0, 0);
    for talk in &played.talks {
        let mut before = None;
        for (number, turn) in (0..).zip(&talk.turns) {
            let Some((first, message)) = turn.first_text else { continue };
            // The bot answers the messages of a chat one after the other.
            let from = telegram.handed(turn.sent.update).max(before);
            let edited = before;
            before = turn.done.max(before);
            let Some(from) = from else { continue };
            let asked = asked_for.get(&talk.place.mark(number)).map_or(&[][..], Vec::as_slice);
            let of_chat = faults.get(&talk.place.chat()).into_iter().flatten();
            let is_ending = |(began, ended): &(Instant, Instant)| *began <= first && from <= *ended;
            if is_killed(&played.kills, from, first) || played.restarts.iter().any(is_ending) {
                killed += 1;
            } else if asked.iter().any(|asked| asked.fault.is_some())
                || of_chat.into_iter().any(|at| (from..=first).contains(at))
            {
                failed += 1;
            } else {
                let models: Duration = asked.iter().map(|asked| models_part(asked, first)).sum();
                // The rate limit of edits: the first text may have to wait for the interval after the last one.
                let ready = (from + models).max(edited.map_or(from, |edit| edit + interval));
                let time = first.saturating_duration_since(ready);
                all.push(time);
                let is_start = |start: &Instant| (*start..*start + AFTER_START).contains(&from);
                if played.starts.iter().any(is_start) {
                    after_start.push(time);
                    continue;
                }
                spread.push(time);
                let second =
                    played.starts.first().map_or(0.0, |start| (from - *start).as_secs_f64());
                slowest.push((time, second, talk.place.mark(number)));
                if let Some(send) = sends.get(&(talk.place.chat(), message)) {
                    placeholders.push(send.at.saturating_duration_since(from));
                }
            }
        }
    }
    let bound = Duration::from_millis(args.max_p99_ms);
    if spread.percentile(0.99) > bound && spread.len() >= ENOUGH {
        report.fault(format!("p99 to the first byte is over {bound:?}"));
    }
    report.times("from update to placeholder", &placeholders);
    report.times("from update to first byte, without the model", &spread);
    slowest.sort_by_key(|(time, ..)| std::cmp::Reverse(*time));
    let slowest = slowest.iter().take(6).map(|(time, second, mark)| {
        format!("{mark} {:.0} ms at {second:.1} s", time.as_secs_f64() * 1e3)
    });
    report.fact("the slowest of these", slowest.collect::<Vec<_>>().join(", "));
    report.times("the same in the two seconds after a start", &after_start);
    report.times("the same over all turns", &all);
    report.fact("not measured", format!("{killed} over a kill, {failed} over a fault"));
    if size.is_long
        && let Some(talk) = played.talks.first()
    {
        long_times(talk, asked, report);
    }
}

/// Returns how long the model kept the bot waiting before this moment.
fn models_part(asked: &Asked, first: Instant) -> Duration {
    let until = match asked.kind {
        Kind::Tool => asked.ended,
        _ => asked.first_text.unwrap_or(asked.ended),
    };
    until.min(first).saturating_duration_since(asked.at)
}

/// Prints the first hundred turns beside the last hundred.
fn long_times(talk: &Talk, asked: &[Asked], report: &mut Report) {
    const SOME: usize = 100;
    let times: Vec<Duration> =
        talk.turns.iter().filter_map(|turn| Some(turn.done? - turn.at)).collect();
    if times.len() < 2 * SOME {
        return;
    }
    let (mut first, mut last) = (Spread::default(), Spread::default());
    first.extend(times[..SOME].iter().copied());
    last.extend(times[times.len() - SOME..].iter().copied());
    let (before, after) = (first.percentile(0.5), last.percentile(0.5));
    report.times("first 100 turns", &first);
    report.times("last 100 turns", &last);
    let ratio = after.as_secs_f64() / before.as_secs_f64();
    report.fact("last by first, p50", format!("{ratio:.2}"));
    if ratio > 1.5 {
        report.fault(format!("the last turns take {ratio:.2} times as long as the first"));
    }
    let tokens = |asked: &[Asked]| asked.iter().map(|asked| asked.tokens).max().unwrap_or(0);
    let part = asked.len() / 10;
    report.fact("most tokens, first tenth of requests", tokens(&asked[..part]));
    report.fact("most tokens, last tenth of requests", tokens(&asked[asked.len() - part..]));
}

fn memory(played: &Played, size: &Size, report: &mut Report) {
    let (idle, end, most) = played.memory;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    report.fact("memory without chats", format!("{:.1} MiB", mib(idle)));
    report.fact("memory at the end (VmRSS)", format!("{:.1} MiB", mib(end)));
    report.fact("memory at most (VmHWM)", format!("{:.1} MiB", mib(most)));
    let of_chat = mib(most.saturating_sub(idle)) / f64::from(size.chats);
    report.fact("memory of a chat, at most", format!("{of_chat:.3} MiB"));
    if of_chat >= 1.0 && size.chats >= 20 {
        report.fault(format!("a chat takes {of_chat:.2} MiB"));
    }
}

/// Checks what the store has.
fn store(played: &Played, size: &Size, settings: &Settings, report: &mut Report) -> Result<()> {
    let store = Store::open(settings.store())?;
    let began = Instant::now();
    let verified = store.verify(|_| {})?;
    if !verified.damages.is_empty() {
        report.fault(format!("the store is damaged: {:?}", verified.damages));
    }
    let sessions = SessionManager::builder(&store).build()?;
    let mut faults = Vec::new();
    let mut total = 0;
    for talk in &played.talks {
        let key = talk.place.key();
        let bindings = sessions.bindings(key.as_str())?;
        if bindings.len() != 1 {
            faults.push(format!("{key} has {} sessions", bindings.len()));
        }
        let Some(binding) = bindings.first() else { continue };
        let chat = sessions.session(binding.session.clone())?;
        let path: Vec<Message> = chat.path().raw().iter().collect::<talktree::Result<_>>()?;
        let all: Vec<Message> = chat.all_messages().collect::<talktree::Result<_>>()?;
        total += all.len();
        if all.len() != path.len() {
            faults.push(format!("{key} has {} messages, {} on its path", all.len(), path.len()));
        }
        on_path(talk, &path, &mut faults);
    }
    let pending = store.inbox("telegram").pending()?;
    if pending > 0 {
        faults.push(format!("{pending} updates were not handled"));
    }
    if size.is_long {
        let hits = store.search(FACT).limit(3).run()?.hits;
        let place = hits.iter().position(|hit| hit.snippet.text.contains("Zanzibar"));
        report.fact("the fact of turn 3 is found at place", format!("{place:?} of {}", hits.len()));
        if place.is_none() {
            faults.push("the fact of turn 3 is not found".to_owned());
        }
    }
    let bytes = std::fs::metadata(settings.store())?.len();
    report.fact("messages in the store", total);
    report.fact("file", format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)));
    report.fact("check of the store", format!("{:.1} s", began.elapsed().as_secs_f64()));
    report.faults(faults);
    Ok(())
}

/// Checks that each turn of a talk is on the path once, in order, followed by its answer.
fn on_path(talk: &Talk, path: &[Message], faults: &mut Vec<String>) {
    let place = talk.place;
    let mut said = Vec::new();
    let mut answers: HashMap<Mark, Vec<Mark>> = HashMap::new();
    let mut ids = HashSet::new();
    for message in path {
        let text = message.text();
        if !ids.insert(message.id.clone()) {
            faults.push(format!("{place:?}: the message {} is there twice", message.id));
        }
        if let Some(mark) = marks_in(&text).find(|mark| mark.chat != place.number) {
            faults.push(format!("{place:?}: the message {} has the mark {mark}", message.id));
        }
        let is_call =
            message.parts.iter().any(|part| matches!(part.typed().as_ref(), Part::Tool(_)));
        match message.role {
            Role::User if !is_call => said.extend(marks_in(&text).last()),
            Role::Assistant if !is_call => {
                let last = said.last().copied();
                let found = text.strip_prefix("answer ").and_then(|text| marks_in(text).next());
                match (last, found) {
                    (Some(last), Some(found)) => answers.entry(last).or_default().push(found),
                    _ => faults.push(format!("{place:?}: the message {} is no answer", message.id)),
                }
            }
            _ => {}
        }
    }
    let expected: Vec<Mark> =
        (0..).zip(&talk.turns).map(|(number, _)| place.mark(number)).collect();
    if said != expected {
        let at = said.iter().zip(&expected).position(|(said, expected)| said != expected);
        let (found, wanted) = (said.len(), expected.len());
        faults.push(format!("{place:?}: {found} of {wanted} turns on the path, wrong from {at:?}"));
    }
    for (number, turn) in (0..).zip(&talk.turns) {
        let mark = place.mark(number);
        let found = answers.remove(&mark).unwrap_or_default();
        let wanted: Vec<Mark> = (turn.lines > 0).then_some(mark).into_iter().collect();
        if found != wanted {
            faults.push(format!("{mark} is followed by the answers to {found:?}"));
        }
    }
}

/// Checks that the log has no secrets, and nothing that people wrote.
fn log(settings: &Settings, report: &mut Report) -> Result<()> {
    let bytes = std::fs::read(settings.log())?;
    let text = String::from_utf8_lossy(&bytes);
    report.fact("log", format!("{} lines", text.lines().count()));
    let (_, token) = settings.token.split_once(':').unwrap_or_default();
    if text.contains(token) || text.contains(SECRET) {
        report.fault("a secret is in the log");
    }
    if let Some(mark) = marks_in(&text).next() {
        report.fault(format!("the log has what was said in {mark}"));
    }
    if text.contains("panicked") {
        report.fault("a thread of the bot panicked: see the log");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_placeholder_of_a_process_that_was_killed_is_an_orphan() {
        let call = |process, message, method: &str| Call {
            at: Instant::now(),
            process: Some(process),
            method: method.to_owned(),
            chat: Some(17),
            message: Some(message),
            text: None,
            outcome: Outcome::Done,
        };
        let calls = [
            call(0, 1, "sendMessage"),
            call(0, 2, "sendMessage"),
            call(1, 3, "editMessageText"),
            call(1, 4, "sendMessage"),
        ];
        let last = last_calls(&calls);
        let orphans = |killed: &[u32]| -> Vec<_> {
            let killed = killed.iter().copied().collect();
            let orphans = calls.iter().filter(|call| is_orphan(call, &killed, &last));
            orphans.filter_map(|call| call.message).collect()
        };
        assert_eq!(orphans(&[0]), [2]);
        assert_eq!(orphans(&[0, 1]), [2, 4]);
        assert_eq!(orphans(&[2]), [0; 0]);
    }
}
