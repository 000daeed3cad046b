select kind, name from holds order by kind, name for share
