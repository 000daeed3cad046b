//! What the suites share: a fresh queue on either engine with a clock that the test moves, a worker
//! that claims and settles, and the invariants of the contract as queries.
#![allow(dead_code, clippy::unwrap_used)]

pub mod invariants;
pub mod server;
pub mod worker;

use db::{Address, Clock, Db, FromRow, Micros, Options, Statement, Tx, Value};
use queue::rules::add;
use queue::rules::operator::{self, Actor, JobRow};
use queue::rules::pipelines::{self, PipelineSpec};
use queue::{Added, Catalog, JobId, NewJob, Pipeline, Result, State, Status};
pub use worker::Worker;

pub const SECOND: Micros = 1_000_000;
/// When every test begins.
pub const START: Micros = 1_700_000_000 * SECOND;
pub const LEASE: Micros = 60 * SECOND;
pub const ANN: Actor<'static> = Actor { who: "ann", reason: "because" };

/// A queue of its own for one test.
pub struct World {
    pub db: Db,
    pub clock: Clock,
    pub address: Address,
    place: Place,
}

enum Place {
    Directory(tempfile::TempDir),
    Database(server::FreshDatabase),
}

impl World {
    /// A queue in an SQLite file.
    pub fn sqlite() -> World {
        let directory = tempfile::tempdir().unwrap();
        let address = Address::sqlite(directory.path().join("queue.db"));
        World::open(address, Place::Directory(directory), 1, Options::default())
    }

    /// A queue in a PostgreSQL database of its own; None where no server is named.
    pub fn postgres(connections: usize) -> Option<World> {
        World::postgres_with(connections, Options::default())
    }

    /// As [`World::postgres`], with these hooks of tests.
    pub fn postgres_with(connections: usize, hooks: Options) -> Option<World> {
        let fresh = server::FreshDatabase::create()?;
        let address = Address::parse(&fresh.url).unwrap();
        Some(World::open(address, Place::Database(fresh), connections, hooks))
    }

    fn open(address: Address, place: Place, connections: usize, hooks: Options) -> World {
        let clock = Clock::manual(START);
        let options = Options { clock: clock.clone(), connections, readers: 1, ..hooks };
        let db = Db::open(&address, queue::MIGRATIONS, &options).unwrap();
        World { db, clock, address, place }
    }

    /// Runs a test of the suite on SQLite, and looks at the invariants afterwards.
    pub fn on_sqlite(test: fn(&World)) {
        let world = World::sqlite();
        test(&world);
        invariants::check(&world);
    }

    /// As [`World::on_sqlite`] on PostgreSQL, or says that it was skipped.
    pub fn on_postgres(test: fn(&World)) {
        let Some(world) = World::postgres(1) else {
            testing::skip("on PostgreSQL: ACCESSION_TEST_POSTGRES is not set");
            return;
        };
        test(&world);
        invariants::check(&world);
    }

    pub fn now(&self) -> Micros {
        self.clock.injected().unwrap()
    }

    pub fn advance(&self, by: Micros) {
        self.clock.advance(by);
    }

