//! The conformance suite: what every store promises, whatever it is made of.

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::sync::Arc;
use store::{
    Body, Condition, Entry, ErrorKind, Kind, ListOptions, PutOptions, Sha256Digest, SmallFile,
    Store, list_all,
};

const MIB: usize = 1024 * 1024;

/// Runs the whole suite on a store that has nothing in it.
pub async fn run(store: Arc<dyn Store>) {
    what_was_put_is_got_back(&store).await;
    ranges_are_cut_at_the_end(&store).await;
    bodies_that_fail_or_lie_leave_nothing(&store).await;
    a_wrong_digest_leaves_nothing(&store).await;
    conditions_hold(&store).await;
    of_many_who_put_if_absent_one_wins(&store).await;
    listings_are_sorted_and_paged(&store).await;
    keys_of_all_kinds_are_kept_apart(&store).await;
    copies_and_deletes(&store).await;
    batches(&store).await;
    renames(&store).await;
    exchanges(&store).await;
    what_is_forgotten_is_gone(&store).await;
    bad_keys_are_refused(&store).await;
    assert_eq!(store.unfinished("").await.unwrap(), [], "nothing is left unfinished");
    store.delete_all("").await.unwrap();
    assert_eq!(keys(&store, "", true).await, Vec::<String>::new());
}

/// Bytes that do not repeat, so that a part in the wrong place is noticed.
pub fn noise(length: usize, seed: u64) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

/// A body in chunks of an odd size.
pub fn chunked(bytes: &Bytes, length: Option<u64>) -> Body {
    let bytes = bytes.clone();
    let chunks: Vec<_> = (0..bytes.len())
        .step_by(70_001)
        .map(|at| Ok::<_, std::io::Error>(bytes.slice(at..bytes.len().min(at + 70_001))))
        .collect();
    Body::from_stream(stream::iter(chunks), length)
}

pub async fn put(store: &Arc<dyn Store>, key: &str, content: impl Into<Bytes>) {
    store.put(key, Body::from_bytes(content), &PutOptions::default()).await.unwrap();
}

pub async fn get(store: &Arc<dyn Store>, key: &str) -> Bytes {
    store.get(key, None).await.unwrap().bytes(usize::MAX).await.unwrap()
}

pub async fn entries(store: &Arc<dyn Store>, prefix: &str, recursive: bool) -> Vec<Entry> {
    list_all(store.clone(), prefix, recursive).try_collect().await.unwrap()
}

pub async fn keys(store: &Arc<dyn Store>, prefix: &str, recursive: bool) -> Vec<String> {
    entries(store, prefix, recursive).await.into_iter().map(|entry| entry.key).collect()
}

async fn kind_of_get(store: &Arc<dyn Store>, key: &str) -> ErrorKind {
    store.get(key, None).await.unwrap_err().kind()
}

async fn what_was_put_is_got_back(store: &Arc<dyn Store>) {
    for (length, known) in [
        (0, true),
        (0, false),
        (1, true),
        (1, false),
        (100_000, false),
        (3 * MIB + 5, true),
        (3 * MIB + 5, false),
        (17 * MIB + 1, true),
        (17 * MIB + 1, false),
    ] {
        let content = noise(length, length as u64 + 1);
        let announced = known.then_some(length as u64);
        let digest = Sha256Digest::of(&content);
        let options = PutOptions { sha256: Some(digest), ..PutOptions::default() };
        let put = store.put("round/trip", chunked(&content, announced), &options).await.unwrap();
        let head = store.head("round/trip").await.unwrap();
        assert_eq!((put.size, head.size), (length as u64, length as u64));
        assert_eq!(put.etag, head.etag);
        assert!(head.etag.is_some());
        if store.capabilities().digests {
            assert!(head.digest.is_some());
            assert!(head.digest.unwrap().whole().is_none_or(|whole| whole == digest));
        }
        let object = store.get("round/trip", None).await.unwrap();
        assert_eq!(object.range, 0..length as u64);
        let got = object.bytes(usize::MAX).await.unwrap();
        assert!(got == content, "{length} bytes, {known}");
    }
    assert_eq!(kind_of_get(store, "round").await, ErrorKind::NotFound);
    assert_eq!(kind_of_get(store, "round/trip/no").await, ErrorKind::NotFound);
    assert_eq!(store.head("nothing").await.unwrap_err().kind(), ErrorKind::NotFound);
}

