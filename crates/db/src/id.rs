//! Ids of rows as types of their own, so that the id of a job is never taken for that of a batch.

/// Defines types for ids: integers in the database, in JSON and on the command line.
///
/// The crate that uses it needs `serde`.
///
/// ```
/// db::ids! {
///     /// The id of a letter.
///     pub struct LetterId;
/// }
/// let letter: LetterId = "12".parse().unwrap();
/// assert_eq!(letter, LetterId::new(12));
/// assert_eq!(letter.to_string(), "12");
/// ```
#[macro_export]
macro_rules! ids {
    ($($(#[$doc:meta])* $visibility:vis struct $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord,
            serde::Serialize, serde::Deserialize,
        )]
        #[serde(transparent)]
        $visibility struct $name(i64);

        impl $name {
            /// Makes an id of its number.
            $visibility const fn new(number: i64) -> $name {
                $name(number)
            }

            /// Returns the number of the id.
            $visibility const fn number(self) -> i64 {
                self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;

            fn from_str(text: &str) -> std::result::Result<$name, Self::Err> {
                text.parse().map($name)
            }
        }

        impl $crate::FromInt for $name {
            fn from_int(number: i64) -> $name {
                $name(number)
            }
        }

        impl $crate::FromColumn for $name {
            fn from_column(row: &$crate::Row<'_>, index: usize) -> $crate::Result<$name> {
                row.get(index).map($name)
            }
        }

        impl From<$name> for i64 {
            fn from(id: $name) -> i64 {
                id.0
            }
        }

        impl From<$name> for $crate::Value<'_> {
            fn from(id: $name) -> Self {
                $crate::Value::Int(id.0)
            }
        }

        impl From<&$name> for $crate::Value<'_> {
            fn from(id: &$name) -> Self {
                $crate::Value::Int(id.0)
            }
        }
    )+};
}
