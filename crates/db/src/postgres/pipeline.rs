//! A connection's conversation with the server, held by the thread that uses it. What is asked is
//! waited for; what is only sent goes to the server together with the next thing that is asked, and so
//! costs no round trip of its own. The server does everything in the order in which it was said, and
//! answers what was said together at once.

use crate::postgres::wire::Wire;
use fallible_iterator::FallibleIterator;
use postgres_protocol::IsNull as ProtocolNull;
use postgres_protocol::message::backend::{DataRowBody, ErrorFields, Message};
use postgres_protocol::message::frontend::{self, BindError};
use std::collections::VecDeque;
use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::types::{IsNull, ToSql, Type};

/// The format of everything that is sent and received.
const BINARY: i16 = 1;

/// A statement that the server knows by name.
pub(super) struct Prepared {
    name: String,
    params: Vec<Type>,
    pub columns: Vec<Type>,
}

/// What the server said to one statement.
#[derive(Default)]
pub(super) struct Answer {
    pub rows: Vec<DataRowBody>,
    /// Rows that were changed.
    pub changed: u64,
    params: Vec<Type>,
    columns: Vec<Type>,
}

/// What went wrong, and with which statement.
pub(super) struct Wrong {
    pub statement: &'static str,
    pub trouble: Trouble,
    /// The answers that were wanted and came before.
    pub before: Vec<Answer>,
}

pub(super) enum Trouble {
    /// The server refused it: the code of the standard, and its words.
    Refused {
        code: String,
        text: String,
    },
    /// It cannot be said to the server.
    Unfit(String),
    Broken(io::Error),
}

impl Wrong {
    pub(super) fn with(statement: &'static str, trouble: Trouble) -> Wrong {
        Wrong { statement, trouble, before: Vec::new() }
    }

    /// True if a statement was refused for the lack of a value.
    pub fn is_null_in(&self, statement: &'static str) -> bool {
        let null = matches!(&self.trouble, Trouble::Refused { code, .. } if code == "23502");
        null && self.statement == statement
    }
}

/// Statements that are answered together. After an error the server passes over the rest of them.
#[derive(Default)]
struct Round {
    steps: VecDeque<Step>,
}

struct Step {
    statement: &'static str,
    kind: Kind,
    /// Somebody wants to know the answer.
    wanted: bool,
    answer: Answer,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Runs a statement.
    Execution,
    /// Asks what a statement takes and returns.
    Description,
    /// Runs any number of commands; their end is that of the round.
    Script,
}

pub(super) struct Pipeline {
    pub(super) wire: Wire,
    /// What was said and not answered yet, oldest first.
    rounds: VecDeque<Round>,
    /// What is to be said with the next question.
    next: Round,
    notifications: VecDeque<String>,
    names: u64,
}

impl Pipeline {
    pub fn new(wire: Wire) -> Pipeline {
        Pipeline {
            wire,
            rounds: VecDeque::new(),
            next: Round::default(),
            notifications: VecDeque::new(),
            names: 0,
        }
    }

    pub fn is_closed(&self) -> bool {
        self.wire.is_closed()
    }

    /// How many statements wait to be said, and how large they are.
    pub fn unsaid(&self) -> (usize, usize) {
        (self.next.steps.len(), self.wire.out.len())
    }

    /// Adds a statement to what is said next. `wanted` is its answer if [`Self::settle`] shall return it.
    pub fn send(
        &mut self,
        statement: &'static str,
        prepared: &Prepared,
        params: &[&(dyn ToSql + Sync)],
        wanted: bool,
    ) -> Result<(), Wrong> {
        let before = self.wire.out.len();
        let values = params.iter().zip(&prepared.params);
        let encode = |(value, kind): (&&(dyn ToSql + Sync), &Type), out: &mut _| {
            Ok(match value.to_sql_checked(kind, out)? {
                IsNull::Yes => ProtocolNull::Yes,
                IsNull::No => ProtocolNull::No,
            })
        };
        let out = &mut self.wire.out;
        let bound = match params.len() == prepared.params.len() {
            true => frontend::bind("", &prepared.name, [BINARY], values, encode, [BINARY], out),
            false => {
                let text = format!("{} parameters for {}", params.len(), prepared.params.len());
                Err(BindError::Conversion(text.into()))
            }
        };
        if let Err(error) = bound {
            self.wire.out.truncate(before);
            let error: Box<dyn StdError + Send + Sync> = match error {
                BindError::Conversion(error) => error,
                BindError::Serialization(error) => error.into(),
            };
            return Err(Wrong::with(statement, Trouble::Unfit(error.to_string())));
        }
        self.execute(statement, wanted)
    }

