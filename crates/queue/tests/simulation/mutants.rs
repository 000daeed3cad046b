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
                "queue::settle::release_finished",
                "token = ?4 and worker = ?1",
                "?4 > 0 and ?1 > 0 and worker is not null",
            )],
        ),
        mutant(
            "fencing of outcomes dropped",
            &[
                (
                    "queue::running::find_runs",
                    "s.token = ?4 and s.worker = ?1",
                    "?1 > 0 and s.worker is not null",
                ),
                ("queue::running::find_runs", "select s.token", "select ?4"),
            ],
        ),
        mutant(
            "fencing of start dropped",
            &[("queue::running::start_runs", "token = ?5", "?5 > 0")],
        ),
        mutant(
            "exclusion dropped",
            &[
                (
                    "queue::claim::take_locks",
                    "set\n  stage = excluded.stage",
                    "set\n  id = excluded.id, stage = excluded.stage",
                ),
                (
                    "queue::claim::take_locks",
                    "where leases.id = excluded.id and leases.worker is null",
                    "where true",
                ),
            ],
        ),
        mutant(
            "pause ignored by who is carried on",
            &[("queue::moving::carry_context", "not exists (select 1 from pauses)", "1 = 1")],
        ),
        mutant(
            "carried on without a lease",
            &[(
                "queue::moving::carry_context",
                "w.ended_at is null and w.lease_until >= ?2",
                "?2 > 0",
            )],
        ),
        mutant(
            "carried on past those who wait",
            &[(
                "queue::moving::first_ready",
                "stage = ?2 and state = 0",
                "stage = -?2 and state = 0",
            )],
        ),
        mutant(
            "token kept by who is carried on",
            &[("queue::moving::carry_runs", "token = ?5", "token = token + 0 * ?5")],
        ),
        mutant(
            "skip forgotten by who is carried on",
            &[("queue::moving::carry_runs", "stage = ?4", "stage = stage + 1 + 0 * ?4")],
        ),
        mutant(
            "skip to one stage too far",
            &[(
                "queue::moving::insert_moved",
                "select id, ?3,",
                "select id, ?3 + (?3 > 1 + (select p.to_stage from history p where p.job = ?2 order by p.id desc limit 1)),",
            )],
        ),
        mutant(
            "started jobs taken over",
            &[("queue::lease::idle_claims", "started_at is null", "1 = 1")],
        ),
        mutant(
            "lost workers kept",
            &[("queue::lease::expired_worker", "lease_until < ?1", "lease_until < ?1 - 60000000")],
        ),
        mutant(
            "lock kept by failed jobs",
            &[("queue::running::release_lock", "id = ?2", "id = -?2")],
        ),
        mutant(
            "request to stop forgotten",
            &[("queue::operator::request_cancel", "cancel_by = ?3", "cancel_by = null")],
        ),
        mutant(
            "budget not released",
            &[("queue::budget::free_reservations", "where job = ?1", "where job = -?1")],
        ),
        mutant(
            "breaker never closes",
            &[("queue::breaker::close_breaker", "opened_at = null", "opened_at = opened_at")],
        ),
        mutant(
            "probes at any time",
            &[("queue::breaker::probe_over", "next_probe = ?2 +", "next_probe = ?2 + 0 *")],
        ),
    ]
}

fn of_waiting() -> Vec<Mutant> {
    vec![
        mutant("promotion dropped", &[("queue::line::promote", "set state = 0", "set state = 1")]),
        mutant("line ignored", &[("queue::line::ahead_in_line", "state in (0, 1)", "state = 9")]),
        mutant(
            "hold ignored",
            &[
                ("queue::hold::held_names", "from holds", "from holds where false"),
                ("queue::hold::held_names_locked", "from holds", "from holds where false"),
            ],
        ),
        mutant(
            "hold ignored between stages",
            &[("queue::settle::settle_context", "exists (select 1 from holds)", "1 = 0")],
        ),
        mutant(
            "hold ignored by claims",
            &[("queue::claim::claim_context", "exists (select 1 from holds)", "1 = 0")],
        ),
        mutant(
            "begun jobs not held with their group",
            &[("queue::hold::group_members", "state <> 3 end", "state <> 3 and begun = 0 end")],
        ),
        mutant(
            "claimed jobs of a held group start",
            &[(
                "queue::hold::buffered_runs",
                "s.started_at is null",
                "s.started_at is null and s.id < 0",
            )],
        ),
        mutant(
            "hold of a running job forgotten",
            &[("queue::hold::take_job_hold", "where kind = 'job'", "where kind = 'nothing'")],
        ),
        mutant(
            "pause of a stage ignored",
            &[(
                "queue::claim::claim_context",
                "kind = 'stage' and id = ?2",
                "kind = 'stage' and id = -?2",
            )],
        ),
        mutant(
            "pause of everything ignored",
            &[("queue::claim::claim_context", "kind = 'all'", "kind = 'nothing'")],
        ),
        mutant(
            "due time ignored",
            &[
                ("queue::claim::claim_context", "due <= ?4", "due <= ?4 + 3000000"),
                ("queue::claim::due_jobs", "due <= ?2", "due <= ?2 + 3000000"),
            ],
        ),
        mutant(
            "due jobs not woken",
            &[("queue::claim::claim_context", "due <= ?4", "due <= ?4 and state = 9")],
        ),
        mutant(
            "priority order reversed",
            &[(
                "queue::claim::ready_jobs",
                "order by w.priority, w.due",
                "order by w.priority desc, w.due",
            )],
        ),
        mutant("coalescing dropped", &[("queue::add::insert_waiting", "?7, ?8, 0", "?7, null, 0")]),
        mutant(
            "priority of the later add lost",
            &[(
                "queue::add::merge_waiting",
                "case when ?3 < priority then ?3 else priority end",
                "priority",
            )],
        ),
        mutant(
            "payload of the later add lost",
            &[("queue::add::renew_payload", "payload = ?2", "payload = coalesce(payload, ?2)")],
        ),
        mutant(
            "priority changed on the way",
            &[(
                "queue::moving::insert_moved",
                "select id, ?3, 0, priority",
                "select id, ?3, 0, priority + 1",
            )],
        ),
    ]
}

