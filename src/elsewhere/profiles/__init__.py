"""ROOM 2: the mobility profile <p(u), pi(u)> of each user, and the aggregate model of all."""
