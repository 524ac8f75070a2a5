//! Lists the objects of the remote once, for both imports of a full reconcile.

use futures_lite::StreamExt;
use haversack_store::{Info, Locator, Odd};

use crate::manifest::Manifest;
use crate::sync::remote::patiently;
use crate::sync::{Context, Replica, SyncError};

/// All objects beside the log, as one listing showed them.
pub(in crate::sync) struct MirrorListing {
    pub(super) objects: Vec<Info>,
    /// Names that we cannot serve.
    pub(super) odd: Vec<Odd>,
}

impl MirrorListing {
    /// Returns the locators of all objects.
    pub(super) fn locators(&self) -> Vec<Locator> {
        self.objects.iter().map(|info| info.locator.clone()).collect()
    }
}

impl Replica {
    /// Returns the manifest. Without one of ours it is empty: then only the log tells which contents are ours.
    pub(in crate::sync) async fn mirror_manifest(&self, context: Context<'_>) -> Result<Manifest, SyncError> {
        Ok(self.read_manifest(context).await?.map(|read| read.manifest).unwrap_or_default())
    }

    /// Lists all objects beside the log.
    pub(in crate::sync) async fn list_mirror(
        &self,
        context: Context<'_>,
    ) -> Result<MirrorListing, SyncError> {
        let list = || async {
            let mut listing = MirrorListing { objects: Vec::new(), odd: Vec::new() };
            let mut pages = self.remote.backend().scan(&Locator::root(), None);
            while let Some(page) = pages.next().await {
                let page = page?;
                listing.objects.extend(page.infos);
                listing.odd.extend(page.odd);
            }
            Ok(listing)
        };
        patiently(context.patience, list).await.map_err(SyncError::Remote)
    }
}
