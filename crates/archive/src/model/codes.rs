//! The small numbers in the tables, and their names.

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant = $number),+
        }

        impl $name {
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
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
                match row.get::<i64>(index)? {
                    $($number => Ok($name::$variant),)+
                    number => Err(db::Error::Other(
                        format!("column {index}"),
                        format!("{number} is no {}", stringify!($name)),
                    )),
                }
            }
        }

        impl From<$name> for db::Value<'_> {
            fn from(value: $name) -> Self {
                db::Value::Int(value as i64)
            }
        }
    };
}

codes! {
    /// What a deposited file is to the version before.
    Change {
        Unknown = 0 "unknown",
        New = 1 "new",
        Changed = 2 "changed",
        Unchanged = 3 "unchanged",
    }
}

codes! {
    /// Whether the archive keeps an object.
    ObjectState {
        /// A job has its identifier; no version is recorded yet.
        Reserved = 0 "reserved",
        Active = 1 "active",
        Deleted = 2 "deleted",
    }
}

codes! {
    /// What the last look at a copy has found.
    CopyState {
        Good = 0 "good",
        /// Something of it is missing or differs from the registry.
        Bad = 1 "bad",
    }
}
