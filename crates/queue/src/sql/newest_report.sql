select content from batch_reports where batch = $1 order by version desc limit 1
