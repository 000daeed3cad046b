//! Packages that expand without end, lead elsewhere, or change after their receipt.
