# Every command that people type. `just` lists them; `just COMMAND --help` says what one does.

# Echoes a line and runs it; with --help it prints the comment above the recipe instead.
set shell := ["bash", ".ci/recipe"]
set positional-arguments
set quiet

# The folder with real conversations; what needs it is skipped where it is absent.
export TALKTREE_DATA := env("TALKTREE_DATA", justfile_directory() / "../shared/data")

just := quote(just_executable())
# All features of the workspace that this machine can build.
all_features := "$(.ci/sqlcipher && echo --all-features || true)"

_default:
    {{just}} --list

# Runs everything a change has to pass: format, lints, documents, tests, this file, versions, package.
[arg("help", long, value="--help")]
check help="":
    {{just}} format-check lint docs test test-torture commands msrv package && {{just}} test-sqlcipher --short

# Formats the code.
[arg("help", long, value="--help")]
format help="":
    cargo fmt --all

# Checks that the code is formatted.
[arg("help", long, value="--help")]
format-check help="":
    cargo fmt --all -- --check

# Runs the lints with warnings denied, and compiles the library by itself. Tests and benches may unwrap and print.
[arg("help", long, value="--help")]
lint help="":
    cargo check -p talktree --all-targets && \
        cargo clippy --workspace --lib --bins {{all_features}} -- -D warnings && \
        cargo clippy --workspace --tests --benches --examples {{all_features}} -- -D warnings \
            -A clippy::unwrap_used -A clippy::expect_used -A clippy::print_stdout -A clippy::print_stderr

# Builds the documents with warnings denied.
[arg("help", long, value="--help")]
docs help="":
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps {{all_features}} --document-private-items

# Runs all tests: the library, the examples in the documents, the command.
[arg("help", long, value="--help")]
test help="":
    cargo test

# Runs the tests of the library on SQLCipher; with --short, those that read or write files in their own way.
test-sqlcipher *args:
    .ci/test-sqlcipher "$@"

# Runs the tests of library, importers, transcripts and bot on a PostgreSQL server, which it starts and stops; with --short, some of them.
test-postgres *args:
    .ci/test-postgres "$@"

# Runs the short forms of the tests that break a store on purpose, for three minutes; two at once where nextest is installed.
[arg("help", long, value="--help")]
test-torture help="":
    if cargo nextest --version >/dev/null 2>&1; then cargo nextest run -p talktree-torture --no-fail-fast; \
        else cargo test -p talktree-torture; fi

# Runs the short form of `just torture hosts` for a minute, where PostgreSQL is installed: hosts that fail, on a server that fails.
[arg("help", long, value="--help")]
test-hosts help="":
    cargo test -p talktree-torture --features postgres --test short hosts -- --nocapture

# Checks that every command of this file answers --help.
[arg("help", long, value="--help")]
commands help="":
    JUST={{just}} .ci/commands

# Checks that the packaged crate compiles by itself.
[arg("help", long, value="--help")]
package help="":
    # Cargo takes a crate of the same version for the one that it unpacked and compiled last time.
    rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/talktree* \
        "${CARGO_TARGET_DIR:-target}"/debug/.fingerprint/talktree-{,text-,model-}????????????????
    cargo package -p talktree-text -p talktree -p talktree-model {{ if env("CI", "") == "" { "--allow-dirty" } else { "" } }}

# Checks that the stated minimum Rust version is the greatest that a dependency states.
[arg("help", long, value="--help")]
msrv help="":
    python3 .ci/msrv.py

# Prints the library's own dependency tree.
[arg("help", long, value="--help")]
tree help="":
    cargo tree -e normal -p talktree

# Runs a tour of the command on a temporary store.
[arg("help", long, value="--help")]
tour help="":
    cargo run --release -p talktree-cli --no-default-features -- tour

# Draws the picture in the README: a sample conversation, as `talktree tree` prints it.
[arg("help", long, value="--help")]
picture help="":
    python3 docs/pictures/draw.py

# Plays 5 000 turns that stay within 2 000 tokens, offline; in memory, or in a file: `just long-chat chat.db`.
long-chat *args:
    cargo run --example long_chat -- "$@"

