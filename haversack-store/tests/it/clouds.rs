//! The clouds, against real servers: Azurite and moto, and a stand-in for Google's.

mod answers;
mod lists;
mod promises;
mod refusals;

use std::sync::Arc;

use haversack_servers::{Azurite, Front, Gcs, Moto};
use haversack_store::conformance::Subject;
use haversack_store::{Backend, Blocking, OpenOptions, Registry, Settings};
use tempfile::TempDir;

/// An empty place in a cloud.
pub(crate) struct Place {
    pub(crate) backend: &'static str,
    pub(crate) options: OpenOptions,
    locks: TempDir,
    /// Ends with the place.
    _gcs: Option<Arc<Gcs>>,
}

impl Place {
    fn new(backend: &'static str, address: String, settings: &[(&str, &str)]) -> Place {
        let locks = TempDir::new().expect("a temporary directory");
        let settings = settings.iter().copied().collect::<Settings>();
        let options = OpenOptions { address, locks: locks.path().display().to_string(), settings };
        Place { backend, options, locks, _gcs: None }
    }

    /// A new container of Azurite; `None` if it is not installed.
    pub(crate) fn azure() -> Option<Place> {
        let azurite = Azurite::shared()?;
        Some(Place::azure_at(azurite, azurite.endpoint(), &azurite.new_container()))
    }

    /// A container of Azurite, reached at another address.
    fn azure_at(azurite: &Azurite, endpoint: &str, container: &str) -> Place {
        let settings = [
            ("AZURE_STORAGE_ACCOUNT_NAME", azurite.account()),
            ("AZURE_STORAGE_ACCOUNT_KEY", azurite.key()),
            ("AZURE_STORAGE_ENDPOINT", endpoint),
        ];
        Place::new("azure", format!("az://{container}/some/where"), &settings)
    }

    /// A new bucket of moto; `None` if it is not installed.
    pub(crate) fn s3() -> Option<Place> {
        let moto = Moto::shared()?;
        Some(Place::s3_at(moto, moto.endpoint(), &moto.new_bucket()))
    }

    fn s3_at(moto: &Moto, endpoint: &str, bucket: &str) -> Place {
        let settings = [
            ("AWS_ACCESS_KEY_ID", moto.key_id()),
            ("AWS_SECRET_ACCESS_KEY", moto.secret()),
            ("AWS_ENDPOINT_URL", endpoint),
        ];
        Place::new("s3", format!("s3://{bucket}"), &settings)
    }

    /// A new bucket of a stand-in for Google's.
    pub(crate) fn gcs() -> Place {
        let gcs = Arc::new(Gcs::start());
        let place = Place::gcs_at(&gcs, gcs.endpoint(), &gcs.new_bucket());
        Place { _gcs: Some(gcs), ..place }
    }

    fn gcs_at(gcs: &Gcs, endpoint: &str, bucket: &str) -> Place {
        let settings = [("GOOGLE_BEARER_TOKEN", gcs.token()), ("GOOGLE_BASE_URL", endpoint.to_owned())];
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Place::new("gcs", format!("gs://{bucket}/some/where"), &settings)
    }

    pub(crate) fn blocking(&self) -> Blocking {
        Blocking::new(self.open())
    }

    fn with(mut self, name: &str, value: &str) -> Place {
        self.options.settings.set(name, value);
        self
    }

    fn locks(&self) -> &std::path::Path {
        self.locks.path()
    }
}

impl Subject for Place {
    fn open(&self) -> Arc<dyn Backend> {
        let registered = Registry::standard().get(self.backend).copied().expect("in this build");
        (registered.open)(&self.options).expect("it opens")
    }
}

/// Every cloud that is installed, each behind a front, which is given to `script` first.
fn fronted(script: impl Fn(&Front)) -> Vec<(Front, Place)> {
    let mut places = Vec::new();
    if let Some(azurite) = Azurite::shared() {
        let front = Front::before(azurite.endpoint());
        front.sign_as(azurite.account(), azurite.key());
        let place = Place::azure_at(azurite, front.url(), &azurite.new_container());
        places.push((front, place));
    }
    if let Some(moto) = Moto::shared() {
        let front = Front::before(moto.endpoint());
        let place = Place::s3_at(moto, front.url(), &moto.new_bucket());
        places.push((front, place));
    }
    let gcs = Arc::new(Gcs::start());
    let front = Front::before(gcs.endpoint());
    let place = Place::gcs_at(&gcs, front.url(), &gcs.new_bucket());
    places.push((front, Place { _gcs: Some(gcs), ..place }));
    for (front, _) in &places {
        script(front);
    }
    places
}

haversack_store::conformance!(
    azure,
    match Place::azure() {
        Some(place) => place,
        None => return,
    }
);

haversack_store::conformance!(
    s3,
    match Place::s3() {
        Some(place) => place,
        None => return,
    }
);

haversack_store::conformance!(gcs, Place::gcs());
