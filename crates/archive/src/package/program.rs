//! External checks: programs, such as virus scanners, that look at what is deposited.
//!
//! | end | verdict |
//! |---|---|
//! | exit 0 | clean |
//! | exit 1 | refused, with what it printed |
//! | exit 75, or over its time | failed: run again later |
//! | anything else | failed: the check itself does not work |

use crate::ErrorCode;
use crate::model::profile::Check;
use crate::{Error, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

/// How much of what a program prints is kept.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;
/// How long after its end a program's output may still come: something it started may keep it open.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(1);
/// Sets the limit on memory, then becomes the program. A limit that cannot be set must not look
/// like a refusal, so it has an exit status of its own.
const LIMITED: &str = r#"ulimit -v "$0" || exit 125; exec "$@""#;
const EXIT_UNLIMITED: i32 = 125;
const EXIT_LATER: i32 = 75;

/// What a check says of a file or a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Clean {
        output: String,
    },
    Refused {
        output: String,
    },
    /// The check could not say; `why` is a sentence with what to do.
    Failed {
        code: ErrorCode,
        why: String,
    },
}

impl Verdict {
    /// The verdict as a stage ends with it: what the program printed if it is clean, an error if
    /// it is refused or could not be found out.
    pub fn into_result(self, check: &Check, path: &str) -> Result<String> {
        match self {
            Verdict::Clean { output } => Ok(output),
            Verdict::Refused { output } => Err(Error::permanent(
                ErrorCode::CheckRefused,
                format!("{path} was refused by the check {}: {output}", check.name),
            )),
            Verdict::Failed { code, why } => {
                Err(Error::transient(code, why).at(format!("check {}", check.name)))
            }
        }
    }
}

/// Runs a check on one path. Dropping the future ends the program.
pub async fn run(check: &Check, path: &Path) -> Verdict {
    let name = &check.name;
    let failed = |why: String| Verdict::Failed { code: ErrorCode::CheckFailed, why };
    let command = match command(check, path) {
        Ok(command) => command,
        Err(error) => {
            return failed(format!(
                "the check {name} cannot be run on {}: {error}",
                path.display()
            ));
        }
    };
    let mut program = match Program::start(command) {
        Ok(program) => program,
        Err(error) => {
            return failed(format!(
                "the check {name} cannot be started: {error}; correct its `program`"
            ));
        }
    };
    let limit = Duration::from_secs(check.timeout_seconds);
    let ended = tokio::time::timeout(limit, program.child.wait()).await;
    program.end();
    let output = program.output().await;
    match ended {
        Err(_) => Verdict::Failed {
            code: ErrorCode::CheckTimeout,
            why: format!(
                "the check {name} took longer than {} s and was stopped; raise its timeout_seconds if it needs longer",
                check.timeout_seconds
            ),
        },
        Ok(Err(error)) => failed(format!("the check {name} was lost: {error}")),
        Ok(Ok(status)) => judge(check, status, output),
    }
}

fn judge(check: &Check, status: ExitStatus, output: String) -> Verdict {
    let name = &check.name;
    let said = if output.is_empty() { String::new() } else { format!(": {output}") };
    let failed = |why: String| Verdict::Failed { code: ErrorCode::CheckFailed, why };
    match (status.code(), status.signal()) {
        (Some(0), _) => Verdict::Clean { output },
        (Some(1), _) if output.is_empty() => {
            Verdict::Refused { output: "it said nothing (exit 1)".to_string() }
        }
        (Some(1), _) => Verdict::Refused { output },
        (Some(EXIT_LATER), _) => Verdict::Failed {
            code: ErrorCode::CheckLater,
            why: format!("the check {name} asks to be run again later (exit 75){said}"),
        },
        (Some(EXIT_UNLIMITED), _) => failed(format!(
            "the memory of the check {name} cannot be limited to {} bytes; correct its memory_bytes{said}",
            check.memory_bytes
        )),
        (Some(126 | 127), _) => failed(format!(
            "the check {name} has no program `{}` that can be run; install it or correct its `program`{said}",
            check.program.first().map_or("", String::as_str)
        )),
        (Some(code), _) => failed(format!(
            "the check {name} ended with exit {code}, which is neither clean (0) nor refused (1); look after it{said}"
        )),
        (None, signal) => failed(format!(
            "the check {name} was ended by signal {}; if it needs more memory, raise its memory_bytes{said}",
            signal.unwrap_or(0)
        )),
    }
}

