"""The mobility profile <p(u), pi(u)> of each user (`markov`), and the aggregate model of all (`aggregate`)."""
