//! Installs the rivals from npm and PyPI into the cache folder, in the versions that `rivals/package.json` and
//! `rivals/requirements.txt` pin.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Result;

const PACKAGES: &str = include_str!("../rivals/package.json");
const REQUIREMENTS: &str = include_str!("../rivals/requirements.txt");

pub(crate) fn run(cache: &Path) -> Result<()> {
    // If one installation fails, the other is still tried.
    let node = once(&cache.join("node"), PACKAGES, node);
    let python = once(&cache.join("python"), REQUIREMENTS, python);
    node?;
    python
}

/// Installs unless the folder was installed with the same pins.
fn once(folder: &Path, pins: &str, install: fn(&Path) -> Result<()>) -> Result<()> {
    let done = folder.join("done");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == pins) {
        return Ok(());
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    writeln!(std::io::stderr(), "installing into {} ..", folder.display())?;
    install(folder)?;
    Ok(std::fs::write(done, pins)?)
}

fn node(folder: &Path) -> Result<()> {
    std::fs::write(folder.join("package.json"), PACKAGES)?;
    // The peer dependencies are frameworks that the sessions do not use.
    let flags =
        ["install", "--omit=dev", "--omit=peer", "--legacy-peer-deps", "--no-audit", "--no-fund"];
    done(Command::new("npm").args(flags).args(["--loglevel", "error"]).current_dir(folder))?;
    let probe = "new (require('better-sqlite3'))(':memory:')";
    done(Command::new("node").args(["-e", probe]).current_dir(folder))
}

fn python(folder: &Path) -> Result<()> {
    done(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let pins = folder.join("requirements.txt");
    std::fs::write(&pins, REQUIREMENTS)?;
    let flags = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    done(Command::new(folder.join("bin/python")).args(flags).arg(pins))
}

fn done(command: &mut Command) -> Result<()> {
    let status =
        command.stdin(Stdio::null()).status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}
