//! Child processes that run this program again as workers.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use talktree::Durability;

use crate::{Result, memory};

/// The session that all workers append to.
pub(crate) const SHARED: &str = "shared";

/// Returns the path of the store in a folder.
pub(crate) fn store_in(folder: &Path) -> PathBuf {
    folder.join("store.db")
}

/// Parses the name of a durability.
pub(crate) fn durability(name: &str) -> Result<Durability> {
    match name {
        "full" => Ok(Durability::Full),
        "normal" => Ok(Durability::Normal),
        other => Err(format!("unknown durability {other:?}; use full or normal").into()),
    }
}

/// Tells [`Worker::wait_for_sign`] that this worker begins.
pub(crate) fn give_sign() -> Result<()> {
    std::io::stdout().write_all(b".")?;
    Ok(std::io::stdout().flush()?)
}

/// A worker process; killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Worker(Child);

impl Worker {
    /// Starts a worker; tests pass the program, because theirs is not the command.
    pub(crate) fn start<'a>(
        program: Option<&Path>,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self> {
        let program =
            program.map_or_else(std::env::current_exe, |program| Ok(PathBuf::from(program)))?;
        let child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self(child))
    }

    /// Waits for the first byte of the worker's output.
    pub(crate) fn wait_for_sign(&mut self) -> Result<()> {
        let output = self.0.stdout.as_mut().ok_or("a worker without output")?;
        Ok(output.read_exact(&mut [0])?)
    }

    /// Returns whether the worker has exited.
    pub(crate) fn has_ended(&mut self) -> Result<bool> {
        Ok(self.0.try_wait()?.is_some())
    }

    /// Kills the worker; when this returns, the process is gone.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }

    /// Returns the number of the process.
    #[cfg(feature = "postgres")]
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Returns how many bytes of memory the worker holds now; `None` if it has exited, or the system does not say.
    pub(crate) fn memory(&self) -> Option<u64> {
        memory::of_process(self.0.id()).ok()
    }

    /// Waits until the worker has exited and returns its standard output.
    pub(crate) fn wait(mut self) -> Result<String> {
        let mut text = String::new();
        if let Some(mut output) = self.0.stdout.take() {
            output.read_to_string(&mut text)?;
        }
        let status = self.0.wait()?;
        match status.success() {
            true => Ok(text),
            false => Err(format!("a worker ended with {status}: {}", self.complaints()).into()),
        }
    }

    /// Returns what an exited worker wrote to its standard error.
    pub(crate) fn complaints(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut output) = self.0.stderr.take() {
            // A failed read only shortens the message.
            let _ = output.read_to_string(&mut text);
        }
        text.trim_end().to_owned()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Fails only if the process has already exited.
        let _ = self.kill();
    }
}
