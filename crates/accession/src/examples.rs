//! Examples for the help and the manual page of every command that has none of its own.
//!
//! In one place, because several commands share their arguments (`queue hold`, `jobs hold`) and not
//! their examples. Tests see to it that no command is without one, and that each can be parsed.

use clap::Command;

/// What is typed after `accession`, by command.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("objects list", &["objects list --collection maps", "objects list --format fmt/353 --csv"]),
    ("objects show", &["objects show ark:/99999/fk4abc", "objects show box-17 --json"]),
    ("objects files", &["objects files box-17", "objects files box-17 --version 1 --csv"]),
    ("objects events", &["objects events box-17"]),
    ("objects versions", &["objects versions box-17"]),
    ("batches list", &["batches list", "batches list --limit 500 --json"]),
    ("batches show", &["batches show 3"]),
    ("batches report", &["batches report 3", "batches report 3 --format csv -o box-17.csv"]),
    ("batches report-again", &["batches report-again 3"]),
    ("batches hold", &["batches hold 3 --reason 'the depositor asked us to wait'"]),
    ("batches release", &["batches release 3"]),
    ("batches cancel", &["batches cancel 3 --reason 'sent twice'"]),
    ("batches delete", &["batches delete 3 --reason 'sent twice'"]),
    ("jobs list", &["jobs list --status failed", "jobs list --batch 3 --json"]),
    ("jobs show", &["jobs show 12"]),
    ("jobs why", &["jobs why 12"]),
    ("jobs stuck", &["jobs stuck", "jobs stuck --over 10m"]),
    ("jobs failed", &["jobs failed", "jobs failed ingest --limit 500"]),
    (
        "jobs requeue",
        &["jobs requeue 12 13 --reason 'the disk was mended'", "jobs requeue 12 --to downloading"],
    ),
    ("jobs hold", &["jobs hold 12 --reason 'rights are not clear'", "jobs hold --collection maps"]),
    ("jobs release", &["jobs release 12", "jobs release --collection maps"]),
    ("jobs cancel", &["jobs cancel 12 --reason 'sent twice'", "jobs cancel --batch 3"]),
    (
        "jobs pause",
        &[
            "jobs pause ingest --stage downloading --reason 'network works tonight'",
            "jobs pause --all",
        ],
    ),
    ("jobs unpause", &["jobs unpause ingest --stage downloading", "jobs unpause --all"]),
    ("collection show", &["collection show maps"]),
    ("collection list", &["collection list"]),
    ("collection freeze", &["collection freeze maps --reason 'the catalogue is being moved'"]),
    ("collection thaw", &["collection thaw maps"]),
    ("registry rebuild", &["registry rebuild --from main"]),
    ("registry dump", &["registry dump > registry.jsonl"]),
    (
        "export premis",
        &["export premis box-17 -o premis.xml", "export premis box-17 --format json-ld"],
    ),
    ("queue delete", &["queue delete files --reason 'not needed any more'"]),
    ("queue list", &["queue list files --status failed", "queue list --batch 3 --json"]),
    ("queue show", &["queue show 12"]),
    ("queue why", &["queue why 12"]),
    ("queue stats", &["queue stats", "queue stats files --json"]),
    ("queue stuck", &["queue stuck", "queue stuck files --over 10m"]),
    ("queue failed", &["queue failed", "queue failed files --limit 500"]),
    ("queue requeue", &["queue requeue 12 13 --reason 'the disk was mended'"]),
    ("queue hold", &["queue hold 12 --reason 'ask Ann first'", "queue hold --batch 3"]),
    ("queue release", &["queue release 12", "queue release --batch 3"]),
    ("queue cancel", &["queue cancel 12 --reason 'sent twice'", "queue cancel --batch 3"]),
    ("queue pause", &["queue pause files --reason 'network works tonight'", "queue pause --all"]),
    ("queue unpause", &["queue unpause files", "queue unpause --all"]),
    ("queue empty", &["queue empty files --reason 'the wrong list'"]),
    ("queue workers", &["queue workers"]),
    ("queue watch", &["queue watch", "queue watch --every 5"]),
    (
        "formats install",
        &[
            "formats install DROID_SignatureFile_V120.xml container-signature-20240715.xml",
            "formats install --latest",
        ],
    ),
    ("formats list", &["formats list"]),
    ("formats use", &["formats use essential"]),
    ("formats show", &["formats show fmt/412", "formats show docx"]),
    ("ocfl ls", &["ocfl ls /archive/store", "ocfl ls s3://bucket/store --paths"]),
    ("ocfl log", &["ocfl log /archive/store ark:/99999/fk4abc"]),
    ("ocfl show", &["ocfl show /archive/store ark:/99999/fk4abc --at v1"]),
    ("ocfl diff", &["ocfl diff /archive/store ark:/99999/fk4abc --from v1 --to v3"]),
    ("ocfl cat", &["ocfl cat /archive/store ark:/99999/fk4abc letter.txt > letter.txt"]),
    ("ocfl export", &["ocfl export /archive/store ark:/99999/fk4abc letters"]),
    ("ocfl purge", &["ocfl purge /archive/store ark:/99999/fk4abc --yes"]),
    ("demo", &["demo", "demo --directory /tmp/look-around"]),
    ("db info", &["db info"]),
    ("bench ocfl", &["bench ocfl --files 10000"]),
];

