"""Fakes that a judge takes for people: statistics of a day, and a filter that keeps a fake by them alone."""
