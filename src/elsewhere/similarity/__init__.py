"""How alike two people live: in the same places (sim_G, `geographic`), or in the same way (sim_S, `semantic`)."""
