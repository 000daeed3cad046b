update ingests set cleaned_at = $2 where job = $1
