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

/// `statement!(file::name)` is the statement `name` of `src/sql/file.sql`; see
/// [`statement_text`](crate::statement_text) for how statements are named there.
///
/// `statement!("sql/name")` is the file `src/sql/name.sql` for both engines;
/// `statement!("sql/name", per engine)` is `name.sqlite.sql` and `name.postgres.sql`.
#[macro_export]
macro_rules! statement {
    ($file:ident :: $name:ident) => {
        $crate::Statement {
            name: concat!(env!("CARGO_PKG_NAME"), "::", stringify!($file), "::", stringify!($name)),
            sqlite: $crate::statement_text(
                include_str!(concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/src/sql/",
                    stringify!($file),
                    ".sql"
                )),
                stringify!($name),
                $crate::Engine::Sqlite,
            ),
            postgres: $crate::statement_text(
                include_str!(concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/src/sql/",
                    stringify!($file),
                    ".sql"
                )),
                stringify!($name),
                $crate::Engine::Postgres,
            ),
        }
    };
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
