//! Files as providers accept them: images, PDFs and texts are sent, other files are named.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use percent_encoding::percent_decode_str;
use talktree::File;

/// The image types that all providers accept.
const IMAGES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];

/// Types of text besides `text/*`.
const TEXTS: [&str; 8] =
    ["json", "xml", "yaml", "x-yaml", "toml", "javascript", "x-javascript", "x-ndjson"];

/// Returns the text that is sent instead of a file that the provider does not accept.
pub(super) fn mention(file: &File) -> String {
    let name = name_of(file).unwrap_or(&file.media_type);
    let url = if file.url.starts_with("data:") { "cannot be shown" } else { &file.url };
    format!("[file {name}: {url}]")
}

/// A file in a form that providers accept.
#[derive(Debug, PartialEq)]
pub(super) enum AcceptedFile<'a> {
    /// Base64, of one of [`IMAGES`].
    ImageData {
        media: &'a str,
        data: &'a str,
    },
    ImageUrl(&'a str),
    PdfData(&'a str),
    PdfUrl(&'a str),
}

/// Returns the file in a form that providers accept; `None` if they accept no file of its kind.
pub(super) fn accepted(file: &File) -> Option<AcceptedFile<'_>> {
    if let Some(url) = file.url.strip_prefix("data:") {
        let (head, data) = url.split_once(',')?;
        let media = head.strip_suffix(";base64")?;
        from_base64(data)?;
        let media = if media.is_empty() { &file.media_type } else { media };
        let media = media_of(media);
        if media == "application/pdf" {
            return Some(AcceptedFile::PdfData(data));
        }
        let media = IMAGES.into_iter().find(|image| *image == media)?;
        return Some(AcceptedFile::ImageData { media, data });
    }
    let is_web = ["https://", "http://"]
        .iter()
        .any(|scheme| file.url.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
    let media = media_of(&file.media_type);
    match &*media {
        _ if !is_web => None,
        // Of any type: the program did not know.
        "image/*" | "image" => Some(AcceptedFile::ImageUrl(&file.url)),
        "application/pdf" => Some(AcceptedFile::PdfUrl(&file.url)),
        media => IMAGES.contains(&media).then_some(AcceptedFile::ImageUrl(&file.url)),
    }
}

/// Returns the name of the file, if it has one.
pub(super) fn name_of(file: &File) -> Option<&str> {
    file.filename.as_deref().filter(|name| !name.trim().is_empty())
}

/// Returns the content of a text file, below its name; of any other file its name, in brackets.
pub(super) fn as_text(file: &File) -> String {
    match text(file) {
        Some(text) => {
            let name = name_of(file).unwrap_or(&file.media_type);
            format!("[file {name}:]\n{text}")
        }
        None => mention(file),
    }
}

/// Returns the text of a file that holds text, unless it is blank.
fn text(file: &File) -> Option<String> {
    let (head, data) = file.url.strip_prefix("data:")?.split_once(',')?;
    let (media, is_base64) = match head.strip_suffix(";base64") {
        Some(media) => (media, true),
        None => (head, false),
    };
    let media = if media.is_empty() { &file.media_type } else { media };
    let media = media_of(media);
    let (kind, sub) = media.split_once('/')?;
    let is_text = kind == "text"
        || TEXTS.contains(&sub)
        || ["+json", "+xml", "+yaml"].iter().any(|ending| sub.ends_with(ending));
    if !is_text {
        return None;
    }
    let bytes = match is_base64 {
        true => from_base64(data)?,
        false => percent_decode_str(data).collect(),
    };
    String::from_utf8(bytes).ok().filter(|text| !text.trim().is_empty())
}

/// Returns the type without parameters, in lower case, by its usual name.
fn media_of(media: &str) -> Cow<'_, str> {
    let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if media == "image/jpg" { "image/jpeg".into() } else { media.into() }
}

fn from_base64(data: &str) -> Option<Vec<u8>> {
    // Some programs leave bits in the last digit.
    let config = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(&STANDARD, config).decode(data).ok().filter(|bytes| !bytes.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_some_kinds_are_accepted() {
        let file = |media: &str, url: &str| {
            let mut file = File::default();
            (file.media_type, file.url) = (media.to_owned(), url.to_owned());
            file
        };
        for (media, url, is_accepted) in [
            ("image/png", "data:image/png;base64,AAAA", true),
            ("image/*", "data:image/JPG;base64,AA==", true),
            ("image/png", "data:image/png;base64,AAA", false),
            ("image/png", "data:image/png;base64,", false),
            ("image/png", "data:image/png,AAAA", false),
            ("image/svg+xml", "data:image/svg+xml;base64,AAAA", false),
            ("application/pdf", "data:application/pdf;base64,AAAA", true),
            ("image/png", "https://example.org/a.png", true),
            ("application/pdf", "https://example.org/a.pdf", true),
            ("text/plain", "https://example.org/a.txt", false),
            ("image/png", "cat.png", false),
            ("image/png", "https://", false),
        ] {
            assert_eq!(accepted(&file(media, url)).is_some(), is_accepted, "{media} {url}");
        }
    }
}