fn command(check: &Check, path: &Path) -> std::io::Result<Command> {
    // A whole path cannot be taken for an option.
    let path = std::path::absolute(path)?;
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(LIMITED).arg((check.memory_bytes / 1024).to_string());
    let mut named = false;
    for part in &check.program {
        if part == "{}" {
            command.arg(&path);
            named = true;
        } else {
            command.arg(part);
        }
    }
    if !named {
        command.arg(&path);
    }
    // What this process was given, passwords among it, is not the program's business.
    command.env_clear();
    for (name, otherwise) in
        [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("TMPDIR", "/tmp")]
    {
        command.env(name, std::env::var_os(name).unwrap_or_else(|| otherwise.into()));
    }
    command.current_dir("/");
    Ok(command)
}

/// The groups of programs that this process runs.
fn running() -> MutexGuard<'static, HashSet<Pid>> {
    static RUNNING: LazyLock<Mutex<HashSet<Pid>>> = LazyLock::new(Mutex::default);
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all programs of this process. Call it before the process ends without ending its runs.
pub fn end_all() {
    for group in running().drain() {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// A program that runs, in a group of its own with everything it starts.
struct Program {
    child: Child,
    group: Option<Pid>,
    kept: Arc<Mutex<Vec<u8>>>,
    readers: Vec<tokio::task::JoinHandle<()>>,
}

impl Program {
    fn start(mut command: Command) -> std::io::Result<Program> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        running().extend(group);
        let kept: Arc<Mutex<Vec<u8>>> = Arc::default();
        let mut readers = Vec::new();
        if let Some(stream) = child.stdout.take() {
            readers.push(tokio::spawn(keep(stream, kept.clone())));
        }
        if let Some(stream) = child.stderr.take() {
            readers.push(tokio::spawn(keep(stream, kept.clone())));
        }
        Ok(Program { child, group, kept, readers })
    }

    /// Ends the program and everything of its group; no error if it has ended.
    fn end(&mut self) {
        if let Some(group) = self.group.take() {
            let _ = kill_process_group(group, Signal::KILL);
            running().remove(&group);
        }
    }

    /// What it printed, once all has come or the patience is over.
    async fn output(mut self) -> String {
        for reader in &mut self.readers {
            if tokio::time::timeout(OUTPUT_PATIENCE, &mut *reader).await.is_err() {
                reader.abort();
            }
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        // Control characters have no place in an error, nor NUL in a database.
        let good = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        text.chars().filter(good).collect::<String>().trim().to_string()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads a stream to its end and keeps its beginning.
async fn keep(mut stream: impl AsyncRead + Unpin, kept: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = OUTPUT_BYTES_MAX.saturating_sub(kept.len());
        kept.extend(&buffer[..count.min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str) -> Check {
        let program = serde_json::json!(["sh", "-c", script, "check"]);
        serde_json::from_value(serde_json::json!({"name": "test", "program": program})).unwrap()
    }

    async fn verdict(script: &str) -> Verdict {
        run(&check(script), Path::new("/etc/hostname")).await
    }

    fn why(verdict: Verdict) -> (ErrorCode, String) {
        match verdict {
            Verdict::Failed { code, why } => (code, why),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn the_exit_status_is_the_verdict() {
        let clean = verdict(r#"echo "looked at $1""#).await;
        assert_eq!(clean, Verdict::Clean { output: "looked at /etc/hostname".into() });
        let refused = verdict("echo Eicar-Test >&2; exit 1").await;
        assert_eq!(refused, Verdict::Refused { output: "Eicar-Test".into() });
        let error = refused.into_result(&check(""), "data/a.exe").unwrap_err();
        assert_eq!(error.to_string(), "data/a.exe was refused by the check test: Eicar-Test");
        assert!(!error.is_transient());
        let (code, said) = why(verdict("echo soon; exit 75").await);
        assert!(code == ErrorCode::CheckLater && said.contains("soon"), "{said}");
        let (code, said) = why(verdict("exit 2").await);
        assert!(code == ErrorCode::CheckFailed && said.contains("exit 2"), "{said}");
        let (_, said) = why(verdict("kill -9 $$").await);
        assert!(said.contains("signal 9"), "{said}");
        let error = verdict("exit 3").await.into_result(&check(""), "x").unwrap_err();
        assert!(matches!(error, Error::Transient { target: Some(t), .. } if t == "check test"));
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_refuses_nothing() {
        let mut missing = check("");
        missing.program = vec!["/no/such/scanner".to_string()];
        let (code, said) = why(run(&missing, Path::new("/etc/hostname")).await);
        assert!(code == ErrorCode::CheckFailed && said.contains("/no/such/scanner"), "{said}");
    }

    #[tokio::test]
    async fn the_path_is_put_where_the_program_wants_it() {
        let mut check = check(r#"echo "$#:$1:$2""#);
        check.program.extend(["{}".to_string(), "--last".to_string()]);
        let clean = run(&check, Path::new("/etc/a b")).await;
        assert_eq!(clean, Verdict::Clean { output: "2:/etc/a b:--last".into() });
    }

    #[tokio::test]
    async fn it_ends_with_all_it_started_when_its_time_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // A grandchild holds the pipe open for writing; reading ends when it is gone.
        let script = format!("(sleep 1000 > '{}') & wait", pipe.display());
        let mut slow = check(&script);
        slow.timeout_seconds = 1;
        let read = std::thread::spawn(move || std::fs::read(pipe).unwrap());
        let (code, _) = why(run(&slow, Path::new("/etc/hostname")).await);
        assert_eq!(code, ErrorCode::CheckTimeout);
        assert!(read.join().unwrap().is_empty());
    }

    #[tokio::test]
    async fn memory_is_limited() {
        let mut hungry = check("ulimit -v");
        hungry.memory_bytes = 64 << 20;
        let clean = run(&hungry, Path::new("/x")).await;
        assert_eq!(clean, Verdict::Clean { output: "65536".into() });
        let script = "x=0123456789abcdef; while :; do x=$x$x; done";
        let mut hungry = check(script);
        hungry.memory_bytes = 64 << 20;
        let (code, _) = why(run(&hungry, Path::new("/x")).await);
        assert_eq!(code, ErrorCode::CheckFailed);
    }

    #[tokio::test]
    async fn output_is_bounded_and_the_environment_is_clean() {
        let Verdict::Clean { output } = verdict("yes | head -c 1000000").await else { panic!() };
        assert!(output.len() <= OUTPUT_BYTES_MAX && output.len() > 1000);
        let Verdict::Clean { output } = verdict("env | cut -d= -f1 | sort; cat").await else {
            panic!()
        };
        let names: Vec<&str> =
            output.lines().filter(|n| !matches!(*n, "PWD" | "OLDPWD" | "SHLVL" | "_")).collect();
        assert_eq!(names, ["LANG", "PATH", "TMPDIR"]);
    }

    #[tokio::test]
    async fn a_program_whose_children_stay_behind_is_not_waited_for() {
        // It leaves the group and keeps the output open.
        let clean = verdict("setsid sleep 5 & echo done").await;
        assert_eq!(clean, Verdict::Clean { output: "done".into() });
    }
}
