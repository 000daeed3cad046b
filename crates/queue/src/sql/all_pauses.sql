select kind, id, who, at, reason from pauses order by at
