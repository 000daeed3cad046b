select object from copies where store = $1 and key = $2
