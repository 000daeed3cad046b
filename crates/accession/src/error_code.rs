//! The codes of the program's own errors. Those of the queue and the archive are theirs.

queue::error_codes! {
    /// What a failure of a command is filed under. The texts never change.
    pub enum ErrorCode {
        /// The command line cannot be understood.
        Usage = "usage", "Read `--help` of the command.";
        /// The command was interrupted.
        Interrupted = "interrupted", "Run it again; the message says what was kept.";
        /// The reader of the output went away.
        ReaderGone = "reader_gone", "Nothing.";
        /// The version has no file of this path.
        UnknownFile = "unknown_file", "`accession objects files` lists those it has.";
        /// A copy could not be read to its end as it should be; what was written is not the file.
        CopyDamaged = "copy_damaged", "Throw away what was written, and try again: another copy is read then.";
        /// An address of `--notify` cannot be used.
        BadAddress = "bad_address", "Correct the address.";
        /// A list of objects cannot be read.
        UnreadableList = "unreadable_list", "Name a file of text with one object in each line.";
        /// A list of objects names none.
        EmptyList = "empty_list", "Write one object in each line.";
        /// The program contradicts itself.
        Internal = "internal", "Report it as a bug.";
        /// The data directory cannot be used.
        DataDirectory = "data_directory", "Choose another with `--data` or `ACCESSION_DATA`, or correct its permissions.";
        /// An action that needs a confirmation did not get one.
        NotConfirmed = "not_confirmed", "Run it again with `--yes`.";
        /// A purge was not confirmed.
        PurgeNotConfirmed = "not-confirmed", "Run it again with `--yes`.";
        /// Jobs were not chosen.
        NoFilter = "no_filter", "Name a queue, a batch, a code or a target, or say `--all`.";
        /// A line of the input cannot be read.
        BadLine = "bad_line", "Correct the line; nothing was added.";
        /// A collection of this name exists.
        Exists = "exists", "Choose another name, or change it with `accession collection set`.";
        /// The collection is defined in the configuration file.
        Configured = "configured", "Change it there.";
        /// A check did not reach all places.
        CheckUnfinished = "check_unfinished", "Check again when the stores answer.";
        /// The configuration names no watched place.
        NothingToWatch = "nothing_to_watch", "Add a `[[watch]]` section.";
        /// The worker of `accession ingest` ended early.
        Worker = "worker", "Read the log, then run `accession work --until-empty`.";
        /// The command is for SQLite, and the database is PostgreSQL.
        Postgres = "postgres", "Use the program of PostgreSQL that the message names.";
        /// The program of `accession queue work` does not exist.
        NoSuchProgram = "no_such_program", "Correct its name or path.";
        /// A subject would become part of a shell command.
        UnsafeTemplate = "unsafe_template", "Pass it as an argument, as the message says.";
        /// The program could not be started.
        Exec = "exec", "Check the program. The job is tried again.";
        /// The subject has a zero byte, which no argument can have.
        NulInSubject = "nul_in_subject", "Pass the subject on standard input.";
        /// The program left a state that is not a JSON object.
        BadState = "bad_state", "Correct the program.";
        /// The program asks to be run again later.
        Exit75 = "exit_75", "Nothing: the job is tried again.";
        /// The program says that something it needs is unavailable.
        Exit69 = "exit_69", "Bring that back. The job is tried again.";
        /// The format signatures cannot be loaded.
        Signatures = "signatures", "Install them again with `accession formats update`.";
        /// The signature file or set cannot be used.
        Formats = "formats", "Correct the name or the file.";
        /// A file could not be fetched.
        Fetch = "fetch", "Check the address and the network.";
        /// The path cannot be identified.
        Path = "path", "Name a file, or add `--recursive` for a directory.";
        /// The input could not be read.
        Read = "read", "Check the file and the disk.";
        /// The output could not be written.
        Write = "write", "Check the path and the disk.";
        /// The output would overwrite the input.
        Output = "output", "Name another output.";
        /// The name is a directory, and a file is needed.
        Directory = "directory", "Name a file.";
        /// Inclusions cannot be followed from standard input.
        Follow = "follow", "Name the manifest as a file.";
        /// URLs need a base that is valid.
        BaseUrl = "base-url", "Give one with `--base-url`.";
        /// The name is not a directory.
        NotADirectory = "not-a-directory", "Name a directory.";
        /// A file cannot be listed in a manifest.
        NotListable = "not-listable", "Rename it, or leave it out with `--skip`.";
        /// The manifest cannot be written in the other form.
        NotConvertible = "not-convertible", "Read the message: it names the row.";
        /// Some manifests could not be read.
        SomeUnread = "some-unread", "See the messages above.";
        /// Some bags could not be read.
        Unread = "unread", "See the messages above.";
        /// The container is of no kind that is known.
        NotABag = "not-a-bag", "Name a directory, a tar or a zip.";
        /// The BagIt profile cannot be used.
        Profile = "profile", "Correct its path or its content.";
        /// A stream can be read only once.
        Stream = "stream", "Save the bag as a file first.";
        /// The input is beyond a limit.
        Limit = "limit", "Read the message: it names the limit.";
        /// The archive is damaged.
        ArchiveDamaged = "archive-damaged", "Get it again.";
        /// There is no such object, version or file in the root.
        NotFound = "not-found", "List what there is with `accession ocfl list`.";
        /// The directory is not an OCFL storage root.
        NotARoot = "not-a-root", "Name the root itself.";
        /// The directory is not empty.
        NotEmpty = "not-empty", "Name an empty or new one.";
        /// The layout of the root is unknown or missing.
        Layout = "layout", "Name the layout.";
        /// A path or identifier cannot be used in OCFL.
        BadName = "bad-name", "Correct it.";
        /// Another writer changed the object, or its write is not finished.
        Conflict = "conflict", "Try again when that writer is done.";
        /// The store returned bytes that differ from what was put.
        Corrupt = "corrupt", "Validate the root and check the store.";
        /// The store could not be used.
        Store = "store", "Read the message: it names the cause.";
        /// The address of the store is malformed.
        StoreUrl = "store-url", "Correct it; `accession store --help` has examples.";
        /// The store cannot be reached.
        StoreUnreachable = "store-unreachable", "Check the address, the credentials and the network.";
        /// Some places could not be validated.
        Unchecked = "unchecked", "Remove what prevents it, then validate again.";
        /// The demonstration could not make its samples.
        Demo = "demo", "Check the disk of the temporary directory.";
        /// A measurement could not be made.
        Bench = "bench", "Read the message.";
        /// The program that a measurement is compared with failed.
        Floor = "floor", "Install it, or leave the comparison out.";
        /// Another program that a measurement is compared with failed.
        Peer = "peer", "Install it, or leave the comparison out.";
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::ErrorCode;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    /// Code, meaning, what to do.
    type Row = (String, &'static str, &'static str);

    fn repository() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    macro_rules! rows {
        ($codes:ty) => {
            <$codes>::ALL
                .iter()
                .map(|code| (code.as_str().to_string(), code.meaning(), code.remedy()))
                .collect::<Vec<Row>>()
        };
    }

    /// The sections of the page, each between its marks.
    fn sections() -> [(&'static str, Vec<Row>); 5] {
        let of_bag = |code: &bagit::Code| {
            let text = archive::model::problem::ProblemCode::Bag(*code).to_string();
            (text, code.about(), "Correct the bag, and deposit it again.")
        };
        let of_manifest = |code: &checkm::Code| {
            let text = archive::model::problem::ProblemCode::Manifest(*code).to_string();
            (text, code.meaning(), code.advice())
        };
        [
            ("queue", rows!(queue::ErrorCode)),
            ("archive", rows!(archive::ErrorCode)),
            ("commands", rows!(ErrorCode)),
            ("bags", bagit::Code::ALL.iter().map(of_bag).collect()),
            ("manifests", checkm::Code::ALL.iter().map(of_manifest).collect()),
        ]
    }

    /// Run with `ACCESSION_BLESS=1` to rewrite the page.
    #[test]
    fn the_page_of_error_codes_is_current() {
        let path = repository().join("docs/errors.md");
        let mut page = std::fs::read_to_string(&path).unwrap();
        let mut all = BTreeSet::new();
        for (title, rows) in sections() {
            let mut wanted = format!("<!-- begin {title} -->\n");
            wanted.push_str("| code | meaning | what to do |\n|---|---|---|\n");
            for (code, meaning, remedy) in rows {
                wanted.push_str(&format!("| `{code}` | {meaning} | {remedy} |\n"));
                assert!(all.insert(code.clone()), "{code} has two meanings");
            }
            let mark = format!("<!-- end {title} -->");
            wanted.push_str(&mark);
            let begin = page.find(&format!("<!-- begin {title} -->")).expect(title);
            let end = page.find(&mark).expect(title) + mark.len();
            if std::env::var_os("ACCESSION_BLESS").is_some() {
                page.replace_range(begin..end, &wanted);
            }
            assert!(
                page.contains(&wanted),
                "docs/errors.md is stale; run `ACCESSION_BLESS=1 cargo test -p accession --bins error_code`"
            );
        }
        if std::env::var_os("ACCESSION_BLESS").is_some() {
            std::fs::write(&path, page).unwrap();
        }
    }

    /// The lines of the program in a crate, without those of its tests.
    fn program(name: &str) -> Vec<String> {
        fn files(directory: &Path, found: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
                if path.is_dir() {
                    files(&path, found);
                } else if path.extension().is_some_and(|e| e == "rs")
                    && stem != "error_code"
                    && !stem.ends_with("tests")
                {
                    found.push(path);
                }
            }
        }
        let mut found = Vec::new();
        files(&repository().join("crates").join(name).join("src"), &mut found);
        let text = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
        let lines = |text: String| {
            let program = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
            program.map(str::to_string).collect::<Vec<String>>()
        };
        found.iter().map(text).flat_map(lines).collect()
    }

    #[test]
    fn every_code_is_used() {
        let unused = |name: &str, variants: Vec<String>| {
            let code = program(name).join("\n");
            let is_used = |variant: &String| {
                let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
                code.match_indices(variant.as_str()).any(|(at, _)| {
                    let before = code[..at].chars().next_back();
                    let after = code[at + variant.len()..].chars().next();
                    !part(before) && !part(after)
                })
            };
            variants.into_iter().filter(|variant| !is_used(variant)).collect::<Vec<String>>()
        };
        let queue = queue::ErrorCode::ALL.iter().map(|c| format!("{c:?}")).collect();
        let archive = archive::ErrorCode::ALL.iter().map(|c| format!("{c:?}")).collect();
        let own = ErrorCode::ALL.iter().map(|c| format!("{c:?}")).collect();
        assert_eq!(unused("queue", queue), [""; 0]);
        assert_eq!(unused("archive", archive), [""; 0]);
        assert_eq!(unused("accession", own), [""; 0]);
    }

    #[test]
    fn no_decision_reads_the_text_of_a_code() {
        for name in ["queue", "archive", "accession"] {
            for line in program(name) {
                let compares = line.contains("code() == \"")
                    || line.contains("code == \"")
                    || line.contains("match error.code()")
                    || (line.contains("matches!(") && line.contains(".code()"));
                assert!(!compares, "{name}: {line}");
            }
        }
    }
}
