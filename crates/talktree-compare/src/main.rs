//! talktree side by side with what people use today.
//!
//! Each rival is a process of its own that does the same works on the same texts and prints what it
//! measured, a JSON object a line. This one writes the texts, runs the rivals one after the other
//! and prints one table. `talktree-compare setup` installs the rivals that are not written in Rust.

mod bare;
mod jsonl;
mod ours;
mod plan;
mod rivals;
mod setup;
mod table;
mod texts;
mod timing;
mod works;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use plan::{Plan, WORKS};
use rivals::RIVALS;
use table::Table;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {
    /// Take small sizes: to see that everything runs, not to compare.
    #[arg(long)]
    quick: bool,
    /// Only this rival or this work; can be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Print one JSON object a cell instead of the table.
    #[arg(long)]
    json: bool,
    /// Where the rivals are installed; beside the built programs if it is not given.
    #[arg(long, value_name = "FOLDER", global = true)]
    cache: Option<PathBuf>,
    /// How long one rival may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 420)]
    timeout: u64,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install the rivals from npm and PyPI, in pinned versions.
    Setup,
    /// Measure one of the rivals that are written in Rust.
    #[command(hide = true)]
    Child { rival: String, plan: PathBuf },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The reader of the output may have gone; there is nobody left to tell.
            let _ = writeln!(std::io::stderr(), "talktree-compare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    let cache = match &cli.cache {
        Some(folder) => folder.clone(),
        None => default_cache()?,
    };
    match &cli.command {
        Some(Command::Setup) => setup::run(&cache),
        Some(Command::Child { rival, plan }) => child(rival, plan),
        None => compare(cli, &cache),
    }
}

/// Returns the folder `compare` beside `release` and `debug`: under the target folder.
fn default_cache() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).ok_or("the program stands in no target folder")?;
    Ok(target.join("compare"))
}

fn child(rival: &str, plan: &Path) -> Result<()> {
    let plan = Plan::read(plan)?;
    match rival {
        "talktree" => works::run::<ours::Ours>(&plan),
        "bare" => works::run::<bare::Bare>(&plan),
        "jsonl" => works::run::<jsonl::Jsonl>(&plan),
        _ => Err(format!("no rival {rival:?} is written in Rust").into()),
    }
}

fn compare(cli: &Cli, cache: &Path) -> Result<()> {
    let known = |name: &str| {
        RIVALS.iter().any(|rival| rival.name == name) || WORKS.iter().any(|work| work.name == name)
    };
    if let Some(name) = cli.only.iter().find(|name| !known(name)) {
        let rivals: Vec<&str> = RIVALS.iter().map(|rival| rival.name).collect();
        let works: Vec<&str> = WORKS.iter().map(|work| work.name).collect();
        let (rivals, works) = (rivals.join(", "), works.join(", "));
        return Err(format!("no rival or work {name:?}; rivals: {rivals}; works: {works}").into());
    }
    let is_wanted = |rival: &rivals::Rival| {
        let mut named =
            cli.only.iter().filter(|name| RIVALS.iter().any(|rival| rival.name == **name));
        // The ratios need talktree's own figures.
        let only_works = named.clone().next().is_none();
        only_works || rival.name == "talktree" || named.any(|name| name == rival.name)
    };
    std::fs::create_dir_all(cache)?;
    let folder = tempfile::Builder::new().prefix("run-").tempdir_in(cache)?;
    let plan = Plan::new(folder.path(), cli.quick, &cli.only)?;
    let mut table = Table::new(&plan);
    for rival in RIVALS.iter().filter(|rival| is_wanted(rival)) {
        writeln!(std::io::stderr(), "{} ..", rival.name)?;
        table.add(rival, rivals::measure(rival, &plan, cache, cli.timeout)?);
    }
    let mut out = std::io::stdout().lock();
    if cli.json { table.print_json(&mut out) } else { table.print(&mut out) }
}
