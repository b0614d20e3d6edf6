"""The attack suite: one small file per family, each attack with its control, its baseline and its interval."""
