//! What crosses the network, stores aside: downloads, mail, callbacks, the identifier service.

pub mod callback;
pub mod ezid;
pub mod fetch;
pub mod http;
pub mod mail;
pub mod share;
