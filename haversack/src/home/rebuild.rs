//! Lets a home meet its store again after the remote was lost.

use std::time::Duration;

use super::{Home, HomeReport, Meeting, Stopped};
use crate::sync::{self, Context, Rebuilt, Replica};

/// The result of a rebuild.
#[derive(Clone, Debug, Default)]
pub struct HomeRebuilt {
    /// The rebuilt store in a remote.
    pub rebuilt: Rebuilt,
    /// The number of log files that were put back into a synced folder.
    pub put_back: usize,
}

/// Rebuilds the store of a home at its meeting place, or follows another device that did. The caller does a full round afterwards.
///
/// In a remote, all replicas of the home rebuild the log together. In a synced folder, the logs are put back byte for byte.
pub async fn rebuild(
    home: &Home,
    meeting: &Meeting,
    context: Context<'_>,
    lock_wait: Duration,
) -> Result<HomeRebuilt, Stopped> {
    home.tidy(context.ids, lock_wait).await?;
    let own = home.replicas().await?;
    let context = Context { asking: meeting.asking(), own_replicas: &own, ..context };
    if let Some(mut bridge) = meeting.bridge(context, lock_wait).await? {
        let put_back = bridge.put_back(context).await?;
        return Ok(HomeRebuilt { put_back, ..HomeRebuilt::default() });
    }
    let mut replicas: Vec<Replica> = Vec::new();
    for directory in home.directories() {
        replicas.push(directory.open(meeting.remote.clone(), context, lock_wait).await?);
    }
    let rebuilt = sync::rebuild(context, &mut replicas, home.memory().state.clone()).await;
    // The commits that were read belong to the history, also if the rebuild failed later.
    let archived = HomeReport::default().archive(home, context, &mut replicas).await;
    let rebuilt = rebuilt?;
    archived?;
    Ok(HomeRebuilt { rebuilt, put_back: 0 })
}
