//! Servers that lie, crawl or never stop sending.
