//! A server to meet at, and the roads to it.

use std::time::Duration;

use haversack_bench::Outcome;
use haversack_servers::azurite::{ACCOUNT, KEY};
use haversack_servers::{Azurite, Front, SeaweedFs};

/// The kind of a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    SeaweedFs,
    Azurite,
}

impl Kind {
    /// Returns what people call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::SeaweedFs => "SeaweedFS (S3)",
            Kind::Azurite => "Azurite (Azure Blob)",
        }
    }

    /// Returns how many files it is timed with at most: rclone needs many minutes to put 10,000 into Azurite.
    pub(crate) fn most_files(self) -> usize {
        match self {
            Kind::SeaweedFs => usize::MAX,
            Kind::Azurite => 1_000,
        }
    }
}

/// A server for this benchmark alone.
pub(crate) enum Server {
    SeaweedFs(SeaweedFs),
    Azurite(Azurite),
}

impl Server {
    /// Starts one with nothing in it.
    pub(crate) fn start(kind: Kind) -> Outcome<Server> {
        let started = match kind {
            Kind::SeaweedFs => SeaweedFs::start().map(Server::SeaweedFs),
            Kind::Azurite => Azurite::start().map(Server::Azurite),
        };
        Ok(started.ok_or("a server is missing; install it: cargo xtask tools all")?)
    }

    fn endpoint(&self) -> &str {
        match self {
            Server::SeaweedFs(server) => server.endpoint(),
            Server::Azurite(server) => server.endpoint(),
        }
    }

    /// Makes a new container.
    pub(crate) fn container(&self) -> Container {
        match self {
            Server::SeaweedFs(server) => Container { kind: Kind::SeaweedFs, name: server.new_bucket() },
            Server::Azurite(server) => Container { kind: Kind::Azurite, name: server.new_container() },
        }
    }
}

/// A container of a server.
#[derive(Clone)]
pub(crate) struct Container {
    kind: Kind,
    name: String,
}

impl Container {
    /// Returns its address for us.
    pub(crate) fn address(&self) -> String {
        match self.kind {
            Kind::SeaweedFs => format!("s3://{}/store", self.name),
            Kind::Azurite => format!("az://{}/store", self.name),
        }
    }

    /// Returns the variables that tell us where it is and who asks.
    pub(crate) fn variables(&self, road: &Route) -> Vec<(&'static str, String)> {
        match self.kind {
            Kind::SeaweedFs => vec![
                ("AWS_ENDPOINT_URL", road.endpoint().to_owned()),
                ("AWS_REGION", "us-east-1".to_owned()),
                ("AWS_ACCESS_KEY_ID", seaweed().0),
                ("AWS_SECRET_ACCESS_KEY", seaweed().1),
            ],
            Kind::Azurite => vec![
                ("AZURE_STORAGE_ENDPOINT", road.endpoint().to_owned()),
                ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT.to_owned()),
                ("AZURE_STORAGE_ACCOUNT_KEY", KEY.to_owned()),
            ],
        }
    }

    /// Returns its address for rclone.
    pub(crate) fn rclone_address(&self) -> String {
        match self.kind {
            Kind::SeaweedFs => format!(":s3:{}/files", self.name),
            Kind::Azurite => format!(":azureblob:{}/files", self.name),
        }
    }

    /// Returns the variables that tell rclone where it is and who asks.
    pub(crate) fn rclone_variables(&self, road: &Route) -> Vec<(&'static str, String)> {
        match self.kind {
            Kind::SeaweedFs => vec![
                ("RCLONE_S3_PROVIDER", "SeaweedFS".to_owned()),
                ("RCLONE_S3_ENDPOINT", road.endpoint().to_owned()),
                ("RCLONE_S3_REGION", "us-east-1".to_owned()),
                ("RCLONE_S3_ACCESS_KEY_ID", seaweed().0),
                ("RCLONE_S3_SECRET_ACCESS_KEY", seaweed().1),
            ],
            Kind::Azurite => vec![
                ("RCLONE_AZUREBLOB_ENDPOINT", road.endpoint().to_owned()),
                ("RCLONE_AZUREBLOB_ACCOUNT", ACCOUNT.to_owned()),
                ("RCLONE_AZUREBLOB_KEY", KEY.to_owned()),
            ],
        }
    }
}

fn seaweed() -> (String, String) {
    (haversack_servers::moto::KEY_ID.to_owned(), haversack_servers::moto::SECRET.to_owned())
}

/// A way to a server.
pub(crate) enum Route {
    /// Nothing is in between.
    Straight(String),
    /// Every request is counted, and may be made to wait.
    Counted(Front),
}

impl Route {
    /// Returns the shortest.
    pub(crate) fn straight(server: &Server) -> Route {
        Route::Straight(server.endpoint().to_owned())
    }

    /// Returns one that counts requests and lets each of them wait.
    pub(crate) fn counted(server: &Server, delay: Duration) -> Route {
        let front = Front::before(server.endpoint());
        front.delay(delay);
        Route::Counted(front)
    }

    /// Returns the URL at its beginning.
    pub(crate) fn endpoint(&self) -> &str {
        match self {
            Route::Straight(endpoint) => endpoint,
            Route::Counted(front) => front.url(),
        }
    }

    /// Does `work` and returns how many requests came by, where they are counted.
    pub(crate) fn count<T>(&self, work: impl FnOnce() -> Outcome<T>) -> Outcome<(T, Option<usize>)> {
        match self {
            Route::Straight(_) => Ok((work()?, None)),
            Route::Counted(front) => {
                front.forget();
                let done = work()?;
                Ok((done, Some(front.count())))
            }
        }
    }
}
