//! Jobs that are requeued after what they had read was discarded, and stale work data.