/// The command line with them.
pub fn with_examples(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (path, examples)| {
        let path: Vec<&str> = path.split(' ').collect();
        at(command, &path, examples)
    })
}

fn at(command: Command, path: &[&str], examples: &[&str]) -> Command {
    match path {
        [] => {
            let lines: Vec<String> = examples.iter().map(|e| format!("  accession {e}")).collect();
            let title = if lines.len() == 1 { "Example" } else { "Examples" };
            let before = command.get_after_help().map(|text| format!("{text}\n\n"));
            let text = format!("{}{title}:\n{}", before.unwrap_or_default(), lines.join("\n"));
            command.after_help(text)
        }
        [first, rest @ ..] => {
            let (name, rest) = ((*first).to_string(), rest.to_vec());
            command.mut_subcommand(name, |c| at(c, &rest, examples))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    /// The words of a line as a shell would pass them on, up to a redirection or a pipe.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
        for c in line.chars() {
            match c {
                '\'' => {
                    quoted = !quoted;
                    word.get_or_insert_default();
                }
                '>' | '|' | '#' if !quoted && word.is_none() => break,
                ' ' if !quoted => words.extend(word.take()),
                _ => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }

    fn leaves(command: &Command, path: String, found: &mut Vec<(String, String)>) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        if command.get_subcommands().next().is_none() {
            found.push((path.clone(), help));
        }
        for sub in command.get_subcommands().filter(|s| s.get_name() != "help" && !s.is_hide_set())
        {
            leaves(sub, format!("{path} {}", sub.get_name()), found);
        }
    }

    #[test]
    fn every_command_has_examples_that_can_be_typed() {
        let mut found = Vec::new();
        leaves(&cli::command(), "accession".to_string(), &mut found);
        assert!(found.len() > 80, "only {} commands were looked at", found.len());
        let mut wrong = Vec::new();
        for (path, help) in found {
            let whole = help.replace("\\\n", " ");
            let typed: Vec<&str> = whole
                .lines()
                .filter_map(|l| l.strip_prefix("  "))
                .filter(|l| l.starts_with("accession ") || l.contains("| accession "))
                .collect();
            if typed.is_empty() {
                wrong.push(format!("`{path}` has no example"));
            }
            for line in typed {
                let line = line.find("accession ").map_or(line, |at| &line[at..]);
                if let Err(error) = cli::command().try_get_matches_from(words(line)) {
                    wrong.push(format!("`{path}`: `{line}`: {error}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