    /// As [`Self::send`], for one command without parameters: `BEGIN` and the like.
    pub fn send_text(&mut self, text: &'static str, wanted: bool) -> Result<(), Wrong> {
        let out = &mut self.wire.out;
        let said = frontend::parse("", text, [], out).and_then(|()| {
            let nothing = |(), _: &mut _| Ok(ProtocolNull::Yes);
            match frontend::bind("", "", [], [], nothing, [], out) {
                Err(BindError::Serialization(error)) => Err(error),
                _ => Ok(()),
            }
        });
        said.map_err(|e| Wrong::with(text, Trouble::Broken(e)))?;
        self.execute(text, wanted)
    }

    fn execute(&mut self, statement: &'static str, wanted: bool) -> Result<(), Wrong> {
        let said = frontend::execute("", 0, &mut self.wire.out);
        said.map_err(|e| Wrong::with(statement, Trouble::Broken(e)))?;
        self.next.add(statement, Kind::Execution, wanted);
        Ok(())
    }

    /// Makes a statement known to the server.
    pub fn prepare(
        &mut self,
        statement: &'static str,
        text: &str,
        others: &mut Vec<Answer>,
    ) -> Result<Arc<Prepared>, Wrong> {
        self.names += 1;
        let (name, out) = (format!("s{}", self.names), &mut self.wire.out);
        frontend::parse(&name, text, [], out)
            .and_then(|()| frontend::describe(b'S', &name, out))
            .map_err(|e| Wrong::with(statement, Trouble::Broken(e)))?;
        self.next.add(statement, Kind::Description, true);
        let mut answers = self.settle()?;
        let Answer { params, columns, .. } = answers.pop().unwrap_or_default();
        others.extend(answers);
        Ok(Arc::new(Prepared { name, params, columns }))
    }

    /// Ends what was gathered as one round.
    fn end_round(&mut self) {
        if !self.next.steps.is_empty() {
            frontend::sync(&mut self.wire.out);
            self.rounds.push_back(std::mem::take(&mut self.next));
        }
    }

    /// Runs text of any number of commands without parameters, which is a round of its own; what the
    /// last of them that returns rows returned.
    pub fn script(&mut self, text: &str) -> Result<Answer, Wrong> {
        self.end_round();
        frontend::query(text, &mut self.wire.out)
            .map_err(|e| Wrong::with("", Trouble::Unfit(e.to_string())))?;
        let mut round = Round::default();
        round.add("", Kind::Script, true);
        self.rounds.push_back(round);
        Ok(self.settle()?.pop().unwrap_or_default())
    }

    /// Says what was gathered and waits for the answers to it and to all that was said before. Those
    /// that are wanted come back in their order. The first error counts: in a transaction everything
    /// after it fails because of it.
    pub fn settle(&mut self) -> Result<Vec<Answer>, Wrong> {
        self.end_round();
        let (mut answers, mut wrong) = (Vec::new(), None);
        let mut heard = self.wire.flush();
        while heard.is_ok() && !self.rounds.is_empty() {
            heard = self.hear_round(&mut answers, &mut wrong);
        }
        if heard.is_err() {
            self.rounds.clear();
        }
        let wrong = match (wrong, heard) {
            (None, Ok(())) => return Ok(answers),
            // Also what the server said before it went away.
            (Some(wrong), _) => wrong,
            (None, Err(e)) => Wrong::with("", Trouble::Broken(e)),
        };
        Err(Wrong { before: answers, ..wrong })
    }

    /// Says what was gathered as a round, without waiting for answers.
    pub fn flush(&mut self) {
        self.end_round();
        self.begin_saying();
    }

