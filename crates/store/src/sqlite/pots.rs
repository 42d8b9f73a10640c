//! Pots and reservations. There is one writer, so checking and taking are atomic.

use countersign::BoxFuture;
use countersign::ledger::{
    Claim, ClaimRequest, Draw, Error, KeyDigest, Lapse, Overdrawn, POT_KEPT, PotKey, PotRow, Pots,
    ReservationId, Reserve, ReserveAnswer, Scope, SpendEnd, longer, overdrawn, window_start,
    window_time,
};
use countersign_contract::ToolName;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::SqliteStore;
use super::failure::Failure;
use super::time::{later, micros, timestamp};
use super::timekeeping::latest_believed;
use super::values::{bounded, bytes32, parsed, parsed_option, signed, unsigned};
use super::writer::{Done, Session};
use crate::transfer::StoredReservation;

impl Pots for SqliteStore {
    fn reserve<'a>(&'a self, request: &'a Reserve) -> BoxFuture<'a, Result<ReserveAnswer, Error>> {
        let request = request.clone();
        Box::pin(async move {
            let reserved = self.writer.run(move |session| {
                Ok(match reserve(session, &request, None)? {
                    None => Done::Kept(ReserveAnswer::Reserved),
                    Some(over) => Done::Undone(ReserveAnswer::Over(over)),
                })
            });
            Ok(reserved.await?)
        })
    }

    fn check<'a>(&'a self, draws: &'a [Draw]) -> BoxFuture<'a, Result<ReserveAnswer, Error>> {
        Box::pin(async move {
            let now = self.time.now();
            let over = self.readers.point(|connection| {
                let believed = latest_believed(connection)?;
                over(connection, draws, windows_at(believed, now))
            });
            Ok(over?.map_or(ReserveAnswer::Reserved, ReserveAnswer::Over))
        })
    }

    fn release<'a>(&'a self, id: &'a ReservationId) -> BoxFuture<'a, Result<(), Error>> {
        let id = id.clone();
        Box::pin(async move {
            let released = self.writer.run(move |session| {
                end(session.connection, &id, &SpendEnd::Released).map(Done::Kept)
            });
            Ok(released.await?)
        })
    }

    fn reserved<'a>(
        &'a self,
        claim: &'a Claim,
    ) -> BoxFuture<'a, Result<Option<ReservationId>, Error>> {
        Box::pin(async move {
            let Claim { scope, attempt } = claim;
            let found = self.readers.point(|connection| {
                let of_scope = of_scope(connection, scope)?;
                let found = of_scope.into_iter().find(|(_, of)| of == attempt);
                Ok(found.map(|(id, _)| id))
            });
            Ok(found?)
        })
    }

    fn pots<'a>(
        &'a self,
        user_id: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<PotRow>, Error>> {
        let user_id = user_id.map(str::to_owned);
        self.list(move |connection| {
            let mut statement = connection.prepare(&format!(
                "{SELECT_POTS} WHERE ?1 IS NULL OR user_id = ?1 {POT_ORDER} LIMIT ?2"
            ))?;
            let mut rows = statement.query(params![user_id, bounded(limit)])?;
            let mut pots = Vec::new();
            while let Some(row) = rows.next()? {
                pots.push(pot_row(row)?);
            }
            Ok(pots)
        })
    }
}

pub(super) const SELECT_POTS: &str = "SELECT user_id, name, holder, currency, window_seconds, \
     window_start, reserved, spent FROM pot";

pub(super) const POT_ORDER: &str =
    "ORDER BY user_id, name, holder, currency, window_seconds, window_start";

/// Reads a row of [`SELECT_POTS`].
pub(super) fn pot_row(row: &Row<'_>) -> Result<PotRow, Failure> {
    Ok(PotRow {
        key: pot_key(row, 0)?,
        window_start: row.get(5)?,
        reserved: row.get(6)?,
        spent: row.get(7)?,
    })
}

/// Selects reservations by user, id and draw.
pub(super) const SELECT_RESERVATIONS: &str = "SELECT user_id, id, n, pot_user_id, name, holder, \
     currency, window_seconds, window_start, amount, lapse, lease_until, tool, key, attempt \
     FROM reservation ORDER BY user_id, id, n";

/// Reads a row of [`SELECT_RESERVATIONS`].
pub(super) fn reservation_row(row: &Row<'_>) -> Result<StoredReservation, Failure> {
    let id = reservation_id(row)?;
    let tool: Option<ToolName> = parsed_option(row, 12)?;
    let claim = tool.map(|tool| {
        Ok::<_, Failure>(Claim {
            scope: Scope {
                user_id: id.user_id.clone(),
                tool,
                key: KeyDigest(bytes32(row, 13)?),
            },
            attempt: row.get(14)?,
        })
    });
    Ok(StoredReservation {
        n: row.get(2)?,
        pot: pot_key(row, 3)?,
        window_start: row.get(8)?,
        amount: row.get(9)?,
        lapse: lapse(row.get(10)?)?,
        lease_until: timestamp(row.get(11)?),
        claim: claim.transpose()?,
        id,
    })
}

