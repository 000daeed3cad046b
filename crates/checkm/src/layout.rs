//! What the header of a manifest comes to: its profile, its columns, its escapes.

use crate::code::Code;
use crate::column::Column;
use crate::escape::Dialect;
use crate::profile::Profile;
use crate::report::{Place, Report, excerpt};

pub(crate) const COLUMNS_MAX: usize = 256;
pub(crate) const PREFIXES_MAX: usize = 64;

/// The header of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The profile it is read by.
    pub profile: Profile,
    /// The address of the profile as the manifest gives it, when that is not one of the known.
    pub profile_uri: Option<String>,
    /// The columns in their order.
    pub columns: Vec<Column>,
    /// Abbreviations declared for field names: prefix without its colon, and URL.
    pub prefixes: Vec<(String, String)>,
    /// There may be more columns, which have no names: general Checkm without `#%fields`.
    pub(crate) is_open: bool,
}

impl Header {
    /// The header of a new manifest of this profile.
    pub fn new(profile: Profile) -> Header {
        Header {
            profile,
            profile_uri: None,
            columns: profile.columns().to_vec(),
            prefixes: Vec::new(),
            is_open: profile == Profile::General,
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        if self.profile.is_merritt() { Dialect::Merritt } else { Dialect::General }
    }
}

/// The header as it is declared, with the lines where it is.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    pub profile: Option<(String, u64)>,
    pub fields: Option<(Vec<String>, u64)>,
    pub prefixes: Vec<(String, String)>,
}

impl Declared {
    /// Comes to a conclusion, and reports what is wrong with the header.
    pub fn resolve(self, expected: Option<Profile>, report: &mut Report) -> Header {
        let (profile, profile_uri) = resolve_profile(&self.profile, expected, report);
        let columns = match &self.fields {
            Some((fields, line)) => resolve_columns(profile, fields, *line, &self.prefixes, report),
            None => profile.columns().to_vec(),
        };
        let is_open = self.fields.is_none() && profile == Profile::General;
        Header { profile, profile_uri, columns, prefixes: self.prefixes, is_open }
    }
}

fn resolve_profile(
    declared: &Option<(String, u64)>,
    expected: Option<Profile>,
    report: &mut Report,
) -> (Profile, Option<String>) {
    let Some((text, line)) = declared else {
        return (expected.unwrap_or(Profile::General), None);
    };
    let at = Place { line: *line, row: 0 };
    match (Profile::from_uri(text).or_else(|| Profile::from_name(text)), expected) {
        (Some(found), Some(wanted)) if found != wanted => {
            report.add(Code::ProfileMismatch, at, None, || {
                format!("the profile is {found}, and {wanted} was asked for")
            });
            (found, None)
        }
        (Some(found), _) => (found, None),
        (None, expected) => {
            report.add(Code::ProfileUnknown, at, None, || {
                format!("the profile {:?} is not known", excerpt(text))
            });
            (expected.unwrap_or(Profile::General), Some(text.clone()))
        }
    }
}

fn resolve_columns(
    profile: Profile,
    fields: &[String],
    line: u64,
    prefixes: &[(String, String)],
    report: &mut Report,
) -> Vec<Column> {
    let at = Place { line, row: 0 };
    let named: Vec<_> = fields.iter().map(|field| find_field(field, prefixes)).collect();
    let mut columns: Vec<Column> = Vec::with_capacity(fields.len());
    for (position, field) in fields.iter().enumerate() {
        if let Some(prefix) = undeclared(field, prefixes) {
            report.add(Code::PrefixUnknown, at, None, || {
                format!("{:?} uses the prefix {:?}", excerpt(field), excerpt(prefix))
            });
        }
        let column = named[position]
            .clone()
            .unwrap_or_else(|| unnamed(profile, position, field, &named, at, report));
        if columns.contains(&column) {
            report.add(Code::FieldRepeated, at, None, || {
                format!("{:?} is the second field for {column}", excerpt(field))
            });
        }
        columns.push(column);
    }
    let required = profile.required();
    if !columns.contains(&required) {
        report.add(Code::FieldMissing, at, None, || {
            format!("profile {profile} needs {}, which is not among the fields", required.field())
        });
    }
    if profile.is_merritt() && columns != profile.columns() {
        report.add(Code::FieldsDiffer, at, None, || {
            "the fields are not those of the profile; they are honoured here, and Merritt goes by position".to_string()
        });
    }
    columns
}

/// A field with a name of its own. In general Checkm the first six keep their meaning whatever
/// they are called, unless another field says by its name that it is the one.
fn unnamed(
    profile: Profile,
    position: usize,
    field: &str,
    named: &[Option<Column>],
    at: Place,
    report: &mut Report,
) -> Column {
    if profile.is_merritt() {
        report.add(Code::FieldUnknown, at, None, || {
            format!("the field {:?} is not known", excerpt(field))
        });
        return Column::Extra(field.to_string());
    }
    match profile.columns().get(position) {
        Some(base) if !named.contains(&Some(base.clone())) => base.clone(),
        _ => Column::Extra(field.to_string()),
    }
}

fn find_field(field: &str, prefixes: &[(String, String)]) -> Option<Column> {
    Column::from_field(field).or_else(|| {
        let (prefix, local) =
            field.split_once(':').filter(|(_, l)| !l.contains(['#', '/', ':']))?;
        let (_, url) = prefixes.iter().find(|(name, _)| name == prefix)?;
        Column::from_field(&format!("{url}{local}"))
    })
}

fn undeclared<'a>(field: &'a str, prefixes: &[(String, String)]) -> Option<&'a str> {
    let (prefix, local) = field.split_once(':')?;
    let is_url = local.starts_with("//");
    (!is_url && !prefixes.iter().any(|(name, _)| name == prefix)).then_some(prefix)
}

/// The position that a nameless column has, counting from one: those after the first six.
pub(crate) fn position(id: &str) -> Option<usize> {
    let is_plain = !id.starts_with('0') && id.bytes().all(|b| b.is_ascii_digit());
    id.parse().ok().filter(|n| is_plain && (7..=COLUMNS_MAX).contains(n))
}