    /// Says what was gathered, to which more is to come: the server does it meanwhile.
    pub fn begin_saying(&mut self) {
        // A broken connection is noticed by whoever asks next.
        let _ = self.wire.flush();
    }

    /// Reads the answers to the oldest round.
    fn hear_round(
        &mut self,
        answers: &mut Vec<Answer>,
        wrong: &mut Option<Wrong>,
    ) -> io::Result<()> {
        loop {
            let Some(message) = self.wire.read()? else { continue };
            let Some(round) = self.rounds.front_mut() else { return Ok(()) };
            match message {
                Message::ReadyForQuery(_) => {
                    // A script's end; or that of a round whose steps were passed over.
                    let rest = round.steps.drain(..).filter(|step| step.wanted && wrong.is_none());
                    answers.extend(rest.map(|step| step.answer));
                    self.rounds.pop_front();
                    return Ok(());
                }
                Message::NotificationResponse(body) => {
                    self.notifications.push_back(body.message()?.to_string());
                }
                Message::ErrorResponse(body) => {
                    let trouble = refusal(body.fields())?;
                    // Without a step it is the server's last word to this connection.
                    let statement = round.steps.front().map_or("", |step| step.statement);
                    wrong.get_or_insert(Wrong::with(statement, trouble));
                }
                message => {
                    if round.take(message)?
                        && let Some(step) = round.steps.pop_front()
                        && step.wanted
                        && wrong.is_none()
                    {
                        answers.push(step.answer);
                    }
                }
            }
        }
    }

    /// The next notification, if one comes in time.
    pub fn notification(&mut self, time: Duration) -> Option<String> {
        let deadline = Instant::now() + time;
        while self.notifications.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            let patient = self.wire.set_patience(Some(left.max(Duration::from_millis(1))));
            match patient.and_then(|()| self.wire.read()) {
                Ok(Some(Message::NotificationResponse(body))) => {
                    self.notifications.extend(body.message().map(str::to_string));
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        // A broken connection is noticed by whoever asks next.
        let _ = self.wire.set_patience(None);
        self.notifications.pop_front()
    }
}

impl Round {
    fn add(&mut self, statement: &'static str, kind: Kind, wanted: bool) {
        self.steps.push_back(Step { statement, kind, wanted, answer: Answer::default() });
    }

    /// Takes in a part of the answer to its first step; true if that was the last part.
    fn take(&mut self, message: Message) -> io::Result<bool> {
        let Some(Step { kind, wanted, answer, .. }) = self.steps.front_mut() else {
            return Ok(false);
        };
        Ok(match message {
            Message::DataRow(row) if *wanted => {
                answer.rows.push(row);
                false
            }
            Message::CommandComplete(body) => {
                let count = body.tag()?.rsplit(' ').next().and_then(|n| n.parse().ok());
                answer.changed = count.unwrap_or(0);
                *kind == Kind::Execution
            }
            Message::EmptyQueryResponse => *kind == Kind::Execution,
            Message::ParameterDescription(body) => {
                answer.params = body.parameters().map(|oid| Ok(type_of(oid))).collect()?;
                false
            }
            Message::RowDescription(body) => {
                answer.columns =
                    body.fields().map(|field| Ok(type_of(field.type_oid()))).collect()?;
                // Of a script only the last rows are kept.
                answer.rows.clear();
                *kind == Kind::Description
            }
            Message::NoData => *kind == Kind::Description,
            _ => false,
        })
    }
}

fn type_of(oid: u32) -> Type {
    // Nothing of ours has types that a server does not come with.
    Type::from_oid(oid).unwrap_or(Type::UNKNOWN)
}

pub(super) fn refusal(mut fields: ErrorFields<'_>) -> io::Result<Trouble> {
    let (mut code, mut text) = (String::new(), String::new());
    while let Some(field) = fields.next()? {
        match field.type_() {
            b'C' => code = String::from_utf8_lossy(field.value_bytes()).into_owned(),
            b'M' => text = String::from_utf8_lossy(field.value_bytes()).into_owned(),
            _ => {}
        }
    }
    Ok(Trouble::Refused { code, text })
}
