select who, at, reason from holds where kind = $1 and name = $2
