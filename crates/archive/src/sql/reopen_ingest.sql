update ingests set cleaned_at = null, began_at = $2 where job = $1
