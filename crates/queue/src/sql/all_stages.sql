select id, pipeline, position, name, settings from stages order by pipeline, position
