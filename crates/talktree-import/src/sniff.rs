//! Finds the format of a file by its first records.
//!
//! Each record is a vote, so one record of another program changes nothing; what only one format has outvotes any number of
//! records that several formats have. Then the first records are read in the format that has the most votes. If most messages
//! would be blank, or none is to be seen, it is the wrong one, however similar, and the file is refused.

use std::collections::HashSet;
use std::io;

use crate::report::ImportReport;
use talktree::{Message, Part};

use crate::draft::{Body, Draft, Origin, Reader};
use crate::fields::Fields;
use crate::formats::{DATABASE, Format, HEADLESS, Sign, sign_of, unsupported_bytes};
use crate::records::Records;

/// How many records vote at most.
const MAX_VOTES: usize = 64;
/// How many votes are enough if all agree.
const ENOUGH_VOTES: usize = 8;
/// How many records, and about how many bytes, are read as the format that was found.
const MAX_SAMPLED: usize = 256;
const MAX_SAMPLED_BYTES: usize = 4 << 20;

/// The verdict on a file.
#[derive(Debug, Default)]
pub(crate) struct Sniffed {
    sign: Option<Sign>,
    /// The unsupported format that it seems to be in.
    unsupported: Option<&'static str>,
}

/// Returns the format that most of the first records vote for.
pub(crate) fn sniff(records: &mut Records<'_>) -> io::Result<Sniffed> {
    let mut votes: Vec<(Sign, usize)> = Vec::new();
    let mut cast = 0;
    for _ in 0..MAX_VOTES {
        let Some(record) = records.next()? else { break };
        let fields = record.ok().and_then(|record| Fields::parse(&record.text).ok());
        let Some(sign) = fields.as_ref().and_then(sign_of) else { continue };
        cast += 1;
        match votes.iter_mut().find(|(known, _)| *known == sign) {
            Some((_, count)) => *count += 1,
            None => votes.push((sign, 1)),
        }
        if sign == Sign::Of(Format::Own) || (votes.len() == 1 && cast == ENOUGH_VOTES) {
            break;
        }
    }
    let start = records.start()?;
    records.rewind()?;
    let is_certain = |sign: &Sign| !matches!(sign, Sign::Perhaps(_));
    let best = |is_wanted: &dyn Fn(&Sign) -> bool| {
        let wanted = votes.iter().rev().filter(|(sign, _)| is_wanted(sign));
        wanted.max_by_key(|(_, count)| *count).map(|(sign, _)| *sign)
    };
    let unsupported = match best(&|sign| matches!(sign, Sign::Unsupported(_))) {
        Some(Sign::Unsupported(name)) => Some(name),
        _ => unsupported_bytes(&start),
    };
    Ok(Sniffed { sign: best(&is_certain).or_else(|| best(&|_| true)), unsupported })
}

impl Sniffed {
    /// Returns the verdict on a database whose tables say this.
    pub(crate) fn of_database(sign: Option<Sign>) -> Self {
        let unsupported = match sign {
            Some(Sign::Unsupported(name)) => Some(name),
            Some(_) => None,
            None => unsupported_bytes(DATABASE),
        };
        Self { sign, unsupported }
    }

    /// Returns the format that it seems to be in.
    pub(crate) fn format(&self) -> Option<Format> {
        match self.sign? {
            Sign::Of(format) | Sign::Perhaps(format) => Some(format),
            Sign::Unsupported(_) => None,
        }
    }

    /// Returns why the file is in no format that is read.
    pub(crate) fn unknown(&self) -> String {
        let formats = Format::ALL.map(Format::as_str).join(", ");
        match self.unsupported {
            Some(HEADLESS) => format!("it seems to be {HEADLESS}"),
            // First what the file is: the list is the same for every file.
            Some(name) => {
                format!("it looks like {name}, in no format that talktree reads ({formats})")
            }
            None => format!("in no format that talktree reads ({formats}), or without a record"),
        }
    }

    /// Reads the first records as `format` and returns why the file is not in it; `None` if it seems to be.
    pub(crate) fn contradiction(
        &self,
        format: Format,
        records: &mut Records<'_>,
    ) -> io::Result<Option<String>> {
        // Its header is no guess.
        if format == Format::Own {
            return Ok(None);
        }
        let reader = format.reader(Origin::default());
        let Sample { kept, blank, is_whole } = sample(records, reader)?;
        let like = match (self.unsupported, self.format()) {
            (Some(name), _) => format!("it looks like {name}"),
            (None, Some(other)) if other != format => {
                format!("it seems to be in the format {other}")
            }
            _ => "it seems to be in another format".to_owned(),
        };
        if kept == 0 && is_whole {
            return Ok(Some(match self.sign {
                // Other formats have all that the records have, too.
                Some(Sign::Perhaps(found)) if found == format => self.unknown(),
                Some(Sign::Of(found)) if found == format => {
                    format!("read as {format}, it holds no message")
                }
                _ => format!("read as {format}, it holds no message; {like}"),
            }));
        }
        if 2 * blank <= kept {
            return Ok(None);
        }
        Ok(Some(format!(
            "read as {format}, {blank} of its first {kept} messages have nothing to show; {like}"
        )))
    }
}

/// The first messages of a file.
struct Sample {
    /// How many are not hidden, and how many of these are blank.
    kept: usize,
    blank: usize,
    /// Whether there are no others.
    is_whole: bool,
}

fn sample(records: &mut Records<'_>, mut reader: Box<dyn Reader>) -> io::Result<Sample> {
    let mut scratch = ImportReport::new("", "");
    let (mut drafts, mut bytes): (Vec<Draft>, usize) = (Vec::new(), 0);
    let mut is_whole = false;
    for _ in 0..MAX_SAMPLED {
        let Some(record) = records.next()? else {
            is_whole = true;
            break;
        };
        let Ok(record) = record else { continue };
        bytes += record.text.len();
        if let Ok(fields) = Fields::parse(&record.text) {
            drafts.extend(reader.read(&record, fields, &mut scratch));
        }
        if bytes > MAX_SAMPLED_BYTES {
            break;
        }
    }
    drafts.extend(reader.finish(&mut scratch));
    let (mut kept, mut blank) = (0, 0);
    let mut ids = HashSet::new();
    let mut count = |message: &Message| {
        kept += usize::from(!message.is_hidden);
        blank += usize::from(!message.is_hidden && is_invisible(message));
    };
    for node in drafts.iter().flat_map(|draft| &draft.nodes) {
        // A record that repeats an id adds no message.
        if !ids.insert(&node.id) {
            continue;
        }
        match &node.body {
            Body::Here(message) => count(message),
            Body::Tombstone(_) => {}
            Body::There(place) => {
                // A file that changes meanwhile is noticed when it is imported.
                if let Some(record) = records.record_at(node.line, place)?
                    && let Ok(fields) = Fields::parse(&record.text)
                {
                    reader.message(&record, fields, &node.id).iter().for_each(&mut count);
                }
            }
        }
    }
    records.rewind()?;
    Ok(Sample { kept, blank, is_whole })
}

/// Returns whether a message has no part that a person could see.
pub(crate) fn is_invisible(message: &Message) -> bool {
    message.parts.iter().all(|part| match part {
        Part::Text(text) => text.text.trim().is_empty(),
        Part::Other(_) => part.kind().starts_with("data-"),
        _ => false,
    })
}
