-- Failed jobs whose work data are still kept.
select count(*) from ingests i join queue_failures f on f.job = i.job where i.cleaned_at is null
