# Every command that people type. `just` lists them.

set shell := ["bash", "-euo", "pipefail", "-c"]

# The folder with real conversations; what needs it is skipped where it is absent.
export TALKTREE_DATA := env("TALKTREE_DATA", justfile_directory() / "../shared/data")

_default:
    @just --list

# Format, lints, documents, tests, package: what a change has to pass.
check: format-check lint docs test test-torture msrv package

# Write the code as it should be formatted.
format:
    cargo fmt --all

format-check:
    cargo fmt --all -- --check

# Lints, warnings denied. Tests and benches may unwrap and print.
lint:
    cargo clippy --workspace --lib --bins --all-features -- -D warnings
    cargo clippy --workspace --tests --benches --examples --all-features -- -D warnings \
        -A clippy::unwrap_used -A clippy::expect_used -A clippy::print_stdout -A clippy::print_stderr

# The documents, warnings denied.
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features --document-private-items

# All tests: the library, its examples in the documents, the command.
test:
    cargo test

# The short forms of what breaks a store on purpose.
test-torture:
    cargo test -p talktree-torture

# The packaged crate compiles by itself.
package:
    cargo package -p talktree {{ if env("CI", "") == "" { "--allow-dirty" } else { "" } }}

# The stated minimum Rust version is the greatest that a dependency states.
msrv:
    python3 .ci/msrv.py

# What the library's own dependency tree holds.
tree:
    cargo tree -e normal -p talktree

# A tour of the command on a temporary store.
tour:
    cargo run --release -p talktree-cli -- tour

# 5 000 turns that stay within 2 000 tokens, offline; in memory, or in a file.
long-chat *args:
    cargo run --example long_chat -- {{args}}

# The same, summarized by a model: `just ollama http://localhost:11434 llama3.2 --turns 100`.
ollama *args:
    cargo run --example ollama -- {{args}}

# How well search answers 231 labelled questions over 940 chats.
bench-search:
    cargo bench --bench longmemeval

# What each kind of work costs beside its floor: `just bench --quick`, `just bench --only append`.
bench *args:
    cargo bench --bench budgets -- {{args}}

# Draws cost against store size into docs/plots.
bench-plot:
    cargo bench --bench budgets -- --plot {{justfile_directory()}}/docs/plots

# Breaks stores on purpose, for half an hour or so; or one work, as in `just torture power --seed 7`.
[positional-arguments]
torture *work="all":
    cargo run --release -p talktree-torture -- "$@"

# Feeds a check of hostile input (queries, importers, messages, names, addresses) with what a fuzzer finds.
fuzz target="queries" seconds="600":
    command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --version 0.13.2 --locked
    mkdir -p crates/talktree-fuzz/corpus/{{target}}
    {{ if target == "addresses" { "true" } else { "cargo run --release -q -p talktree-torture -- hostile --check " + target + " --write-seeds crates/talktree-fuzz/corpus" } }}
    cd crates/talktree-fuzz && RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir . {{target}} -- \
        -max_total_time={{seconds}} -max_len=4096 -rss_limit_mb=4096 -timeout=20

# Installs what `compare` runs beside talktree, from npm and PyPI, under the target folder.
compare-setup:
    cargo run --release -p talktree-compare -- setup

# talktree side by side with what people use today: `just compare --quick`, `just compare --only llm`.
compare *args:
    cargo run --release -p talktree-compare -- {{args}}
