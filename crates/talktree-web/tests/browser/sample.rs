//! A store with something of everything, served to a browser: `sample FOLDER` writes `FOLDER/export.html` and a store, which is
//! `FOLDER/sample.db` or on the server that `TALKTREE_TEST_POSTGRES` names, prints the address, and appends a message for each line
//! of its input, with which it ends.

use std::fs::File;
use std::io::BufRead;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Duration, Utc};
use serde_json::json;
use talktree::{
    Author, Block, Cost, Json, Message, MessageId, Part, Record, Role, Session, SessionChange,
    SessionDetails, Store, Usage,
};
use talktree_model::Request;
use talktree_web::{Options, Server, export_html};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Red, on a green ground.
const PNG: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAE0lEQVR4nGP4z8DwHxsmSpRhWOkAALUBP8FTtbPrAAAAAElFTkSuQmCC";

fn main() -> Outcome {
    let folder = std::env::args().nth(1).ok_or("sample FOLDER")?;
    let folder = Path::new(&folder);
    let store = Store::options().open_at(match std::env::var("TALKTREE_TEST_POSTGRES") {
        Ok(server) => format!("{server}schema=page").into(),
        Err(_) => folder.join("sample.db"),
    })?;
    garden(&store)?;
    deployment(&store)?;
    languages(&store)?;
    hostile(&store)?;
    long(&store, 3_000)?;
    others(&store)?;
    export_html(
        &store.session("deployment")?,
        &mut File::create(folder.join("export.html"))?,
        |_| {},
    )?;
    export_html(
        &store.session("hostile")?,
        &mut File::create(folder.join("hostile.html"))?,
        |_| {},
    )?;

    let server = Server::bind(&store, Options { can_write: true, ..Options::default() })?;
    println!("{}", server.address());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(|| is_over.load(Ordering::Relaxed)));
        let appended = std::io::stdin().lock().lines().try_for_each(|line| -> Outcome {
            let chat = store.session("deployment")?;
            let request = Request::of(&chat);
            request.openai_chat()?;
            chat.append(request.recorded(Message::assistant(line?)))?;
            Ok(())
        });
        is_over.store(true, Ordering::Relaxed);
        appended
    })
}

fn at(time: &str) -> DateTime<Utc> {
    time.parse().unwrap_or_default()
}

/// Appends messages below one another, a minute apart, with the usage of answers.
fn say(
    session: &Session,
    parent: Option<&MessageId>,
    mut time: DateTime<Utc>,
    messages: impl IntoIterator<Item = Message>,
) -> talktree::Result<Vec<MessageId>> {
    let mut ids = Vec::new();
    for message in messages {
        time += Duration::seconds(67);
        let message = match message.role {
            Role::Assistant => {
                let length = message.text().len().min(900) as u64;
                let usage = Usage {
                    model: Some(
                        if length.is_multiple_of(3) { "small" } else { "large" }.to_owned(),
                    ),
                    input: 1_400 + 17 * length,
                    output: 60 + length,
                    cache_read: 900,
                    cost: Some(Cost { micros: 2_100 + 40 * length, currency: "USD".to_owned() }),
                    ..Usage::default()
                };
                message.with_usage(&usage)
            }
            _ => message,
        };
        let message = message.at(time);
        let appended = match ids.last().or(parent) {
            Some(parent) => session.append_to(parent, message)?,
            None => session.append_root(message)?,
        };
        ids.push(appended.id);
    }
    Ok(ids)
}

fn create(
    store: &Store,
    id: &str,
    name: &str,
    source: &str,
    owner: &str,
    time: &str,
) -> talktree::Result<Session> {
    let details = SessionDetails {
        source: Some(source.to_owned()),
        owner: Some(owner.to_owned()),
        model: Some("large".to_owned()),
        created_at: Some(at(time)),
        ..SessionDetails::named(name)
    };
    store.create_session_as(id, details)
}

