//! Rules broken on purpose.

use crate::run::{numbers, run};
use db::Rewrite;

pub struct Mutant {
    pub name: &'static str,
    pub rewrites: Vec<Rewrite>,
}

pub struct Found {
    pub seed: u64,
    pub why: String,
}

/// Seeds that a mutant may survive before it counts as not noticed.
const SEEDS_MAX: u64 = 2000;

pub fn seeds_to_find(mutant: &Mutant, steps: usize) -> Option<Found> {
    (0..SEEDS_MAX).find_map(|seed| {
        let failed = run(&numbers(seed, steps), &mutant.rewrites, |_, _, _| {}).err()?;
        Some(Found { seed, why: failed.why })
    })
}

fn mutant(name: &'static str, changes: &[(&'static str, &'static str, &'static str)]) -> Mutant {
    let rewrite = |(statement, find, replace): &(&'static str, &'static str, &'static str)| {
        Rewrite { statement, find, replace }
    };
    Mutant { name, rewrites: changes.iter().map(rewrite).collect() }
}

/// Each names what it breaks, and changes the text of one statement or two.
pub fn all() -> Vec<Mutant> {
    let mut all = of_running();
    all.extend(of_waiting());
    all.extend(of_records());
    all
}

fn of_running() -> Vec<Mutant> {
    vec![
        mutant(
            "fencing of finish dropped",
            &[(
                "sql/release_finished",
                "token = ?4 and worker = ?1",
                "?4 > 0 and ?1 > 0 and worker is not null",
            )],
        ),
        mutant(
            "fencing of outcomes dropped",
            &[
                (
                    "sql/find_runs",
                    "s.token = ?4 and s.worker = ?1",
                    "?1 > 0 and s.worker is not null",
                ),
                ("sql/find_runs", "select s.token", "select ?4"),
            ],
        ),
        mutant("fencing of start dropped", &[("sql/start_runs", "token = ?5", "?5 > 0")]),
        mutant(
            "exclusion dropped",
            &[
                (
                    "sql/take_locks",
                    "set\n  stage = excluded.stage",
                    "set\n  id = excluded.id, stage = excluded.stage",
                ),
                (
                    "sql/take_locks",
                    "where started.id = excluded.id and started.worker is null",
                    "where true",
                ),
            ],
        ),
        mutant(
            "pause ignored by who is carried on",
            &[("sql/carry_context", "not exists (select 1 from pauses)", "1 = 1")],
        ),
        mutant(
            "carried on without a lease",
            &[("sql/carry_context", "w.ended_at is null and w.lease_until >= ?2", "?2 > 0")],
        ),
        mutant(
            "carried on past those who wait",
            &[("sql/first_ready", "stage = ?2 and state = 0", "stage = -?2 and state = 0")],
        ),
        mutant(
            "token kept by who is carried on",
            &[("sql/carry_runs", "token = ?5", "token = token + 0 * ?5")],
        ),
        mutant(
            "skip forgotten by who is carried on",
            &[("sql/carry_runs", "stage = ?4", "stage = stage + 1 + 0 * ?4")],
        ),
        mutant(
            "skip to one stage too far",
            &[(
                "sql/insert_moved",
                "select id, ?3,",
                "select id, ?3 + (?3 > 1 + (select p.to_stage from history p where p.job = ?2 order by p.id desc limit 1)),",
            )],
        ),
        mutant("started jobs taken over", &[("sql/idle_claims", "started_at is null", "1 = 1")]),
        mutant(
            "lost workers kept",
            &[("sql/expired_worker", "lease_until < ?1", "lease_until < ?1 - 60000000")],
        ),
        mutant("lock kept by failed jobs", &[("sql/release_lock", "id = ?2", "id = -?2")]),
        mutant(
            "request to stop forgotten",
            &[("sql/request_cancel", "cancel_by = ?3", "cancel_by = null")],
        ),
        mutant(
            "budget not released",
            &[("sql/free_reservations", "where job = ?1", "where job = -?1")],
        ),
        mutant(
            "breaker never closes",
            &[("sql/close_breaker", "opened_at = null", "opened_at = opened_at")],
        ),
        mutant(
            "probes at any time",
            &[("sql/probe_over", "next_probe = ?2 +", "next_probe = ?2 + 0 *")],
        ),
    ]
}

