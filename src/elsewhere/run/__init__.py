"""The top of the stairs: the whole job, from a file of real traces to two folders, and what its stages share."""
