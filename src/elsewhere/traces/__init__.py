"""ROOM 1: places, clocks and traces; how they are read, and a town in which they are simulated."""
