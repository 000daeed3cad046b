select coalesce(max(at), 0) from told_reviews
