//! The fake of Google Cloud Storage and the client that it is for.

use std::sync::Arc;

use futures_util::TryStreamExt;
use haversack_servers::Gcs;
use object_store::gcp::{GcpCredential, GoogleCloudStorage, GoogleCloudStorageBuilder};
use object_store::path::Path;
use object_store::{
    Attribute, AttributeValue, ClientOptions, CopyMode, CopyOptions, Error, GetOptions, ObjectStore,
    ObjectStoreExt, PutMode, PutOptions, RetryConfig, StaticCredentialProvider, UpdateVersion,
};

fn client(gcs: &Gcs, bucket: &str) -> GoogleCloudStorage {
    drop(rustls::crypto::ring::default_provider().install_default());
    let bearer = StaticCredentialProvider::new(GcpCredential { bearer: gcs.token() });
    GoogleCloudStorageBuilder::new()
        .with_bucket_name(bucket)
        .with_base_url(gcs.endpoint())
        .with_credentials(Arc::new(bearer))
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
        .build()
        .expect("everything is said")
}

fn run(test: impl Future<Output = object_store::Result<()>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it starts");
    runtime.block_on(test).expect("the client understands the fake");
}

#[test]
fn they_agree_on_conditions() {
    let gcs = Gcs::start();
    let store = client(&gcs, &gcs.new_bucket());
    let key = Path::from("a/note.md");
    let put = |mode: PutMode, body: &'static str| store.put_opts(&key, body.into(), mode.into());
    run(async {
        let first = put(PutMode::Create, "one").await?;
        assert!(matches!(put(PutMode::Create, "two").await, Err(Error::AlreadyExists { .. })));
        let second = put(PutMode::Update(UpdateVersion::from(first.clone())), "two").await?;
        let stale = put(PutMode::Update(UpdateVersion::from(first)), "three").await;
        assert!(matches!(stale, Err(Error::Precondition { .. })));
        let absent = UpdateVersion { e_tag: None, version: Some("7".to_owned()) };
        let update = store.put_opts(&Path::from("b"), "x".into(), PutMode::Update(absent).into()).await;
        assert!(matches!(update, Err(Error::Precondition { .. })));
        let got = store.get(&key).await?;
        assert_eq!((&got.meta.e_tag, &got.meta.version), (&second.e_tag, &second.version));
        assert_eq!(got.bytes().await?, "two");
        let unchanged = GetOptions { if_none_match: second.e_tag, ..GetOptions::default() };
        assert!(matches!(store.get_opts(&key, unchanged).await, Err(Error::NotModified { .. })));
        Ok(())
    });
}

#[test]
fn they_agree_on_everything_else() {
    let gcs = Gcs::start();
    let bucket = gcs.new_bucket();
    let store = client(&gcs, &bucket);
    let (key, copy) = (Path::from("a/some note ü.md"), Path::from("b/copy"));
    run(async {
        let mut options = PutOptions::default();
        options.attributes.insert(Attribute::Metadata("writer".into()), AttributeValue::from("a-teammate"));
        store.put_opts(&key, "0123456789".into(), options).await?;
        let head = store.head(&key).await?;
        assert_eq!((head.size, head.location), (10, key.clone()));
        let got = store.get(&key).await?;
        let writer = got.attributes.get(&Attribute::Metadata("writer".into())).map(AsRef::as_ref);
        assert_eq!(writer, Some("a-teammate"));
        assert_eq!(store.get_range(&key, 2..5).await?, "234");
        store.copy(&key, &copy).await?;
        let again = CopyOptions::new().with_mode(CopyMode::Create);
        assert!(matches!(store.copy_opts(&key, &copy, again).await, Err(Error::AlreadyExists { .. })));
        let top = store.list_with_delimiter(None).await?;
        assert_eq!((top.common_prefixes, top.objects.len()), (vec![Path::from("a"), Path::from("b")], 0));
        store.delete(&key).await?;
        assert!(matches!(store.delete(&key).await, Err(Error::NotFound { .. })));
        assert!(matches!(store.get(&key).await, Err(Error::NotFound { .. })));
        for number in 0..2100 {
            gcs.put(&bucket, &format!("many/{number:04}"), "x");
        }
        let many: Vec<_> = store.list(Some(&Path::from("many"))).try_collect().await?;
        assert_eq!(many.len(), 2100);
        let after = store.list_with_offset(Some(&Path::from("many")), &Path::from("many/2097"));
        assert_eq!(after.try_collect::<Vec<_>>().await?.len(), 2);
        gcs.expect_token("another");
        assert!(matches!(store.get(&copy).await, Err(Error::Unauthenticated { .. })));
        Ok(())
    });
}
