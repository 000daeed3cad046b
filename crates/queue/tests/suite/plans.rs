//! PostgreSQL plans by what it last saw of a table, and a queue's tables were often empty when it
//! looked: plans made then must still be good when there are a million rows. So every statement on
//! the way of a job looks its rows up in an index, whatever PostgreSQL believes.

use crate::support::World;
use crate::support::server::connect;
use db::{Engine, Statement, statement_text};
use queue::Result;

/// Statements on the way of every job, and those that look after locks and lines.
const HOT: &[(&str, &str)] = &[
    ("add", "enter_adds"),
    ("add", "add_at_once"),
    ("batch", "moving_batch"),
    ("claim", "ready_jobs"),
    ("claim", "first_blocked"),
    ("claim", "due_jobs"),
    ("claim", "take_locks"),
    ("claim", "leave_waiting"),
    ("line", "ahead_in_line"),
    ("lease", "claimed_details"),
    ("running", "start_runs"),
    ("running", "find_runs"),
    ("running", "free_runs"),
    ("moving", "carry_runs"),
    ("moving", "insert_moved"),
    ("moving", "first_ready"),
    ("settle", "release_finished"),
    ("running", "release_lock"),
    ("line", "wanted_locks"),
    ("line", "promote"),
    ("line", "set_state"),
    ("ending", "resolve_failures"),
    ("claim", "mark_overtaken"),
    ("budget", "free_reservations"),
    ("line", "lock_owner"),
    ("line", "first_of_lock"),
    ("moving", "hand_over"),
];

/// What PostgreSQL believes: that all tables are empty, and were so for long, or once were large.
const BELIEFS: &[&str] = &[
    "vacuum analyze",
    "insert into leases (lock, id, stage, worker, token, claimed_at)
       select 'lock ' || n, n, 1, 1, n, 0 from generate_series(1, 20000) n;
     insert into waiting (id, stage, state, priority, due, lock, begun, since)
       select n, 1, 0, 50, 0, 'lock ' || n, 0, 0 from generate_series(1, 20000) n;
     insert into job_records (id, pipeline, subject, lock, priority, added_at, added_by)
       select n, 1, 'subject', 'lock', 50, 0, 'ann' from generate_series(1, 20000) n;
     delete from leases; delete from waiting; delete from job_records",
    "analyze",
];

fn parameters(sql: &str) -> usize {
    (1..20).rev().find(|n| sql.contains(&format!("${n}"))).unwrap_or(0)
}

/// Every look at a table that does not go by an index, in a plan as PostgreSQL writes it. There are
/// never many workers or queues, and whether there is a hold is answered by the first of them.
fn scans(plan: &[String]) -> Vec<&str> {
    let unlike = |line: &str| ["Index Scan", "Index Only Scan"].iter().all(|k| !line.contains(k));
    let after = plan.iter().skip(1).map(String::as_str).chain([""]);
    plan.iter()
        .map(String::as_str)
        .zip(after)
        .filter(|(line, next)| {
            let by_index = unlike(line) || next.trim_start().starts_with("Index Cond:");
            let few =
                [" on workers", " on pipelines", " on holds"].iter().any(|t| line.contains(t));
            (line.contains("Seq Scan") || !by_index) && !few
        })
        .map(|(line, _)| line.trim())
        .collect()
}

/// The plan of a statement that is used again and again, as this program's connections see it.
fn plan(world: &World, sql: &str) -> Vec<String> {
    fn statement(text: String) -> Statement {
        let text: &'static str = Box::leak(text.into_boxed_str());
        Statement { name: text, sqlite: text, postgres: text }
    }
    let nulls = match parameters(sql) {
        0 => String::new(),
        count => format!("({})", vec!["null"; count].join(", ")),
    };
    let generic = statement("set local plan_cache_mode = force_generic_plan".to_string());
    let prepare = statement(format!("prepare hot as {sql}"));
    let explain = statement(format!("explain execute hot {nulls}"));
    let forget = statement("deallocate hot".to_string());
    let explained: Result<Vec<(String,)>> = world.db.write_blocking(move |tx| {
        tx.execute(&generic, &[])?;
        tx.execute(&prepare, &[])?;
        let plan = tx.query(&explain, &[])?;
        tx.execute(&forget, &[])?;
        Ok(plan)
    });
    explained.unwrap().into_iter().map(|(line,)| line).collect()
}

#[test]
fn hot_statements_use_indexes_whatever_postgres_believes() {
    let Some(world) = World::postgres(1) else {
        testing::skip("on PostgreSQL: ACCESSION_TEST_POSTGRES is not set");
        return;
    };
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sql");
    for (number, belief) in BELIEFS.iter().enumerate() {
        connect(world.url()).batch_execute(belief).unwrap();
        for (file, name) in HOT {
            let file = std::fs::read_to_string(directory.join(format!("{file}.sql"))).unwrap();
            let sql = statement_text(file.leak(), name, Engine::Postgres);
            let plan = plan(&world, sql);
            let found = scans(&plan);
            assert!(found.is_empty(), "{name}, belief {number}: {found:?} in\n{}", plan.join("\n"));
        }
    }
}
