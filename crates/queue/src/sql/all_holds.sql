-- Newest first.
select kind, name, who, at, reason from holds order by at desc, kind, name limit $1
