//! Opens a file that is not ours.
//!
//! A path may name a pipe, whose opening waits until someone writes into it, or a device. Looking at the path first does not
//! help: it may be replaced in between. So the file is opened without waiting, and the open file is looked at.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a file for reading; an error if it is a folder, a pipe, a device or a socket.
///
/// Where the flag for not waiting is unknown, a pipe that replaces the file while it is opened is waited for.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    match NONBLOCK {
        Some(flag) => {
            std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flag);
        }
        None => check(&std::fs::metadata(path)?)?,
    }
    let file = options.open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

fn check(found: &std::fs::Metadata) -> io::Result<()> {
    match found.is_file() {
        true => Ok(()),
        false if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        false => Err(io::Error::other("it is a pipe, a device or a socket, not a file")),
    }
}

/// The value of `O_NONBLOCK`, from the headers of each system; `None` where we do not know it.
#[cfg(unix)]
const NONBLOCK: Option<i32> =
    if cfg!(any(target_os = "linux", target_os = "android", target_os = "l4re")) {
        if cfg!(any(
            target_arch = "mips",
            target_arch = "mips32r6",
            target_arch = "mips64",
            target_arch = "mips64r6"
        )) {
            Some(0x80)
        } else if cfg!(any(target_arch = "sparc", target_arch = "sparc64")) {
            Some(0x4000)
        } else {
            Some(0x800)
        }
    } else if cfg!(any(
        target_vendor = "apple",
        target_os = "freebsd",
        target_os = "dragonfly",
        target_os = "netbsd",
        target_os = "openbsd",
    )) {
        Some(0x4)
    } else if cfg!(any(target_os = "solaris", target_os = "illumos")) {
        Some(0x80)
    } else {
        None
    };

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
