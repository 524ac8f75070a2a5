//! Tells clients about changes, by any writer.
//!
//! While a client listens, we look at every file's date again and again. Without a listener, there is no cost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_lite::StreamExt;
use haversack::store::{EntryKind, Fingerprint, Locator, block_on};
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, RoleServer, SubscriptionContext};

use super::resources::{locate, uri};
use super::tool_handler::ToolHandler;

/// The interval between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// The most addresses that a client can subscribe to.
const MAX_ADDRESSES: usize = 1000;

/// The fingerprints of all files at one look.
pub(super) type Look = BTreeMap<Locator, Fingerprint>;

/// The changes between two looks.
#[derive(Debug, Default, PartialEq, Eq)]
struct News {
    /// Memories that are new, gone or different.
    changed: BTreeSet<Locator>,
    /// True if files were added or removed.
    is_list_changed: bool,
}

/// Returns what of it we can tell.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = SubscriptionFilter::new();
    accepted.resources_list_changed = requested.resources_list_changed;
    let addresses = requested.resource_subscriptions.as_ref();
    accepted.resource_subscriptions = addresses.map(|addresses| {
        addresses.iter().filter(|uri| locate(uri).is_ok()).take(MAX_ADDRESSES).cloned().collect()
    });
    accepted
}

/// Sends a client the changes that it subscribed to, until it ends the subscription.
pub(super) async fn listen(handler: Arc<ToolHandler>, context: &SubscriptionContext) {
    let filter = context.accepted().clone();
    let wanted: BTreeSet<String> = filter.resource_subscriptions.into_iter().flatten().collect();
    let is_list_wanted = filter.resources_list_changed == Some(true);
    let mut before = look(&handler).await;
    loop {
        tokio::select! {
            () = context.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        let now = look(&handler).await;
        let news = news(before.as_ref(), now.as_ref());
        for uri in news.changed.iter().map(uri).filter(|uri| wanted.contains(uri)) {
            if context.sink().notify_resource_updated(uri).await.is_err() {
                return;
            }
        }
        if news.is_list_changed
            && is_list_wanted
            && context.sink().notify_resource_list_changed().await.is_err()
        {
            return;
        }
        before = now.or(before);
    }
}

/// Sends a client of an older revision the changes that it subscribed to, from a look on, until it is gone.
pub(super) async fn tell(
    handler: Arc<ToolHandler>,
    mut before: Option<Look>,
    subscribed: Weak<Mutex<Option<BTreeSet<String>>>>,
    peer: Peer<RoleServer>,
) {
    while !peer.is_transport_closed() {
        tokio::time::sleep(EVERY).await;
        let Some(subscribed) = subscribed.upgrade() else { return };
        let now = look(&handler).await;
        let wanted = subscribed.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
        let news = news(before.as_ref(), now.as_ref());
        for uri in news.changed.iter().map(uri).filter(|uri| wanted.contains(uri)) {
            if peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_err() {
                return;
            }
        }
        if news.is_list_changed && peer.notify_resource_list_changed().await.is_err() {
            return;
        }
        before = now.or(before);
    }
}

/// Looks at every file; `None` if that could not be done, which is no news.
pub(super) async fn look(handler: &Arc<ToolHandler>) -> Option<Look> {
    let handler = handler.clone();
    let looked = tokio::task::spawn_blocking(move || -> Option<Look> {
        let memory = handler.memory().ok()?;
        block_on(async {
            let mut seen = Look::new();
            let mut pages = memory.files().scan(&Locator::root(), None);
            while let Some(page) = pages.next().await {
                let files = page.ok()?.infos.into_iter().filter(|info| info.kind == EntryKind::File);
                seen.extend(files.map(|info| (info.locator, info.fingerprint)));
            }
            Some(seen)
        })
    });
    looked.await.ok().flatten()
}

fn news(before: Option<&Look>, now: Option<&Look>) -> News {
    let Some((before, now)) = before.zip(now) else { return News::default() };
    let mut news = News::default();
    for (locator, fingerprint) in now {
        match before.get(locator) {
            Some(then) if then == fingerprint => {}
            then => {
                news.is_list_changed |= then.is_none();
                news.changed.insert(locator.clone());
            }
        }
    }
    for locator in before.keys().filter(|locator| !now.contains_key(*locator)) {
        news.is_list_changed = true;
        news.changed.insert(locator.clone());
    }
    news
}
