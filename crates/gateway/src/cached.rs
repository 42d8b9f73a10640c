//! A cached answer: it is fetched at most once an interval, by one task at a time; in between every caller gets
//! the known one. So unauthenticated requests for it cost the same however many there are.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// The cached answer; it holds `None` if there was no answer in time.
pub(crate) struct Cached<T> {
    known: Arc<Mutex<Option<Known<T>>>>,
}

struct Known<T> {
    at: Instant,
    answer: Option<T>,
}

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self {
            known: Arc::default(),
        }
    }
}

impl<T: Clone + Send + 'static> Cached<T> {
    /// Returns the answer, at most `interval` old. No caller waits longer than `patience`; a fetch whose
    /// callers have gone away still runs to its end, so that hanging up does not start another one.
    pub(crate) async fn get<F>(
        &self,
        interval: Duration,
        patience: Duration,
        ask: impl FnOnce() -> F,
    ) -> Option<T>
    where
        F: Future<Output = Option<T>> + Send + 'static,
    {
        let answered = async {
            let mut known = self.known.clone().lock_owned().await;
            if let Some(known) = &*known
                && known.at.elapsed() < interval
            {
                return known.answer.clone();
            }
            let asked = timeout(patience, ask());
            let asking = tokio::spawn(async move {
                let answer = asked.await.ok().flatten();
                *known = Some(Known {
                    at: Instant::now(),
                    answer: answer.clone(),
                });
                answer
            });
            asking.await.ok().flatten()
        };
        timeout(patience, answered).await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A source that counts its fetches.
    #[derive(Default)]
    struct Source {
        asked: Arc<AtomicUsize>,
    }

    impl Source {
        async fn get(&self, cached: &Cached<usize>) -> Option<usize> {
            let asked = self.asked.clone();
            let ask = || async move { Some(asked.fetch_add(1, Ordering::Relaxed)) };
            cached.get(SECOND, SECOND, ask).await
        }
    }

    /// U11: there is one fetch an interval, however many callers ask.
    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_for_its_interval() {
        let (cached, source) = (Cached::default(), Source::default());
        for _ in 0..100 {
            assert_eq!(source.get(&cached).await, Some(0));
        }
        tokio::time::advance(SECOND).await;
        assert_eq!(source.get(&cached).await, Some(1));
    }

    /// U11: concurrent callers share the answer of one fetch.
    #[tokio::test(start_paused = true)]
    async fn one_asks_and_all_get_the_answer() {
        let (cached, source) = (Cached::default(), Source::default());
        let all = (0..100).map(|_| source.get(&cached));
        let answers = futures_util::future::join_all(all).await;
        assert_eq!(answers, vec![Some(0); 100]);
    }

    /// If nothing answers, no caller waits for ever, and the next one does not fetch again at once.
    #[tokio::test(start_paused = true)]
    async fn silence_is_kept_like_an_answer() {
        let cached = Cached::<usize>::default();
        let silent = || std::future::pending();
        assert_eq!(cached.get(SECOND, SECOND, silent).await, None);
        let source = Source::default();
        assert_eq!(source.get(&cached).await, None);
        tokio::time::advance(SECOND).await;
        assert_eq!(source.get(&cached).await, Some(0));
    }

    /// U11: a caller that hangs up leaves its fetch running, and the next one waits for its answer.
    #[tokio::test(start_paused = true)]
    async fn hanging_up_asks_no_second_question() {
        let (cached, gate) = (Cached::default(), Arc::new(Notify::new()));
        let opened = gate.clone();
        let slow = || async move {
            opened.notified().await;
            Some(7)
        };
        let mut asking = Box::pin(cached.get(SECOND, SECOND, slow));
        assert!(futures_util::poll!(asking.as_mut()).is_pending());
        tokio::task::yield_now().await;
        drop(asking);
        gate.notify_one();
        assert_eq!(Source::default().get(&cached).await, Some(7));
    }
}
