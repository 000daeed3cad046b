-- Also in collections that a rebuilt registry has and that were not made here.
select object from local_ids where local_id = $1 order by object limit 2
