//! Finding the newest official files: The National Archives list them on a page, by version.

use crate::droid::OfficialFile;
use crate::error::{Error, Result};
use crate::library::NewFile;

/// The page that lists the signature files.
pub const PAGE: &str =
    "https://www.nationalarchives.gov.uk/aboutapps/pronom/droid-signature-files.htm";
/// Larger answers are cut off and refused: the page has some 100 KiB, a signature file some 4 MiB.
const PAGE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Something that can fetch a URL.
pub trait Fetch {
    /// Fetches a URL.
    ///
    /// # Errors
    /// When it cannot, or the answer is longer than `limit_bytes`; the text says why.
    fn get(&self, url: &str, limit_bytes: u64) -> std::result::Result<Vec<u8>, String>;
}

/// Fetches the newest signature file and the newest container signature file that `page` links to.
///
/// # Errors
/// When the page or a file cannot be fetched, links to none, or a file is not what its name says.
pub fn fetch_latest(fetch: &dyn Fetch, page: &str) -> Result<Vec<NewFile>> {
    let fail = |url: &str| {
        let url = url.to_owned();
        move |message: String| Error::Fetch { url, message }
    };
    let html = fetch.get(page, PAGE_BYTES_MAX).map_err(fail(page))?;
    let html = String::from_utf8_lossy(&html);
    let mut files = Vec::new();
    for (prefix, what) in [
        ("DROID_SignatureFile_V", "a DROID signature file"),
        ("container-signature-", "a container signature file"),
    ] {
        let newest = links(&html)
            .filter_map(|link| Some((number(link, prefix)?, link)))
            .max_by_key(|(number, _)| *number);
        let Some((number, link)) = newest else {
            return Err(fail(page)(format!("the page links to no {}", &what[2..])));
        };
        let url = resolve(page, link);
        let bytes = fetch.get(&url, FILE_BYTES_MAX).map_err(fail(&url))?;
        let right = match OfficialFile::recognise(&bytes) {
            Some(OfficialFile::Signatures(version)) => {
                what.contains("DROID") && version == number.to_string()
            }
            // Its name has the date, the file a number of its own.
            Some(OfficialFile::Containers(_)) => what.contains("container"),
            None => false,
        };
        if !right {
            return Err(fail(&url)(format!("what came is not {what} of that version")));
        }
        let name = url.rsplit('/').next().unwrap_or_default().to_owned();
        files.push(NewFile { name, bytes });
    }
    Ok(files)
}

/// The targets of all links of a page.
fn links(html: &str) -> impl Iterator<Item = &str> {
    html.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        rest[1..].split(quote).next()
    })
}

/// The number in a file name of this kind.
fn number(link: &str, prefix: &str) -> Option<u32> {
    let name = link.rsplit('/').next()?;
    name.strip_prefix(prefix)?.strip_suffix(".xml")?.parse().ok()
}

/// A link of a page as a full address.
fn resolve(page: &str, link: &str) -> String {
    if link.contains("://") {
        return link.to_owned();
    }
    let (scheme, rest) = page.split_once("://").unwrap_or(("https", page));
    if link.starts_with("//") {
        return format!("{scheme}:{link}");
    }
    let host = rest.split('/').next().unwrap_or_default();
    if link.starts_with('/') {
        return format!("{scheme}://{host}{link}");
    }
    let directory = rest.rsplit_once('/').map_or(host, |(directory, _)| directory);
    format!("{scheme}://{directory}/{link}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_full_addresses() {
        let page = "https://a.example/b/c.htm";
        assert_eq!(resolve(page, "d.xml"), "https://a.example/b/d.xml");
        assert_eq!(resolve(page, "/d.xml"), "https://a.example/d.xml");
        assert_eq!(resolve(page, "//x.example/d.xml"), "https://x.example/d.xml");
        assert_eq!(resolve(page, "http://x.example/d.xml"), "http://x.example/d.xml");
    }

    #[test]
    fn the_newest_is_the_highest_number_not_the_last_link() {
        let html = r#"<a href="x/DROID_SignatureFile_V99.xml">99</a>
            <a href='x/DROID_SignatureFile_V122.xml'>122</a> <a href="x/DROID_SignatureFile_V9.xml">"#;
        let newest = links(html).filter_map(|link| number(link, "DROID_SignatureFile_V")).max();
        assert_eq!(newest, Some(122));
    }
}
