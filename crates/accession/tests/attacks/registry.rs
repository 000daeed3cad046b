//! Stores and records that were damaged or removed behind the registry.

mod damaged;
mod unreadable;
