"""Judge fakes, ours or any other tool's: attacks, usefulness, lives over days, the tables of the paper."""
