//! The small numbers in the tables, and their names.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant = $number),+
        }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant),+];

            pub fn number(self) -> i64 {
                self as i64
            }

            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            pub fn from_number(number: i64) -> Option<$name> {
                match number { $($number => Some($name::$variant),)+ _ => None }
            }

            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl db::FromColumn for $name {
            fn from_column(row: &db::Row<'_>, index: usize) -> db::Result<Self> {
                let number: i64 = row.get(index)?;
                $name::from_number(number).ok_or_else(|| {
                    db::Error::Other(format!("column {index}"), format!("{number} is no {}", stringify!($name)))
                })
            }
        }

        impl From<$name> for db::Value<'_> {
            fn from(value: $name) -> Self {
                db::Value::Int(value.number())
            }
        }
    };
}

codes! {
    /// A job's condition: stage says where it is, status says how it is.
    Status {
        Queued = 0 "queued",
        Running = 1 "running",
        Held = 2 "held",
        Failed = 3 "failed",
        Succeeded = 4 "succeeded",
        Cancelled = 5 "cancelled",
    }
}

codes! {
    /// Why a waiting job is not being worked on. Only `Ready` ones can be claimed.
    State {
        Ready = 0 "ready",
        /// Another job owns its lock or comes first.
        Parked = 1 "parked",
        /// Its due time has not come.
        Delayed = 2 "delayed",
        Held = 3 "held",
        /// A target it needs is down.
        Blocked = 4 "blocked",
        /// A resource it needs is used up.
        Starved = 5 "starved",
    }
}

codes! {
    /// What is known of the content of a superseded job, compared with the job that took its place.
    Content {
        Unread = 0 "never read",
        Same = 1 "the same",
        Different = 2 "different",
        /// It is another thing, which only has the same name: it is not superseded.
        Unrelated = 3 "unrelated",
    }
}

codes! {
    /// Where a batch is. A batch can also be held in its first two states.
    BatchState {
        Pending = 0 "pending",
        Processing = 1 "processing",
        Reporting = 2 "reporting",
        Completed = 3 "completed",
        Failed = 4 "failed",
        UpdateReporting = 5 "update-reporting",
        Deleted = 6 "deleted",
    }
}
