//! How large is the file, beside the messages as JSON?

use talktree::Durability;

use crate::messages::{Length, Speaker};
use crate::stores::open;
use crate::table::{Row, Unit};
use crate::{Bench, Result, floor};

const COUNT: usize = 50_000;

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let path = bench.stores.fresh("size.db")?;
    let mut json = 0;
    {
        let store = open(&path, Durability::Normal)?;
        let chat = store.session("chat")?;
        let mut speaker = Speaker::new(11, Length::Chat);
        for _ in 0..COUNT {
            chat.append(speaker.message())?;
        }
        store.search("nothing-of-the-kind").run()?;
        for message in chat.iter() {
            json += serde_json::to_string(&message?)?.len();
        }
    }
    let file = std::fs::metadata(&path)?.len() as f64;
    let json = json as f64;
    let row = Row::new("file of 50k messages; floor: their JSON", Unit::Bytes, file);
    bench.table.add(row.floor(json).within(1.6));
    let conn = floor::open(&path, Durability::Normal)?;
    let mut statement = conn.prepare(
        "SELECT CASE WHEN name GLOB 'search_*' THEN 'search index' ELSE name END AS part, sum(pgsize)
           FROM dbstat
          GROUP BY part
         HAVING sum(pgsize) > 65536
          ORDER BY 2 DESC",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let part: String = row.get(0)?;
        let row = Row::new(format!("  of which {part}"), Unit::Bytes, row.get(1)?);
        bench.table.add(row.floor(json));
    }
    Ok(())
}
