//! Statements live in `.sql` files named after what they do.

/// A statement for each engine; often the same text.
#[derive(Debug, Clone, Copy)]
pub struct Statement {
    /// The name in errors and schedules; unique, because prepared statements are cached by it.
    pub name: &'static str,
    /// The text for SQLite.
    pub sqlite: &'static str,
    /// The text for PostgreSQL.
    pub postgres: &'static str,
}

/// Includes a statement: `statement!("sql/name")` is the file `src/sql/name.sql` for both engines;
/// `statement!("sql/name", per engine)` is `name.sqlite.sql` and `name.postgres.sql`.
#[macro_export]
macro_rules! statement {
    ($path:literal) => {
        $crate::Statement {
            name: $path,
            sqlite: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/", $path, ".sql")),
            postgres: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/", $path, ".sql")),
        }
    };
    ($path:literal, per engine) => {
        $crate::Statement {
            name: $path,
            sqlite: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/src/",
                $path,
                ".sqlite.sql"
            )),
            postgres: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/src/",
                $path,
                ".postgres.sql"
            )),
        }
    };
}
