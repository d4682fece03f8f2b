//! One attack on the path of a store.

use fastrand::Rng;
use talktree::{Error, Message, Store};
use talktree_import::ImportOptions;

use super::{Round, beside, link};
use crate::Result;
use crate::process::Worker;
use crate::visit;

/// What is done to the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attack {
    /// The process changes its current folder.
    ChangeFolder,
    /// The link that the store was opened with is pointed at another store, or a store is created where it was given.
    PointElsewhere,
    /// The files get further names.
    AddNames,
    /// Other processes have the file, and then its folder, mounted at a second place, and open the store there.
    Mount,
    /// The process imports the files of its own store, by every name, and another process opens and closes the store.
    ImportItself,
    /// Another process opens the store, writes and closes it.
    Visit,
    /// A backup is made, also to a name like that of the store.
    BackUp,
    Rename,
    /// The file is renamed and another store is created in its place.
    Rotate,
    Remove,
    /// A copy of the file replaces it.
    Replace,
    RemoveLog,
    /// The folder around it is renamed.
    RenameFolder,
}

/// Those that leave the file where it is come up more often: each ends a round.
const ATTACKS: [Attack; 19] = [
    Attack::ChangeFolder,
    Attack::PointElsewhere,
    Attack::AddNames,
    Attack::Mount,
    Attack::ImportItself,
    Attack::Visit,
    Attack::BackUp,
    Attack::ChangeFolder,
    Attack::PointElsewhere,
    Attack::AddNames,
    Attack::ImportItself,
    Attack::Visit,
    Attack::BackUp,
    Attack::Rename,
    Attack::Rotate,
    Attack::Remove,
    Attack::Replace,
    Attack::RemoveLog,
    Attack::RenameFolder,
];

impl Attack {
    pub(super) fn random(dice: &mut Rng) -> Self {
        ATTACKS[dice.usize(..ATTACKS.len())]
    }

    pub(super) fn strike(self, round: &mut Round, dice: &mut Rng) -> Result<()> {
        let root = round.root()?;
        let path = round.path.clone();
        let spare = root.join(format!("elsewhere/{}", dice.u64(..)));
        match self {
            Self::ChangeFolder => {
                let folder = ["home", "elsewhere", "target"][dice.usize(..3)];
                // A folder may have been renamed.
                let _ = std::env::set_current_dir(root.join(folder));
            }
            Self::PointElsewhere => {
                let other = Store::open(&spare)?;
                other.session("s")?.append(Message::user("of another store"))?;
                let given = root.join("home").join(&round.given);
                if given.is_symlink() {
                    std::fs::remove_file(&given)?;
                    link(&spare, &given)?;
                }
            }
            Self::AddNames => {
                std::fs::hard_link(&path, &spare)?;
                link(&path, &beside(&spare, "-link"))?;
                for name in [&path, &spare, &beside(&spare, "-link")] {
                    for refused in [Store::open(name), Store::open_read_only(name)] {
                        if !matches!(&refused, Err(Error::HardLinked { .. })) {
                            return Err(format!("{}: {refused:?}", name.display()).into());
                        }
                    }
                }
                round.further.push(spare);
            }
            Self::Mount => {
                round.remove_further()?;
                if !round.can_mount {
                    return Ok(());
                }
                let id = format!("m{}", round.acknowledged.len());
                std::fs::create_dir(&spare)?;
                let folder = path.parent().ok_or("a store has a folder")?;
                let name = path.file_name().unwrap_or_default();
                round.visit_with_mount(folder, &spare, &spare.join(name), &id)?.wait()?;
                round.acknowledged.push(id);

                let file = spare.join("bot.db");
                std::fs::write(&file, "")?;
                let refused = round.visit_with_mount(&path, &file, &file, "by a mounted file")?;
                match refused.wait() {
                    Err(error) if error.to_string().contains("MountedFile") => {}
                    answer => return Err(format!("a mounted file was opened: {answer:?}").into()),
                }
            }
            Self::ImportItself => {
                std::fs::hard_link(&path, &spare)?;
                link(&path, &beside(&spare, "-link"))?;
                let names = ["-wal", "-shm", ""].map(|suffix| beside(&path, suffix));
                for name in names.iter().chain([&spare, &beside(&spare, "-link")]) {
                    let refused = Store::open_in_memory().and_then(|copy| {
                        talktree_import::import(&copy, name, &ImportOptions::default(), |_| {})
                    });
                    if !matches!(&refused, Err(Error::Import { why, .. }) if why.contains("has open"))
                    {
                        return Err(format!("{} was opened: {refused:?}", name.display()).into());
                    }
                }
                // With two names the store cannot be opened.
                std::fs::remove_file(&spare)?;
                round.remove_further()?;
                Worker::start(round.program.as_deref(), visit::args(&path))?.wait()?;
                if !beside(&path, "-wal").exists() {
                    return Err("another process has removed the log".into());
                }
            }
            Self::Visit => {
                round.remove_further()?;
                let id = format!("m{}", round.acknowledged.len());
                let args = visit::args(&path).into_iter().chain(["--append", &id]);
                Worker::start(round.program.as_deref(), args)?.wait()?;
                round.acknowledged.push(id);
            }
            Self::BackUp => {
                std::fs::create_dir(&spare)?;
                let copy = spare.join(path.file_name().unwrap_or_default());
                round.store.backup(&copy, |_| {})?;
                let held = Store::open(&copy)?.session("s")?.path_length()?;
                if held != round.acknowledged.len() as u64 {
                    return Err(format!("the backup holds {held} messages").into());
                }
            }
            Self::Rename => {
                std::fs::rename(&path, &spare)?;
                round.moved = Some(Some(spare));
            }
            Self::Rotate => {
                std::fs::rename(&path, &spare)?;
                std::fs::rename(beside(&path, "-wal"), beside(&spare, "-wal"))?;
                std::fs::rename(beside(&path, "-shm"), beside(&spare, "-shm"))?;
                round.moved = Some(Some(spare));
                Store::open(&path)?.session("s")?.append(Message::user("of the next store"))?;
            }
            Self::Remove => {
                std::fs::remove_file(&path)?;
                round.moved = Some(None);
            }
            Self::Replace => {
                std::fs::copy(&path, &spare)?;
                std::fs::rename(&spare, &path)?;
                round.moved = Some(None);
            }
            Self::RemoveLog => {
                std::fs::remove_file(beside(&path, "-wal"))?;
                round.moved = Some(None);
            }
            Self::RenameFolder => {
                let folder = path.parent().ok_or("a store has a folder")?;
                std::fs::rename(folder, &spare)?;
                round.moved = Some(Some(spare.join(path.file_name().unwrap_or_default())));
            }
        }
        Ok(())
    }
}
