//! Lets one transaction at a time take its next statement, in an order drawn from a seed.

use crate::actions::{self, Action, Done};
use crate::scene::Scene;
use crate::support::World;
use postgres::Client;
use std::cell::Cell;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

thread_local! {
    /// Which actor's transaction the database thread is running.
    static ACTOR: Cell<Option<usize>> = const { Cell::new(None) };
}

/// An actor that may go on, and the statement it is before.
pub type Ready = (usize, &'static str);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Between statements of its own accord, or in one.
    Moving,
    /// Wants to run this statement.
    Before(&'static str),
    Finished,
}

#[derive(Default)]
struct State {
    actors: Vec<At>,
    granted: Option<usize>,
    /// The server process of each actor's transaction.
    pids: Vec<i32>,
    step: usize,
    committed: Vec<usize>,
    done: Vec<Done>,
}

#[derive(Default)]
pub struct Scheduler {
    state: Mutex<State>,
    changed: Condvar,
}

impl Scheduler {
    /// The hook of production's own path: waits until the schedule lets this statement through.
    pub fn arrive(&self, statement: &'static str) {
        let Some(actor) = ACTOR.get() else { return };
        if statement == "rollback" {
            // The transaction ends, and its closure enters again if it is run again.
            return ACTOR.set(None);
        }
        let mut state = self.state.lock().unwrap();
        state.actors[actor] = At::Before(statement);
        self.changed.notify_all();
        while state.granted != Some(actor) {
            state = self.changed.wait(state).unwrap();
        }
        state.granted = None;
        state.actors[actor] = At::Moving;
        if statement == "commit" {
            state.committed[actor] = state.step;
            // The answer comes from this thread, which then belongs to nobody.
            ACTOR.set(None);
        }
        self.changed.notify_all();
    }

    /// Marks the database thread as running this actor's transaction.
    pub fn enter(&self, actor: usize, pid: i32) {
        self.state.lock().unwrap().pids[actor] = pid;
        ACTOR.set(Some(actor));
    }

    /// The database thread belongs to nobody.
    pub fn leave(&self) {
        ACTOR.set(None);
    }

    fn finish(&self, done: Done) {
        let mut state = self.state.lock().unwrap();
        let step = state.committed[done.actor];
        state.done.push(Done { step, ..done });
        self.changed.notify_all();
    }

    /// Runs all actors to their ends; what they did, and the schedule.
    pub fn run(
        self: &Arc<Self>,
        world: &World,
        scene: &Scene,
        actors: &[Vec<Action>],
        watcher: &mut Client,
        choose: &mut dyn FnMut(&[Ready]) -> usize,
    ) -> (Vec<Done>, Vec<String>) {
        let count = actors.len();
        *self.state.lock().unwrap() = State {
            actors: vec![At::Moving; count],
            pids: vec![0; count],
            committed: vec![0; count],
            ..State::default()
        };
        let mut trace = Vec::new();
        std::thread::scope(|scope| {
            for (actor, list) in actors.iter().enumerate() {
                scope.spawn(move || {
                    let mut hands = actions::Hands::default();
                    for action in list {
                        let result = actions::act(self, world, scene, actor, action, &mut hands);
                        self.finish(Done { actor, action: action.clone(), result, step: 0 });
                    }
                    self.state.lock().unwrap().actors[actor] = At::Finished;
                    self.changed.notify_all();
                });
            }
            self.schedule(watcher, choose, &mut trace);
        });
        let state = std::mem::take(&mut *self.state.lock().unwrap());
        (state.done, trace)
    }

    fn schedule(
        &self,
        watcher: &mut Client,
        choose: &mut dyn FnMut(&[Ready]) -> usize,
        trace: &mut Vec<String>,
    ) {
        loop {
            let Some(ready) = self.settled(watcher) else { return };
            let (actor, statement) = ready[choose(&ready)];
            let mut state = self.state.lock().unwrap();
            state.step += 1;
            trace.push(format!("  {:3} actor {actor}: {statement}", state.step));
            state.granted = Some(actor);
            self.changed.notify_all();
            while state.granted.is_some() {
                state = self.changed.wait(state).unwrap();
            }
        }
    }

    /// Waits until every actor is before a statement, finished, or waiting for a lock; those before
    /// a statement, or None when all are finished.
    fn settled(&self, watcher: &mut Client) -> Option<Vec<Ready>> {
        let began = Instant::now();
        loop {
            let state = self.state.lock().unwrap();
            let (state, _) = self
                .changed
                .wait_timeout_while(state, Duration::from_millis(2), |s| {
                    s.actors.contains(&At::Moving)
                })
                .unwrap();
            let (actors, pids) = (state.actors.clone(), state.pids.clone());
            drop(state);
            let ready: Vec<Ready> = actors
                .iter()
                .enumerate()
                .filter_map(|(i, at)| match at {
                    At::Before(statement) => Some((i, *statement)),
                    _ => None,
                })
                .collect();
            let moving: Vec<i32> =
                (0..actors.len()).filter(|i| actors[*i] == At::Moving).map(|i| pids[i]).collect();
            match (moving.is_empty(), ready.is_empty()) {
                (true, true) => return None,
                (true, false) => return Some(ready),
                (false, false) if waiting_for_locks(watcher, &moving) => return Some(ready),
                // The server finds a deadlock by itself.
                _ => {}
            }
            assert!(began.elapsed() < Duration::from_secs(30), "stuck: {actors:?}");
        }
    }
}

/// True if every one of these server processes waits for a lock.
fn waiting_for_locks(watcher: &mut Client, pids: &[i32]) -> bool {
    let sql =
        "select count(*) from pg_stat_activity where pid = any ($1) and wait_event_type = 'Lock'";
    let waiting: i64 = watcher.query_one(sql, &[&pids]).unwrap().get(0);
    waiting == pids.len() as i64
}

/// Deadlocks are found after 20 ms in this database, so that they cost the schedule little.
pub fn quick_deadlocks(watcher: &mut Client) {
    let name: String = watcher.query_one("select current_database()", &[]).unwrap().get(0);
    let sql = format!("alter database {name} set deadlock_timeout = '20ms'");
    watcher.batch_execute(&sql).unwrap();
    // Connections made before this keep the old value.
    let others = "select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()";
    watcher.batch_execute(others).unwrap();
}