fn lapse(number: i64) -> Result<Lapse, Failure> {
    Lapse::from_number(number).ok_or_else(|| Failure::damaged("the lapse of a reservation"))
}

/// Reads the five columns of a pot's key, from this one on.
pub(super) fn pot_key(row: &Row<'_>, from: usize) -> Result<PotKey, Failure> {
    Ok(PotKey {
        user_id: row.get(from)?,
        name: row.get(from + 1)?,
        holder: row.get(from + 2)?,
        currency: row.get(from + 3)?,
        window_seconds: unsigned(row.get(from + 4)?),
    })
}

/// Makes the reservation of a claim in place of those of its earlier attempts. If a pot has too little, the
/// caller undoes everything.
pub(super) fn take_with_claim(
    session: &Session<'_>,
    request: &ClaimRequest,
    attempt: u32,
) -> Result<Option<Overdrawn>, Failure> {
    let Some(spend) = &request.spend else {
        return Ok(None);
    };
    for (id, _) in of_scope(session.connection, &request.scope)? {
        end(session.connection, &id, &SpendEnd::Released)?;
    }
    reserve(session, spend, Some((&request.scope, attempt)))
}

/// Ends a reservation; one that has already ended stays as it is.
pub(super) fn end(
    connection: &Connection,
    id: &ReservationId,
    end: &SpendEnd,
) -> Result<(), Failure> {
    for (drawn, n) in taken_out(connection, id)? {
        let spent = match end {
            SpendEnd::Released => 0,
            SpendEnd::Spent(actual) | SpendEnd::SpentHere(actual) => {
                let actual = actual.get(n).copied().flatten();
                actual.unwrap_or(drawn.amount)
            }
        };
        let mut update = connection.prepare_cached(
            "UPDATE pot SET reserved = reserved - ?7, spent = max(spent + ?8, 0)
             WHERE user_id = ?1 AND name = ?2 AND holder = ?3 AND currency = ?4
                 AND window_seconds = ?5 AND window_start = ?6",
        )?;
        let PotKey {
            user_id,
            name,
            holder,
            currency,
            window_seconds,
        } = &drawn.pot;
        update.execute(params![
            user_id,
            name,
            holder,
            currency,
            signed(*window_seconds),
            drawn.window_start,
            drawn.amount.max(0),
            spent,
        ])?;
    }
    Ok(())
}

pub(super) fn is_reserved(connection: &Connection, id: &ReservationId) -> Result<bool, Failure> {
    let mut statement = connection
        .prepare_cached("SELECT 1 FROM reservation WHERE user_id = ?1 AND id = ?2 AND n = 0")?;
    Ok(statement.exists(params![id.user_id, id.id.as_str()])?)
}

/// Erases a user. Reservations of the user's open calls in other users' pots count as spent: no call will ever
/// report that they were not.
pub(super) fn erase(connection: &Connection, user_id: &str) -> Result<(), Failure> {
    let mut statement =
        connection.prepare("SELECT user_id, id FROM reservation WHERE user_id = ?1 AND n = 0")?;
    for id in ids(statement.query([user_id])?)? {
        end(connection, &id, &SpendEnd::Spent(Vec::new()))?;
    }
    connection.execute("DELETE FROM pot WHERE user_id = ?1", [user_id])?;
    Ok(())
}

/// Ends the reservations of lost owners and deletes old pots. Returns both counts.
/// Ends the reservations of lost owners.
pub(super) fn end_lost(session: &Session<'_>, limit: i64) -> Result<usize, Failure> {
    let (connection, now) = (session.connection, session.now);
    let mut lost = connection.prepare_cached(
        "SELECT user_id, id, lapse FROM reservation AS r
         WHERE lease_until <= ?1 AND n = 0 AND NOT EXISTS (
             SELECT 1 FROM claim WHERE claim.user_id = r.user_id AND claim.tool = r.tool
                 AND claim.key = r.key AND claim.attempt = r.attempt AND claim.state IN (1, 4))
         ORDER BY lease_until LIMIT ?2",
    )?;
    let mut rows = lost.query([now, limit])?;
    let mut ends = Vec::new();
    while let Some(row) = rows.next()? {
        ends.push((reservation_id(row)?, lapse(row.get(2)?)?));
    }
    for (id, lapse) in &ends {
        let ended = match lapse {
            Lapse::Release | Lapse::ByClaim => SpendEnd::Released,
            Lapse::Spend => SpendEnd::Spent(Vec::new()),
        };
        end(connection, id, &ended)?;
    }
    Ok(ends.len())
}

/// Removes pots long after their window.
pub(super) fn drop_old(connection: &Connection, now: i64, limit: i64) -> Result<usize, Failure> {
    let mut old = connection.prepare_cached(
        "DELETE FROM pot WHERE (user_id, name, holder, currency, window_seconds, window_start) IN (
             SELECT user_id, name, holder, currency, window_seconds, window_start FROM pot
             WHERE window_seconds > 0 AND reserved = 0 AND window_start + window_seconds <= ?1
             LIMIT ?2)",
    )?;
    let before = seconds(now).saturating_sub(signed(POT_KEPT.as_secs()));
    Ok(old.execute([before, limit])?)
}

