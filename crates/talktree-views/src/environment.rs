//! The packages of the providers, in the versions that `checkers/` pins.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

const PACKAGES: &str = include_str!("../checkers/package.json");
const REQUIREMENTS: &str = include_str!("../checkers/requirements.txt");

/// Returns the folder for the packages below the target folder of the build.
pub(crate) fn folder() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    // target/PROFILE/talktree-views
    program.ancestors().nth(2).unwrap_or(Path::new("target")).join("views")
}

pub(crate) fn install(cache: &Path) -> Result<()> {
    once(&cache.join("python"), REQUIREMENTS, python)?;
    once(&cache.join("node"), PACKAGES, node)
}

pub(crate) fn python_of(cache: &Path) -> PathBuf {
    let bin = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };
    cache.join("python").join(bin)
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
    let flags = ["install", "--omit=dev", "--no-audit", "--no-fund", "--loglevel", "error"];
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    done(Command::new(npm).args(flags).current_dir(folder))
}

fn python(folder: &Path) -> Result<()> {
    done(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let pins = folder.join("requirements.txt");
    std::fs::write(&pins, REQUIREMENTS)?;
    let flags = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    let cache = folder.parent().unwrap_or(folder);
    done(Command::new(python_of(cache)).args(flags).arg(pins))
}

fn done(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = output.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}