fn garden(store: &Store) -> Outcome {
    let time = "2026-03-14T09:00:00Z";
    let chat = create(store, "garden", "What to plant by the fence", "telegram", "ada", time)?;
    let ids = say(
        &chat,
        None,
        at(time),
        [
            Message::user("The fence at the north side looks bare. What could we plant there?"),
            Message::assistant(
                "**Ferns and hostas.** They like the shade, need little care, and come back each year.\n\n1. *Dryopteris*, up to a metre high\n2. *Hosta sieboldiana*, with blue leaves\n3. Between them, lily of the valley",
            ),
            Message::user("Good. When do we plant them?"),
            Message::assistant(
                "In April, after the last hard frost. Water them well for two weeks.",
            ),
        ],
    )?;
    let other = say(
        &chat,
        Some(&ids[0]),
        at("2026-03-14T09:20:00Z"),
        [
            Message::assistant(
                "**A climbing hydrangea.** It grows on the north side, covers the whole fence in four years, and blooms white in June.\n\nIt needs a frame to climb, and patience in the first two years.",
            ),
            Message::user("Too slow, I think."),
        ],
    )?;
    say(
        &chat,
        Some(&ids[0]),
        at("2026-03-14T09:40:00Z"),
        [Message::assistant("Leave it bare, and paint it blue.")],
    )?;
    chat.label("hydrangea", &other[0])?;
    chat.checkout(&ids[3])?;
    store.change_session(chat.id(), &SessionChange::Tag("garden".to_owned()))?;
    Ok(())
}

fn deployment(store: &Store) -> Outcome {
    let time = "2026-11-26T14:00:00Z";
    let chat =
        create(store, "deployment", "Deploying the search service", "claude-code", "grace", time)?;
    let plan = Part::tool_call("read_file", "c1", json!({"path": "deploy/plan.toml"}));
    let plan_text = Part::tool_result(
        "read_file",
        "c1",
        json!({"strategy": "rolling", "replicas": 3, "drain_seconds": 30}),
    );
    let failed =
        Part::tool_call("run", "c2", json!({"command": "just migrate --dry-run", "timeout": 60}));
    let error = Part::tool_error("run", "c2", "relation \"sessions\" does not exist");
    let first = say(
        &chat,
        None,
        at(time),
        [
            Message::user("Can we deploy the new search service on Friday?")
                .from(&Author::new("7").named("Grace")),
            Message::new(
                Role::Assistant,
                vec![
                    Part::reasoning(
                        "Friday is risky: look at the plan before an answer. The drain time matters, because searches run for up to 20 seconds.",
                    ),
                    plan,
                    plan_text,
                    Part::text(
                        "The plan is a **rolling** deployment of three replicas, each drained for 30 seconds. Friday works if the migration runs first:\n\n```rust\n// Readers keep the old index until the new one is complete.\nfn migrate(store: &Store) -> Result<()> {\n    let index = store.rebuild(\"search\", 3)?;\n    store.swap(index)\n}\n```\n\n| step | minutes | reversible |\n|---|---|---|\n| migrate | 12 | yes |\n| roll out | 6 | yes |\n| drop the old index | 1 | no |",
                    ),
                ],
            ),
            Message::user("Try the migration without writing anything."),
            Message::new(
                Role::Assistant,
                vec![
                    failed,
                    error,
                    Part::text(
                        "The dry run fails: the staging database is empty. I would restore last night's backup there first.",
                    ),
                ],
            ),
            Message::user("Do that."),
            Message::assistant(
                "Restored. The dry run now takes 11 minutes, and changes 48 212 rows.",
            ),
        ],
    )?;
    // As an import stores it.
    let session = Record::Session { id: chat.id().clone(), details: SessionDetails::default() };
    let (message, call, marker) = (first[1].clone(), "c1".to_owned(), "[cleared]".to_owned());
    store.import([Ok(session), Ok(Record::Elision { message, call, marker })])?;
    chat.append(Message::system("The person opened deploy/plan.toml in the editor.").hidden())?;
    let second = say(
        &chat,
        chat.head()?.as_ref(),
        at("2026-11-26T15:00:00Z"),
        [
            Message::user("Who has to know?").from(&Author::new("7").named("Grace")),
            Message::assistant(
                "- Support, because results may be stale for a minute\n- The team of the *import* service: it writes to the same tables\n- Nobody else; see [the runbook](https://example.org/runbook)",
            ),
            Message::user("Here is the dashboard.").with_part(image("dashboard.png")),
            Message::assistant("Latency is flat at 40 ms, so there is room."),
        ],
    )?;
    chat.add_compaction("They checked the plan (rolling, three replicas) and restored the backup on staging; the dry run takes 11 minutes.", &first[1], &first[5])?;
    chat.add_compaction("They decided to deploy the search service on **Friday**, after the migration. The dry run on staging takes 11 minutes. Support and the import team have to know.", &first[0], &second[1])?;
    let open = store.session_builder("deployment").block("memory", Block::stored()).open()?;
    open.context().set("memory", "Grace prefers short answers.")?;
    let last = say(
        &chat,
        chat.head()?.as_ref(),
        Utc::now() - Duration::minutes(20),
        [
            Message::user("Then write the announcement."),
            Message::assistant(
                "> On Friday at 10:00 the search service gets a new index. For about a minute results may be stale.\n\nShall I send it?",
            ),
        ],
    )?;
    let short = say(
        &chat,
        Some(&last[0]),
        Utc::now() - Duration::minutes(9),
        [Message::assistant("Friday, 10:00: new search index. Results may be stale for a minute.")],
    )?;
    chat.label("announcement", &short[0])?;
    open.context().set("memory", "Grace prefers short answers, and bullet points.")?;
    store.change_session(chat.id(), &SessionChange::Pin(true))?;
    Ok(())
}