async fn ranges_are_cut_at_the_end(store: &Arc<dyn Store>) {
    let content = noise(2 * MIB, 7);
    put(store, "ranged", content.clone()).await;
    let size = content.len() as u64;
    for (start, end, expected) in [
        (0, 1, 0..1),
        (5, 1_500_000, 5..1_500_000),
        (size - 3, size, size - 3..size),
        (size - 3, u64::MAX, size - 3..size),
        (size, size + 10, size..size),
        (9, 9, 9..9),
    ] {
        let object = store.get("ranged", Some(start..end)).await.unwrap();
        assert_eq!(object.range, expected);
        assert_eq!(object.meta.size, size);
        let got = object.bytes(usize::MAX).await.unwrap();
        assert!(got == content[expected.start as usize..expected.end as usize]);
    }
    let error = store.get("ranged", Some(size + 1..size + 2)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRange);
    let too_much = store.get("ranged", None).await.unwrap().bytes(10).await;
    too_much.unwrap_err();
}

async fn bodies_that_fail_or_lie_leave_nothing(store: &Arc<dyn Store>) {
    let content = noise(9 * MIB, 3);
    let options = PutOptions::default();
    for announced in [content.len() as u64 - 1, content.len() as u64 + 1, 0] {
        let error = store.put("liar", chunked(&content, Some(announced)), &options).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Body, "{announced}");
    }
    let failing = stream::iter([Ok(content.clone()), Ok(content), Err("the source is gone")]);
    let failing = failing.map(|item| item.map_err(std::io::Error::other));
    let error = store.put("liar", Body::from_stream(failing, None), &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Body);
    assert!(error.to_string().contains("the source is gone"), "{error}");
    assert_eq!(kind_of_get(store, "liar").await, ErrorKind::NotFound);
}

async fn a_wrong_digest_leaves_nothing(store: &Arc<dyn Store>) {
    put(store, "digest", "old").await;
    let wrong = Some(Sha256Digest::of(b"something else"));
    let options = PutOptions { sha256: wrong, ..PutOptions::default() };
    for length in [10, 9 * MIB] {
        let error = store.put("digest", chunked(&noise(length, 1), None), &options).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(get(store, "digest").await, "old");
    }
}

async fn conditions_hold(store: &Arc<dyn Store>) {
    let if_absent = PutOptions::if_absent();
    if store.capabilities().put_if_absent {
        let first = store.put("once", "first".into(), &if_absent).await.unwrap();
        for body in [Body::from("second"), chunked(&noise(9 * MIB, 2), None)] {
            let error = store.put("once", body, &if_absent).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PreconditionFailed);
        }
        assert_eq!(get(store, "once").await, "first");
        assert_eq!(store.head("once").await.unwrap().etag, first.etag);
    }
    let on = |etag: Option<String>| PutOptions {
        condition: Condition::IfMatch(etag.unwrap()),
        ..PutOptions::default()
    };
    put(store, "match", "1").await;
    let first = store.head("match").await.unwrap().etag;
    if !store.capabilities().put_if_match {
        let error = store.put("match", "2".into(), &on(first)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        return;
    }
    let second = store.put("match", "22".into(), &on(first.clone())).await.unwrap().etag;
    let error = store.put("match", "333".into(), &on(first)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PreconditionFailed);
    assert_eq!(get(store, "match").await, "22");
    store.put("match", "333".into(), &on(second)).await.unwrap();
}

async fn of_many_who_put_if_absent_one_wins(store: &Arc<dyn Store>) {
    if !store.capabilities().put_if_absent {
        return;
    }
    let puts = (0..8).map(|number| {
        let store = store.clone();
        tokio::spawn(async move {
            let body = Body::from_bytes(number.to_string());
            store.put("race/won", body, &PutOptions::if_absent()).await.map(|_| number)
        })
    });
    let results = futures_util::future::join_all(puts).await;
    let won: Vec<i32> = results.into_iter().filter_map(|result| result.unwrap().ok()).collect();
    assert_eq!(won.len(), 1);
    assert_eq!(get(store, "race/won").await, won[0].to_string());
}

