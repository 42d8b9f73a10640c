//! Threads that serve connections, each with a runtime of its own. A connection stays on its thread.
//!
//! The parts of one request wake each other several times: the body wakes the connection, which wakes the handler. A runtime that shares its
//! tasks between threads calls another thread for each of these, and that costs more than the work itself.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Time that tasks on other threads of a lane, such as the look-up of a name, have to end when the server stops.
const LAST_TASKS: Duration = Duration::from_millis(100);

/// Threads that serve connections. They end when this is dropped.
pub(super) struct Lanes {
    lanes: Vec<Lane>,
}

struct Lane {
    runtime: Handle,
    /// Its number of owners, except this one, is that of the connections on the lane.
    load: Arc<()>,
    /// Dropping it stops the thread.
    _stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Lanes {
    /// Starts threads.
    pub(super) fn start(count: usize) -> io::Result<Self> {
        let lanes = (0..count).map(|number| {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let handle = runtime.handle().clone();
            let (stop, stopped) = oneshot::channel::<()>();
            let thread = std::thread::Builder::new().name(format!("connections-{number}"));
            let thread = thread.spawn(move || {
                // Nothing is ever sent: the lanes were dropped.
                let _dropped = runtime.block_on(stopped);
                runtime.shutdown_timeout(LAST_TASKS);
            })?;
            Ok(Lane {
                runtime: handle,
                load: Arc::new(()),
                _stop: stop,
                thread,
            })
        });
        let lanes = lanes.collect::<io::Result<_>>()?;
        Ok(Self { lanes })
    }

    /// Runs a task on the thread with the fewest connections; without threads, on the runtime of the caller.
    pub(super) fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let lane = self
            .lanes
            .iter()
            .min_by_key(|it| Arc::strong_count(&it.load));
        let Some(lane) = lane else {
            drop(tokio::spawn(task));
            return;
        };
        let load = lane.load.clone();
        lane.runtime.spawn(async move {
            task.await;
            drop(load);
        });
    }

    /// Stops the threads, and waits until they have ended.
    pub(super) async fn end(self) {
        let threads = self.lanes.into_iter().map(|lane| lane.thread);
        let threads: Vec<_> = threads.collect();
        let ended = tokio::task::spawn_blocking(move || {
            for thread in threads {
                // A panic of a task does not reach the thread.
                let _ended = thread.join();
            }
        });
        let _ended = ended.await;
    }
}

#[cfg(test)]
mod tests {
    use countersign_testkit::patience::within;

    use super::*;

    /// Tasks are spread over the threads, and without threads the runtime of the caller has them.
    #[tokio::test]
    async fn tasks_go_where_the_fewest_are() {
        let name = async |lanes: &Lanes, end: oneshot::Receiver<()>| {
            let (tell, told) = oneshot::channel();
            lanes.spawn(async move {
                let own = std::thread::current().name().unwrap_or_default().to_owned();
                tell.send(own).unwrap();
                let _ended = end.await;
            });
            within(told).await.unwrap()
        };
        let lanes = Lanes::start(2).unwrap();
        let (first, end_first) = oneshot::channel();
        let (_second, end_second) = oneshot::channel();
        assert_eq!(name(&lanes, end_first).await, "connections-0");
        assert_eq!(name(&lanes, end_second).await, "connections-1");
        drop(first);
        let (_third, end_third) = oneshot::channel();
        within(async {
            while Arc::strong_count(&lanes.lanes[0].load) > 1 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(name(&lanes, end_third).await, "connections-0");
        within(lanes.end()).await;

        let own = std::thread::current().name().unwrap_or_default().to_owned();
        let none = Lanes::start(0).unwrap();
        let (_last, end) = oneshot::channel();
        assert_eq!(name(&none, end).await, own);
    }
}
