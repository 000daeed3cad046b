//! Kinds of manifest: which columns each has, and what each demands of a row.

use crate::column::Column;

/// A profile of Checkm: general Checkm, or one of the Merritt profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// Checkm 0.7 with no profile that is known here.
    General,
    /// The files of one object (`mrt-ingest-manifest`).
    Object,
    /// Each row is a file that becomes an object (`mrt-single-file-batch-manifest`).
    SingleFileBatch,
    /// Each row is a container that becomes an object (`mrt-container-batch-manifest`).
    ContainerBatch,
    /// Each row is an object manifest (`mrt-batch-manifest`).
    ManifestBatch,
    /// The files of one object, as storage is told of them (`mrt-add-manifest`).
    Add,
    /// The manifest inside a container, of the files beside it (`mrt-object-manifest`).
    Container,
}

const OBJECT: &[Column] = &[
    Column::Source,
    Column::Algorithm,
    Column::Digest,
    Column::Size,
    Column::Modified,
    Column::Name,
    Column::MimeType,
];

const BATCH: &[Column] = &[
    Column::Source,
    Column::Algorithm,
    Column::Digest,
    Column::Size,
    Column::Modified,
    Column::Name,
    Column::PrimaryId,
    Column::LocalIds,
    Column::Creator,
    Column::Title,
    Column::Date,
];

const CONTAINER: &[Column] = &[
    Column::Name,
    Column::Algorithm,
    Column::Digest,
    Column::Size,
    Column::Modified,
    Column::MimeType,
];

impl Profile {
    /// Every profile.
    pub const ALL: [Profile; 7] = [
        Profile::General,
        Profile::Object,
        Profile::SingleFileBatch,
        Profile::ContainerBatch,
        Profile::ManifestBatch,
        Profile::Add,
        Profile::Container,
    ];

    /// The short name, used in JSON and on command lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Profile::General => "general",
            Profile::Object => "object",
            Profile::SingleFileBatch => "single-file-batch",
            Profile::ContainerBatch => "container-batch",
            Profile::ManifestBatch => "manifest-batch",
            Profile::Add => "add",
            Profile::Container => "container",
        }
    }

    /// The profile with this short name.
    pub fn from_name(name: &str) -> Option<Profile> {
        Profile::ALL.into_iter().find(|p| p.as_str() == name)
    }

    /// The address that a `#%profile` line gives; general Checkm has none.
    pub fn uri(self) -> Option<&'static str> {
        Some(match self {
            Profile::General => return None,
            Profile::Object => "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest",
            Profile::SingleFileBatch => {
                "http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest"
            }
            Profile::ContainerBatch => {
                "http://uc3.cdlib.org/registry/ingest/manifest/mrt-container-batch-manifest"
            }
            Profile::ManifestBatch => {
                "http://uc3.cdlib.org/registry/ingest/manifest/mrt-batch-manifest"
            }
            Profile::Add => "http://uc3.cdlib.org/registry/store/manifest/mrt-add-manifest",
            Profile::Container => {
                "http://uc3.cdlib.org/registry/store/manifest/mrt-object-manifest"
            }
        })
    }

    /// The profile at this address. Older manifests use other directories of the same registry,
    /// and the Checkm specification itself another host, so the last part of the path decides.
    pub fn from_uri(uri: &str) -> Option<Profile> {
        let rest = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"))?;
        let (host, path) = rest.split_once('/')?;
        let ours = host.eq_ignore_ascii_case("uc3.cdlib.org")
            || host.eq_ignore_ascii_case("merritt.cdlib.org");
        let name = path.strip_prefix("registry/")?.rsplit('/').next()?;
        Profile::ALL.into_iter().find(|p| {
            ours && p.uri().and_then(|u| u.rsplit('/').next()).is_some_and(|last| last == name)
        })
    }

    /// The columns, in their order.
    pub fn columns(self) -> &'static [Column] {
        match self {
            Profile::General => &OBJECT[..6],
            Profile::Object | Profile::Add => OBJECT,
            Profile::SingleFileBatch | Profile::ContainerBatch | Profile::ManifestBatch => BATCH,
            Profile::Container => CONTAINER,
        }
    }

    /// The column that no row may leave empty.
    pub fn required(self) -> Column {
        if self == Profile::Container { Column::Name } else { Column::Source }
    }

    /// Each row becomes an object of its own.
    pub fn is_batch(self) -> bool {
        self.columns().len() == BATCH.len()
    }

    /// One of Merritt's, with its two escapes and its stricter rules.
    pub fn is_merritt(self) -> bool {
        self != Profile::General
    }
}

impl std::fmt::Display for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_back_to_their_profile() {
        for profile in Profile::ALL {
            assert_eq!(Profile::from_name(profile.as_str()), Some(profile));
            if let Some(uri) = profile.uri() {
                assert_eq!(Profile::from_uri(uri), Some(profile));
            }
        }
        let old = "http://uc3.cdlib.org/registry/mrt/mrt-object-manifest";
        assert_eq!(Profile::from_uri(old), Some(Profile::Container));
        let of_the_specification = "http://merritt.cdlib.org/registry/mrt-ingest-manifest";
        assert_eq!(Profile::from_uri(of_the_specification), Some(Profile::Object));
        assert_eq!(Profile::from_uri("http://evil.example/registry/mrt-ingest-manifest"), None);
    }
}
