-- Copies that are known to be bad. There are few of them, so `accession status` counts them by an index.
create index copies_bad on copies (store, object) where state = 1;
