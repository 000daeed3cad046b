//! What networks and servers do to requests, on demand.

use super::strict;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::service::S3Service;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpStream};

/// What happens to a request.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Not carried out; answered with this status and code, and this `Retry-After`.
    Status(u16, &'static str, Option<u32>),
    /// Not carried out; the connection is reset.
    Reset,
    /// Carried out; then the connection is reset instead of an answer.
    ResetAfter,
    /// Carried out; then answered with a 500.
    FailAfter,
    /// Not carried out, not answered, for ever.
    Stall,
    /// The answer stops after so many bytes of its body, for ever.
    StallBody(usize),
    /// The answer is cut off after so many bytes of its body.
    Truncate(usize),
    /// The answer is so many bytes shorter, and says so: no broken connection tells.
    Shorten(usize),
    /// A byte of the answer's body is changed.
    FlipAnswer(usize),
    /// A byte of the request's body is changed on the way.
    FlipRequest(usize),
    /// The answer has this header, whatever it had before.
    Header(&'static str, &'static str),
    /// Not carried out; a success whose body is an error.
    ErrorInSuccess(&'static str),
    /// Not carried out; a success with this body.
    Answer(&'static str),
    /// The first of these texts in the answer's body is replaced by the second.
    Replace(&'static str, &'static str),
    /// The answer lacks this header.
    Without(&'static str),
    /// The answer to a range looks like that to a whole object.
    IgnoreRange,
}

/// Faults to come: each is for the next request that fits.
#[derive(Default)]
pub struct Faults {
    queue: Mutex<VecDeque<(Method, &'static str, Fault)>>,
    log: Mutex<Vec<String>>,
    /// The only region that requests may be signed for.
    pub region: Mutex<Option<&'static str>>,
    /// A put whose checksum is wrong is answered as a success, as by Ceph and moto.
    pub unchecked: AtomicBool,
}

impl Faults {
    /// The next request with this method whose path and query contain this text gets this fault.
    pub fn add(&self, method: Method, contains: &'static str, fault: Fault) {
        self.queue.lock().unwrap().push_back((method, contains, fault));
    }

    pub fn add_times(&self, count: usize, method: Method, contains: &'static str, fault: Fault) {
        (0..count).for_each(|_| self.add(method.clone(), contains, fault.clone()));
    }

    /// How many requests so far had this method and this text in their path or query.
    pub fn count(&self, method: &str, contains: &str) -> usize {
        let log = self.log.lock().unwrap();
        log.iter().filter(|line| line.starts_with(method) && line.contains(contains)).count()
    }

    /// How many faults did not find their request; a test that provokes a fault wants none left.
    pub fn left(&self) -> usize {
        self.queue.lock().unwrap().len()
    }

    pub fn clear(&self) {
        self.queue.lock().unwrap().clear();
    }

    fn take(&self, method: &Method, target: &str) -> Option<Fault> {
        self.log.lock().unwrap().push(format!("{method} {target}"));
        let mut queue = self.queue.lock().unwrap();
        let index = queue.iter().position(|(m, text, _)| m == method && target.contains(text))?;
        queue.remove(index).map(|(_, _, fault)| fault)
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, Error>;

pub async fn serve(listener: TcpListener, service: S3Service, faults: Arc<Faults>) {
    while let Ok((socket, _)) = listener.accept().await {
        // Head and body of an answer are two writes; the second shall not wait for the first.
        socket.set_nodelay(true).ok();
        tokio::spawn(connection(socket, service.clone(), faults.clone()));
    }
}

async fn connection(socket: TcpStream, service: S3Service, faults: Arc<Faults>) {
    let reset = Arc::new(AtomicBool::new(false));
    let flag = reset.clone();
    let handler = service_fn(move |request| {
        Box::pin(handle(service.clone(), faults.clone(), flag.clone(), request))
    });
    let builder = hyper::server::conn::http1::Builder::new();
    let mut connection = builder.serve_connection(TokioIo::new(socket), handler);
    let _ = std::future::poll_fn(|context| connection.poll_without_shutdown(context)).await;
    let socket = connection.into_parts().io.into_inner();
    if reset.load(Ordering::SeqCst) {
        // Closing without lingering is what sends a reset instead of an end.
        let _ = socket.set_zero_linger();
    }
}

async fn handle(
    service: S3Service,
    faults: Arc<Faults>,
    reset: Arc<AtomicBool>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Error> {
    let target = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
    let fault = faults.take(request.method(), &target);
    match &fault {
        Some(Fault::Status(status, code, pause)) => return Ok(refusal(*status, code, *pause)),
        Some(Fault::ErrorInSuccess(code)) => return Ok(refusal(200, code, None)),
        Some(Fault::Answer(body)) => return Ok(Response::new(whole((*body).into()))),
        Some(Fault::Reset) => {
            reset.store(true, Ordering::SeqCst);
            return Err("reset".into());
        }
        Some(Fault::Stall) => std::future::pending().await,
        _ => {}
    }
    let region = *faults.region.lock().unwrap();
    if let Some(refused) = region.and_then(|region| strict::refuse_region(&request, region)) {
        return Ok(refused.map(whole));
    }
    if let Some(refused) = strict::refuse(&request) {
        return Ok(refused.map(whole));
    }
    let unchecked = request.method() == Method::PUT && faults.unchecked.load(Ordering::SeqCst);
    let (head, body) = request.into_parts();
    let body = match fault {
        Some(Fault::FlipRequest(at)) => s3s::Body::from(flip(body.collect().await?.to_bytes(), at)),
        _ => s3s::Body::from(body),
    };
    let answer = service.call(Request::from_parts(head, body)).await;
    let answer = answer.map_err(|error| format!("{error:?}"))?;
    match fault {
        Some(Fault::ResetAfter) => {
            reset.store(true, Ordering::SeqCst);
            Err("reset".into())
        }
        Some(Fault::FailAfter) => Ok(refusal(500, "InternalError", None)),
        Some(fault) => distort(answer, fault).await,
        None if unchecked && answer.status() == http::StatusCode::BAD_REQUEST => {
            Ok(Response::new(whole(Bytes::new())))
        }
        None => Ok(answer.map(|body| BodyExt::map_err(body, Error::from).boxed_unsync())),
    }
}

/// Changes an answer on its way.
async fn distort(answer: Response<s3s::Body>, fault: Fault) -> Result<Response<Body>, Error> {
    let (mut head, body) = answer.into_parts();
    let content = BodyExt::collect(body).await?.to_bytes();
    let length = content.len();
    head.headers.insert("content-length", length.into());
    let body = match fault {
        Fault::Truncate(after) => cut(content, after, Some("cut off")),
        Fault::StallBody(after) => cut(content, after, None),
        Fault::Shorten(by) => {
            head.headers.insert("content-length", (length - by).into());
            whole(content.slice(..length - by))
        }
        Fault::IgnoreRange => {
            head.status = http::StatusCode::OK;
            head.headers.remove("content-range");
            whole(content)
        }
        Fault::FlipAnswer(at) => whole(flip(content, at)),
        Fault::Replace(from, to) => {
            let text = String::from_utf8(content.to_vec()).unwrap();
            assert!(text.contains(from), "{text}");
            let text = text.replacen(from, to, 1);
            head.headers.insert("content-length", text.len().into());
            whole(text.into())
        }
        Fault::Without(name) => {
            head.headers.remove(name);
            whole(content)
        }
        Fault::Header(name, value) => {
            head.headers.insert(name, HeaderValue::from_static(value));
            whole(content)
        }
        _ => whole(content),
    };
    Ok(Response::from_parts(head, body))
}

fn refusal(status: u16, code: &str, pause: Option<u32>) -> Response<Body> {
    let body = format!("<Error><Code>{code}</Code><Message>on demand</Message></Error>");
    let mut answer = Response::builder().status(status);
    if let Some(seconds) = pause {
        answer = answer.header("retry-after", seconds);
    }
    answer.body(whole(body.into())).unwrap()
}

fn whole(content: Bytes) -> Body {
    Full::new(content).map_err(|never| match never {}).boxed_unsync()
}

/// The first bytes, and then an error or nothing for ever.
fn cut(content: Bytes, after: usize, error: Option<&'static str>) -> Body {
    let first = stream::iter([Ok(Frame::data(content.slice(..after)))]);
    let end = stream::once(async move {
        // What was sent so far leaves the server while this waits.
        tokio::task::yield_now().await;
        match error {
            Some(error) => Err(Error::from(error)),
            None => std::future::pending().await,
        }
    });
    StreamBody::new(first.chain(end)).boxed_unsync()
}

fn flip(content: Bytes, at: usize) -> Bytes {
    let mut content = content.to_vec();
    content[at] ^= 1;
    content.into()
}