fn of_records() -> Vec<Mutant> {
    vec![
        mutant(
            "count not updated",
            &[("queue::batch::change_counts", "succeeded + ?4", "succeeded + 0 * ?4")],
        ),
        mutant(
            "earlier jobs of a batch forgotten",
            &[("queue::batch::accept_batch", "total = total +", "total =")],
        ),
        mutant(
            "merged entries counted",
            &[("queue::batch::entries_moved", "open = open - ?3", "open = open - 0 * ?3")],
        ),
        mutant(
            "dropped entries not counted",
            &[("queue::batch::uncount_entries", "cancelled + ?2", "cancelled + 0 * ?2")],
        ),
        mutant(
            "attempt not counted",
            &[(
                "queue::settle::count_attempt",
                "attempts = tries.attempts + 1",
                "attempts = tries.attempts",
            )],
        ),
        mutant(
            "interruption not counted",
            &[(
                "queue::running::count_interruption",
                "set\n  interruptions = tries.interruptions + 1",
                "set\n  interruptions = tries.interruptions",
            )],
        ),
        mutant(
            "requeue not counted",
            &[("queue::operator::count_requeue", "tries.requeues + 1", "tries.requeues")],
        ),
        mutant(
            "attempts not begun anew",
            &[("queue::operator::reset_tries", "attempts = 0,", "attempts = attempts,")],
        ),
        mutant(
            "overtaken not marked",
            &[("queue::claim::mark_overtaken", "overtaken = 1", "overtaken = 0")],
        ),
        mutant(
            "discarding not marked",
            &[("queue::operator::set_discarded", "discarded = 1 where", "discarded = 0 where")],
        ),
        mutant(
            "discarded job keeps its checkpoints",
            &[("queue::operator::forget_all_checkpoints", "where job = ?1", "where job = -?1")],
        ),
        mutant(
            "failures not resolved",
            &[("queue::ending::resolve_failures", "job < ?1", "job < ?1 and job < 0")],
        ),
        mutant(
            "later failures resolved",
            &[("queue::ending::resolve_failures", "job < ?1", "job <> ?1")],
        ),
        mutant(
            "rows of one batch resolved by one another",
            &[(
                "queue::ending::resolve_failures",
                "and not exists (",
                "and ?1 > 0 or not exists (",
            )],
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
                "queue::operator::failed_jobs",
                "or k.batch <> j.batch",
                "or k.batch = j.batch or k.batch <> j.batch",
            )],
        ),
        mutant(
            "superseded rows count as preserved",
            &[("queue::replacing::batch_replaced_count", "select count(*)", "select 0 * count(*)")],
        ),
        mutant(
            "what is superseded not noted",
            &[("queue::replacing::note_replaced", "values (?1, ?2, ?3)", "values (?1, ?2, null)")],
        ),
        mutant(
            "state not kept",
            &[(
                "queue::state::keep_state",
                "values (?1, ?2, ?3, ?4)",
                "select ?1, ?2, ?3, ?4 where ?1 < 0",
            )],
        ),
        mutant(
            "state of a stage that runs again kept",
            &[("queue::state::forget_state", "where job = ?1", "where job = -?1")],
        ),
        mutant(
            "checkpoint not forgotten",
            &[("queue::operator::forget_checkpoints", "where job = ?1", "where job = -?1")],
        ),
        mutant(
            "moves not in history",
            &[(
                "queue::history::insert_history",
                "values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                "select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13 where ?5 <> 'moved'",
            )],
        ),
        mutant("success of another run", &[("queue::ending::end_jobs", "?6, ?7)", "?6, ?7 - 1)")]),
        mutant(
            "batches outlive the jobs that prepare them",
            &[("queue::preparing::prepared_batches", "prepared_by = ?1", "prepared_by = -?1")],
        ),
        mutant(
            "success of a job leaves its batch pending",
            &[(
                "queue::settle::settle_context",
                "state = 0 and prepared_by is not null",
                "state = 9 and prepared_by is not null",
            )],
        ),
        mutant(
            "requeue does not open the batch again",
            &[("queue::preparing::reopen_batch", "state in (2, 4, 5)", "state = 9")],
        ),
        mutant(
            "cancelled batches opened again",
            &[(
                "queue::preparing::set_preparer",
                "prepared_by = ?2",
                "prepared_by = coalesce(?2, prepared_by)",
            )],
        ),
        mutant(
            "back-offs from before the clock was set back",
            &[("queue::clock::rebase_waiting", "state = 2 and begun", "state = 9 and begun")],
        ),
        mutant(
            "back-offs longer after the clock was set back",
            &[("queue::clock::rebase_waiting", "due = due - (since - ?1)", "due = due")],
        ),
        mutant(
            "leases from before the clock was set back",
            &[("queue::clock::rebase_workers", "ended_at is null", "ended_at = -1")],
        ),
        mutant(
            "probes from before the clock was set back",
            &[("queue::clock::rebase_targets", "opened_at is not null", "opened_at = -1")],
        ),
        mutant(
            "reports while jobs are open",
            &[("queue::report::reporting_batch", "and open = 0", "")],
        ),
    ]
}