fn image(name: &str) -> Part {
    match Part::file("image/png", PNG) {
        Part::File(mut file) => {
            file.filename = Some(name.to_owned());
            Part::File(file)
        }
        other => other,
    }
}

fn languages(store: &Store) -> Outcome {
    let time = "2026-11-20T08:00:00Z";
    let chat = create(store, "languages", "שלום, 世界", "web", "ada", time)?;
    say(
        &chat,
        None,
        at(time),
        [
            Message::user("מה מזג האוויר בירושלים מחר? אני צריך לדעת אם לקחת מטרייה."),
            Message::assistant(
                "מחר צפוי גשם קל בבוקר, ואחר הצהריים יתבהר. כן, כדאי לקחת מטרייה:\n\n- בוקר: 11°\n- צהריים: 16° (`UTC+2`)",
            ),
            Message::user("除了天文馆,还有什么博物馆适合孩子?"),
            Message::assistant(
                "**科学博物馆**和**自然历史博物馆**都很适合孩子。周末人多,建议上午去。",
            ),
            Message::user("هل يمكننا النشر يوم الجمعة؟"),
            Message::assistant("نعم، بعد النسخ الاحتياطي. راجع `just backup` أولاً."),
        ],
    )?;
    Ok(())
}

fn hostile(store: &Store) -> Outcome {
    let time = "2026-02-12T08:00:00Z";
    let name = "<img src=x onerror=\"window.hacked=1\"> \u{202E}gnp.exe";
    let chat = create(store, "hostile", name, "<script>window.hacked=2</script>", "mallory", time)?;
    let svg =
        "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='window.hacked=3'/>";
    let page = "data:text/html,<script>window.hacked=4</script>";
    let half = Json::parse(
        r#"{"text":"half \ud800 of a pair","</script><script>window.hacked=5</script>":1}"#,
    )?;
    let call = Part::tool_call("<b onmouseover=window.hacked=6>", "c\"><script>", half);
    let links = "[click](javascript:window.hacked=7) [data](data:text/html,<script>window.hacked=8</script>) \
        [file](file:///etc/passwd) ![image](https://tracker.invalid/a.png) <https://tracker.invalid/b> \
        [Java\u{0}Script](java\u{0}script:window.hacked=9) [vb](vbscript:x) [good](https://example.org/?a=1&b=\"2\") https://example.org/bare.";
    let deep = "> ".repeat(5_000) + &"- ".repeat(5_000) + "deep";
    let stars = "**".repeat(9_000) + &"[".repeat(9_000) + &"`".repeat(3_000);
    // With a style or an order of nodes that is unfortunate, a browser takes minutes for these.
    let unseen = "\u{1}".repeat(9_000) + "\n\n" + &"`\n".repeat(5_000);
    say(
        &chat,
        None,
        at(time),
        [
            Message::user(unseen),
            Message::user(
                "</script><script>window.hacked=10</script><img src=https://tracker.invalid/c.png onerror=window.hacked=11>",
            ),
            Message::assistant(links).with_id("__proto__"),
            Message::user(
                "<style>body{display:none}</style><iframe src=https://tracker.invalid/d></iframe><svg/onload=window.hacked=12>",
            ),
            Message::new(
                Role::Assistant,
                vec![
                    call,
                    Part::file("image/svg+xml", svg),
                    Part::file("text/html", page),
                    Part::file("image/png", "https://tracker.invalid/e.png"),
                    Part::text("\u{202E}desrever\u{2066}\u{200F} a\u{0}b"),
                ],
            ),
            Message::user(deep),
            Message::assistant(stars),
            Message::user(
                "```html\"><script>window.hacked=13</script>\n<script>window.hacked=14</script>\n```\n~~~\n</code></pre><script>window.hacked=15</script>",
            ),
            Message::assistant("x".repeat(10 << 20)),
            Message::user("<!-- <script> -->")
                .with_id("constructor")
                .with_part(Part::reasoning("<script>window.hacked=16</script>")),
        ],
    )?;
    chat.label("\"><script>window.hacked=17</script>", &chat.head()?.ok_or("no head")?)?;
    store.change_session(
        chat.id(),
        &SessionChange::Tag("<script>window.hacked=18</script>".to_owned()),
    )?;
    Ok(())
}

