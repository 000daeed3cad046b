delete from minutes where minute < $1
