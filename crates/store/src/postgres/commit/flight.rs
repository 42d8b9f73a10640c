//! Flights: statements that are sent one after the other without waiting for the answers in between.

use std::future::poll_fn;
use std::task::{Context, Poll};

use countersign::BoxFuture;
use deadpool_postgres::Client;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

use crate::postgres::failure::Failure;

/// Statements in the order in which they are sent. A statement is sent when its future is polled for the
/// first time, so polling in order is sending in order.
#[derive(Default)]
pub(super) struct Flight<'f> {
    statements: Vec<Waiting<'f>>,
}

enum Waiting<'f> {
    Flying(BoxFuture<'f, Result<Vec<Row>, Error>>),
    /// Sent only if no statement before it has failed by then.
    OnlyIfSound(BoxFuture<'f, Result<Vec<Row>, Error>>),
    Landed(Result<Vec<Row>, Error>),
    Withheld,
}

/// Index of a statement's answer.
pub(super) type Place = usize;

/// The answers of a flight.
pub(super) struct Landed(Vec<Vec<Row>>);

/// A parameter of a statement, by value because it must outlive the sending.
pub(super) type Param<'f> = Box<dyn ToSql + Sync + Send + 'f>;

impl<'f> Flight<'f> {
    /// Adds a statement that is already prepared: one that has to be prepared first would be sent late.
    pub(super) fn send(
        &mut self,
        client: &'f Client,
        statement: &'f Statement,
        params: Vec<Param<'f>>,
    ) -> Place {
        self.push(Waiting::Flying(Box::pin(async move {
            let params: Vec<&(dyn ToSql + Sync)> =
                params.iter().map(|param| &**param as _).collect();
            client.query(statement, &params).await
        })))
    }

    pub(super) fn begin(&mut self, client: &'f Client) {
        self.push(Waiting::Flying(Box::pin(async move {
            client.batch_execute("BEGIN").await.map(|()| Vec::new())
        })));
    }

    /// Adds `COMMIT`. It is not sent if a statement could not even be written to the connection: the server
    /// would not know of that statement and would commit the rest.
    pub(super) fn commit(&mut self, client: &'f Client) {
        self.push(Waiting::OnlyIfSound(Box::pin(async move {
            client.batch_execute("COMMIT").await.map(|()| Vec::new())
        })));
    }

    /// Sends everything and waits for all the answers; the first failure counts.
    pub(super) async fn land(mut self) -> Result<Landed, Failure> {
        poll_fn(|context| self.poll(context)).await;
        let mut answers = Vec::with_capacity(self.statements.len());
        let mut failures = Vec::new();
        for statement in self.statements {
            match statement {
                Waiting::Landed(Ok(rows)) => answers.push(rows),
                Waiting::Landed(Err(error)) => failures.push(Failure::from(error)),
                Waiting::Withheld | Waiting::Flying(_) | Waiting::OnlyIfSound(_) => {}
            }
        }
        let cause = failures
            .iter()
            .position(|failure| !failure.is_consequence());
        match failures.into_iter().nth(cause.unwrap_or_default()) {
            Some(failure) => Err(failure),
            None => Ok(Landed(answers)),
        }
    }

    fn push(&mut self, statement: Waiting<'f>) -> Place {
        self.statements.push(statement);
        self.statements.len() - 1
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut is_sound = true;
        let mut all_landed = true;
        for statement in &mut self.statements {
            if let Waiting::OnlyIfSound(_) = statement {
                let due = std::mem::replace(statement, Waiting::Withheld);
                if let (Waiting::OnlyIfSound(future), true) = (due, is_sound) {
                    *statement = Waiting::Flying(future);
                }
            }
            if let Waiting::Flying(future) = statement {
                match future.as_mut().poll(context) {
                    Poll::Ready(answer) => *statement = Waiting::Landed(answer),
                    Poll::Pending => all_landed = false,
                }
            }
            is_sound &= !matches!(statement, Waiting::Landed(Err(_)));
        }
        if all_landed {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Landed {
    /// Returns the rows of a statement; no rows if it was not sent.
    pub(super) fn rows(&self, place: Option<Place>) -> &[Row] {
        place
            .and_then(|place| self.0.get(place))
            .map_or(&[], Vec::as_slice)
    }
}
