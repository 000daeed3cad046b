//! A writer that is killed after any number of operations: the object is as before or as after.

use crate::support;
use crate::support::{about, findings, seen};
use ocfl::{DraftOptions, Layout, Leftovers, Outcome, Result, Spec, StorageRoot, Sweep};
use std::sync::Arc;
use store::{FaultStore, MemoryStore, Store};

const ID: &str = "urn:example:crash";

/// The kinds of stores there are: those that can exchange and rename, and those that cannot.
fn stores(directory: &std::path::Path) -> Vec<Arc<dyn Store>> {
    let without_conditions = MemoryStore::like_s3();
    let capabilities = store::Capabilities {
        put_if_absent: false,
        put_if_match: false,
        ..without_conditions.capabilities()
    };
    let without_exchange =
        store::Capabilities { exchange: false, ..MemoryStore::new().capabilities() };
    vec![
        support::local(directory),
        Arc::new(MemoryStore::new()),
        Arc::new(MemoryStore::like_s3()),
        Arc::new(without_conditions.with_capabilities(capabilities)),
        Arc::new(MemoryStore::new().with_capabilities(without_exchange)),
    ]
}

async fn first_version(root: &StorageRoot, leftovers: Leftovers) -> Result<()> {
    let options = DraftOptions { leftovers, ..DraftOptions::default() };
    let draft = root.begin(ID, about("first"), &options).await?;
    draft.put("a.txt", "alpha".into()).await?;
    draft
        .put_batch(vec![("b/b.txt".into(), "beta".into()), ("b/a.txt".into(), "alpha".into())])
        .await?;
    root.seal(&draft.write().await?).await
}

async fn second_version(root: &StorageRoot, leftovers: Leftovers) -> Result<()> {
    let options = DraftOptions { leftovers, ..DraftOptions::default() };
    let draft = root.begin(ID, about("second"), &options).await?;
    draft.put("a.txt", "alpha, changed".into()).await?;
    draft.put("c.txt", "gamma".into()).await?;
    draft.put("never", "mind".into()).await?;
    draft.remove("never");
    draft.remove("b/b.txt");
    root.seal(&draft.write().await?).await
}

/// What a test does to an object.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    First,
    Second,
    Purge,
}

async fn prepare(store: &Arc<dyn Store>, work: Work) -> StorageRoot {
    let root =
        StorageRoot::init(store.clone(), Spec::V1_1, Layout::default()).await.expect("a root");
    if work != Work::First {
        first_version(&root, Leftovers::Refuse).await.expect("a first version");
    }
    root
}

async fn run(root: &StorageRoot, work: Work, leftovers: Leftovers) -> Result<()> {
    match work {
        Work::First => first_version(root, leftovers).await,
        Work::Second => second_version(root, leftovers).await,
        Work::Purge => root.purge(ID).await,
    }
}

/// How many changes the work makes when nothing stops it, and what is seen then.
async fn whole(store: Arc<dyn Store>, work: Work) -> (u64, Option<Vec<support::Files>>) {
    let root = prepare(&store, work).await;
    let counting = FaultStore::counting(store.clone());
    let count = counting.operations();
    let through = StorageRoot::open(Arc::new(counting)).await.expect("a root");
    run(&through, work, Leftovers::Refuse).await.expect("it works when nothing stops it");
    (count.get(), seen(&root, ID).await)
}

async fn kill_everywhere(kind: usize, work: Work) {
    let directory = support::scratch();
    let fresh = |n: u64| stores(&directory.path().join(n.to_string())).swap_remove(kind);
    let (count, after) = whole(fresh(0), work).await;
    assert!(count > 3);
    let mut invalid = 0;
    for n in 0..count {
        for (next, number) in [Next::Sweep, Next::Discard, Next::Adopt].into_iter().zip(1..) {
            let store = fresh(n * 3 + number);
            let was_invalid = kill_after(n, store, work, &after, next).await;
            invalid += u64::from(was_invalid && next == Next::Sweep);
        }
    }
    match (kind, work) {
        // Where directories can be exchanged, no validator ever minds anything.
        (0 | 1, _) => assert_eq!(invalid, 0, "{work:?}"),
        // Between the rename of the version and the root inventory, and between that and its
        // sidecar: two moments, within sealing. A new object has not even these.
        (4, Work::Second) => assert_eq!(invalid, 2),
        (4, _) => assert_eq!(invalid, 0, "{work:?}"),
        _ => {}
    }
}

