//! The command line: what is common to all commands, and which commands there are.

use crate::cmd;
use crate::exit::{Exit, Failure};
use clap::builder::StyledStr;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::fmt::Write;
use std::path::PathBuf;

/// Takes digital objects into an archive and keeps them.
#[derive(Parser)]
#[command(name = "accession", version, about, long_about = None, max_term_width = 100)]
#[command(
    help_template = "{about}\n\n{usage-heading} {usage}\n\n{before-help}{options}{after-help}"
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// The commands by what people do with them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Deposit", &["ingest", "deposit", "work", "watch", "collection"]),
    ("Look", &["status", "objects", "batches", "jobs", "restore", "export"]),
    ("Operate", &["check", "registry", "queue", "config", "doctor", "db"]),
    ("Standards", &["bag", "manifest", "identify", "formats", "ocfl", "store"]),
    ("Tools", &["demo", "bench", "completions", "man", "help"]),
];

impl Cli {
    /// Reads the command line.
    pub fn read() -> Result<Cli, clap::Error> {
        let matches = Cli::grouped().try_get_matches()?;
        Cli::from_arg_matches(&matches)
    }

    /// The command line with its help in groups.
    pub fn grouped() -> clap::Command {
        let mut command = Cli::command();
        command.build();
        let style = command.get_styles().clone();
        let (head, name) = (style.get_header(), style.get_literal());
        let mut help = StyledStr::new();
        for (group, names) in GROUPS {
            let _ = writeln!(help, "{head}{group}:{head:#}");
            for sub in names.iter().filter_map(|name| command.find_subcommand(name)) {
                let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
                let _ = writeln!(help, "  {name}{:<12}{name:#} {about}", sub.get_name());
            }
            let _ = writeln!(help);
        }
        Cli::command().before_help(help)
    }
}

/// Options of `accession` itself, before or after the subcommand.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// The database: `sqlite:///path/to/file` or `postgres://…`
    #[arg(
        long,
        global = true,
        env = "ACCESSION_DATABASE",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub database: Option<String>,
    /// The data directory (default: the platform's place for such data)
    #[arg(long, global = true, env = "ACCESSION_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The configuration file (default: accession.toml in the data directory, if it is there)
    #[arg(long, global = true, env = "ACCESSION_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A value of the configuration, over the file and the environment: KEY=VALUE
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print JSON for programs instead of tables for people
    #[arg(long, global = true)]
    pub json: bool,
    /// More about what is going on, on standard error (-v, -vv, -vvv)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Only errors on standard error, and no progress bars
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

#[derive(Subcommand)]
pub enum Command {
    /// Take files, bags, archives and manifests in, here and now
    Ingest(cmd::ingest::Args),
    /// Hand something over and get a receipt; workers do the rest
    Deposit(cmd::deposit::Args),
    /// Restore objects to a directory, an archive file or a bucket
    Restore(cmd::restore::Args),
    /// Work on what was deposited, until stopped
    Work(cmd::work::Args),
    /// Drop folders and receiving buckets: what they see and wait for
    Watch(cmd::watch::Args),
    /// The whole system at a glance
    Status(cmd::status::Args),
    /// What is kept: objects, their versions, files and events
    Objects(cmd::objects::Args),
    /// Deposits on their way and done: look at them, hold, cancel, report
    Batches(cmd::batches::Args),
    /// Jobs: look at them, hold, cancel, requeue
    Jobs(cmd::jobs::Args),
    /// Collections: make, change, show, hold
    Collection(cmd::collection::Args),
    /// Look at the configuration
    Config(cmd::config::Args),
    /// Check that everything works, and say what to fix
    Doctor(cmd::doctor::Args),
    /// Compare the registry with the stores, both ways
    Check(cmd::check::Args),
    /// Restore the registry from a store
    Registry(cmd::registry::Args),
    /// Write what is known of an object for others: PREMIS
    Export(cmd::export::Args),
    /// Queues: add, work, look, act
    Queue(cmd::queue::Args),
    /// Check, make and complete bags (BagIt, RFC 8493)
    Bag(cmd::bag::Args),
    /// Check, convert and make manifests: Checkm 0.7, the Merritt profiles, JSON
    Manifest(cmd::manifest::Args),
    /// Say what files are, by the signatures of PRONOM
    Identify(cmd::identify::Args),
    /// Install, list and choose signature files for `identify`
    Formats(cmd::formats::Args),
    /// OCFL storage roots and objects: look, check, export, purge
    Ocfl(cmd::ocfl::Args),
    /// Look at places that keep bytes: local directories and S3
    Store(cmd::store::Args),
    /// See it work: bags, a file and a manifest are taken in, one of them wrong
    Demo(cmd::demo::Args),
    /// Back up and restore the database
    Db(cmd::db::Args),
    /// Run benchmarks against what the hardware allows
    Bench(cmd::bench::Args),
    /// Print a completion script for your shell
    Completions(cmd::completions::Args),
    /// Write the manual pages into a directory
    Man(cmd::man::Args),
}

