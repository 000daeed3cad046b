select place, batch from received
