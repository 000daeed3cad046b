select number, path, size, sha512, digests from ingest_files
where job = $1 and sha512 is not null
