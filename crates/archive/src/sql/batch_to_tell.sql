select d.batch, max(r.version)
from deposits d join batch_reports r on r.batch = d.batch
where r.version > d.notified_version
group by d.batch order by d.batch limit 1
