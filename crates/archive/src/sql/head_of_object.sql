select head from objects where identifier = $1