impl Command {
    pub fn run(self, global: &Global) -> Result<Exit, Failure> {
        match self {
            Command::Ingest(args) => cmd::ingest::run(args, global),
            Command::Deposit(args) => cmd::deposit::run(args, global),
            Command::Restore(args) => cmd::restore::run(args, global),
            Command::Work(args) => cmd::work::run(args, global),
            Command::Watch(args) => cmd::watch::run(args, global),
            Command::Status(args) => cmd::status::run(args, global),
            Command::Objects(args) => cmd::objects::run(args, global),
            Command::Batches(args) => cmd::batches::run(args, global),
            Command::Jobs(args) => cmd::jobs::run(args, global),
            Command::Check(args) => cmd::check::run(args, global),
            Command::Registry(args) => cmd::registry::run(args, global),
            Command::Export(args) => cmd::export::run(args, global),
            Command::Collection(args) => cmd::collection::run(args, global),
            Command::Config(args) => cmd::config::run(args, global),
            Command::Doctor(args) => cmd::doctor::run(args, global),
            Command::Queue(args) => cmd::queue::run(args, global),
            Command::Bag(args) => cmd::bag::run(args, global),
            Command::Manifest(args) => cmd::manifest::run(args, global),
            Command::Identify(args) => cmd::identify::run(args, global),
            Command::Formats(args) => cmd::formats::run(args, global),
            Command::Ocfl(args) => cmd::ocfl::run(args, global),
            Command::Store(args) => cmd::store::run(args, global),
            Command::Demo(args) => cmd::demo::run(args, global),
            Command::Db(args) => cmd::db::run(args, global),
            Command::Bench(args) => cmd::bench::run(args, global),
            Command::Completions(args) => cmd::completions::run(args),
            Command::Man(args) => cmd::man::run(args, global),
        }
    }
}

/// The number of a job or a batch.
pub fn number<Id: std::str::FromStr>(text: &str) -> Result<Id, String> {
    text.parse().map_err(|_| "jobs and batches have numbers, such as 12".to_string())
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::{Command, CommandFactory};

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
    fn every_command_is_in_one_group_of_the_help() {
        let mut command = Cli::command();
        command.build();
        let mut there: Vec<&str> =
            command.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name()).collect();
        let mut grouped: Vec<&str> =
            super::GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        there.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, there);
        let help = Cli::grouped().render_help().to_string();
        assert!(help.contains("Standards:\n  bag "), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }

    #[test]
    fn every_command_has_examples_that_can_be_typed() {
        let mut found = Vec::new();
        leaves(&Cli::command(), "accession".to_string(), &mut found);
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
                if let Err(error) = Cli::command().try_get_matches_from(words(line)) {
                    wrong.push(format!("`{path}`: `{line}`: {error}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
