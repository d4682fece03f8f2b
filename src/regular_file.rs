//! Opens a file that is not ours.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a file for reading; an error if it is a folder, a pipe, a device or a socket.
///
/// A pipe that replaces the file between the look and the opening is waited for.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    match std::fs::metadata(path)? {
        found if found.is_file() => File::open(path),
        found if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::other("it is a pipe, a device or a socket, not a file")),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_pipe_without_a_writer_is_refused_at_once() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status()?.success());
        let (sender, answer) = mpsc::channel();
        // A thread of its own: opening must not keep the test waiting.
        std::thread::spawn(move || {
            let _ = sender.send(open(&path).map(drop).map_err(|error| error.to_string()));
        });
        let answer = answer.recv_timeout(Duration::from_secs(5)).map_err(io::Error::other)?;
        assert_eq!(answer, Err("it is a pipe, a device or a socket, not a file".to_owned()));
        Ok(())
    }

    #[test]
    fn only_a_file_is_opened() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        assert_eq!(open(folder.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert!(open(Path::new("/dev/null")).is_err());
        let missing = open(&folder.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let path = folder.path().join("text");
        std::fs::write(&path, "text")?;
        assert_eq!(io::read_to_string(open(&path)?)?, "text");
        Ok(())
    }
}