fn reserve(
    session: &Session<'_>,
    request: &Reserve,
    claim: Option<(&Scope, u32)>,
) -> Result<Option<Overdrawn>, Failure> {
    let (connection, now) = (session.connection, session.now);
    let window_now = windows_at(session.believed, now);
    if is_reserved(connection, &request.id)? {
        return Ok(None);
    }
    if let Some(over) = over(connection, &request.draws, window_now)? {
        return Ok(Some(over));
    }
    for (n, draw) in request.draws.iter().enumerate() {
        let start = window_start(seconds(window_now), draw.pot.window_seconds);
        let PotKey {
            user_id,
            name,
            holder,
            currency,
            window_seconds,
        } = &draw.pot;
        let window_seconds = signed(*window_seconds);
        let mut add = connection.prepare_cached(
            "INSERT INTO pot VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)
             ON CONFLICT DO UPDATE SET reserved = reserved + ?7",
        )?;
        let reserved = draw.amount.max(0);
        add.execute(params![
            user_id,
            name,
            holder,
            currency,
            window_seconds,
            start,
            reserved
        ])?;
        let mut insert = connection.prepare_cached(
            "INSERT INTO reservation VALUES
                 (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        )?;
        insert.execute(params![
            request.id.user_id,
            request.id.id.as_str(),
            bounded(n),
            user_id,
            name,
            holder,
            currency,
            window_seconds,
            start,
            draw.amount,
            request.lapse as u8,
            later(now, request.lease),
            claim.map(|(scope, _)| scope.tool.as_str()),
            claim.map(|(scope, _)| scope.key.0),
            claim.map(|(_, attempt)| attempt),
        ])?;
    }
    Ok(None)
}

fn over(connection: &Connection, draws: &[Draw], now: i64) -> Result<Option<Overdrawn>, Failure> {
    let mut found = None;
    for (index, draw) in draws.iter().enumerate() {
        let mut statement = connection.prepare_cached(
            "SELECT reserved, spent FROM pot
             WHERE user_id = ?1 AND name = ?2 AND holder = ?3 AND currency = ?4
                 AND window_seconds = ?5 AND window_start = ?6",
        )?;
        let pot = &draw.pot;
        let start = window_start(seconds(now), pot.window_seconds);
        let key = params![
            pot.user_id,
            pot.name,
            pot.holder,
            pot.currency,
            signed(pot.window_seconds),
            start
        ];
        let pot = statement.query_row(key, |row| Ok((row.get(0)?, row.get(1)?)));
        let (reserved, spent) = pot.optional()?.unwrap_or_default();
        found = longer(found, overdrawn(index, draw, reserved, spent, seconds(now)));
    }
    Ok(found)
}

/// Amount that a reservation took out of a pot.
struct Drawn {
    pot: PotKey,
    window_start: i64,
    amount: i64,
}

/// Removes a reservation. Returns its draws.
fn taken_out(connection: &Connection, id: &ReservationId) -> Result<Vec<(Drawn, usize)>, Failure> {
    let mut delete = connection.prepare_cached(
        "DELETE FROM reservation WHERE user_id = ?1 AND id = ?2
         RETURNING pot_user_id, name, holder, currency, window_seconds, window_start, amount, n",
    )?;
    let mut rows = delete.query(params![id.user_id, id.id.as_str()])?;
    let mut drawn = Vec::new();
    while let Some(row) = rows.next()? {
        let n = usize::try_from(row.get::<_, i64>(7)?).unwrap_or(usize::MAX);
        let taken = Drawn {
            pot: pot_key(row, 0)?,
            window_start: row.get(5)?,
            amount: row.get(6)?,
        };
        drawn.push((taken, n));
    }
    Ok(drawn)
}

/// Returns the reservations of a scope with the attempts that made them.
fn of_scope(connection: &Connection, scope: &Scope) -> Result<Vec<(ReservationId, u32)>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT user_id, id, attempt FROM reservation
         WHERE user_id = ?1 AND tool = ?2 AND key = ?3 AND n = 0",
    )?;
    let mut rows = statement.query(params![scope.user_id, scope.tool.as_str(), scope.key.0])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((reservation_id(row)?, row.get(2)?));
    }
    Ok(found)
}

fn ids(mut rows: rusqlite::Rows<'_>) -> Result<Vec<ReservationId>, Failure> {
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        ids.push(reservation_id(row)?);
    }
    Ok(ids)
}

fn reservation_id(row: &Row<'_>) -> Result<ReservationId, Failure> {
    Ok(ReservationId {
        user_id: row.get(0)?,
        id: parsed(row, 1)?,
    })
}

/// Converts the store's time to whole seconds.
/// Returns the time by which windows open, from the latest time that was believed and the clock.
fn windows_at(believed: i64, now: i64) -> i64 {
    let mark = (believed != i64::MIN).then(|| timestamp(believed));
    micros(window_time(mark, timestamp(now)))
}

fn seconds(now: i64) -> i64 {
    now.div_euclid(1_000_000)
}
