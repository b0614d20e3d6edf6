"""Which places mean the same to different people: the location graph w_G (`graph`) and its classes C (`classes`)."""