/// A conversation of so many messages, on one branch.
fn long(store: &Store, count: usize) -> Outcome {
    let time = "2026-10-01T08:00:00Z";
    let chat = create(store, "long", "A very long evening", "web", "ada", time)?;
    chat.append_all((0..count).map(|n| {
        let text =
            format!("Message {n} of a long evening. {}", "It goes on and on. ".repeat(n % 23));
        let message = if n % 2 == 0 { Message::user(text) } else { Message::assistant(text) };
        message.with_id(format!("long-{n}")).at(at(time) + Duration::seconds(n as i64))
    }))?;
    Ok(())
}

/// Small conversations, so that the list scrolls.
fn others(store: &Store) -> Outcome {
    let topics = [
        "Sourdough",
        "Tax return",
        "A trip to Jena",
        "Birthday list",
        "Regular expressions",
        "Bicycle repair",
        "Sleep",
        "Poem about rain",
        "Budget",
    ];
    for n in 0..130_i64 {
        let time = at("2026-11-18T10:00:00Z") - Duration::hours(n * 41);
        let topic = topics[n as usize % topics.len()];
        let details = SessionDetails {
            name: (n % 4 != 0).then(|| format!("{topic}, part {}", n / 9 + 1)),
            source: Some(["web", "telegram", "codex"][n as usize % 3].to_owned()),
            owner: Some(["ada", "grace", "linus"][n as usize % 3].to_owned()),
            created_at: Some(time),
            ..SessionDetails::default()
        };
        let chat = store.create_session_as(format!("other-{n}"), details)?;
        say(
            &chat,
            None,
            time,
            [
                Message::user(format!("A question about {}, number {n}.", topic.to_lowercase())),
                Message::assistant(format!(
                    "An answer about {}.",
                    topic.to_lowercase().repeat(1 + n as usize % 7)
                )),
            ],
        )?;
        if n == 5 {
            chat.append(Message::system("Nobody summarised this.").hidden())?;
        }
    }
    Ok(())
}
