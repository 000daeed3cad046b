update batch_reports set announced = 1 where batch = $1 and version <= $2 and announced = 0
