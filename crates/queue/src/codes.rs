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
            /// All of them, in the order of their numbers.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// Returns the number that the tables keep.
            pub fn number(self) -> i64 {
                self as i64
            }

            /// Returns the name.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            /// Returns the one with a number.
            pub fn from_number(number: i64) -> Option<$name> {
                match number { $($number => Some($name::$variant),)+ _ => None }
            }

            /// Returns the one with a name.
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
        /// It waits, for whatever reason but a hold.
        Queued = 0 "queued",
        /// A worker has it.
        Running = 1 "running",
        /// It waits until it is released.
        Held = 2 "held",
        /// It failed, and waits for a person.
        Failed = 3 "failed",
        /// It went through all stages.
        Succeeded = 4 "succeeded",
        /// A person cancelled it, or a later job superseded it.
        Cancelled = 5 "cancelled",
    }
}

codes! {
    /// Why a waiting job is not being worked on. Only `Ready` ones can be claimed.
    State {
        /// It can be claimed.
        Ready = 0 "ready",
        /// Another job owns its lock or comes first.
        Parked = 1 "parked",
        /// Its due time has not come.
        Delayed = 2 "delayed",
        /// It, its batch or its collection is held.
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
        /// The content of the superseded job was never read.
        Unread = 0 "never read",
        /// Both have the same content.
        Same = 1 "the same",
        /// The contents differ.
        Different = 2 "different",
        /// It is another thing, which only has the same name: it is not superseded.
        Unrelated = 3 "unrelated",
    }
}

codes! {
    /// Where a batch is. A batch can also be held in its first two states.
    BatchState {
        /// Submitted, and not accepted yet.
        Pending = 0 "pending",
        /// Accepted; its jobs are under way.
        Processing = 1 "processing",
        /// All jobs have ended, and its report is to be written.
        Reporting = 2 "reporting",
        /// Reported, and every job succeeded or was cancelled by a person.
        Completed = 3 "completed",
        /// Reported, and something failed.
        Failed = 4 "failed",
        /// Jobs that were requeued have ended, and a new version of its report is to be written.
        UpdateReporting = 5 "update-reporting",
        /// It was cancelled as a whole.
        Deleted = 6 "deleted",
    }
}
