//! A web server in this process that is one function.

use std::sync::{Arc, Mutex};

use crate::http::{Answer, Asked, Handler, Listening, Reply};

/// Answers every request with what its function returns, and remembers what it was asked.
pub struct Responder {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    _listening: Listening,
}

impl Responder {
    /// Starts one. The function may take its time; requests do not wait for each other.
    pub fn start(respond: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Responder {
        Responder::listen(false, respond)
    }

    /// Starts one that speaks TLS, with a certificate of [`crate::tls`].
    pub fn start_tls(respond: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Responder {
        Responder::listen(true, respond)
    }

    fn listen(https: bool, respond: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Responder {
        let respond = Arc::new(respond);
        let remembered = Arc::new(Mutex::new(Vec::new()));
        let asked_here = Arc::clone(&remembered);
        let listening = Listening::start(https, move || -> Handler {
            let (respond, remembered) = (Arc::clone(&respond), Arc::clone(&asked_here));
            Box::new(move |asked| {
                let (respond, remembered) = (Arc::clone(&respond), Arc::clone(&remembered));
                Box::pin(async move {
                    remembered.lock().expect("nobody panics with it").push(asked.clone());
                    match tokio::task::spawn_blocking(move || respond(&asked)).await {
                        Ok(answer) => Reply::Whole(answer),
                        // The test's own panic was printed by its thread.
                        Err(_) => Reply::Gone,
                    }
                })
            })
        });
        let scheme = if https { "https" } else { "http" };
        Responder {
            url: format!("{scheme}://{}", listening.host()),
            asked: remembered,
            _listening: listening,
        }
    }

    /// Returns where it listens, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns what it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("nobody panics with it").clone()
    }
}
