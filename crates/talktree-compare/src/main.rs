//! Measures talktree beside other libraries that store conversations.
//!
//! Each rival is a process that runs the same tasks on the same texts and prints its times, one JSON object per line.
//! This program writes the texts, runs the rivals one after the other and prints one table. `talktree-compare setup`
//! installs the rivals that are not written in Rust.

mod bare;
mod jsonl;
mod messages;
mod plan;
mod rivals;
mod setup;
mod table;
mod talktree;
mod tasks;
mod timing;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use plan::{Plan, TASKS};
use rivals::RIVALS;
use table::Table;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {
    /// Use small sizes, to check that everything runs; the figures are meaningless.
    #[arg(long)]
    quick: bool,
    /// Run only this rival or this task; can be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Print one JSON object per cell instead of the table.
    #[arg(long)]
    json: bool,
    /// The folder with the installed rivals; `compare` in the target folder if absent.
    #[arg(long, value_name = "FOLDER", global = true)]
    cache: Option<PathBuf>,
    /// The time limit of each rival, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 420)]
    timeout: u64,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install the rivals from npm and PyPI, in pinned versions.
    Setup,
    /// Run one of the rivals that are written in Rust.
    #[command(hide = true)]
    Child { rival: String, plan: PathBuf },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A failed write to standard error cannot be reported anywhere.
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

/// Returns the folder `compare` in the target folder.
fn default_cache() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).ok_or("the program is not in a target folder")?;
    Ok(target.join("compare"))
}

fn child(rival: &str, plan: &Path) -> Result<()> {
    let plan = Plan::read(plan)?;
    match rival {
        "talktree" => tasks::run::<talktree::Talktree>(&plan),
        "bare" => tasks::run::<bare::Bare>(&plan),
        "jsonl" => tasks::run::<jsonl::Jsonl>(&plan),
        _ => Err(format!("the rival {rival:?} is not written in Rust").into()),
    }
}

fn compare(cli: &Cli, cache: &Path) -> Result<()> {
    let known = |name: &str| {
        RIVALS.iter().any(|rival| rival.name == name) || TASKS.iter().any(|task| task.name == name)
    };
    if let Some(name) = cli.only.iter().find(|name| !known(name)) {
        let rivals: Vec<&str> = RIVALS.iter().map(|rival| rival.name).collect();
        let tasks: Vec<&str> = TASKS.iter().map(|task| task.name).collect();
        let (rivals, tasks) = (rivals.join(", "), tasks.join(", "));
        return Err(format!("unknown name {name:?}; rivals: {rivals}; tasks: {tasks}").into());
    }
    let is_wanted = |rival: &rivals::Rival| {
        let mut named =
            cli.only.iter().filter(|name| RIVALS.iter().any(|rival| rival.name == **name));
        // The ratios need talktree's times.
        let only_tasks = named.clone().next().is_none();
        only_tasks || rival.name == "talktree" || named.any(|name| name == rival.name)
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