async fn listings_are_sorted_and_paged(store: &Arc<dyn Store>) {
    // A directory sorts as its name with a slash: after "b.c" and "b!", before "b0".
    let names = ["a", "b!", "b.c", "b/1", "b/2/3", "b/2/4", "b0", "c/d/e/f", "z"];
    for name in names {
        put(store, &format!("list/{name}"), name.as_bytes()).await;
    }
    put(store, "listing", "a neighbour").await;
    let expected: Vec<String> = names.iter().map(|name| format!("list/{name}")).collect();
    assert_eq!(keys(store, "list", true).await, expected);
    let level = ["a", "b!", "b.c", "b", "b0", "c", "z"].map(|name| format!("list/{name}"));
    assert_eq!(keys(store, "list", false).await, level);
    let found = entries(store, "list", false).await;
    let is_directory = |name: &str| matches!(name, "list/b" | "list/c");
    assert!(found.iter().all(|e| (e.kind == Kind::Directory) == is_directory(&e.key)));
    for recursive in [true, false] {
        for limit in 1..=4 {
            let mut seen = Vec::new();
            let mut after = None;
            loop {
                let options = ListOptions { recursive, after, limit };
                let page = store.list("list", &options).await.unwrap();
                assert!(page.entries.len() <= limit);
                seen.extend(page.entries.into_iter().map(|entry| entry.key));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            let whole = if recursive { &expected[..] } else { &level[..] };
            assert_eq!(seen, whole, "{recursive} {limit}");
        }
    }
    for nothing in ["list/a", "list/b.c", "nothing", "lis"] {
        assert_eq!(keys(store, nothing, true).await, Vec::<String>::new());
    }
    let sizes: Vec<u64> = entries(store, "list/b", true).await.iter().map(|e| e.size).collect();
    assert_eq!(sizes, [3, 5, 5]);
}

async fn keys_of_all_kinds_are_kept_apart(store: &Arc<dyn Store>) {
    let names = [
        "with space",
        "plus+plus",
        "percent%20",
        "ünïcödé",
        "名前",
        "quote\"'",
        "a&b<c>",
        "q?a=b#c",
        "back\\slash",
        "...",
        "0=ocfl_1.1",
        "~tilde*",
        "e\u{301}",
        "\u{e9}",
        "@:;,$!()[]{}|^`",
    ];
    for name in names {
        put(store, &format!("odd/{name}"), name.as_bytes()).await;
    }
    for name in names {
        assert_eq!(get(store, &format!("odd/{name}")).await, name.as_bytes());
    }
    let mut sorted = names.map(|name| format!("odd/{name}"));
    sorted.sort();
    assert_eq!(keys(store, "odd", true).await, sorted);
    store.copy("odd/a&b<c>", "odd/copy of+名%41").await.unwrap();
    assert_eq!(get(store, "odd/copy of+名%41").await, "a&b<c>");
    assert_eq!(store.delete_all("odd").await.unwrap(), names.len() as u64 + 1);
}

async fn copies_and_deletes(store: &Arc<dyn Store>) {
    let content = noise(MIB, 9);
    put(store, "copy/from", content.clone()).await;
    put(store, "copy/to/here", "old").await;
    let meta = store.copy("copy/from", "copy/to/here").await.unwrap();
    assert_eq!(meta.size, content.len() as u64);
    assert!(get(store, "copy/to/here").await == content);
    assert!(get(store, "copy/from").await == content);
    let error = store.copy("copy/nothing", "copy/x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);

    store.delete("copy/to/here").await.unwrap();
    store.delete("copy/to/here").await.unwrap();
    store.delete("copy/never/was").await.unwrap();
    assert_eq!(keys(store, "copy", false).await, ["copy/from"]);
    for name in ["tree/a", "tree/b/c", "tree/b/d/e", "trees"] {
        put(store, name, "x").await;
    }
    assert_eq!(store.delete_all("tree").await.unwrap(), 3);
    assert_eq!(store.delete_all("tree").await.unwrap(), 0);
    assert_eq!(get(store, "trees").await, "x");
    assert_eq!(keys(store, "tree", false).await, Vec::<String>::new());
}

async fn batches(store: &Arc<dyn Store>) {
    store.put_batch(Vec::new()).await.unwrap();
    for count in [1, 3, 1500] {
        let file = |number: usize| {
            let key = format!("batch/{}/{number:05}", number % 10);
            SmallFile::new(key, noise(number, number as u64))
        };
        store.put_batch((0..count).map(file).collect()).await.unwrap();
        assert_eq!(keys(store, "batch", true).await.len(), count);
        for number in [0, count / 2, count - 1] {
            assert_eq!(get(store, &file(number).key).await, file(number).content);
        }
    }
    let bad = SmallFile::new("batch/../../x", Bytes::new());
    store.put_batch(vec![bad]).await.unwrap_err();
    assert_eq!(store.delete_all("batch").await.unwrap(), 1500);
}

async fn renames(store: &Arc<dyn Store>) {
    for name in ["ren/one/a", "ren/one/b/c", "ren/taken"] {
        put(store, name, name.as_bytes()).await;
    }
    if !store.capabilities().rename {
        let error = store.rename("ren/one", "ren/two").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        return;
    }
    store.rename("ren/one", "ren/new/two").await.unwrap();
    let expected = ["ren/new/two/a", "ren/new/two/b/c", "ren/taken"];
    assert_eq!(keys(store, "ren", true).await, expected);
    store.rename("ren/new/two/a", "ren/a").await.unwrap();
    assert_eq!(get(store, "ren/a").await, "ren/one/a");
    for taken in ["ren/taken", "ren/new/two"] {
        let error = store.rename("ren/a", taken).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PreconditionFailed, "{taken}");
    }
    let error = store.rename("ren/nothing", "ren/x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    store.rename("ren/new/two/b", "ren/b").await.unwrap();
    assert_eq!(keys(store, "ren", false).await, ["ren/a", "ren/b", "ren/taken"]);
}

async fn exchanges(store: &Arc<dyn Store>) {
    for name in ["ex/one/a", "ex/one/b/c", "ex/two/a", "ex/two/new/d"] {
        put(store, name, name.as_bytes()).await;
    }
    if !store.capabilities().exchange {
        let linked = store.link_all("ex/one", "ex/two").await.unwrap_err();
        let exchanged = store.exchange("ex/one", "ex/two").await.unwrap_err();
        let kinds = [linked.kind(), exchanged.kind()];
        assert_eq!(kinds, [ErrorKind::Unsupported, ErrorKind::Unsupported]);
        return;
    }
    // What is there stays, and doing it again changes nothing.
    assert_eq!(store.link_all("ex/one", "ex/two").await.unwrap(), 1);
    assert_eq!(store.link_all("ex/one", "ex/two").await.unwrap(), 0);
    assert_eq!(store.link_all("ex/one/a", "ex/two/second/a").await.unwrap(), 1);
    assert_eq!(store.link_all("ex/nothing", "ex/two").await.unwrap(), 0);
    store.exchange("ex/one", "ex/two").await.unwrap();
    assert_eq!(keys(store, "ex/one", true).await.len(), 4);
    assert_eq!(keys(store, "ex/two", true).await, ["ex/two/a", "ex/two/b/c"]);
    assert_eq!(get(store, "ex/one/a").await, "ex/two/a");
    assert_eq!(get(store, "ex/two/a").await, "ex/one/a");
    assert_eq!(get(store, "ex/one/second/a").await, "ex/one/a");
    // A put replaces one of two keys, not the content that both had.
    put(store, "ex/two/b/c", "changed").await;
    assert_eq!(get(store, "ex/one/b/c").await, "ex/one/b/c");
    store.delete_all("ex/two").await.unwrap();
    assert_eq!(get(store, "ex/one/b/c").await, "ex/one/b/c");
    let error = store.exchange("ex/one", "ex/nothing").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

async fn what_is_forgotten_is_gone(store: &Arc<dyn Store>) {
    for name in ["gone/a", "gone/b/c", "gone.not"] {
        put(store, name, name.as_bytes()).await;
    }
    store.forget("gone").await.unwrap();
    store.forget("gone").await.unwrap();
    assert_eq!(keys(store, "gone", true).await, Vec::<String>::new());
    assert_eq!(get(store, "gone.not").await, "gone.not");
    store.forget("gone.not").await.unwrap();
    assert_eq!(kind_of_get(store, "gone.not").await, ErrorKind::NotFound);
}

async fn bad_keys_are_refused(store: &Arc<dyn Store>) {
    for bad in ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "a\0b"] {
        let kind = |error: store::Error| error.kind();
        let options = PutOptions::default();
        let put = store.put(bad, "x".into(), &options).await.map_err(kind);
        assert_eq!(put.unwrap_err(), ErrorKind::InvalidKey, "{bad:?}");
        let refused = [
            store.get(bad, None).await.map(drop).map_err(kind),
            store.head(bad).await.map(drop).map_err(kind),
            store.delete(bad).await.map_err(kind),
            store.copy("ranged", bad).await.map(drop).map_err(kind),
        ];
        assert!(refused.iter().all(|r| *r == Err(ErrorKind::InvalidKey)), "{bad:?}");
    }
}

/// Reads, lists and deletes what another program put into `objects`, where the store keeps them.
pub async fn others_keys_are_read(store: &Arc<dyn Store>, objects: &std::path::Path) {
    let odd = ["a\nb", "red\u{1b}[31m +%41", "tab\t/\u{1}\u{7f}", "plain + 100%"];
    for key in odd {
        let path = objects.join("odd").join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, key).unwrap();
    }
    let mut expected: Vec<String> = odd.iter().map(|key| format!("odd/{key}")).collect();
    expected.sort_unstable();
    let found = entries(store, "odd", true).await;
    assert!(found.iter().all(|entry| entry.kind == Kind::File), "{found:?}");
    assert_eq!(found.into_iter().map(|entry| entry.key).collect::<Vec<_>>(), expected);
    assert_eq!(keys(store, "odd/tab\t", true).await, ["odd/tab\t/\u{1}\u{7f}"]);
    for key in &expected {
        assert_eq!(get(store, key).await, key["odd/".len()..]);
        assert_eq!(store.head(key).await.unwrap().size, key.len() as u64 - 4);
    }
    let put = store.put("odd/new\n", "x".into(), &PutOptions::default()).await;
    assert_eq!(put.unwrap_err().kind(), ErrorKind::InvalidKey, "no new ones are made");
    store.delete(&expected[0]).await.unwrap();
    assert_eq!(store.delete_all("odd").await.unwrap(), 3);
    assert_eq!(keys(store, "odd", true).await, Vec::<String>::new());
}