    /// Runs one rule in a transaction of its own.
    pub fn rule<T: Send + 'static>(
        &self,
        rule: impl Fn(&mut Tx<'_>, Micros, &Catalog) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.db.write_blocking(move |tx| {
            let (now, catalog) = (tx.now(), Catalog::load(tx)?);
            rule(tx, now, &catalog)
        })
    }

    pub fn rows<T: FromRow + Send + 'static>(&self, sql: &'static str) -> Vec<T> {
        let statement = Statement { name: sql, sqlite: sql, postgres: sql };
        self.db.write_blocking::<_, db::Error, _>(move |tx| tx.query(&statement, &[])).unwrap()
    }

    /// Where the test's own PostgreSQL database is.
    pub fn url(&self) -> &str {
        match &self.place {
            Place::Database(fresh) => &fresh.url,
            Place::Directory(_) => panic!("SQLite has no URL"),
        }
    }

    /// The one number a query with one parameter gives.
    pub fn number(&self, sql: &'static str, parameter: impl Into<i64>) -> i64 {
        let parameter = parameter.into();
        let statement = Statement { name: sql, sqlite: sql, postgres: sql };
        let work = move |tx: &mut Tx<'_>| {
            tx.one::<(i64,)>(&statement, &[Value::Int(parameter)]).map(|r| r.0)
        };
        self.db.write_blocking::<_, db::Error, _>(work).unwrap()
    }

    pub fn catalog(&self) -> Catalog {
        self.db.write_blocking(Catalog::load).unwrap()
    }

    pub fn make(&self, spec: PipelineSpec) -> Pipeline {
        self.rule(move |tx, now, _| pipelines::create(tx, now, "ann", &spec)).unwrap()
    }

    /// A plain queue of this name.
    pub fn queue(&self, name: &str) -> Pipeline {
        self.make(PipelineSpec::queue(name))
    }

    /// A pipeline whose adds never merge.
    pub fn staged(&self, name: &str, stages: &[&str]) -> Pipeline {
        self.make(PipelineSpec::staged(name, stages))
    }

    pub fn try_add(&self, pipeline: &Pipeline, job: NewJob) -> Result<Added> {
        let pipeline = pipeline.name.clone();
        self.rule(move |tx, now, catalog| {
            let one = std::slice::from_ref(&job);
            Ok(add::add(tx, now, catalog.named(&pipeline)?, "ann", one)?[0])
        })
    }

    pub fn add_job(&self, pipeline: &Pipeline, job: NewJob) -> JobId {
        self.try_add(pipeline, job).unwrap().job
    }

    pub fn add(&self, pipeline: &Pipeline, subject: &str) -> JobId {
        self.add_job(pipeline, NewJob::new(subject))
    }

    pub fn worker(&self, name: &str) -> Worker<'_> {
        Worker::register(self, name)
    }

    pub fn job(&self, job: JobId) -> JobRow {
        self.rule(move |tx, _, _| operator::look(tx, job)).unwrap()
    }

    pub fn status(&self, job: JobId) -> Status {
        self.job(job).status()
    }

    /// Why a waiting job waits.
    pub fn state(&self, job: JobId) -> Option<State> {
        self.job(job).waiting
    }

    pub fn stage(&self, job: JobId) -> String {
        self.catalog().stage_name(self.job(job).stage_id())
    }

    /// What happened to a job: the events' names, oldest first.
    pub fn events(&self, job: JobId) -> Vec<String> {
        self.history(job).into_iter().map(|e| e.event).collect()
    }

    pub fn history(&self, job: JobId) -> Vec<queue::rules::history::Event> {
        self.rule(move |tx, _, _| queue::rules::history::of_job(tx, job, 0, 1000)).unwrap()
    }

    /// How a job ended and why, from its record.
    pub fn ended_why(&self, job: JobId) -> String {
        const SQL: &str = "select ended_why from jobs where id = $1";
        let statement = Statement { name: "ended_why", sqlite: SQL, postgres: SQL };
        let work = move |tx: &mut Tx<'_>| {
            tx.one::<(Option<String>,)>(&statement, &db::params![job]).map(|r| r.0)
        };
        self.db.write_blocking::<_, db::Error, _>(work).unwrap().unwrap_or_default()
    }

    pub fn requeue(&self, job: JobId, to: Option<&'static str>) -> Result<()> {
        self.rule(move |tx, now, c| {
            operator::requeue::requeue(tx, now, c, ANN, job, to).map(|_| ())
        })
    }

    pub fn cancel(&self, job: JobId) -> Result<operator::cancel::Cancelled> {
        self.rule(move |tx, now, c| operator::cancel::cancel(tx, now, c, ANN, job))
    }

    pub fn hold(&self, job: JobId) -> Result<operator::hold::JobHold> {
        self.rule(move |tx, now, c| operator::hold::hold_job(tx, now, c, ANN, job))
    }

    pub fn release(&self, job: JobId) -> Result<()> {
        self.rule(move |tx, now, c| operator::hold::release_job(tx, now, c, ANN, job))
    }
}

/// `both!(rule_a, rule_b)`: each of these functions is a test on SQLite and one on PostgreSQL.
#[macro_export]
macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            #[test]
            fn on_sqlite() {
                $crate::support::World::on_sqlite(super::$name);
            }
            #[test]
            fn on_postgres() {
                $crate::support::World::on_postgres(super::$name);
            }
        })+
    };
}
