-- Also those of collections that the registry was rebuilt with and nobody has made here.
select object from local_ids where local_id = $1 order by object limit 2
