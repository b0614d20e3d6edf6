"""ROOM 3: how alike two people live: in the same places (sim_G), or in the same way (sim_S)."""
