select r.batch, max(r.version)
from queue_reports r join deposits d on d.batch = r.batch
where r.announced = 0
group by r.batch order by r.batch limit 1