/// The same on a real S3 server, each time with one of the things that may be done afterwards.
async fn kill_everywhere_on_s3(work: Work) {
    let directory = support::scratch();
    let server = support::s3::Server::start(directory.path()).await;
    // A bucket for each, because this server looks through a whole bucket to list a prefix of it.
    let fresh = async |name: String| {
        std::fs::create_dir(directory.path().join(&name)).expect("a bucket");
        server.store(&name, "root").await
    };
    let (count, after) = whole(fresh("whole".to_owned()).await, work).await;
    assert!(count > 3);
    for (n, next) in (0..count).zip([Next::Sweep, Next::Discard, Next::Adopt].iter().cycle()) {
        kill_after(n, fresh(format!("bucket{n}")).await, work, &after, *next).await;
    }
}

/// What is done after the crash.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    Sweep,
    /// The same work once more, without or with what the first attempt has left.
    Discard,
    Adopt,
}

/// Kills the work after `n` changes and looks at what is left; returns whether a validator minds.
async fn kill_after(
    n: u64,
    store: Arc<dyn Store>,
    work: Work,
    after: &Option<Vec<support::Files>>,
    next: Next,
) -> bool {
    let place = format!("{work:?}, killed after {n} changes, then {next:?}");
    let root = prepare(&store, work).await;
    let before = seen(&root, ID).await;
    let dying = Arc::new(FaultStore::stopping_after(store.clone(), n));
    let through = StorageRoot::open(dying).await.expect("a root");
    run(&through, work, Leftovers::Refuse).await.expect_err("it was killed");
    // Whoever reads now, sees the object before or after.
    let root = StorageRoot::open(store.clone()).await.expect("a root");
    let now = seen(&root, ID).await;
    assert!(now == before || now == *after, "{place}");
    let invalid = now.is_some() && !findings(&root, ID).await.is_valid();
    let leftovers = match next {
        Next::Sweep => {
            sweep_and_check(&root, work, &[&before, after]).await;
            return invalid;
        }
        Next::Discard => Leftovers::Discard,
        Next::Adopt => Leftovers::Adopt,
    };
    // Doing it again completes it, whatever is there.
    let result = run(&root, work, leftovers).await;
    let last = seen(&root, ID).await;
    let newest = |seen: &Option<Vec<support::Files>>| seen.as_ref().and_then(|v| v.last().cloned());
    match work {
        // The object may have been gone already.
        Work::Purge => assert!(last.is_none(), "{place}: {result:?}"),
        _ => assert!(result.is_ok() && newest(&last) == newest(after), "{place}: {result:?}"),
    }
    sweep_and_check(&root, work, &[&last]).await;
    invalid
}

/// After a sweep nothing is left behind, everything is valid, and the object is one of these.
async fn sweep_and_check(root: &StorageRoot, work: Work, allowed: &[&Option<Vec<support::Files>>]) {
    root.sweep(&Sweep::default()).await.expect("a sweep");
    let mut again = root.sweep(&Sweep::default()).await.expect("another");
    // The server of this test does not list uploads.
    again.retain(|leftover| leftover.outcome != Outcome::Unlisted);
    assert_eq!(again, []);
    let now = seen(root, ID).await;
    assert!(allowed.contains(&&now), "{work:?}: a sweep changed the object");
    let report = ocfl::validate_root(root.store().clone(), &ocfl::Validation::default()).await;
    let report = report.expect("a validation");
    let found: Vec<String> = report.findings.iter().map(|finding| finding.to_string()).collect();
    assert!(found.is_empty(), "{work:?}: {found:?}");
    assert_eq!(report.objects, u64::from(now.is_some()));
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_a_first_version_on_s3() {
    kill_everywhere_on_s3(Work::First).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_a_second_version_on_s3() {
    kill_everywhere_on_s3(Work::Second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_a_purge_on_s3() {
    kill_everywhere_on_s3(Work::Purge).await;
}

macro_rules! killed {
    ($($name:ident $kind:literal $work:ident,)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            kill_everywhere($kind, Work::$work).await;
        }
    )*};
}

killed! {
    killed_in_a_first_version_on_a_local_directory 0 First,
    killed_in_a_second_version_on_a_local_directory 0 Second,
    killed_in_a_purge_on_a_local_directory 0 Purge,
    killed_in_a_first_version_where_renames_are_possible 1 First,
    killed_in_a_second_version_where_renames_are_possible 1 Second,
    killed_in_a_purge_where_renames_are_possible 1 Purge,
    killed_in_a_first_version_where_nothing_can_be_exchanged 4 First,
    killed_in_a_second_version_where_nothing_can_be_exchanged 4 Second,
    killed_in_a_purge_where_nothing_can_be_exchanged 4 Purge,
    killed_in_a_first_version_on_an_object_store 2 First,
    killed_in_a_second_version_on_an_object_store 2 Second,
    killed_in_a_purge_on_an_object_store 2 Purge,
    killed_in_a_first_version_without_conditional_puts 3 First,
    killed_in_a_second_version_without_conditional_puts 3 Second,
    killed_in_a_purge_without_conditional_puts 3 Purge,
}