fn of_waiting() -> Vec<Mutant> {
    vec![
        mutant("promotion dropped", &[("sql/promote", "set state = 0", "set state = 1")]),
        mutant("line ignored", &[("sql/ahead_in_line", "state in (0, 1)", "state = 9")]),
        mutant(
            "hold ignored",
            &[
                ("sql/held_names", "from holds", "from holds where false"),
                ("sql/held_names_locked", "from holds", "from holds where false"),
            ],
        ),
        mutant(
            "hold ignored between stages",
            &[("sql/settle_context", "exists (select 1 from holds)", "1 = 0")],
        ),
        mutant(
            "hold ignored by claims",
            &[("sql/claim_context", "exists (select 1 from holds)", "1 = 0")],
        ),
        mutant(
            "begun jobs not held with their group",
            &[("sql/group_members", "state <> 3 end", "state <> 3 and begun = 0 end")],
        ),
        mutant(
            "claimed jobs of a held group start",
            &[("sql/buffered_runs", "s.started_at is null", "s.started_at is null and s.id < 0")],
        ),
        mutant(
            "hold of a running job forgotten",
            &[("sql/take_job_hold", "where kind = 'job'", "where kind = 'nothing'")],
        ),
        mutant(
            "pause of a stage ignored",
            &[("sql/claim_context", "kind = 'stage' and id = ?2", "kind = 'stage' and id = -?2")],
        ),
        mutant(
            "pause of everything ignored",
            &[("sql/claim_context", "kind = 'all'", "kind = 'nothing'")],
        ),
        mutant(
            "due time ignored",
            &[
                ("sql/claim_context", "due <= ?4", "due <= ?4 + 3000000"),
                ("sql/due_jobs", "due <= ?2", "due <= ?2 + 3000000"),
            ],
        ),
        mutant(
            "due jobs not woken",
            &[("sql/claim_context", "due <= ?4", "due <= ?4 and state = 9")],
        ),
        mutant(
            "priority order reversed",
            &[("sql/ready_jobs", "order by w.priority, w.due", "order by w.priority desc, w.due")],
        ),
        mutant("coalescing dropped", &[("sql/insert_waiting", "?7, ?8, 0", "?7, null, 0")]),
        mutant(
            "priority of the later add lost",
            &[(
                "sql/merge_waiting",
                "case when ?3 < priority then ?3 else priority end",
                "priority",
            )],
        ),
        mutant(
            "payload of the later add lost",
            &[("sql/renew_payload", "payload = ?2", "payload = coalesce(payload, ?2)")],
        ),
        mutant(
            "priority changed on the way",
            &[("sql/insert_moved", "select id, ?3, 0, priority", "select id, ?3, 0, priority + 1")],
        ),
    ]
}

