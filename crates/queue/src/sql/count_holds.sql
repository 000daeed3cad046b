select count(*) from holds
