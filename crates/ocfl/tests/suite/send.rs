//! Everything can be done in tasks of its own: the futures are `Send`.

use ocfl::{About, DraftOptions, Layout, Spec, StorageRoot, Sweep, Unsealed, Validation};
use std::sync::Arc;
use store::{MemoryStore, Store};

fn is_send(_: impl Future<Output = ocfl::Result<()>> + Send + 'static) {}

fn roots(store: Arc<dyn Store>) {
    is_send(async move {
        let root = StorageRoot::init(store, Spec::V1_1, Layout::default()).await?;
        StorageRoot::open(root.store().clone()).await?;
        Ok(())
    });
}

fn reading(root: StorageRoot, id: String) {
    is_send(async move {
        let object = root.object(&id).await?;
        let file = object.file(None, "a")?;
        drop(object.content(&file).await?);
        Ok(())
    });
}

fn exporting(root: StorageRoot, id: String) {
    is_send(async move {
        let object = root.object(&id).await?;
        object.export(None, &MemoryStore::new(), "", &|_, _| ()).await?;
        Ok(())
    });
}

fn writing(root: StorageRoot, id: String) {
    is_send(async move {
        let draft = root.begin(&id, About::default(), &DraftOptions::default()).await?;
        draft.put("a", "a".into()).await?;
        draft.put_batch(vec![("b".to_owned(), "b".into())]).await?;
        draft.adopt("c", "d", 1).await?;
        draft.write().await?;
        Ok(())
    });
}

fn sealing(root: StorageRoot, unsealed: Unsealed) {
    is_send(async move { root.seal(&unsealed).await });
}

fn removing(root: StorageRoot, id: String) {
    is_send(async move {
        root.discard(&id).await?;
        root.purge(&id).await?;
        root.sweep(&Sweep::default()).await?;
        root.add_log(&id, "a", "b".into()).await?;
        Ok(())
    });
}

fn validating(store: Arc<dyn Store>, path: String) {
    is_send(async move {
        ocfl::validate_object(store.clone(), &path, &Validation::default()).await?;
        ocfl::validate_root(store, &Validation::default()).await?;
        Ok(())
    });
}

#[tokio::test]
async fn futures_are_send() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let root = StorageRoot::init(store.clone(), Spec::V1_1, Layout::default()).await;
    let root = root.expect("a root");
    let draft = root.begin("x", About::default(), &DraftOptions::default()).await;
    let unsealed = draft.expect("a draft").write().await.expect("an inventory");
    // That this compiles is the test.
    roots(store.clone());
    reading(root.clone(), "x".into());
    exporting(root.clone(), "x".into());
    writing(root.clone(), "x".into());
    sealing(root.clone(), unsealed);
    removing(root, "x".into());
    validating(store, "x".into());
}
