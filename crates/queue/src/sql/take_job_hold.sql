delete from holds where kind = 'job' and name = $1 returning who, reason
