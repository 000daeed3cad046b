//! Single jobs from many callers: those that come while a transaction is under way are added
//! together in the next, which costs hardly more than one of them.

use crate::catalog::Pipeline;
use crate::error::{Error, Result};
use crate::job::{Added, NewJob};
use crate::rules::add::{add, check};
use db::Db;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// Jobs that go in one transaction, and the bytes of their payloads.
const TOGETHER_MAX: usize = 500;
const BYTES_MAX: usize = 4 << 20;
/// Jobs that may wait; whoever brings one more waits with it.
const WAITING_MAX: usize = 4 * TOGETHER_MAX;
/// Looks for as many as last time before a transaction begins: those who were just answered are
/// about to bring their next.
const LOOKS: usize = 4;

/// Adds jobs that are given to it one at a time. Clones share it.
///
/// ```
/// # use queue::{Catalog, MIGRATIONS, NewJob, rules::pipelines::{self, PipelineSpec}, runtime::Adder};
/// # use std::sync::Arc;
/// # #[tokio::main] async fn main() -> queue::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = db::Db::open(&db::Address::sqlite(dir.path().join("q.db")), MIGRATIONS, &Default::default())?;
/// # db.write(|tx| pipelines::create(tx, tx.now(), "ann", &PipelineSpec::queue("letters"))).await?;
/// let catalog: Catalog = db.read(Catalog::load).await?;
/// let letters = Arc::new(catalog.named("letters")?.clone());
/// let adder = Adder::start(db.clone());
/// let added = adder.add(&letters, "ann", NewJob::new("letter-1")).await?;
/// assert!(!added.coalesced);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Adder {
    requests: mpsc::Sender<Request>,
}

/// One job on its way, and whoever waits for it.
struct Request {
    pipeline: Arc<Pipeline>,
    who: String,
    job: NewJob,
    answer: Answer,
}

type Answer = oneshot::Sender<Result<Added>>;

/// What one person adds to one pipeline.
struct Group {
    pipeline: Arc<Pipeline>,
    who: String,
    jobs: Vec<NewJob>,
}

impl Adder {
    /// Starts it, in the async runtime that this is called from. It ends with its last clone.
    pub fn start(db: Db) -> Adder {
        let (requests, arrived) = mpsc::channel(WAITING_MAX);
        tokio::spawn(run(db, arrived));
        Adder { requests }
    }

    /// Adds a job to the first stage of a pipeline; once this answers it is not lost (I1).
    pub async fn add(&self, pipeline: &Arc<Pipeline>, who: &str, job: NewJob) -> Result<Added> {
        check(pipeline, &job)?;
        let (answer, answered) = oneshot::channel();
        let request = Request { pipeline: pipeline.clone(), who: who.to_string(), job, answer };
        let closed = |_| Error::Db(db::Error::Closed);
        self.requests.send(request).await.map_err(|_| closed(()))?;
        answered.await.unwrap_or_else(|_| Err(closed(())))
    }
}

async fn run(db: Db, mut arrived: mpsc::Receiver<Request>) {
    let (mut waiting, mut last) = (Vec::new(), 0);
    while !waiting.is_empty() || arrived.recv_many(&mut waiting, TOGETHER_MAX).await > 0 {
        for _ in 0..LOOKS {
            if waiting.len() >= last {
                break;
            }
            tokio::task::yield_now().await;
            let room = TOGETHER_MAX - waiting.len();
            waiting.extend(std::iter::from_fn(|| arrived.try_recv().ok()).take(room));
        }
        last = waiting.len();
        let rest = waiting.split_off(as_many_as_fit(&waiting));
        add_all(&db, std::mem::replace(&mut waiting, rest)).await;
    }
}

/// How many of them go in one transaction: at least the first.
fn as_many_as_fit(requests: &[Request]) -> usize {
    let mut bytes = 0;
    let over = requests.iter().position(|request| {
        bytes += request.job.payload.as_ref().map_or(0, Vec::len);
        bytes > BYTES_MAX
    });
    over.map_or(requests.len(), |at| at.max(1))
}

/// Adds all of them in one transaction. If that fails, each has one of its own: whatever is wrong
/// with one job is not the others' matter.
async fn add_all(db: &Db, requests: Vec<Request>) {
    let (groups, answers) = gathered(requests);
    let groups = Arc::new(groups);
    let mine = groups.clone();
    let added: Result<Vec<Added>> = db
        .write(move |tx| {
            let now = tx.now();
            let mut added = Vec::new();
            for Group { pipeline, who, jobs } in mine.iter() {
                added.extend(add(tx, now, pipeline, who, jobs)?);
            }
            Ok(added)
        })
        .await;
    // Whoever does not wait for the answer any more has its job all the same.
    match added {
        Ok(added) => answers.into_iter().zip(added).for_each(|(answer, added)| {
            let _ = answer.send(Ok(added));
        }),
        // They may have been added: trying again could add them twice.
        Err(Error::Db(db::Error::UnknownOutcome(why))) => {
            for answer in answers {
                let _ = answer.send(Err(Error::Db(db::Error::UnknownOutcome(why.clone()))));
            }
        }
        Err(error) => match <[Answer; 1]>::try_from(answers) {
            Ok([answer]) => _ = answer.send(Err(error)),
            Err(answers) => {
                tracing::debug!(%error, jobs = answers.len(), "jobs could not be added together; each is added alone");
                add_each(db, &groups, answers).await;
            }
        },
    }
}

async fn add_each(db: &Db, groups: &Arc<Vec<Group>>, answers: Vec<Answer>) {
    let places = groups
        .iter()
        .enumerate()
        .flat_map(|(g, group)| (0..group.jobs.len()).map(move |job| (g, job)));
    let mut tasks = JoinSet::new();
    for ((group, job), answer) in places.zip(answers) {
        let (db, groups) = (db.clone(), groups.clone());
        tasks.spawn(async move {
            let added = db.write(move |tx| {
                let Group { pipeline, who, jobs } = &groups[group];
                add(tx, tx.now(), pipeline, who, &jobs[job..=job])
            });
            let _ = answer.send(added.await.map(|added| added[0]));
        });
    }
    tasks.join_all().await;
}

/// Jobs by whom and to what they are added, and who waits for them in the same order.
fn gathered(requests: Vec<Request>) -> (Vec<Group>, Vec<Answer>) {
    let mut groups: Vec<(Group, Vec<Answer>)> = Vec::with_capacity(1);
    for Request { pipeline, who, job, answer } in requests {
        let same = |(group, _): &&mut (Group, Vec<Answer>)| {
            group.pipeline.id == pipeline.id && group.who == who
        };
        match groups.iter_mut().find(same) {
            Some((group, answers)) => {
                group.jobs.push(job);
                answers.push(answer);
            }
            None => groups.push((Group { pipeline, who, jobs: vec![job] }, vec![answer])),
        }
    }
    // One order for everyone, so that two transactions hardly ever wait for each other.
    groups.sort_by(|(a, _), (b, _)| (a.pipeline.id, &a.who).cmp(&(b.pipeline.id, &b.who)));
    let (groups, answers): (Vec<Group>, Vec<Vec<Answer>>) = groups.into_iter().unzip();
    (groups, answers.into_iter().flatten().collect())
}
