select coalesce(max(version), 0), coalesce(max(at), 0) from batch_reports where batch = $1
