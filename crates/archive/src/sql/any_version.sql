-- Whether a version of any object is recorded.
select object from versions limit 1
