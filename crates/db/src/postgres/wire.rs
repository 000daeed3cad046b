//! What goes over a connection: messages, gathered until they are wanted at the other end.

use crate::postgres::socket::Stream;
use bytes::BytesMut;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use std::io::{self, Read, Write};
use std::time::Duration;

/// Read at once.
const READ_BYTES: usize = 32 * 1024;
/// Buffers are not kept any larger than this for longer than it takes.
const BUFFER_BYTES_MAX: usize = 1 << 20;

pub(super) struct Wire {
    stream: Stream,
    /// What is to be said.
    pub out: BytesMut,
    heard: BytesMut,
    scratch: Box<[u8]>,
    is_closed: bool,
}

impl Wire {
    pub fn new(stream: Stream) -> Wire {
        Wire {
            stream,
            out: BytesMut::new(),
            heard: BytesMut::new(),
            scratch: vec![0; READ_BYTES].into_boxed_slice(),
            is_closed: false,
        }
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// How long to wait for a message: for ever without a time.
    pub fn set_patience(&self, time: Option<Duration>) -> io::Result<()> {
        self.stream.socket().set_patience(time)
    }

    /// Says what was gathered.
    pub fn flush(&mut self) -> io::Result<()> {
        let said = self.stream.write_all(&self.out).and_then(|()| self.stream.flush());
        self.out.clear();
        if self.out.capacity() > BUFFER_BYTES_MAX {
            self.out = BytesMut::new();
        }
        self.is_closed |= said.is_err();
        said
    }

    /// The next message; None if none came in time.
    pub fn read(&mut self) -> io::Result<Option<Message>> {
        let read = self.read_on();
        self.is_closed |= read.is_err();
        read
    }

    fn read_on(&mut self) -> io::Result<Option<Message>> {
        loop {
            if let Some(message) = Message::parse(&mut self.heard)? {
                return Ok(Some(message));
            }
            if self.heard.is_empty() && self.heard.capacity() > BUFFER_BYTES_MAX {
                self.heard = BytesMut::new();
            }
            match self.stream.read(&mut self.scratch) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.heard.extend_from_slice(&self.scratch[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if !self.is_closed {
            frontend::terminate(&mut self.out);
            // A server that does not hear of it notices that the connection is gone.
            let _ = self.flush();
        }
    }
}
