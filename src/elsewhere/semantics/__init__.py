"""ROOM 4: which places mean the same to different people: the location graph w_G and its classes C."""