# Compacts two conversations in the background, by one worker.
[arg("help", long, value="--help")]
background help="":
    cargo run --example background

# Plays a chat bot for many people, which remembers, searches and forgets.
[arg("help", long, value="--help")]
bot help="":
    cargo run -p talktree-model --example bot_core

# Chats in the terminal with the bot, offline unless `bot.toml` says otherwise: `just chat --config my.toml`.
chat *args:
    cargo run --release -p talktree-bot -- chat "$@"

# Plays a long chat with summaries by a model: `just ollama http://localhost:11434/v1 llama3.2 100`.
ollama *args:
    cargo run -p talktree-client --example ollama -- "$@"

# Measures how well search answers 231 labelled questions over 940 chats.
bench-search *args:
    cargo bench --bench longmemeval -- "$@"

# Measures how well and how fast search finds: `just bench-find --list`, `--only speed --messages 100000`, `--snapshot FILE`.
bench-find *args:
    cargo bench -p talktree-import --bench finding -- "$@"

# Measures imports of the five most used formats beside appends of the same messages: `just bench-import --messages 1000000 --only codex`.
bench-import *args:
    cargo bench -p talktree-import --bench imports -- "$@"

# Measures what each kind of work costs beside its floor, for two minutes: `just bench --quick`, `just bench --only append`.
bench *args:
    cargo bench --bench budgets -- "$@"

# Measures talktree on a PostgreSQL server beside SQL written by hand and beside rivals, for half an hour: `just bench-postgres --quick`.
bench-postgres *args:
    .ci/bench-postgres "$@"

# Draws cost against store size into docs/plots.
[arg("help", long, value="--help")]
bench-plot help="":
    cargo bench --bench budgets -- --plot {{justfile_directory()}}/docs/plots

# Breaks stores on purpose, for half an hour or so; or in one way only: `just torture power --seed 7`.
torture *work="all":
    cargo run --release -p talktree-torture --features postgres -- "$@"

# Plays a bot for many people: 1 000 000 messages, kills, erasures; or for a minute: `just soak --quick`.
soak *args:
    cargo run --release -p talktree-torture -- soak "$@"

# Plays 200 chats with the real bot, a fake Telegram and a scripted model, and kills the bot now and then: `just bot-load --quick`, `just bot-load --long`.
bot-load *args:
    cargo build --release -q -p talktree-bot && cargo run --release -q -p talktree-bot-rig -- "$@"

# Feeds hostile input (queries, importers, messages, names) to a check, as a fuzzer finds it: `just fuzz queries 600`.
fuzz target="queries" seconds="600":
    command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --version 0.13.2 --locked; \
    mkdir -p crates/talktree-fuzz/corpus/{{target}}; \
    cargo run --release -q -p talktree-torture -- hostile --check {{target}} --write-seeds crates/talktree-fuzz/corpus; \
    cd crates/talktree-fuzz && RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir . {{target}} -- \
        -max_total_time={{seconds}} -max_len=4096 -rss_limit_mb=4096 -timeout=20

# Checks the requests for models with the providers' own packages, in pinned versions: `just check-views --short`.
check-views *args:
    cargo run -p talktree-views -- "$@"

# Talks with the server for models by the Model Context Protocol's own clients, in pinned versions from PyPI and npm.
test-mcp *args:
    .ci/test-mcp "$@"

# Goes through the page of `talktree serve` in Chromium; with --pictures it makes those of docs/browse.md.
test-web *args:
    .ci/test-web "$@"

# Tests the Python package: builds its wheel, installs it into a clean environment, runs pytest and mypy.
test-python *args:
    .ci/test-python "$@"

# Measures the session store for the Claude Agent SDK beside one in plain sqlite3, in one run of half a minute.
[arg("help", long, value="--help")]
bench-python help="":
    .ci/test-python --bench

# Installs what `compare` runs beside talktree, from npm and PyPI, under the target folder.
[arg("help", long, value="--help")]
compare-setup help="":
    cargo run --release -p talktree-compare -- setup

# Runs talktree side by side with what people use today, for ten minutes: `just compare --quick`, `just compare --only llm`.
compare *args:
    cargo run --release -p talktree-compare -- "$@"
