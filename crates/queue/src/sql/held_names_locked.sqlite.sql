select kind, name from holds
