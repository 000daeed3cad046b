update versions set files = (select files from objects where id = $1),
                    bytes = (select bytes from objects where id = $1)
where object = $1 and number = $2
