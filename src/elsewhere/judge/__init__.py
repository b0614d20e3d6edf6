"""ROOM 8: the judge, who puts the evaluations together: of a run, of the service scenario, of the paper's numbers."""
