"""The location-based-service scenario of sec:evaluation_lbs: decoys sent along, and who sees through them."""
