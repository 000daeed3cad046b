//! One table of every setting: its name, its bounds and what it is.

/// A setting. In `key`, `*` stands for a name (or, in a list, a place).
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub key: &'static str,
    /// The least and the largest number.
    pub bounds: Option<(i64, i64)>,
    pub about: &'static str,
}

const fn text(key: &'static str, about: &'static str) -> Setting {
    Setting { key, bounds: None, about }
}

const fn number(key: &'static str, least: i64, largest: i64, about: &'static str) -> Setting {
    Setting { key, bounds: Some((least, largest)), about }
}

const DAY_SECONDS: i64 = 86_400;
const BYTES_MAX: i64 = 1 << 60;

/// Every setting there is. `docs/configuration.md` has the same with more words.
pub const SETTINGS: &[Setting] = &[
    text("stores.*.url", "a directory or s3://bucket/prefix?…"),
    text("stores.*.storage_class", "the S3 storage class in which content is kept"),
    text(
        "stores.*.inventory_storage_class",
        "the class of inventories and records; none: STANDARD if the other is cold, else the same",
    ),
    number("stores.*.concurrency", 1, 256, "requests to an S3 store at once; none: 32"),
    text("stores.*.sse", "how an S3 server encrypts: AES256, aws:kms or aws:kms:dsse"),
    text("stores.*.sse_kms_key_id", "the key for that, where it is not the server's default"),
    number("stores.*.restore_priority", 0, 99, "restores read from the lowest number; none: 50"),
    text("stores.*.thaw_tier", "how fast cold content is thawed: expedited, standard or bulk"),
    number("stores.*.thaw_days", 1, 365, "how long thawed content can be read; none: 7"),
    number(
        "stores.*.thaw_look_seconds",
        1,
        DAY_SECONDS,
        "how often is looked whether content is thawed; none: 900",
    ),
    text("work_space.name", "how jobs and workers call this work space"),
    text("work_space.path", "where jobs keep what they download and unpack"),
    number("work_space.admit_percent", 1, 95, "jobs are admitted up to this share of it"),
    number("work_space.stop_percent", 1, 99, "no downloads begin above this share of it"),
    number("fetch.connect_timeout_seconds", 1, 600, "how long a connection may take to be made"),
    number("fetch.timeout_seconds", 1, 3600, "how long nothing may arrive"),
    number("fetch.connections_per_host", 1, 64, "downloads at once from one host"),
    number("fetch.connections", 1, 512, "downloads at once in one process"),
    number("fetch.tries", 1, 20, "connections made for one file in one run of its job"),
    text("fetch.allow_private", "true, false, or the hosts and networks that may be private"),
    text("fetch.file_roots", "directories that file: URLs may name"),
    number("fetch.bytes_max", 1, BYTES_MAX, "the largest file that is downloaded"),
    number(
        "fetch.bytes_per_second_min",
        0,
        1 << 40,
        "a server that sends less for a whole window is tried again later; 0 for any rate",
    ),
    number("fetch.rate_window_seconds", 1, 3600, "how long the window is"),
    number(
        "fetch.estimate_seconds_max",
        1,
        86_400,
        "how long the sizes of an object's files are asked for before they are downloaded",
    ),
    text("mail.host", "the mail server"),
    number("mail.port", 1, 65_535, "its port, where it is not 25, 587 or 465"),
    text("mail.security", "none, starttls or tls"),
    text("mail.user", "the name to log in with"),
    text("mail.password_file", "a file with the password to log in with"),
    text("mail.ca_file", "a certificate (PEM) to trust besides those of the system"),
    text("mail.from", "the address mail is from"),
    text("mail.operators", "addresses that are told of jobs that need a person"),
    number("mail.timeout_seconds", 1, 600, "how long the mail server may take to answer"),
    number(
        "formats.scan_bytes_max",
        0,
        BYTES_MAX,
        "how far a file is scanned for its format when its ends leave open whether it is of a more precise one",
    ),
    number("upload.bytes_max", 1, BYTES_MAX, "the largest package that is uploaded"),
    number("limits.files_max", 1, 10_000_000, "files in one object"),
    number("limits.bytes_max", 1, BYTES_MAX, "bytes in one object"),
    number(
        "limits.expand_ratio_max",
        2,
        1_000_000,
        "how much larger a package may become unpacked",
    ),
    number("limits.invalid_package_retention_days", 0, 3650, "how long what failed is kept"),
    number(
        "limits.verify_referenced_days",
        0,
        3650,
        "how old the last check of content may be that a new version only refers to",
    ),
    text("identifiers.naan", "the NAAN of identifiers that are minted here"),
    text("identifiers.shoulder", "what they begin with after the NAAN"),
    text("identifiers.ezid.url", "the EZID service"),
    text("identifiers.ezid.user", "the name to log in with"),
    text("identifiers.ezid.password_file", "a file with the password to log in with"),
    text("identifiers.ezid.shoulder", "where it mints: ark:/99999/fk4"),
    number("identifiers.ezid.timeout_seconds", 1, 600, "how long it may take to answer"),
    number("stages.*.workers", 0, 1000, "jobs worked on at once in each process"),
    number("stages.*.buffer", 0, 10_000, "jobs claimed ahead in each process"),
    number("stages.*.max_attempts", 1, 1000, "runs that may end in a passing error"),
    number("stages.*.max_interruptions", 1, 1000, "runs that may be cut off"),
    number("stages.*.backoff_seconds", 0, DAY_SECONDS, "the first wait before another run"),
    number("stages.*.backoff_seconds_max", 0, DAY_SECONDS, "the longest wait before another run"),
    number("stages.*.timeout_seconds", 0, 30 * DAY_SECONDS, "how long a run may take; 0: any time"),
    text("watch.*.path", "a directory or s3://bucket/prefix?… that is watched"),
    text("watch.*.collection", "where its packages go"),
    number("watch.*.still_seconds", 1, DAY_SECONDS, "how long a package must not have changed"),
    number("watch.*.poll_seconds", 1, DAY_SECONDS, "how often it is looked at"),
    text("watch.*.results", "write receipts and results beside packages"),
    text("watch.*.prefix_is_collection", "the first part of the path names the collection"),
    number("watch.*.files_max", 1, 100_000_000, "files looked at in one scan"),
    text("collections.*.owner", "who is responsible for it"),
    text("collections.*.description", "what it is"),
    text("collections.*.stores", "stores a version must be in before it counts; none: all"),
    text("collections.*.later_stores", "stores that get copies afterwards"),
    text("collections.*.bag_profile", "the BagIt profile of its bags: a URL or a file"),
    text("collections.*.payload_kinds", "file, directory, bag, container, manifest"),
    number("collections.*.priority", 0, 99, "the priority of its jobs; the lower the sooner"),
    text("collections.*.notify.*.address", "a mail address that gets its reports"),
    text("collections.*.notify.*.formats", "text, html, csv, json"),
    text("collections.*.callback.url", "where results are sent as signed JSON"),
    text("collections.*.callback.secret", "the key they are signed with"),
    text("collections.*.callback.secret_file", "a file with that key"),
    text("collections.*.identifiers", "mint, ezid or supplied"),
    text("collections.*.local_ids", "optional, required or forbidden"),
    text("collections.*.update_mode", "replace or add"),
    number("collections.*.invalid_retention_days", 0, 3650, "how long what failed is kept"),
    text("collections.*.remove_packages", "remove deposited packages once they are ingested"),
    number("collections.*.bytes_max", 1, BYTES_MAX, "bytes in one object"),
    number("collections.*.files_max", 1, 10_000_000, "files in one object"),
    text("collections.*.checks.*.name", "how the check is called in events"),
    text("collections.*.checks.*.program", "the program and its arguments"),
    text("collections.*.checks.*.per", "file or package"),
    number("collections.*.checks.*.timeout_seconds", 1, DAY_SECONDS, "how long it may run"),
    number("collections.*.checks.*.memory_bytes", 1 << 20, BYTES_MAX, "memory it may use"),
    text("collections.*.checks.*.fails", "job or warning"),
    number("collections.*.fixity_days", 1, 3650, "days between two fixity checks of a copy"),
    text("collections.*.results_beside", "write receipts and results beside packages"),
    text("collections.*.restore_to", "the directory or s3://… that restores are delivered to"),
    number(
        "collections.*.restored_keep_days",
        1,
        36_500,
        "how long what was delivered there stays",
    ),
    number(
        "collections.*.restore_drill_days",
        1,
        3650,
        "days between two drills: restores to nowhere",
    ),
];

/// The setting of a key such as `stores.main.url`.
pub fn setting(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| {
        let (mut pattern, mut parts) = (setting.key.split('.'), key.split('.'));
        loop {
            match (pattern.next(), parts.next()) {
                (None, None) => return true,
                (Some(wanted), Some(part)) if wanted == "*" || wanted == part => {}
                _ => return false,
            }
        }
    })
}

/// The sections, which is what environment variables that are settings begin with.
pub fn sections() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    SETTINGS.iter().filter_map(move |setting| {
        let section = setting.key.split('.').next().unwrap_or_default();
        let new = section != last;
        last = section;
        new.then_some(section)
    })
}