fn of_records() -> Vec<Mutant> {
    vec![
        mutant(
            "count not updated",
            &[("sql/change_counts", "succeeded + ?4", "succeeded + 0 * ?4")],
        ),
        mutant(
            "earlier jobs of a batch forgotten",
            &[("sql/accept_batch", "total = total +", "total =")],
        ),
        mutant(
            "merged entries counted",
            &[("sql/entries_moved", "open = open - ?3", "open = open - 0 * ?3")],
        ),
        mutant(
            "dropped entries not counted",
            &[("sql/uncount_entries", "cancelled + ?2", "cancelled + 0 * ?2")],
        ),
        mutant(
            "attempt not counted",
            &[("sql/count_attempt", "attempts = tries.attempts + 1", "attempts = tries.attempts")],
        ),
        mutant(
            "interruption not counted",
            &[(
                "sql/count_interruption",
                "set\n  interruptions = tries.interruptions + 1",
                "set\n  interruptions = tries.interruptions",
            )],
        ),
        mutant(
            "requeue not counted",
            &[("sql/count_requeue", "tries.requeues + 1", "tries.requeues")],
        ),
        mutant(
            "attempts not begun anew",
            &[("sql/reset_tries", "attempts = 0,", "attempts = attempts,")],
        ),
        mutant("overtaken not marked", &[("sql/mark_overtaken", "overtaken = 1", "overtaken = 0")]),
        mutant(
            "discarding not marked",
            &[("sql/set_discarded", "discarded = 1 where", "discarded = 0 where")],
        ),
        mutant(
            "discarded job keeps its checkpoints",
            &[("sql/forget_all_checkpoints", "where job = ?1", "where job = -?1")],
        ),
        mutant(
            "failures not resolved",
            &[("sql/resolve_failures", "job < ?1", "job < ?1 and job < 0")],
        ),
        mutant("later failures resolved", &[("sql/resolve_failures", "job < ?1", "job <> ?1")]),
        mutant(
            "rows of one batch resolved by one another",
            &[("sql/resolve_failures", "and not exists (", "and ?1 > 0 or not exists (")],
        ),
        mutant(
            "failures of another collection resolved",
            &[(
                "sql/resolve_failures",
                "select collection from job_records where id = ?1",
                "select collection from job_records where id = failures.job",
            )],
        ),
        mutant(
            "superseded by a retry in another collection",
            &[("sql/failed_jobs", "k.collection is not distinct from j.collection", "j.id > 0")],
        ),
        mutant(
            "rows of one batch superseded by a retry",
            &[(
                "sql/failed_jobs",
                "or k.batch <> j.batch",
                "or k.batch = j.batch or k.batch <> j.batch",
            )],
        ),
        mutant(
            "superseded rows count as preserved",
            &[("sql/batch_replaced_count", "select count(*)", "select 0 * count(*)")],
        ),
        mutant(
            "what is superseded not noted",
            &[("sql/note_replaced", "values (?1, ?2, ?3)", "values (?1, ?2, null)")],
        ),
        mutant(
            "state not kept",
            &[("sql/keep_state", "values (?1, ?2, ?3, ?4)", "select ?1, ?2, ?3, ?4 where ?1 < 0")],
        ),
        mutant(
            "state of a stage that runs again kept",
            &[("sql/forget_state", "where job = ?1", "where job = -?1")],
        ),
        mutant(
            "checkpoint not forgotten",
            &[("sql/forget_checkpoints", "where job = ?1", "where job = -?1")],
        ),
        mutant(
            "moves not in history",
            &[(
                "sql/insert_history",
                "values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                "select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13 where ?5 <> 'moved'",
            )],
        ),
        mutant("success of another run", &[("sql/end_jobs", "?6, ?7)", "?6, ?7 - 1)")]),
        mutant(
            "batches outlive the jobs that prepare them",
            &[("sql/prepared_batches", "prepared_by = ?1", "prepared_by = -?1")],
        ),
        mutant(
            "success of a job leaves its batch pending",
            &[(
                "sql/settle_context",
                "state = 0 and prepared_by is not null",
                "state = 9 and prepared_by is not null",
            )],
        ),
        mutant(
            "requeue does not open the batch again",
            &[("sql/reopen_batch", "state in (2, 4, 5)", "state = 9")],
        ),
        mutant(
            "cancelled batches opened again",
            &[("sql/set_preparer", "prepared_by = ?2", "prepared_by = coalesce(?2, prepared_by)")],
        ),
        mutant(
            "back-offs from before the clock was set back",
            &[("sql/rebase_waiting", "state = 2 and begun", "state = 9 and begun")],
        ),
        mutant(
            "back-offs longer after the clock was set back",
            &[("sql/rebase_waiting", "due = due - (since - ?1)", "due = due")],
        ),
        mutant(
            "leases from before the clock was set back",
            &[("sql/rebase_workers", "ended_at is null", "ended_at = -1")],
        ),
        mutant(
            "probes from before the clock was set back",
            &[("sql/rebase_targets", "opened_at is not null", "opened_at = -1")],
        ),
        mutant("reports while jobs are open", &[("sql/reporting_batch", "and open = 0", "")]),
    ]
}
